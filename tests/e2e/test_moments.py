"""Readers that come in at any moment of a recorder's work: perfkit is stopped before one of its calls that change a file or a
lock (targets/stop_at.c), and each command must give the state of that moment: no error, no empty answer, no capture that lacks
its row. PERFKIT_LONG=1 tries many more moments."""
import json
import os
import shutil
import signal
import sqlite3
import subprocess

import e2e

STOP_AT = os.path.join(e2e.BUILD, "targets", "e2e", "libstop_at.so")
MOMENTS = 100 if e2e.LONG else 8  # of the begin of the file, and as many of the rest
HOLD_S = 1  # for readers that wait for a lock of the stopped recorder, as they do for 5 s


class Moments(e2e.Case):
    def begin(self, number, *options, capture=None):
        """A recorder that stops before that call (0: before none)."""
        capture = capture or self.new_capture()
        log = capture + ".calls"
        open(log, "w").close()
        recorder = subprocess.Popen(
            [e2e.PERFKIT, "run", "-q", *options, "-o", capture, "--", e2e.target("records"), "--nvtx", "1", "--count", "50"], cwd=self.folder,
            env=e2e.clean_environment(LD_PRELOAD=STOP_AT, STOP_AT=str(number), STOP_LOG=log),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        recorder.capture = capture
        self.addCleanup(self.end_recorder, recorder)
        return recorder, log

    @staticmethod
    def end_recorder(recorder):
        if recorder.returncode is None:
            recorder.kill()
            recorder.wait()
        recorder.stderr.close()

    def look(self, number):
        recorder, log = self.begin(number)
        if os.waitid(os.P_PID, recorder.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT).si_code != os.CLD_STOPPED:
            return self.ended(recorder, "ended before call %d" % number)
        with open(log) as file:
            moment = file.read().splitlines()[-1]
        capture = recorder.capture
        there = os.path.exists(capture)
        start = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": self.folder,
                 "env": e2e.clean_environment()}
        readers = {words[0]: subprocess.Popen([e2e.PERFKIT, *words, capture], **start) for words in
                   (("report", "--json"), ("ctl", "status"), ("top", "--json", "--refresh", "100ms"), ("recover",))}
        if there:
            forced = self.perfkit("run", "-q", "--force", "-o", capture, "--", "true")
            self.assertEqual((forced.status, b"is being recorded" in forced.err), (125, True), (moment, forced.err))
        try:
            readers["report"].wait(HOLD_S)
        except subprocess.TimeoutExpired:
            pass
        os.kill(recorder.pid, signal.SIGCONT)
        said = {name: (reader.communicate(timeout=e2e.TIMEOUT), reader.returncode) for name, reader in readers.items()}
        self.ended(recorder, moment)
        if not there:
            return None
        (out, err), status = said["report"]
        self.assertEqual((status, err), (0, b""), moment)
        self.assertIn(json.loads(out)["capture"]["state"], ("recording", "closing", "complete"), moment)
        (out, err), status = said["top"]
        self.assertEqual((status, err), (0, b""), moment)
        self.assertEqual(json.loads(out.splitlines()[-1])["state"], "finished", moment)
        for name, right in (("ctl", (b": recording", b"is finished", b"just ended")),
                            ("recover", (b"in use by perfkit", b"nothing to do", b"a finished capture leaves none"))):
            (out, err), _ = said[name]
            self.assertTrue(any(words in out + err for words in right), (moment, name, said[name]))

    def ended(self, recorder, moment):
        _, err = recorder.communicate(timeout=e2e.TIMEOUT)
        self.assertEqual((recorder.returncode, err), (0, b""), moment)
        # On a busy machine a reader may hold the file for longer than the recorder waits for it: the next one joins its -wal.
        self.assertEqual(self.perfkit("report", "--json", recorder.capture).status, 0, moment)
        db = self.open(recorder.capture)
        self.assertEqual(self.one(db, "SELECT count(*) FROM marker"), 50, moment)
        db.close()
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith(".")], [], moment)

    def calls(self, *options):
        recorder, log = self.begin(0, *options)
        self.ended(recorder, "no stop")
        with open(log) as file:
            return recorder, file.read().splitlines()

    def test_killed_before_it_appears(self):
        """Nothing is left in the folder: such a file would have no reader, and nobody would remove it."""
        recorder, calls = self.calls()
        first = next(i + 1 for i, line in enumerate(calls) if line.endswith(os.path.basename(recorder.capture)))
        before = set(os.listdir(self.folder))
        for number in range(first - 2, first + 1):
            recorder, log = self.begin(number)
            self.assertEqual(os.waitid(os.P_PID, recorder.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT).si_code, os.CLD_STOPPED)
            recorder.kill()
            recorder.wait()
            with open(log) as file:
                folder = os.path.dirname(file.readline().split()[2])  # the spool folder
            if os.path.exists(os.path.join(folder, "capture")):  # it names the file that is not there
                done = self.perfkit("recover", recorder.capture)
                self.assertEqual((done.status, b"killed before it started the program" in done.err), (0, True), (number, done.err))
                self.assertIn(b"run it again", done.err)
            else:
                self.assertIn(b"perfkit ended before the program was started", self.perfkit("recover", folder).err)
                shutil.rmtree(folder, ignore_errors=True)  # recover removes one that is a second old
            self.assertFalse(os.path.exists(folder))
            self.assertEqual(set(os.listdir(self.folder)) - before, {os.path.basename(log)}, number)
            before.add(os.path.basename(log))

    def test_a_reader_while_the_log_is_left(self):
        """SQLite deletes the -wal before the header says so: a reader makes an empty one, which it may not delete."""
        for _ in range(20):  # on a busy machine a run has some calls more or less
            _, calls = self.calls()
            deleted = max(i + 1 for i, line in enumerate(calls) if line.endswith("-wal") and " unlink " in line)
            recorder, log = self.begin(deleted + 3)  # its exclusive lock has become a shared one by two calls
            stopped = os.waitid(os.P_PID, recorder.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT).si_code == os.CLD_STOPPED
            with open(log) as file:
                last = file.read().splitlines()[-4:]
            if stopped and last[0].endswith("-wal") and " unlink " in last[0]:
                break
            os.kill(recorder.pid, signal.SIGCONT)
            self.ended(recorder, "another call")
        else:
            self.skipTest("the calls of the recorder differ from run to run here")
        reader = sqlite3.connect("file:%s?mode=ro" % recorder.capture, uri=True)
        self.assertEqual(self.one(reader, "SELECT count(*) FROM marker"), 50)
        reader.close()
        self.assertEqual(os.path.getsize(recorder.capture + "-wal"), 0)
        os.kill(recorder.pid, signal.SIGCONT)
        _, err = recorder.communicate(timeout=e2e.TIMEOUT)
        self.assertEqual((recorder.returncode, err), (0, b""))
        self.open(recorder.capture).close()
        for name in ("-wal", "-shm"):  # of a perfkit that did not remove them
            open(recorder.capture + name, "w").close()
        self.perfkit("report", "--json", recorder.capture)
        self.open(recorder.capture).close()

    def test_force_costs_nothing(self):
        """Rows of a killed recorder's -wal are there again when the command that was to overwrite them does not start."""
        recorder, calls = self.calls()
        commits = [i + 1 for i, line in enumerate(calls) if line.endswith("-wal") and " pwrite64 " in line]
        recorder, log = self.begin(commits[-1])
        os.waitid(os.P_PID, recorder.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        recorder.kill()
        recorder.wait()
        wal = recorder.capture + "-wal"
        with open(wal, "rb") as file:
            rows = file.read()
        self.assertTrue(rows)
        forced = self.perfkit("run", "--force", "-o", recorder.capture, "--", "./no-such-program")
        self.assertEqual(forced.status, 127)
        with open(wal, "rb") as file:
            self.assertEqual(file.read(), rows)
        self.assertEqual(self.perfkit("recover", recorder.capture).status, 0)
        db = self.open(recorder.capture, states=("complete", "recovered"))
        self.assertEqual(self.one(db, "SELECT count(*) FROM marker"), 50)
        db.close()
        self.assertEqual([name for name in os.listdir(self.folder) if ".old-" in name], [])

    def stopped(self, recorder):
        return os.waitid(os.P_PID, recorder.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT).si_code == os.CLD_STOPPED

    def test_force_at_its_end(self):
        """The capture is complete by its own words, and its spool in no usual place: its recorder still writes into it."""
        spools = ("--spool-dir", os.path.join(self.folder, "spools"))
        os.mkdir(spools[1])
        finished, calls = self.calls(*spools)
        last = [i + 1 for i, line in enumerate(calls) if line.endswith((".sqlite", "-wal"))]
        for number in (last[-1], last[-3], last[-8], last[-12]):
            recorder, _ = self.begin(number, *spools)
            if not self.stopped(recorder):  # it has some calls more or less each time
                self.ended(recorder, "ended before call %d" % number)
                continue
            forced = self.perfkit("run", "-q", "--force", "-o", recorder.capture, "--", "true")
            self.assertEqual((forced.status, b"is being recorded" in forced.err), (125, True), (number, forced.err))
            merged = self.perfkit("merge", "--force", "-o", recorder.capture, finished.capture)
            self.assertEqual((merged.status, b"is being written" in merged.err), (1, True), (number, merged.err))
            os.kill(recorder.pid, signal.SIGCONT)
            self.ended(recorder, number)

    def begin_forcing(self, later=0):
        """A recorder that has set a finished capture aside, and stops before it gives its own that name, or `later` calls after."""
        finished, _ = self.calls()
        self.assertEqual(os.stat(finished.capture).st_mode & 0o600, 0o600)
        number = 0
        for _ in range(20):  # on a busy machine a run has some calls more or less
            inode = os.stat(finished.capture).st_ino
            recorder, log = self.begin(number, "--force", capture=finished.capture)
            stopped = self.stopped(recorder)
            with open(log) as file:
                calls = file.read().splitlines()
            if stopped and " linkat " in calls[-1] and later:
                number, later = number + later, 0
                recorder.kill()  # before its own appeared: the next one finds the older capture back
                recorder.wait()
                self.assertEqual(self.perfkit("run", "-q", "-o", recorder.capture, "--", "true").status, 125)
                self.assertEqual(os.stat(recorder.capture).st_ino, inode)
                continue
            if stopped and any(" linkat " in call for call in calls):
                break
            if stopped:
                os.kill(recorder.pid, signal.SIGCONT)
            _, err = recorder.communicate(timeout=e2e.TIMEOUT)
            self.assertEqual((recorder.returncode, err), (0, b""))
            with open(log) as file:
                number = next((i + 1 for i, line in enumerate(file.read().splitlines()) if " linkat " in line), None)
            if not number:
                self.skipTest("the file system has no files without a name")
        self.assertEqual(os.path.exists(recorder.capture), " linkat " not in calls[-1])
        return recorder, log, inode

    def left_aside(self):
        return [name for name in os.listdir(self.folder) if ".old-" in name]

    def test_killed_after_it_appeared(self):
        """The program has not started: recover puts the finished capture back, which holds more than the new one."""
        recorder, log, inode = self.begin_forcing(later=2)
        recorder.kill()
        recorder.wait()
        self.assertNotEqual(os.stat(recorder.capture).st_ino, inode)
        self.assertEqual([os.stat(os.path.join(self.folder, name)).st_ino for name in self.left_aside()], [inode])
        done = self.perfkit("recover", recorder.capture)
        self.assertEqual((done.status, b"but the older capture, which is there again" in done.err), (0, True), done.err)
        self.assertEqual(os.stat(recorder.capture).st_ino, inode)
        self.open(recorder.capture).close()
        self.assertEqual(self.left_aside(), [])

    def test_forced_again_after_a_kill(self):
        """What a killed run set aside goes when the next one that forces this name has started, not when it cannot."""
        recorder, log, inode = self.begin_forcing(later=2)
        recorder.kill()
        recorder.wait()
        forced = self.perfkit("run", "-q", "--force", "-o", recorder.capture, "--", "./no-such-program")
        self.assertEqual((forced.status, len(self.left_aside())), (127, 1))
        forced = self.perfkit("run", "-q", "--force", "-o", recorder.capture, "--", "true")
        self.assertEqual((forced.status, self.left_aside()), (0, []), forced.err)
        self.open(recorder.capture).close()

    def test_killed_while_it_forces(self):
        """recover gives the file that was set aside its name back."""
        recorder, log, inode = self.begin_forcing()
        recorder.kill()
        recorder.wait()
        done = self.perfkit("recover", recorder.capture)
        self.assertEqual((done.status, b"but the older capture, which is there again" in done.err), (0, True), done.err)
        self.assertEqual(os.stat(recorder.capture).st_ino, inode)
        self.open(recorder.capture).close()
        self.assertEqual(set(os.listdir(self.folder)) - {"spools"}, {os.path.basename(name) for name in (recorder.capture, log)})

    def test_two_that_force(self):
        """One has set the old file aside when another one takes the name: that one's capture stays, and the first says so."""
        recorder, _, _ = self.begin_forcing()
        other = subprocess.Popen([e2e.PERFKIT, "run", "-q", "--force", "-o", recorder.capture, "--", "cat"], env=e2e.clean_environment(),
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder)
        other.stdin.write(b"x")
        other.stdin.flush()
        self.assertEqual(other.stdout.read(1), b"x")  # it runs, so its capture is there
        for kind in ("nsys", "parquet"):  # which holds what there was until now, and says so
            done = self.perfkit("export", "--format", kind, "-o", os.path.join(self.folder, kind), recorder.capture)
            self.assertEqual((done.status, b"still being recorded" in done.err), (0, True), done.err)
        os.kill(recorder.pid, signal.SIGCONT)
        _, err = recorder.communicate(timeout=e2e.TIMEOUT)
        self.assertEqual((recorder.returncode, b"is being recorded: let it finish" in err), (125, True), err)
        _, err = other.communicate(timeout=e2e.TIMEOUT)
        self.assertEqual((other.returncode, err), (0, b""))
        db = self.open(recorder.capture)
        self.assertEqual(self.one(db, "SELECT command FROM capture"), "cat")
        db.close()
        self.assertEqual([name for name in os.listdir(self.folder) if ".old-" in name], [])

    def test_every_command(self):
        recorder, calls = self.calls()
        named = [i + 1 for i, line in enumerate(calls) if line.endswith(os.path.basename(recorder.capture))]
        rest = len(calls) - named[0]
        for number in named[:MOMENTS] + [named[0] + rest * i // MOMENTS for i in range(1, MOMENTS + 1)]:
            with self.subTest(call=number):
                self.look(number)


if __name__ == "__main__":
    e2e.main()
