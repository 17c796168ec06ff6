"""The table of layouts against the headers of the interpreters: test_layout.py PROBE COMPILER. Exits 77
when no interpreter here has its headers (python3-dev)."""
import ctypes
import os
import subprocess
import sys
import tempfile

import test_frames

HERE = os.path.dirname(os.path.abspath(__file__))


def ours(probe, version):
    probe.probe_layout.restype = ctypes.POINTER(ctypes.c_uint16)
    layout = probe.probe_layout(version)
    return list(layout[:probe.probe_layout_bytes() // 2])


def theirs(interpreter, compiler, folder):
    """None: no headers."""
    include = subprocess.run([interpreter, "-c", "import sysconfig; print(sysconfig.get_path('include'))"],
                             capture_output=True, text=True, check=True).stdout.strip()
    if not os.path.exists(os.path.join(include, "internal", "pycore_frame.h")) and \
            not os.path.exists(os.path.join(include, "frameobject.h")):
        return None
    program = os.path.join(folder, "offsets")
    subprocess.run([compiler, "-w", "-I", include, "-I", os.path.join(include, "internal"),
                    os.path.join(HERE, "offsets.c"), "-o", program], check=True)
    return list(map(int, subprocess.run([program], capture_output=True, check=True).stdout.split()))


def main():
    probe, compared = ctypes.CDLL(sys.argv[1]), 0
    with tempfile.TemporaryDirectory(prefix="perfkit-layout-") as folder:
        for kind, interpreter in test_frames.interpreters().items():
            seen = theirs(interpreter, sys.argv[2], folder)
            if seen is None:
                continue
            wanted = ours(probe, kind[0] << 8 | kind[1])
            if seen != wanted:
                sys.exit("%s: the headers say\n%s, the table\n%s" % (interpreter, seen, wanted))
            compared += 1
    print("%d layouts agree" % compared)
    return 0 if compared else 77


if __name__ == "__main__":
    sys.exit(main())
