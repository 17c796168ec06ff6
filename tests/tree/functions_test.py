#!/usr/bin/env python3
"""A function that a header declares is used by another file than the one that defines it: one without a caller is
removed, one with callers in its own file only is static. The public API (libprof/include) is for others.
And a function's name is defined in one file of the product only. A folder in libprof/analysis calls what its row of
dependency_order.sh lets it include: the public headers declare functions of all of them. Then the same with planted
faults.

    functions_test.py ROOT
"""
import os
import re
import sys
import tempfile

FOLDERS = ("bench", "cli", "collectors", "kernels", "libprof", "report", "samplers", "tests", "tui", "workloads")
CODE = (".c", ".h", ".cu", ".cc")
NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
DECLARED = re.compile(r"^(?!static|typedef|extern \"C\"|#)[a-z][\w \*]*?\b(\w+)\([^;{}]*\)"
                      r"\s*(?:__attribute__\(\(.*?\)\)\s*)?;", re.MULTILINE | re.DOTALL)
DEFINED = re.compile(r"^(?:[a-z_]\w*[ \*]+)+(\w+)\([^;{}]*\)\s*\{", re.MULTILINE)
ORDERS = re.compile(r"^PROF_(?:POINTER_)?ORDER\((\w+),", re.MULTILINE)
SHARED = re.compile(r"^(?!static\b)(?:[a-z_]\w*[ \*]+)+(\w+)\([^;{}]*\)\s*\{", re.MULTILINE)
ORDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "dependency_order.sh")
ANALYSIS = "libprof/analysis"
PRODUCT = ("cli/", "collectors/", "libprof/", "report/", "samplers/", "tui/")


def read_tree(root):
    """{path: code without comments and texts}"""
    found = {}
    for folder in FOLDERS:
        for at, _, names in os.walk(os.path.join(root, folder)):
            for name in names:
                if name.endswith(CODE):
                    path = os.path.join(at, name)
                    with open(path, encoding="utf-8", errors="replace") as file:
                        found[os.path.relpath(path, root)] = NO_CODE.sub(" ", file.read())
    return found


def unused(code):
    """Yields (header, function) that only the file which defines it knows."""
    users = {}
    for path, text in code.items():
        for word in set(re.findall(r"\b[A-Za-z_]\w*\b", text)):
            users.setdefault(word, set()).add(path)
    for header, text in code.items():
        if not header.endswith(".h") or header.startswith("libprof/include"):
            continue
        for name in DECLARED.findall(text):
            if name.isupper():
                continue  # a macro that stands for a name
            defines = re.compile(r"^[a-z][\w \*]*\b%s\([^;{]*\)\s*\{" % name, re.MULTILINE)
            again = len(re.findall(r"\b%s\b" % name, text)) > 1  # an inline function beside it calls it
            others = [path for path in users[name] if path != header and not defines.search(code[path])]
            if not others and not again:
                yield header, name


def defined_twice(code):
    """Yields (name, files) of functions that several files of the product define; each program has its main."""
    files = {}
    for path, text in code.items():
        if path.startswith(PRODUCT):
            for name in set(DEFINED.findall(text) + ORDERS.findall(text)):
                if name != "main" and not name.isupper() and name != "__attribute__":
                    files.setdefault(name, []).append(path)
    return sorted((name, sorted(paths)) for name, paths in files.items() if len(paths) > 1)


def wrong_calls(code):
    """Yields (path, function, where that is defined) of calls from a folder in the analysis to one that it is below."""
    with open(ORDER, encoding="utf-8") as file:
        rows = re.findall(r"\[(%s[\w/]*)\]=\"([^\"]*)\"" % ANALYSIS, file.read())
    may = {folder: [folder] + folders.split() for folder, folders in rows}
    inside = {path: text for path, text in code.items() if path.startswith(ANALYSIS)}
    home = {name: path for path, text in inside.items() for name in SHARED.findall(text)}
    for path, text in sorted(inside.items()):
        allowed = may[os.path.dirname(path)]
        for name in sorted(set(re.findall(r"(?<!struct )\b\w+\b", text)) & home.keys()):
            if os.path.dirname(home[name]) not in allowed:
                yield path, name, home[name]


def main():
    code = read_tree(sys.argv[1])
    wrong = list(unused(code))
    for header, name in wrong:
        print("%s: %s: no other file than its own uses it: remove it, or make it static" % (header, name))
    twice = defined_twice(code)
    for name, paths in twice:
        print("%s: defined in %s: share it, or let each name say its object and action" % (name, ", ".join(paths)))
    arrows = list(wrong_calls(code))
    for path, name, home in arrows:
        print("%s: calls %s, which %s defines: not in the order of the folders" % (path, name, home))
    planted = {"libprof/analysis/a.c": "int up(void)\n{\n    return upper();\n}\n",
               "libprof/analysis/memory/b.c": "int upper(void)\n{\n    return lower();\n}\n",
               "libprof/analysis/facts/c.c": "bool lower(void)\n{\n    return false;\n}\n"}
    assert list(wrong_calls(planted)) == [("libprof/analysis/a.c", "upper", "libprof/analysis/memory/b.c")]
    planted = {"cli/a.c": "static int twice(int x)\n{\n}\n", "tui/b.c": "static bool *twice(void)\n{\n}\n",
               "report/e.c": "PROF_ORDER(by_size, struct a, b)\n", "tui/e.c": "PROF_ORDER(by_size, struct b, a)\n",
               "tests/c.c": "int once(void)\n{\n}\n", "cli/d.c": "int once(void)\n{\n}\nint x(void)\n{\n    twice(1);\n}\n"}
    assert defined_twice(planted) == [("by_size", ["report/e.c", "tui/e.c"]),
                                      ("twice", ["cli/a.c", "tui/b.c"])], defined_twice(planted)
    for planted, fault in (("", ("cli/a.h", "lonely")), ("int other(void)\n{\n    return lonely();\n}\n", None)):
        with tempfile.TemporaryDirectory() as root:
            os.mkdir(os.path.join(root, "cli"))
            for name, text in (("a.h", "/* lonely() */\nint lonely(void);\n"), ("b.c", planted),
                               ("a.c", "int lonely(void)\n{\n    return 1;\n}\nint x(void)\n{\n    return lonely();\n}\n")):
                with open(os.path.join(root, "cli", name), "w", encoding="utf-8") as file:
                    file.write(text)
            assert list(unused(read_tree(root))) == ([fault] if fault else []), planted
    return 1 if wrong or twice or arrows else 0


if __name__ == "__main__":
    sys.exit(main())
