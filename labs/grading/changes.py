"""changes.py - named changes of a text: wrong solutions, and a term's variants.

Each change in a file begins with a head line in brackets. Pairs of lines "- old" and
"+ new" follow. Consecutive "- " lines are one piece of text, and so are consecutive "+ "
lines. The old text must occur exactly once. If it does not, the change is out of date, and
apply() raises an error.

    [send_first] fails = deadlock     mutants.txt: a wrong solution, and the test
    [LAB_LONG_LAST 1]                 variants.txt: a macro of term.h, and its value
"""

import re

MUTANT = re.compile(r"\[(\w+)\]\s+fails = (\w+)\s*$")
VARIANT = re.compile(r"\[(\w+) (-?\d+)\]\s*$")


class Change:
    def __init__(self, name, value):
        self.name, self.value, self.pairs = name, value, []

    def apply(self, texts):
        """`texts`, a dictionary by file name, with the old text of all pairs replaced."""
        for old, new in self.pairs:
            found = [name for name, text in texts.items() if old in text]
            count = sum(text.count(old) for text in texts.values())
            if count != 1:
                raise ValueError(f"{self.name}: the old text is {count} times in "
                                 f"{', '.join(texts)}, not once: {old!r}")
            texts = texts | {found[0]: texts[found[0]].replace(old, new)}
        return texts


def read(path, head):
    """All changes of a file. `head`: MUTANT or VARIANT."""
    changes, last = [], ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = head.match(line)
        kind, rest = line[:2], line[2:]
        pairs = changes[-1].pairs if changes else []
        if found:
            changes.append(Change(found[1], found[2]))
        elif kind == "- " and changes:
            old = pairs.pop()[0] + "\n" if last == "- " else ""
            pairs.append((old + rest, ""))
        elif kind == "+ " and pairs:
            old, new = pairs.pop()
            pairs.append((old, f"{new}\n{rest}" if last == "+ " else rest))
        elif line and not line.startswith("#"):
            raise ValueError(f"{path}:{number}: neither a head nor a line that "
                             "begins with '- ' or '+ '")
        last = kind
    return changes
