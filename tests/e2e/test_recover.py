"""perfkit itself is killed at any moment, and `perfkit recover` finishes the capture: every record
exactly once, the program unharmed."""
import os
import random
import shutil
import signal
import subprocess
import time

import e2e

OPENCL = 1 if e2e.has_opencl() else 0


class Recover(e2e.Case):
    status = 41

    @classmethod
    def setUpClass(cls):
        e2e.become_subreaper()

    def records(self, count=4000, pause=300, *more):
        progress = e2e.make_progress(self.path("progress"))
        return progress, (e2e.target("records"), "--nvtx", 2, "--opencl", OPENCL, "--count", count,
                          "--pause", pause, "--status", self.status, "--progress", progress, *more)

    def kill_perfkit(self, process):
        """SIGKILL perfkit. Returns {pid: end} of what it left behind, once that has ended by
        itself."""
        process.kill()
        process.wait()
        return self.reap()

    def reap(self):
        return e2e.reap_orphans()

    def recover(self, *words, status=0):
        result = self.perfkit("recover", "--quiet", *words)
        self.assertEqual(result.status, status, result.err.decode())
        return result

    def assert_exactly_once(self, capture, progress):
        db = self.open(capture, ("complete", "recovered"))
        self.assert_conserved(db)
        total = self.assert_all_recorded(db, progress)
        self.assertEqual(total, sum(progress[1]))
        return db, total

    def measure(self):
        """How long a whole run takes here, so that the moments fall over all of it."""
        start = time.monotonic()
        _, command = self.records()
        capture = self.record(*command, status=self.status).capture
        os.remove(capture)
        return time.monotonic() - start

    def test_killed_at_random_moments(self):
        rounds = 1000 if e2e.LONG else 50
        whole = self.measure()
        seed = int(os.environ.get("PERFKIT_E2E_SEED", random.randrange(1 << 30)))
        choose = random.Random(seed)
        before, during, after, total = 0, 0, 0, 0
        for i in range(rounds):
            for folder in self.spool_folders():  # of a round that failed
                shutil.rmtree(folder)
            with self.subTest(round=i, seed=seed):
                progress, command = self.records()
                process = self.start(*command)
                time.sleep(choose.uniform(0, whole * 1.1))
                ended = self.kill_perfkit(process)
                folders = self.spool_folders()
                done = e2e.read_progress(progress)
                if not any(done[1]):  # killed before there was a program
                    before += 1
                    whole *= 1.2  # the machine is slower by now
                    for folder in folders:
                        self.perfkit("recover", "--quiet", folder)
                        shutil.rmtree(folder, ignore_errors=True)
                    self.discard(process.capture)
                    continue
                if ended:  # the program outlived perfkit, and knew nothing of it
                    self.assertEqual(set(ended.values()), {self.status})
                    during += 1
                else:
                    after += 1
                self.assertEqual(done[1][:2 + OPENCL], (4000,) * (2 + OPENCL))
                for folder in folders:
                    self.recover(folder)
                _, n = self.assert_exactly_once(process.capture, done)
                total += n
                self.discard(process.capture)
        e2e.say("perfkit killed %d times: %d before the first record, %d while recording, %d "
                "afterwards; %d records, each exactly once (seed %d)" %
                (rounds, before, during, after, total, seed))
        self.assertGreater(during, 0)

    def discard(self, capture):
        for suffix in ("",) + e2e.SIDE_SUFFIXES:
            if os.path.exists(capture + suffix):
                os.remove(capture + suffix)

    def interrupted(self, *more):
        """A program that has ended and a capture that nobody finished."""
        progress, command = self.records(20000, 2000, *more)
        process = self.start(*command, stdout=subprocess.DEVNULL)
        e2e.wait_until(lambda: any(n > 2000 for n in e2e.read_progress(progress)[1]))
        self.assertEqual(set(self.kill_perfkit(process).values()), {self.status})
        return process.capture, progress

    def test_recover_is_killed_too(self):
        """Recover is killed at random moments, again and again, before one is let through."""
        capture, progress = self.interrupted()
        folder, = self.spool_folders()
        choose = random.Random()
        for i in range(100 if e2e.LONG else 15):
            recover = subprocess.Popen([e2e.PERFKIT, "recover", "--quiet", "--keep-spool", folder],
                                       env=e2e.clean_environment(), cwd=self.folder)
            time.sleep(choose.uniform(0, 0.1))
            recover.kill()
            recover.wait()
        self.recover(folder)
        self.assert_exactly_once(capture, e2e.read_progress(progress))

    def test_twice(self):
        capture, progress = self.interrupted()
        folder, = self.spool_folders()
        self.recover("--keep-spool", folder)
        with open(capture, "rb") as file:
            first = file.read()
        self.recover("--keep-spool", folder)
        self.recover(capture)
        self.recover(folder)
        with open(capture, "rb") as file:
            self.assertEqual(file.read(), first)
        db, _ = self.assert_exactly_once(capture, e2e.read_progress(progress))
        self.assertEqual(self.one(db, "SELECT state FROM capture"), "recovered")
        self.recover(folder, status=1)

    def test_another_run_took_the_name(self):
        """What was interrupted is not believed complete because the other capture is."""
        capture, progress = self.interrupted()
        folder, = self.spool_folders()
        self.assertEqual(self.perfkit("run", "-q", "-f", "-o", capture, "--", "true").status, 0)
        with open(capture, "rb") as file:
            other = file.read()
        result = self.recover(folder, status=1)
        self.assertIn(b"is another run's capture by now: choose a name with -o", result.err)
        self.assertTrue(os.path.isdir(folder))
        self.recover("-o", self.path("mine.sqlite"), folder)
        db = self.open(self.path("mine.sqlite"), ("recovered",))
        self.assertGreater(self.one(db, "SELECT count(*) FROM marker"), 0)
        with open(capture, "rb") as file:
            self.assertEqual(file.read(), other)

    @staticmethod
    def program_of(process):
        with open("/proc/%d/task/%d/children" % (process.pid, process.pid)) as file:
            return int(file.read().split()[0])

    def begin_running(self, *records):
        """perfkit is dead, the program goes on."""
        progress, command = self.records(*records)
        process = self.start(*command)
        e2e.wait_until(lambda: any(n > 500 for n in e2e.read_progress(progress)[1]))
        target = self.program_of(process)
        process.kill()
        process.wait()
        folder, = self.spool_folders()
        return process.capture, progress, folder, target

    def test_while_the_program_runs(self):
        """A plain recover declines and loses nothing; --follow records to the end."""
        capture, progress, folder, target = self.begin_running(20000, 3000)
        with subprocess.Popen([e2e.PERFKIT, "recover", folder], env=e2e.clean_environment(), cwd=self.folder,
                              stderr=subprocess.PIPE) as recover:
            # However slow it is, the program is not at its end before recover is.
            e2e.wait_until(lambda: recover.poll() is not None or
                           any(n > 10000 for n in e2e.read_progress(progress)[1]))
            os.kill(target, signal.SIGSTOP)
            declined = recover.communicate(timeout=e2e.TIMEOUT)[1]
            os.kill(target, signal.SIGCONT)
        self.assertEqual(recover.returncode, 1)
        self.assertIn(b"still run", declined)
        self.assertEqual(declined.count(b"\n"), 1)
        time.sleep(0.1)
        self.recover("--follow", folder)
        self.assertEqual(set(self.reap().values()), {self.status})
        self.assert_exactly_once(capture, e2e.read_progress(progress))

    def test_forced_while_the_program_runs(self):
        """--force finishes now. What was published before is there; the program goes on."""
        capture, progress, folder, target = self.begin_running(0, 3000, "--end", "wait")
        before = e2e.read_progress(progress)[1]
        self.recover("--force", folder)
        after = e2e.read_progress(progress)[1]
        os.kill(target, signal.SIGKILL)
        self.assertEqual(self.reap(), {target: -signal.SIGKILL})
        db = self.open(capture, ("recovered",))
        recorded = self.recorded(db)
        for slot, n in enumerate(before):
            rows, distinct, lowest, highest = recorded.get(slot, (0, 0, 0, -1))
            self.assertEqual((distinct, lowest, highest), (rows, 0, rows - 1))
            self.assertGreaterEqual(rows, n)
            self.assertLessEqual(rows, after[slot] + 1)
        self.assertEqual(self.one(db, "SELECT end_reason FROM process"), "running")

    def test_the_program_is_killed_as_well(self):
        progress, command = self.records(0, 300, "--end", "wait")
        process = self.start(*command)
        e2e.wait_until(lambda: any(n > 2000 for n in e2e.read_progress(progress)[1]))
        target = self.program_of(process)
        process.kill()
        os.kill(target, signal.SIGKILL)
        process.wait()
        self.assertEqual(self.reap(), {target: -signal.SIGKILL})
        folder, = self.spool_folders()
        self.recover(folder)
        db = self.open(process.capture, ("recovered",))
        self.assert_conserved(db, torn=3)
        self.assert_all_recorded(db, e2e.read_progress(progress))
        self.assertIn(self.one(db, "SELECT end_reason FROM process"), ("signal", "unseen"))

    def test_children_of_the_program(self):
        """The spools of several processes are recovered together."""
        capture, progress = self.interrupted("--child", "fork", "--child-end", "_exit")
        folder, = self.spool_folders()
        self.recover(folder)
        db, _ = self.assert_exactly_once(capture, e2e.read_progress(progress))
        self.assertEqual(self.recorded(db)[40], (1000, 1000, 0, 999))
        self.assertEqual(self.one(db, "SELECT count(*) FROM process"), 2)


if __name__ == "__main__":
    e2e.main()
