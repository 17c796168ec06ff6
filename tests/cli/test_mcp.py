#!/usr/bin/env python3
"""perfkit mcp: set questions on three captures are answered by tool calls alone, as SQL on the files answers them; every message is
a line of at most 16 KiB; wrong requests get errors, and the next one an answer.

    test_mcp.py PERFKIT REPORT_TOOL SQL_FOLDER WORK_FOLDER [CAPTURE...]

With captures the questions are asked of these; the largest message is printed."""
import json
import os
import sqlite3
import subprocess
import sys
import unittest

perfkit, tool, source, work = [os.path.abspath(a) for a in sys.argv[1:5]]
os.makedirs(work, exist_ok=True)
FIXTURES = sys.argv[5:] or ("normal", "awkward", "more")
STOPPED = "perfkit sql: the query was stopped after 10.0 s\n"  # where a machine is so busy, instead of the end
largest = 0


def path_of(name):
    return name if name in sys.argv[5:] else os.path.join(work, name + ".sqlite")


def setUpModule():
    for name in ("normal", "awkward", "more", "hostile"):
        subprocess.run([tool, "make", os.path.join(source, name + ".sql"), path_of(name)], check=True)


class Server:
    def __init__(self):
        self.process = subprocess.Popen([perfkit, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=work)
        self.number = 0

    def send(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def receive(self):
        line = self.process.stdout.readline()
        assert line, "perfkit mcp ended with %s" % self.process.wait()
        assert line.endswith(b"\n") and len(line) <= 16384, len(line)
        global largest
        largest = max(largest, len(line))
        return json.loads(line)

    def request(self, method, params=None):
        self.number += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, **({"params": params} if params is not None else {})}))
        answer = self.receive()
        assert answer["id"] == self.number and answer["jsonrpc"] == "2.0", answer
        return answer

    def text(self, name, **arguments):
        """All pages of an answer."""
        whole = ""
        while True:
            result = self.request("tools/call", {"name": name, "arguments": dict(arguments, page=arguments.get("page", 1))})["result"]
            text = result["content"][0]["text"]
            last = text.rstrip("\n").rsplit("\n", 1)[-1]
            if result["isError"] or not last.startswith("[page "):
                return whole + text, result["isError"]
            whole += text[:-len(last) - 1]
            arguments["page"] = arguments.get("page", 1) + 1

    def rows(self, name, **arguments):
        text, failed = self.text(name, **arguments)
        assert not failed, text
        return json.loads(text)

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait()


class Mcp(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(lambda: self.assertEqual(self.server.close(), 0))

    def sql(self, name, query):
        db = sqlite3.connect(path_of(name))
        return db.execute(query).fetchall()

    def test_ten_questions(self):
        ask = self.server.rows
        for name in FIXTURES:
            capture = path_of(name)
            values = lambda query, limit=1000: [tuple(row.values()) for row in ask("sql", capture=capture, query=query, limit=limit)]
            finished = "FROM kernels WHERE start_ns NOT NULL AND duration_ns NOT NULL"
            # 1 to 4: which kernel takes most, how many launches, how much was copied to the device, which call blocks longest
            top = ask("sql", capture=capture, query="top_kernels", limit=1)
            truth = self.sql(name, "SELECT s.value, count(*), sum(k.duration) FROM kernel k JOIN launch_config c ON c.id = k.config JOIN string s "
                                   "ON s.id = coalesce(c.demangled, c.name) WHERE k.duration NOT NULL GROUP BY 1 ORDER BY 3 DESC LIMIT 1")
            self.assertEqual([(row["name"], row["launches"], row["total_ns"]) for row in top], truth)
            self.assertEqual(values(f"SELECT count(*), sum(duration_ns) {finished}"),
                             self.sql(name, "SELECT count(*), sum(duration) FROM kernel WHERE start NOT NULL AND duration NOT NULL"))
            self.assertEqual(values("SELECT sum(bytes) FROM transfers WHERE kind = 'HtoD'"), self.sql(name, "SELECT sum(bytes) FROM transfer WHERE kind = 1"))
            self.assertEqual(values("SELECT max(call_duration_ns) FROM synchronizations"), self.sql(name, "SELECT max(api_duration) FROM sync"))
            # 5 and 6: is it complete, and how long did it run: as the report says
            text, failed = self.server.text("report", capture=capture)
            said = subprocess.run([perfkit, "report", capture], capture_output=True, text=True, check=True).stdout
            self.assertEqual((text, failed), (said, False))
            self.assertIn("Trust", text)
            # 7: what is wrong
            findings = ask("findings", capture=capture)
            report = json.loads(subprocess.run([perfkit, "report", "--json", capture], capture_output=True, check=True).stdout)
            self.assertEqual([(row["rule"], row["bound_ns"]) for row in findings], [(row["rule"], row["bound_ns"]) for row in report["findings"]["rows"]])
            # 8: what never was freed; 9: which ranges there are; 10: what a part of the time holds
            self.assertEqual([row["bytes"] for row in ask("sql", capture=capture, query="never_freed", limit=10 ** 6)],
                             [row[0] for row in self.sql(name, 'SELECT bytes FROM allocation WHERE "end" IS NULL ORDER BY bytes DESC')])
            self.assertEqual(sorted(values("SELECT DISTINCT name FROM ranges"), key=str),
                             sorted(self.sql(name, "SELECT DISTINCT value FROM range LEFT JOIN string ON string.id = range.name"), key=str))
            part, _ = self.server.text("report", capture=capture, **{"from": "1us", "to": "20ms"})
            self.assertEqual(part, subprocess.run([perfkit, "report", "--from=1us", "--to=20ms", capture], capture_output=True, text=True, check=True).stdout)

    def test_every_tool_is_described_and_answers(self):
        listed = {row["name"]: row for row in self.server.request("tools/list")["result"]["tools"]}
        self.assertEqual(set(listed), {"list_captures", "report", "findings", "explain", "iterations", "why", "memory", "diff", "verify", "what_if", "gate", "sql", "sql_schema"})
        given = {"capture": path_of("normal"), "before": path_of("normal"), "after": path_of("normal"), "rule": "pageable-copy", "number": 1,
                 "query": "SELECT 1 AS one", "baseline": "none", "change": "memcpy=0"}
        for name, row in listed.items():
            self.assertTrue(row["annotations"]["readOnlyHint"])
            arguments = {key: given[key] for key in row["inputSchema"]["required"]}
            if "capture" in row["inputSchema"]["properties"]:
                arguments["capture"] = given["capture"]
            text, failed = self.server.text(name, **arguments)
            self.assertTrue(text.strip(), name)
            self.assertEqual(failed, name == "gate", (name, text))  # there is no baseline
        self.assertIn("normal.sqlite: ", self.server.text("list_captures")[0])

    def test_long_answers_come_in_pages(self):
        rows = self.server.rows("sql", capture=path_of("normal"), query="SELECT * FROM kernels", limit=1000)
        self.assertEqual(len(rows), self.sql("normal", "SELECT count(*) FROM kernel")[0][0])
        names = self.server.rows("sql", capture=path_of("hostile"), query="SELECT name FROM kernels UNION ALL SELECT name FROM ranges", limit=1000)
        self.assertGreater(len(names), 5)
        for page in (999999, 0, -1):
            result = self.server.request("tools/call", {"name": "sql_schema", "arguments": {"page": page}})["result"]
            self.assertTrue(result["isError"], page)
            self.assertRegex(result["content"][0]["text"], "^there is no page %d: they are numbered 1 to [0-9]+\n$" % page)

    def test_endless_rows_end(self):
        """And not after all memory is taken."""
        query = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT printf('%.*c', 900000, 'x') FROM c"
        text, failed = self.server.text("sql", capture=path_of("normal"), query=query, limit=10 ** 9)
        self.assertTrue(failed)
        self.assertIn(text, ("stopped: its answer is too long\n", STOPPED))

    def test_sorting_more_than_an_answer_may_have(self):
        """What a query sorts lies in a file, which may be larger than what it prints."""
        query = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 270) SELECT count(DISTINCT CAST(x AS BLOB) || zeroblob(1000000)) AS n FROM c"
        text, failed = self.server.text("sql", capture=path_of("normal"), query=query)
        if failed:  # on a slow disk
            self.assertEqual(text, STOPPED)
        else:
            self.assertEqual(json.loads(text), [{"n": 270}])

    def test_a_parent_that_ignores_its_children(self):
        """Says nothing about the tools: one that fails is an error."""
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "explain", "arguments": {"rule": "none"}}}
        done = subprocess.run(["bash", "-c", "trap '' CHLD; exec \"$0\" mcp", perfkit], input=json.dumps(request).encode(), capture_output=True, check=True)
        self.assertTrue(json.loads(done.stdout)["result"]["isError"])

    def test_folders(self):
        os.makedirs(os.path.join(work, "nothing here"), exist_ok=True)
        self.assertEqual(self.server.text("list_captures", folder=os.path.join(work, "nothing here")), ("no captures in this folder\n", False))
        text, failed = self.server.text("list_captures", folder="/nowhere")
        self.assertEqual((text, failed), ("perfkit mcp: cannot read the folder /nowhere: No such file or directory\n", True))
        self.assertEqual(len(self.server.text("list_captures", folder=work)[0].splitlines()), len(FIXTURES) + 1)

    def test_nothing_is_written(self):
        for query in ("DELETE FROM kernel", "ATTACH '/tmp/x' AS x", "PRAGMA journal_mode=WAL"):
            self.assertTrue(self.server.text("sql", capture=path_of("normal"), query=query)[1], query)
        for capture in ("--html=/tmp/x.html", "-o", "/nowhere/x.sqlite"):
            self.assertTrue(self.server.text("report", capture=capture)[1], capture)

    def test_protocol(self):
        answer = self.server.request("initialize", {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
        self.assertEqual(answer["result"]["protocolVersion"], "2024-11-05")
        self.assertEqual(self.server.request("initialize", {"protocolVersion": "1999-01-01"})["result"]["protocolVersion"], "2025-06-18")
        self.server.send('{"jsonrpc":"2.0","method":"notifications/initialized"}')
        self.server.send("")
        self.assertEqual(self.server.request("ping")["result"], {})
        for line, code in (("{nope", -32700), ("[1]", -32600), ('"x"', -32600), ("{}", -32600), ('{"x":"' + "y" * (2 << 20) + '"}', -32700)):
            self.server.send(line)
            self.assertEqual(self.server.receive()["error"]["code"], code, line[:20])
        for params in (None, {}, {"name": "nope"}, {"name": "explain"}, {"name": "sql", "arguments": {"capture": 5}}, {"name": "sql", "arguments": []},
                       {"name": "report", "arguments": {"path": path_of("normal")}}, {"name": "report", "arguments": {"capture": [path_of("normal")]}},
                       {"name": "sql_schema", "arguments": {"page": 1.5}}):
            self.assertEqual(self.server.request("tools/call", params)["error"]["code"], -32602, params)
        self.assertEqual(self.server.request("resources/list")["error"]["code"], -32601)
        self.assertEqual(self.server.request("ping")["result"], {})
        for given in ("9007199254740991", "-9007199254740991", '"\\\\u0000"', '"x"', "0"):
            self.server.send('{"jsonrpc":"2.0","id":%s,"method":"ping"}' % given)
            self.assertEqual(self.server.receive(), {"jsonrpc": "2.0", "id": json.loads(given), "result": {}})
        for given in ("9007199254740993", "-9007199254740993", "1e300", "1.5", "null", "true", "[1]", "{}", '"a\\u0000b"'):
            self.server.send('{"jsonrpc":"2.0","id":%s,"method":"ping"}' % given)
            answer = self.server.receive()
            self.assertEqual((answer["id"], answer["error"]["code"]), (None, -32600), given)
        answer = self.server.request("tools/call", {"name": "explain", "arguments": {"rule": "pageable-copy\0"}})
        self.assertEqual(answer["error"]["code"], -32600)
        last = subprocess.run([perfkit, "mcp"], input=b'{"jsonrpc":"2.0","id":7,"method":"ping"}', capture_output=True, check=True)
        self.assertEqual(json.loads(last.stdout)["id"], 7)


if __name__ == "__main__":
    asked = unittest.main(argv=[sys.argv[0]] + ["Mcp.test_ten_questions"] * bool(sys.argv[5:]), verbosity=2, exit=False).result
    print(f"largest message: {largest} bytes")
    sys.exit(not asked.wasSuccessful())
