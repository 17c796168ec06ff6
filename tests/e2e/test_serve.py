"""perfkit serve beside a program that is being recorded: what it counts never decreases and ends as the capture has it, a real
Prometheus scrapes it without a failure, and a recording that comes later is found."""
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import e2e

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from serving import Server, sum_by  # noqa: E402

FEED = os.path.join(e2e.BUILD, "bin", "bench_top_feed")


class Serve(e2e.Case):
    def serve(self, *words):
        server = Server(e2e.PERFKIT, "--refresh", "100ms", *words, env=e2e.clean_environment())
        if server.missing:
            self.skipTest(server.line.strip())
        self.addCleanup(lambda: self.assertEqual(server.stop(), 0))
        return server

    def feed(self, events_per_s, seconds):
        process = self.start(FEED, events_per_s, seconds, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        self.wait_for_capture(process)
        return process

    def test_counters_from_the_begin_to_the_end(self):
        process = self.feed(20000, 3)
        server = self.serve(process.capture)
        seen = []
        server.wait_for(lambda samples: seen.append(samples) or server.state(samples) == "finished")
        self.assertEqual(process.wait(), 0)
        for before, after in zip(seen, seen[1:]):
            for name in before:
                if name.endswith("_total") and name.startswith("perfkit_"):
                    for labels, value in before[name].items():
                        self.assertGreaterEqual(after[name].get(labels, -1), value, (name, labels))
        self.assertFalse(os.path.exists(process.capture + "-wal"))  # it was let go in time
        report = json.loads(self.perfkit("report", "--json", "--all", process.capture).out)
        last = seen[-1]
        counts = sum_by(last, "perfkit_kernel_invocations_total", "kernel")
        times = sum_by(last, "perfkit_kernel_time_seconds_total", "kernel")
        self.assertEqual(counts.pop("other") + times.pop("other"), 0)
        self.assertEqual({name: (counts[name], times[name] * 10**9) for name in counts},
                         {row["name"]: (row["count"], row["total_ns"]) for row in report["kernels"]["rows"]})
        self.assertEqual(sum(last["perfkit_memcpy_operations_total"].values()),
                         sum(row["count"] for row in report["transfers"]["rows"] if row["name"] != "memset"))
        self.assertEqual(list(last["perfkit_dropped_records_total"].values()), [0])

    def test_a_recording_that_comes_later(self):
        server = Server(e2e.PERFKIT, "--refresh", "100ms", "--attach", env=dict(e2e.clean_environment(), TMPDIR=self.spools))
        if server.missing:
            self.skipTest(server.line.strip())
        self.addCleanup(lambda: self.assertEqual(server.stop(), 0))
        process = self.feed(2000, 1)

        def attached(samples):
            found = [dict(labels)["capture"] for labels in samples.get("perfkit_capture_info", {})]
            if (found and found[0] != process.capture) or (not found and process.poll() is not None):
                self.skipTest("another recording of this user runs")
            return sum(samples.get("perfkit_kernel_invocations_total", {}).values()) == 900
        server.wait_for(attached)
        process.wait()

    def test_prometheus(self):
        program = shutil.which("prometheus")
        if not program:
            self.skipTest("no prometheus (Debian: prometheus)")
        process = self.feed(20000, 4)
        server = self.serve(process.capture)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with open(self.path("prometheus.yml"), "w") as file:
            file.write("global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n  - job_name: perfkit\n"
                       "    scrape_interval: 500ms\n    scrape_timeout: 500ms\n"
                       "    static_configs: [{targets: ['127.0.0.1:%d']}]\n" % server.port)
        prometheus = subprocess.Popen([program, "--config.file", self.path("prometheus.yml"), "--storage.tsdb.path", self.path("data"),
                                       "--web.listen-address", "127.0.0.1:%d" % port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self._end, prometheus)

        def query(text):
            url = "http://127.0.0.1:%d/api/v1/query?%s" % (port, urllib.parse.urlencode({"query": text}))
            try:
                rows = json.load(urllib.request.urlopen(url, timeout=e2e.TIMEOUT))["data"]["result"]
            except OSError:  # it does not listen yet
                return None
            return float(rows[0]["value"][1]) if rows else None

        limit = time.monotonic() + e2e.TIMEOUT
        while query("sum(perfkit_kernel_invocations_total)") != 36000:
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.2)
        self.assertEqual(query("sum(resets(perfkit_kernel_invocations_total[10m]))"), 0)
        self.assertEqual(process.wait(), 0)


if __name__ == "__main__":
    e2e.main()
