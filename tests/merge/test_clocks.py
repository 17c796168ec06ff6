#!/usr/bin/env python3
"""perfkit merge: times of several hosts. The true time of every event is known here, so the error of the merged
capture is too; it must be what the capture says, and below 20 us where collectives allow it.

    test_clocks.py PERFKIT REPORT_TOOL TESTS WORK_FOLDER
"""
import sys
import unittest

from ranks import Host, ask, merge, one, path_of, rank_capture, reduce_ends

HOUR = 3_600_000_000_000
A = Host("a", "boot-a", 50_000_000_000)


def worst(path, reference=0):
    """Largest distance between ends of the same collective, ns."""
    ends = reduce_ends(path)
    return max(abs(x - y) for rank in ends for x, y in zip(ends[reference], ends[rank]))


class Clocks(unittest.TestCase):
    def test_one_boot_is_exact(self):
        files = [rank_capture(f"same-{r}.sqlite", r, 4, A) for r in range(4)]
        said = merge("same.sqlite", *files)
        self.assertIn("clocks: 4 files of one clock: exact", said)
        self.assertEqual(worst(path_of("same.sqlite")), 0)
        self.assertEqual(ask(path_of("same.sqlite"), "SELECT DISTINCT clock, clock_error, clock_drift FROM merged_part"),
                         [("same", 0, 0)])
        # The first file's moment 0 is where it was: nothing is rounded on the way.
        self.assertEqual(one(path_of("same.sqlite"), "SELECT start_mono_ns FROM capture"), A.reading(900_000_000))

    def test_hours_off(self):
        b = Host("b", "boot-b", 7_000_000_000_000, drift=40e-6, wall_ns=3 * HOUR)
        c = Host("c", "boot-c", 1_000, drift=-25e-6, wall_ns=-5 * HOUR)
        files = [rank_capture(f"hours-{r}.sqlite", r, 6, host, steps=600, jitter_ns=4000)
                 for r, host in enumerate((A, A, b, b, c, c))]
        said = merge("hours.sqlite", *files)
        self.assertLess(worst(path_of("hours.sqlite")), 20_000)
        parts = ask(path_of("hours.sqlite"), "SELECT clock, clock_error, clock_drift, compared FROM merged_part ORDER BY id")
        self.assertEqual([p[0] for p in parts], ["same"] * 2 + ["collectives"] * 4)
        for _, error, drift, compared in parts[2:]:
            self.assertTrue(0 < error < 20_000, error)
            self.assertEqual(compared, 600)
        self.assertAlmostEqual(parts[2][2], -40_000, delta=1500)  # ns a second; b runs fast
        self.assertAlmostEqual(parts[4][2], 25_000, delta=1500)
        self.assertIn("half of 600 collectives within", said)
        self.assertIn("clocks: exact for 2 of 6 files, within", said)
        # The report is one picture of a few seconds, not of eight hours.
        self.assertLess(one(path_of("hours.sqlite"), "SELECT max(start) FROM kernel"), 10_000_000_000)

    def test_one_host_began_late(self):
        # Irregular steps tell which all-reduce is which, though the wall clock is hours off.
        b = Host("b", "boot-b", 123_456, wall_ns=2 * HOUR)
        files = [rank_capture("early.sqlite", 0, 2, A, jitter_ns=2000),
                 rank_capture("late.sqlite", 1, 2, b, jitter_ns=2000, skip=17)]
        merge("began.sqlite", *files)
        ends = reduce_ends(path_of("began.sqlite"))
        self.assertEqual(len(ends[0]) - 17, len(ends[1]))
        self.assertLess(max(abs(x - y) for x, y in zip(ends[0][17:], ends[1])), 20_000)

    def test_a_rank_skips_one(self):
        """Those after it are not paired with the next one of the other rank, whose clock stays where it is."""
        for number, lacks in enumerate(((100,), (60, 61, 140), tuple(range(2, 200, 5)))):
            out = f"skips-{number}.sqlite"
            b = Host("b", "boot-b", 123_456, wall_ns=2 * HOUR)
            said = merge(out, rank_capture("all.sqlite", 0, 2, A, jitter_ns=2000),
                         rank_capture("lacking.sqlite", 1, 2, b, jitter_ns=2000, lacks=lacks))
            ends = reduce_ends(path_of(out))
            of_both = [end for step, end in enumerate(ends[0]) if step not in lacks]
            self.assertEqual(len(of_both), len(ends[1]))
            self.assertLess(max(abs(x - y) for x, y in zip(of_both, ends[1])), 20_000)
            self.assertEqual(one(path_of(out), "SELECT compared FROM merged_part WHERE id=2"), 200 - len(lacks))
            note = one(path_of(out), "SELECT note FROM capture_health WHERE code='clock_collectives' AND level='note'")
            self.assertRegex(note, f"has 0 that it lacks, and lacks {len(lacks)}; clocks were aligned by the {200 - len(lacks)} of both")
            self.assertIn(note, said)

    def test_without_collectives(self):
        b = Host("b", "boot-b", 987_654_321, wall_ns=250_000)
        files = [rank_capture("plain-0.sqlite", 0, 2, A), rank_capture("plain-1.sqlite", 1, 2, b, collectives=False)]
        said = merge("plain.sqlite", *files)
        self.assertIn("by the wall clock, error not known", said)
        self.assertEqual(one(path_of("plain.sqlite"), "SELECT clock FROM merged_part WHERE id=2"), "realtime")
        self.assertIsNone(one(path_of("plain.sqlite"), "SELECT clock_error FROM merged_part WHERE id=2"))
        # As far off as the wall clock is, to the nanosecond.
        starts = dict(ask(path_of("plain.sqlite"), "SELECT p.rank, min(k.start) FROM kernel k JOIN stream s ON s.id=k.stream "
                                                   "JOIN process p ON p.id=s.process GROUP BY 1"))
        self.assertEqual(starts[1] - starts[0], 250_000)
        self.assertEqual(ask(path_of("plain.sqlite"), "SELECT subject, item FROM capture_health WHERE process IS NULL"),
                         [("clock", "assumed")])

    def test_a_merged_file_and_one_of_its_host(self):
        """The clock of what was merged is that of a host: a file of the same boot is exact, whatever its wall clock says."""
        b = Host("b", "boot-b", 987_654_321, wall_ns=2 * HOUR)
        set_since = Host("a", "boot-a", A.mono_ns, wall_ns=5_000_000_000)
        merge("of-two.sqlite", rank_capture("two-0.sqlite", 0, 2, A, jitter_ns=2000),
              rank_capture("two-1.sqlite", 1, 2, b, jitter_ns=2000))
        late = rank_capture("two-2.sqlite", 2, 3, set_since, collectives=False)
        for name, files in (("late.sqlite", (path_of("of-two.sqlite"), late)), ("early.sqlite", (late, path_of("of-two.sqlite")))):
            merge(name, *files)
            self.assertEqual(one(path_of(name), "SELECT clock FROM merged_part WHERE file='two-2.sqlite'"), "same")
            starts = dict(ask(path_of(name), "SELECT p.rank, min(k.start) FROM kernel k JOIN stream s ON s.id=k.stream "
                                             "JOIN process p ON p.id=s.process GROUP BY 1"))
            self.assertEqual(starts[2], starts[0])
        # Its other host's clock was only compared.
        of_b = rank_capture("two-3.sqlite", 2, 3, b, collectives=False)
        merge("doubt.sqlite", path_of("of-two.sqlite"), of_b)
        self.assertEqual(one(path_of("doubt.sqlite"), "SELECT clock FROM merged_part WHERE file='two-3.sqlite'"), "realtime")

    def test_the_first_file_has_no_collectives(self):
        b = Host("b", "boot-b", 987_654_321, wall_ns=2 * HOUR)
        c = Host("c", "boot-c", 55_555, wall_ns=-HOUR)
        files = [rank_capture("first-0.sqlite", 0, 3, A, collectives=False), rank_capture("first-1.sqlite", 1, 3, b, jitter_ns=2000),
                 rank_capture("first-2.sqlite", 2, 3, c, jitter_ns=2000)]
        merge("first.sqlite", *files)
        self.assertLess(worst(path_of("first.sqlite"), reference=1), 20_000)
        self.assertEqual([clock for clock, in ask(path_of("first.sqlite"), "SELECT clock FROM merged_part ORDER BY id")],
                         ["realtime", "same", "collectives"])

    def test_nothing_to_compare(self):
        import sqlite3
        files = [rank_capture("n-0.sqlite", 0, 2, A), rank_capture("n-1.sqlite", 1, 2, A, collectives=False)]
        db = sqlite3.connect(files[1])
        db.execute("UPDATE capture SET boot_id=NULL, start_realtime_ns=NULL, start_mono_ns=NULL")
        db.commit()
        db.close()
        merge("n.sqlite", *files)
        self.assertEqual(ask(path_of("n.sqlite"), "SELECT clock, start, clock_offset FROM merged_part"),
                         [("same", 0, 0), ("none", 0, None)])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
