"""perfkit run --stalls without a GPU: PC samples of a scripted dump go through the collector and
perfkit run to rows with lines of the source."""
import gzip
import json
import os
import random
import shutil
import socket
import sqlite3
import struct
import unittest

import replay
import stall_marks
from dump_writer import Script, block

REASONS, CUBIN, SAMPLES = 8, 9, 10
DRIVER_DOMAIN, CTX_DESTROY, PROFILER_START, DESTROY_STARTING = 1, 322, 308, 2
PREFIX = "smsp__pcsamp_warps_issue_stalled_"
NAMES = ["wait", "wait_not_issued", "long_scoreboard", "long_scoreboard_not_issued", "selected", "barrier",
         "no_instructions", "branch_resolving", "of_the_future"]
SHARED = gzip.open(os.path.join(replay.DATA, "lines.cubin.gz")).read()


def cubin_hash(data):
    """As wire_cubin_hash."""
    value, whole = 0x9e3779b97f4a7c15 ^ len(data), len(data) // 8 * 8
    for (word,) in struct.iter_unpack("<Q", data[:whole]):
        value = (value ^ word) * 0xff51afd7ed558ccd % 2 ** 64
        value ^= value >> 32
    for byte in data[whole:]:
        value = (value ^ byte) * 0x100000001b3 % 2 ** 64
    return value or 1


def begin_context(out, context, handle=0x7000):
    names = [PREFIX + name for name in NAMES] + ["smsp__pcsamp_sample_count"]
    out.parts.append(block(REASONS, out.step(), struct.pack("<II", context, len(names)) + b"".join(
        struct.pack("<I124s", 7 + i, name.encode()) for i, name in enumerate(names))))
    out.callback(1, context=context, handle=handle)


def deliver(out, context, delivery):
    body = b""
    for cubin, function, offset, reasons in delivery:
        body += struct.pack("<QQQII", cubin_hash(cubin), offset, out.text(function), len(function), len(reasons) + 1)
        for name, samples in reasons.items():
            body += struct.pack("<II", 7 + NAMES.index(name), samples)
        body += struct.pack("<II", 7 + len(NAMES), 1)
    out.parts.append(block(SAMPLES, out.step(), struct.pack("<IIQQQQ", context, len(delivery), 500, 20, 30, 0) + body))


def script(deliveries, cubins=(SHARED,), context=1, second=False, opened=False):
    """A program on one context; a delivery is a list of (cubin, function, offset, {reason: samples})."""
    out = Script()
    begin_context(out, context)
    if opened:
        out.callback(PROFILER_START, domain=DRIVER_DOMAIN, site=0)
        out.callback(PROFILER_START, domain=DRIVER_DOMAIN, site=1)
    if second:
        out.callback(1, context=context + 1, handle=0x8000)
    for cubin in cubins:
        out.parts.append(block(CUBIN, out.step(), cubin))
    for name in ("plain", "inlined", "fenced"):
        out.launch(name)
    for delivery in deliveries:
        deliver(out, context, delivery)
    return out.finish()


PLAIN = (SHARED, "plain", 0x90, {"long_scoreboard": 100, "long_scoreboard_not_issued": 80, "selected": 4})


class Stalls(replay.Case):
    def stalls(self, dump, pm="", path=None, options=("--stalls",), end="settle", fake="", **more):
        env = dict(FAKE_PM=pm)
        if path:
            env["PATH"] = path
        return self.play(dump, fake=fake, options=list(options), env=env, end=end, **more)

    def play_file(self, dump, pm):
        path = self.path("dump")
        with open(path, "wb") as file:
            file.write(dump)
        return self.fake_run("replay", "replay=" + path, options=["--stalls"], end="settle",
                             env=dict(FAKE_PM=pm)).capture

    def stall_rows(self, db):
        return db.execute(
            "SELECT n.value, offset, line, ifnull(long_scoreboard, 0), ifnull(barrier, 0), "
            "ifnull(not_issued, 0), ifnull(other, 0) FROM stall JOIN stall_function f ON f.id = function "
            "JOIN string n ON n.id = f.name ORDER BY 1, 2").fetchall()

    def test_samples_get_lines(self):
        """Sums over deliveries; a function that was inlined has the line of its call, a barrier its own
        line and not that of the instruction behind it, where its warps are sampled."""
        dump = script([[PLAIN, (SHARED, "inlined", 0x60, {"wait": 7, "of_the_future": 2})],
                       [PLAIN, (SHARED, "fenced", 0x100, {"barrier": 50})]])
        for end in ("settle", "return", "_exit"):
            with self.subTest(end=end):
                db = self.stalls(dump, end=end)
                if end == "_exit" and self.one(
                        db, "SELECT count(*) FROM capture_health WHERE item = 'preload'"):
                    self.skipTest("a sanitized program takes no preload, so its _exit is not seen")
                self.assertEqual(self.stall_rows(db), [
                    ("fenced", 0x100, 25, 0, 50, 0, 0),
                    ("inlined", 0x60, 17, 0, 0, 0, 2),
                    ("plain", 0x90, 11, 200, 0, 160, 0)])
                self.assertEqual(db.execute("SELECT DISTINCT value FROM stall JOIN string s ON s.id = file")
                                 .fetchall(), [("/tmp/src/lines.cu",)])
                self.assertEqual(db.execute("SELECT period, samples, dropped, of_system, full, left_out, native "
                                            "FROM stall_context s JOIN context c ON c.id = s.context").fetchall(),
                                 [(1048576, 1000, 40, 60, 0, 0, 1)])
                self.assertEqual(self.one(db, "SELECT count(*) FROM kernel"), 3)
                self.assert_conserved(db)

    def test_many_instructions(self):
        """More than one fetch brings."""
        dump = script([[(SHARED, "plain", 16 * i, {"wait": i + 1}) for i in range(1000)]])
        db = self.stalls(dump, options=("--stalls=1024",))
        self.assertEqual(db.execute("SELECT count(*), sum(wait) FROM stall").fetchone(), (1000, 500500))
        self.assertEqual(self.one(db, "SELECT period FROM stall_context"), 1024)

    def test_without_lines(self):
        """A cubin that nobody kept, and one without lines."""
        bare = SHARED.replace(b".debug_line", b".other_line")
        gone = SHARED + b"gone"
        db = self.stalls(script([[(bare, "plain", 0x90, {"wait": 1}), (gone, "plain", 0x90, {"wait": 2})]],
                                cubins=[bare]))
        self.assertEqual([row[2] for row in self.stall_rows(db)], [None, None])
        self.assertEqual(db.execute("SELECT lines FROM stall_function ORDER BY id").fetchall(), [
            ("it was compiled without lines: compile it with -lineinfo",),
            ("its machine code was not kept",)])

    def test_damaged_cubins(self):
        numbers = random.Random(7)
        cubins = []
        for i in range(40):
            damaged = bytearray(SHARED)
            for _ in range(1 + i * 4):
                damaged[numbers.randrange(len(damaged))] = numbers.randrange(256)
            cubins.append(bytes(damaged[:numbers.randrange(len(damaged))] if i % 4 == 3 else damaged))
        db = self.stalls(script([[(cubin, name, 16 * i, {"wait": 1, "barrier": 1}) for cubin in cubins
                                  for name in ("plain", "inlined", "fenced") for i in range(4)]], cubins))
        self.assertEqual(self.one(db, "SELECT sum(wait) FROM stall"), 40 * 12)

    def test_endless_lines(self):
        """Four million bytes that are as many rows of lines: the sample is there without a line."""
        section, = struct.unpack_from("<Q", SHARED, 40)
        section += 64 * 5  # .debug_line
        start, size = struct.unpack_from("<QQ", SHARED, section + 24)
        endless = bytearray(SHARED) + SHARED[start:start + size] + bytes([200]) * 4000001
        struct.pack_into("<QQ", endless, section + 24, len(SHARED), len(endless) - len(SHARED))
        struct.pack_into("<I", endless, len(SHARED), len(endless) - len(SHARED) - 4)
        db = self.stalls(script([[(bytes(endless), "plain", 0x90, {"wait": 1})]], [bytes(endless)]))
        self.assertEqual([row[2] for row in self.stall_rows(db)], [None])
        self.assertEqual(self.one(db, "SELECT lines FROM stall_function"), "its machine code cannot be read")

    def test_text_of_instructions(self):
        """By nvdisasm: the sampled functions, or all where it does not know them by number."""
        folder = self.path("tools")
        os.mkdir(folder)
        said = "echo '.text.plain:'\necho '        /*0090*/                   FADD R1, R2, 1 ;'\n" \
               "echo '.text.fenced:'\necho ' /*0090*/ NOP ;'\n"
        for script_of in ("test $2 = -fun && test -f $4\n" + said, "test $2 = -fun && exit 1\n" + said):
            with open(os.path.join(folder, "nvdisasm"), "w") as file:
                file.write("#!/bin/sh\n" + script_of)
            os.chmod(file.name, 0o755)
            db = self.stalls(script([[PLAIN]]), path=folder + ":" + os.environ["PATH"])
            self.assertEqual(db.execute("SELECT value FROM stall JOIN string s ON s.id = sass").fetchall(),
                             [("FADD R1, R2, 1",)])

    def test_interrupted(self):
        """Ctrl-C while machine code is read: no more is, and the capture is whole."""
        folder, log = self.path("tools"), self.path("log")
        os.mkdir(folder)
        with open(os.path.join(folder, "nvdisasm"), "w") as file:
            file.write("#!/bin/sh\necho >> %s\nkill -INT $PPID\n" % log)
        os.chmod(file.name, 0o755)
        other = SHARED + b"again"
        db = self.stalls(script([[PLAIN, (other, "plain", 0x90, {"wait": 1})]], [SHARED, other]),
                         path=folder + ":" + os.environ["PATH"], quiet=False)
        self.assertEqual(self.one(db, "SELECT count(*) FROM stall"), 2)
        with open(log) as file:
            self.assertEqual(file.read(), "\n")

    def test_text_of_its_own_code(self):
        """A kernel that was compiled twice, as tuners do: the text is that of the code that ran."""
        folder = self.path("tools")
        os.mkdir(folder)
        other = SHARED + b"again"
        with open(os.path.join(folder, "nvdisasm"), "w") as file:
            file.write("#!/bin/sh\nfor file; do :; done\ntest $(wc -c < $file) = %d || exit 1\necho '.text.plain:'\n"
                       "echo '/*0090*/ NOP ;'\n" % len(other))
        os.chmod(file.name, 0o755)
        db = self.stalls(script([[PLAIN, (other, "plain", 0x90, {"wait": 1})]], [SHARED, other]),
                         path=folder + ":" + os.environ["PATH"])
        self.assertEqual(db.execute("SELECT long_scoreboard, value FROM stall LEFT JOIN string s ON s.id = sass "
                                    "ORDER BY stall.id").fetchall(), [(100, None), (None, "NOP")])

    def test_no_permission(self):
        db = self.stalls(script([[PLAIN]]), pm="pc_enable=35")
        self.assertIn("no stall reasons: this user may not read the GPU's counters",
                      self.one(db, "SELECT note FROM capture_health WHERE note LIKE 'no stall%'"))
        self.assertEqual(self.one(db, "SELECT count(*) FROM kernel"), 3)
        self.assertEqual(self.later_count(db, "stall"), 0)
        self.assert_conserved(db)

    def test_hardware_is_held(self):
        db = self.stalls(script([[PLAIN]]), pm="pc_get=999")
        self.assertEqual(self.later_count(db, "stall"), 0)
        self.assertEqual(self.one(db, "SELECT level FROM capture_health WHERE note LIKE 'no stall reasons: "
                                      "cuptiPCSamplingGetData%pause DCGM%'"), "loss")

    def test_hanging_fetch(self):
        """The program ends all the same."""
        db = self.stalls(script([[PLAIN]]), pm="pc_hang=1", end="return")
        self.assertEqual(self.later_count(db, "stall"), 0)

    def test_second_context(self):
        """Of a device: CUPTI loses all records when both are sampled."""
        db = self.stalls(script([[PLAIN]], second=True))
        self.assertEqual(len(self.stall_rows(db)), 1)
        self.assertEqual(self.one(db, "SELECT count(*) FROM capture_health WHERE note LIKE 'stall reasons are those "
                                      "of one context%'"), 1)

    def test_device_number_without_room(self):
        db = self.stalls(script([[PLAIN]]), fake="device=64")
        self.assertEqual(self.later_count(db, "stall"), 0)
        self.assertEqual(len(self.later_notes(db)), 1)
        self.assertIn("the first 64 GPUs", self.later_notes(db)[0])

    def test_another_process(self):
        """Of a run, or --counters of another one: CUPTI would lose all records of the second."""
        uuid = struct.pack("<QQ", int(os.environ["FAKE_CUDA_HOST"]), 0).hex()
        parts = (uuid[:8], uuid[8:12], uuid[12:16], uuid[16:20], uuid[20:])
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as lock:
            lock.bind("\0perfkit-counters-GPU-" + "-".join(parts))
            db = self.stalls(script([[PLAIN]]))
        self.assertEqual(self.later_count(db, "stall"), 0)
        self.assertEqual(self.one(db, "SELECT count(*) FROM kernel"), 3)
        self.assertIn("one context of each GPU", self.later_notes(db)[0])

    def ending(self, contexts):
        """One context of the GPU after the other, each ended by cuCtxDestroy: its samples come only then."""
        out = Script()
        for number in range(1, contexts + 1):
            begin_context(out, number, 0x7000 * number)
            out.parts.append(block(CUBIN, out.step(), SHARED))
            out.launch("plain")
            out.give()
            deliver(out, number, [PLAIN])
            out.callback(CTX_DESTROY, domain=DRIVER_DOMAIN, site=0)
            out.callback(DESTROY_STARTING, context=number, handle=0x7000 * number)
            out.callback(CTX_DESTROY, domain=DRIVER_DOMAIN, site=1)
        return out.finish()

    def test_context_ends(self):
        """What the hardware's buffer holds when a context is destroyed comes by the end of its sampling, and the
        context made next on this GPU is sampled."""
        db = self.stalls(self.ending(3), pm="pc_late=1")
        self.assertEqual(db.execute("SELECT native, samples FROM stall_context s JOIN context c ON c.id = s.context "
                                    "ORDER BY 1").fetchall(), [(1, 500), (2, 500), (3, 500)])
        self.assertEqual(self.one(db, "SELECT sum(long_scoreboard) FROM stall"), 300)
        self.assertEqual(self.later_notes(db), [])

    def test_context_ends_at_work(self):
        """Ending the second one's sampling would wait for its kernel: that samples are missing is said."""
        db = self.stalls(self.ending(2), pm="pc_late=1", fake="hold=1")
        self.assertEqual(self.one(db, "SELECT sum(long_scoreboard) FROM stall"), 100)
        self.assertEqual([note[:40] for note in self.later_notes(db)], ["the last tenth of a second of stall reas"])
        self.assertEqual(self.one(db, "SELECT count(*) FROM kernel"), 2)

    def test_context_ends_unwatched(self):
        """What is not known to be idle may be at work, and ending its sampling would wait for that: a context that
        ends outside of a call, or outside of a recording window."""
        for inside in (False, True):
            out = Script()
            begin_context(out, 1)
            out.callback(CTX_DESTROY, domain=DRIVER_DOMAIN, site=0)
            if inside:
                out.callback(DESTROY_STARTING, context=1, handle=0x7000)
            out.callback(CTX_DESTROY, domain=DRIVER_DOMAIN, site=1)
            if not inside:
                out.callback(DESTROY_STARTING, context=1, handle=0x7000)
            out.launch("plain")
            options = ("--stalls", "--capture-range=cudaProfilerApi")[:1 + inside]
            db = self.stalls(out.finish(), pm="pc_work=1", options=options)
            self.assertEqual(len(self.later_notes(db)), not inside)

    def test_exit_unwatched(self):
        """Nor is sampling ended at exit where kernels have no records."""
        db = self.stalls(script([[PLAIN]]), pm="pc_work=1", end="return",
                         options=("--stalls", "--capture-range=cudaProfilerApi"))
        self.assertEqual(self.later_notes(db), [])

    def test_capture_range(self):
        """Samples outside of what is to be recorded are left out."""
        for opened in (False, True):
            dump = script([[PLAIN]], opened=opened)
            db = self.stalls(dump, pm="pc_late=1", options=("--stalls", "--capture-range=cudaProfilerApi"))
            self.assertEqual(self.later_count(db, "stall"), opened)

    def later_notes(self, db):
        return [row[0] for row in db.execute("SELECT note FROM capture_health WHERE note LIKE '%stall reasons%'")]

    def test_freed_cubin(self):
        """What is loaded is copied: its memory may be gone, or hold other code, when it is sampled."""
        db = self.stalls(script([[PLAIN]]), pm="pc_freed=1")
        self.assertEqual([row[2] for row in self.stall_rows(db)], [11])

    def test_unmapped_cubin(self):
        """Nor is it read where no copy was made and its memory is no more."""
        db = self.stalls(script([[PLAIN]]), pm="pc_freed=2", options=("--stalls", "--cupti-dump", self.path("dumps")))
        self.assertEqual([row[2] for row in self.stall_rows(db)], [None])
        self.assertEqual(self.one(db, "SELECT lines FROM stall_function"), "its machine code was not kept")

    def test_dumped_cubin(self):
        self.stalls(script([[PLAIN]]), options=("--stalls", "--cupti-dump", self.path("dumps")))
        [dump] = os.listdir(self.path("dumps"))
        with open(os.path.join(self.path("dumps"), dump), "rb") as file:
            self.assertIn(SHARED, file.read())

    def test_not_configured(self):
        """A context that cannot be sampled is not left enabled."""
        db = self.stalls(script([[PLAIN]], second=True), pm="pc_configure=1")
        self.assertEqual(self.one(db, "SELECT count(*) FROM kernel"), 3)
        self.assertEqual(self.later_count(db, "stall"), 0)
        self.assertEqual(self.one(db, "SELECT count(DISTINCT note) FROM capture_health WHERE note LIKE "
                                      "'no stall reasons: cuptiPCSamplingSetConfigurationAttribute%'"), 1)

    def test_full_and_dropped(self):
        db = self.stalls(script([[PLAIN], [PLAIN]]), pm="pc_full=1,pc_dropped=5")
        self.assertEqual(db.execute("SELECT full, dropped FROM stall_context").fetchall(), [(1, 50)])
        self.assertEqual(self.stall_rows(db)[0][3], 200)

    def test_report(self):
        """By kernel and line, with the reason; --kernel shows the code around the hottest instruction."""
        result = self.play_file(script([[PLAIN, (SHARED, "plain", 0x40, {"barrier": 30}),
                                         (SHARED, "fenced", 0x100, {"barrier": 50})]]), "pc_dropped=5")
        report = json.loads(self.perfkit("report", "--format", "json", result).out)
        [plain, fenced] = report["stalls"]["rows"]
        self.assertEqual([plain[key] for key in ("name", "samples", "reason", "line", "long_scoreboard", "barrier",
                                                 "instructions", "not_issued")],
                         ["plain", 134, "long_scoreboard", 11, 100, 30, 2, 80])
        self.assertAlmostEqual(plain["reason_share"], 100 / 134)
        self.assertAlmostEqual(plain["share"] + fenced["share"], 1)
        self.assertEqual([(row["name"], row["line"], row["samples"]) for row in report["stall_lines"]["rows"]],
                         [("plain", 11, 104), ("fenced", 25, 50), ("plain", 10, 30)])
        self.assertEqual([row["code"] for row in report["trust"]["statements"] if "stall" in row["code"]],
                         ["stalls_dropped"])
        text = self.perfkit("report", "--kernel", "^fenced", result).out.decode()
        self.assertIn("lines.cu:25", text)
        self.assertIn("0x100", text)
        self.assertNotIn("lines.cu:11", text)
        self.assertIn("25 of 500 samples of instructions are missing: sample less often, as with "
                      "--stalls=4194304", " ".join(text.split()))

    def test_recorded(self):
        """Six kernels of targets/stalls.cu as an H200 sampled them: the reason and the line are right."""
        lines, _ = stall_marks.marks()
        with gzip.open(os.path.join(replay.DATA, "stalls.cuptidump.gz")) as file:
            result = self.play_file(file.read(), "")
        rows = json.loads(self.perfkit("report", "--format", "json", result).out)["stalls"]["rows"]
        found = {row["name"].split("(")[0]: row for row in rows}
        for kernel in ("chase", "uncoalesced", "bank_conflicts", "barriers", "fma_chain"):
            self.assertTrue(stall_marks.right(found[kernel], lines[kernel]), (found[kernel], lines[kernel]))
        self.assertEqual(sum(row["samples"] for row in rows), 18173)
        # and what a kernel waits for is compared by name
        changed = self.path("changed.sqlite")
        shutil.copy(result, changed)
        db = sqlite3.connect(changed)
        db.execute("UPDATE stall SET barrier = mio_throttle, mio_throttle = NULL, short_scoreboard = NULL WHERE "
                   "function IN (SELECT f.id FROM stall_function f JOIN string s ON s.id = f.name WHERE s.value "
                   "LIKE '%14bank_conflicts%')")
        db.commit()
        db.close()
        text = self.perfkit("diff", result, changed).out.decode()
        self.assertIn("finding bank_conflicts(float*, int): barrier", text)
        self.assertIn("finding bank_conflicts(float*, int): short_scoreboard", text)

    def test_merged(self):
        """Kernels of two captures are one in the merged one; their instructions keep their lines."""
        captures = [self.play_file(script([[PLAIN], [(SHARED, "fenced", 0x100, {"barrier": n})]]), "")
                    for n in (1, 20)]
        self.perfkit("merge", "-o", self.path("all.sqlite"), *captures)
        rows = json.loads(self.perfkit("report", "--format", "json", self.path("all.sqlite")).out)["stalls"]["rows"]
        self.assertEqual([(row["name"], row["samples"], row["line"], row["instructions"]) for row in rows],
                         [("plain", 208, 11, 1), ("fenced", 21, 25, 1)])

    def test_fork(self):
        """The child has nothing of the parent's samples, calls nothing of its CUPTI, and does not hold its GPU."""
        for how in (1, 2):
            db = self.stalls(script([[PLAIN]]), fake="locked=1,fork=%d" % how)
            self.assertEqual(self.stall_rows(db), [("plain", 0x90, 11, 100, 0, 80, 0)])

    def test_program_that_did_not_ask(self):
        db = self.stalls(script([[PLAIN]]), options=())
        self.assertEqual(self.later_count(db, "stall"), 0)

    def test_program_without_cuda(self):
        """The report says that nothing was sampled, and why."""
        run = self.record(os.path.join(replay.e2e.BUILD, "bin", "perfkit"), "--version", options=["--stalls"])
        said = b"no instructions were sampled (--stalls): only kernels of CUDA are sampled, and no process started CUDA"
        self.assertIn(said, b" ".join(self.perfkit("report", run.capture).out.split()))


if __name__ == "__main__":
    replay.run_side_by_side(2)
