#!/usr/bin/env python3
"""backends.py [TREE] - check that only their table names backends.

Every row of core/config/backends.def must have all members, and CONTRIBUTING.md
must show the row of tests/gathered/ unchanged. No string in a source or a figure
may consist only of names of backends: "ring", "sps,dps", 'dps allreduce'. Code
with such a string compares or lists names, but should ask the row
(config/backends.h). A sentence of help or of an error may name a backend.

backends.py --self-test makes trees with one mistake each, and must find it.
"""

import pathlib
import re
import sys
import textwrap

import rule

TABLE = "core/config/backends.def"
SHOWN = "tests/gathered/row.def"
WHOLE = "help", "keys", "launch", "colour", "point"
# {file: words that mean something else there, and not a backend}
SPARED = {
    "core/config/settings.h": {"ring"},  # an algorithm of Open MPI's
    # a control plane; a key; a way to the keys of other workers' tokens
    "core/config/keys.c": {"local", "lab", "ring"},
    "train/about.c": {"lab"},  # the file of the key lab=
    "lockstep/tell.c": {"ring", "zero"},  # how gradients travel; what 0 means
    "labs/04-ring/grade.c": {"ring"},  # the lab
}
C = re.compile(r'//[^\n]*|/\*.*?\*/|\'(?:\\.|[^\'\\\n])+\''
               r'|"((?:\\.|[^"\\\n])*)"', re.S)
GNUPLOT = re.compile(r'#[^\n]*|"((?:\\.|[^"\\\n])*)"|\'([^\'\n]*)\'')
LANGUAGE = {".c": C, ".h": C, ".cu": C, ".cuh": C, ".gp": GNUPLOT}


def read_rows(tree):
    """{name of a backend: the text of its row}, from the table."""
    text = (tree / TABLE).read_text()
    rows = re.split(r'^BACKEND\(', text, flags=re.M)[1:]
    return {re.match(r'"(\w+)"', row)[1]: row for row in rows}


def sources(tree):
    """All files that must not name a backend."""
    for top in sorted(tree.iterdir()):
        if top.name in ("build", "runs", "tests") or top.name.startswith("."):
            continue
        for path in sorted(top.glob("**/*")):
            if path.suffix in LANGUAGE:
                yield path


def judge(tree):
    """All complaints about a tree."""
    rows = read_rows(tree)
    complaints = [] if rows else [f"{TABLE}: no row"]
    for i, (name, row) in enumerate(rows.items()):
        for member in WHOLE + (("traffic",) if i else ()):
            if not re.search(rf"\.{member} = \S", row):
                complaints.append(f"{TABLE}: {name} has no .{member}")
    shown = tree / SHOWN
    if shown.exists() and textwrap.indent(shown.read_text().strip(), 7 * " ") \
            not in (tree / "CONTRIBUTING.md").read_text():
        complaints.append(f"CONTRIBUTING.md: does not show {SHOWN} literally")
    for path in sources(tree):
        where = str(path.relative_to(tree))
        text = path.read_text()
        for match in LANGUAGE[path.suffix].finditer(text):
            words = re.findall(r"[^\s,|;:=/]+", "".join(
                group or "" for group in match.groups()))
            named = set(words) - SPARED.get(where, set())
            if words and named and set(words) <= set(rows):
                line = text.count("\n", 0, match.start()) + 1
                complaints.append(f"{where}:{line}: names {' '.join(words)}; "
                                  f"try: a member of struct backend")
    return complaints


ROW = ('BACKEND("%s", f, , .help = "x", .keys = KEYS(OF_ALL), .launch = L,\n'
       '        .traffic = T, .colour = "#000000", .point = 1)\n')
ROWS = ROW % "local" + ROW % "sps" + ROW % "ring"

# (file, its text, whether it is a mistake)
CASES = [
    ("train/a.c", 'if (!strcmp(b->name, other))', False),
    ("train/a.c", 'if (!strcmp(sync, "ring"))', True),
    ("train/a.c", 'return "sps,ring";', True),
    ("train/a.c", "// see \"ring\"", False),
    ("train/a.c", 'fail("try: sync=ring")', False),
    ("train/a.c", "c == '\"' || d == 1; // \"ring\"", False),
    ("core/config/settings.h", '#define WORDS "auto", "ring"', False),
    ("core/config/settings.h", '#define WORDS "auto", "sps"', True),
    ("train/new/a.h", 'static const char *x = "local";', True),
    ("tests/a.c", 'run("ring");', False),
    ("plots/a.gp", "colour(b) = b eq 'sps' ? 1 : 2", True),
    ("plots/a.gp", "do for [b in \"sps ring\"] {", True),
    ("plots/a.gp", "x = 1 # 'sps'", False),
    (TABLE, ROWS.replace(".traffic = T, ", ""), True),
    (TABLE, ROWS.replace('.help = "x", ', "", 1), True),
    (TABLE, ROWS.replace(".traffic = T, ", "", 1), False),
    (TABLE, "", True),
    (SHOWN, "BACKEND(new)", True),
    (SHOWN, "BACKEND(shown)", False),
]


if __name__ == "__main__":
    sys.exit(rule.main(judge, [
        ({TABLE: ROWS, "CONTRIBUTING.md": 7 * " " + "BACKEND(shown)\n",
          name: text + "\n"}, mistake)
        for name, text, mistake in CASES], "only the table of backends names them"))
