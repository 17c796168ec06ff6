"""What the tests of scope control share: a program that goes on when it is told to, and what of its
work a capture holds."""
import json
import os
import subprocess

import e2e

SCOPE = e2e.target("scope")


class ScopeCase(e2e.Case):
    opencl = ["--opencl", "1"] if e2e.has_opencl() else []

    def names(self, db):
        """{name: (ranges with an end, ranges without, marks)}"""
        found = {}
        for name, end, rows in db.execute(
                "SELECT value, duration IS NOT NULL, count(*) FROM range JOIN string ON "
                "string.id = name GROUP BY 1, 2"):
            ended, open_, marks = found.get(name, (0, 0, 0))
            found[name] = (ended + rows, open_, marks) if end else (ended, open_ + rows, marks)
        for name, rows in db.execute("SELECT value, count(*) FROM marker JOIN string ON "
                                     "string.id = name GROUP BY 1"):
            ended, open_, _ = found.get(name, (0, 0, 0))
            found[name] = (ended, open_, rows)
        return found

    def fills(self, db):
        return [row[0] for row in db.execute("SELECT value FROM memset ORDER BY id")]

    def windows(self, db):
        """[(on, reason)] of every process, in order."""
        return db.execute("SELECT begins, reason FROM recording ORDER BY start, id").fetchall()

    def assert_work(self, names, name, n):
        self.assertEqual(names.get(name), (2 * n, 0, n) if n else None, name)

    def phases(self, *command, options=(), quiet=True):
        """A recorded program that goes on when it is told to."""
        capture = self.new_capture()
        program = subprocess.Popen(
            self.run_line([SCOPE, *command, *self.opencl], capture, options), cwd=self.folder,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=e2e.clean_environment(), text=True)
        program.capture = capture
        self.addCleanup(self._end_all, program)
        return program

    @staticmethod
    def _end_all(program):
        if program.poll() is None:
            program.kill()
        program.wait()
        for stream in (program.stdin, program.stdout, program.stderr):
            stream.close()

    def go(self, program, phase):
        program.stdin.write(phase + "\n")
        program.stdin.flush()
        self.assert_answers(program, phase + "\n")

    def end(self, program):
        program.stdin.close()
        self.assertEqual(program.wait(e2e.TIMEOUT), 0)
        self.assertNotIn("perfkit", program.stderr.read())
        return self.open(program.capture)

    def ctl(self, *words, status=0, **more):
        result = self.perfkit("ctl", *words, **more)
        self.assertEqual(result.status, status, result.err.decode())
        return result

    def status(self, capture):
        return json.loads(self.ctl("status", capture, "--json").out)

    def page(self):
        folders = self.spool_folders()
        self.assertEqual(len(folders), 1)
        return os.path.join(folders[0], "control")
