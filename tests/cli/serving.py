"""For tests of perfkit serve: the server, requests, and a reader of OpenMetrics 1.0 that forgives nothing."""
import http.client
import re
import socket
import subprocess
import time
from decimal import Decimal

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)')
SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}
DEADLINE_S = 600


def labels_of(text):
    labels, at = {}, 0
    while at < len(text):
        found = LABEL.match(text, at)
        assert found and found[1] not in labels, text[at:]
        labels[found[1]] = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], found[2])
        at = found.end()
    return tuple(sorted(labels.items()))


def parse(data):
    """{sample name: {labels: value}}, {family: (type, unit)}."""
    lines = data.decode("utf-8").split("\n")
    assert lines[-2:] == ["# EOF", ""], lines[-2:]
    samples, families, family = {}, {}, None
    for line in lines[:-2]:
        if line.startswith("#"):
            mark, what, name, rest = line.split(" ", 3)
            assert (mark, NAME.fullmatch(name) is not None) == ("#", True), line
            if what == "HELP":
                assert name not in families, line
                families[name], family = ["", ""], name
            assert name == family, line
            if what != "HELP":
                families[name][what == "UNIT"] = rest
            assert what != "UNIT" or name.endswith("_" + rest), line
            continue
        found = re.fullmatch(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)", line)
        assert found and family, line
        suffix = found[1][len(family):]
        assert found[1].startswith(family) and suffix in SUFFIXES[families[family][0]], line
        labels = labels_of(found[2] or "")
        assert labels not in samples.setdefault(found[1], {}), line
        samples[found[1]][labels] = Decimal(found[3])
        assert suffix == "" or samples[found[1]][labels] >= 0, line
    return samples, families


def sum_by(samples, name, label):
    sums = {}
    for labels, value in samples.get(name, {}).items():
        key = dict(labels).get(label)
        sums[key] = sums.get(key, 0) + value
    return sums


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Server:
    """perfkit serve on a free port, or with other words."""

    def __init__(self, perfkit, *words, port="127.0.0.1:0", **options):
        where = ["--listen", port] if port else []
        self.process = subprocess.Popen([perfkit, "serve", *where, *words], stderr=subprocess.PIPE, text=True, **options)
        self.line = self.process.stderr.readline()
        self.missing = "libmicrohttpd" in self.line
        place = self.line.rstrip().rsplit(" ", 1)[-1]
        if not self.missing and not place.startswith(("http", "/")):
            raise AssertionError("perfkit serve: %r, then it ended with %s" % (self.line + self.process.stderr.read(), self.process.wait()))
        self.port = int(place.rstrip("/").rsplit(":", 1)[1]) if place.startswith("http") else None
        self.place = place

    def get(self, path, headers=(), method="GET"):
        """(status, headers, body)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S) if self.port else UnixConnection(self.place)
        connection.request(method, path, headers=dict(headers))
        answer = connection.getresponse()
        result = answer.status, answer.headers, answer.read()
        connection.close()
        return result

    def metrics(self):
        status, headers, body = self.get("/metrics", {"Accept": "application/openmetrics-text; version=1.0.0"})
        assert (status, headers["Content-Type"].split(";")[0]) == (200, "application/openmetrics-text"), (status, body)
        return parse(body)[0]

    def state(self, samples=None):
        states = (samples or self.metrics())["perfkit_capture_state"]
        return next(dict(labels)["state"] for labels, value in states.items() if value == 1)

    def wait_for(self, holds):
        """Metrics for which holds(samples)."""
        limit = time.monotonic() + DEADLINE_S
        while True:
            samples = self.metrics()
            if holds(samples):
                return samples
            assert time.monotonic() < limit, samples
            time.sleep(0.05)

    def stop(self):
        self.process.terminate()
        self.process.stderr.close()
        return self.process.wait()
