"""What NCCL says of its calls arrives: by the real library, where there is one. Without a GPU its calls fail,
but not before they have told NVTX what they were asked."""
import ctypes
import sys
import unittest

import e2e

PROGRAM = """
import ctypes
nccl = ctypes.CDLL("libnccl.so.2")
size, none = ctypes.c_size_t, None
nccl.ncclGroupStart()
nccl.ncclAllReduce(none, none, size(1000), 7, 0, none, none)
nccl.ncclAllGather(none, none, size(100), 9, none, none)
nccl.ncclSend(none, size(10), 7, 5, none, none)
nccl.ncclGroupEnd()
nccl.ncclReduceScatter(none, none, size(7), 8, 2, none, none)
"""
FLOAT, BF16, DOUBLE = 4, 2, 8


def has_nccl():
    try:
        ctypes.CDLL("libnccl.so.2")
    except OSError:
        return False
    return True


@unittest.skipUnless(has_nccl(), "libnccl.so.2 cannot be loaded")
class Calls(e2e.Case):
    def test_fields_of_its_payloads(self):
        result = self.record(sys.executable, "-c", PROGRAM)
        db = self.open(result.capture)
        self.assert_conserved(db)
        named = "FROM range r JOIN string n ON n.id = r.name JOIN string d ON d.id = r.domain "
        self.assertEqual([row[0] for row in db.execute(
            "SELECT n.value " + named + "WHERE d.value = 'NCCL' AND n.value GLOB 'nccl[AGRS]*' ORDER BY "
            "r.start")], ["ncclGroupStart", "ncclAllReduce", "ncclAllGather", "ncclSend", "ncclGroupEnd",
                          "ncclReduceScatter"])
        fields = db.execute(
            "SELECT n.value, f.value " + named + "JOIN range_field f ON f.range = r.id JOIN string s ON "
            "s.id = f.name WHERE s.value IN ('Message size [bytes]', 'Bytes') ORDER BY r.start").fetchall()
        self.assertEqual([tuple(row) for row in fields], [
            ("ncclAllReduce", 1000 * FLOAT), ("ncclAllGather", 100 * BF16), ("ncclSend", 10 * FLOAT),
            ("ncclReduceScatter", 7 * DOUBLE)])
        self.assertEqual(db.execute(
            "SELECT f.value FROM range_field f JOIN string s ON s.id = f.name WHERE s.value = 'Peer rank'"
        ).fetchall()[0][0], 5)


if __name__ == "__main__":
    e2e.main()
