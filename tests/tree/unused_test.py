#!/usr/bin/env python3
"""What a header declares is used by another file than the one that defines it: a function that nobody calls goes, one
that only its own file calls is static. The public API (libprof/include) is for others. Then the same with planted faults.

    unused_test.py ROOT
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


def main():
    wrong = list(unused(read_tree(sys.argv[1])))
    for header, name in wrong:
        print("%s: %s: no other file than its own uses it: remove it, or make it static" % (header, name))
    for planted, fault in (("", ("cli/a.h", "lonely")), ("int other(void)\n{\n    return lonely();\n}\n", None)):
        with tempfile.TemporaryDirectory() as root:
            os.mkdir(os.path.join(root, "cli"))
            for name, text in (("a.h", "/* lonely() */\nint lonely(void);\n"), ("b.c", planted),
                               ("a.c", "int lonely(void)\n{\n    return 1;\n}\nint x(void)\n{\n    return lonely();\n}\n")):
                with open(os.path.join(root, "cli", name), "w", encoding="utf-8") as file:
                    file.write(text)
            assert list(unused(read_tree(root))) == ([fault] if fault else []), planted
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
