#!/usr/bin/env python3
"""Time and memory of `perfkit import` on a made-up trace of torch.profiler of any size, and of an Nsight Systems
export made of what came out.

    bench/import_trace.py PERFKIT [--gigabytes 2] [--folder /tmp] [--keep]

A step of 40 operators, each with a call and a kernel, copies now and then; names of a real model's variety (400
kernels, 300 operators). Prints a line for each: size, events, seconds by the clock and of CPU, peak memory.
"""
import argparse
import json
import os
import subprocess
import time


def write_trace(path, size):
    """Blocks of 2,000 operators are formatted once, with places for numbers that change."""
    events, written, correlation, now = 0, 0, 1, 0.0
    with open(path, "w", encoding="ascii", buffering=1 << 20) as out:
        out.write('{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150109880320, '
                  '"computeMajor": 9, "computeMinor": 0, "maxThreadsPerMultiprocessor": 2048, "warpSize": 32, "numSms": 132}], '
                  '"baseTimeNanoseconds": 1790857026000000000, "traceEvents": [\n'
                  '{"ph": "M", "name": "process_name", "pid": 658, "tid": 0, "ts": 0, "args": {"name": "python3"}}')
        while written < size:
            lines = []
            for i in range(2000):
                kernel = (correlation * 7 + i) % 400
                lines.append(
                    f',\n{{"ph": "X", "cat": "cpu_op", "name": "aten::operator_{kernel % 300}", "pid": 658, "tid": 658, "ts": {now:.3f}, '
                    f'"dur": 9.125, "args": {{"External id": {correlation}, "Record function id": 0, "Ev Idx": {correlation}}}}},\n'
                    f'{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 658, "tid": 658, "ts": {now + 2:.3f}, "dur": 5.001, '
                    f'"args": {{"External id": {correlation}, "cbid": 211, "correlation": {correlation}}}}},\n'
                    f'{{"ph": "s", "id": {correlation}, "pid": 658, "tid": 658, "ts": {now + 2:.3f}, "cat": "ac2g", "name": "ac2g"}},\n'
                    f'{{"ph": "X", "cat": "kernel", "name": "void at::native::vectorized_elementwise_kernel<4, at::native::functor_{kernel}<float>, '
                    f'std::array<char*, 2ul> >(int, at::native::functor_{kernel}<float>, std::array<char*, 2ul>)", "pid": 0, "tid": 7, '
                    f'"ts": {now + 8:.3f}, "dur": 3.{kernel:03d}, "args": {{"External id": {correlation}, "queued": 0, "device": 0, "context": 1, '
                    f'"stream": 7, "correlation": {correlation}, "registers per thread": 32, "shared memory": 0, "blocks per SM": 1.9393939, '
                    f'"warps per SM": 7.757576, "grid": [{kernel + 1}, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 12}}}},\n'
                    f'{{"ph": "f", "id": {correlation}, "pid": 0, "tid": 7, "ts": {now + 8:.3f}, "cat": "ac2g", "name": "ac2g", "bp": "e"}}')
                now += 10
                correlation += 1
            text = "".join(lines)
            out.write(text)
            written += len(text)
            events += 10000
        out.write("\n]}\n")
    return events


def measure(command):
    start = time.monotonic()
    child = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = status
    if status:
        raise SystemExit(f"{' '.join(command)} failed with {status}")
    return time.monotonic() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("perfkit")
    parser.add_argument("--gigabytes", type=float, default=2)
    parser.add_argument("--folder", default="/tmp")
    parser.add_argument("--keep", action="store_true", help="leave the files")
    asked = parser.parse_args()
    trace, capture, export, again = [os.path.join(asked.folder, name) for name in (
        "import_trace.json", "import_trace.sqlite", "import_trace-nsys.sqlite", "import_trace-again.sqlite")]
    try:
        events = write_trace(trace, asked.gigabytes * 1e9)
        for what, source, command in (
                ("import of a trace", trace, [asked.perfkit, "import", trace, "-o", capture, "--force", "-q"]),
                ("export to nsys", capture, [asked.perfkit, "export", capture, "--format", "nsys", export, "--force", "-q"]),
                ("import of that", export, [asked.perfkit, "import", export, "-o", again, "--force", "-q"])):
            wall, cpu, peak = measure(command)
            print(json.dumps({"what": what, "bytes": os.stat(source).st_size, "trace_events": events, "seconds": round(wall, 1),
                              "cpu_seconds": round(cpu, 1), "peak_mib": round(peak)}), flush=True)
    finally:
        for path in (trace, capture, export, again):
            if not asked.keep and os.path.exists(path):
                os.unlink(path)


if __name__ == "__main__":
    main()
