#!/usr/bin/env python3
"""The documentation against what it speaks of: every page is reached from README.md, links lead somewhere, and each
`perfkit` command that is shown exists, with the options it is shown with, and findings say what their rules say. Then the same with planted faults.

    docs_test.py PERFKIT ROOT
"""
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`]+)`")
COMMAND = re.compile(r"(?<![\w/.<-])(?<!  )perfkit ([a-z]+(?:-[a-z]+)*)((?:\s|$).*)?")
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*|-[a-z])(?![\w-])")
PROGRAM = re.compile(r"(?<![\w/.-])((?:bench|scripts|examples)/[\w/]+(?:\.\w+)?)((?:\s|$).*)?")
# What ends the words of a command of ours: the program that it starts, the shell's marks, a remark.
END = re.compile(r"\s--(?:\s|$)|[|;&>]|\s#|\s\.\.\.")
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def pages(root):
    found = []
    for folder, _, names in os.walk(os.path.join(root, "docs")):
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names if name.endswith(".md")]
    return ["README.md", "CONTRIBUTING.md"] + sorted(found)


def anchors(text):
    """Of the headings of a page, as the forges make them."""
    heads = re.findall(r"^#+ (.*)$", FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def check_links(root):
    """Yields what is wrong with the links; a page that no link leads to is one such thing."""
    reached, waiting = set(), ["README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        for target in LINK.findall(FENCED.sub("", read(os.path.join(root, page)))):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not os.path.exists(os.path.join(root, path)):
                yield "%s: link to %s: no such file" % (page, target)
            elif path.endswith(".md"):
                if anchor and anchor not in anchors(read(os.path.join(root, path))):
                    yield "%s: link to %s: no such heading" % (page, target)
                waiting.append(path)
    for page in pages(root):
        if page not in reached:
            yield "%s: no link from README.md leads there" % page


def commands(text):
    """Lines of code and spans of code: what a reader would type. Blocks of text are output."""
    for block in FENCED.findall(text):
        if not block.startswith("```text"):
            yield from block.splitlines()
    text = FENCED.sub("", text)
    prose = []
    for line in text.splitlines():
        if line.startswith("    "):
            yield line
        else:
            prose.append(line)
    for paragraph in re.split(r"\n\s*\n", "\n".join(prose)):
        for span in SPAN.findall(paragraph):
            yield " ".join(span.split())


def options(words):
    return OPTION.findall(END.split(QUOTED.sub("", words or ""), maxsplit=1)[0])


def source_of(program):
    """Of a program and of what it starts: NAME.sh runs NAME.py."""
    return "".join(read(path) for path in {program, os.path.splitext(program)[0] + ".py"} if os.path.isfile(path))


def check_commands(root, helps):
    for page in pages(root):
        for line in commands(read(os.path.join(root, page))):
            for name, words in COMMAND.findall(re.split(r"\s#", line.strip())[0]):
                if name not in helps:
                    yield "%s: `%s`: there is no perfkit %s" % (page, line.strip(), name)
                    continue
                for option in options(words):
                    if option not in helps[name]:
                        yield "%s: `%s`: perfkit %s has no %s" % (page, line.strip(), name, option)
            for program, words in PROGRAM.findall(line):
                path = os.path.join(root, program)
                if not os.path.exists(path):
                    yield "%s: `%s`: no such file" % (page, program)
                    continue
                source = source_of(path)
                for option in options(words):
                    if source and option.startswith("--") and not re.search(re.escape(option) + r"(?![\w-])", source):
                        yield "%s: `%s`: %s knows no %s" % (page, line.strip(), program, option)


# What a page must name: the page, the source, how the source says it, how the page does.
NAMED = [
    ("docs/troubleshooting.md", "libprof/store/health.h", r"^    X\((\w+), [A-Z]+,", "`%s`"),
    ("docs/troubleshooting.md", "cli/doctor.c", r'doctor_add\(\s*doctor, "([^"]+", "[^"]+)"', "| %s |"),
    ("docs/troubleshooting.md", "cli/doctor.c", r'check_limit\(doctor, "([^"]+)"', "| system | %s |"),
    ("docs/guide/top.md", "tui/app.c", r'\[TUI_VIEW_\w+\]\s*= \{\s*"\w+",\s*"([^"]+)"', "| %s |"),
    ("docs/reference/gate-settings.md", "cli/gate_config.c", r'^    \{"(\w+)", (?:IN_|ANYWHERE)', "| `%s` |"),
    ("docs/reference/gate-settings.md", "libprof/include/prof_compare.h", r'^    X\([A-Z_]+, "([\w-]+)", (?:NOISY|EXACT),', "| `[%s]` |"),
]
# A step of the walk: `file`: `function`
STEP = re.compile(r"^\d+\. `([\w/.]+)`: `(\w+)`", re.MULTILINE)


def check_named(root):
    """What the pages of reference and troubleshooting lack, and steps of the walk that are not in the code."""
    for page, source, said, shown in NAMED:
        text, names = read(os.path.join(root, page)), re.findall(said, read(os.path.join(root, source)), re.MULTILINE)
        if not names:
            yield "%s: %s no longer says %s" % (page, source, said)
        for name in dict.fromkeys(names):
            if shown % name.replace('", "', " | ") not in text:
                yield "%s: %s of %s is missing" % (page, name, source)
    page = "docs/reference/c-api.md"
    for name in os.listdir(os.path.join(root, "libprof/include")):
        if name.endswith(".h") and "[%s]" % name not in read(os.path.join(root, page)):
            yield "%s: %s is missing" % (page, name)
    page = "docs/dev/architecture.md"
    steps = STEP.findall(read(os.path.join(root, page)))
    if not 6 <= len(steps) <= 12:
        yield "%s: the walk has %d steps" % (page, len(steps))
    for path, function in steps:
        source = os.path.join(root, path)
        if not os.path.exists(source):
            yield "%s: %s: no such file" % (page, path)
        elif not re.search(r"^(?:[a-z][^;\n]*\b|\s*function )%s\(" % function, read(source), re.MULTILINE):
            yield "%s: %s has no %s" % (page, path, function)


# What the collector, the wire and the store have of the kind that is the example of a new one.
EXAMPLE_KIND = re.compile("decompress", re.IGNORECASE)


def check_new_kind(root):
    """Are the files that a new kind of records takes those that the page names?"""
    page = "docs/dev/architecture.md"
    section = re.search(r"^## A new kind of.*?^## ", read(os.path.join(root, page)), re.MULTILINE | re.DOTALL)
    named = set(re.findall(r"`((?:collectors|libprof)/[\w/.]+)`", section[0])) if section else set()
    taken = set()
    for top in ("collectors", "libprof"):
        for folder, _, names in os.walk(os.path.join(root, top), followlinks=True):
            for name in names:
                path = os.path.join(folder, name)
                if name.endswith((".c", ".h", ".def")) and EXAMPLE_KIND.search(read(path)):
                    taken.add(os.path.relpath(path, root))
    for path in sorted(named ^ taken):
        yield "%s: %s %s the example of a new kind" % (page, path, "has nothing of" if path in named else "is not named for")


# Source files that a page names: with a folder, or C files by their name alone; headers of others are not ours.
SOURCE = re.compile(r"(?:[\w*]+/)+[\w*.-]+\.(?:c|h|py|sh|def|tsv|js|cmake)|[\w*]+\.[ch]")
FOLDERS = ("bench", "cli", "cmake", "collectors", "docs", "examples", "kernels", "libprof", "report", "samplers", "scripts",
           "tests", "tui", "workloads")
OF_OTHERS = {"cuda.h", "cupti.h"}


def check_sources(root):
    """Source files in code marks that are not in the tree, be it under a part of their path."""
    files = []
    for top in FOLDERS:
        for folder, _, names in os.walk(os.path.join(root, top), followlinks=True):
            files += ["/" + os.path.relpath(os.path.join(folder, name), root) for name in names]
    for page in pages(root):
        for span in SPAN.findall(FENCED.sub("", read(os.path.join(root, page)))):
            if SOURCE.fullmatch(span) and span not in OF_OTHERS and not fnmatch.filter(files, "*/" + span):
                yield "%s: `%s`: no such file" % (page, span)


def check_mentions(root):
    """Pages and schemas that the files of the tree name. CHANGELOG.md and measurements name those of their day."""
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=False).stdout
    for path in listed.split():
        if path == "CHANGELOG.md" or path.startswith("docs/lab/") or path == "tests/tree/docs_test.py" or \
                not os.path.isfile(os.path.join(root, path)):
            continue
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            for name in re.findall(r"(?<![\w/])docs/[\w/-]+\.(?:md|json)\b", file.read()):
                if not os.path.exists(os.path.join(root, name)):
                    yield "%s: there is no %s" % (path, name)


# A finding as reports show it: its first line, and the lines `fix` and `with`, which go on as far as they are indented alike.
FINDING = re.compile(r"^ *([a-z]+(?:-[a-z]+)+) \((?:critical|warning|info)\)")
ADVICE = re.compile(r"^( +(fix|with) {2,})(.*)$")


def advice_of(lines, at):
    """The words of the line `fix` or `with` there, and of those that go on with it."""
    start, _, text = ADVICE.match(lines[at]).groups()
    words = [text]
    for line in lines[at + 1:]:
        if not line.startswith(" " * len(start)) or not line.strip():
            break
        words.append(line)
    return " ".join(" ".join(words).split())


def check_findings(root, rules):
    """Findings in pages and examples whose rule is not there, or that quote what the rule does not say."""
    examples = sorted(name for name in os.listdir(os.path.join(root, "docs/examples")) if name.endswith(".txt"))
    for page in pages(root) + ["docs/examples/" + name for name in examples]:
        lines, rule = read(os.path.join(root, page)).splitlines(), None
        for at, line in enumerate(lines):
            found, advice = FINDING.match(line), ADVICE.match(line)
            if found:
                rule = rules.get(found[1])
                if not rule:
                    yield "%s: there is no finding %s" % (page, found[1])
            elif advice and rule:
                said = advice_of(lines, at)
                known = [rule["fix"]] if advice[2] == "fix" else [rule[api] for api in ("cuda", "opencl", "pytorch", "jax")]
                if said not in [" ".join((text or "").split()) for text in known]:
                    yield "%s: %s does not say: %s" % (page, rule["rule"], said)
        for name in re.findall(r"perfkit explain ([a-z]+(?:-[a-z]+)+)", "\n".join(lines)):
            if name not in rules:
                yield "%s: there is no finding %s to explain" % (page, name)


def known_rules(perfkit):
    """What `perfkit explain` says of each rule, by its name."""
    said = subprocess.run([perfkit, "explain", "--json"], capture_output=True, text=True, check=True)
    return {rule["rule"]: rule for rule in json.loads(said.stdout)}


def help_of(perfkit, *words):
    return subprocess.run([perfkit, *words, "--help"], capture_output=True, text=True, check=True,
                          env={**os.environ, "LC_ALL": "C"}).stdout


def known_commands(perfkit):
    """The options of each command, by name, out of its --help."""
    listed = re.search(r"^Commands:\n(.*?)\n\n", help_of(perfkit), re.MULTILINE | re.DOTALL).group(1)
    names = re.findall(r"^  ([a-z-]+) ", listed, re.MULTILINE)
    assert "run" in names and "report" in names, names
    helps = {}
    for name in names:
        rows = re.findall(r"^ {2,6}(-.*)$", help_of(perfkit, name), re.MULTILINE)
        helps[name] = set(OPTION.findall(" ".join(row.split("  ")[0] for row in rows)))
    assert {"-o", "--output"} <= helps["run"], helps["run"]
    return helps


def check(root, helps, rules):
    return list(check_links(root)) + list(check_commands(root, helps)) + list(check_named(root)) + \
        list(check_sources(root)) + list(check_findings(root, rules))


def check_planted(root, helps, rules):
    """Each fault, added to a copy of README.md, is found."""
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(os.path.join(root, "docs"), os.path.join(copy, "docs"))
        for name in (*FOLDERS, "CONTRIBUTING.md", "CHANGELOG.md"):
            if name == "docs":
                continue  # a copy, which is changed
            os.symlink(os.path.join(root, name), os.path.join(copy, name))
        text = read(os.path.join(root, "README.md"))
        for fault in ("[a page](docs/no_such_page.md)", "[a place](docs/guide/gate.md#no-such-heading)",
                      "    $ perfkit rum -- ./a", "    $ perfkit report --no-such-option run.sqlite",
                      "See `perfkit\nrun -z -- ./a`.", "`bench/no_such_bench`", "`collectors/cuda/no_such.c`", "`no_such.h`", "`bench/overhead build --no-such-option`",
                      "    no-finding (critical): saves at most 1 ms", "    $ perfkit explain no-finding",
                      "    alloc-in-loop (info): saves at most 1 ms\n      fix    Allocate before the loop and reuse the\n             buffer.",
                      None):
            with open(os.path.join(copy, "README.md"), "w", encoding="utf-8") as file:
                file.write(text + "\n\n" + (fault or "") + "\n")
            if not fault:
                with open(os.path.join(copy, "docs", "orphan.md"), "w", encoding="utf-8") as file:
                    file.write("# A page that nothing links to\n")
            wrong = check(copy, helps, rules)
            assert len(wrong) == 1, "%s: %s" % (fault or "a page without a link", wrong or "not found")
        os.remove(os.path.join(copy, "docs", "orphan.md"))
        for page, named in (("docs/troubleshooting.md", "`record_damaged`"), ("docs/troubleshooting.md", "| cuda | CUPTI |"),
                            ("docs/reference/gate-settings.md", "`[syncs]`"), ("docs/reference/c-api.md", "[prof_roofline.h]"),
                            ("docs/dev/architecture.md", "`lineOf`")):
            text = read(os.path.join(copy, page))
            assert text.count(named) == 1, named
            with open(os.path.join(copy, page), "w", encoding="utf-8") as file:
                file.write(text.replace(named, "`no_such`"))
            wrong = list(check_named(copy))
            assert len(wrong) == 1, "%s without %s: %s" % (page, named, wrong or "not found")
            with open(os.path.join(copy, page), "w", encoding="utf-8") as file:
                file.write(text)
        page = os.path.join(copy, "docs", "dev", "architecture.md")
        text = read(page)
        with open(page, "w", encoding="utf-8") as file:
            file.write(text.replace("`libprof/wire/activity.h`", "the header"))
        assert len(list(check_new_kind(copy))) == 1, "a file of the new kind that is not named"


def main():
    perfkit, root = sys.argv[1], os.path.abspath(sys.argv[2])
    helps, rules = known_commands(perfkit), known_rules(perfkit)
    wrong = check(root, helps, rules) + list(check_mentions(root)) + list(check_new_kind(root))
    for line in wrong:
        print(line)
    if not wrong:
        check_planted(root, helps, rules)
    return 1 if wrong else 0


sys.exit(main())
