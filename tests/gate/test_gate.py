"""perfkit gate and diff as a CI job uses them: what was planted is found and named, what is broken is refused with one
line."""
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import schema  # noqa: E402
from case import PERFKIT, SCHEMA, SESSIONS, Case, content_of, environment  # noqa: E402


class Verdicts(Case):
    def setUp(self):
        super().setUp()
        self.with_baseline()

    def test_the_same_program_passes(self):
        result = self.gate(self.candidate())
        self.assertEqual(result["verdict"], "PASS")
        self.assertEqual(result["base"]["units"], SESSIONS)
        self.assertEqual(result["iteration"], {"range": "step", "source": "step"})

    def test_planted_counts_are_named(self):
        for change, metric, name, base, cand in (
                ("one-more-launch", "launches", "relu", 1, 2),
                ("four-more-bytes", "copy-bytes", None, 1 << 20, (1 << 20) + 4),
                ("one-more-sync", "syncs", None, 1, 2),
                ("leak", "leaked-bytes", None, 0, 1024),
                ("pageable", "pageable-bytes", None, 0, 1 << 20)):
            with self.subTest(change):
                result = self.gate(self.candidate(change), status=1)
                found = [row for row in self.rows(result, metric=metric, verdict="FAIL")
                         if name in (None, row["name"])]
                self.assertTrue(found, self.failed(result))
                if change == "pageable":
                    text = self.perfkit("gate", "--baseline", "main", *self.candidate(change),
                                        status=1).stdout.decode()
                    self.assertIn("new finding there: pageable-copy", " ".join(text.split()))
                self.assertIn((base, cand), {(round(row["base"] or 0, 9), round(row["cand"], 9))
                                             for row in found})

    def test_a_slower_kernel_is_named_and_alone(self):
        result = self.gate(self.candidate("slow"), status=1)
        kernels = {row["name"] for row in self.rows(result, metric="kernel", verdict="FAIL")}
        self.assertEqual({name.split("<")[0] for name in kernels}, {"void gemm"})
        row = self.rows(result, metric="kernel", verdict="FAIL")[0]
        self.assertLess(row["ci_low"], 0.05)
        self.assertGreater(row["ci_high"], 0.05)

    def test_a_faster_kernel_is_no_regression(self):
        result = self.gate(self.candidate("fast"))
        self.assertEqual(result["verdict"], "IMPROVED")

    def test_a_template_change_is_not_another_kernel(self):
        result = self.gate(self.candidate("renamed"))
        rows = [r for r in self.rows(result, metric="kernel") if "gemm" in (r["name"] or "")]
        self.assertEqual(len(rows), 1)
        self.assertIn("half", rows[0]["name"])
        self.assertIn("float", rows[0]["base_name"])
        self.assertNotIn(rows[0]["match"], ("added", "removed"))

    def test_a_split_kernel_is_not_one_removed(self):
        result = self.gate(self.candidate("split"), status=1)
        rows = [r for r in self.rows(result, metric="kernel") if "reduce" in (r["name"] or "")]
        self.assertTrue(any(r["base_name"] == "reduce" and "reduce_first" in r["name"]
                            and "reduce_second" in r["name"] for r in rows), rows)

    def test_one_slow_run_is_suspect_at_most(self):
        files = self.candidate("slow", runs=1)
        result = self.gate(files)
        self.assertIn(result["verdict"], ("SUSPECT", "UNDERPOWERED"))
        self.gate(files, "--strict", status=4)
        done = self.perfkit("gate", "--baseline", "main", *files, "--json")
        self.assertIn(b"warning", done.stderr)
        done = self.perfkit("gate", "--baseline", "main", *files)
        self.assertEqual(done.stderr, b"")  # what the text begins with is not said twice
        self.assertIn(b"with --strict the exit status is 4", b" ".join(done.stdout.split(b"\n\n")[0].split()))

    def test_another_device_is_refused_for_times_only(self):
        result = self.gate(self.candidate("other-device"), status=3)
        self.assertTrue(result["times_refused"])
        self.assertIn("hard", {d["level"] for d in result["environment_differences"]})
        self.assertTrue(self.rows(result, metric="launches", verdict="PASS"))
        result = self.gate(self.candidate("other-device", "one-more-launch"), status=1)
        self.assertIn(("launches", "relu"), self.failed(result))

    def test_an_incomplete_capture_is_refused(self):
        self.gate(self.candidate("incomplete"), status=3)
        self.refused("baseline", "save", "main", self.capture(1, "incomplete"), status=3,
                     saying="incomplete")

    def test_a_capture_at_risk_is_compared_unless_calls_lack_records(self):
        risk = ("INSERT INTO capture_health(process, subject, item, value, note) VALUES(1, 'risk', "
                "'device_records', %d, 'device records of its last 7 ms may be missing')")
        files = [self.altered("risk%d" % i, risk % 0, i) for i in range(101, 104)]
        result = self.gate(files)
        self.assertEqual(result["verdict"], "PASS")
        self.assertFalse(result["times_refused"])
        self.assertIn(("records of the end", "soft"),
                      {(d["name"], d["level"]) for d in result["environment_differences"]})
        lacks = self.altered("lacks", risk % 3)
        result = self.gate([lacks], status=3)
        self.assertTrue(result["times_refused"])
        self.assertIn("device records of its last 7 ms", result["note"])
        self.refused("baseline", "save", "main", lacks, status=3, saying="incomplete")

    def test_a_launch_without_a_record_does_not_pass_as_exact(self):
        # Counted, and in no row: in an orderly end a thread was inside the call, or CUPTI lost it.
        for item in ("unreturned", "unanswered"):
            with self.subTest(item):
                path = self.altered(item, "INSERT INTO capture_health(process, subject, item, value) "
                                    "VALUES(1, 'launch', 'outstanding', 1), (1, 'launch', '%s', 1);"
                                    "UPDATE capture_health SET value = value + 1 WHERE "
                                    "subject = 'launch' AND item = 'called'" % item)
                result = self.gate([path], status=3)
                self.assertIn("no device record", result["note"])
                self.refused("baseline", "save", "main", path, status=3, saying="no device record")

    def altered(self, name, sql, seed=101):
        path = self.path(name)
        shutil.copy(self.capture(seed), path)
        db = sqlite3.connect(path)
        db.executescript(sql)
        db.close()
        return path

    def test_a_program_that_did_not_get_through_does_not_pass(self):
        for name, sql, saying in (
                ("status", "UPDATE capture SET exit_status = 3", "another exit status"),
                ("signal", "UPDATE capture SET exit_status = NULL, exit_signal = 11",
                 "another exit status"),
                ("idle", "DELETE FROM kernel; DELETE FROM transfer; DELETE FROM capture_health "
                 "WHERE subject IN ('launch', 'transfer')", "no device did anything")):
            with self.subTest(name):
                result = self.gate([self.altered(name, sql)], status=3)
                self.assertIn(saying, result["note"])

    def test_a_run_of_the_baseline_cannot_be_the_candidate(self):
        self.refused("gate", "--baseline", "main", self.capture(3), saying="of the baseline itself")
        copy = self.path("copy.sqlite")
        shutil.copy(self.capture(3), copy)
        self.refused("gate", "--baseline", "main", copy, saying="of the baseline itself")


    def test_a_run_counts_once(self):
        few = self.altered("few", "DELETE FROM kernel; DELETE FROM transfer; DELETE FROM range; "
                           "DELETE FROM capture_health WHERE subject IN ('launch', 'transfer')")
        shutil.copy(few, self.path("copy"))
        self.perfkit("baseline", "save", "few", self.capture(1, "no-ranges"))
        self.refused("gate", "--baseline", "few", few, self.path("copy"), saying="an earlier one")

    def test_iterations_that_are_not_the_same_range(self):
        self.refused("gate", "--baseline", "main", *self.candidate("no-ranges"),
                     saying="choose one NVTX range")
        self.refused("gate", "--baseline", "main", "--iteration", "stpe", *self.candidate(runs=1),
                     saying="stpe")


class Configuration(Case):
    def setUp(self):
        super().setUp()
        self.with_baseline()

    def test_what_is_ignored_is_listed_with_its_reason(self):
        self.write("perfkit.gate", '[[ignore]]\nmatch = "*launches:*"\nreason = "new layer"\n'
                   '[[ignore]]\nmatch = "api-calls:*"\nreason = "new layer"\n'
                   '[[ignore]]\nmatch = "range:*"\nreason = "new layer"\n'
                   '[[ignore]]\nmatch = "kernel:relu*"\nreason = "new layer"\n'
                   '[[ignore]]\nmatch = "wall:*"\nreason = "new layer"\n'
                   '[[ignore]]\nmatch = "gpu-*"\nreason = "new layer"\n')
        result = self.gate(self.candidate("one-more-launch"))
        ignored = self.rows(result, metric="launches", reason="ignored")
        self.assertTrue(ignored)
        self.assertEqual({row["configured"] for row in ignored}, {"new layer"})
        text = self.perfkit("gate", "--baseline", "main", *self.candidate("one-more-launch"))
        self.assertIn(b"new layer", text.stdout)

    def test_a_gate_that_judges_nothing_does_not_pass(self):
        self.write("perfkit.gate", '[[ignore]]\nmatch = "*"\nreason = "too noisy"\n')
        files = self.candidate("one-more-launch")
        self.assertEqual(self.gate(files)["verdict"], "UNDERPOWERED")
        self.gate(files, "--strict", status=4)
        text = self.perfkit("gate", "--baseline", "main", *files)
        self.assertIn(b"no metric was gated", text.stdout)

    def test_an_exception_that_expired_does_not_apply(self):
        self.write("perfkit.gate", '[[ignore]]\nmatch = "*launches:*"\nreason = "x"\n'
                   'expires = "2020-01-31"\n')
        result = self.gate(self.candidate("one-more-launch"), status=1)
        self.assertIn("perfkit.gate:1", result["notes"][0])

    def test_a_tolerance_lets_pass(self):
        self.gate(self.candidate("four-more-bytes"), status=1)
        self.write("perfkit.gate", '[copy-bytes]\ntolerance = "1 %"\n')
        self.gate(self.candidate("four-more-bytes"))

    def test_what_only_warns_is_told(self):
        self.write("perfkit.gate", "".join('[%s]\naction = "warn"\n' % name for name in
                                           ("wall", "gpu-busy", "kernel", "copy", "range")))
        for runs in (1, 3):
            files = self.candidate("slow", runs=runs)
            self.assertEqual(self.gate(files)["verdict"], "PASS")
            text = self.perfkit("gate", "--baseline", "main", "--github", *files).stdout.decode()
            headline = text.splitlines()[1]
            self.assertRegex(headline, "^PASS: none of .* is worse( by as much as matters)?; [0-9]+ warnings?$")
            warned = [line for line in text.splitlines() if line.startswith("::warning")]
            self.assertTrue(any("gemm" in line for line in warned), text)
            self.assertLessEqual(len(warned), 10)
            self.assertIn("gemm", text.split("Warnings: ")[1])
        files = self.candidate()
        text = self.perfkit("gate", "--baseline", "main", "--github", *files).stdout.decode()
        self.assertNotIn("::warning", text)

    def test_a_smallest_effect_lets_pass(self):
        self.write("perfkit.gate", 'delta = "10 %"\n')
        result = self.gate(self.candidate("slow"))
        self.assertNotEqual(result["verdict"], "FAIL")

    def test_patterns_that_may_fit(self):
        for match in ("*", "kernel:*", "k?rnel:*", "*:gemm", "gpu-*", "copy-bytes:HtoD*", "[kw]*:*"):
            with self.subTest(match):
                self.write("perfkit.gate", '[[override]]\nmatch = "%s"\nreason = "a"\n' % match)
                self.gate(self.candidate())

    def test_mistakes_are_told_with_their_line(self):
        for text, line, saying in (
                ("alpah = 0.1\n", 1, "did you mean 'alpha'"),
                ("# x\n\n[kernle]\n", 3, "did you mean 'kernel'"),
                ("[kernel]\nmatch = 'a'\n", 2, "unknown setting 'match'"),
                ("[[ignore]]\nmatch = '*'\n", 1, "needs a 'reason'"),
                ("[[override]]\nreason = 'a'\n", 1, "needs a 'match'"),
                ("alpha = 0.7\n", 1, "'alpha' is a chance"),
                ("delta = 5\n", 1, "in percent only"),
                ("[copy-bytes]\ntolerance = 1\n", 2, "in percent only"),
                ("[[ignore]]\nmatch = 'relu*'\nreason = 'a'\n", 2, "fits no metric"),
                ("[[override]]\nreason = 'a'\nmatch = 'registr:*'\n", 3, "fits no metric"),
                ("[[override]]\nreason = 'a'\nmatch = 'kernel'\n", 3, "fits no metric"),
                ("[kernel]\ndelta = 'much'\n", 2, "'delta' is a share"),
                ("[launches]\naction = 'ignore'\n", 2, "goes into [[ignore]]"),
                ("[ignore]\n", 1, "two brackets"),
                ("alpha = 0.1\nalpha = 0.2\n", 2, "is set already, in line 1"),
                ("iteration = 'ab\n", 1, "has no end"),
                ("what is this\n", 1, "key = value"),
                ("a\0b\n", 1, "NUL")):
            with self.subTest(text):
                self.write("perfkit.gate", text)
                said = self.refused("gate", "--baseline", "main", *self.candidate(runs=1),
                                    saying=saying)
                self.assertIn("perfkit.gate:%d: " % line, said)

    def test_it_may_come_from_any_editor(self):
        self.write("perfkit.gate", '\ufeffalpha = 0.1\r\n[[override]]\r\nmatch = "*"\r\nreason = "a"')
        self.gate(self.candidate())

    def test_what_is_no_file(self):
        os.mkfifo(self.path("perfkit.gate"))
        self.refused("gate", "--baseline", "main", *self.candidate(runs=1),
                     saying="not a regular file")
        self.refused("gate", "--baseline", "main", "--config", "absent", *self.candidate(runs=1),
                     saying="absent")

    def test_it_is_found_in_the_project_and_not_above(self):
        os.makedirs(self.path("project/.git"))
        os.makedirs(self.path("project/deep/er"))
        self.write("perfkit.gate", "nonsense\n")

        def gate_in(folder):
            return subprocess.run([PERFKIT, "gate", "--baseline", "main", self.candidate()[0]],
                                  cwd=self.path(folder), env=environment(), stderr=subprocess.PIPE,
                                  stdout=subprocess.DEVNULL).stderr.decode()
        self.assertIn("../../.perfkit/baselines.sqlite: no such file", gate_in("project/deep/er"))
        subprocess.run([PERFKIT, "baseline", "save", "main", self.capture(1)], check=True,
                       cwd=self.path("project/deep"), env=environment(), stderr=subprocess.DEVNULL)
        self.assertEqual(os.listdir(self.path("project/.perfkit")), ["baselines.sqlite"])
        self.write("project/perfkit.gate", "rubbish\n")
        self.assertIn("../../perfkit.gate:1", gate_in("project/deep/er"))


class Asked(Case):
    """--iteration and --skip that do not fit the capture: the same line and status everywhere."""

    def commands(self, a):
        report = "report", a
        yield from (report, (*report, "--json"), (*report, "--memory"), (*report, "--ranks"),
                    (*report, "--stats", "cuda_gpu_kern_sum"), (*report, "--html", "page.html"),
                    (*report, "--prometheus", "run.prom"), (*report, "--flamegraph", "folded"),
                    (*report, "--perfetto", "trace"), (*report, "--roofline", "roofline.svg"),
                    ("diff", a, a), ("diff", a, a, "--flamegraph", "folded"),
                    ("baseline", "save", "main", a), ("gate", "--baseline", "all", a),
                    ("top", "--once", a), ("top", "--json", "--count", "1", a))

    def test_all_commands_say_the_same(self):
        a = self.capture(1)
        self.perfkit("baseline", "save", "all", a)
        before = sorted(os.listdir(self.folder))
        for options, saying in ((("-i", "stpe"), "--iteration: no NVTX range of this capture is called 'stpe'"),
                                (("-i", "step@nowhere"), "is called 'step@nowhere'"),
                                (("--skip", "43"), "--skip 43 leaves none: there are 43 iterations of 'step'")):
            lines = set()
            for command in self.commands(a):
                line = self.refused(*command, *options, saying=saying)
                lines.add(line.split(": ", 1)[1])
            self.assertEqual(len(lines), 1, lines)
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        self.refused("report", "--stats", "list", "-i", "step", saying="--stats list")
        self.assertIn(b"Analysed", self.perfkit("top", "--once", "--view", "findings", "--skip", "42", a).stdout)


class WarmUp(Case):
    """--skip, and `skip` of the configuration, where an iteration is one."""

    def iterations(self, *words):
        result = json.loads(self.perfkit(*words).stdout)
        return result["base"]["iterations"], result["cand"]["iterations"]

    def test_iterations_are_left_out(self):
        a, b = self.capture(1), self.capture(2)
        found, _ = self.iterations("diff", "--json", a, b)
        for skip in 0, 1, 3:
            self.assertEqual(self.iterations("diff", "--json", "--skip", str(skip), a, b),
                             (found + 1 - skip,) * 2)
        self.write("perfkit.gate", "skip = 3\n")
        self.perfkit("baseline", "save", "main", a)
        gate = "gate", "--json", "--baseline", "main", b
        self.assertEqual(self.iterations(*gate), (found - 2,) * 2)
        self.perfkit("baseline", "save", "all", "--skip", "0", a)
        gate = "gate", "--json", "--baseline", "all", "--skip", "0", b
        self.assertEqual(self.iterations(*gate), (found + 1,) * 2)

    def test_wrong_values_are_clear_errors(self):
        for value in "-1", "1.5", "many", "":
            for command in "diff", "gate", "ab", "baseline":
                self.refused(command, "--skip=" + value, saying="--skip")
        for value in "-1", "1.5", '"many"', "true":
            self.write("perfkit.gate", "skip = %s\n" % value)
            self.refused("gate", "--baseline", "main", self.capture(1),
                         saying="perfkit.gate:1: 'skip' is a whole number from 0 up")


class Outputs(Case):
    def setUp(self):
        super().setUp()
        self.save("main", range(1, 4), "hostile")

    def test_names_stay_in_their_places(self):
        files = self.candidate("hostile", "one-more-launch")
        done = self.perfkit("gate", "--baseline", "main", "--github", "--junit", "gate.xml",
                            "--markdown", "gate.md", "--json-file", "gate.json", *files, status=1)
        out = done.stdout.decode()
        commands = [line for line in out.splitlines() if line.strip().startswith("::")]
        self.assertTrue(commands)
        for line in commands:
            self.assertRegex(line, r"^::(error|warning|notice) title=perfkit gate[ A-Z]*::")
        self.assertNotIn("\x1b", out + done.stderr.decode())
        tree = ElementTree.parse(self.path("gate.xml")).getroot()
        cases = tree.findall(".//testcase")
        failures = tree.findall(".//failure")
        self.assertEqual(int(tree.get("tests")), len(cases))
        self.assertEqual(int(tree.get("failures")), len(failures))
        self.assertTrue(any("relu" in case.get("name") and case.find("failure") is not None
                            for case in cases))
        with open(self.path("gate.md")) as file:
            markdown = file.read()
        self.assertNotIn("<b>", markdown)
        self.assertIn("relu", markdown)
        result = schema.read(self.path("gate.json"))
        self.assertEqual(list(schema.problems(result, SCHEMA)), [])
        self.assertTrue(any("\n::error::owned ]]>" in (row["name"] or "")
                            for row in result["rows"]))

    def test_a_file_that_cannot_be_written_is_told(self):
        files = self.candidate("hostile")
        done = self.perfkit("gate", "--baseline", "main", "--junit", "none/gate.xml", *files,
                            status=2)
        self.assertIn(b"none/gate.xml", done.stderr)
        done = self.perfkit("gate", "--baseline", "main", "--junit", "none/gate.xml",
                            *self.candidate("hostile", "one-more-launch"), status=1)
        self.assertIn(b"none/gate.xml", done.stderr)

    def test_no_file_takes_the_place_of_what_cannot_be_made_again(self):
        history, file = self.path(".perfkit/baselines.sqlite"), self.path("run.sqlite")
        shutil.copy(self.capture(101, "hostile"), file)
        before = content_of(history), content_of(file)
        for option in ("--markdown", "--junit", "--json-file"):
            for target in (history, "run.sqlite"):
                self.refused("gate", "--baseline", "main", option, target, file,
                             saying="must not replace")
        self.refused("diff", self.capture(1, "hostile"), file, "--flamegraph", "run.sqlite",
                     saying="must not replace")
        self.refused("gate", "--baseline", "main", "--markdown", "out", "--junit", "out", file,
                     saying="both name out")
        self.refused("gate", "--baseline", "main", "--markdown", "-", file, saying="give a file")
        self.refused("baseline", "export", "main", "--force", history,
                     saying="file of baselines itself")
        self.assertEqual((content_of(history), content_of(file)), before)


class Diff(Case):
    def test_what_moved(self):
        a, b = self.capture(1), self.capture(2, "slow", "one-more-launch")
        text = self.perfkit("diff", a, b).stdout.decode()
        self.assertIn("Kernels: +", text)
        self.assertIn("launches relu", text)
        self.assertIn("perfkit ab", text)
        self.assertNotIn("FAIL", text)
        self.assertNotIn("SUSPECT", text)  # a verdict
        result = json.loads(self.perfkit("diff", "--json", a, b).stdout)
        self.assertEqual(list(schema.problems(result, SCHEMA)), [])
        self.assertIsNone(result["verdict"])
        gemm = [r for r in result["rows"] if r["metric"] == "kernel" and "gemm" in r["name"]]
        self.assertGreater(gemm[0]["delta_ns"], 10000)
        moved = [abs(row["delta_ns"] or 0) for row in result["rows"]]
        self.assertEqual(moved, sorted(moved, reverse=True), "what moved most comes first")
        page = self.perfkit("diff", "--format", "markdown", a, b).stdout.decode()
        self.assertIn("relu", page)
        self.assertNotIn("SUSPECT", page)
        self.assertLess(page.index("### Times"), page.index("gemm"))
        self.assertLess(page.index("gemm"), page.index("### Counts and bytes"))

    def test_what_is_left_out_says_how_to_see_it(self):
        a, b = self.capture(1), self.capture(2, "slow", "one-more-launch")
        for words in ((), ("--format", "markdown")):
            text = self.perfkit("diff", "--top", "1", *words, a, b).stdout.decode()
            for more, all_of_them in re.findall(r"and (\d+) more \(--top (\d+)\)", text):
                self.assertEqual(int(all_of_them), int(more) + 1)
            self.assertIn(" more (--top ", text)

    def test_stacks_of_both(self):
        a, b = self.capture(1), self.capture(2, "split")
        lines = self.perfkit("diff", a, b, "--flamegraph", "-").stdout.decode().splitlines()
        stacks = {}
        for line in lines:
            stack, before, after = line.rsplit(" ", 2)
            stacks[stack] = (int(before), int(after))
        self.assertEqual(len(stacks), len(lines))
        self.assertEqual(list(stacks), sorted(stacks))
        of = {stack.split(";")[-1]: weights for stack, weights in stacks.items()}
        self.assertEqual(of["reduce"][1], 0)
        self.assertEqual(of["reduce_first"][0], 0)
        self.assertTrue(all(of["relu"]))
        db = sqlite3.connect(a)
        self.addCleanup(db.close)
        total = db.execute("SELECT (SELECT sum(duration) FROM kernel) + "
                           "(SELECT sum(duration) FROM transfer)").fetchone()[0]
        self.assertEqual(sum(before for before, _ in stacks.values()), total)

    def test_a_side_without_stacks_is_named(self):
        full, bare = self.capture(1), os.path.join(self.folder, "bare.sqlite")
        shutil.copy(full, bare)
        db = sqlite3.connect(bare)
        for table in ("kernel", "transfer", "memset"):
            db.execute(f"DELETE FROM {table}")
        db.commit()
        db.close()
        said = self.perfkit("diff", full, bare, "--flamegraph", "-").stderr.decode()
        self.assertIn("bare.sqlite has no stacks", said)
        self.assertEqual(said.count("no stacks"), 1)
        for words in ((full, full), ("-q", full, bare)):
            self.assertEqual(self.perfkit("diff", *words, "--flamegraph", "-").stderr, b"")

    def test_what_cannot_be_read(self):
        self.refused("diff", self.capture(1), "absent", saying="no such file")
        self.write("text", "x" * 200)
        self.refused("diff", "text", self.capture(1), saying="not a perfkit capture")


if __name__ == "__main__":
    unittest.main(verbosity=2)
