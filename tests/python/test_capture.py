"""Python in captures, the whole way: stacks with Python's own frames, and --pytorch's names."""
import json
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import e2e
import test_frames

FAKE_TORCH = os.path.join(HERE, "fake_torch")
TARGETS = os.path.join(HERE, "targets")
STUCK = os.path.join(e2e.BUILD, "targets", "python", "libpython_stuck.so")
NVTX_CLIENT = os.path.join(e2e.BUILD, "targets", "python", "libtorch_python.so")
TORCH_CPU = os.path.join(e2e.BUILD, "targets", "python", "libtorch_cpu.so")
STACK = """WITH RECURSIVE up(id, level) AS (SELECT ?1, 0 UNION ALL
           SELECT parent, level + 1 FROM up JOIN stack USING (id) WHERE parent NOT NULL)
           SELECT f.kind, s.value, p.value, y.line FROM up JOIN stack k USING (id)
           JOIN frame f ON f.id = k.frame LEFT JOIN symbol y ON y.frame = f.id AND y.level = 0
           LEFT JOIN string s ON s.id = y.function LEFT JOIN string p ON p.id = y.file ORDER BY up.level"""
PYTHON = 2  # frame.kind


def line_of(file, mark):
    with open(os.path.join(TARGETS, file)) as lines:
        return next(number for number, line in enumerate(lines, 1) if mark in line)


class Stacks(e2e.Case):
    def compare(self, interpreter, *flags):
        told = self.path("told")
        result = self.record(interpreter, *flags, "-B", os.path.join(TARGETS, "stacks.py"), told,
                             options=["--stacks=launch"], status=None)
        if result.status == 77:
            self.skipTest("no OpenCL device")
        self.assertEqual(result.status, 0, result.err)
        db = self.open(result.capture)
        self.assert_conserved(db)
        with open(told) as lines:
            wanted = {size: [tuple(place) for place in places] for size, places in map(json.loads, lines)}
        os.unlink(told)
        seen = db.execute("SELECT bytes, stack FROM transfer").fetchall()
        self.assertEqual(sorted(size for size, _ in seen), sorted(wanted))
        self.assertEqual(len(wanted), 22)
        for size, stack in seen:
            frames = db.execute(STACK, (stack,)).fetchall()
            python = [(function, file, line) for kind, function, file, line in frames if kind == PYTHON]
            # The write itself is one call further in.
            self.assertEqual(python[0][0].rpartition(".")[2], "write")
            self.assertEqual(python[1:], wanted[size])
            self.assertNotEqual(frames[0][0], PYTHON)
        self.assertEqual(db.execute("SELECT count(*) FROM process WHERE spool NOT NULL OR id IN "
                                    "(SELECT process FROM frame)").fetchone()[0], 3)
        return db

    def test_every_frame_is_where_python_says(self):
        found = test_frames.interpreters()
        if not found:
            self.skipTest("no CPython from 3.10 to 3.13 here")
        chosen = found if e2e.LONG else {kind: found[kind] for kind in (min(found), max(found))}
        for kind, interpreter in chosen.items():
            with self.subTest(version="%d.%d" % kind[:2], interpreter=interpreter):
                self.compare(interpreter)


    def test_trampolines_are_left_out(self):
        """-X perf puts generated code between the interpreter's loops: no second frame for each."""
        found = [path for kind, path in test_frames.interpreters().items() if kind[:2] >= (3, 12)]
        if not found or os.uname().machine != "x86_64":
            self.skipTest("no CPython from 3.12 here")
        db = self.compare(found[0], "-X", "perf")
        for pid, in db.execute("SELECT pid FROM process"):
            if os.path.exists("/tmp/perf-%d.map" % pid):
                os.unlink("/tmp/perf-%d.map" % pid)
        self.assertEqual(db.execute("SELECT count(*) FROM frame WHERE kind = 1 AND module IS NULL")
                         .fetchone()[0], 0)


class PyTorch(e2e.Case):
    """With a stand-in for PyTorch: what the hook does and that it is not noticed. Operators by NVTX."""
    operators_are_named, observed = "operators (by PyTorch's NVTX ranges)", False
    both_are_named = operators_are_named + " and modules (by PyTorch's hooks)"

    def environment(self, **more):
        return e2e.clean_environment(PYTHONPATH=FAKE_TORCH, FAKE_TORCH_NVTX=NVTX_CLIENT, **more)

    def train(self, *words, options=("--pytorch",), python=("-B",), **more):
        more.setdefault("env", self.environment())
        result = self.record(sys.executable, *python, os.path.join(TARGETS, "train.py"), *words,
                             options=options, **more)
        self.assertEqual(result.err, b"")
        return result

    def ranges(self, db, thread=None):
        """[(depth, name, sequence number)] in their order."""
        return db.execute(
            "SELECT r.depth, s.value, (SELECT f.value FROM range_field f JOIN string n ON n.id = f.name "
            "WHERE f.range = r.id AND n.value = 'seq') FROM range r JOIN string s ON s.id = r.name "
            "WHERE r.domain IS NULL ORDER BY r.start, r.depth").fetchall()

    def notes(self, db):
        return [row[0] for row in db.execute(
            "SELECT note FROM capture_health WHERE subject = 'collector' AND item LIKE 'python%'")]

    def test_operators_and_modules(self):
        db = self.open(self.train().capture)
        self.assert_conserved(db)
        forward = [(0, "Model", None), (1, "Model.block", None), (2, "Model.block.first", None),
                   (3, "aten::add", 0), (4, "aten::add_", 0), (2, "Model.block.second", None),
                   (3, "aten::add", 1), (4, "aten::add_", 1), (2, "aten::mul", 2), (3, "aten::mul_", 2)]
        backward = []
        for name, sequence in (("MulBackward0", 2), ("AddBackward0", 1), ("AddBackward0", 0)):
            backward += [(0, "autograd::engine::evaluate_function: " + name, sequence),
                         (1, name, sequence)]
        seen = self.ranges(db)
        self.assertEqual(len(seen), 2 * len(forward + backward))
        self.assertEqual(seen[:len(forward + backward)], forward + backward)
        self.assertEqual(self.notes(db), ["PyTorch 2.9.0+fake: %s are named" % self.both_are_named])

    def test_only_what_is_asked_for(self):
        modules = self.ranges(self.open(self.train(options=["--pytorch=modules"]).capture))
        self.assertEqual({name for _, name, _ in modules},
                         {"Model", "Model.block", "Model.block.first", "Model.block.second"})
        db = self.open(self.train(options=["--pytorch=ops"]).capture)
        operators = self.ranges(db)
        self.assertEqual(self.notes(db), ["PyTorch 2.9.0+fake: %s are named" % self.operators_are_named])
        self.assertNotIn("Model", {name for _, name, _ in operators})
        self.assertIn((0, "aten::add", 0), operators)
        self.assertEqual(self.ranges(self.open(self.train(options=[]).capture)), [])

    def test_shapes(self):
        """PyTorch writes the sizes; ranges of other sizes are still of one name."""
        db = self.open(self.train(options=["--pytorch=shapes"]).capture)
        self.assertEqual(self.notes(db), ["PyTorch 2.9.0+fake: operators (by PyTorch's NVTX ranges, with shapes) are named"])
        operators = self.ranges(db)
        self.assertIn((0, "aten::add", 0), operators)
        self.assertNotIn("Model", {name for _, name, _ in operators})
        self.assertEqual([name for _, name, _ in operators if "sizes" in name], [])
        inputs = db.execute("SELECT s.value, count(*) FROM range_inputs i JOIN string s ON s.id = i.inputs "
                            "JOIN range r ON r.id = i.range GROUP BY 1").fetchall()
        self.assertEqual(inputs, [('{"sizes":[[64, 32], [], [2]]}', len(operators))])
        without = self.open(self.train().capture)
        self.assertEqual(without.execute("SELECT count(*) FROM range_inputs").fetchone(), (0,))

    def test_nothing_changes(self):
        """What the program prints: its output, sys.path, the modules loaded before torch, the loader."""
        def told(result):
            words = result.out.decode().splitlines()
            return json.loads(words[0]), words[1:]
        plain = told(self.plain([sys.executable, "-B", os.path.join(TARGETS, "train.py"), "tell"],
                                env=self.environment()))
        recorded = told(self.train("tell"))
        awaited = " torch._dynamo.callback"  # until the program compiles
        self.assertEqual(recorded[1], [line + awaited for line in plain[1]])
        self.assertEqual(recorded[0]["path"], plain[0]["path"])
        self.assertEqual(sorted(set(recorded[0]["modules"]) - set(plain[0]["modules"])),
                         ["_perfkit_pytorch"])
        self.assertEqual(set(plain[0]["modules"]) - set(recorded[0]["modules"]), set())
        left = os.path.join(e2e.BUILD, "lib", "python", "__pycache__")
        self.assertFalse(os.path.exists(left))

    def test_exceptions_close_their_ranges(self):
        db = self.open(self.train("fail").capture)
        self.assert_conserved(db)
        self.assertEqual([row for row in self.ranges(db) if row[1] == "Model"],
                         [(0, "Model", None)] * 2)

    def test_threads(self):
        db = self.open(self.train("thread").capture)
        self.assertEqual(db.execute("SELECT count(DISTINCT thread) FROM range JOIN string s ON s.id = name "
                                    "WHERE s.value = 'aten::add'").fetchone()[0], 3)

    def test_the_programs_own_profiler(self):
        result = self.train("profile")
        self.assertEqual(result.out, b"profiled\n")
        names = [name for _, name, _ in self.ranges(self.open(result.capture))]
        self.assertEqual(names.count("Model"), 3)
        # The profiled step is the program's where both need PyTorch's NVTX state.
        self.assertEqual(names.count("aten::mul"), 3 if self.observed else 2)

    def test_the_programs_own_ranges(self):
        """emit_nvtx: each operator is there once, also where it is switched off."""
        for words in (["emit"], ["emit", "disabled"]):
            names = [name for _, name, _ in self.ranges(self.open(self.train(*words).capture))]
            self.assertEqual([names.count(name) for name in ("Model", "aten::mul", "aten::mul_")], [3] * 3)

    def test_an_interrupt_while_modules_are_named(self):
        self.assertEqual(self.train("interrupt").out, b"interrupted\n")

    def test_garbage_collections(self):
        db = self.open(self.train("collect").capture)
        seen = [name for name, in db.execute(
            "SELECT s.value FROM range r JOIN string s ON s.id = r.name JOIN string d ON d.id = r.domain "
            "WHERE d.value = 'Python' AND r.duration >= 0 AND r.depth = 0")]
        self.assertIn("garbage collection, generation 2", seen)
        self.assertIn("garbage collection, generation 0", seen)
        self.assert_conserved(db)

    def test_compilations(self):
        """From the first begin to the last end, also on another thread, and after a reset."""
        db = self.open(self.train("recompile").capture)
        seen = db.execute("SELECT s.value, r.duration >= 0 FROM range r JOIN string s ON s.id = r.name "
                          "JOIN string d ON d.id = r.domain WHERE d.value = 'PyTorch'").fetchall()
        self.assertEqual(seen, [("torch.compile", 1)] * 2)
        self.assert_conserved(db)

    def test_modules_that_follow_each_other(self):
        """At the address of one that is gone: each has its own name."""
        names = [name for depth, name, _ in self.ranges(self.open(self.train("replace").capture))
                 if depth == 0 and name in ("Layer", "Block")]
        self.assertEqual(names, ["Layer", "Block"] * 8)

    def test_modules_by_hooks(self):
        """Where their calls cannot be seen: the same ranges."""
        options = dict(options=["--pytorch=modules"])
        plain = self.ranges(self.open(self.train(**options).capture))
        db = self.open(self.train(env=self.environment(FAKE_TORCH_HIDES="1"), **options).capture)
        self.assertEqual(self.ranges(db), plain)
        self.assertEqual(self.notes(db), ["PyTorch 2.9.0+fake: modules (by PyTorch's hooks) are named"])

    def test_builds_without_cuda(self):
        environment = self.environment()
        del environment["FAKE_TORCH_NVTX"]
        db = self.open(self.train(env=environment).capture)
        self.assertEqual(self.notes(db), ["PyTorch 2.9.0+fake: %s are named" % self.both_are_named
                                          if self.observed else "PyTorch 2.9.0+fake: not named: "
                                          "operators (built without CUDA)"])
        self.assertEqual({name for _, name, _ in self.ranges(db) if name.startswith("Model")},
                         {"Model", "Model.block", "Model.block.first", "Model.block.second"})

    def test_the_programs_own_sitecustomize(self):
        """In its order: ours first, then the one that would have been run, whatever it does."""
        own = self.path("own")
        os.mkdir(own)
        bodies = {"print('mine', __name__, __file__)\nimport sys\nprint(sys.path.index(%r))" % own: b"",
                  "raise ValueError('broken')": b"Error in sitecustomize",
                  "raise ImportError('gone', name='sitecustomize')": b""}
        for body, said in bodies.items():
            with open(os.path.join(own, "sitecustomize.py"), "w") as file:
                file.write(body)
            environment = self.environment()
            environment["PYTHONPATH"] = own + ":" + FAKE_TORCH
            command = [sys.executable, "-B", "-c",
                       "import sys; print('sitecustomize' in sys.modules); import torch"]
            plain = self.plain(command, env=environment)
            recorded = self.record(*command, options=["--pytorch"], env=environment)
            self.assertEqual((recorded.status, recorded.out, recorded.err),
                             (plain.status, plain.out, plain.err))
            self.assertIn(said, plain.err)
            self.assertEqual(len(self.notes(self.open(recorded.capture))), 1)

    def test_children(self):
        """The hook reaches what the program starts, by the variable as the program changed it."""
        code = ("import subprocess, sys; subprocess.run([sys.executable, '-B', %r], check=True)"
                % os.path.join(TARGETS, "train.py"))
        db = self.open(self.record(sys.executable, "-c", code, options=["--pytorch"],
                                   env=self.environment()).capture)
        self.assertIn("Model.block.first", {name for _, name, _ in self.ranges(db)})

    def test_ways_to_start_python(self):
        """-I, -E and -S keep the hook out: nothing is named, which is said, and the program runs."""
        code = ("import sys; sys.path.insert(0, %r); sys.argv[1:] = []; exec(open(%r).read()); "
                "torch.cuda.nvtx.range_push('mine')" % (FAKE_TORCH, os.path.join(TARGETS, "train.py")))
        for flag in ("-I", "-E", "-S"):
            result = self.record(sys.executable, flag, "-B", "-c", code, options=["--pytorch"],
                                 env=self.environment())
            db = self.open(result.capture)
            self.assertEqual(self.ranges(db), [(0, "mine", None)])
            self.assertEqual([note.partition(":")[0] for note in self.notes(db)],
                             ["PyTorch's operators and modules are not named"])

    def test_an_end_while_a_library_is_being_loaded(self):
        """Whether PyTorch was there is found out without the loader, whose lock another thread has."""
        code = "import ctypes; ctypes.CDLL(%r).client_push(b'mine'); ctypes.CDLL(%r)" % (NVTX_CLIENT, STUCK)
        result = self.record(sys.executable, "-I", "-c", code, options=["--pytorch"], status=7,
                             env=self.environment())
        db = self.open(result.capture)
        self.assertEqual(self.ranges(db), [(0, "mine", None)])
        self.assertEqual([note.partition(":")[0] for note in self.notes(db)],
                         ["PyTorch's operators and modules are not named"])

    def operators(self, *words, options=("--pytorch", "--stacks"), **more):
        """Rows of the table of operators: {(operator, module, function, line): (calls, ops, backward ops)}"""
        result = self.train(*words, options=options, env=self.environment(FAKE_TORCH_DEVICE=TARGETS),
                            status=None, **more)
        if result.status == 77:
            self.skipTest("no OpenCL device")
        self.assertEqual(result.status, 0, result.err)
        table = json.loads(self.perfkit("report", "--stats", "pytorch_sum", "--json", result.capture).out)
        rows = table["stats"][0]["rows"]
        self.assertEqual([row["Total Time (ns)"] for row in rows],
                         [row["Forward (ns)"] + row["Backward (ns)"] for row in rows])
        return {(row["Operator"], row["Module"], row["Function"], row["File"] and
                 os.path.basename(row["File"]), row["Line"]):
                (row["Calls"], row["Forward Ops"], row["Backward Ops"]) for row in rows}

    def test_the_backward_pass_has_its_forward_lines(self):
        add, mul = line_of("train.py", "line of Layer.add"), line_of("train.py", "line of Block.mul")
        version = sys.version_info >= (3, 11)
        layer, block = ("Layer.forward", "Block.forward") if version else ("forward", "forward")
        self.assertEqual(self.operators(), {
            ("aten::add", "Model.block.first", layer, "train.py", add): (2, 2, 2),
            ("aten::add", "Model.block.second", layer, "train.py", add): (2, 2, 2),
            ("aten::mul", "Model.block", block, "train.py", mul): (2, 2, 2)})

    def test_operators_without_stacks(self):
        self.assertEqual(self.operators(options=["--pytorch"]), {
            ("aten::add", "Model.block.first", None, None, None): (2, 2, 2),
            ("aten::add", "Model.block.second", None, None, None): (2, 2, 2),
            ("aten::mul", "Model.block", None, None, None): (2, 2, 2)})

    def test_numbers_that_two_threads_have(self):
        """Each thread counts its operators: the backward pass of neither is given to the other."""
        rows = self.operators("twice")
        self.assertEqual({key[0] for key in rows}, {"aten::add", "aten::mul",
                                                    "(backward, of an operator that is not known)"})
        self.assertGreater(rows[("(backward, of an operator that is not known)", None, None, None, None)][2],
                           0)

    def test_wrong_words(self):
        for options, said in ((["--pytorch=layers"], b"layers"), (["--pytorch", "--trace=cuda"], b"nvtx")):
            result = self.plain(self.run_line(["true"], self.new_capture(), options))
            self.assertEqual(result.status, 125)
            self.assertIn(said, result.err)


class Observed(PyTorch):
    """The same, where perfkit's library is called at each operator."""
    operators_are_named, both_are_named, observed = "operators", "operators and modules", True

    def environment(self, **more):
        return super().environment(**dict(dict(FAKE_TORCH_CPU=TORCH_CPU), **more))

    def test_what_is_being_compiled(self):
        """Modules are named without a line of Python that torch.compile would see."""
        seen = self.ranges(self.open(self.train("compile").capture))
        self.assertEqual([name for depth, name, _ in seen if name.startswith("Block")],
                         ["Block", "Block.first", "Block.second"])

    def test_operators_that_another_thread_ends(self):
        """No range of either thread is inside of them, and they have their length."""
        db = self.open(self.train("collective").capture)
        self.assert_conserved(db)
        seen = self.ranges(db)
        self.assertEqual([name for _, name, _ in seen].count("gloo:all_reduce"), 3)
        self.assertEqual({depth for depth, name, _ in seen if name == "Model"}, {0})
        self.assertEqual(db.execute("SELECT count(*) FROM range WHERE duration < 0").fetchone()[0], 0)

    def test_another_threads_own_ranges(self):
        """emit_nvtx of one thread: each operator of each thread is there once."""
        names = [name for _, name, _ in self.ranges(self.open(self.train("emit-elsewhere").capture))]
        self.assertEqual([names.count(name) for name in ("Model", "aten::mul", "aten::mul_")], [3, 4, 4])

    def test_operators_that_are_handed_to_another_thread(self):
        """Of which PyTorch does not know at their begin: no range of either thread is closed by them."""
        db = self.open(self.train("handed").capture)
        self.assert_conserved(db)
        seen = [(depth, name) for depth, name, _ in self.ranges(db)]
        for depth, name, count in ((0, "kept", 100), (0, "handed", 100), (0, "outer", 100),
                                   (1, "inner", 100), (0, "Model", 2)):
            self.assertEqual([row for row in seen if row[1] == name], [(depth, name)] * count)
        ends = dict(db.execute("SELECT s.value, group_concat(r.start + r.duration) FROM range r JOIN string s "
                               "ON s.id = r.name WHERE s.value IN ('handed', 'outer', 'inner') GROUP BY 1"))
        handed, outer, inner = ([int(end) for end in ends[name].split(",")]
                                for name in ("handed", "outer", "inner"))
        self.assertEqual([len(handed), len(outer), len(inner)], [100] * 3)
        for a, b, c in zip(sorted(handed), sorted(inner), sorted(outer)):
            self.assertTrue(a <= b <= c, (a, b, c))

    def test_another_pytorch(self):
        """One that does not behave as known is left alone."""
        db = self.open(self.train(env=self.environment(PERFKIT_TEST_TORCH="twice")).capture)
        self.assertEqual(self.notes(db), ["PyTorch 2.9.0+fake: %s are named" % PyTorch.both_are_named])
        self.assertEqual([name for _, name, _ in self.ranges(db)].count("aten::mul"), 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
