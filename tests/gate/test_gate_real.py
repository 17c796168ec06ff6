"""The gate on programs that really run: the scripts of examples/ci on a workload, perfkit ab, and gate
--rerun, through `perfkit run` and an OpenCL device. Verdicts are asserted on counts, never on times."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import unittest
import xml.etree.ElementTree as ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import e2e  # noqa: E402
import schema  # noqa: E402

EXAMPLES = os.path.join(HERE, "..", "..", "examples", "ci")
SCHEMA = schema.read(os.path.join(HERE, "..", "..", "docs", "reference", "schemas", "gate.json"))
WORKLOAD = os.path.join(e2e.BUILD, "workloads", "hash_embedding")
EXACT = e2e.opencl_target("exact")


class Case(e2e.Case):
    def setUp(self):
        super().setUp()
        self.tmp = self.path("tmp")
        os.mkdir(self.tmp)

    def environment(self, **more):
        return e2e.clean_environment(TMPDIR=self.tmp, PERFKIT=e2e.PERFKIT, **more)

    def call(self, *words, status=0, **more):
        done = self.plain(words, env=self.environment(**more))
        self.assertEqual(done.status, status,
                         (done.out[-3000:].decode(errors="replace"),
                          done.err[-3000:].decode(errors="replace")))
        self.assertEqual(os.listdir(self.tmp), [])
        return done

    def result(self, text):
        result = json.loads(text)
        self.assertEqual(list(schema.problems(result, SCHEMA)), [])
        return result


@e2e.needs_opencl
@unittest.skipUnless(os.path.exists(WORKLOAD), "no workloads were built")
class Example(Case):
    """examples/ci as a project would call it."""

    def setUp(self):
        super().setUp()
        shutil.copy(os.path.join(EXAMPLES, "perfkit.gate"), self.folder)

    def script(self, name, *words, **more):
        return self.call(os.path.join(EXAMPLES, name), *words, **more)

    def test_the_whole_way(self):
        program = [WORKLOAD, "--backend", "opencl", "--preset", "small", "--variant", "basic"]
        line = " ".join(program)
        done = self.script("gate.sh", line)
        self.assertIn(b"no baseline 'main' yet", done.out)
        for job in ("1", "2"):
            done = self.script("save.sh", *program, CI_JOB_ID=job)
        self.assertIn(b"main", done.out)
        shown = json.loads(self.perfkit("baseline", "show", "main", "--json").out)
        self.assertEqual([s["label"] for s in shown["sessions"]], ["1", "2"])

        summary = self.path("summary.md")
        done = self.script("gate.sh", line, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=summary)
        self.assertIn(b"\n::notice title=perfkit gate::", done.out)
        self.assertNotIn(b"::error", done.out)
        with open(summary) as file:
            self.assertIn("## Performance gate", file.read())
        self.assertEqual(ElementTree.parse(self.path("gate.xml")).getroot().get("failures"), "0")

        done = self.script("gate.sh", line + " --plots 1600", status=1,
                           GITHUB_ACTIONS="true")
        self.assertIn(b"\n::error title=perfkit gate FAIL::", done.out)
        with open(self.path("gate.json")) as file:
            result = self.result(file.read())
        self.assertTrue(any(row["verdict"] == "FAIL" and row["class"] == "exact"
                            for row in result["rows"]))

    def test_two_builds_in_turns(self):
        line = WORKLOAD + " --backend opencl --preset small --variant basic"
        self.script("ab.sh", line, line + " --plots 1600", RUNS="2", status=1)
        self.assertTrue(os.path.exists(self.path("gate.md")))

    def run_step(self, name, status=0, **more):
        """The shell text of a step of the action, as GitHub runs it."""
        with open(os.path.join(EXAMPLES, "perfkit-gate", "action.yml")) as file:
            step = file.read().split("- name: %s\n" % name)[1].split("\n    - ")[0]
        text = step.split("run: |\n")[1]
        return self.call("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", textwrap.dedent(text), status=status,
                         BASELINE="main", GITHUB_OUTPUT=self.path("output"), **more)

    def test_the_action_and_the_template(self):
        """Their steps, but for those that install packages."""
        line = WORKLOAD + " --backend opencl --preset small --variant basic"
        shutil.copytree(EXAMPLES, self.path("ci"))
        self.run_step("Gate", COMMAND=line, FOLDER=self.path("ci"))  # no baseline yet
        self.assertFalse(os.path.exists(self.path("output")))
        self.run_step("Save", COMMAND=line, FOLDER=self.path("ci"), GITHUB_RUN_ID="1")
        self.run_step("Gate", COMMAND=line + " --plots 1600", FOLDER=self.path("ci"), status=1)
        with open(self.path("output")) as file:
            self.assertEqual(file.read(), "verdict=FAIL\n")
        with open(os.path.join(EXAMPLES, "gitlab-template.yml")) as file:
            scripts = re.findall(r"^    - (ci/(?:gate|save)\.sh .*)$", file.read(), re.M)
        self.assertEqual([script.split()[0] for script in scripts], ["ci/gate.sh", "ci/save.sh"])
        self.call("bash", "-c", "set -eo pipefail; " + scripts[1], PERFKIT_COMMAND=line, BASELINE="main", CI_JOB_ID="2")
        self.call("bash", "-c", "set -eo pipefail; " + scripts[0], PERFKIT_COMMAND=line + " --plots 1600", BASELINE="main", status=1)

    def test_the_pipelines_call_what_there_is(self):
        for name in ("github-actions.yml", "gitlab-ci.yml"):
            with open(os.path.join(EXAMPLES, name)) as file:
                text = file.read()
            called = {word for word in text.split() if word.startswith("ci/")}
            self.assertIn("ci/gate.sh", called)
            for word in called:
                script = os.path.join(EXAMPLES, word[3:])
                if word.endswith(".sh"):
                    self.assertTrue(os.access(script, os.X_OK), script)


@e2e.needs_opencl
class Turns(Case):
    def ab(self, *words, **more):
        return self.call(e2e.PERFKIT, "ab", *words, **more)

    def test_counts_differ(self):
        done = self.ab("-n", "3", "--warmup", "0", "--keep", "kept", "--json", "--base",
                       EXACT + " --rounds 1", "--cand", EXACT + " --rounds 2", status=1)
        result = self.result(done.out)  # what the programs print went elsewhere
        self.assertEqual((result["base"]["runs"], result["cand"]["runs"]), (3, 3))
        failed = {row["metric"] for row in result["rows"] if row["verdict"] == "FAIL"}
        self.assertIn("launches", failed)
        self.assertEqual(sorted(os.listdir(self.path("kept"))),
                         sorted("%s-%d.sqlite" % (side, i) for side in ("base", "cand")
                                for i in (1, 2, 3)))
        turns = [line.split(b": ")[-1] for line in done.err.splitlines()
                 if line.startswith(b"perfkit ab: run ")]
        self.assertEqual(turns, [b"base", b"cand", b"cand", b"base", b"cand", b"base"])

    def test_the_same_command_has_the_same_counts(self):
        line = EXACT + " --rounds 2"
        done = self.ab("-n", "2", "--json", "--base", line, "--cand", line, status=None)
        result = self.result(done.out)
        # Findings follow times, and a runtime frees memory when it likes.
        depends = ("finding", "peak-bytes", "leaked-bytes")
        self.assertEqual({row["verdict"] for row in result["rows"] if row["class"] == "exact"
                          and row["metric"] not in depends}, {"PASS"})

    def test_a_second_look(self):
        line = EXACT + " --rounds 2"
        done = self.ab("-n", "2", "--max-runs", "3", "--warmup", "0", "--json", "--base", line, "--cand", line,
                       status=None)
        result = self.result(done.out)
        self.assertEqual(result["alpha"], 0.005)  # half of the risk for each look
        self.assertIn(result["cand"]["runs"], (2, 3))
        self.assertEqual(result["base"]["runs"], result["cand"]["runs"])
        if result["cand"]["runs"] == 2:
            self.assertNotEqual(result["verdict"], "SUSPECT")

    def call(self, *words, status=0, **more):
        if status is None:  # times decide
            done = self.plain(words, env=self.environment(**more))
            self.assertIn(done.status, (0, 1, 4))
            return done
        return super().call(*words, status=status, **more)

    def test_rerun(self):
        self.call(e2e.PERFKIT, "run", "-q", "-o", "a.sqlite", "--", EXACT, "--rounds", "2")
        self.call(e2e.PERFKIT, "baseline", "save", "main", "a.sqlite")
        done = self.call(e2e.PERFKIT, "gate", "--baseline", "main", "--rerun",
                         EXACT + " --rounds 2", "--max-units", "2", "--json", status=None)
        result = self.result(done.out)
        self.assertIn(result["cand"]["runs"], (1, 2))
        if result["cand"]["runs"] == 1:
            self.assertIn(result["verdict"], ("PASS", "IMPROVED", "FAIL"))
        # The captures are gone: their command is named, not they.
        self.assertTrue(result["cand"]["text"].endswith(" of: " + EXACT + " --rounds 2"))
        self.assertEqual(result["files"], [])


class Failures(Case):
    def test_a_command_that_fails(self):
        for words, saying in ((("--base", "true", "--cand", "exit 3"), b"ended with status 3"),
                              (("--base", "no-such-command", "--cand", "true"), b"status 127"),
                              (("--base", "true", "--cand", "kill -SEGV $$"), b"signal 11"),
                              (("--base", "true"), b"give both commands"),
                              (("--base", "true", "--cand", "true", "--warmup", "x"), b"not a count"),
                              (("-n", "2", "--max-runs", "1", "--base", "true", "--cand", "true"),
                               b"--max-runs 1 is less than the 2")):
            done = self.call(e2e.PERFKIT, "ab", "-n", "1", *words, status=2)
            self.assertIn(saying, done.err.splitlines()[-1])
            self.assertEqual(done.out, b"")

    def test_what_the_programs_print_is_hidden_until_one_fails(self):
        done = self.call(e2e.PERFKIT, "ab", "-n", "1", "--warmup", "0", "--prepare", "echo prepared >>prepared", "--base", "printf %s%s hid den", "--cand", "true")
        self.assertNotIn(b"hidden", done.out + done.err)
        self.assertRegex(b" ".join(done.out.split()), rb"^candidate took [\d.]+x as long per run: [^;]*; (?:by one run or session on each side|one run or session on each side cannot show whether that is noise) ")
        with open(self.path("prepared")) as file:
            self.assertEqual(file.read(), "prepared\n" * 2)
        done = self.call(e2e.PERFKIT, "ab", "-n", "1", "--warmup", "0", "--base", "true", "--cand", "echo broken; exit 3", status=2)
        self.assertIn(b"broken\n", done.err)
        done = self.call(e2e.PERFKIT, "ab", "-n", "1", "--warmup", "0", "--show-output", "--base", "echo seen", "--cand", "true")
        self.assertIn(b"seen", done.err)

    def test_a_line_for_each_value_of_a_parameter(self):
        scan = ("-n", "1", "--warmup", "0", "--base", "echo base {t} >>made", "--cand", "echo cand {t} {t} {u} >>made", "--parameter-scan")
        done = self.call(e2e.PERFKIT, "ab", *scan, "t=a,b c")
        self.assertEqual([line.split(b": ")[0] for line in done.out.splitlines()], [b"t=a", b"t=b c"])
        self.assertRegex(done.out, rb"^t=a: [A-Z]+: candidate took [\d.]+x as long per run: ")
        with open(self.path("made")) as file:
            self.assertEqual(sorted(file.read().splitlines()), ["base a", "base b c", "cand a a {u}", "cand b c b c {u}"])
        done = self.call(e2e.PERFKIT, "ab", *scan, "t=2:10:4")
        self.assertEqual([line.split(b": ")[0] for line in done.out.splitlines()], [b"t=2", b"t=6", b"t=10"])
        for words, saying in ((("t=",), b"is not NAME=VALUE"), (("=1",), b"is not NAME=VALUE"), (("t=3:1",), b"is not NAME=VALUE"), (("t=1:x",), b"is not NAME=VALUE"), (("t=1:1000",), b"at most 100"),
                              (("v=1",), b"neither command has {v}"), (("t=1", "--json"), b"without other formats"), (("t=1", "--keep", "k"), b"without --keep")):
            done = self.call(e2e.PERFKIT, "ab", *scan, *words, status=2)
            self.assertIn(saying, done.err.splitlines()[-1])
        done = self.call(e2e.PERFKIT, "ab", "-n", "1", "--warmup", "0", "--base", "true", "--cand", "exit {t}", "--parameter-scan", "t=0,3,0", status=2)
        self.assertEqual(len(done.out.splitlines()), 1)
        self.assertIn(b"t=3: cand, run 1: ", done.err)

    def test_the_line_on_a_terminal_is_wiped_before_others(self):
        shown = b""
        leader, terminal = os.openpty()
        done = subprocess.Popen([e2e.PERFKIT, "ab", "-n", "1", "--warmup", "0", "--base", "true", "--cand", "echo broken; exit 3"],
                                stderr=terminal, env=self.environment(), cwd=self.folder)
        os.close(terminal)
        self.assertEqual(done.wait(), 2)
        with contextlib.suppress(OSError):  # the other end is closed
            while piece := os.read(leader, 4096):
                shown += piece
        os.close(leader)
        self.assertRegex(shown, rb"run 2 of 2: cand, about [^\x1b]* left\r\x1b\[Kbroken\r\nperfkit ab: cand, run 1: ")

    def test_a_pair_of_which_nothing_can_be_compared_is_the_last(self):
        with open(self.path("perfkit.gate"), "w") as file:
            file.write('[[ignore]]\nmatch = "*"\nreason = "none"\n')
        done = self.call(e2e.PERFKIT, "ab", "-n", "5", "--warmup", "0", "--config", "perfkit.gate", "--json", "--base", "true", "--cand", "true")
        self.assertEqual(self.result(done.out)["cand"]["runs"], 1)

    def test_ended_from_outside(self):
        for number, to_group in ((signal.SIGINT, True), (signal.SIGTERM, False)):
            with self.subTest(number):
                process = subprocess.Popen(
                    [e2e.PERFKIT, "ab", "--show-output", "--warmup", "0", "-n", "2", "--base", "echo here; exec sleep 100",
                     "--cand", "true"], cwd=self.folder, env=self.environment(),
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
                self.await_here(process)
                if to_group:
                    os.killpg(process.pid, number)
                else:
                    process.send_signal(number)
                process.communicate(timeout=e2e.TIMEOUT)
                self.assertEqual(process.returncode, -number)
                self.assertEqual(os.listdir(self.tmp), [])

    def await_here(self, process):
        line = said = process.stderr.readline()
        while b"here" not in line:
            self.assertTrue(line, (process.poll(), said))
            line = process.stderr.readline()
            said += line

    def start(self, *words):
        return subprocess.Popen([e2e.PERFKIT, "ab", "--show-output", "--warmup", "0", *words], cwd=self.folder,
                                env=self.environment(), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, start_new_session=True)

    def ended(self, process, number):
        process.communicate(timeout=e2e.TIMEOUT)
        self.assertEqual(process.returncode, -number)
        self.assertEqual(os.listdir(self.tmp), [])

    def test_ended_whatever_the_command_makes_of_it(self):
        calm = "trap 'kill $!; exit 0' TERM; echo here; sleep 100 & wait"
        process = self.start("-n", "2", "--base", calm, "--cand", "true")
        self.await_here(process)
        process.send_signal(signal.SIGTERM)
        self.ended(process, signal.SIGTERM)

    def test_ended_between_two_runs(self):
        """Or within one, as it falls: nothing is left, and no run is started after it."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for line in range(1, 5):
                process = self.start("-n", "1000", "--base", "true", "--cand", "true")
                for _ in range(line):
                    process.stderr.readline()
                os.killpg(process.pid, number)
                self.ended(process, number)


if __name__ == "__main__":
    e2e.main()
