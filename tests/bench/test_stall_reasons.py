"""bench/stall_reasons: reading ncu's CSV and a capture, and the comparison, on made-up figures."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import sqlite3
import tempfile
import unittest

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "stall_reasons")
loader = importlib.machinery.SourceFileLoader("stall_reasons", PATH)
stall_reasons = importlib.util.module_from_spec(importlib.util.spec_from_loader("stall_reasons", loader))
loader.exec_module(stall_reasons)

ONE = "smsp__pcsamp_warps_issue_stalled_"
NCU = f'''==PROF== Profiling "chase": 0%....100% - 1 pass
"ID","Kernel Name","{ONE}wait","{ONE}wait_not_issued","{ONE}no_instructions","{ONE}selected","smsp__pcsamp_interval"
"","","","","","",""
"0","shuffle_links(unsigned int *)","5","5","5","5","6"
"1","chase(const unsigned int *, unsigned int *, int)","1,000","900","10","90","6"
"2","chase(const unsigned int *, unsigned int *, int)","600","600","100","300","6"
"3","sleeps(float *, int)","","","","","6"
'''


class StallReasons(unittest.TestCase):
    def test_csv_of_ncu(self):
        launches = stall_reasons.read_ncu(NCU)
        self.assertEqual(launches, [("chase", {"wait": 1000, "no_instruction": 10, "selected": 90}),
                                    ("chase", {"wait": 600, "no_instruction": 100, "selected": 300})])
        self.assertEqual(stall_reasons.pick(launches, lambda n: n == 1), {"chase": launches[1][1]})
        self.assertEqual(stall_reasons.add(launches)["chase"]["wait"], 1600)

    def test_capture(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.sqlite")
            db = sqlite3.connect(path)
            db.executescript("""CREATE TABLE string(id, value); CREATE TABLE stall_function(id, name);
                CREATE TABLE stall(function, not_issued, selected, wait, other);
                INSERT INTO string VALUES(1, '_Z10near_linksPj'), (2, '_Z5chasePKjPji');
                INSERT INTO stall_function VALUES(1, 1), (2, 2), (3, 2);
                INSERT INTO stall VALUES(1, 9, 9, 9, 9), (2, 50, 1, 60, NULL), (3, NULL, 2, 40, 3);""")
            db.commit()
            db.close()
            self.assertEqual(stall_reasons.read_capture(path), {"chase": {"selected": 3, "wait": 100, "other": 3}})

    def test_every_reason_above_five_per_cent_on_either_side(self):
        rows = stall_reasons.compare({"k": {"wait": 90, "selected": 6, "drain": 4}, "ours": {"wait": 1}},
                                     {"k": {"wait": 84, "selected": 4, "barrier": 12}, "theirs": {"wait": 1}})
        self.assertEqual([row[:4] for row in rows], [("k", "barrier", 0, 0.12), ("k", "selected", 0.06, 0.04),
                                                    ("k", "wait", 0.9, 0.84)])
        with contextlib.redirect_stdout(io.StringIO()) as said:
            result = stall_reasons.show("x", rows)
        self.assertEqual((result["compared"], result["near"]), (3, 1))
        self.assertIn("barrier                0.0 % and  12.0 %, of 100 and 100 samples", said.getvalue())


if __name__ == "__main__":
    unittest.main()
