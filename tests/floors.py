#!/usr/bin/env python3
"""floors.py [TREE] - checks that includes follow the floors of ARCHITECTURE.md.

Lines "    floor N  folder folder ..." give each folder its floor. A file may include
headers of lower floors and of its own folder. Lines "    never folder: word ..." forbid
more to one folder: other folders (ps_* is a pattern), system headers (zmq.h), or names in
its code (words with a capital letter, such as MPI_Allreduce). "word but a.c,b.c" excepts
these files.

floors.py --self-test makes trees with one mistake each, and must find it.
"""

import fnmatch
import pathlib
import re
import sys

import rule

INCLUDE = re.compile(r'\s*#\s*include\s*(["<])([^">]+)[">]')
COMMENT = re.compile(r"//.*|\"(?:\\.|[^\"\\])*\"")
CORE = "core"  # its folders have floors, but it has none


def read_rules(tree):
    """{folder: floor}, and a list of (folder, forbidden word, excepted files)."""
    floor, never = {}, []
    for line in (tree / "ARCHITECTURE.md").read_text().splitlines():
        if line.startswith("    floor "):
            number, *names = line.split()[1:]
            for name in names:
                floor[name] = int(number)
        elif line.startswith("    never "):
            folder, words = line.removeprefix("    never ").split(":")
            words = words.split()
            for i, word in enumerate(words):
                if word == "but" or i > 0 and words[i - 1] == "but":
                    continue
                spared = words[i + 2] if words[i + 1 : i + 2] == ["but"] else ""
                never.append((folder.strip(), word, spared))
    return floor, never


def sources(tree):
    """(file, its folder) for every source below a folder of the tree."""
    for top in sorted(tree.iterdir()):
        if top.name in ("build", "runs") or top.name.startswith("."):
            continue
        for path in sorted(top.glob("**/*")):
            if path.suffix in (".c", ".h", ".cu", ".cuh"):
                parts = path.relative_to(tree).parts
                yield path, parts[1] if top.name == CORE else parts[0]


def judge_include(me, quoted, target, floor):
    """What is wrong with one include, or None."""
    if not quoted:
        return None
    if "/" not in target:
        return f'"{target}": include by folder'
    folder = target.split("/")[0]
    if folder == me:
        return None
    if folder not in floor:
        return f"{folder} is on no floor of ARCHITECTURE.md"
    if floor[folder] >= floor[me]:
        return f"{me} (floor {floor[me]}) must not include {folder} (floor {floor[folder]})"
    return None


def judge_never(name, me, target, code, never):
    """What a "never" of the folder forbids in this line, or None."""
    for folder, word, spared in never:
        if folder != me or name in spared.split(","):
            continue
        if target is not None:
            if target == word or fnmatch.fnmatch(target.split("/")[0], word):
                return f"{me} never includes {word}"
        elif word != word.lower() and re.search(rf"\b{re.escape(word)}\b", code):
            return f"{me} never uses {word}"
    return None


def judge(tree):
    """All complaints about a tree."""
    floor, never = read_rules(tree)
    complaints = []
    if not floor:
        return ["ARCHITECTURE.md: no line begins with '    floor '"]
    for path, me in sources(tree):
        where = path.relative_to(tree)
        if me not in floor:
            complaints.append(f"{where}: {me} is on no floor of ARCHITECTURE.md")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            target = match[2] if match else None
            wrong = match and judge_include(me, match[1] == '"', target, floor)
            code = COMMENT.sub("", line)
            wrong = wrong or judge_never(path.name, me, target, code, never)
            if wrong:
                complaints.append(f"{where}:{number}: {wrong}")
    return complaints


RULES = """
    floor 0  base
    floor 1  device data
    floor 2  ring_a ring_b
    never ring_a: zmq.h MPI_Allreduce data but one.c
"""

# (file, its text, whether it is a mistake)
CASES = [
    ("core/data/a.c", '#include "base/base.h"', False),
    ("core/data/a.c", '#include "data/b.h"', False),
    ("core/data/a.c", "#include <zmq.h>", False),
    ("core/base/a.c", '#include "data/b.h"', True),
    ("core/data/a.c", '#include "device/b.h"', True),
    ("core/data/a.c", '  #  include "ring_a/b.h"', True),
    ("core/data/a.c", '#include "b.h"', True),
    ("core/data/a.c", '#include "nowhere/b.h"', True),
    ("nowhere/a.c", "int x;", True),
    ("ring_a/deep/a.cu", '#include "ring_b/b.h"', True),
    ("ring_a/a.c", '#include "device/b.h"', False),
    ("ring_a/a.c", '#include "data/b.h"', True),
    ("ring_a/one.c", '#include "data/b.h"', False),
    ("ring_a/a.c", "#include <zmq.h>", True),
    ("ring_a/a.c", "    err = MPI_Allreduce(a, b);", True),
    ("ring_a/a.c", "// unlike MPI_Allreduce", False),
    ("ring_a/a.c", "    MPI_Allreduce_x();", False),
    ("ring_a/a.c", "    int data = 1;", False),
    ("build/x/a.c", '#include "nowhere/b.h"', False),
]


if __name__ == "__main__":
    sys.exit(rule.main(judge, [
        ({name: text + "\n", "ARCHITECTURE.md": RULES}, mistake)
        for name, text, mistake in CASES], "every include points to a lower floor"))
