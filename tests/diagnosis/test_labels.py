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


def judge(*options):
    """Without the ceilings that this user has measured: rules of the roofline take a share of what others claim."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out, tempfile.TemporaryDirectory() as home:
        subprocess.run([sys.executable, "-B", BENCH, BUILD, "--blind", "--no-gain", "--json",
                        out.name, *options], check=True, env={**os.environ, "XDG_DATA_HOME": home})
        figures = json.load(open(out.name))
    return figures["scores"], figures["over"]


def missed(score, name):
    return sum(line.startswith(name + ": missed") for line in score["misses"])


def look_again(scores):
    """Where other programs take the processors in the midst of a variant, its gaps are theirs: a miss
    counts that comes again."""
    names = {line.split(":")[0] for score in scores.values() for line in score["misses"]
             if ": missed" in line}
    for name in sorted(names):
        again, _ = judge("--only", name)
        for title, score in scores.items():
            score["recall"][0] += max(0, missed(score, name) - missed(again[title], name))


def check(scores, over):
    """What does not hold, as sentences."""
    named, blind = scores["named"], scores["blind"]
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
    if over:
        yield "bounds above the judged time: " + ", ".join(over)


def main():
    if not has_opencl():
        print("skipped: no OpenCL device, or no workloads were built")
        return SKIP
    scores, over = judge()
    look_again(scores)
    wrong = list(check(scores, over))
    for line in wrong:
        print("FAIL " + line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
