"""Run inside gdb: at every call of $GDB_FRAMES_FUNCTION a line of JSON goes to the file
$GDB_FRAMES_OUT: the frames of its callers, innermost first, as [file, offset of the address from the
file's lowest page, function, source file, line, "inlined" or ""]; what gdb does not know is null."""
import json
import os
import re

import gdb

FUNCTION, OUT = os.environ["GDB_FRAMES_FUNCTION"], os.environ["GDB_FRAMES_OUT"]
MAPPING = re.compile(r"^\s*(0x[0-9a-f]+)\s+(0x[0-9a-f]+)\s.*?(/\S+)\s*$", re.M)


def mappings():
    """[(low, high, file, its lowest address)]"""
    lowest, found = {}, []
    for low, high, file in MAPPING.findall(gdb.execute("info proc mappings", to_string=True)):
        low, high = int(low, 16), int(high, 16)
        lowest[file] = min(lowest.get(file, low), low)
        found.append((low, high, file))
    return [(low, high, file, lowest[file]) for low, high, file in found]


def describe(frame, known):
    pc = frame.pc()
    file, base = next(((file, base) for low, high, file, base in known if low <= pc < high), (None, None))
    sal = frame.find_sal()
    return [file, pc - base if file else None, frame.name(),
            os.path.basename(sal.symtab.filename) if sal.symtab else None, sal.line or None,
            "inlined" if frame.type() == gdb.INLINE_FRAME else ""]


class Call(gdb.Breakpoint):
    def stop(self):
        known, frames, frame = mappings(), [], gdb.newest_frame().older()
        while frame:
            frames.append(describe(frame, known))
            frame = frame.older()
        with open(OUT, "a", encoding="utf-8") as out:
            out.write(json.dumps(frames) + "\n")
        return False


for line in ("pagination off", "breakpoint pending on", "backtrace past-main on", "backtrace past-entry on",
             "print finish off", "detach-on-fork on"):
    try:
        gdb.execute("set " + line)
    except gdb.error:
        pass
Call(FUNCTION)
gdb.execute("run")
