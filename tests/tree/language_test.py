#!/usr/bin/env python3
"""The words of the product's strings, of the documentation, and of the comments in the folders of COMMENTS, against a list
of words that have a plainer standard term (CONTRIBUTING.md, "Words"). Then the same with planted faults.

    language_test.py ROOT
"""
import re
import subprocess
import sys

# The word, and what to write instead.
WORDS = [
    (r"tell|tells|telling|told", "report, show, say, know"),
    (r"mend|mends|mended|mending", "fix"),
    (r"in vain", "timed out, without a result"),
    (r"for want of", "for lack of"),
    (r"under way", "running"),
    (r"stood|stood still", "was, was blocked, was idle"),
    (r"nobody|whom", "no process, no thread, not"),
    (r"purse|retreat|told_by", "budget, fallback, subscriber"),
    (r"(?:held|hold|holds) at the peak", "live at peak"),
    (r"asks? for|asked for|as asked", "request, launch, select"),
]
# On pages besides.
PAGE_WORDS = [
    (r"judge|judges|judged|judging", "compare, check, analyse"),
    (r"anybody|somebody", "the reader, another program"),
    (r"stands|stand (?:in|for|as|with|beside|at|under)", "is, is shown"),
    (r"copies and fills|copy or fill|copies or fills", "memcpys and memsets"),
]
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|("(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\')', re.DOTALL)
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
# In comments these too; in a string they may be right.
COMMENT_WORDS = [
    (r"ask|asks|asked|asking", "request, query, call, select"),
    (r"somebody|anybody|whoever", "another thread, a process, the thread that"),
    (r"beyond", "more than, after, outside"),
]


def compiled(words):
    return [(re.compile(r"(?<![\w-])(?:%s)(?![\w-])" % word, re.IGNORECASE), instead) for word, instead in words]


FORBIDDEN = compiled(WORDS)
FORBIDDEN_IN_COMMENTS = compiled(WORDS + COMMENT_WORDS)
SQL = re.compile(r"\b(SELECT|FROM|WHERE|JOIN|WITH)\b")
PRODUCT = ("cli/", "collectors/", "libprof/", "report/", "samplers/", "tui/", "workloads/")
COMMENTS = ("cli/", "collectors/", "libprof/", "report/", "samplers/", "tui/")


def blank_comments(text):
    return COMMENT.sub(lambda m: m.group(1) or re.sub(r"[^\n]", " ", m.group(0)), text)


def strings(text):
    """Line and text of each string literal; those that follow each other are one."""
    parts, end = [], None
    text = blank_comments(text)
    for match in STRING.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if parts and end is not None and not text[end:match.start()].strip():
            parts[-1] = (parts[-1][0], parts[-1][1] + match.group(1))
        else:
            parts.append((line, match.group(1)))
        end = match.end()
    return parts


def faults(path, text):
    for line, string in strings(text):
        if SQL.search(string):
            continue
        for word, instead in FORBIDDEN:
            found = word.search(string)
            if found:
                yield "%s:%d: %r: write %s" % (path, line, found.group(0), instead)


CODE = re.compile(r"^(```|~~~).*?^\1|`[^`]*`|\]\([^)]*\)|^<!--.*?-->", re.MULTILINE | re.DOTALL)


def is_page(path):
    """Measurements (docs/lab) and the history of changes are dated: their words stay."""
    return path in ("README.md", "CONTRIBUTING.md") or path.startswith("docs/") and \
        path.endswith(".md") and not path.startswith("docs/lab/")


def page_faults(path, text):
    """In prose and in indented examples; code, links and addresses are names."""
    text = CODE.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)
    for word, instead in WORDS + PAGE_WORDS:
        for found in re.finditer(r"(?<![\w-])(?:%s)(?![\w-])" % word.replace(" ", r"\s+"), text, re.IGNORECASE):
            yield "%s:%d: %r: write %s" % (path, text.count("\n", 0, found.start()) + 1, found.group(0), instead)


def comment_faults(path, text):
    for match in COMMENT.finditer(text):
        if match.group(1):
            continue
        if re.fullmatch(r"/\* ---[^\n]*\n[-*/\s]*", match.group(0)):
            yield "%s:%d: the title of a section is one line" % (path, text.count("\n", 0, match.start()) + 1)
        comment = re.sub(r"\s*\n\s*\*?\s*", " ", match.group(0))
        for word, instead in FORBIDDEN_IN_COMMENTS:
            found = word.search(comment)
            if found:
                line = text.count("\n", 0, match.start()) + 1
                yield "%s:%d: %r in a comment: write %s" % (path, line, found.group(0), instead)


def main(root):
    paths = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=False).stdout.split()
    if not paths:
        print("skipped: not a git checkout")
        return 77
    found = []
    for path in paths:
        if path.endswith((".c", ".h")) and path.startswith(PRODUCT):
            with open("%s/%s" % (root, path), encoding="utf-8") as file:
                text = file.read()
            found += faults(path, text)
            if path.startswith(COMMENTS):
                found += comment_faults(path, text)
        elif is_page(path):
            with open("%s/%s" % (root, path), encoding="utf-8") as file:
                found += page_faults(path, file.read())
    planted = '/* told in a comment */ f("the driver "\n  "told us"); g("as\\"asked"); h("stood");'
    seen = list(faults("planted.c", planted))
    if len(seen) != 2:
        found.append("of two planted faults these were seen: %s" % seen)
    planted = "It tells `what is told` and\n[mends](told.md) what was asked\nfor.\n```\ntold\n```\n"
    seen = list(page_faults("planted.md", planted))
    if len(seen) != 3:
        found.append("of three planted faults of a page these were seen: %s" % seen)
    planted = '/* a thread\n * waits beyond */ f("ask"); /* multitask, untold */\n// nobody\n/* ---- a part ----\n */'
    seen = list(comment_faults("planted.c", planted))
    if len(seen) != 3:
        found.append("of three faults planted in comments these were seen: %s" % seen)
    checked = "no string, no page and no comment in %s uses a word of the list" % ", ".join(COMMENTS)
    print("\n".join(found) if found else checked)
    return 1 if found else 0


sys.exit(main(sys.argv[1]))
