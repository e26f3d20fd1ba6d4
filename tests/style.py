#!/usr/bin/env python3
"""style.py [TREE] - hold the sources to STYLE.md, and STYLE.md to the sources.

A section "## Sample: FILE" shows that file, letter by letter; every `path/file.c`
in the text is there. No line of a source is wider than .clang-format says
(ColumnLimit), comments and what clang-format leaves alone included.

style.py --self-test makes trees with one mistake each and must find it.
"""

import pathlib
import re
import sys
import tempfile

SAMPLE = re.compile(r"## Sample: (\S+)\n```c\n(.*?)```\n", re.S)
NAMED = re.compile(r"[`(\s]((?:[a-z_]+/)+[a-z_]+\.(?:c|h|cu|gp|py|md))\b")
LIMIT = re.compile(r"^ColumnLimit:\s*(\d+)", re.M)
SOURCES = (".c", ".h", ".cu", ".cuh")


def judge_page(tree):
    """All complaints about a tree's STYLE.md."""
    text = (tree / "STYLE.md").read_text()
    samples = SAMPLE.findall(text)
    complaints = [] if samples else ["STYLE.md: shows no sample"]
    for name, shown in samples:
        if (tree / name).read_text() != shown:
            complaints.append(f"STYLE.md: its sample is not {name} as it stands")
    for name in sorted(set(NAMED.findall(text))):
        found = [p for p in (name, f"core/{name}") if (tree / p).exists()]
        if not found:
            complaints.append(f"STYLE.md: {name} is not there")
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


def judge(tree):
    return judge_page(tree) + judge_width(tree)


PAGE = "Read `a/b.c`.\n## Sample: a/b.c\n```c\nint x;\n```\n"
WIDE = f"// {'x' * 77}\n"

# (a/b.c, a/c.cuh, STYLE.md, whether there is a mistake)
CASES = [
    ("int x;\n", WIDE, PAGE, False),
    ("int x;\n", f"x{WIDE}", PAGE, True),
    ("int y;\n", "", PAGE, True),
    ("int x;\n", "", "Read `a/b.c`.\n", True),
    ("int x;\n", "", "See plots/none.gp.\n" + PAGE, True),
]


def self_test():
    bad = 0
    for source, header, page, mistake in CASES:
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            (tree / "a").mkdir()
            (tree / "a" / "b.c").write_text(source)
            (tree / "a" / "c.cuh").write_text(header)
            (tree / "STYLE.md").write_text(page)
            (tree / ".clang-format").write_text("ColumnLimit: 80\n")
            if bool(judge(tree)) != mistake:
                print(f"{page!r}: expected {mistake}, got {judge(tree)}")
                bad = 1
    return bad


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    complaints = judge(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print("\n".join(complaints) or "STYLE.md and the sources agree")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
