"""What reports tell of host stacks, in every format. Arguments: perfkit, report_tool, the folder of report
scenes, a folder to work in."""
import csv, gzip, io, json, os, shutil, subprocess, sys, unittest

PERFKIT, TOOL, SCENES, WORK = (os.path.abspath(a) for a in sys.argv[1:5])
STACKS = """
INSERT INTO string(id, value) VALUES(9001, 'do_step'), (9002, '/src/model;1.c'), (9003, 'main'), (9004, 'do_load');
INSERT INTO module(id, process, path, address, bytes) VALUES(1, 1, '/bin/train', {base}, 65536);
INSERT INTO frame(id, process, kind, address, module, offset) VALUES(1, 1, 1, {base} + 1, 1, 1), (2, 1, 1, {base} + 2, 1, 2),
    (3, 1, 1, {base} + 3, 1, 3), (4, 1, 1, {base} + 4, 1, 4);
INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 9003, 9002, {line}), (2, 0, 9001, 9002, 42),
    (3, 0, 9004, NULL, NULL);
INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1), (2, 1, 2, 2), (3, 1, 3, 2), (4, 1, 4, 2);
UPDATE kernel SET stack = 2; UPDATE transfer SET stack = 3; UPDATE memset SET stack = 4;
"""


def run(*command, ok=True):
    done = subprocess.run([PERFKIT, *command], capture_output=True, text=True, errors="replace")
    assert not ok or done.returncode == 0, (command, done.stderr)
    return done


def make(name, base=4096, line=7, more=""):
    with open(os.path.join(SCENES, "normal.sql")) as scene, open(name + ".sql", "w") as out:
        out.write(scene.read() + STACKS.format(base=base, line=line) + more)
    subprocess.run([TOOL, "make", name + ".sql", name], check=True)
    return name


def folded(text):
    return {stack: int(weight) for stack, weight in (line.rsplit(" ", 1) for line in text.splitlines())}


class Reports(unittest.TestCase):
    def setUp(self):
        self.capture = make("stacks.sqlite")

    def rows(self, name):
        return json.loads(run("report", self.capture, "--stats", name, "--json").stdout)

    def table(self, name):
        return list(csv.DictReader(io.StringIO(run("report", self.capture, "--stats", name, "--format", "csv").stdout)))

    def test_lines(self):
        rows = self.table("stack_line_sum")
        kernels = self.table("cuda_gpu_kern_sum")
        total = {row["Function"]: int(row["Total Time (ns)"]) for row in rows}
        own = {row["Function"]: int(row["Self Time (ns)"]) for row in rows}
        everything = sum(int(row["Total Time (ns)"]) for row in self.table("cuda_gpu_sum"))
        self.assertEqual(total["main"], everything)
        self.assertEqual(own["main"], 0)
        self.assertEqual(total["do_step"], sum(int(row["Total Time (ns)"]) for row in kernels))
        self.assertEqual(total["train+0x4"] + total["do_load"] + total["do_step"], everything)
        line = {row["Function"]: row["Line"] for row in rows}
        self.assertEqual(line["do_step"], "/src/model;1.c:42")
        self.assertEqual(line["do_load"], "")
        self.assertGreater(sum(int(row["Idle Before (ns)"]) for row in rows if row["Function"] == "main"), 0)

    def test_callers(self):
        rows = self.table("stack_kern_sum")
        for row in self.table("cuda_gpu_kern_sum"):
            mine = [r for r in rows if r["Name"] == row["Name"]]
            self.assertEqual(sum(int(r["Total Time (ns)"]) for r in mine), int(row["Total Time (ns)"]))
            self.assertEqual({r["Called From"] for r in mine}, {"do_step (model;1.c:42) < main (model;1.c:7)"})
        self.assertIn("do_load (train) < main (model;1.c:7)", {r["Called From"] for r in rows})

    def test_calls(self):
        rows = self.table("stack_api_sum")
        for row in self.table("cuda_api_sum"):
            mine = [r for r in rows if r["Name"] == row["Name"]]
            self.assertEqual(sum(int(r["Total Time (ns)"]) for r in mine), int(row["Total Time (ns)"]))
            self.assertEqual(sum(int(r["Num Calls"]) for r in mine), int(row["Num Calls"]))
        self.assertIn("do_step (model;1.c:42) < main (model;1.c:7)", {r["Called From"] for r in rows})
        self.assertIn("", {r["Called From"] for r in rows})  # those without a stack

    def test_every_format(self):
        for name in ("stack_line_sum", "stack_kern_sum", "stack_api_sum"):
            count = len(self.table(name))
            self.assertIn("model;1.c:42", run("report", self.capture, "--stats", name).stdout)
            self.assertIn("model;1.c:42", run("report", self.capture, "--stats", name, "--format", "markdown").stdout)
            self.assertIn("do_step", json.dumps(self.rows(name)))
            self.assertGreater(count, 2)

    def test_folded_by_weight(self):
        of = lambda weight: folded(run("report", self.capture, "--flamegraph", "-", "--weight", weight).stdout)
        time, number, idle, moved = of("time"), of("count"), of("idle"), of("bytes")
        self.assertTrue(all(stack.split(";")[0] == "main" for stack in time), time)
        self.assertEqual(time, folded(run("report", self.capture, "--flamegraph", "-").stdout))
        self.assertEqual(sum(number.values()), sum(int(r["Count"]) for r in self.table("stack_kern_sum")))
        self.assertEqual(sum(idle.values()), sum(int(r["Idle Before (ns)"]) for r in self.table("stack_kern_sum")))
        self.assertTrue(all(stack.split(";")[1] in ("do_load", "train+0x4") for stack in moved), moved)
        self.assertEqual(run("report", self.capture, "--weight", "idle", ok=False).returncode, 2)
        self.assertEqual(run("report", self.capture, "--flamegraph", "-", "--weight", "love", ok=False).returncode, 2)

    def test_an_empty_flame_graph_is_said(self):
        of = lambda weight: run("report", self.capture, "--flamegraph", "-", "--weight", weight)
        self.assertEqual((of("cpu").stdout, of("cpu").returncode), ("", 0))
        self.assertIn("there is nothing to weigh by cpu; perfkit run --cpu-sample records it", of("cpu").stderr)
        self.assertEqual(of("time").stderr, "")

    def test_difference_goes_by_names(self):
        other = make("anew.sqlite", base=1 << 30, line=8, more="UPDATE kernel SET duration = 2 * duration;")
        before, after = {}, {}
        for line in run("diff", self.capture, other, "--flamegraph", "-").stdout.splitlines():
            stack, a, b = line.rsplit(" ", 2)
            before[stack], after[stack] = int(a), int(b)
        kernels = [stack for stack in before if ";do_step;" in stack]
        self.assertTrue(kernels)
        self.assertEqual([after[s] for s in kernels], [2 * before[s] for s in kernels])
        self.assertTrue(all(before[s] == after[s] for s in before if s not in kernels))

    def test_speedscope_and_pprof_have_lines(self):
        run("report", self.capture, "--speedscope", "s.json", "--pprof", "p.pb.gz")
        with open("s.json") as file:
            frames = {f["name"]: f for f in json.load(file)["shared"]["frames"]}
        self.assertEqual((frames["do_step"]["file"], frames["do_step"]["line"]), ("/src/model;1.c", 42))
        self.assertEqual(frames["do_load"]["file"], "/bin/train")
        self.assertNotIn("line", frames["do_load"])
        with gzip.open("p.pb.gz") as file:
            profile = file.read()
        self.assertIn(b"/src/model;1.c", profile)
        if shutil.which("pprof"):
            told = subprocess.run(["pprof", "-lines", "-top", "p.pb.gz"], capture_output=True, text=True).stdout
            self.assertIn("/src/model;1.c:42", told)

    def test_damaged_stacks(self):
        make("damaged.sqlite", more="UPDATE stack SET parent = 5 - id; UPDATE symbol SET function = -1, line = 'x';"
                                    "UPDATE frame SET kind = 99, module = 12; INSERT INTO stack VALUES(77, 77, 77, -1);"
                                    "UPDATE transfer SET stack = 77; UPDATE memset SET stack = 'text';")
        for options in (["--stats", "stack_line_sum,stack_kern_sum,stack_api_sum"], ["--flamegraph", "-", "--weight", "idle"],
                        ["--speedscope", "d.json"], ["--pprof", "d.pb.gz"], ["--html", "d.html"]):
            run("report", "damaged.sqlite", *options)


shutil.rmtree(WORK, ignore_errors=True)
os.makedirs(WORK)
os.chdir(WORK)
unittest.main(argv=sys.argv[:1] + sys.argv[5:], verbosity=2)
