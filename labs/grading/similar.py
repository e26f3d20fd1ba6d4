"""similar.py - how much of a file's text is in other files: a table, not a verdict.

Names that the student chose count as one word, so that renaming hides nothing. Runs of
RUN words that are in the skeleton or the lab's headers do not count. `share` is the part
of the shorter file's other runs that both files have. Two right solutions of a short lab
may share much: read both before you say anything.
"""

import re

from . import build, rules

TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\"[^\"\n]*\"|->|[-+<>=!&|*/%]=|&&|\|\||\+\+|--|"
                   r"<<|>>|\S")
KNOWN = set("""if else for while do switch case default break continue return goto sizeof
    struct enum union typedef static const void char short int long float double signed
    unsigned bool true false NULL size_t uint64_t uint32_t uint16_t int64_t int32_t""".split())
RUN, NEAREST = 16, 3


def runs(text):
    """The runs of RUN words of a C file, without comments."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
    words = ['""' if w[0] == '"' else
             w if w in KNOWN or not re.match(r"[A-Za-z_]", w) or
             re.match(r"(lab|disk|mem|str)_?", w) else "x" for w in TOKEN.findall(text)]
    return {tuple(words[i:i + RUN]) for i in range(len(words) - RUN + 1)}


def read(path):
    """The runs of a file; none if it cannot be graded."""
    try:
        with rules.limited(path):
            return runs(build.handed_in(path).decode(errors="replace"))
    except build.Refused:
        return set()


def share(a, b):
    least = min(len(a), len(b))
    return len(a & b) / least if least else 0.0


def rows(its, handed_in, others):
    """[name, other, share]: for each of `handed_in`, {name: path}, the NEAREST of these
    and of `others`, with the largest share first."""
    given = set()
    for path in [its.folder / "skeleton.c", *its.folder.glob("*.h")]:
        given |= read(path)
    texts = {name: read(path) - given for name, path in {**others, **handed_in}.items()}
    table = []
    for name in handed_in:
        near = sorted(((share(texts[name], texts[other]), other) for other in texts
                       if other != name), reverse=True)[:NEAREST]
        table += [[name, other, f"{part:.2f}"] for part, other in near]
    return sorted(table, key=lambda row: (-float(row[2]), row[0], row[1]))
