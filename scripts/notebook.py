#!/usr/bin/env python3
"""Runs the cells of a notebook and writes them, with what they give, as a page: Markdown, pictures beside it.

    scripts/notebook.py NOTEBOOK PAGE

The page of docs: CAPTURE and CAPTURE_AFTER name s_loader.bad.1.sqlite and s_loader.fixed.1.sqlite (tests/data/unseen, by xz -d), and
the page is docs/examples/notebook.md. Needs no Jupyter; matplotlib for the pictures. Ends as a cell does that fails."""
import ast
import contextlib
import io
import json
import os
import sys


def run_cell(source, names):
    """What the cell prints, and its last expression as text, as a notebook shows them."""
    tree, printed, shown = ast.parse(source), io.StringIO(), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        if last:
            shown = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return printed.getvalue() + ("" if shown is None else f"{shown}\n")


def save_figures(page, count):
    """Of the cell: saved, closed; as lines of the page."""
    plots = sys.modules.get("matplotlib.pyplot")
    for number in plots.get_fignums() if plots else ():
        name = f"{os.path.splitext(page)[0]}-{count + 1}.png"
        plots.figure(number).savefig(name, dpi=90, metadata={"Software": None})
        plots.close(number)
        count += 1
        yield f"![what the cell draws]({os.path.basename(name)})"


def main(notebook, page):
    with open(notebook, encoding="utf-8") as file:
        cells = json.load(file)["cells"]
    os.environ.setdefault("MPLBACKEND", "Agg")
    name, names, lines, figures = os.path.basename(notebook), {"__name__": "notebook"}, [], 0
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            lines += [source, ""]
            continue
        lines += ["```python", source, "```", ""]
        text = run_cell(source, names)
        lines += [("    " + line).rstrip() for line in text.rstrip("\n").split("\n") + [""]] if text else []
        drawn = list(save_figures(page, figures))
        figures += len(drawn)
        lines += drawn + [""] if drawn else []
    lines += [f"Made from [{name}](../../examples/notebook/{name}) by `scripts/notebook.py`."]
    with open(page, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
