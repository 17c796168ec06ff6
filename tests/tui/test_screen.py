"""perfkit top in a terminal: what a user sees in tmux, and what a terminal is sent and left with
under a pseudo-terminal. Nothing here waits for a fixed time; frames are waited for."""
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

BUILD = os.path.abspath(os.environ.get("PERFKIT_TUI_BUILD", "build/release"))
PERFKIT = os.path.join(BUILD, "bin", "perfkit")
MAKE_SCENE = os.path.join(BUILD, "bin", "tui_make_scene")
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
PATIENCE = 300  # seconds; only against a hang


def environment(**more):
    drop = ("NO_COLOR", "COLUMNS", "LINES", "TMUX", "PERFKIT_DIR", "PERFKIT_OPTIONS")
    result = {k: v for k, v in os.environ.items() if k not in drop}
    result.update(LC_ALL="C.UTF-8", TERM="xterm-256color", **more)
    return {k: v for k, v in result.items() if v is not None}


class Case(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        made = subprocess.run([MAKE_SCENE, "screen", "12"], stdout=subprocess.PIPE, check=True)
        cls.capture = made.stdout.decode().strip()

    @classmethod
    def tearDownClass(cls):
        os.unlink(cls.capture)


class Terminal:
    """A program on a pseudo-terminal of its own."""

    def __init__(self, command, env, size=(80, 24)):
        self.bytes = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.execvpe(command[0], command, env)
            finally:  # or two would go on with the tests
                os._exit(127)
        self.resize(*size)
        self.status = None

    def resize(self, width, height):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def read(self, seconds):
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                self.bytes += os.read(self.fd, 65536)
            except OSError:  # it has ended
                return False
        return True

    def wait_for(self, text, after=0):
        limit = time.monotonic() + PATIENCE
        while text not in self.bytes[after:]:
            if not self.read(0.1) or time.monotonic() > limit:
                raise AssertionError("%r was not shown: %r" % (text, self.bytes[after:][-2000:]))

    def end(self):
        """How it ended, as subprocess tells it."""
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                while select.select([self.fd], [], [], 0)[0] and self.read(0):
                    if len(self.bytes) > 1 << 24:
                        break
                    if not select.select([self.fd], [], [], 0.05)[0]:
                        break
                self.status = os.waitstatus_to_exitcode(status)
                return self.status
        os.kill(self.pid, signal.SIGKILL)
        raise AssertionError("it did not end")

    def close(self):
        os.close(self.fd)


def untouched():
    """What tcgetattr says of a terminal that no program has changed."""
    ours, theirs = os.openpty()
    try:
        return termios.tcgetattr(theirs)
    finally:
        os.close(ours)
        os.close(theirs)


class Screen(Case):
    def top(self, *words, size=(80, 24), **more):
        terminal = Terminal([PERFKIT, "top", *words, self.capture], environment(**more), size)
        self.addCleanup(terminal.close)
        return terminal

    def test_it_leaves_the_terminal_as_it_was(self):
        for how, status in (("q", 0), (signal.SIGINT, 0), (signal.SIGTERM, -signal.SIGTERM),
                            (signal.SIGHUP, -signal.SIGHUP)):
            with self.subTest(how=how):
                terminal = self.top()
                terminal.wait_for(b"alpha")
                self.assertNotEqual(termios.tcgetattr(terminal.fd)[3] & termios.ECHO,
                                    termios.ECHO)
                if how == "q":
                    os.write(terminal.fd, b"q")
                else:
                    os.kill(terminal.pid, how)
                self.assertEqual(terminal.end(), status, terminal.bytes[-300:])
                self.assertIn(b"\x1b[?1049l", terminal.bytes)  # the other screen is left
                self.assertRegex(terminal.bytes, rb"\x1b\[\?[0-9;]*1000l")  # and the mouse
                after = termios.tcgetattr(terminal.fd)
                self.assertEqual(after[:4], untouched()[:4])

    def test_a_new_size_is_drawn_at_once(self):
        terminal = self.top()
        terminal.wait_for(b"alpha")
        self.assertNotIn(b"all calls", terminal.bytes)
        seen = len(terminal.bytes)
        terminal.resize(220, 50)
        terminal.wait_for(b"all calls", seen)
        for size in ((20, 5), (1, 1), (300, 60), (80, 24)):
            terminal.resize(*size)
        os.write(terminal.fd, b"q")
        self.assertEqual(terminal.end(), 0)

    def test_colours_only_where_they_are_wanted(self):
        colour = re.compile(rb"\x1b\[[0-9;]*(3[0-7]|4[0-7]|38;5;[0-9]+)m")
        for more, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "vt100"}, False)):
            with self.subTest(**more):
                terminal = Terminal([PERFKIT, "top", self.capture],
                                    dict(environment(), **more))
                terminal.wait_for(b"alpha")
                os.write(terminal.fd, b"q")
                self.assertEqual(terminal.end(), 0)
                terminal.close()
                self.assertEqual(bool(colour.search(terminal.bytes)), coloured)

    def test_no_name_reaches_the_terminal_raw(self):
        terminal = self.top(size=(200, 50))
        terminal.wait_for(b"owned")
        for key in b"23456789":
            os.write(terminal.fd, bytes([key]))
        os.write(terminal.fd, b"1/evil\n\n")
        terminal.wait_for(b"since the start")
        os.write(terminal.fd, b"qq")
        self.assertEqual(terminal.end(), 0)
        self.assertIn(b"\\x1b]0;owned", terminal.bytes)
        for raw in (b"\x1b]0;owned", b"\x1b]", b"\x07", b"\xe2\x80\xae", b"\xff"):
            self.assertNotIn(raw, terminal.bytes)

    def test_the_dashboard_is_where_there_is_room(self):
        for size, shown in (((120, 40), True), ((80, 24), True), ((80, 23), False)):
            terminal = self.top(size=size)
            terminal.wait_for(b"alpha")
            if shown:
                terminal.wait_for(b" busy")
                terminal.wait_for(b" live, peak ")
            os.write(terminal.fd, b"q")
            self.assertEqual(terminal.end(), 0)
            self.assertEqual(b" busy" in terminal.bytes, shown)

    def test_the_mouse(self):
        """As terminals tell it (SGR): the wheel goes to the last row, a click on a tab to its view."""
        terminal = self.top(size=(100, 30))
        terminal.wait_for(b"owned")
        os.write(terminal.fd, b"\x1b[<65;5;8M")
        os.write(terminal.fd, b"\n")
        terminal.wait_for(b"since the start")
        self.assertIn(b"owned\\x07", terminal.bytes)  # its page, with the whole name
        seen = len(terminal.bytes)
        os.write(terminal.fd, b"\x1b[<64;5;8M")  # up, in the page: no harm
        tab = len("1Kernels 2Streams 3Copies ") + 2
        os.write(terminal.fd, b"\x1b[<0;%d;4M\x1b[<0;%d;4m" % (tab, tab))
        terminal.wait_for(b"live", seen)
        os.write(terminal.fd, b"q")
        self.assertEqual(terminal.end(), 0)

    def test_ascii_is_ascii(self):
        for words, more in ((("--ascii",), {}), ((), {"LC_ALL": "C"})):
            terminal = Terminal([PERFKIT, "top", *words, self.capture],
                                dict(environment(), **more), (200, 50))
            terminal.wait_for(b"alpha")
            os.write(terminal.fd, b"2")
            terminal.wait_for(b"compute")
            os.write(terminal.fd, b"q")
            self.assertEqual(terminal.end(), 0)
            terminal.close()
            self.assertTrue(all(byte < 128 for byte in terminal.bytes))

    def test_where_there_is_no_screen(self):
        terminal = Terminal([PERFKIT, "top", self.capture], dict(environment(), TERM="dumb"))
        self.assertEqual(terminal.end(), 1)
        terminal.close()
        self.assertIn(b"use --once or --json", terminal.bytes)
        done = subprocess.run([PERFKIT, "top", self.capture], env=environment(),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=PATIENCE)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"--once", done.stderr)
        self.assertEqual(done.stdout, b"")

    def test_once_is_one_screen_of_text(self):
        done = subprocess.run([PERFKIT, "top", "--once", "--window", "all", self.capture],
                              env=environment(COLUMNS="100"), stdout=subprocess.PIPE,
                              timeout=PATIENCE, check=True)
        lines = done.stdout.decode().splitlines()
        self.assertTrue(lines[4].startswith("Kernel "))
        self.assertTrue(lines[5].startswith("alpha "))
        self.assertTrue(all(len(line) <= 100 for line in lines))

    def test_words_that_do_not_go_together(self):
        for words in (["--view", "nothing"], ["--once", "--json"], ["--count", "2"], ["--once", "-i", "500ms", self.capture],
                      ["-o", "x"], ["--program-log", "x"], ["--once", "--view", "kernels,memory", self.capture], ["--"], [self.capture, "--", "true"], ["--once", "--", "true"]):
            done = subprocess.run([PERFKIT, "top", *words], env=environment(),
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=PATIENCE)
            self.assertEqual((done.returncode, done.stdout), (2, b""), words)
            self.assertIn(b"perfkit top: ", done.stderr)

    def test_a_file_that_is_none(self):
        for path, status in (("/nowhere/run.sqlite", 2), ("/bin/sh", 2)):
            done = subprocess.run([PERFKIT, "top", "--once", path], env=environment(),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
            self.assertEqual(done.returncode, status)
            self.assertIn(b"perfkit top: ", done.stderr)


@unittest.skipUnless(shutil.which("tmux"), "no tmux")
class Tmux(Case):
    """Whole frames, as the terminal has drawn them."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="perfkit-tmux-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.servers = 0

    def tmux(self, *words, check=True):
        done = subprocess.run(["tmux", "-u", "-S", self.socket, "-f", "/dev/null", *words],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=environment(), timeout=PATIENCE)
        if check and done.returncode:
            raise AssertionError(done.stderr.decode())
        return done.stdout.decode()

    def start(self, width, height):
        self.servers += 1
        self.socket = os.path.join(self.folder, "socket-%d" % self.servers)
        self.addCleanup(subprocess.run, ["tmux", "-S", self.socket, "kill-server"],
                        stderr=subprocess.DEVNULL, env=environment())
        self.tmux("new-session", "-d", "-x", str(width), "-y", str(height),
                  "env PS1='ready> ' TERM=screen-256color bash --norc --noprofile -i")
        self.wait_for("ready>")
        self.tmux("send-keys", "%s top %s" % (PERFKIT, self.capture), "Enter")
        self.wait_for("F10Quit")

    def frame(self):
        return self.tmux("capture-pane", "-p")

    def wait_for(self, text, gone=False):
        limit = time.monotonic() + PATIENCE
        while (text in self.frame()) == gone:
            if time.monotonic() > limit:
                raise AssertionError("%s %r:\n%s" % ("still" if gone else "no", text, self.frame()))
            time.sleep(0.05)
        return self.frame()

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def compare(self, name):
        """The frame is, before long, the golden one."""
        path = os.path.join(GOLDEN, name)
        if os.environ.get("TUI_ACCEPT"):
            time.sleep(1)
            with open(path, "w") as file:
                file.write(self.clean_frame())
        with open(path) as file:
            golden = file.read()
        limit = time.monotonic() + PATIENCE
        while self.clean_frame() != golden and time.monotonic() < limit:
            time.sleep(0.05)
        self.assertEqual(self.clean_frame(), golden)

    def clean_frame(self):
        return "\n".join(line.rstrip() for line in self.frame().splitlines()) + "\n"

    def test_frames(self):
        for width, height in ((80, 24), (200, 50)):
            self.start(width, height)
            self.wait_for("evil")
            self.compare("tmux-%dx%d-kernels.txt" % (width, height))
            self.keys("3")
            self.wait_for("DtoH")
            self.compare("tmux-%dx%d-copies.txt" % (width, height))
            self.keys("F1")
            self.wait_for("any key goes back")
            self.compare("tmux-%dx%d-help.txt" % (width, height))
            self.keys("q")
            self.wait_for("DtoH")

    def test_keys(self):
        self.start(100, 30)
        self.keys("Down", "Enter")
        self.wait_for("Launched from")
        self.keys("Escape")
        self.wait_for("EnterOpen")
        self.keys("F4")
        self.wait_for("Filter:")
        self.keys("b", "e", "t")
        self.wait_for("alpha", gone=True)
        self.keys("Enter")
        self.wait_for("only: bet")
        self.keys("Escape")
        self.wait_for("alpha")
        self.keys("F5")
        self.wait_for("last 1 s")
        self.keys("F9")
        self.wait_for("PAUSED")
        self.keys("F9")
        self.wait_for("PAUSED", gone=True)
        self.keys("7", "Enter")
        self.wait_for("Why it is slow")
        self.keys("F10")
        self.wait_for("ready>")
        self.assertNotIn("F10Quit", self.frame())

    def test_stop_and_continue(self):
        self.start(80, 24)
        self.keys("C-z")
        self.wait_for("Stopped")
        self.assertNotIn("F10Quit", self.frame())
        self.keys("echo back", "Enter")
        self.wait_for("\nback")  # the shell has its terminal, with echo
        self.keys("fg", "Enter")
        self.wait_for("F10Quit")
        self.wait_for("alpha")
        self.keys("q")
        self.wait_for("ready>")

    def test_resize(self):
        self.start(80, 24)
        for width, height in ((120, 30), (40, 8), (200, 50)):
            self.tmux("resize-window", "-x", str(width), "-y", str(height))
            self.wait_for("F10Quit" if width > 60 else "alpha")
        self.wait_for("last minute")
        self.keys("q")
        self.wait_for("ready>")


if __name__ == "__main__":
    if not os.path.exists(MAKE_SCENE):
        print("no %s: PERFKIT_TUI_BUILD names the build folder" % MAKE_SCENE)
        sys.exit(77)
    unittest.main(verbosity=2)
