"""Control pages that are damaged, gone, somebody else's or locked: the program runs on as it would,
and ctl says what is wrong."""
import fcntl
import os
import signal
import unittest

import e2e
from scope import SCOPE, ScopeCase

PAGE_BYTES = 4096


class Damage(ScopeCase):
    """Whatever stands in the control page, or if it is gone, the program runs on as it would."""

    def start_dormant(self):
        program = self.phases("steps", options=["--dormant"])
        self.go(program, "one")
        return program

    def test_hostile(self):
        program = self.start_dormant()
        with open(self.page(), "r+b") as page:
            for i in range(200):
                page.seek(32)
                page.write(os.urandom(600))
                page.flush()
                self.go(program, "hostile")
        db = self.end(program)
        self.assert_conserved(db)

    def test_late_magic(self):
        """ctl sees that the page is damaged."""
        program = self.start_dormant()
        with open(self.page(), "r+b") as page:
            page.write(b"garbage!")
        self.assertIn(b"damaged", self.ctl("start", program.capture, status=1).err)
        self.end(program)

    def test_folder_gone(self):
        program = self.start_dormant()
        os.unlink(self.page())
        self.go(program, "two")
        self.assertIn(b"just ended, or an older perfkit",
                      self.ctl("start", program.capture, status=1).err)
        self.assertEqual(self.names(self.end(program)), {})

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to make a file of somebody else")
    def test_owner(self):
        """Somebody else's control page, or folder, is not touched."""
        program = self.start_dormant()
        os.chown(self.page(), 12345, 12345)
        self.assertIn(b"is not what perfkit run made",
                      self.ctl("start", program.capture, status=1).err)
        os.chown(self.page(), 0, 0)
        os.chown(self.spool_folders()[0], 12345, 12345)
        self.ctl("start", program.capture, status=1)
        self.ctl("start", str(program.pid), status=1)
        os.chown(self.spool_folders()[0], 0, 0)
        self.ctl("start", program.capture)
        self.go(program, "two")
        self.assert_work(self.names(self.end(program)), "two", 1)

    def test_busy(self):
        """Another writer that does not let go: ctl says so, the program and perfkit run on."""
        program = self.start_dormant()
        with open(self.page(), "rb") as page:
            fcntl.flock(page, fcntl.LOCK_EX)
            self.assertIn(b"try again", self.ctl("start", program.capture, status=1).err)
        self.ctl("start", program.capture)
        self.end(program)

    def test_stopped(self):
        """A process that cannot answer: ctl says so and does not wait for ever."""
        program = self.start_dormant()
        target = self.status(program.capture)["program_pid"]
        os.kill(target, signal.SIGSTOP)
        result = self.ctl("start", program.capture)
        self.assertIn(b"1 of its processes have not answered", result.err)
        os.kill(target, signal.SIGCONT)
        os.kill(program.pid, signal.SIGCONT)  # perfkit stops with its program
        self.go(program, "two")
        self.assert_work(self.names(self.end(program)), "two", 1)

    def preset(self, content):
        """The page as a new process finds it: replaced before its first event."""
        gate = self.path("gate")
        os.mkfifo(gate)
        process = self.start("sh", "-c", 'read line < %s; exec "$@"' % gate, "sh", SCOPE, "ranges",
                             "push", 2, options=["--dormant"])
        e2e.wait_until(lambda: self.spool_folders() and os.path.exists(self.page()))
        os.unlink(self.page())
        if content is not None:
            with open(self.page(), "wb") as page:
                page.write(content)
        with open(gate, "w") as file:
            file.write("go\n")
        self.assertEqual(process.wait(e2e.TIMEOUT), 0)
        db = self.open(process.capture)
        self.assert_conserved(db)
        return self.names(db)

    def test_missing(self):
        self.assert_work(self.preset(None), "inside", 2)

    def test_short(self):
        self.assert_work(self.preset(b"PERFKCTL" * 8), "inside", 2)

    def test_empty(self):
        self.assert_work(self.preset(b""), "inside", 2)

    def test_foreign(self):
        self.assert_work(self.preset(os.urandom(PAGE_BYTES)), "inside", 2)


if __name__ == "__main__":
    e2e.main()
