#!/usr/bin/env python3
"""Runs the commands of docs/tutorial.md in their order: each ends with 0 and prints the lines that the page shows, but for
numbers and spaces. A block after `<!-- not run: reason -->` is left out.

    tutorial_test.py BUILD ROOT
"""
import os
import re
import subprocess
import sys
import tempfile

NOT_RUN = re.compile(r"<!-- not run: .* -->")


def steps(text):
    """Each command, with the lines shown below it."""
    found, skip = [], False
    for line in text.splitlines():
        if NOT_RUN.fullmatch(line):
            skip = True
        elif line.startswith("    $ "):
            if not skip:
                found.append((line[6:], []))
        elif line.startswith("    ") and line.strip():
            if not skip:
                found[-1][1].append(line.strip())
        elif line.strip():
            skip = False
    return found


def pattern(shown):
    """Of a line of the page: any number for a number, any blanks for blanks."""
    parts = re.split(r"(\d[\d.,]*|\s+)", shown)
    return "".join(r"\d[\d.,]*" if part[:1].isdigit() else r"\s+" if part.isspace() else re.escape(part) for part in parts)


def main(build, root):
    with open(os.path.join(root, "docs", "tutorial.md"), encoding="utf-8") as file:
        wanted = steps(file.read())
    assert len(wanted) > 10 and any(lines for _, lines in wanted), wanted
    devices = subprocess.run([build + "/bin/perfkit", "doctor"], capture_output=True, text=True, check=False).stdout
    if not os.path.exists(build + "/workloads/patterns") or "can record here: OpenCL" not in devices:
        print("SKIP: no patterns workload, or no OpenCL device alone (the page shows what one prints)")
        return 77
    environment = {**os.environ, "LC_ALL": "C", "NO_COLOR": "1",
                   "PATH": "%s/bin:%s/workloads:%s" % (build, build, os.environ["PATH"])}
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for command, lines in wanted:
            done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            missing = [line for line in lines if not re.search(pattern(line), done.stdout)]
            if done.returncode or missing:
                failed = True
                print("%s\n  status %d; lines that it does not print: %s\n%s" %
                      (command, done.returncode, missing, done.stdout))
    print("%d commands" % len(wanted))
    return 1 if failed else 0


sys.exit(main(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])))
