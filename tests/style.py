#!/usr/bin/env python3
"""style.py [TREE] - check that STYLE.md and the sources agree.

A section "## Sample: FILE" must show that file, letter by letter. Every
`path/file.c` in STYLE.md must exist. No line of a source may be wider than
.clang-format says (ColumnLimit). This includes comments and other lines that
clang-format leaves alone. Two files of one program must have different names.

style.py --self-test makes trees with one mistake each, and must find it.
"""

import pathlib
import re
import sys

import rule

SAMPLE = re.compile(r"## Sample: (\S+)\n```c\n(.*?)```\n", re.S)
NAMED = re.compile(r"[`(\s]((?:[a-z_]+/)+[a-z_]+\.(?:c|h|cu|gp|py|md))\b")
LIMIT = re.compile(r"^ColumnLimit:\s*(\d+)", re.M)
SOURCES = (".c", ".h", ".cu", ".cuh")
# Programs and their folders. All other folders are libraries.
PROGRAMS = {**{name: name for name in ("bench", "explain", "ps_server", "simulate", "train")},
            **{name: "lockstep" for name in ("doctor", "forecast", "launch", "lockstep")}}
ASIDE = ("build", "runs", "tests", "labs")


def judge_page(tree):
    """All complaints about a tree's STYLE.md."""
    text = (tree / "STYLE.md").read_text()
    samples = SAMPLE.findall(text)
    complaints = [] if samples else ["STYLE.md: shows no sample"]
    for name, shown in samples:
        if (tree / name).read_text() != shown:
            complaints.append(f"STYLE.md: its sample differs from {name}")
    for name in sorted(set(NAMED.findall(text))):
        found = [p for p in (name, f"core/{name}") if (tree / p).exists()]
        if not found:
            complaints.append(f"STYLE.md: {name} does not exist")
    return complaints


def judge_width(tree):
    """All lines of sources that are too wide."""
    limit = int(LIMIT.search((tree / ".clang-format").read_text()).group(1))
    complaints = []
    for top in sorted(tree.iterdir()):
        if top.name in ("build", "runs") or top.name.startswith("."):
            continue
        for path in sorted(top.glob("**/*")):
            if path.suffix not in SOURCES:
                continue
            for i, line in enumerate(path.read_text().splitlines(), 1):
                if len(line) > limit:
                    where = path.relative_to(tree)
                    complaints.append(f"{where}:{i}: {len(line)} columns")
    return complaints


def judge_names(tree):
    """All names, except main.c, that two files of one program have."""
    found = {}  # (program or "", name): path
    complaints = []
    paths = [p.relative_to(tree) for p in sorted(tree.glob("**/*"))
             if p.suffix in SOURCES]
    for path in paths:
        if path.parts[0] in ASIDE or path.name == "main.c":
            continue
        own = PROGRAMS.get(path.parts[0], "")
        for program in (own, "") if own else ("", *PROGRAMS.values()):
            other = found.get((program, path.name))
            if other:
                complaints.append(f"{path}: {other} has the same name")
        found[own, path.name] = path
    return complaints


def judge(tree):
    return judge_page(tree) + judge_width(tree) + judge_names(tree)


PAGE = "Read `a/b.c`.\n## Sample: a/b.c\n```c\nint x;\n```\n"
WIDE = f"// {'x' * 77}\n"


def tree(source, header, page):
    return {"a/b.c": source, "a/c.cuh": header, "STYLE.md": page,
            ".clang-format": "ColumnLimit: 80\n"}


# (files, whether there is a mistake)
CASES = [
    (tree("int x;\n", WIDE, PAGE), False),
    (tree("int x;\n", f"x{WIDE}", PAGE), True),
    (tree("int y;\n", "", PAGE), True),
    (tree("int x;\n", "", "Read `a/b.c`.\n"), True),
    (tree("int x;\n", "", "See plots/none.gp.\n" + PAGE), True),
    ({**tree("int x;\n", "", PAGE), "c/b.c": ""}, True),
    ({**tree("int x;\n", "", PAGE), "train/b.c": ""}, True),
    ({**tree("int x;\n", "", PAGE), "train/d.c": "", "bench/d.c": ""}, False),
]


if __name__ == "__main__":
    sys.exit(rule.main(judge, CASES, "STYLE.md and the sources agree"))
