"""Runs frames.py in every CPython from 3.10 to 3.13 that is found here: test_frames.py PROBE.
PERFKIT_PYTHONS: more interpreters, separated by colons. PERFKIT_SANITIZER_RUNTIME: to be preloaded,
for a probe that was built with a sanitizer. Exits 77 when there is no interpreter to test with."""
import concurrent.futures
import glob
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
KNOWN = [(3, minor) for minor in range(10, 14)]
ASK = ("import sys, sysconfig; print(sys.version_info[0], sys.version_info[1], "
       "int('libpython' in open('/proc/self/maps').read()), "
       "sysconfig.get_config_var('Py_GIL_DISABLED') or 0)")


def candidates():
    yield from filter(None, os.environ.get("PERFKIT_PYTHONS", "").split(":"))
    yield sys.executable
    for folder in ("/usr/bin", "/usr/local/bin"):
        yield from sorted(glob.glob(folder + "/python3.1[0-3]"))
    yield from filter(None, (shutil.which("python%d.%d" % version) for version in KNOWN))
    yield from sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")))


def interpreters():
    """One of each version and way of linking: {(major, minor, shared, free-threaded): path}"""
    found = {}
    for path in candidates():
        answer = subprocess.run([path, "-c", ASK], capture_output=True, text=True)
        kind = tuple(map(int, answer.stdout.split())) if answer.returncode == 0 else ()
        if kind[:2] in KNOWN and not kind[3]:
            found.setdefault(kind, path)
    return found


def run(path, probe):
    environment = dict(os.environ, LD_PRELOAD=os.environ.get("PERFKIT_SANITIZER_RUNTIME", ""),
                       ASAN_OPTIONS="detect_leaks=0", PYTHONDONTWRITEBYTECODE="1")
    return subprocess.run([path, os.path.join(HERE, "frames.py"), probe], env=environment,
                          capture_output=True, text=True)


def main():
    found = interpreters()
    if not found:
        print("no CPython from 3.10 to 3.13 here")
        return 77
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda path: run(path, sys.argv[1]), found.values()))
    for kind, path, result in zip(found, found.values(), results):
        print("%d.%d %s%s: %s" % (kind[0], kind[1], path, "" if kind[2] else " (static)",
                                  "passed" if result.returncode == 0 else result.stderr))
    return 1 if any(result.returncode for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
