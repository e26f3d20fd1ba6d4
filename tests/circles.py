#!/usr/bin/env python3
"""circles.py [TREE] - files of one folder must not need each other in a circle.

A source file needs another one if it names one of its functions or tables. Which
header declares them does not matter. A header needs the headers that it includes.
If a folder has no circle, a reader can begin with the files that need no other,
and each file can be replaced alone.

circles.py --self-test makes trees with and without a circle.
"""

import collections
import pathlib
import re
import sys

import rule

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"')
# In the first column and not static: "type name(..) {" and "type name[..] =".
FUNCTION = re.compile(r"^(?!static\b|extern\b)[a-zA-Z_][\w \t\n*]*?\b(\w+)"
                      r"\([^;{}]*\)\s*\{", re.M)
TABLE = re.compile(r"^(?!static\b|extern\b)(?:[a-zA-Z_]\w*[ \t*]+)+"
                   r"(\w+)(?:\[[^\]]*\])?\s*=", re.M)
# Not a member, which may have the name of a function.
NAME = re.compile(r"(?<![\w.])(?<!->)([A-Za-z_]\w*)\b")
HEADERS, SOURCES = (".h", ".cuh"), (".c", ".cu")


def folders(tree):
    """The files of every folder of the tree."""
    found = collections.defaultdict(dict)
    for top in sorted(tree.iterdir()):
        if top.name in ("build", "runs") or top.name.startswith("."):
            continue
        for path in sorted(top.glob("**/*")):
            if path.suffix in HEADERS + SOURCES:
                code = COMMENT.sub("", path.read_text())
                found[path.parent.relative_to(tree)][path.name] = code
    return found


def needs(folder, files):
    """{file: {file that it needs: a function or header that it names}}, of one
    folder."""
    graph = {name: {} for name in files}
    code = {name: TEXT.sub("", text) for name, text in files.items()}
    # {function or table: its file}; None: several programs have one each
    owner = {}
    for file, text in code.items():
        if not file.endswith(SOURCES):
            continue
        for name in FUNCTION.findall(text) + TABLE.findall(text):
            owner[name] = None if name in owner else file
    for file, text in code.items():
        if file.endswith(HEADERS):
            for target in INCLUDE.findall(files[file]):
                place, _, other = target.rpartition("/")
                if other in files and folder.endswith(place):
                    graph[file][other] = target
            continue
        for name in NAME.findall(text):
            other = owner.get(name)
            if other and other != file:
                graph[file].setdefault(other, name)
    return graph


def circle(graph):
    """The files of a shortest circle, in order. Empty if there is none."""
    best = []
    for start in graph:
        before, queue = {start: None}, collections.deque([start])
        while queue:
            file = queue.popleft()
            if start in graph[file]:
                way = []
                while file is not None:
                    way.insert(0, file)
                    file = before[file]
                best = way if not best or len(way) < len(best) else best
                break
            for other in graph[file]:
                if other not in before:
                    before[other] = file
                    queue.append(other)
    return best


def judge(tree):
    """A complaint for every folder with a circle."""
    complaints = []
    for folder, files in folders(tree).items():
        graph = needs(str(folder), files)
        way = circle(graph)
        steps = [f"{a} needs {b} ({graph[a][b]})"
                 for a, b in zip(way, way[1:] + way[:1])]
        if steps:
            complaints.append(f"{folder}: {', '.join(steps)}")
    return complaints


A_B = {
    "core/x/a.c": "int a(void)\n{\n    return b();\n}\n",
    "core/x/b.c": "int b(void)\n{\n    return 0;\n}\n",
}
BACK = "int b(void)\n{\n    return a();\n}\n"

# (files, whether they have a circle)
CASES = [
    (A_B, False),
    (A_B | {"core/x/b.c": BACK}, True),
    (A_B | {"core/y/b.c": BACK}, False),
    (A_B | {"core/x/b.c": BACK.replace("int b", "static int b")}, False),
    (A_B | {"core/x/b.c": BACK.replace("a()", "t->a()")}, False),
    (A_B | {"core/x/b.c": BACK.replace("a()", "0; // a()")}, False),
    (A_B | {"core/x/b.c": BACK.replace("a()", 'say("a()")')}, False),
    (A_B | {"core/x/b.c": BACK.replace("a()", "c()"),
            "core/x/c.c": "const struct ops c = {\n    .f = a,\n};\n"}, True),
    (A_B | {"core/x/b.c": BACK, "core/x/c.c": A_B["core/x/a.c"]}, False),
    ({"x/a.h": '#include "x/b.h"\n', "x/b.h": '#include "x/c.h"\n',
      "x/c.h": "int c(void);\n"}, False),
    ({"x/a.h": '#include "x/b.h"\n', "x/b.h": '#include "x/c.h"\n',
      "x/c.h": '#include "x/a.h"\n'}, True),
    ({"x/a.h": '#include "x/b.h"\n', "x/b.h": '#include "y/a.h"\n'}, False),
    ({"build/a.h": '#include "build/b.h"\n',
      "build/b.h": '#include "build/a.h"\n'}, False),
]


if __name__ == "__main__":
    sys.exit(rule.main(judge, CASES, "no files of one folder need each other"))
