#!/usr/bin/env python3
"""perfkit serve on made-up captures: its counters against SQL on the file, read by a strict parser and by promtool where that is
installed; counters that never decrease while the kernels that take most change; who may ask what; clients and files that
misbehave.

    test_serve.py PERFKIT REPORT_TOOL SQL_FOLDER WORK_FOLDER EXAMPLES_FOLDER"""
import base64
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer
from decimal import Decimal

from serving import Server, UnixConnection, parse, sum_by

perfkit, tool, source, work, examples = [os.path.abspath(a) for a in sys.argv[1:6]]
PROMTOOL = os.environ.get("PERFKIT_PROMTOOL") or shutil.which("promtool")
FIXTURES = ("normal", "awkward", "more", "hostile", "two_processes", "many", "empty")


def path_of(name):
    return os.path.join(work, name + ".sqlite")


def sql(path, query):
    with sqlite3.connect(path) as db:
        db.text_factory = bytes
        return db.execute(query).fetchall()


def setUpModule():
    os.makedirs(work, exist_ok=True)
    for name in (*FIXTURES, "live"):
        subprocess.run([tool, "make", os.path.join(source, name + ".sql"), path_of(name)], check=True)
    done = subprocess.run([perfkit, "serve", path_of("normal"), "--listen", "nowhere"], stderr=subprocess.PIPE, text=True)
    if "libmicrohttpd" in done.stderr:
        assert done.returncode == 1, done
        print("SKIP: " + done.stderr.strip())
        sys.exit(77)


class Case(unittest.TestCase):
    maxDiff = None

    def serve(self, *words, **options):
        server = Server(perfkit, *words, **options)
        self.addCleanup(lambda: self.assertEqual(server.stop(), 0))
        return server

    def assert_small(self, server):
        with open("/proc/%d/status" % server.process.pid) as file:
            peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
        if os.environ.get("PERFKIT_SANITIZED") != "1":
            self.assertLess(peak, 64 * 1024)

    def refused(self, *words):
        done = subprocess.run([perfkit, "serve", *words], stderr=subprocess.PIPE, text=True, timeout=600)
        return done.returncode, done.stderr


class Metrics(Case):
    def test_sums_are_those_of_the_rows(self):
        for name in FIXTURES:
            with self.subTest(name):
                samples = self.serve(path_of(name)).metrics()
                kernels = sql(path_of(name), "SELECT count(*), ifnull(sum(duration), 0) FROM kernel WHERE duration NOT NULL AND start NOT NULL")[0]
                copies = sql(path_of(name), "SELECT count(*), ifnull(sum(duration), 0) FROM transfer WHERE duration NOT NULL")[0]
                self.assertEqual(sum(samples.get("perfkit_kernel_invocations_total", {}).values()), kernels[0])
                self.assertEqual(sum(samples.get("perfkit_kernel_time_seconds_total", {}).values()) * 10**9, kernels[1])
                self.assertEqual(sum(samples.get("perfkit_memcpy_operations_total", {}).values()), copies[0])
                self.assertEqual(sum(samples.get("perfkit_memcpy_time_seconds_total", {}).values()) * 10**9, copies[1])
                kinds = sum_by(samples, "perfkit_gpu_operations_total", "operation")
                self.assertEqual(kinds.get("kernel", 0), kernels[0])

    def test_kernels_have_their_names(self):
        samples = self.serve(path_of("normal")).metrics()
        wanted = {name.decode(): (count, ns) for name, count, ns in sql(
            path_of("normal"), "SELECT name, count(*), sum(duration_ns) FROM kernels WHERE duration_ns NOT NULL GROUP BY name")}
        counts = sum_by(samples, "perfkit_kernel_invocations_total", "kernel")
        times = sum_by(samples, "perfkit_kernel_time_seconds_total", "kernel")
        self.assertEqual(counts.pop("other") + times.pop("other"), 0)
        self.assertEqual({name: (counts[name], times[name] * 10**9) for name in counts}, wanted)

    def test_families_are_described_as_in_the_report(self):
        def heads(text):
            found = re.findall(r"# HELP (\S+) (.*)\n# TYPE \1 (.*)", text)
            return {name: rest for name, *rest in found if name != "perfkit_gpu_busy_ratio"}  # of the last moments; of all
        live = heads(self.serve(path_of("normal")).get("/metrics")[2].decode())
        report = heads(subprocess.run([perfkit, "report", "--prometheus=-", path_of("normal")], stdout=subprocess.PIPE, text=True, check=True).stdout)
        both = live.keys() & report.keys()
        self.assertGreaterEqual(len(both), 10, both)
        self.assertEqual({name: live[name] for name in both}, {name: report[name] for name in both})

    def test_the_number_of_series_is_bounded(self):
        one = self.serve("--top", "1", path_of("normal")).metrics()
        all_of_it = self.serve(path_of("normal")).metrics()
        names = sum_by(one, "perfkit_kernel_invocations_total", "kernel")
        self.assertEqual(len(names), 2)
        self.assertIn("other", names)
        self.assertEqual(sum(names.values()), sum(all_of_it["perfkit_kernel_invocations_total"].values()))

    def test_any_number_of_names(self):
        path = path_of("names")
        shutil.copy(path_of("normal"), path)
        with sqlite3.connect(path) as db:
            rows = range(1000, 61000)
            db.executemany("INSERT INTO string(id, value) VALUES(?, ?)", ((i, "void generated::kernel_%d<float, 128, true>(float const*)" % i) for i in rows))
            db.executemany("INSERT INTO launch_config(id, name, grid_x) VALUES(?, ?, 1)", ((i, i) for i in rows))
            db.executemany("INSERT INTO rollup(second, stream, config, count, sum, min, max, histogram) VALUES(?, 1, ?, 1, ?, 1, 9, x'')",
                           ((i // 2000, i, i) for i in rows))
        db.close()
        server = self.serve(path)
        samples = server.metrics()
        count, ns = sql(path, "SELECT sum(count), sum(sum) FROM rollup")[0]
        names = sum_by(samples, "perfkit_kernel_time_seconds_total", "kernel")
        self.assertLessEqual(len(names), 51)
        self.assertEqual((sum(names.values()) * 10**9, sum(samples["perfkit_kernel_invocations_total"].values())), (ns, count))
        self.assert_small(server)

    def test_the_search_for_iterations_takes_the_newest_rows_only(self):
        path = path_of("dense")
        shutil.copy(path_of("normal"), path)
        with sqlite3.connect(path) as db:
            others = ", ".join(name for _, name, *_ in db.execute("PRAGMA table_info(kernel)") if name not in ("id", "start", "duration"))
            db.execute(f"INSERT INTO kernel(start, duration, {others}) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600000) "
                       f"SELECT 1000000 + i * 2000, 1000, {others} FROM n, (SELECT * FROM kernel LIMIT 1)")
            db.execute("UPDATE capture SET duration = 1300000000")
            db.execute("DELETE FROM range")
        db.close()
        server = self.serve(path)
        server.wait_for(lambda s: any(value > 0 for value in s.get("perfkit_gpu_busy_ratio", {}).values()))  # read after the search
        self.assert_small(server)

    def test_iterations(self):
        samples = self.serve(path_of("normal"), "-i", "step").metrics()
        count, ns = sql(path_of("normal"), "SELECT count(*), sum(duration) FROM range JOIN string ON string.id = name "
                                           "WHERE value = 'step' AND duration NOT NULL")[0]
        self.assertGreater(count, 3)
        self.assertEqual(samples["perfkit_iteration_seconds_count"], {(("range", "step"),): count})
        self.assertEqual(samples["perfkit_iteration_seconds_sum"], {(("range", "step"),): Decimal(ns) / 10**9})
        buckets = [value for _, value in sorted((float(dict(labels)["le"].replace("+Inf", "inf")), value)
                                                for labels, value in samples["perfkit_iteration_seconds_bucket"].items())]
        self.assertEqual((buckets, buckets[-1]), (sorted(buckets), count))

    def test_promtool(self):
        if not PROMTOOL:
            self.skipTest("no promtool (Debian: prometheus)")
        for name in ("normal", "hostile", "empty"):
            body = self.serve(path_of(name)).get("/metrics")[2]
            done = subprocess.run([PROMTOOL, "check", "metrics"], input=body, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual((done.returncode, done.stdout), (0, b""))

    def test_the_dashboard_names_what_there_is(self):
        body = self.serve(path_of("normal")).get("/metrics", {"Accept": "application/openmetrics-text"})[2]
        there = set()
        for name, (kind, _) in parse(body)[1].items():
            there |= {name + suffix for suffix in {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}[kind]}
        with open(os.path.join(examples, "grafana", "perfkit.json")) as file:
            dashboard = json.load(file)
        queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
        names = set(re.findall(r"\b(?:perfkit|process)_\w+", " ".join(queries)))
        self.assertGreater(len(names), 10)
        self.assertEqual(names - there, set())


class Growing(Case):
    """A capture that is being recorded, by this test."""

    def setUp(self):
        self.path = path_of("growing")
        for end in ("", "-wal", "-shm"):
            if os.path.exists(self.path + end):
                os.unlink(self.path + end)
        shutil.copy(path_of("live"), self.path)
        self.db = sqlite3.connect(self.path, isolation_level=None)
        self.addCleanup(self.db.close)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("UPDATE capture SET spool = NULL")
        self.db.execute("DELETE FROM kernel")
        self.names = 3

    def add(self, name, count, ns, second):
        row = self.db.execute("SELECT c.id FROM launch_config c JOIN string s ON s.id = c.name WHERE s.value = ?", (name,)).fetchone()
        if not row:
            text = self.db.execute("INSERT INTO string(value) VALUES(?)", (name,)).lastrowid
            row = (self.db.execute("INSERT INTO launch_config(name, grid_x, block_x) VALUES(?, 1, 1)", (text,)).lastrowid,)
        self.db.execute("INSERT INTO rollup(second, stream, config, count, sum, min, max, histogram) VALUES(?, 1, ?, ?, ?, 1, 9, x'')",
                        (second, row[0], count, ns))

    def test_counters_never_decrease_when_the_largest_change(self):
        self.add("first", 10, 1000, 0)
        server = self.serve("--top", "1", "--refresh", "100ms", self.path)
        seen = [server.metrics()]
        self.assertEqual(server.state(seen[0]), "recording")
        sum_ns = 1000
        for number, name in enumerate(("second", "third", "fourth", "first", "fifth")):
            self.add(name, 10, sum_ns + 1, number)  # more than all before: the largest now
            sum_ns += sum_ns + 1
            seen.append(server.wait_for(lambda s: sum(s["perfkit_kernel_time_seconds_total"].values()) == Decimal(sum_ns) / 10**9))
        for name in ("perfkit_kernel_invocations_total", "perfkit_kernel_time_seconds_total"):
            for before, after in zip(seen, seen[1:]):
                for labels, value in before[name].items():
                    self.assertGreaterEqual(after[name].get(labels, -1), value, labels)
        counts = sum_by(seen[-1], "perfkit_kernel_invocations_total", "kernel")
        self.assertEqual(set(counts), {"first", "second", "other"})  # twice --top at most
        self.assertEqual(counts["first"], 20)
        self.assertEqual(sum(counts.values()), 60)

    def test_counters_never_decrease_when_a_device_becomes_known_late(self):
        self.db.execute("UPDATE stream SET device = NULL")
        self.add("first", 10, 1000, 0)
        copy = "INSERT INTO transfer(start, duration, stream, kind, bytes) VALUES(?, 100, 1, 1, 64)"
        self.db.execute(copy, (700,))
        server = self.serve("--refresh", "100ms", self.path)
        counters = ("perfkit_kernel_invocations_total", "perfkit_kernel_time_seconds_total",
                    "perfkit_gpu_operations_total", "perfkit_gpu_operation_time_seconds_total")
        operations = lambda s: sum(s["perfkit_gpu_operations_total"].values())
        before = server.wait_for(lambda s: operations(s) == 11)
        self.db.execute("UPDATE stream SET device = 1")
        self.add("first", 5, 500, 1)
        self.db.execute(copy, (900,))
        after = server.wait_for(lambda s: operations(s) == 17)
        for name in counters:
            for labels, value in before[name].items():
                self.assertGreaterEqual(after[name].get(labels, -1), value, labels)
        self.assertEqual(sum_by(before, counters[0], "gpu"), {"n/a": 10, "0": 0})
        self.assertEqual(sum_by(after, counters[0], "gpu"), {"n/a": 10, "0": 5})
        self.assertEqual(sum_by(after, counters[2], "gpu"), {"n/a": 11, "0": 6})

    def test_names_that_look_alike_are_no_two_series(self):
        self.add("other", 1, 9000, 0)
        self.add("a\x01", 2, 5000, 0)
        self.add("a\\x01", 4, 4000, 0)
        counts = sum_by(self.serve(self.path).metrics(), "perfkit_kernel_invocations_total", "kernel")
        self.assertEqual(sum(counts.values()), 7)
        self.assertEqual(counts["other"], 5)

    def test_a_file_that_vanishes_and_one_that_takes_its_place(self):
        self.add("first", 10, 1000, 0)
        server = self.serve("--refresh", "100ms", self.path)
        self.db.close()
        for end in ("", "-wal", "-shm"):
            if os.path.exists(self.path + end):
                os.unlink(self.path + end)
        samples = server.wait_for(lambda s: server.state(s) == "deleted")
        self.assertEqual(sum(samples["perfkit_kernel_invocations_total"].values()), 10)  # what was read stays
        status, _, body = server.get("/api/report")
        self.assertEqual((status, b"no such file" in body), (503, True), body)
        shutil.copy(path_of("normal"), self.path + ".new")
        os.rename(self.path + ".new", self.path)
        samples = server.wait_for(lambda s: server.state(s) == "finished")
        self.assertEqual(sum(samples["perfkit_kernel_invocations_total"].values()),
                         sql(self.path, "SELECT count(*) FROM kernel WHERE duration NOT NULL")[0][0])
        with open(self.path + ".new", "w") as file:
            file.write("no capture")
        os.rename(self.path + ".new", self.path)
        self.assertIn(self.path, server.process.stderr.readline())  # what is wrong with it
        server.wait_for(lambda s: server.state(s) == "opening")


class Documents(Case):
    def test_they_are_those_of_the_commands(self):
        server = self.serve(path_of("normal"))
        status, headers, body = server.get("/api/report")
        plain = subprocess.run([perfkit, "report", "--json", path_of("normal")], stdout=subprocess.PIPE, check=True).stdout
        self.assertEqual((status, headers["Content-Type"], body), (200, "application/json", plain))
        top = json.loads(server.get("/api/top")[2])
        self.assertEqual((top["state"], top["whole"]), ("finished", True))
        self.assertEqual(server.get("/profile.pb.gz")[2][:2], b"\x1f\x8b")
        status, headers, page = server.get("/report.html")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertTrue(page.startswith(b"<!doctype html>") and page.rstrip().endswith(b"</html>"))
        self.assertIn(b"EventSource('events')", server.get("/")[2])
        event = server.get("/events")[2].decode()
        self.assertTrue(event.endswith("\n\n"))
        fields = dict(line.split(": ", 1) for line in event.strip().split("\n"))
        self.assertEqual(json.loads(fields["data"])["kernels"], top["totals"]["kernels"])


class Receiver(BaseHTTPRequestHandler):
    """What a collector of OpenTelemetry and Pyroscope are sent."""
    got = []

    def do_POST(self):
        self.got.append((self.path.split("?")[0], self.headers["Content-Type"], self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *words):
        pass


class Sending(Case):
    def test_the_lines_of_the_guide_send_what_the_commands_write(self):
        if not shutil.which("curl"):
            self.skipTest("no curl")
        server = self.serve(path_of("normal"))
        receiver = HTTPServer(("127.0.0.1", 0), Receiver)
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        self.addCleanup(receiver.server_close)
        self.addCleanup(receiver.shutdown)
        with open(os.path.join(examples, "..", "docs", "guide", "serve.md")) as file:
            lines = [line.strip(" $\n") for line in file if line.startswith("    $ curl")]
        self.assertEqual(len(lines), 2)
        written = []
        for option, line in zip(("--otlp=-", "--pprof=-"), lines):
            line = re.sub("127.0.0.1:(4318|4040)", "127.0.0.1:%d" % receiver.server_port, line.replace(":9847", ":%d" % server.port))
            subprocess.run(["sh", "-c", line], check=True)
            written.append(subprocess.run([perfkit, "report", "-q", option, path_of("normal")], stdout=subprocess.PIPE, check=True).stdout)
        otlp, pprof = Receiver.got
        self.assertEqual(otlp, ("/v1development/profiles", "application/x-protobuf", written[0]))
        self.assertEqual((pprof[0], pprof[1].split(";")[0]), ("/ingest", "multipart/form-data"))
        self.assertIn(b'name="profile"', pprof[2])
        self.assertIn(written[1], pprof[2])


class Access(Case):
    def token(self, text="0123456789abcdef!", mode=0o600):
        path = os.path.join(work, "token")
        with open(path, "w") as file:
            file.write(text + "\n")
        os.chmod(path, mode)
        return path

    def test_only_this_machine_without_a_token(self):
        status, error = self.refused("--listen", "0.0.0.0:0", path_of("normal"))
        self.assertEqual(status, 2)
        self.assertIn("--token-file", error)
        for text, mode, why in (("0123456789abcdef!", 0o644, "chmod 600"), ("short", 0o600, "at least 16"), ("0123456789abcdef \x07", 0o600, "ASCII")):
            status, error = self.refused("--listen", "0.0.0.0:0", "--token-file", self.token(text, mode), path_of("normal"))
            self.assertEqual((status, why in error), (2, True), error)

    def test_a_token(self):
        server = self.serve("--token-file", self.token(), path_of("normal"), port="0.0.0.0:0")
        self.assertEqual(server.get("/metrics")[0], 401)
        secret = base64.b64encode(b"perfkit:0123456789abcdef!").decode()
        for given, status in (("Bearer 0123456789abcdef!", 200), ("Basic " + secret, 200), ("Bearer 0123456789abcdef", 401),
                              ("Bearer 0123456789abcdef!!", 401), ("Basic " + secret[:-2], 401), ("0123456789abcdef!", 401)):
            self.assertEqual(server.get("/metrics", {"Authorization": given})[0], status, given)

    def test_host_names_are_refused(self):
        server = self.serve(path_of("normal"))
        for host, status in (("evil.example", 403), ("127.0.0.1.evil.example", 403), ("localhost.evil.example:80", 403),
                             ("localhost:%d" % server.port, 200), ("127.0.0.1", 200), ("[::1]:80", 200)):
            self.assertEqual(server.get("/events", {"Host": host})[0], status, host)

    def test_a_socket_is_for_this_user_only(self):
        path = os.path.join(work, "s")
        stale = socket.socket(socket.AF_UNIX)
        stale.bind(path)
        stale.close()  # as one that was killed leaves it
        server = Server(perfkit, "--socket", path, path_of("normal"), port=None)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.assertIn(b"# EOF", server.get("/metrics", {"Accept": "application/openmetrics-text"})[2])
        status, error = self.refused("--socket", path, path_of("normal"))
        self.assertEqual((status, "Address already in use" in error), (1, True), error)
        taken = socket.create_server(("127.0.0.1", 0))
        status, error = self.refused("--listen", "127.0.0.1:%d" % taken.getsockname()[1], path_of("normal"))
        taken.close()
        self.assertEqual((status, "choose another port with --listen" in error), (1, True), error)
        self.assertEqual(server.stop(), 0)
        self.assertFalse(os.path.exists(path))

    def test_no_file_of_another_is_removed(self):
        path = os.path.join(work, "notes.txt")
        with open(path, "w") as file:
            file.write("of the user")
        status, error = self.refused("--socket", path, path_of("normal"))
        self.assertEqual((status, "in use" in error), (1, True), error)
        with open(path) as file:
            self.assertEqual(file.read(), "of the user")
        os.remove(path)
        server = Server(perfkit, "--socket", path, path_of("normal"), port=None)
        os.remove(path)
        later = Server(perfkit, "--socket", path, path_of("normal"), port=None)
        self.assertEqual(server.stop(), 0)
        self.assertEqual(later.get("/events")[0], 200)
        later.process.send_signal(signal.SIGHUP)
        self.assertEqual(later.process.wait(), 0)
        later.process.stderr.close()
        self.assertFalse(os.path.exists(path))

    def test_the_name_of_the_loopback(self):
        server = Server(perfkit, path_of("normal"), port="localhost:0")
        self.assertEqual((server.place.split(":")[1], server.get("/metrics")[0]), ("//127.0.0.1", 200), server.line)
        self.assertEqual(server.stop(), 0)

    def test_what_is_wrong_is_said(self):
        for words, status, why in ((["no.sqlite"], 2, "no such file"), (["--attach", path_of("normal")], 2, "exclude"),
                                   (["--listen", "host.name:1", path_of("normal")], 2, "numeric"),
                                   (["--listen", "127.0.0.1:99999", path_of("normal")], 2, "numeric"),
                                   (["--listen", "127.0.0.1:0", os.path.abspath(__file__)], 2, "perfkit")):
            code, error = self.refused(*words)
            self.assertEqual((code, why in error), (status, True), error)


class Clients(Case):
    def test_only_reading(self):
        server = self.serve(path_of("normal"))
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            status, headers, _ = server.get("/metrics", method=method)
            self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"))
        self.assertEqual(server.get("/metrics", method="HEAD")[2], b"")
        for path in ("/nothing", "/../../etc/passwd", "/report.html/", "/api", "/" + "a" * 3000):
            self.assertEqual(server.get(path)[0], 404, path)

    def test_half_requests_and_many_clients(self):
        server = self.serve(path_of("normal"))
        clients = []
        for number in range(400):
            client = socket.create_connection(("127.0.0.1", server.port))
            client.send((b"", b"G", b"GET /metrics HTTP/1.1\r\nHost: local", b"GET /report.html HTTP/1.1\r\nHost: localhost\r\n\r\n")[number % 4])
            clients.append(client)
        self.addCleanup(lambda: [client.close() for client in clients])
        for rubbish in (b"\x00" * 100, b"GET\r\n\r\n", b"GET /metrics HTTP/9.9\r\n\r\n", b"GET /metrics HTTP/1.1\r\n" + b"x: y\r\n" * 100000,
                        b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n" + b"x" * 100000):
            client = socket.create_connection(("127.0.0.1", server.port))
            try:
                client.sendall(rubbish)
            except OSError:
                pass  # thrown out before it had said all
            clients.append(client)
        server.metrics()
        self.assert_small(server)

    def test_many_take_the_report_slowly(self):
        server = self.serve(path_of("normal"))
        server.get("/report.html")
        clients = [socket.socket() for _ in range(700)]
        self.addCleanup(lambda: [client.close() for client in clients])
        for client in clients:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", server.port))
            client.send(b"GET /report.html HTTP/1.1\r\nHost: localhost\r\n\r\n")
        server.metrics()
        self.assertLess(len(os.listdir("/proc/%d/fd" % server.process.pid)), 700 + 50)
        self.assert_small(server)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
