"""What targets/stalls.cu says of its kernels: where most of their samples must fall, and why."""
import os
import re

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "targets", "stalls.cu")


def marks():
    """{kernel: (line, reasons)}, and {kernel: the faulty one that does the same work}."""
    kernel, lines, after = None, {}, {}
    for number, text in enumerate(open(SOURCE), 1):
        found = re.match(r"__global__ void (?:__launch_bounds__\(.*?\) )?(\w+)\(.*?\)(?: // after (\w+)| .*)?$", text.rstrip())
        if found:
            kernel = found.group(1)
            if found.group(2):
                after[kernel] = found.group(2)
        found = re.search(r"// @ (.+)", text)
        if found:
            lines[kernel] = (number, found.group(1).split())
    return lines, after


def right(row, mark):
    """Is a row of the report's table of stalls as the source says?"""
    line, reasons = mark
    return row["reason"] in reasons and abs((row["line"] or 0) - line) <= 2
