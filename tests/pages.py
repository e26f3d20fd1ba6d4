#!/usr/bin/env python3
"""pages.py [TREE] - check that the Markdown pages agree with the sources.

Every link to a file of the tree must lead to one, and its #anchor to a heading.
Every `FILE:FUNCTION` must name a function that this file defines. An indented
block of such lines is a call tree (docs/tour.md). The caller of a line is the
nearest line above it with less indent, and it must call the line's function. With
`MEMBER = FILE:FUNCTION` it must call that member, and some table must set the
member to the function. The index, docs/README.md, must name every page of docs
and experiments. A page or an experiment must name every setting. docs/names.md does
not count, since it only translates. The glossary must have each old name of a setting.

pages.py --self-test makes trees with one mistake each, and must find it.
"""

import functools
import pathlib
import re
import sys

import rule

SOURCES = (".c", ".h", ".cu", ".cuh")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CALL = re.compile(r"( {4,})(?:(\w+) = )?((?:[\w-]+/)+\w+\.(?:c|h|cu)):(\w+)")
INLINE = re.compile(r"\b((?:[\w-]+/)+\w+\.(?:c|h|cu|cuh)):([a-z]\w+)\b")
COMMENT = re.compile(r"//[^\n]*")
KEY = re.compile(r'^\{"[\w ]+", "(\w+)"', re.M)
WAS = re.compile(r'\.was = "(\w+)"')
OLD = re.compile(r'^ {4}\{(?:\.key = )?"(\w+)"', re.M)
FENCE = re.compile(r"^```.*?^```", re.M | re.S)


@functools.lru_cache(None)
def files(tree, suffixes):
    """The files of the project, without the output of builds, runs and tools."""
    return [p for p in sorted(tree.rglob("*")) if p.suffix in suffixes and not
            any(part in ("build", "runs", "old_run") or part.startswith(".")
                for part in p.relative_to(tree).parts)]


@functools.lru_cache(None)
def source(path):
    return COMMENT.sub("", path.read_text()) if path.exists() else ""


def body(path, name):
    """The text of a function; None if the file does not define it."""
    found = re.search(rf"^[A-Za-z_][\w *]*?\b{name}\([^;{{]*\)\s*{{.*?^}}",
                      source(path), re.M | re.S)
    return found and found.group()


def anchors(path):
    """The anchors that GitHub makes of all headings."""
    heads = re.findall(r"^#+ +(.*)$", FENCE.sub("", path.read_text()), re.M)
    heads = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", h) for h in heads]
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}


def judge_links(page):
    complaints = []
    for link in LINK.findall(page.read_text()):
        name, _, anchor = link.partition("#")
        to = page.parent / name if name else page
        if "://" in link or link.startswith("mailto:"):
            continue
        if not to.exists():
            complaints.append(f"{link} is not there")
        elif anchor and anchor not in anchors(to):
            complaints.append(f"{link}: there is no such heading")
    return complaints


def judge_call(tree, caller, member, name, function):
    """Complaints if the caller, a pair (file, function), does not call it."""
    text = body(tree / caller[0], caller[1]) or ""
    what = rf"(?:->|\.){member}\(" if member else rf"\b{function}\b"
    inner = text[text.find("{"):]
    if not re.search(what, inner):
        return [f"{caller[0]}:{caller[1]} does not call {member or function}"]
    table = rf"(?:\.{member}\s*=|\b{member}_\w+ )[^,;]*\b{function}\b"
    if member and not any(function in source(p) and re.search(table, source(p))
                          for p in files(tree, SOURCES)):
        return [f"no table has .{member} = {function}"]
    return []


def judge_calls(tree, text):
    complaints, above = [], []
    for line in text.splitlines():
        found = CALL.match(line)
        if not found:
            above = []
            continue
        indent, member, name, function = found.groups()
        if not body(tree / name, function):
            complaints.append(f"{name}:{function} is not there")
        above = [a for a in above if a[0] < len(indent)]
        if above:
            complaints += judge_call(tree, above[-1][1], member, name, function)
        above.append((len(indent), (name, function)))
    return complaints


def judge_index(tree):
    index = tree / "docs/README.md"
    named = LINK.findall(index.read_text()) if index.exists() else []
    named = {(index.parent / name.partition("#")[0]).resolve() for name in named}
    return [f"docs/README.md: does not name {page.relative_to(tree)}"
            for folder in ("docs", "experiments")
            for page in sorted((tree / folder).glob("*.md"))
            if page != index and page.resolve() not in named]


def judge_keys(tree):
    """A setting that no page and no experiment names is one that nobody can find."""
    keys = KEY.findall(source(tree / "core/config/keys.c"))
    used = "".join(page.read_text() for page in files(tree, (".md", ".ini"))
                   if page != tree / "docs/names.md")
    return [f"core/config/keys.c: no page and no experiment names {key}=" for key in keys
            if not re.search(rf"\b{key} ?=", used)]


def judge_old_names(tree):
    """The glossary must have each old name of a setting that the sources know."""
    page = tree / "docs/glossary.md"
    _, _, rows = page.read_text().partition("**Old names**") if page.exists() else ("",) * 3
    known = WAS.findall(source(tree / "core/config/keys.c")) + \
        OLD.findall(source(tree / "core/config/json.c"))
    return [f"docs/glossary.md: \"Old names\" lacks {name}=" for name in known
            if f"`{name}=`" not in rows]


def judge(tree):
    complaints = judge_index(tree) + judge_keys(tree) + judge_old_names(tree)
    for page in files(tree, (".md",)):
        text = page.read_text()
        found = judge_links(page) + judge_calls(tree, text)
        found += [f"{name}:{function} is not there"
                  for name, function in INLINE.findall(text)
                  if not body(tree / name, function)]
        where = page.relative_to(tree)
        complaints += [f"{where}: {text}" for text in dict.fromkeys(found)]
    return complaints


CODE = """static int low(int x)
{
    return x;
}

int high(struct s *s)
{
    return low(1) + s->ops->turn(s);
}

static int around(struct s *s)
{
    return s->n; // low
}

const struct ops table = {.turn = around};
"""


def tree(page):
    return {"a/b.c": CODE, "a/README.md": "# Two words, `x`\n", "P.md": page}


NAMES = {"core/config/keys.c": '{"a", "lr", "1"}', "docs/README.md": "[n](names.md)\n",
         "docs/names.md": "`lr=`\n"}

OLD_NAMES = {"core/config/keys.c": ' .was = "c"},\n',
             "core/config/json.c": '    {.key = "a"},\n    {"b", "1", "lr", "2"},\n',
             "docs/README.md": "[g](glossary.md)\n"}

# (files, whether there is a mistake)
CASES = [
    (tree("[b](a/b.c) [w](a/README.md#two-words-x) `a/b.c:low`\n"), False),
    (tree("[c](a/c.c)\n"), True),
    (tree("[w](a/README.md#three-words)\n"), True),
    (tree("`a/b.c:none`\n"), True),
    (tree("    a/b.c:high\n      a/b.c:low    text\n"), False),
    (tree("    a/b.c:high\n      turn = a/b.c:around\n"), False),
    (tree("    a/b.c:high\n      a/b.c:around\n"), True),
    (tree("    a/b.c:around\n      a/b.c:low\n"), True),
    (tree("    a/b.c:high\n      turn = a/b.c:low\n"), True),
    (tree("    a/b.c:low\n    a/b.c:around\n"), False),
    (tree("    a/b.h:high\n      a/b.c:around\n") | {"a/b.h": CODE}, True),
    ({"core/config/keys.c": '{"a", "lr", "1"}', "P.md": "`lr=`\n"}, False),
    ({"core/config/keys.c": '{"a", "lr", "1"}', "P.md": "lr\n"}, True),
    ({"core/config/keys.c": '{"a b", "rank", "1"}', "P.md": "rank\n"}, True),
    (NAMES | {"P.md": "`lr=`\n"}, False),
    (NAMES, True),
    (OLD_NAMES | {"docs/glossary.md": "**Old names**\n`a=` `b=` `c=`\n"}, False),
    (OLD_NAMES | {"docs/glossary.md": "`a=` `b=`\n**Old names**\n`c=`\n"}, True),
    (OLD_NAMES | {"docs/glossary.md": "**Old names**\n`b=` `c=`\n"}, True),
    ({"docs/README.md": "[p](p.md)\n", "docs/p.md": ""}, False),
    ({"docs/README.md": "[p](p.md)\n", "docs/p.md": "", "docs/q.md": ""}, True),
]


if __name__ == "__main__":
    sys.exit(rule.main(judge, CASES, "the pages agree with the sources"))
