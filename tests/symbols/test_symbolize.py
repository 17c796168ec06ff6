"""perfkit symbolize: programs tell where they are and what a reader should find there; captures are made
of their addresses. Arguments: perfkit, report_tool, this folder, a folder to work in, the C compiler."""
import lzma, os, random, re, shutil, signal, sqlite3, struct, subprocess, sys, time, unittest

PERFKIT, TOOL, SOURCE, WORK, CC = sys.argv[1:6]
BESIDE = os.path.join(os.path.dirname(PERFKIT), "perfkit_symbolizer")
CXX = shutil.which("g++") or shutil.which("clang++")
CLANG = shutil.which("clang")
OBJCOPY = shutil.which("objcopy")
LINES = subprocess.run([BESIDE, "--reads"], capture_output=True, text=True).stdout.strip() == "lines"


def run(*command, ok=True, **options):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300, **options)
    if ok and done.returncode:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def tags(*files):
    found = {}
    for name in files:
        with open(os.path.join(SOURCE, name)) as text:
            for number, line in enumerate(text, 1):
                for tag in re.findall(r"@(\w+) \*/", line):
                    found[tag] = (name, number)
    return found


TAGS = tags("places.h", "places.c", "places.cpp")


def compile(name, *flags, source="places.c", compiler=None):
    compiler = compiler or (CXX if source.endswith("cpp") else CC)
    out = os.path.abspath(name)
    run(compiler, "-O2", "-o", out, os.path.join(SOURCE, source), *flags)
    return out


class Seen:
    """What a run of a program told of itself."""

    def __init__(self, program):
        self.path, self.places = program, []
        for line in run(program).stdout.splitlines():
            kind, rest = line.split(" ", 1)
            if kind == "base":
                start, size, _ = rest.split(" ", 2)
                self.start, self.size = int(start), int(size)
            else:
                address, expected = rest.split(" ", 1)
                chain = [link.replace("_namespace", " namespace").replace("_const", " const").split("@")
                         for link in expected.split(" ")]
                self.places.append((int(address, 16), [(name, *TAGS[tag]) for name, tag in chain]))
        if not self.places:
            raise AssertionError(program + " says nothing")


def build_id(path):
    found = re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", path).stdout)
    return found.group(1) if found else None


def quoted(value):
    return "NULL" if value is None else str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def capture(name, modules, addresses, start=None, pid=4242):
    """modules: (path, build id, start, size, segment); addresses: (address, module number from 1 or None)"""
    with open("/proc/sys/kernel/random/boot_id") as text:
        boot = text.read().strip()
    start = int((start or time.time()) * 1e9)
    sql = [f"INSERT INTO capture(state,command,boot_id,start_realtime_ns,start_mono_ns,duration) "
           f"VALUES('complete','./a','{boot}',{start},1,1000);",
           f"INSERT INTO process(id,pid,start) VALUES(1,{pid},0);"]
    for path, build, base, size, segment in modules:
        sql.append("INSERT INTO module(process,start,path,build_id,address,bytes,segment) VALUES(1,0,%s,%s,%d,%d,%s);"
                   % (quoted(path), quoted(build), base, size, quoted(segment)))
    for number, (address, module) in enumerate(addresses, 1):
        offset = None if module is None else address - modules[module - 1][2]
        sql.append(f"INSERT INTO frame(id,process,kind,address,module,offset) VALUES({number},1,1,"
                   f"{address - (1 << 64) if address >> 63 else address},{quoted(module)},{quoted(offset)});")
        sql.append(f"INSERT INTO stack(parent,frame,depth) VALUES(NULL,{number},1);")
    with open(name + ".sql", "w") as text:
        text.write("\n".join(sql))
    run(TOOL, "make", name + ".sql", name)
    return name


def of_program(name, seen, build=..., **options):
    build = build_id(seen.path) if build is ... else build
    return capture(name, [(seen.path, build, seen.start, seen.size, None)],
                   [(address, 1) for address, _ in seen.places], **options)


def ask(path, sql):
    with sqlite3.connect(path) as db:
        return db.execute(sql).fetchall()


def levels(path, frame):
    return ask(path, "SELECT f.value, replace(s.value, rtrim(s.value, replace(s.value,'/','')), ''), line FROM "
                     "symbol y LEFT JOIN string f ON f.id=y.function LEFT JOIN string s ON s.id=y.file "
                     f"WHERE frame={frame} ORDER BY level")


def state(path):
    return ask(path, "SELECT symbols FROM module")[0][0]


class Symbolize(unittest.TestCase):
    def symbolize(self, path, *options, ok=True, program=PERFKIT, **more):
        done = run(program, "symbolize", *options, path, ok=ok, **more)
        self.assertEqual(ask(path, "PRAGMA integrity_check"), [("ok",)])
        self.assertEqual(ask(path, "PRAGMA journal_mode"), [("delete",)])
        return done

    def whole(self, path, seen):
        """Every place has its whole chain of inlined calls, with lines."""
        for number, (_, expected) in enumerate(seen.places, 1):
            self.assertEqual(levels(path, number), expected)

    def names(self, path, seen):
        """Every place has the function that the linker knows."""
        for number, (_, expected) in enumerate(seen.places, 1):
            self.assertEqual(levels(path, number), [(expected[-1][0], None, None)])

    def check(self, name, *flags, **options):
        seen = Seen(compile(name, *flags, **options))
        path = of_program(name + ".sqlite", seen)
        self.symbolize(path)
        (self.whole if LINES else self.names)(path, seen)
        self.assertEqual(state(path), "names and lines" if LINES else "names")
        return seen, path

    def test_formats_of_debug_information(self):
        self.check("dwarf5", "-g", "-gdwarf-5")
        self.check("dwarf4", "-g", "-gdwarf-4")
        self.check("compressed", "-g", "-gz")
        self.check("static", "-g", "-static")
        self.check("fixed", "-g", "-no-pie")

    def test_split(self):
        self.check("split", "-g", "-gsplit-dwarf")

    @unittest.skipUnless(CXX, "no C++ compiler")
    def test_cpp(self):
        self.check("cpp", "-g", source="places.cpp")

    @unittest.skipUnless(CLANG, "no clang")
    def test_clang(self):
        self.check("clang", "-g", compiler=CLANG)  # writes no .debug_aranges

    def test_names_only(self):
        seen = Seen(compile("plain", "-s", "-g0"))
        path = of_program("stripped.sqlite", seen)
        self.symbolize(path)
        self.assertTrue(state(path).startswith("none: "), state(path))
        self.assertEqual(ask(path, "SELECT count(*) FROM symbol"), [(0,)])
        seen = Seen(compile("plain", "-g0"))
        path = of_program("plain.sqlite", seen)
        self.symbolize(path)
        self.names(path, seen)
        self.assertEqual(state(path), "names")
        seen = Seen(compile("exports", "-s", "-g0", "-rdynamic"))
        path = of_program("exports.sqlite", seen)
        self.symbolize(path)
        self.assertEqual(state(path), "exported names")
        self.assertEqual(levels(path, 2), [("visible", None, None)])

    @unittest.skipUnless(OBJCOPY and LINES, "no objcopy, or no elfutils")
    def test_the_symbol_table_that_is_left_compressed(self):
        """MiniDebugInfo, as distributions make it: the symbol table in an ELF file of its own, xz, in a section."""
        program = compile("mini", "-g0")
        seen = Seen(program)
        run(OBJCOPY, "--only-keep-debug", program, "mini.symbols")
        with open("mini.symbols", "rb") as whole, open("mini.xz", "wb") as packed:
            packed.write(lzma.compress(whole.read()))
        run(OBJCOPY, "--strip-all", "--add-section=.gnu_debugdata=mini.xz", program)
        path = of_program("mini.sqlite", seen)
        self.symbolize(path)
        self.names(path, seen)
        self.assertEqual(state(path), "names")
        for content in (b"", b"xz", lzma.compress(b"no ELF"), lzma.compress(bytes(64 << 20))):
            with open("mini.xz", "wb") as packed:
                packed.write(content)
            run(OBJCOPY, "--remove-section=.gnu_debugdata", program)
            run(OBJCOPY, "--add-section=.gnu_debugdata=mini.xz", program)
            path = of_program("mini.sqlite", seen)
            self.symbolize(path)
            self.assertTrue(state(path).startswith("none: "), (content[:8], state(path)))

    @unittest.skipUnless(OBJCOPY, "no objcopy")
    def test_separate_debug_files(self):
        wanted = self.whole if LINES else self.names
        for way in ("link", ".debug", "id", "folder", "no id"):
            os.makedirs("apart", exist_ok=True)
            program = compile("apart/program", "-g", *(["-Wl,--build-id=none"] if way == "no id" else []))
            seen, build = Seen(program), build_id(program)
            run(OBJCOPY, "--only-keep-debug", program, "apart/program.debug")
            run(OBJCOPY, "--strip-all", program)
            if way != "id":
                run(OBJCOPY, "--add-gnu-debuglink=apart/program.debug", program)
            place = {"link": "apart/program.debug", ".debug": "apart/.debug/program.debug",
                     "id": f"store/.build-id/{(build or '')[:2]}/{(build or '')[2:]}.debug",
                     "folder": "store/program.debug", "no id": "apart/program.debug"}[way]
            os.makedirs(os.path.dirname(place), exist_ok=True)
            os.replace("apart/program.debug", place)
            path = of_program("apart.sqlite", seen, start=time.time() + 10)
            said = self.symbolize(path, *(["--debug-dir", "nowhere:store"] if place.startswith("store") else [])).stderr
            self.assertEqual("nowhere is not a folder" in said, place.startswith("store"), said)
            self.assertNotIn("store is not a folder", said)
            wanted(path, seen)
            self.assertIn(os.path.basename(place), state(path), way)
            shutil.rmtree("apart")
            shutil.rmtree("store", ignore_errors=True)

    @unittest.skipUnless(OBJCOPY, "no objcopy")
    def test_a_debug_file_of_another_build_is_refused(self):
        os.makedirs("wrong", exist_ok=True)
        compile("wrong/program", "-g", "-DVERSION=2")
        run(OBJCOPY, "--only-keep-debug", "wrong/program", "wrong/program.debug")
        program = compile("wrong/program", "-g", "-Wl,--build-id=none")
        seen = Seen(program)
        run(OBJCOPY, "--strip-all", program)
        run(OBJCOPY, "--add-gnu-debuglink=wrong/program.debug", program)
        with open("wrong/program.debug", "r+b") as file:  # its checksum is another now
            file.seek(-1, 2)
            last = file.read(1)
            file.seek(-1, 2)
            file.write(bytes([last[0] ^ 1]))
        path = of_program("wrong.sqlite", seen, start=time.time() + 10)
        self.symbolize(path)
        self.assertEqual(ask(path, "SELECT count(*) FROM symbol"), [(0,)])

    def test_the_debug_file_is_enough(self):
        if not OBJCOPY:
            self.skipTest("no objcopy")
        program = compile("gone", "-g")
        seen, build = Seen(program), build_id(program)
        os.makedirs(f"kept/.build-id/{build[:2]}", exist_ok=True)
        run(OBJCOPY, "--only-keep-debug", program, f"kept/.build-id/{build[:2]}/{build[2:]}.debug")
        path = of_program("gone.sqlite", seen, build)
        os.unlink(program)
        self.symbolize(path, "--debug-dir", "kept")
        (self.whole if LINES else self.names)(path, seen)

    @unittest.skipUnless(OBJCOPY, "no objcopy")
    def test_a_debug_file_of_gigabytes_is_not_read_whole(self):
        program = compile("large", "-g")
        seen, build = Seen(program), build_id(program)
        place = f"gigabytes/.build-id/{build[:2]}/{build[2:]}.debug"
        os.makedirs(os.path.dirname(place))
        run(OBJCOPY, "--only-keep-debug", program, place)
        run(OBJCOPY, "--strip-all", program)
        os.truncate(place, 20 << 30)  # more than memory; a hole costs no disk
        path = of_program("large.sqlite", seen)
        self.symbolize(path, "--debug-dir", "gigabytes")
        (self.whole if LINES else self.names)(path, seen)

    def test_a_file_built_anew_is_refused(self):
        seen = Seen(compile("changed", "-g"))
        path = of_program("changed.sqlite", seen)
        compile("changed", "-g", "-DVERSION=2")
        self.assertIn("frames without a name: " + seen.path + ": it is of another build", self.symbolize(path).stderr)
        self.assertEqual(ask(path, "SELECT count(*) FROM symbol"), [(0,)])
        self.assertEqual(state(path), "none: it is of another build than the program had")

    def test_without_a_build_id_the_time_tells(self):
        seen = Seen(compile("timed", "-g", "-Wl,--build-id=none"))
        now = os.stat(seen.path).st_mtime
        path = of_program("timed.sqlite", seen, None, start=now + 5)
        self.symbolize(path)
        (self.whole if LINES else self.names)(path, seen)
        path = of_program("timed.sqlite.later", seen, None, start=now - 60)
        self.symbolize(path)
        self.assertEqual(ask(path, "SELECT count(*) FROM symbol"), [(0,)])

    def test_names_that_cannot_be_found_again_stay(self):
        seen = Seen(compile("stays", "-g"))
        path = of_program("stays.sqlite", seen)
        self.symbolize(path)
        before = ask(path, "SELECT frame,level,function,file,line FROM symbol ORDER BY frame,level")
        strings = ask(path, "SELECT count(*) FROM string")
        self.symbolize(path)
        self.assertEqual(ask(path, "SELECT frame,level,function,file,line FROM symbol ORDER BY frame,level"), before)
        self.assertEqual(ask(path, "SELECT count(*) FROM string"), strings)
        was = state(path)
        os.unlink(seen.path)
        self.assertIn("names that were found before are kept", self.symbolize(path).stderr)
        self.assertEqual(ask(path, "SELECT frame,level,function,file,line FROM symbol ORDER BY frame,level"), before)
        self.assertEqual(state(path), was)

    def test_a_mapping_of_a_segment(self):
        seen = Seen(compile("segment", "-g"))
        headers = run("readelf", "-lW", seen.path).stdout
        offset, virtual = next((int(a, 16), int(b, 16)) for a, b, flags in re.findall(
            r"LOAD\s+(0x[0-9a-f]+) (0x[0-9a-f]+) \S+ \S+ \S+ (.{3})", headers) if "E" in flags)
        low = seen.start + virtual - virtual % 4096
        path = capture("segment.sqlite", [(seen.path, build_id(seen.path), low, seen.size, offset - offset % 4096)],
                       [(address, 1) for address, _ in seen.places])
        self.symbolize(path)
        (self.whole if LINES else self.names)(path, seen)

    def test_many_processes_share_a_file(self):
        seen = Seen(compile("shared", "-g"))
        modules = [(seen.path, build_id(seen.path), seen.start + k * (1 << 24), seen.size, None) for k in range(5)]
        path = capture("shared.sqlite", modules, [(address + k * (1 << 24), k + 1) for k in range(5)
                                                  for address, _ in seen.places])
        self.symbolize(path)
        expected = [chain for _, chain in seen.places] * 5
        for number, chain in enumerate(expected, 1):
            self.assertEqual(levels(path, number), chain if LINES else [(chain[-1][0], None, None)])

    def test_vdso(self):
        with open("/proc/self/maps") as maps:
            line = next((l for l in maps if "[vdso]" in l), None)
        if not line:
            self.skipTest("no vdso here")
        start, end = (int(x, 16) for x in line.split()[0].split("-"))
        addresses = [(a, 1) for a in range(start, end, 16)]
        path = capture("vdso.sqlite", [("[vdso]", None, start, end - start, None)], addresses)
        self.symbolize(path)
        names = {row[0] for row in ask(path, "SELECT value FROM symbol JOIN string f ON f.id=function")}
        self.assertTrue(names & {"__vdso_clock_gettime", "clock_gettime", "__kernel_clock_gettime"}, names)
        with sqlite3.connect(path) as db:
            db.execute("UPDATE capture SET boot_id='another'")
            db.execute("DELETE FROM symbol")
        self.symbolize(path)
        self.assertEqual(ask(path, "SELECT count(*) FROM symbol"), [(0,)])

    def test_perf_map(self):
        pid = 3999999
        name = f"/tmp/perf-{pid}.map"
        with open(name, "w") as text:
            text.write("7f0000000000 100 old name\n"
                       "7f0000000000 80 JIT of <script> & more\n"
                       "0x7f0000001000 0x10 py::forward:/src/model.py\n"
                       "not a line\n\nffffffffffffffff ffffffffffffffff high\n7f0000002000 zz\n7f0000002000 10")
        try:
            where = [0x7f0000000004, 0x7f0000000090, 0x7f0000001004, 0x7f0000002001, 0x7f0000009000]
            path = capture("map.sqlite", [], [(a, None) for a in where], start=time.time() - 1, pid=pid)
            self.symbolize(path)
            self.assertEqual(levels(path, 1), [("JIT of <script> & more", None, None)])
            self.assertEqual(levels(path, 2), [("old name", None, None)])
            self.assertEqual(levels(path, 3), [("forward", "model.py", None)])
            self.assertEqual(levels(path, 4) + levels(path, 5), [])
            path = capture("map.sqlite.later", [], [(a, None) for a in where], start=time.time() + 60, pid=pid)
            self.symbolize(path)  # the map is older than the process
            self.assertEqual(ask(path, "SELECT count(*) FROM symbol"), [(0,)])
        finally:
            os.unlink(name)

    def jitdump(self):
        def record(kind, body):
            return struct.pack("<IIQ", kind, 16 + len(body), 1) + body

        def load(address, size, name):
            return record(0, struct.pack("<IIQQQQ", 7, 7, 0, address, size, 1) + name + b"\0" + b"\x90" * size)

        lines = struct.pack("<QQ", 0x1000, 3) + struct.pack("<QII", 0x1000, 10, 0) + b"/src/jit.js\0" + \
            struct.pack("<QII", 0x1008, 11, 0) + b"\xff\0" + struct.pack("<QII", 0x1010, 12, 0) + b"other.js\0"
        return struct.pack("<IIIIIIQQ", 0x4a695444, 1, 40, 62, 0, 7, 0, 0) + load(0x1000, 64, b"before") + \
            record(2, lines) + load(0x1000, 32, b"compiled") + load(0x5000, 16, b"alone") + \
            record(1, struct.pack("<IIQQQQQ", 7, 7, 0, 0x5000, 0x6000, 16, 2)) + record(3, b"")

    def dumped(self, content):
        name = os.path.abspath("jit-77.dump")
        with open(name, "wb") as file:
            file.write(content)
        where = [0x1004, 0x100a, 0x1011, 0x1021, 0x5004, 0x6004, 0x9000]
        path = capture("jit.sqlite", [(name, None, 1 << 40, 4096, 0)], [(a, None) for a in where], pid=77)
        self.symbolize(path)
        return [levels(path, n) for n in range(1, 8)]

    def test_jitdump(self):
        whole = self.jitdump()
        self.assertEqual(self.dumped(whole), [
            [("compiled", "jit.js", 10)], [("compiled", "jit.js", 11)], [("compiled", "other.js", 12)], [("before", None, None)], [("alone", None, None)],
            [("alone", None, None)], []])
        for cut in range(0, len(whole), 37):
            self.dumped(whole[:cut])

    def test_hostile_object_files(self):
        with open(compile("victim", "-g"), "rb") as file:
            good = file.read()
        seen, chance = Seen(os.path.abspath("victim")), random.Random(7)
        where = [(a, 1) for a, _ in seen.places] + [(seen.start + chance.randrange(seen.size), 1) for _ in range(20)]

        def attack(content):
            with open("hostile", "wb") as file:
                file.write(content)
            path = capture("hostile.sqlite", [(os.path.abspath("hostile"), None, seen.start, seen.size, None)],
                           where, start=time.time() + 60)
            self.symbolize(path)
            self.assertLess(ask(path, "SELECT coalesce(max(length(CAST(value AS BLOB))),0) FROM string")[0][0], 70000)

        attack(b"")
        attack(good[:64])
        attack(b"\x7fELF" + b"\xff" * 4096)
        for _ in range(6):
            attack(good[:chance.randrange(len(good))])
        for _ in range(20):
            bad = bytearray(good)
            for _ in range(chance.choice((1, 10, 300))):
                bad[chance.randrange(len(bad))] = chance.randrange(256)
            attack(bytes(bad))
        for _ in range(10):  # the headers, the section headers
            bad = bytearray(good)
            at = chance.choice((0, struct.unpack_from("<Q", good, 40)[0]))
            for _ in range(8):
                bad[min(len(bad) - 1, at + chance.randrange(400))] = chance.choice((0, 0xff, 0x80, 1))
            attack(bytes(bad))

    def test_things_that_are_no_files(self):
        os.makedirs("folder", exist_ok=True)
        if not os.path.exists("pipe"):
            os.mkfifo("pipe")
        for name in ("folder", "pipe", "nothing", "/dev/zero", "x" * 5000, ""):
            where = os.path.abspath(name) if name else ""
            path = capture("odd.sqlite", [(where, None, 4096, 8192, None)], [(5000, 1), (4096, 1)])
            self.symbolize(path)
            self.assertTrue(state(path).startswith("none: "), name)

    def other_helper(self, text):
        os.makedirs("other", exist_ok=True)
        shutil.copy(PERFKIT, "other/perfkit")
        if os.path.exists("other/perfkit_symbolizer"):
            os.unlink("other/perfkit_symbolizer")
        if text is not None:
            with open("other/perfkit_symbolizer", "w") as file:
                file.write("#!/bin/sh\n" + text)
            os.chmod("other/perfkit_symbolizer", 0o755)
        return os.path.abspath("other/perfkit")

    def test_a_reader_that_comes_to_grief(self):
        seen = Seen(compile("grief", "-g"))
        for text in ("kill -SEGV $$", "head -c 200000 /dev/urandom >&0", "exit 0", "cat >/dev/null; exit 3",
                     "printf '\\001\\000\\000\\000\\377\\377\\377\\377' >&0"):
            path = of_program("grief.sqlite", seen)
            done = self.symbolize(path, program=self.other_helper(text))
            self.assertIn("could not be parsed", done.stderr)
            self.assertTrue(state(path).startswith("none: "), state(path))
        path = of_program("grief.sqlite", seen)
        done = self.symbolize(path, program=self.other_helper(None), ok=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("perfkit_symbolizer", done.stderr)

    def test_an_interrupt_keeps_what_was_found(self):
        """Two files: the first is read, at the second the reader takes its time."""
        first, second = (Seen(compile(name, "-g")) for name in ("first", "second"))
        addresses = [(a, 1) for a, _ in first.places] + [(a, 2) for a, _ in second.places]
        path = capture("stopped.sqlite", [(s.path, build_id(s.path), s.start, s.size, None) for s in (first, second)],
                       addresses)
        program = self.other_helper(f"mkdir once 2>/dev/null && exec {BESIDE}\ntouch waiting\nexec sleep 100")
        for leftover in ("once", "waiting"):
            if os.path.exists(leftover):
                (os.rmdir if os.path.isdir(leftover) else os.unlink)(leftover)
        with subprocess.Popen([program, "symbolize", path], stderr=subprocess.PIPE, text=True) as running:
            while not os.path.exists("waiting"):
                self.assertIsNone(running.poll())
                time.sleep(0.02)
            running.send_signal(signal.SIGINT)
            said = running.communicate(timeout=300)[1]
        self.assertEqual(running.returncode, -signal.SIGINT, said)
        self.assertIn("interrupted: what was found until then is kept", said)
        named = {row[0] for row in ask(path, "SELECT DISTINCT frame FROM symbol")}
        self.assertIn(len(named), (len(first.places), len(second.places)))
        self.assertEqual(ask(path, "SELECT count(*) FROM module WHERE symbols IS NULL"), [(1,)])
        self.symbolize(path)
        self.assertEqual(ask(path, "SELECT count(DISTINCT frame) FROM symbol"), [(len(addresses),)])

    def test_usage(self):
        path = capture("empty.sqlite", [], [])
        self.assertIn("no native stacks", self.symbolize(path).stderr)
        self.assertEqual(run(PERFKIT, "symbolize", "absent.sqlite", ok=False).returncode, 2)
        with sqlite3.connect(path) as db:
            db.execute("UPDATE capture SET state='recording'")
        self.assertEqual(run(PERFKIT, "symbolize", path, ok=False).returncode, 2)


shutil.rmtree(WORK, ignore_errors=True)
os.makedirs(WORK)
os.chdir(WORK)
unittest.main(argv=sys.argv[:1] + sys.argv[6:], verbosity=2)
