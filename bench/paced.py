"""What torch_faults_w.py to _q.py, triton_faults.py and jax_faults.py share: arguments, turns, marked iterations.

    PROGRAM NAME --form bad|fixed [--steps N | --seconds S] [--turn FILE] [--cpu-smoke]
    PROGRAM --list

As in torch_faults.py: each iteration is an NVTX range "step", the last line is "step N ns", the mean. Without
--steps there are as many iterations as take about a second, by a short loop before: programs differ by a hundred times."""
import argparse
import contextlib
import fcntl
import time

WARM_UP = 3
SECONDS = 1.0
FEWEST, MOST = 8, 20000


def loop(step, count, mark, wait):
    """The mean ns of an iteration."""
    begun, last = time.perf_counter_ns(), None
    for _ in range(count):
        with mark("step") if mark else contextlib.nullcontext():
            last = step()
    wait(last)
    return (time.perf_counter_ns() - begun) // count


def run(step, steps, seconds, mark, wait):
    with mark("warmup"):
        loop(step, WARM_UP, None, wait)
        each = loop(step, WARM_UP, None, wait)
    return loop(step, steps or max(FEWEST, min(MOST, int(seconds * 1e9 / each))), mark, wait)


def main(about, choices, prepare, fixed_steps=()):
    """prepare(smoke) returns (mark, wait): a range of a name, and to wait for what a step returned."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("name", nargs="?", choices=sorted(choices), metavar="NAME")
    parser.add_argument("--form", choices=("bad", "fixed"), default="bad")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seconds", type=float, help="about how long the steps take")
    parser.add_argument("--turn", help="file to lock before the first step")
    parser.add_argument("--cpu-smoke", action="store_true", help="tiny, on the CPU: does it run?")
    parser.add_argument("--list", action="store_true", help="the names")
    args = parser.parse_args()
    if args.list or not args.name:
        print("\n".join(sorted(choices)))
        return 0
    mark, wait = prepare(args.cpu_smoke)
    step = choices[args.name](args.form == "fixed")
    steps = args.steps or (None if args.seconds else dict(fixed_steps).get(args.name))
    with open(args.turn, "w") if args.turn else contextlib.nullcontext() as turn:
        if turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
        print("step %d ns" % run(step, 2 if args.cpu_smoke else steps, args.seconds or SECONDS, mark, wait))
    return 0
