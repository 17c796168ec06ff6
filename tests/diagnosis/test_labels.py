"""The labelled variants that an OpenCL device can show, through `perfkit run` and `perfkit report`:
findings on counts, never on times. bench/diagnosis does the work; see there and labels.tsv."""
import json
import os
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(os.environ.get("PERFKIT_BUILD", "build/release"))
BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "diagnosis")
SKIP = 77


def has_opencl():
    patterns = os.path.join(BUILD, "workloads", "patterns")
    return os.path.exists(patterns) and subprocess.run(
        [patterns, "--backend", "opencl", "--variant", "load-scalar", "--preset", "small"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def share(counts):
    return counts[0] / counts[1] if counts[1] else 1


def check(figures):
    """What does not hold, as sentences."""
    named, blind = figures["scores"]["named"], figures["scores"]["blind"]
    if named["clean"][1] < 30 or named["recall"][1] < 10:
        yield "only %d variants with %d expected findings ran" % (named["clean"][1],
                                                                  named["recall"][1])
    if share(named["recall"]) < 0.9:  # of 13: one miss
        yield "recall %d of %d" % tuple(named["recall"])
    if share(named["clean"]) < 0.95:
        yield "variants without a wrong finding: %d of %d" % tuple(named["clean"])
    if share(blind["recall"]) < 0.75:  # declared work is gone with the ranges
        yield "recall without names %d of %d" % tuple(blind["recall"])
    if share(blind["clean"]) < 0.95:
        yield "variants without a wrong finding, without names: %d of %d" % tuple(blind["clean"])
    if figures["over"]:
        yield "bounds above the judged time: " + ", ".join(figures["over"])


def main():
    if not has_opencl():
        print("skipped: no OpenCL device")
        return SKIP
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([sys.executable, "-B", BENCH, BUILD, "--blind", "--no-gain", "--json",
                        out.name], check=True)
        wrong = list(check(json.load(open(out.name))))
    for line in wrong:
        print("FAIL " + line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
