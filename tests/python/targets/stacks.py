"""Writes of 1, 2, 3 ... bytes from many kinds of places. What the interpreter says of each place goes to
the file argv[1], a JSON list [bytes, [function, file, line] innermost first] a line."""
import contextlib
import functools
import json
import multiprocessing
import sys
import threading

from device import Device

lock = threading.Lock()
made = []


def places(frame):
    while frame:
        code = frame.f_code
        yield getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno
        frame = frame.f_back


class Writer:
    def __init__(self, base=0):
        self.device = Device()
        self.count = base

    def write(self):
        with lock:
            self.count += 1
            made.append((self.count, list(places(sys._getframe())))); self.device.write(self.count)


def generator(writer):
    for _ in range(2):
        yield writer.write()


def deep(writer, levels):
    if levels:
        deep(writer, levels - 1)
    else:
        writer.write()


@contextlib.contextmanager
def around(writer):
    try:
        yield
    finally:
        writer.write()


def child(base, path):
    writer = Writer(base)
    writer.write()
    list(generator(writer))
    save(path)


def save(path):
    with open(path, "a") as file:
        for entry in made:
            file.write(json.dumps(entry) + "\n")
    made.clear()


def main(path):
    for number, way in enumerate(("fork", "spawn"), 1):
        process = multiprocessing.get_context(way).Process(target=child, args=(number * 1000, path))
        process.start()
        process.join()
    writer = Writer()
    writer.write()
    list(generator(writer))
    sorted([2, 1], key=lambda value: writer.write() or value)
    functools.reduce(lambda a, b: writer.write(), [1, 2, 3])
    deep(writer, 60)
    with contextlib.suppress(ValueError):
        with around(writer):
            raise ValueError
    for line in range(3):
        exec("\n" * line + "def made_up(f):\n  f()\nmade_up(f)", {"f": writer.write})
    threads = [threading.Thread(target=deep, args=(writer, n)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.device.wait()
    save(path)


if __name__ == "__main__":
    main(sys.argv[1])
