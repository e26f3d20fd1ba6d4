#!/usr/bin/env python3
"""results.py [TREE] - check that the tables of experiments/*.md have the numbers of
the CSV files in experiments/results/.

A line before a table names the folder of its CSV files:

    <!-- results: study over single -->
    | cell | tokens/s | speed-up |

The heads that are columns of runs.csv say which runs a row is about: `cell`, or
settings such as `net` and `wire`. Where several cells agree with the row, it is
about the runs of all of them, if the line ends with "all KEY". Every other head is a
measure: HEADS says what it is computed from. A cell of the table has the median, or
`median (least .. most)`. Speed-ups are over the runs of the cell, or with the
settings, behind "over". A head that ends with "on the Xeon" is about xeon.csv, which
has what earlier runs on another processor gave.

A table with numbers must have such a line, or one that says where they are from:
<!-- source: TEXT -->. So must an indented table. Every CSV file must have a table or a
picture that shows it.

results.py --self-test makes trees with one mistake each, and must find it.
results.py --write [TREE] writes the numbers of the CSV files into the pages.
"""

import pathlib
import re
import sys

import rule
from results_csv import Results, Wrong

MARK = re.compile(r"<!-- results: ([\w-]+)(?: over ([^>]+?))?(?: all (\w+))? -->")
SOURCE = re.compile(r"<!-- source: [^>]+ -->")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
FIGURE = re.compile(r"-?\d[\d.]*%?(?: \(.*\))?")  # a cell that is a number
COLUMNS = re.compile(r" {4,}\S.*?\s{2,}-?\d[\d.]*%?\s{2,}-?\d")


def shown(value, like):
    """The value with as many digits as the number `like` has."""
    if "e" in like:
        return f"{value:.{len(like.partition('e')[0].partition('.')[2])}e}"
    return f"{value:.{len(like.partition('.')[2])}f}"


def rewrite(text, values):
    """The text of a table's cell with these numbers."""
    numbers = NUMBER.findall(text)
    if not values:
        return "" if numbers else text
    if len(numbers) not in (1, len(values)):
        raise Wrong(f"{text!r} needs one number, or {len(values)}")
    left = iter(values)
    return NUMBER.sub(lambda found: shown(next(left), found.group()), text)


def split(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def right_row(results, heads, texts):
    """A table's row as it should be."""
    keys = {h: t for h, t in zip(heads, texts) if results.is_key(h)}
    if not keys:
        raise Wrong("no column says which runs the rows are about")
    return [text if head in keys else rewrite(text, results.expected(head, keys))
            for head, text in zip(heads, texts)]


def aligned(rows):
    """The lines of a table with columns of equal width, the first to the left."""
    widths = [max(map(len, column)) for column in zip(rows[0], *rows[2:])]
    rule = [":" + "-" * (w - 1) if i == 0 else "-" * (w - 1) + ":"
            for i, w in enumerate(widths)]
    return ["| " + " | ".join(t.ljust(w) if i == 0 else t.rjust(w) for i, (t, w) in
                              enumerate(zip(texts, widths))) + " |"
            for texts in [rows[0], rule, *rows[2:]]]


def tables(lines):
    """(number of the first line, the marker above or "", the lines) of each table."""
    start = None
    for i, line in enumerate([*lines, ""]):
        if line.startswith("|") and start is None:
            start = i
        elif not line.startswith("|") and start is not None:
            yield start, lines[start - 1] if start else "", lines[start:i]
            start = None


def judge_rows(results, rows):
    """Complaints about a table's rows, which become as they should be."""
    for i, texts in enumerate(rows[2:], 2):
        where = " ".join(texts[:2])
        try:
            rows[i] = right_row(results, rows[0], texts)
            yield from (f"{where}: {head}: {text!r} should be {should!r}"
                        for head, text, should in zip(rows[0], texts, rows[i])
                        if text != should)
        except Wrong as e:
            yield f"{where}: {e}"


def judge_table(tree, mark, lines, used):
    """Complaints about one table, and its lines as they should be."""
    rows, found = [split(line) for line in lines], MARK.fullmatch(mark)
    if not found:
        plain = SOURCE.fullmatch(mark) or not any(
            FIGURE.fullmatch(t) for texts in rows[2:] for t in texts)
        return [] if plain else ["a table of numbers without a CSV file"], lines
    folder = tree / "experiments/results" / found.group(1)
    if len({len(texts) for texts in [rows[0], *rows[2:]]}) > 1:
        return ["a table with rows of different lengths"], lines
    if len(rows) < 3:
        return ["a table without rows"], lines
    try:
        results = Results(folder, *found.groups()[1:])
    except Wrong as e:
        return [str(e)], lines
    complaints = list(judge_rows(results, rows))
    used |= {folder / name for name in results.used}
    return complaints, aligned(rows)


def plain_tables(lines):
    """The first line of each indented table of numbers whose source is not said."""
    above, found = "", False  # the line above the block; whether one was found in it
    for line in lines:
        if line.startswith("    "):
            if COLUMNS.match(line) and not found and not SOURCE.fullmatch(above):
                found = True
                yield line
        elif line:
            above, found = line, False


def judge_page(tree, page, used, write=False):
    """Complaints about the tables of a page."""
    lines, complaints = page.read_text().splitlines(), []
    for start, mark, rows in tables(lines):
        found, right = judge_table(tree, mark, rows, used)
        complaints += [f"{page.relative_to(tree)}: {text}" for text in found]
        if write:
            lines[start:start + len(rows)] = right
    complaints += [f"{page.relative_to(tree)}: a table of numbers without a CSV file: "
                   f"{line.strip()}" for line in plain_tables(lines)]
    if write:
        page.write_text("\n".join(lines) + "\n")
    return complaints


def judge(tree, write=False):
    used, complaints = set(), []
    for page in sorted((tree / "experiments").glob("*.md")):
        complaints += judge_page(tree, page, used, write)
    for path in sorted((tree / "experiments/results").glob("*/*.csv")):
        if path not in used and not path.with_suffix(".svg").exists():
            complaints.append(f"{path.relative_to(tree)}: no table shows it")
    return complaints


CSV = """cell,repeat,backend,wire,tokens_per_s,step_s,peak_memory_bytes
one,1,local,fp32,100,0.5,1048576
one,2,local,fp32,120,0.25,1048576
ring wire=fp32,1,ring,fp32,150,0.125,
ring wire=fp32,2,ring,fp32,240,0.125,
ring wire=fp16,1,ring,fp16,300,0.1,
one more=1,1,local,fp32,5,0.1,
"""
XEON_CSV = "cell,tokens_per_s,tokens_per_s_least,tokens_per_s_most\none,90,80,95\n"
MARKED = "<!-- results: x over one -->\n"


def tree(page, **more):
    return {"experiments/x.md": page, "experiments/results/x/runs.csv": CSV, **more}


def table(*rows, mark=MARKED):
    return mark + "".join(f"| {row} |\n" for row in (rows[0], "--|--", *rows[1:]))


def ends(rows, **more):
    """A tree whose table has these rows below those of `one`."""
    return tree(table("cell | tokens/s | step, ms | worker, MiB",
                      "one | 110 (100 .. 120) | 375.0 | 1", *rows), **more)


OTHERS = {"experiments/results/x/" + name: text for name, text in {
    "table.csv": "cell,target_loss_nats\none,3.3\n",
    "workers.csv": "cell,worker,utilisation\none,0,0.5\none,1,0.75\n",
    "curves.csv": "cell,step,loss\none,1,4\none,30,4\nring wire=fp16,1,4.002\n"
                  "ring wire=fp16,30,5\n",
    "loss_apart.csv": "what,name,y\nline,ring wire=fp16,1e-4\nline,ring wire=fp16,"
                      "3e-4\npoint,ring wire=fp16,1\n",
    "validations.csv": "cell,step,val_loss,train_s\none,8,4,1\none,16,3,2\n",
}.items()}


def other(name, head, *rows):
    """A tree with one of these files, and a table about it."""
    name = f"experiments/results/x/{name}.csv"
    return tree(table(f"cell | {head}", *rows), **{name: OTHERS[name]})


SETUP = "batch 4 net=1gbit workers=2 overlap=1"
# int8 takes half as long for a step, topk a tenth, and three times the steps
TO_LOSS = {"experiments/results/x/" + name: text for name, text in {
    "runs.csv": "cell,backend,net,workers,batch,overlap,squeeze,pace,law_exchange_s,"
                "step_s\n" + "".join(
        f'"{name}, {SETUP}",ring,1gbit,2,4,1,{name},"40,60",0.2,{s}\n'
        for name, s in (("dense", 0.3), ("int8", 0.15), ("topk", 0.03), ("sign", 0.05))),
    "predict.csv": "cell,step_s\n" + "".join(
        f'"{name}, {SETUP}",{s}\n'
        for name, s in (("dense", 0.3), ("int8", 0.29), ("topk", 0.1), ("sign", 0.1))),
    "validations.csv": "cell,step,val_loss\n" + "".join(
        f"{name} workers=2 batch=4 seed=1,{step},{loss}\n" for name, step, loss in (
            ("dense", 48, 4), ("dense", 96, 3), ("int8", 64, 4), ("int8", 128, 2),
            ("topk", 240, 4), ("topk", 336, 2), ("sign", 96, 5), ("sign", 480, 4))),
    "whole.csv": 'cell,step,val_loss,train_s\n"int8, batch 4, 1gbit",64,4,10\n'
                 '"int8, batch 4, 1gbit",128,2,20\n"sign, batch 4, 1gbit",9,9,9\n'
}.items()}


def to_loss(head, *rows):
    """A tree with these files, and a table about them."""
    return {**TO_LOSS, "experiments/x.md": table(f"squeeze | {head}", *rows)}


def whole_run(row):
    return {**TO_LOSS, "experiments/x.md": table(
        "cell | by the product, s | whole run, s", f"int8, batch 4, 1gbit | {row}")}


XEON_FILE = {"experiments/results/x/xeon.csv": XEON_CSV}
# (files, whether there is a mistake)
CASES = [
    (ends([]), False),
    (ends(["ring wire=fp16 | 300 | 100 | "]), False),
    (ends(["ring wire=fp16 | 300 | 100 | 0"]), True),
    (ends(["ring wire=fp16 | 301 | 100 | "]), True),
    (ends(["ring wire=fp16 | 300 | 100.1 | "]), True),
    (ends(["ring | 240 | 125 | "]), True),
    (ends(["none | 240 | 125 | "]), True),
    (ends([], **XEON_FILE), True),
    (tree(table("cell | tokens/s on the Xeon", "one | 90 (80 .. 95)"), **XEON_FILE),
     False),
    (tree(table("cell | tokens/s on the Xeon", "one | 90 (80 .. 94)"), **XEON_FILE),
     True),
    (tree(table("sync | wire | speed-up", "ring | fp32 | 1.77 (1.50 .. 2.00)")), False),
    (tree(table("sync | wire | speed-up", "ring | fp32 | 1.77 (1.40 .. 2.00)")), True),
    (tree(table("sync | tokens/s", "ring | 240", mark=MARKED.replace(
        "over one", "all wire"))), False),
    (tree(table("sync | tokens/s", "ring | 195", mark=MARKED.replace(
        "over one", "all wire"))), True),
    (other("workers", "u1, %", "one | 75"), False),
    (other("workers", "u1, %", "one | 50"), True),
    (other("table", "to 3.30, s", "one | 9"), True),
    (other("curves", "losses apart", "ring wire=fp16 | 5e-04"), False),
    (other("curves", "losses apart", "ring wire=fp16 | 4e-04"), True),
    (other("loss_apart", "losses apart, all steps", "ring wire=fp16 | 3e-04"), False),
    (other("loss_apart", "losses apart, all steps", "ring wire=fp16 | 1e-04"), True),
    ({"experiments/x.md": table("cell | dp, MB", "dp2 | 6.6"),
      "experiments/results/x/predict.csv": "cell,dp_mb\ndp2,6.57\n"}, False),
    ({"experiments/x.md": table("cell | dp, MB", "dp2 | 6.5"),
      "experiments/results/x/predict.csv": "cell,dp_mb\ndp2,6.57\n"}, True),
    (other("validations", "loss at 16", "one | 3.0"), False),
    (other("validations", "loss at 16", "one | 4.0"), True),
    (other("validations", "s to loss 3.25", "one | 1.75"), False),
    (other("validations", "s to loss 2.25", "one | 1.75"), True),
    (to_loss("faster by step | by predict | predict agrees | faster to the loss",
             "int8 | 1 | 0 | 0 | 1", "topk | 1 | 1 | 1 | 1", "sign | 1 | 1 | 1 | 0"),
     False),
    (to_loss("faster by step", "int8 | 0"), True),
    (to_loss("by predict", "int8 | 1"), True),
    (to_loss("predict agrees", "int8 | 1"), True),
    (to_loss("faster to the loss", "topk | 0"), True),
    (to_loss("not known | steps, times more", "sign | 1 | ", "topk | 0 | 3.00"), False),
    (to_loss("not known", "sign | 0"), True),
    (to_loss("with losses", "int8 | 0"), True),
    (to_loss("step, times shorter | exchange / computing", "int8 | 2.0 | 2.0"), False),
    (to_loss("to the loss, times sooner", "int8 | 2.0", "topk | 3.33"), False),
    (to_loss("to the loss, times sooner", "topk | 10.00"), True),
    (to_loss("exchange / computing", "int8 | 2.1"), True),
    (to_loss("steps, times more", "int8 | 1.1"), True),
    (whole_run("14.40 | 15.0"), False),
    (whole_run("14.41 | 15.0"), True),
    (whole_run("14.40 | 15.1"), True),
    (tree(table("cell | tokens/s")), True),
    (tree(table("cell | furlongs", "one | 5")), True),
    (tree(table("cell | to 3.32, s", "one | 5")), True),
    (tree(table("tokens/s | step, ms", "110 | 375")), True),
    (tree(table("cell | tokens/s", "one | 110", mark="")), True),
    (tree(table("key | what it is", "`a` | the 2nd", mark="")), True),
    (tree(MARKED + "    one   110   375\n"), True),
    ({"experiments/x.md": "<!-- source: a book -->\n\n    one   110   375\n"}, False),
    ({"experiments/x.md": "<!-- source: a book -->\ntext\n\n    one   1   375\n"}, True),
    (tree(table("cell | tokens/s", "one | 110", mark=MARKED.replace("x", "y"))), True),
    (tree(table("a | b", "one | 110", mark="<!-- source: a book -->\n")), True),
]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        judge(pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "."), write=True)
    else:
        sys.exit(rule.main(judge, CASES, "the tables have the numbers of the CSV files"))
