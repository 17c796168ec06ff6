"""Hardware counters without a GPU: `perfkit run --counters` with the sampler over a fake CUPTI whose
counters count at known rates (fakes/fake_pm.c), beside a fake program that keeps its device busy. What
the capture then holds, and what is said when sampling cannot be. The program never notices."""
import json
import os
import resource
import signal
import time
import unittest

import replay

OPTIONS = ("--counters=roofline",)
COUNTERS = 19  # of the roofline set on a GH100
GEMM = "_ZN3lib4gemmIfEEvPT_"  # lib::gemm<float>, of fakes/program_exact.c
CYCLES, PEAK = 2, 100  # fakes/fake_pm.h


def child_of(pid, command):
    """The child of process `pid` that is called so; None."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % name) as file:
                text = file.read()
        except OSError:
            continue
        if "(%s)" % command[:15] in text and int(text.rsplit(")", 1)[1].split()[1]) == pid:
            return int(name)
    return None


def wait_for(what, seconds=300):
    """Until `what` returns something true; only against a hang."""
    for _ in range(seconds * 100):
        found = what()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError("it did not come")


class Counters(replay.Case):
    def sampled(self, pm="", scenario="counted", options=(), env=None, tidy=True, **more):
        result = self.fake_run(scenario, options=(*OPTIONS, *options),
                               env=dict(FAKE_PM=pm, **(env or {})), **more)
        return self.open(result.capture, tidy=tidy)

    def notes(self, db, state):
        return [row[0] for row in db.execute(
            "SELECT note FROM capture_health WHERE subject = 'collector' AND item = ? ORDER BY id",
            ("counters " + state,))]

    def count(self, db, table, condition="1"):
        return self.one(db, "SELECT count(*) FROM %s WHERE %s" % (table, condition))

    def assert_traced(self, db):
        """Whatever became of the counters."""
        self.assertEqual(self.count(db, "kernel"), 250)
        self.assertEqual(self.count(db, "process"), 1)

    def assert_not_sampled(self, db, part):
        self.assert_traced(db)
        self.assertEqual(self.count(db, "counter_sample"), 0)
        notes = self.notes(db, "degraded")
        self.assertTrue(any(part in note for note in notes), notes)

    def report(self, db, capture):
        said = json.loads(self.perfkit("report", capture, "--format=json").out)
        return said["counters"]["rows"], said["counter_values"]["rows"]

    # ---- what is there

    def test_samples_and_their_kernel(self):
        result = self.fake_run("counted", options=OPTIONS)
        db = self.open(result.capture)
        self.assert_traced(db)
        self.assertEqual(self.notes(db, "degraded"), [])
        self.assertEqual(self.count(db, "counter_device"), 1)
        self.assertEqual(db.execute("SELECT uuid, chip, metric_set, interval FROM counter_device")
                         .fetchone(), (self.one(db, "SELECT uuid FROM device"), "GH100", "roofline",
                                       20000))
        self.assertEqual(self.count(db, "counter"), COUNTERS)
        self.assertEqual(self.count(db, "counter", "clock IS NOT NULL AND peak = %d" % PEAK),
                         COUNTERS - 7)
        self.assertEqual(dict(db.execute("SELECT name, traced FROM counter WHERE traced NOT NULL")),
                         {"instructions": 8, "alu": 4})
        # Every sample kept, of its length, counts in it; the first of each burst is not kept.
        bursts, samples = db.execute("SELECT count(*), sum(samples) FROM counter_burst").fetchone()
        self.assertGreater(bursts, 0)
        self.assertEqual(self.count(db, "counter_sample"), samples)
        self.assertEqual(self.count(db, "counter_sample", "duration != 20000"), 0)
        self.assertEqual(self.count(db, "counter_sample",
                                    "c1 != 2 * duration OR c0 != %d * duration" % CYCLES), 0)
        self.assertEqual(self.count(db, "counter_sample", "c%d IS NULL" % (COUNTERS - 1)), 0)
        self.assertEqual(self.count(db, "counter_sample", "c%d IS NOT NULL" % COUNTERS), 0)
        self.assertEqual(self.count(db, "counter_burst", "overflow NOT NULL OR others NOT NULL"), 0)

        (row,), values = self.report(db, result.capture)
        self.assertEqual(row["name"], "busy()")
        self.assertEqual(row["launches"], 250)
        self.assertGreater(row["covered"], 0)
        self.assertEqual(row["ran"], "alone")
        self.assertEqual(len(values), COUNTERS)
        slots = dict(db.execute("SELECT name, slot FROM counter"))
        for value in values:
            rate = CYCLES if value["counter"].endswith("_cycles") else slots[value["counter"]] + 1
            self.assertAlmostEqual(value["rate"] / 1e9 / rate, 1, delta=0.02)
            if value["share"] is not None:
                self.assertAlmostEqual(value["share"] / (rate / (PEAK * CYCLES)), 1, delta=0.02)

    def test_what_was_done_is_said(self):
        db = self.sampled()
        (note,) = self.notes(db, "note")
        self.assertIn("%d samples in %d burst" % db.execute(
            "SELECT sum(samples), count(*) FROM counter_burst").fetchone(), note.replace(",", ""))

    def test_small_portions(self):
        # a decode may come back with little although there is more
        db = self.sampled("portion=1")
        # whole bursts are there; that of the program's end is shorter
        self.assertGreater(self.count(db, "counter_burst", "samples >= 390"), 0)
        self.assertLessEqual(self.count(db, "counter_burst", "samples < 390"), 1)

    def test_memory_only(self):
        result = self.fake_run("counted", options=["--counters=memory"])
        db = self.open(result.capture)
        self.assertEqual(sorted(row[0] for row in db.execute("SELECT name FROM counter")),
                         ["dram_cycles", "dram_read_bytes", "dram_write_bytes", "l2_bytes",
                          "nvlink_receive_bytes", "nvlink_transmit_bytes", "pcie_read_bytes",
                          "pcie_write_bytes"])
        self.assertGreater(self.count(db, "counter_sample"), 0)
        (row,), _ = self.report(db, result.capture)
        self.assertAlmostEqual(row["dram_read_bytes_per_s"] / 2e9, 1, delta=0.02)
        self.assertIsNone(row["fma_share"])

    def test_missing_metric(self):
        db = self.sampled("missing=nvl")
        self.assertEqual(self.notes(db, "degraded"), [])
        self.assertEqual(self.count(db, "counter"), COUNTERS - 2)
        self.assertEqual(self.count(db, "counter", "name LIKE 'nvlink%'"), 0)
        self.assertGreater(self.count(db, "counter_sample"), 0)

    def test_overflow_is_told(self):
        db = self.sampled("overflow=1")
        self.assertEqual(self.count(db, "counter_burst", "overflow IS NULL"), 0)
        self.assertGreater(self.count(db, "counter_burst"), 0)
        self.assertIn("overflowed", self.notes(db, "degraded")[0])

    def test_interval_and_duty(self):
        db = self.sampled(options=["--counters-interval=100us", "--counters-duty=50%"])
        self.assertEqual(self.one(db, "SELECT interval FROM counter_device"), 100000)
        self.assertGreater(self.count(db, "counter_sample"), 0)
        self.assertEqual(self.count(db, "counter_sample", "duration != 100000"), 0)

    def test_several_devices(self):
        db = self.sampled(env={"FAKE_CUDA_DEVICES": "3"})
        self.assert_traced(db)
        self.assertEqual(self.count(db, "counter_device"), 1)  # the fake samples one at a time
        self.assertEqual(len(self.notes(db, "degraded")), 2)

    def test_closed_window(self):
        db = self.sampled(options=["--dormant"])
        self.assertEqual(self.count(db, "counter_sample"), 0)
        self.assertEqual(self.notes(db, "degraded"), [])

    # ---- what stands in the way

    def test_no_permission(self):
        self.assert_not_sampled(self.sampled("available=35"), "NVreg_RestrictProfilingToAdminUsers=0")

    def test_busy(self):
        self.assert_not_sampled(self.sampled("enable=26"), "dcgmi profile --pause")

    def test_not_supported(self):
        self.assert_not_sampled(self.sampled("available=27"), "has no such counters")

    def test_mig(self):
        self.assert_not_sampled(self.sampled("enable=43"), "MIG")

    def test_unknown_chip(self):
        self.assert_not_sampled(self.sampled("chip=TU102"), "TU102")

    def test_many_passes(self):
        self.assert_not_sampled(self.sampled("passes=2"), "2 passes")

    def test_no_metric_at_all(self):
        self.assert_not_sampled(self.sampled("missing=_"), "999")

    def test_clock_refused(self):
        result = self.fake_run("nothing", "clock=1", options=OPTIONS, quiet=False)
        notes = self.notes(self.open(result.capture), "degraded")
        self.assertIn("Timestamp", notes[0])

    def test_no_driver(self):
        result = self.record("/bin/true", options=(*OPTIONS, "--no-preload"), quiet=False)
        db = self.open(result.capture)
        self.assertTrue(self.notes(db, "degraded") or self.count(db, "counter_device"))

    def test_no_gpu_visible(self):
        for env in ({"FAKE_CUDA_DEVICES": "0"}, {"FAKE_CUDA_INIT": "100"}):
            with self.subTest(env):
                self.assert_not_sampled(self.sampled(env=env), "CUDA_VISIBLE_DEVICES")

    def test_old_cupti(self):
        db = self.sampled(library=replay.OLD_FAKES)
        self.assert_not_sampled(db, "CUPTI 12.6")

    def test_failing_later(self):
        for pm in ("decode=999,after=6", "start=26,after=2"):
            with self.subTest(pm):
                db = self.sampled(pm)
                self.assert_traced(db)
                self.assertGreater(self.count(db, "counter_sample"), 0)
                self.assertIn("ended early", self.notes(db, "degraded")[0])

    def test_failing_at_times(self):
        # a burst that cannot be read is lost, no more
        db = self.sampled("decode=999,every=10")
        self.assert_traced(db)
        self.assertGreater(self.count(db, "counter_burst", "samples >= 390"), 0)
        self.assertIn("could not be read", self.notes(db, "degraded")[0])

    def test_counters_that_go_missing(self):
        # its columns would be another counter's, or hold zeros
        db = self.sampled("decode=999,every=4,missing=nvl,lost=1")
        self.assertGreater(self.count(db, "counter_sample"), 0)
        self.assertEqual(self.count(db, "counter_sample", "c%d = 0" % (COUNTERS - 1)), 0)
        self.assertIn("no longer has the counters", self.notes(db, "degraded")[0])

    def test_overflow_is_not_the_end(self):
        db = self.sampled("decode=8,every=10")
        self.assertGreater(self.count(db, "counter_burst", "samples >= 390"), 0)
        self.assertIn("overflowed", self.notes(db, "degraded")[0])

    def test_nothing_but_overflow(self):
        self.assert_not_sampled(self.sampled("decode=8"), "overflowed")

    def test_peaks_that_kill(self):
        db = self.sampled("peaks=1")
        self.assertEqual(self.notes(db, "degraded"), [])
        self.assertGreater(self.count(db, "counter_sample"), 0)
        self.assertEqual(self.count(db, "counter", "peak IS NOT NULL"), 0)

    def test_peaks_that_kill_leave_no_core(self):
        def cores():
            resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)

        self.sampled("peaks=1", preexec_fn=cores)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("core")], [])

    def test_values_fail(self):
        db = self.sampled("evaluate=999")
        self.assert_not_sampled(db, "ended early")

    def test_crash(self):
        self.assert_not_sampled(self.sampled("crash=1"), "ended by signal %d" % signal.SIGABRT)

    def test_hang(self):
        self.assert_not_sampled(self.sampled("hang=1"), "ended by signal")

    # ---- what perfkit itself reads beside the program

    def test_energy(self):
        uuid = self.one(self.open(self.fake_run("counted").capture), "SELECT uuid FROM device")
        nvml = os.path.join(replay.e2e.BUILD, "tests", "counters")
        db = self.open(self.fake_run("counted", library=replay.FAKES + ":" + nvml,
                                     env={"FAKE_NVML_UUID": uuid, "FAKE_CLOCKS": "1"}).capture)
        zero = self.one(db, "SELECT start_mono_ns FROM capture")
        rows = db.execute("SELECT start, energy_mj FROM device_clock WHERE energy_mj NOT NULL ORDER BY start").fetchall()
        self.assertGreaterEqual(len(rows), 2)
        self.assertEqual([mj for _, mj in rows], sorted(mj for _, mj in rows))
        for start, mj in rows:  # a counter that moves by 50 J every 100 ms, and is never newer than its time
            self.assertEqual(mj % 50000, 0)
            self.assertLessEqual(mj, (start + zero) // 100000000 * 50000)
        self.assertEqual(self.count(db, "device_clock", "sm_mhz = 1400"), self.count(db, "device_clock"))
        self.assertEqual(len(rows), self.count(db, "device_clock"))  # GPUs that nobody uses take no turn

    # ---- two runs, and ends

    def test_two_runs_on_one_device(self):
        env = replay.e2e.clean_environment(LD_LIBRARY_PATH=replay.FAKES)
        first = self.start("/bin/sleep", "600", options=(*OPTIONS, "--no-preload"), env=env)
        wait_for(lambda: child_of(first.pid, "sleep"))  # the sampler is ready before it begins
        db = self.sampled(tidy=False)
        self.assert_not_sampled(db, "another perfkit run")
        first.terminate()
        first.wait()
        self.assertGreater(self.count(self.sampled(), "counter_sample"), 0)

    def test_sampler_dies_with_perfkit(self):
        env = replay.e2e.clean_environment(LD_LIBRARY_PATH=replay.FAKES)
        process = self.start(replay.PROGRAM, "counted", "return", options=OPTIONS, env=env)
        sampler = wait_for(lambda: child_of(process.pid, "perfkit_sampler"))
        target = wait_for(lambda: child_of(process.pid, "cuda_program"))
        os.kill(target, signal.SIGSTOP)  # it lasts half a second; the sampler goes on
        time.sleep(0.3)
        process.kill()
        process.wait()
        os.kill(target, signal.SIGCONT)
        wait_for(lambda: not os.path.exists("/proc/%d" % sampler))
        (folder,) = self.spool_folders()
        wait_for(lambda: not os.path.exists("/proc/%d" % target))
        self.assertEqual(self.perfkit("recover", folder).status, 0)
        db = self.open(process.capture, states=("recovered",))
        samples = self.count(db, "counter_sample")
        self.assertEqual(samples, self.one(db, "SELECT sum(samples) FROM counter_burst"))
        self.assertEqual(self.count(db, "counter"), COUNTERS if samples else 0)

    def test_terminal_keys_are_the_programs(self):
        env = replay.e2e.clean_environment(LD_LIBRARY_PATH=replay.FAKES)
        process = self.start(replay.PROGRAM, "counted", "return", options=OPTIONS, env=env,
                             start_new_session=True)
        sampler = wait_for(lambda: child_of(process.pid, "perfkit_sampler"))
        self.assertNotEqual(os.getpgid(sampler), os.getpgid(process.pid))
        process.wait()
        self.assertEqual(process.returncode, 0)
        self.assertFalse(os.path.exists("/proc/%d" % sampler))

    def test_asked_to_end_before_the_program_runs(self):
        env = replay.e2e.clean_environment(LD_LIBRARY_PATH=replay.FAKES, FAKE_CUDA_SLOW="60")
        trace = self.path("ran")
        process = self.start("/bin/touch", trace, options=(*OPTIONS, "--no-preload"), env=env)
        sampler = wait_for(lambda: child_of(process.pid, "perfkit_sampler"))
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(), -signal.SIGINT)
        self.assertFalse(os.path.exists(trace))
        self.assertFalse(os.path.exists(process.capture))
        self.assertEqual(self.spool_folders(), [])
        self.assertFalse(os.path.exists("/proc/%d" % sampler))

    def test_ignored_signals_stay_ignored(self):
        def ignore():
            signal.signal(signal.SIGINT, signal.SIG_IGN)

        env = replay.e2e.clean_environment(LD_LIBRARY_PATH=replay.FAKES, FAKE_CUDA_SLOW="1")
        trace = self.path("ran")
        process = self.start("/bin/touch", trace, options=(*OPTIONS, "--no-preload"), env=env,
                             preexec_fn=ignore)
        wait_for(lambda: child_of(process.pid, "perfkit_sampler"))
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(), 0)
        self.assertTrue(os.path.exists(trace))

    # ---- what is the program's and not the sampler's

    def test_descriptors_are_the_programs(self):
        ends = os.pipe()
        env = replay.e2e.clean_environment(LD_LIBRARY_PATH=replay.FAKES)
        process = self.start("/bin/sleep", "600", options=(*OPTIONS, "--no-preload"), env=env,
                             pass_fds=ends)

        def held(pid):
            links = []
            for fd in os.listdir("/proc/%d/fd" % pid):
                try:
                    links.append(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
                except FileNotFoundError:
                    pass  # closed since it was listed
            return [link for link in links if link == "pipe:[%d]" % os.fstat(ends[0]).st_ino]

        self.assertEqual(len(held(wait_for(lambda: child_of(process.pid, "sleep")))), 2)
        self.assertEqual(held(child_of(process.pid, "perfkit_sampler")), [])
        process.terminate()
        process.wait()
        for end in ends:
            os.close(end)

    def test_inside_another_run(self):
        capture = self.new_capture()
        inner = self.run_line([replay.PROGRAM, "counted", "return"], capture, OPTIONS)
        env = replay.e2e.clean_environment(LD_LIBRARY_PATH=replay.FAKES)
        outer = self.open(self.record(*inner, env=env).capture)
        if self.count(outer, "capture_health", "item = 'preload'"):
            self.skipTest("a sanitized perfkit takes no preload, so it starts nothing that does")
        self.assertEqual(self.count(outer, "process", "command LIKE '%perfkit_sampler%'"), 0)
        # (commands are cut: where paths are long, the program's own comes after the cut)
        self.assertGreater(self.count(outer, "process", "command LIKE '%perfkit run %'"), 0)
        self.assertGreater(self.count(self.open(capture), "counter_sample"), 0)

    # ---- single launches

    def exact(self, pattern, pm=""):
        result = self.fake_run("exact", options=["--counters=exact:" + pattern],
                               env=dict(FAKE_PM=pm))
        db = self.open(result.capture)
        self.assertEqual(self.count(db, "kernel"), 127)
        self.exact_rows = json.loads(
            self.perfkit("report", result.capture, "--format=json").out)["exact_counts"]["rows"]
        return db

    def counted(self, db):
        """{(kernel, blocks): {counter: (launches, value)}}"""
        found = {}
        for name, grid, counter, launches, least, most in db.execute(
                "SELECT s.value, c.grid_x, e.name, count(DISTINCT e.correlation), min(e.value), "
                "max(e.value) FROM exact_count e JOIN launch_config c ON c.id = e.config "
                "JOIN string s ON s.id = c.name GROUP BY 1, 2, 3"):
            self.assertEqual(least, most)
            found.setdefault((name, grid), {})[counter] = (launches, most)
        return found

    def test_exact_counts_of_single_launches(self):
        db = self.exact("gemm")
        found = self.counted(db)
        self.assertEqual(sorted(found), [("_Z4gemmPf", 10), (GEMM, 10),
                                         (GEMM, 20)])
        memory = {"dram_read_bytes": 10, "dram_write_bytes": 20, "l2_bytes": 30,
                  "instructions": 40, "tensor_instructions": 50}
        arithmetic = {"fp64_add": 10, "fp64_mul": 20, "fp64_fma": 30, "fp32_add": 40, "fp32_mul": 50,
                      "fp32_fma": 60, "fp16_add": 70, "fp16_mul": 80, "fp16_fma": 90}
        tensor = ("bf16", "tf32", "fp64", "fp16_wgmma", "fp16_fp32", "fp16", "fp8")
        in_launches = lambda n, counters: {name: (n, value) for name, value in counters.items()}
        # Each pass in some launches: number k of it counted (k + 1) x blocks.
        self.assertEqual(found[GEMM, 10], dict(
            in_launches(3, memory), complete=(1, 1), **in_launches(3, arithmetic),
            **{"tensor_" + kind: (2, 10) for kind in tensor}))
        # Of four launches three say that the tensor pipe is used: its FLOP stay unknown.
        self.assertEqual(found[GEMM, 20], {name: (n, 2 * value) for name, (n, value) in dict(
            in_launches(3, memory), **in_launches(1, arithmetic)).items()})
        # Two before a graph is made and one after, none of those in it; by the pass that was set up.
        # The first launch of a kernel is only tried.
        self.assertEqual(found["_Z4gemmPf", 10], in_launches(2, arithmetic))
        # 90 of FP64, 210 of FP32, 660 of FP16 (packed), 10 of each tensor pass
        self.assertEqual([(row["flop"], row["launches"], row["l2_bytes"]) for row in self.exact_rows],
                         [(1030, 20, 30), (None, 4, 60), (None, 2, None)])
        self.assertEqual((self.exact_rows[0]["tensor_fp16_flop"], self.exact_rows[0]["flop_error"]),
                         (30, 0))
        note, captures = self.notes(db, "note")
        self.assertIn("20 launches were not looked at", captures)
        self.assertIn("26 launches were counted one by one", note)
        self.assertEqual(self.notes(db, "degraded"), [])
        self.assertEqual(self.count(db, "exact_count", "config IN (SELECT config FROM kernel) AND "
                                    "stream IN (SELECT stream FROM kernel)"),
                         self.count(db, "exact_count"))

    def test_exact_without_tensors_asks_for_none(self):
        found = self.counted(self.exact("^lib::gemm$", "no_tensor=1"))
        self.assertEqual(list({name for name, _ in found}), [GEMM])
        self.assertEqual(len(found[GEMM, 10]), 15)
        self.assertEqual(found[GEMM, 10]["tensor_instructions"], (3, 0))

    def test_exact_without_permission(self):
        db = self.exact("gemm", "range_available=35")
        self.assertEqual(self.count(db, "exact_count"), 0)
        (note,) = self.notes(db, "degraded")
        self.assertIn("NVreg_RestrictProfilingToAdminUsers=0", note)

    def test_exact_while_somebody_else_counts(self):
        for pm in ("range_enable=26", "range_available=26"):
            with self.subTest(pm):
                db = self.exact("gemm", pm)
                self.assertEqual(self.count(db, "exact_count"), 0)
                (note,) = self.notes(db, "degraded")
                self.assertIn("dcgmi profile --pause", note)

    def test_exact_on_an_unknown_chip(self):
        (note,) = self.notes(self.exact("gemm", "chip=TU102"), "degraded")
        self.assertIn("no exact counters are known for the chip TU102", note)

    def test_exact_counts_wait_for_their_records(self):
        # for as long as CUPTI keeps these back; others' configurations take no room from them
        db = self.open(self.fake_run("exact_many", "hold=1", options=["--counters=exact:gemm"])
                       .capture)
        self.assertEqual(self.notes(db, "degraded"), [])
        self.assertEqual(self.one(db, "SELECT count(DISTINCT correlation) FROM exact_count"), 400)
        self.assertEqual(self.count(db, "exact_count", "name = 'complete'"), 20)

    def exact_program(self, scenario):
        return self.open(self.fake_run(scenario, options=["--counters=exact:gemm"]).capture)

    def launches(self, db, kernel):
        return self.one(db, "SELECT count(DISTINCT e.correlation) FROM exact_count e "
                            "JOIN launch_config c ON c.id = e.config "
                            "JOIN string s ON s.id = c.name WHERE s.value = '%s'" % kernel)

    def test_exact_waits_for_a_device_that_gets_done(self):
        db = self.exact_program("exact_slow")
        self.assertEqual(self.launches(db, "_Z4gemmPf"), 2)
        self.assertEqual(self.notes(db, "degraded"), [])

    def test_exact_hangs_nobody(self):
        # neither work before a launch that waits for its thread, nor a kernel that does
        db = self.exact_program("exact_waiting")
        self.assertEqual(self.count(db, "kernel"), 18)
        self.assertEqual(self.launches(db, "_Z4gemmPf"), 3)
        self.assertEqual(self.launches(db, GEMM), 1)
        self.assertEqual(self.launches(db, "_Z10gemm_waitsPf"), 0)
        notes = self.notes(db, "degraded")
        self.assertEqual([note.split(",")[0] for note in notes],
                         ["6 launches were not counted",
                          "2 kernels are no longer counted because of that"])
        self.assertIn("waits for what the program does later", notes[0])

    def test_exact_gives_up_what_does_not_end(self):
        # what was begun is ended when it can be, before the context is
        db = self.exact_program("exact_overdue")
        self.assertEqual(self.count(db, "kernel"), 5)
        self.assertEqual(self.count(db, "exact_count"), 0)
        (note,) = self.notes(db, "degraded")
        self.assertIn("did not end", note)

    def test_exact_survives_a_cancelled_thread(self):
        db = self.exact_program("exact_cancelled")
        self.assertEqual(self.launches(db, "_Z4gemmPf"), 3)

    def test_exact_captures_end_with_their_streams(self):
        db = self.exact_program("exact_captures")
        self.assertEqual(self.launches(db, "_Z4gemmPf"), 3)
        (note,) = self.notes(db, "degraded")
        self.assertIn("10 launches were not looked at", note)
        self.assertIn("some still are", note)

    def test_exact_records_that_are_late(self):
        # their calls and names have been forgotten, but those of counted launches
        db = self.exact_program("exact_late")
        self.assertEqual(self.launches(db, "_Z4gemmPf"), 4)
        self.assertEqual(self.one(db, "SELECT count(DISTINCT e.config) FROM exact_count e"), 1)
        self.assertEqual(self.count(db, "kernel", "start IS NULL AND api_name IS NOT NULL"), 4)
        self.assertEqual(self.notes(db, "degraded"), [])
        notes = [row[0] for row in db.execute(
            "SELECT note FROM capture_health WHERE item = 'cuda degraded' ORDER BY id")]
        self.assertEqual([note[:9] for note in notes], ["4 records", "4 kernels"])

    def test_exact_is_not_for_forked_children(self):
        db = self.exact_program("exact_fork")
        self.assertEqual(self.launches(db, "_Z4gemmPf"), 5)
        self.assertEqual(self.notes(db, "degraded"), [])

    def test_exact_leaves_cupti_before_it_ends(self):
        # else the fake one ends the process with a signal
        self.fake_run("exact_exit", end="slowly", options=["--counters=exact:gemm"])

    def test_exact_threads_do_not_meet(self):
        db = self.exact_program("exact_threads")
        self.assertEqual(self.count(db, "kernel"), 1204)
        for (_, blocks), counts in self.counted(db).items():
            self.assertEqual(blocks, 10)
            self.assertGreater(len(counts), 0)
        self.assertGreater(self.launches(db, "_Z4gemmPf"), 0)
        self.assertEqual(self.notes(db, "degraded"), [])

    def test_exact_of_nothing(self):
        db = self.exact("nothing,here")
        self.assertEqual(self.count(db, "exact_count"), 0)
        note = self.notes(db, "note")[0]
        self.assertIn("0 launches were counted", note)

    # ---- options

    def test_wrong_options(self):
        for options, said in ((["--counters=nothing"], b"there is no set 'nothing'"),
                              (["--counters-duty=5"], b"need --counters"),
                              (["--counters=roofline", "--trace=nvtx"], b"add cuda to --trace"),
                              (["--counters=roofline", "--counters-duty=0"], b"not a share"),
                              (["--counters=roofline", "--counters-duty=101%"], b"not a share"),
                              (["--counters=roofline", "--counters-interval=0"], b"out of range"),
                              (["--counters-interval=0"], b"need --counters"),
                              (["--counters=exact:"], b"which kernels?"),
                              (["--counters=exact:("], b"not a POSIX extended"),
                              (["--counters=exact:k", "--counters-duty=5"], b"samples nothing"),
                              (["--counters=exact:k", "--trace=nvtx"], b"add cuda to --trace"),
                              (["--counters=roofline", "--counters-interval=1us"], b"out of range")):
            with self.subTest(options):
                result = self.plain(self.run_line(["/bin/true"], self.new_capture(), options))
                self.assertEqual(result.status, 125)
                self.assertIn(said, result.err)


if __name__ == "__main__":
    replay.run_side_by_side(4)
