"""Names: they arrive whole, whatever the program does with its buffer afterwards, and whatever is in
them leaves every report format well-formed."""
import csv
import html.parser
import io
import json
import re
import shutil
import sqlite3

import e2e

HOSTILE = [
    b"two\nlines", b"carriage\rreturn", b'quote"d', b"it's", b"</script><script>alert(1)</script>",
    b"<!--<script>", b"]]>", b"&amp;", b"semi;colon", b"comma,name", b"back\\slash", b"tab\there",
    b"escape \x1b[31m red", b"bell\x07", b"bad \xff\xfe utf-8", b"cut \xe2\x82", b"surrogate \xed\xa0\x80",
    "line\u2028separator".encode(), "right\u202eto left".encode(), "\U0001f680 rocket".encode(),
    b"=1+2", b"%s%n", b"pipe|row", b"# heading", b"`tick`", b" spaces ", b"-", b"{{x}}", b"\x7f"]
# What a reader of a text format gets for bytes that are no text.
TEXTS = [name.decode("utf-8", "replace") for name in HOSTILE]


def escaped(name):
    """As formats write it that may end on a terminal: control characters and bytes that are no text as escapes."""
    text = name.decode("utf-8", "surrogateescape")
    known = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\u2028": "\\u{2028}", "\u202e": "\\u{202e}"}
    return "".join(known.get(c) or ("\\x%02x" % (ord(c) & 0xff) if ord(c) < 32 or 127 <= ord(c) < 160 or 0xdc80 <= ord(c) < 0xdd00 else c)
                   for c in text)


def squeezed(text):
    """Any run of replacement characters as one: decoders differ in how many they write."""
    return re.sub("\ufffd+", "\ufffd", text)


class Arrive(e2e.Case):
    def names(self, db, table):
        return [bytes(row[0]) for row in db.execute(
            "SELECT CAST(value AS BLOB) FROM %s e JOIN string ON string.id = e.name ORDER BY e.start, "
            "e.id" % table)]

    def test_one_buffer_with_many_texts(self):
        result = self.record(e2e.target("names"), "reuse", 1000)
        db = self.open(result.capture)
        self.assert_conserved(db)
        wanted = [b"text %d" % i for i in range(1000)]
        self.assertEqual(self.names(db, "marker"), wanted)
        self.assertEqual(self.names(db, "range"), wanted)

    def test_long(self):
        for size in (4000, 4096, 10000, 100000):
            with self.subTest(bytes=size):
                result = self.record(e2e.target("names"), "long", size)
                db = self.open(result.capture)
                self.assert_conserved(db)
                wanted = [(b"abcdefghijklmnopqrstuvwxyz" * (size // 26 + 1))[:size]]
                self.assertEqual(self.names(db, "marker"), wanted)
                self.assertEqual(self.names(db, "range"), wanted)
                report = self.perfkit("report", "--json", result.capture)
                self.assertEqual(report.status, 0)
                self.assertEqual(json.loads(report.out)["ranges"]["rows"][0]["name"].encode(),
                                 wanted[0])

    def test_hostile_bytes_are_kept(self):
        with open(self.path("names"), "wb") as file:
            file.write(b"\0".join(HOSTILE) + b"\0")
        result = self.record(e2e.target("names"), "file", self.path("names"))
        db = self.open(result.capture)
        self.assert_conserved(db)
        self.assertEqual(self.names(db, "marker"), HOSTILE)
        self.assertEqual(self.names(db, "range"), HOSTILE)


class Page(html.parser.HTMLParser):
    """Every element and every script of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.scripts, self.inside = [], [], False

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1] += data


# What is found depends on how long things took; what is listed does not.
LISTED = ("--top", 100, "--findings", "none")


class Formats(e2e.Case):
    """One capture with hostile names, and a harmless one beside it for comparison."""

    def setUp(self):
        super().setUp()
        way = "kernels" if e2e.has_opencl() else "file"
        with open(self.path("hostile"), "wb") as file:
            file.write(b"\0".join(HOSTILE) + b"\0")
        hostile = self.record(e2e.target("names"), way, self.path("hostile")).capture
        # The same run with other names: what is found depends on how long things took.
        harmless = shutil.copy(hostile, self.path("harmless.sqlite"))
        db = sqlite3.connect(harmless)
        for i, name in enumerate(HOSTILE):
            db.execute("UPDATE string SET value = ? WHERE CAST(value AS BLOB) = ?", ("n%d" % i, name))
        db.commit()
        db.close()
        self.capture = {"hostile": hostile, "harmless": harmless}

    def report(self, *words, kind="hostile"):
        # So wide that no long name takes the place of a column.
        result = self.perfkit("report", *words, self.capture[kind],
                              env=e2e.clean_environment(COLUMNS="10000"))
        self.assertEqual(result.status, 0, result.err)
        return result.out

    def written(self, option, kind="hostile"):
        out = self.path(kind + option)
        self.report(option, out, kind=kind)
        with open(out, "rb") as file:
            return file.read()

    def test_text(self):
        text = self.report("--all", "--top", 100).decode("utf-8")
        self.assertEqual([c for c in text if ord(c) < 32 and c != "\n" or ord(c) == 127], [])
        plain = self.report("--all", *LISTED, kind="harmless").decode()
        text = self.report("--all", *LISTED).decode("utf-8")
        self.assertEqual(text.count("\n"), plain.count("\n"))
        for part in ("two\\nlines", "semi;colon", "back\\slash", "\U0001f680 rocket"):
            self.assertIn(part, text)

    def test_json(self):
        report = json.loads(self.report("--json", "--top", 100).decode("utf-8"))
        self.assertEqual(sorted(squeezed(row["name"]) for row in report["ranges"]["rows"]),
                         sorted(map(squeezed, TEXTS)))

    def test_csv(self):
        text = self.report("--format", "csv", "--top", 100).decode("utf-8")
        rows = list(csv.reader(io.StringIO(text, newline="")))
        header = next(row for row in rows if row[:1] == ["table"] and "style" in row)
        ranges = [row for row in rows if row and row[0] == "ranges"]
        self.assertTrue(all(len(row) == len(header) for row in ranges))
        names = [row[header.index("name")] for row in ranges]
        # A leading sign may be guarded against spreadsheets; what a terminal would obey is escaped.
        self.assertEqual(sorted(name.lstrip("'") for name in names), sorted(map(escaped, HOSTILE)))

    def test_markdown(self):
        self.assertNotIn("<script", self.report("--format", "markdown").decode("utf-8"))
        text = self.report("--format", "markdown", *LISTED).decode("utf-8")
        plain = self.report("--format", "markdown", *LISTED, kind="harmless").decode()
        self.assertEqual(text.count("\n"), plain.count("\n"))
        bars = lambda t: [len(re.findall(r"(?<!\\)\|", line)) for line in t.splitlines()]
        self.assertEqual(bars(text), bars(plain))
        self.assertNotIn("<script", text)

    def test_chrome_trace(self):
        trace = json.loads(self.written("--chrome-trace").decode("utf-8"))
        events = trace["traceEvents"] if isinstance(trace, dict) else trace
        seen = {squeezed(event["name"]) for event in events}
        self.assertEqual([name for name in TEXTS if squeezed(name) not in seen], [])

    def test_html(self):
        pages = {}
        for kind in self.capture:
            pages[kind] = Page()
            pages[kind].feed(self.written("--html", kind).decode("utf-8"))
        self.assertEqual(pages["hostile"].tags, pages["harmless"].tags)
        self.assertEqual(len(pages["hostile"].scripts), len(pages["harmless"].scripts))
        self.assertFalse(any("<!--" in script for script in pages["hostile"].scripts))
        self.assertIn("alert(1)", "".join(pages["hostile"].scripts))

    @e2e.needs_opencl
    def test_flamegraph(self):
        lines = {}
        for kind in self.capture:
            lines[kind] = self.written("--flamegraph", kind).decode("utf-8", "replace").split("\n")
            for line in lines[kind][:-1]:
                self.assertRegex(line, r"^[^;]+(;[^;]+)* [0-9]+$")
                self.assertEqual([c for c in line if ord(c) < 32], [])
        depth = lambda kind: sorted(line.count(";") for line in lines[kind])
        self.assertEqual(depth("hostile"), depth("harmless"))


if __name__ == "__main__":
    e2e.main()
