"""bench/overhead from end to end, on the fakes of libcuda and libcupti."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(HERE, "..", "..", "bench")
BUILD = os.environ["PERFKIT_BUILD"]
PROGRAM = os.path.join(HERE, "turning.py")
NSYS = os.path.join(HERE, "nsys_stand_in.py")
CALLS = 200  # of turning.py, in each round
FAKES = os.path.join(BUILD, "tests", "cuda", "fakes")
if not os.path.exists(os.path.join(FAKES, "libcupti.so.13")):
    print("skipped: the fakes are not built (they need CUPTI's headers of 13.0)")
    sys.exit(77)
sys.path.insert(0, BENCH)
import configurations  # noqa: E402


def overhead(*arguments, program=PROGRAM, **environment):
    """(exit status, what it printed, its JSON)"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "o.json")
        done = subprocess.run(
            [sys.executable, "-B", os.path.join(BENCH, "overhead"), BUILD, "--program", program,
             "--json", path, *arguments],
            env={**os.environ, "LD_LIBRARY_PATH": FAKES, **environment},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
        told = None
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                told = json.load(file)
            # what it measured, as tables
            subprocess.run([sys.executable, "-B", os.path.join(BENCH, "overhead_tables"), path],
                           stdout=subprocess.PIPE, check=True)
        return done.returncode, done.stdout, told


class Run(unittest.TestCase):
    def test_everybody_plays_and_says_what_it_recorded(self):
        status, text, told = overhead("--only", "launch1", "--rounds", "6", "--per-process", "3",
                                      "--nsys", NSYS, "--configs",
                                      "calls=runtime;kernels=kernel,zeroed;same=perfkit:--trace=cuda")
        self.assertEqual(status, 0, text)
        section = told["sections"]["launch1"]
        self.assertEqual(len(section["rounds"]), 6, text)
        self.assertEqual(section["processes"], 2)
        names = {"bare", "floor", "perfkit", "nsys", "calls", "kernels", "same"}
        for line in section["rounds"]:
            self.assertLessEqual(names, set(line), text)
        # two processes, each with a warm-up and three rounds
        for name, records in (("floor", 8 * CALLS), ("perfkit", 8 * CALLS), ("calls", 8 * CALLS),
                              ("kernels", 0), ("same", 8 * CALLS)):
            ends = section["ends"][name]
            self.assertEqual(len(ends), 2)
            self.assertEqual(sum(e["records"] for e in ends), records, name)
            self.assertEqual(sum(e["dropped"] for e in ends), 0, name)
        self.assertEqual(section["ends"]["nsys"][0]["bytes"], 1000)
        figures = section["figures"]
        same = figures["configurations"]["same"]
        self.assertEqual((same["over_perfkit"]["n"], same["processors_added"]["n"]), (6, 6))
        self.assertIn("same over perfkit: ", text)
        self.assertTrue(all(line["processors"] > 0 for line in section["raw"]), section["raw"])
        self.assertTrue(all(end["after_exit_s"] > 0 for end in section["ends"]["perfkit"]), section["ends"])
        self.assertEqual(figures["own"]["n"], 6)
        self.assertEqual(len(figures["own_by_process"]), 2)
        self.assertIsNotNone(figures["own"]["low"])
        self.assertEqual(set(section["alone"]) & names, names)
        self.assertEqual(figures["configurations"]["perfkit"]["memory"]["host_mb_added"], 0)
        self.assertIn("perfkit's own part", text)
        self.assertEqual(told["floor"].split(",")[0], "kernel")

    def test_dropped_records_are_told(self):
        _, text, told = overhead("--only", "launch1", "--rounds", "1", "--nsys", "off",
                                 "--no-memory", FAKE_CUPTI="dropped=5")
        ends = told["sections"]["launch1"]["ends"]
        self.assertEqual(ends["floor"][0]["dropped"], 5, text)
        self.assertEqual(ends["perfkit"][0]["dropped"], 5, text)
        self.assertIn("perfkit lost", text)

    def test_one_that_dies_is_reported_and_the_rest_goes_on(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "die")
            with open(program, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\nexec {sys.executable} {PROGRAM} die\n")
            os.chmod(program, 0o755)
            status, text, told = overhead("--only", "launch1", "--rounds", "4", "--per-process",
                                          "2", "--nsys", "off", "--no-memory", program=program)
        self.assertEqual(status, 0, text)
        self.assertIn("floor: ended with 7", text)
        section = told["sections"]["launch1"]
        self.assertEqual([set(r) - {"process"} for r in section["rounds"]], [{"bare"}] * 4, text)

    def test_one_that_never_starts_is_not_tried_for_ever(self):
        status, text, told = overhead("--only", "launch1,copy", "--rounds", "3", "--per-process", "1",
                                      "--nsys", "/bin/false", "--no-memory")
        self.assertEqual(status, 0, text)
        self.assertIn("nsys: ended with 1", text)
        self.assertEqual(told["sections"]["launch1"]["failed"], {"nsys": 2})
        self.assertEqual(told["sections"]["copy"]["failed"], {})
        for name in ("launch1", "copy"):
            self.assertEqual(len(told["sections"][name]["rounds"]), 3, text)
            self.assertNotIn("nsys", told["sections"][name]["ends"])

    def test_what_the_floor_does_not_know_or_cannot_have_is_told(self):
        _, text, _ = overhead("--only", "launch1", "--rounds", "1", "--nsys", "off", "--no-memory",
                              "--configs", "odd=bogus,zeroed", FAKE_CUPTI="enable=15")
        self.assertIn("bogus: no such word", text)
        self.assertIn("kernel: FAKE_ERROR_15", text)

    def test_processes_apart(self):
        status, text, told = overhead("--only", "launch1", "--rounds", "2", "--nsys", "off",
                                      "--no-memory", "--apart")
        self.assertEqual(status, 0, text)
        self.assertEqual(told["sections"]["launch1"]["processes"], 2)
        self.assertEqual(len(told["sections"]["launch1"]["ends"]["perfkit"]), 2)

    def test_after_the_exit(self):
        status, text, told = overhead("--only", "after", "--quick", "--nsys", NSYS)
        self.assertEqual(status, 0, text)
        runs = told["sections"]["after"]["runs"]
        self.assertEqual(runs["perfkit"][0]["operations"], 3 * CALLS - CALLS)
        self.assertEqual(runs["perfkit"][0]["records"], 2 * CALLS)
        self.assertGreater(runs["perfkit"][0]["exit_to_end_s"], 0)
        self.assertEqual(runs["nsys"][0]["kernels"], 7)
        self.assertGreaterEqual(runs["nsys"][0]["usable_s"], runs["nsys"][0]["export_s"])

    def test_a_long_run(self):
        status, text, told = overhead("--only", "long", "--quick", "--nsys", "off")
        self.assertEqual(status, 0, text)
        runs = told["sections"]["long"]["runs"]
        self.assertEqual(set(runs), {"floor", "perfkit"})
        self.assertEqual(runs["perfkit"]["untimed"], 0)
        self.assertEqual(runs["floor"]["records"], 2 * CALLS)

    def test_a_budget_ends_it(self):
        status, text, told = overhead("--only", "launch1,graph,copy", "--rounds", "100000",
                                      "--nsys", "off", "--budget", "12", "--no-memory")
        self.assertEqual(status, 0, text)
        self.assertIn("of 100000 rounds", text)
        self.assertIn("budget: no time for", text)
        self.assertTrue(told["sections"]["launch1"]["rounds"])


class Options(unittest.TestCase):
    def test_more_configurations(self):
        self.assertEqual(
            configurations.parse_extra("a=kernel,clock; b=perfkit:--trace=cuda -x;"),
            [("a", "floor", "kernel,clock"), ("b", "perfkit", ["--trace=cuda", "-x"])])
        for bad in ("a", "=kernel", "a="):
            with self.assertRaises(ValueError):
                configurations.parse_extra(bad)

    def test_changes_of_the_default_floor(self):
        default = "kernel,clock,flush=100"
        for spec, list_of in (("kernel", "kernel"), ("-clock,+tsc", "kernel,flush=100,tsc"),
                              ("-flush", "kernel,clock"), ("+pinned", default + ",pinned")):
            self.assertEqual(configurations.floor_spec(default, spec), list_of)

    def test_wrong_words_are_refused(self):
        for words in (("--only", "nonsense"), ("--rounds", "0"), ("--configs", "x")):
            status, text, told = overhead(*words)
            self.assertEqual(status, 2, text)
            self.assertIsNone(told)

    def test_a_build_without_anything(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-B", os.path.join(BENCH, "overhead"), folder,
                                   "--nsys", "off", "--only", "launch1"], text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is not built", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
