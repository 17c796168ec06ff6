"""Limits: no room, few descriptors, little address space, thousands of threads and children, a reader
that stalls or stays. The program is never harmed (no SIGBUS, no SIGXFSZ), what is dropped is
counted, and one readable file remains."""
import errno
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import time

import e2e

OPENCL = 1 if e2e.has_opencl() else 0
MARKS = "SELECT count(*), count(DISTINCT payload) FROM marker JOIN string ON string.id = name " \
        "WHERE string.value = 'record'"


class Room(e2e.Case):
    """No room for the records: dropped and counted."""

    def records(self, count, pause, opencl=OPENCL, status=17):
        self.progress = e2e.make_progress(self.path("progress"))
        return [e2e.target("records"), "--nvtx", "4", "--opencl", str(opencl), "--count", str(count),
                "--pause", str(pause), "--status", str(status), "--progress", self.progress]

    def limited(self, limits, command):
        """The command with limits of its own, which perfkit has not."""
        return ["sh", "-c", limits + '; exec "$@"', "sh", *command]

    def assert_accounted(self, db, opencl=OPENCL):
        """done = rows + dropped, for marks and for fills, and no row twice."""
        done = e2e.read_progress(self.progress)[1]
        marks, distinct = db.execute(MARKS).fetchone()
        self.assertEqual(marks, distinct)
        dropped = dict(db.execute("SELECT subject, sum(value) FROM capture_health WHERE item = "
                                  "'dropped' GROUP BY 1"))
        self.assertEqual(marks + dropped.get("range", 0), sum(done[:4]))
        fills, distinct = db.execute("SELECT count(*), count(DISTINCT value) FROM memset").fetchone()
        self.assertEqual(fills, distinct)
        self.assertEqual(fills + dropped.get("memset", 0), sum(done[4:]))
        self.assert_conserved(db, dropped=True)
        return marks, dropped.get("range", 0)

    def test_small_spool_folder(self):
        folder = self.mount("4m")
        result = self.record(*self.records(100000, 0), status=17,
                             options=["--spool-dir=" + folder])
        self.assertEqual(os.listdir(folder), [])
        db = self.open(result.capture)
        rows, dropped = self.assert_accounted(db)
        self.assertGreater(rows, 0)
        self.assertGreater(dropped, 0, "the folder was large enough: the test shows nothing")
        e2e.say("4 MB of spool: %d marks recorded, %d dropped and counted" % (rows, dropped))

    def test_no_room_from_the_start(self):
        """Not a page for the spool: the program runs, and the capture does not look whole."""
        folder = self.mount("1m")
        with open(os.path.join(folder, "filler"), "wb") as file:
            file.write(bytes(300 << 10))
        result = self.record(*self.records(1000, 0, opencl=0), status=17,
                             options=["--spool-dir=" + folder])
        db = self.open(result.capture)
        rows, dropped = db.execute(MARKS).fetchone()[0], self.health(db, "range", "dropped")
        done = sum(e2e.read_progress(self.progress)[1])
        self.assertTrue(rows + dropped == done or self.one(
            db, "SELECT count(*) FROM capture_health WHERE note NOT NULL AND subject <> 'end'"),
            "nothing says why there are no records: " +
            repr(db.execute("SELECT * FROM capture_health").fetchall()))

    def test_no_spool(self):
        """Not even its first page: the program runs, the capture says that it lacks what it did."""
        result = self.record(*self.limited("ulimit -f 0", self.records(1000, 0, opencl=0)), status=17)
        db = self.open(result.capture)
        self.assertEqual(db.execute(MARKS).fetchone()[0], 0)
        note = self.one(db, "SELECT note FROM capture_health WHERE item = 'spool refused'")
        self.assertIn(os.strerror(errno.EFBIG), note or "nothing says why there are no records")
        report = json.loads(self.perfkit("report", "--json", result.capture).out)
        self.assertFalse(report["trust"]["complete"])

    def test_spool_limit(self):
        result = self.record(*self.records(100000, 0), status=17, options=["--spool-limit=1M"])
        rows, dropped = self.assert_accounted(self.open(result.capture))
        e2e.say("--spool-limit=1M: %d marks recorded, %d dropped and counted" % (rows, dropped))

    def test_file_size_limit_of_the_program(self):
        for blocks in (4096, 1024):
            with self.subTest(kilobytes=blocks // 2):
                result = self.record(
                    *self.limited("ulimit -f %d" % blocks, self.records(100000, 0)), status=17)
                rows, dropped = self.assert_accounted(self.open(result.capture))
                e2e.say("RLIMIT_FSIZE %d KB: %d marks recorded, %d dropped and counted" %
                        (blocks // 2, rows, dropped))
                if dropped:
                    report = self.perfkit("report", result.capture).out
                    self.assertIn(b"(ulimit -f)", report)
                self.assertGreater(rows, 0)

    def test_file_size_limit_of_both(self):
        """perfkit meets the limit as well: a program's status is not its to change."""
        result = self.record(*self.records(100000, 100), status=17, quiet=False, preexec_fn=lambda:
                             resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, 2 << 20)))
        self.assertEqual(sum(e2e.read_progress(self.progress)[1][:4]), 400000)
        self.assertTrue(result.err, "the capture cannot be whole, and nothing says so")
        folders = self.spool_folders()
        self.assertEqual(len(folders), 1, result.err)
        self.assertEqual(self.perfkit("recover", "-q", folders[0]).status, 0)
        self.assert_accounted(self.open(result.capture, ("recovered",)))

    def test_address_space_limit(self):
        result = self.record(*self.limited("ulimit -v 400000", self.records(5000, 300, opencl=0)),
                             status=17)
        rows, dropped = self.assert_accounted(self.open(result.capture), opencl=0)
        self.assertEqual(dropped, 0)

    def address_space(self, process):
        """Bytes of the youngest child, once it has recorded."""
        e2e.wait_until(lambda: all(e2e.read_progress(self.progress)[1][:4]))
        time.sleep(0.3)
        pid = process.pid
        while True:
            with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
                children = file.read().split()
            if not children:
                break
            pid = int(children[-1])
        with open("/proc/%d/statm" % pid) as file:
            return int(file.read().split()[0]) * resource.getpagesize()

    def test_address_space_taken(self):
        """Of a program with little, the collector takes little: it needs it for itself. (The C
        library reserves 64 MiB when a thread first allocates, as ours does by starting its own.)"""
        limited = self.limited("ulimit -v 400000", self.records(0, 300, opencl=0) + ["--end", "wait"])
        plain = subprocess.Popen(limited, stdout=subprocess.DEVNULL, env=e2e.clean_environment())
        alone = self.address_space(plain)
        plain.terminate()
        plain.wait()
        self.progress = e2e.make_progress(self.progress)
        process = self.start(*limited)
        taken = self.address_space(process) - alone
        process.terminate()
        self.assertEqual(process.wait(e2e.TIMEOUT), -signal.SIGTERM)
        self.assertLess(taken - (64 << 20), 400000 * 1024 // 8)
        e2e.say("under ulimit -v 400000: %.1f MB taken" % (taken / 1e6))
        self.assert_conserved(self.open(process.capture), torn=4)

    def test_address_space_limit_of_both(self):
        """Little room for perfkit too: the table of processes must not take it all."""
        result = self.record(*self.records(5000, 300, opencl=0), status=17, preexec_fn=lambda:
                             resource.setrlimit(resource.RLIMIT_AS, (480 << 20, 480 << 20)))
        db = self.open(result.capture)
        self.assert_accounted(db, opencl=0)
        self.assertEqual(self.one(db, "SELECT end_reason FROM process"), "exit")

    def test_descriptor_limit(self):
        """Of the program; and of perfkit as well, with children to watch."""
        result = self.record(*self.limited("ulimit -n 16", self.records(5000, 300, opencl=0)),
                             status=17)
        rows, dropped = self.assert_accounted(self.open(result.capture), opencl=0)
        self.assertEqual((rows, dropped), (20000, 0))
        result = self.record(
            "sh", "-c", 'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 1 & '
            'done; "$@"; status=$?; wait; exit $status', "sh", *self.records(5000, 300, opencl=0),
            status=17, quiet=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16)))
        db = self.open(result.capture)
        self.assertEqual(self.one(db, "SELECT count(*) FROM process WHERE command = 'sleep 1'"), 20)
        rows, dropped = self.assert_accounted(db, opencl=0)
        self.assertEqual((rows, dropped), (20000, 0))

    def test_full_temporary_folder(self):
        """SQLite sorts in files of its own: beside the capture, not in TMPDIR."""
        folder = self.mount("64k")
        with open(os.path.join(folder, "filler"), "wb") as file:
            file.write(bytes(64 << 10))
        result = self.record(*self.records(100000, 0, opencl=0), status=17,
                             env=e2e.clean_environment(TMPDIR=folder))
        rows, dropped = self.assert_accounted(self.open(result.capture), opencl=0)
        self.assertEqual(rows + dropped, 400000)

    def test_full_disk(self):
        """The capture's disk fills while the program runs. Nothing is lost: recover goes on."""
        folder = self.mount("2m")
        capture = os.path.join(folder, "a.sqlite")
        options = ["-o", capture]
        result = self.record(*self.records(50000, 300), status=17, options=options, quiet=False)
        self.assertIn(b"perfkit recover", result.err)
        spool, = self.spool_folders()
        full = self.perfkit("recover", "-q", spool)
        self.assertEqual(full.status, 1)
        self.assertTrue(full.err)
        self.assertTrue(os.path.isdir(spool))
        subprocess.run(["mount", "-o", "remount,size=256m", folder], check=True)
        self.assertEqual(self.perfkit("recover", "-q", spool).status, 0)
        db = self.open(capture, ("recovered",))
        rows, dropped = self.assert_accounted(db)
        self.assertEqual((rows, dropped), (200000, 0))


class Many(e2e.Case):
    def test_short_threads(self):
        count = 100000 if e2e.LONG else 10000
        bare = time.monotonic()
        self.plain([e2e.target("threads"), count])
        bare = time.monotonic() - bare
        start = time.monotonic()
        result = self.record(e2e.target("threads"), count)
        took = time.monotonic() - start
        self.assertEqual(result.out, b"done\n")
        db = self.open(result.capture)
        self.assert_conserved(db)
        self.assertEqual(db.execute("SELECT count(*), count(DISTINCT payload), min(payload), "
                                    "max(payload) FROM marker").fetchone(),
                         (3 * count, 3 * count, 0, 3 * count - 1))
        # A thread's three marks are one thread's.
        self.assertEqual(self.one(db, "SELECT count(*) FROM (SELECT payload / 3 FROM marker GROUP BY "
                                      "1 HAVING count(DISTINCT thread) > 1)"), 0)
        e2e.say("%d threads: %.1f s, bare %.1f s" % (count, took, bare))

    @e2e.unittest.skipUnless(shutil.which("make"), "no make")
    def test_make(self):
        count = 10000 if e2e.LONG else 1000
        with open(self.path("Makefile"), "w") as file:
            names = " ".join("t%d" % i for i in range(count))
            file.write("all: %s\n.PHONY: all %s\n%s:\n\t@/bin/true $@\n" % (names, names, names))
        times = {True: [], False: []}
        for _ in range(3):
            for under in (False, True):
                start = time.monotonic()
                if under:
                    result = self.record("make", "-s", "-j4", options=["-f"])
                else:
                    self.assertEqual(self.plain(["make", "-s", "-j4"]).status, 0)
                times[under].append(time.monotonic() - start)
        db = self.open(result.capture)
        self.assertEqual(db.execute(
            "SELECT count(*), count(DISTINCT command) FROM process WHERE command LIKE '/bin/true %' AND "
            "birth = 'start' AND end_reason = 'exit' AND exit_status = 0").fetchone(), (count, count))
        self.assertEqual(self.one(db, "SELECT count(*) FROM process WHERE spool NOT NULL"), 0)
        self.assertEqual(self.health(db, "process", "dropped"), 0)
        bare, under = min(times[False]), min(times[True])
        e2e.say("make with %d children: bare %.3f s, recorded %.3f s: %.3f ms a child" %
                (count, bare, under, (under - bare) * 1000 / count))


class Readers(e2e.Case):
    def records(self, count=6000, pause=3000):
        self.progress = e2e.make_progress(self.path("progress"))
        return [e2e.target("records"), "--nvtx", "2", "--count", str(count), "--pause", str(pause),
                "--progress", self.progress]

    def test_perfkit_stands_still(self):
        """Stopped while records flow, as a machine in trouble would: the spool takes them."""
        count, during = 300000 if e2e.LONG else 60000, 0
        for _ in range(4):  # on a slow machine the program may be over before perfkit is stopped
            process = self.start(*self.records(count, 1500))
            e2e.wait_until(lambda: any(e2e.read_progress(self.progress)[1]))
            process.send_signal(signal.SIGSTOP)
            before = sum(e2e.read_progress(self.progress)[1])
            e2e.wait_until(lambda: sum(e2e.read_progress(self.progress)[1]) >= min(2 * count, before + count))
            during = sum(e2e.read_progress(self.progress)[1]) - before
            process.send_signal(signal.SIGCONT)
            self.assertEqual(process.wait(e2e.TIMEOUT), 0)
            if during > 0:
                break
            os.remove(process.capture)
            count *= 4
        self.assertGreater(during, 0, "the program stood still too")
        db = self.open(process.capture)
        self.assert_conserved(db)
        self.assert_all_recorded(db, e2e.read_progress(self.progress))
        e2e.say("perfkit stopped: %d records meanwhile, none lost" % during)

    def test_perfkit_stands_still_without_room(self):
        """The same with little room: dropped and counted, the program goes on."""
        process = self.start(*self.records(50000, 100), options=["--spool-limit=1M"])
        e2e.wait_until(lambda: any(e2e.read_progress(self.progress)[1]))
        process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(e2e.TIMEOUT), 0)
        db = self.open(process.capture)
        self.assert_conserved(db, dropped=True)
        rows, distinct = db.execute(MARKS).fetchone()
        self.assertEqual(rows, distinct)
        self.assertEqual(rows + self.health(db, "range", "dropped"), 100000)
        self.assertEqual(sum(e2e.read_progress(self.progress)[1]), 100000)

    def attach(self, capture):
        """An idle reader: it has looked, and keeps the file open without a transaction."""
        e2e.wait_until(lambda: os.path.exists(capture + "-wal"))
        reader = sqlite3.connect("file:%s?mode=ro" % capture, uri=True)
        e2e.wait_until(lambda: self.can_read(reader))
        return reader

    @staticmethod
    def can_read(reader):
        try:
            return reader.execute("SELECT count(*) FROM capture").fetchone()[0] == 1
        except sqlite3.OperationalError:
            return False

    def test_reader_that_lets_go(self):
        """One that watches capture.state, as readers are asked to."""
        process = self.start(*self.records(), stderr=subprocess.PIPE)
        reader = self.attach(process.capture)
        states = []
        while not states or states[-1] == "recording":
            states.append(reader.execute("SELECT state FROM capture").fetchone()[0])
            time.sleep(0.05)
        reader.close()
        self.assertIn(states[-1], ("closing", "complete"))
        self.assertEqual(process.communicate(timeout=e2e.TIMEOUT)[1], b"")
        self.assertEqual(process.returncode, 0)
        db = self.open(process.capture)
        self.assert_all_recorded(db, e2e.read_progress(self.progress))
        self.assertEqual(self.one(db, "PRAGMA journal_mode"), "delete")

    def test_reader_that_stays(self):
        """One that does not: perfkit waits a little, says so, and the next report mends it."""
        process = self.start(*self.records(1500), stderr=subprocess.PIPE)
        reader = self.attach(process.capture)
        said = process.communicate(timeout=e2e.TIMEOUT)[1]
        self.assertEqual(process.returncode, 0)
        self.assertEqual(reader.execute("SELECT state FROM capture").fetchone()[0], "complete")
        self.assertEqual(reader.execute("SELECT count(*) FROM marker").fetchone()[0], 3000)
        reader.close()
        if os.path.exists(process.capture + "-wal"):
            self.assertIn(b"keep both", said)
        self.assertEqual(self.perfkit("report", process.capture).status, 0)
        db = self.open(process.capture)
        self.assert_all_recorded(db, e2e.read_progress(self.progress))

    def test_network_folder(self):
        """The live file stands in the spool folder, the finished one is moved to its place."""
        environment = e2e.clean_environment(PERFKIT_TEST_NETWORK_FS="1")
        process = self.start(*self.records(), env=environment)
        e2e.wait_until(lambda: any(e2e.read_progress(self.progress)[1]))
        self.assertFalse(os.path.exists(process.capture + "-wal"))
        self.assertEqual(os.path.getsize(process.capture), 0)
        live, = [os.path.join(folder, "capture.sqlite") for folder in self.spool_folders()]
        self.assertTrue(os.path.exists(live))
        self.assertEqual(process.wait(e2e.TIMEOUT), 0)
        db = self.open(process.capture)
        self.assert_conserved(db)
        self.assert_all_recorded(db, e2e.read_progress(self.progress))


if __name__ == "__main__":
    e2e.main()
