"""mutants.py - wrong solutions, as changes of a reference.

mutants.txt holds for each: [name] fails = TEST, then pairs of lines "- old" and
"+ new". What stands behind "- " occurs exactly once in reference.c; a pair may have
several "- " lines and several "+ " lines, which are whole lines then.
"""

import re

HEAD = re.compile(r"\[(\w+)\]\s+fails = (\w+)\s*$")


class Mutant:
    def __init__(self, name, fails):
        self.name, self.fails, self.pairs = name, fails, []

    def apply(self, text):
        """The reference with this mistake."""
        for old, new in self.pairs:
            if text.count(old) != 1:
                raise ValueError(f"mutant {self.name}: {text.count(old)} times in "
                                 f"reference.c, not once: {old!r}")
            text = text.replace(old, new)
        return text


def read(path):
    """All mutants of a file."""
    mutants, last = [], ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        head = HEAD.match(line)
        kind, rest = line[:2], line[2:]
        if head:
            mutants.append(Mutant(head[1], head[2]))
        elif kind == "- " and mutants:
            pairs = mutants[-1].pairs
            if last == "- ":
                pairs[-1] = (f"{pairs[-1][0]}\n{rest}", "")
            else:
                pairs.append((rest, ""))
        elif kind == "+ " and mutants and mutants[-1].pairs:
            old, new = mutants[-1].pairs[-1]
            mutants[-1].pairs[-1] = (old, f"{new}\n{rest}" if last == "+ "
                                     else rest)
        elif line and not line.startswith("#"):
            raise ValueError(f"{path}:{number}: neither [name] fails = TEST, nor "
                             f"a line that begins with '- ' or '+ '")
        last = kind
    return mutants
