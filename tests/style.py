#!/usr/bin/env python3
"""style.py [TREE] - hold STYLE.md to the sources that it shows and names.

A section "## Sample: FILE" shows that file, letter by letter; every `path/file.c`
in the text is there.

style.py --self-test makes trees with one mistake each and must find it.
"""

import pathlib
import re
import sys
import tempfile

SAMPLE = re.compile(r"## Sample: (\S+)\n```c\n(.*?)```\n", re.S)
NAMED = re.compile(r"[`(\s]((?:[a-z_]+/)+[a-z_]+\.(?:c|h|cu|gp|py|md))\b")


def judge(tree):
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


PAGE = "Read `a/b.c`.\n## Sample: a/b.c\n```c\nint x;\n```\n"

# (a/b.c, STYLE.md, whether there is a mistake)
CASES = [
    ("int x;\n", PAGE, False),
    ("int y;\n", PAGE, True),
    ("int x;\n", "Read `a/b.c`.\n", True),
    ("int x;\n", "See plots/none.gp.\n" + PAGE, True),
]


def self_test():
    bad = 0
    for source, page, mistake in CASES:
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            (tree / "a").mkdir()
            (tree / "a" / "b.c").write_text(source)
            (tree / "STYLE.md").write_text(page)
            if bool(judge(tree)) != mistake:
                print(f"{page!r}: expected {mistake}, got {judge(tree)}")
                bad = 1
    return bad


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    complaints = judge(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print("\n".join(complaints) or "STYLE.md shows and names what is there")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
