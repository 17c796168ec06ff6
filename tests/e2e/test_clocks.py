"""Clocks: device times, converted to the host's clock, lie between the moment before the call and the
moment at which the program saw the command complete, for every command."""
import struct

import e2e

COMMANDS = """
SELECT start - api_lead AS called, start - queue_delay, start - submit_delay, start, start + duration
FROM (SELECT start, api_lead, queue_delay, submit_delay, duration FROM kernel UNION ALL
      SELECT start, api_lead, queue_delay, submit_delay, duration FROM transfer UNION ALL
      SELECT start, api_lead, queue_delay, submit_delay, duration FROM memset) ORDER BY called"""
NAMES = ("before the call", "called", "queued", "submit", "start", "end", "seen complete")


@e2e.needs_opencl
class Clocks(e2e.Case):
    def check(self, seconds, *options):
        file = self.path("times")
        result = self.record(e2e.target("clocks"), seconds, file, options=options)
        with open(file, "rb") as times:
            raw = times.read()
        lines = list(struct.iter_unpack("<QQ", raw))
        db = self.open(result.capture)
        self.assert_conserved(db)
        zero = self.one(db, "SELECT start_mono_ns FROM capture")
        commands = db.execute(COMMANDS).fetchall()
        self.assertEqual(len(commands), len(lines))
        self.assertNotIn(None, [value for row in commands for value in row])
        wrong, closest = [], {}
        for number, ((before, seen), row) in enumerate(zip(lines, commands)):
            moments = (before - zero, *row, seen - zero)
            for name, a, b in zip(NAMES, moments, moments[1:]):
                closest[name] = min(closest.get(name, b - a), b - a)
                if a > b:
                    wrong.append("command %d: %s is %d ns after what follows: %r" %
                                 (number, name, a - b, moments))
        self.assertEqual(wrong[:10], [], "%d of %d" % (len(wrong), len(commands)))
        self.assertEqual(self.one(db, "SELECT count(*) FROM capture_health WHERE item LIKE 'times_%' "
                                      "AND value > 0"), 0)
        anchors = db.execute("SELECT clock, count(*), max(error_ns) FROM clock_sync GROUP BY 1").fetchall()
        e2e.say("%d commands in %d s; clock %s, %d anchors, worst %d ns; smallest distances (ns): %s" %
                (len(commands), seconds, *anchors[0],
                 ", ".join("%s %d" % item for item in closest.items())))
        self.assertGreaterEqual(anchors[0][1], min(seconds, 2))

    def test_every_command(self):
        self.check(60 if e2e.LONG else 5)

    def test_by_environment_alone(self):
        self.check(1, "--no-preload")


if __name__ == "__main__":
    e2e.main()
