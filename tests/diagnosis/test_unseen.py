"""Recorded PyTorch programs (an H200, tests/data/unseen) through `perfkit report`: what bench/unseen counts of
them. The labels are older than the rules; of the set to score more may be missed than of the one to tune on."""
import json
import lzma
import os
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(os.environ.get("PERFKIT_BUILD", "build/release"))
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LEAST = {"t": {"named": (10, 10), "first two": (10, 10), "call": (10, 10), "clean reports": (26, 26)},
         "s": {"named": (12, 12), "first two": (12, 12), "call": (12, 12), "clean reports": (26, 28)}}


def workers_count_as_a_fix():
    """perfkit verify on a DataLoader without workers and with some: the device is idle as often, and a quarter as long. And what-if of nothing."""
    with tempfile.TemporaryDirectory() as folder:
        for form in ("bad", "fixed"):
            with lzma.open(os.path.join(ROOT, "tests", "data", "unseen", "s_loader.%s.1.sqlite.xz" % form)) as packed, \
                    open(os.path.join(folder, form), "wb") as file:
                file.write(packed.read())
        answer = subprocess.run([os.path.join(BUILD, "bin", "perfkit"), "verify", "bad", "fixed", "--finding", "host-starvation", "--json"],
                                cwd=folder, stdout=subprocess.PIPE, check=False)
        without = subprocess.run([os.path.join(BUILD, "bin", "perfkit"), "what-if", "bad", "--set", "build=0"], cwd=folder, stdout=subprocess.PIPE, check=False)
    if b"No effect  build=0: " not in without.stdout: # nothing is compiled in its iterations
        return False
    verdicts = [row["verdict"] for row in json.loads(answer.stdout)["findings"]["rows"]]
    return answer.returncode == 0 and verdicts == ["partly"]


def main():
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([sys.executable, "-B", os.path.join(ROOT, "bench", "unseen"), BUILD, "--captures",
                        os.path.join(ROOT, "tests", "data", "unseen"), "--json", out.name], check=True)
        scores = json.load(open(out.name))
    wrong = ["%s: %s %s, expected at least %d of %d" % (which, key, scores[which][key], *least)
             for which, counts in LEAST.items() for key, least in counts.items()
             if scores[which][key][1] != least[1] or scores[which][key][0] < least[0]]
    if not workers_count_as_a_fix():
        wrong.append("s_loader: perfkit verify does not call host-starvation partly gone, or perfkit what-if does not say that build=0 has no effect")
    for line in wrong:
        print("FAIL " + line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
