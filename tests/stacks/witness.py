"""What witness.c wrote, and the stacks of a capture in the same shape: {frames: how many calls}, frames
being (file, offset of the return address from the file's lowest page) from the innermost outwards."""
import collections
import glob
import os

NATIVE = 1  # frame.kind


def file_of(path):
    return os.path.realpath(path) if path else "?"


def place(word):
    path, _, offset = word.rpartition("+")
    return ("?", int(offset)) if path == "?" else (file_of(path), int(offset))


def told(prefix, functions, left_out=()):
    """Of the calls of some functions, in all processes that wrote. left_out: beginnings of names of
    files whose frames do not count."""
    seen = collections.Counter()
    for path in glob.glob(prefix + ".*"):
        with open(path, encoding="utf-8") as file:
            for line in file:
                count, function, *words = line.split()
                frames = tuple(place(word) for word in words)
                if function in functions:
                    seen[without(frames, left_out)] += int(count)
    return seen


def without(frames, left_out):
    return tuple(frame for frame in frames if not os.path.basename(frame[0]).startswith(tuple(left_out))
                 ) if left_out else frames


UP = """WITH RECURSIVE up(leaf, id, level) AS (SELECT DISTINCT stack, stack, 0 FROM {table} WHERE {where}
        AND stack NOT NULL UNION ALL SELECT leaf, parent, level + 1 FROM up JOIN stack USING (id)
        WHERE parent NOT NULL)
        SELECT up.leaf, m.path, f.offset, f.address FROM up JOIN stack s ON s.id = up.id
        JOIN frame f ON f.id = s.frame LEFT JOIN module m ON m.id = f.module
        WHERE f.kind = {kind} ORDER BY up.leaf, up.level"""


def recorded(db, table, where="1", left_out=()):
    """The native frames of the stacks that a table's rows have. db: of sqlite3."""
    frames = collections.defaultdict(list)
    for leaf, path, offset, address in db.execute(UP.format(table=table, where=where, kind=NATIVE)):
        frames[leaf].append((file_of(path), offset + 1) if path else ("?", address + 1))
    seen = collections.Counter()
    for stack, count in db.execute(f"SELECT stack, count(*) FROM {table} WHERE {where} GROUP BY stack"):
        seen[without(tuple(frames[stack]), left_out)] += count
    return seen
