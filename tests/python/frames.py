"""Python frames as perfkit reads them against those that the interpreter itself tells, at the same
place. Runs in the interpreter under test: frames.py PROBE [unittest arguments]."""
import asyncio
import contextlib
import ctypes
import functools
import gc
import os
import subprocess
import sys
import threading
import time
import unittest

PROBE = os.path.abspath(sys.argv[1])
ROOM = 256


def load(kind):
    library = kind(PROBE)
    library.probe_stack.restype = ctypes.c_size_t
    library.probe_stack.argtypes = [ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t, ctypes.c_size_t]
    for name in ("function", "file", "health"):
        getattr(library, "probe_" + name).restype = ctypes.c_char_p
    for name in ("function", "file", "line", "is_python"):
        getattr(library, "probe_" + name).argtypes = [ctypes.c_uint64]
    library.probe_untold.restype = ctypes.c_uint64
    library.probe_copies.restype = ctypes.c_size_t
    library.probe_copies.argtypes = [ctypes.c_uint64, ctypes.c_size_t, ctypes.c_size_t]
    library.probe_table_line.argtypes = [ctypes.c_uint, ctypes.c_char_p, ctypes.c_size_t,
                                         ctypes.c_uint, ctypes.c_uint]
    return library


WITHOUT_LOCK = load(ctypes.CDLL)  # gives the interpreter's lock away during the call, as PyTorch does
WITH_LOCK = load(ctypes.PyDLL)
CALLBACK = ctypes.CFUNCTYPE(None)
NAMELESS = ("", "", 0)


def name_of(code):
    return getattr(code, "co_qualname", code.co_name)


def chain(frame):
    frames = []
    while frame:
        frames.append((name_of(frame.f_code), frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return frames


def told(library, entry):
    """One entry: a frame, or None for a native one."""
    if not library.probe_is_python(entry):
        return None
    if library.probe_function(entry) is None:
        return NAMELESS
    return (library.probe_function(entry).decode(), os.fsdecode(library.probe_file(entry)),
            library.probe_line(entry))


def look(library=WITHOUT_LOCK, room=ROOM, depth=512):
    """(what perfkit sees, innermost first with None for native frames; what the interpreter says;
    how many entries there would be)"""
    entries = (ctypes.c_uint64 * room)()
    count, frames = library.probe_stack(entries, room, depth), chain(sys._getframe())
    return [told(library, entries[i]) for i in range(min(count, room))], frames, count


def python_frames(seen):
    return [frame for frame in seen if frame]


@contextlib.contextmanager
def manager(body):
    try:
        yield body()
    finally:
        body()


class Resource:
    def __init__(self, body):
        self.body = body

    def __del__(self):
        self.body()

    @property
    def value(self):
        return self.body()

    def __lt__(self, other):
        self.body()
        return False

    def __getattr__(self, name):
        if name == "missing":
            return self.body()
        raise AttributeError(name)


def in_child(body):
    """The status with which a forked process ends that returns what `body` does. Threads of tests before this one have been
    joined, but may still hold a sanitizer's lock, which the child would then wait for."""
    for _ in range(10000):
        if len(os.listdir("/proc/self/task")) == 1:
            break
        time.sleep(0.001)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = body()
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


class Frames(unittest.TestCase):
    maxDiff = None

    def check(self):
        """Called at the place in question."""
        for library in (WITHOUT_LOCK, WITH_LOCK):
            seen, frames, count = look(library)
            self.assertEqual(python_frames(seen), frames)
            self.assertLessEqual(count, ROOM)
        self.checked += 1

    def setUp(self):
        self.checked = 0

    def tearDown(self):
        self.assertGreater(self.checked, 0)
        self.assertEqual(WITHOUT_LOCK.probe_health(), b"")

    def test_calls(self):
        self.check()
        (lambda: self.check())()
        [self.check() for _ in range(2)]
        {self.check(): self.check() for _ in range(2)}
        (
            self
            .check()
        )

        def inner(*args, **kwargs):
            def innermost(): self.check()
            innermost()
        inner(1, a=2)
        functools.partial(inner, 3)()

        class Body:
            self.check()

        exec("def made(f):\n\n  f()\nmade(f)", {"f": self.check})
        eval("f()", {"f": self.check})

    def test_from_c(self):
        sorted([3, 1, 2], key=lambda value: self.check() or value)
        list(map(lambda value: self.check(), [1, 2]))
        functools.reduce(lambda a, b: self.check(), [1, 2, 3])
        resource = Resource(self.check)
        resource.value
        resource.missing
        sorted([resource, resource])
        min([1, 2], key=lambda value: self.check() or value)

    def test_reentered(self):
        def deeper(levels):
            self.check()
            if levels:
                WITHOUT_LOCK.probe_call(CALLBACK(lambda: deeper(levels - 1)))
        deeper(4)
        self.assertEqual(self.checked, 5)

    def test_generators(self):
        def leaf():
            got = yield self.check()
            self.check()
            return got

        def middle():
            try:
                yield from leaf()
            finally:
                self.check()

        def outer():
            for value in middle():
                yield value
        list(outer())
        generator = middle()
        next(generator)
        with self.assertRaises(KeyError):
            generator.throw(KeyError())
        generator = middle()
        next(generator)
        generator.close()
        sum(self.check() or 1 for _ in range(3))

    def test_coroutines(self):
        async def leaf():
            await asyncio.sleep(0)
            self.check()

        async def each():
            for _ in range(2):
                yield await leaf()

        async def root():
            await asyncio.gather(leaf(), leaf())
            async for _ in each():
                self.check()
        asyncio.run(root())

    def test_exceptions(self):
        with manager(self.check):
            pass
        with contextlib.suppress(ValueError):
            with manager(self.check):
                raise ValueError
        try:
            raise KeyError
        except KeyError:
            self.check()
            try:
                raise ValueError
            except ValueError:
                self.check()
        finally:
            self.check()

    def test_finalizers(self):
        resource = Resource(self.check)
        del resource
        ring = [Resource(self.check)]
        ring.append(ring)
        del ring
        before = self.checked
        gc.collect()
        self.assertEqual(self.checked, before + 1)

    def test_deep(self):
        def down(levels):
            return down(levels - 1) if levels else look()
        for levels in (1, 30, 90):
            seen, frames, count = down(levels)
            self.assertEqual(python_frames(seen), frames)
        seen, frames, count = down(600)
        self.assertEqual(len(seen), ROOM)
        self.assertGreater(count, ROOM)
        found = python_frames(seen)
        self.assertEqual(found, frames[:len(found)])
        self.assertGreater(len(found), ROOM // 2)

        def down_in_c(levels):
            return max([levels], key=lambda value: 0) and \
                list(map(lambda value: down_in_c(value - 1), [levels]))[0] if levels else look()
        seen, frames, count = down_in_c(100)
        found = python_frames(seen)
        self.assertEqual(found, frames[:len(found)])
        self.checked += 1

    def test_room(self):
        whole, frames, count = look()
        self.assertGreater(count, 10)
        for room in range(1, count + 1):
            seen, frames, again = look(room=room)
            self.assertEqual(len(seen), min(room, again))
            self.assertEqual(again > room, count > room)
            found = python_frames(seen)
            self.assertEqual(found, frames[:len(found)])
        self.checked += 1

    def test_cut_native_stacks(self):
        """Wherever the native unwinder stops, every Python frame is there, in its order."""
        def inside():
            for depth in range(0, 60):
                for library in (WITHOUT_LOCK, WITH_LOCK):
                    seen, frames, _ = look(library, depth=depth)
                    self.assertEqual(python_frames(seen), frames)
            self.checked += 1
        WITHOUT_LOCK.probe_call(CALLBACK(inside))

    def test_order(self):
        """Native frames between Python frames: of ctypes and the library, none of the interpreter."""
        results = []
        WITHOUT_LOCK.probe_call(CALLBACK(lambda: results.append(look())))
        seen, frames, _ = results[0]
        self.assertIsNone(seen[0])  # the probe itself
        at = [i for i, frame in enumerate(seen) if frame]
        names = [seen[i][0].rpartition(".")[2] for i in at]
        self.assertEqual(names[:3], ["look", "<lambda>", "test_order"])
        self.assertEqual(at[1], at[0] + 1)     # a call within one loop, or by the interpreter alone
        self.assertGreater(at[2], at[1] + 1)   # through ctypes and the library, which stay
        self.assertEqual(at[3], at[2] + 1)
        inner = [None if frame is None else 1 for frame in seen[at[2]:at[-1]]]
        self.assertNotIn(None, inner)
        self.checked += 1

    def test_threads(self):
        wrong = []
        barrier = threading.Barrier(8)

        def work(number):
            def down(levels):
                if levels:
                    return down(levels - 1)
                barrier.wait()
                for _ in range(200):
                    seen, frames, _ = look()
                    if python_frames(seen) != frames:
                        wrong.append((seen, frames))
            down(number)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        self.checked += 1

    def test_threads_at_the_first_stack(self):
        """Each proves the layout for itself while it is not proved: none goes without its frames."""
        def body():
            wrong = []
            for _ in range(30):
                WITHOUT_LOCK.probe_damage(2, 0)  # moves nothing, and forgets the proof
                barrier = threading.Barrier(6)

                def work():
                    barrier.wait()
                    seen, frames, _ = look()
                    if python_frames(seen) != frames:
                        wrong.append(seen)
                threads = [threading.Thread(target=work) for _ in range(6)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            return 2 if wrong else 0
        self.assertEqual(os.WEXITSTATUS(in_child(body)), 0)
        self.checked += 1

    def test_code_at_the_same_address(self):
        """Freed code objects leave their addresses to others, which differ in a line or a name only."""
        addresses = set()
        for i in range(600):
            source = "\n" * (i % 7) + "def f%d(look):\n" % (i % 3) + "\n" * (i % 5) + "  return look()\n"
            scope = {}
            exec(compile(source, "made", "exec"), scope)
            function = scope["f%d" % (i % 3)]
            addresses.add(id(function.__code__))
            seen, frames, _ = function(look)
            self.assertEqual(python_frames(seen), frames)
            del scope, function
        self.assertLess(len(addresses), 580)
        self.checked += 1

    def test_defined_once(self):
        look()
        before = WITHOUT_LOCK.probe_definitions()
        for _ in range(1000):
            look()
        self.assertEqual(WITHOUT_LOCK.probe_definitions(), before)
        self.checked += 1

    def test_more_code_than_there_is_room_for(self):
        """Each is told once or never; what was told stays told, what was not is counted."""
        code = look.__code__

        def fill():
            return WITHOUT_LOCK.probe_copies(id(code), code.__sizeof__(), 90000)

        def body():
            look()
            before = WITHOUT_LOCK.probe_definitions()
            told = fill()
            after, scope = WITHOUT_LOCK.probe_definitions(), {}
            for i in range(20):
                exec(compile("def f%d(look): return look()" % i, "late", "exec"), scope)
            late = [scope["f%d" % i](look)[:2] for i in range(20)]
            nameless = sum(python_frames(seen).count(NAMELESS) for seen, _ in late)
            late_told = WITHOUT_LOCK.probe_definitions() - after
            if not 50000 < told < 70000 or after - before != told or fill() != told:
                return 2
            if WITHOUT_LOCK.probe_untold() != nameless:
                return 3
            for seen, frames in late:
                if [f for f in zip(python_frames(seen), frames) if f[0] not in (NAMELESS, f[1])]:
                    return 4
                if len(python_frames(seen)) != len(frames):
                    return 5
            return 0 if nameless > 0 and late_told + nameless >= 20 else 6
        self.assertEqual(os.WEXITSTATUS(in_child(body)), 0)
        self.checked += 1

    def test_names(self):
        for name in ("fünf", "数字", "𝔘𝔫𝔦"):
            scope = {}
            exec(compile("def %s(look): return look()" % name, "datei_ü_数_\U0001f680.py", "exec"), scope)
            seen, frames, _ = next(v for k, v in scope.items() if k not in ("__builtins__",))(look)
            self.assertEqual(python_frames(seen), frames)
        scope = {}
        exec(compile("def f(look): return look()", os.fsdecode(b"bad\xff.py"), "exec"), scope)
        seen, frames, _ = scope["f"](look)
        self.assertEqual(python_frames(seen), frames)
        self.checked += 1

    def test_fork(self):
        def body():
            seen, frames, _ = look()
            return 0 if python_frames(seen) == frames else 1
        self.assertEqual(in_child(body), 0)
        self.checked += 1

    def test_trace_function(self):
        def trace(frame, event, argument):
            if frame.f_code is traced.__code__:
                self.check()
            return trace

        def traced():
            a = 1
            return a
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            traced()
        finally:
            sys.settrace(before)


class Lines(unittest.TestCase):
    def codes(self, code):
        yield code
        for constant in code.co_consts:
            if hasattr(constant, "co_code"):
                yield from self.codes(constant)

    def lines(self, code):
        result = {}
        for start, end, line in code.co_lines():
            for offset in range(start, end, 2):
                result[offset] = line or 0
        return result

    def test_tables(self):
        version = sys.version_info[0] << 8 | sys.version_info[1]
        compared = 0
        for module in (argparse_file(), os.__file__, unittest.case.__file__, __file__,
                       threading.__file__, asyncio.base_events.__file__):
            with open(module, encoding="utf-8") as file:
                code = compile(file.read(), module, "exec")
            for part in self.codes(code):
                table = part.co_linetable
                for offset, line in self.lines(part).items():
                    got = WITHOUT_LOCK.probe_table_line(version, table, len(table),
                                                        part.co_firstlineno, offset)
                    self.assertEqual(got, line, (module, part.co_name, offset))
                    compared += 1
        self.assertGreater(compared, 10000)

    def test_damaged_tables(self):
        for version in (0x30a, 0x30b, 0x30d):
            for table in (b"", b"\x80", b"\xf0" * 50, b"\xff" * 9, bytes(range(256)), b"\xf0\x7f\x7f\x7f"):
                for offset in (0, 2, 100, 0xfffffffe, 0xffffffff):
                    WITHOUT_LOCK.probe_table_line(version, table, len(table), 1, offset)


def argparse_file():
    import argparse
    return argparse.__file__


class Refusals(unittest.TestCase):
    """What is not as expected ends the reading, never the program."""

    def test_wrong_layouts(self):
        refused = 0
        for at in range(2, WITHOUT_LOCK.probe_layout_bytes(), 2):
            for by in (8,) if os.environ.get("PERFKIT_SANITIZER_RUNTIME") else (8, -8, 4096):
                def body():
                    WITHOUT_LOCK.probe_damage(at, by)
                    for _ in range(5):
                        seen, frames, _ = look()
                    found = python_frames(seen)
                    if not found:
                        return 0
                    # The field is not of this version, or tells one name for another.
                    lines = [line for _, _, line in found]
                    return 2 if lines == [line for _, _, line in frames[:len(found)]] else 4
                status = in_child(body)
                self.assertTrue(os.WIFEXITED(status), (at, by, status))
                self.assertIn(os.WEXITSTATUS(status), (0, 2), (at, by))
                refused += os.WEXITSTATUS(status) == 0
        self.assertGreater(refused, 6)

    def test_subinterpreters(self):
        code = ("import ctypes\n"
                "library = ctypes.CDLL(%r)\n"
                "library.probe_stack.restype = ctypes.c_size_t\n"
                "entries = (ctypes.c_uint64 * 128)()\n"
                "def inside(): return library.probe_stack(entries, 128, 512)\n"
                "count = inside()\n"
                "library.probe_function.restype = ctypes.c_char_p\n"
                "library.probe_function.argtypes = [ctypes.c_uint64]\n"
                "library.probe_is_python.argtypes = [ctypes.c_uint64]\n"
                "names = [library.probe_function(e) for e in entries[:count] if library.probe_is_python(e)]\n"
                "assert b'inside' not in names, names\n" % PROBE)
        try:
            import _interpreters as interpreters
            create = lambda: interpreters.create("legacy")
        except ImportError:
            import _xxsubinterpreters as interpreters
            create = lambda: interpreters.create(isolated=False)

        def body():
            look()
            failed = interpreters.run_string(create(), code)
            seen, frames, _ = look()
            return 0 if python_frames(seen) == frames and not failed else 1
        self.assertEqual(in_child(body), 0)

    def test_the_end_comes_during_a_walk(self):
        """It is looked for before each frame and each code object: what is left is not read."""
        def down(levels):
            return down(levels - 1) if levels else look()

        def body():
            whole = len(down(20)[1])
            WITHOUT_LOCK.probe_end_after(1000)
            down(20)
            asked = 1000 - WITHOUT_LOCK.probe_asks_left()
            if asked < 2 * whole:
                return 2
            walked = asked - whole  # then the code of each frame
            for left in range(1, asked + 1):
                WITHOUT_LOCK.probe_end_after(left)
                found = python_frames(down(20)[0])
                told = [frame for frame in found if frame != NAMELESS]
                if left <= walked and found or left > walked and len(told) != left - walked - 1:
                    return 3
            return 0
        self.assertEqual(os.WEXITSTATUS(in_child(body)), 0)

    def test_the_end(self):
        """Threads that go on while the interpreter is taken down around them."""
        code = ("import ctypes, sys, threading\n"
                "library = ctypes.CDLL(%r)\n"
                "library.probe_stack.restype = ctypes.c_size_t\n"
                "def work():\n"
                "    entries = (ctypes.c_uint64 * 128)()\n"
                "    while True: library.probe_stack(entries, 128, 512)\n"
                "for _ in range(4): threading.Thread(target=work, daemon=True).start()\n"
                "sys.stdout.write('end')\n" % PROBE)
        for _ in range(5):
            result = subprocess.run([sys.executable, "-c", code], capture_output=True)
            self.assertEqual((result.returncode, result.stdout), (0, b"end"), result.stderr)


if __name__ == "__main__":
    del sys.argv[1]
    unittest.main(verbosity=2)
