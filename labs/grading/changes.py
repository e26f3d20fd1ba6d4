"""changes.py - named changes of a text: wrong solutions, and a term's variants.

A file of them holds for each a head in brackets, then pairs of lines "- old" and
"+ new". What stands behind "- " occurs exactly once in the text, so a change cannot
rot in silence. Several "- " or "+ " lines after each other are one piece of text.

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
        """The texts, a dictionary by file, with all pairs replaced."""
        for old, new in self.pairs:
            found = [name for name, text in texts.items() if old in text]
            count = sum(text.count(old) for text in texts.values())
            if count != 1:
                raise ValueError(f"{self.name}: {count} times in "
                                 f"{', '.join(texts)}, not once: {old!r}")
            texts = texts | {found[0]: texts[found[0]].replace(old, new)}
        return texts


def read(path, head):
    """All changes of a file whose heads look like `head`."""
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
