"""Reads an experiment: an INI file and the words of a command line.

    [experiment]
    title = ..        question = ..     expect = ..
    figures = throughput loss_step      names of plots/NAME.gp, or none
    repeat = 3                          runs of each cell
    baseline = single                   the cell to compare others with
    target_loss = 2.5                   report the seconds to this loss;
                                        auto: the least loss all reach
    only = ring                         the cells whose [cell NAME] begins with this
    [base]                              settings of every cell
    [matrix]                            every combination of these
    batch = 8, 16
    size = workers=1 batch=16, workers=2 batch=8     several keys at once
    size = batch=2 (steps=160), batch=4 (steps=80)   names omit what is in ()
    [cell ring+fp16]                    the matrix runs with each of these cells
    sync = ring
    peer = ddp                          PyTorch's DDP trains this cell, by python3;
                                        peer_python= of the command line names another

Cells are numbered with the named cell slowest and the last key of the matrix
fastest.
"""

import dataclasses
import hashlib
import itertools
import os
import re
import typing

from .files import Error, number, read_lines, visible, whole

MOST_CELLS = 512
MOST_BYTES = 1 << 16  # of an INI file
TEXTS = ("title", "question", "expect", "figures", "baseline", "only", "peer_python")
ABOUT = (*TEXTS, "target_loss", "repeat")
# What a word of the command line replaces; the others add to [base].
REPLACED = ("figures", "baseline", "only", "peer_python", "repeat", "target_loss")
# What makes a run start a program that the user did not choose, or other hosts. An
# INI file may come from a stranger, so only the command line may have these.
TRUSTED = ("peer_python", "lab", "hosts")


@dataclasses.dataclass
class Value:
    """One value of a key of [matrix]: "2" or "workers=1 batch=16"."""
    key: str
    text: str
    words: list  # of the settings that it makes, "key=value"

    @property
    def name(self):
        """As names of cells have it."""
        return self.text if "=" in self.text else f"{self.key}={self.text}"


@dataclasses.dataclass(eq=False)
class Cell:
    """One combination of settings."""
    name: str
    words: list  # "key=value", a later one replaces an earlier one
    named: str = ""  # of its [cell NAME]
    values: tuple = ()  # a Value for each key of the matrix
    peer: bool = False  # another program trains it
    lines: dict = dataclasses.field(default_factory=dict)  # of its keys, "FILE:LINE"
    baseline: int = None  # the number of the cell that it is compared with
    shown: str = ""  # its name, without what it did not get (study.py)
    short: str = ""  # the same without what all cells have
    into: typing.Any = None  # the cell whose runs had the same settings (study.py)
    twins: list = dataclasses.field(default_factory=list)  # the cells that it stands for

    @property
    def settings(self):
        """The words as a dict."""
        return dict(word.split("=", 1) for word in self.words)

    @property
    def folder(self):
        """The name of the folder of its runs: without blanks, quotes, commas, slashes
        and dollars, and short enough for a file system."""
        name = re.sub(r"""[\s,/\\'"`$\x00-\x1f\x7f]""", "_", self.name)
        if len(name.encode()) > 120:
            tail = hashlib.sha256(self.name.encode()).hexdigest()[:8]
            name = f"{name.encode()[:100].decode('utf-8', 'ignore')}-{tail}"
        return f"_{name}" if name.startswith(".") else name


class Experiment:
    """The cells of an experiment and what its report says about them."""

    def __init__(self, name):
        self.name = visible(name)
        self.title = self.question = self.expect = ""
        self.figures = self.baseline = self.only = self.peer_python = ""
        self.target = None  # a loss; None: auto
        self.repeat = 3
        self.base, self.axes, self.named = [], {}, {}
        self.peers = set()
        self.lines = {}  # of each section, "FILE:LINE" of each key
        self.cells = []

    def about(self, key, value):
        """Takes a key of [experiment]."""
        if key not in ABOUT:
            raise Error(f"[experiment] {key}: unknown key; try: {', '.join(ABOUT)}")
        if key == "repeat":
            self.repeat = whole(value, 1, 1000)
            if not self.repeat:
                raise Error(f"repeat={value}: must be 1 .. 1000")
        elif key == "target_loss":
            self.target = number(value)
            if value != "auto" and not (self.target or 0) > 0:
                raise Error(f"target_loss={value}: must be auto or a loss above 0")
        else:
            setattr(self, key, value)

    def add_axis(self, key, text):
        """Appends the values of "a, b (c=d)" to a key of [matrix]."""
        values = self.axes.setdefault(key, [])
        for piece in filter(None, map(str.strip, text.split(","))):
            match = re.fullmatch(r"([^()]*[^()\s])\s*(?:\(([^()]*)\))?", piece)
            if not match:
                raise Error(f"[matrix] {key} = {piece}: must be VALUE or VALUE "
                            "(key=value ..)")
            shown, hidden = match[1], (match[2] or "").split()
            words = shown.split() if "=" in shown else [f"{key}={shown}"]
            for word in words + hidden:
                if "=" not in word:
                    raise Error(f"[matrix] {key}: {word} is not key=value")
            values.append(Value(key, shown, words + hidden))
        if not values:
            raise Error(f"{key}: no values")

    def take(self, section, key, value):
        """Takes one line of the INI file."""
        if section == "experiment":
            self.about(key, value)
        elif section == "base":
            self.base.append(f"{key}={value}")
        elif section == "matrix":
            self.add_axis(key, value)
        elif key == "peer":
            if value != "ddp":
                raise Error(f"[{section}] peer={value}: must be ddp")
            self.peers.add(section[5:])
        else:
            self.named[section[5:]].append(f"{key}={value}")

    def check_words(self):
        """Refuses what only the command line may have."""
        values = [v for axis in self.axes.values() for v in axis]
        words = itertools.chain(self.base, *(v.words for v in values),
                                *self.named.values())
        keys = {"peer_python"} if self.peer_python else {w.partition("=")[0] for w in words}
        for key in TRUSTED:
            if key in keys:
                raise Error(f"{key} is accepted only from the command line, since it "
                            f"makes Lockstep start what others wrote; try: {key}=VALUE "
                            "there")
        if "out" in keys:
            raise Error("out is the folder of a whole experiment; try: lockstep run FILE "
                        "out=DIR")

    def override(self, word):
        """Applies a word of the command line."""
        key, equals, value = word.partition("=")
        if not equals or not key or word != visible(word):
            raise Error(f"{visible(word)}: must be key=value, without control characters")
        for lines in self.lines.values():
            lines.pop(key, None)
        if key in REPLACED:
            self.about(key, value)
        elif key in self.axes:
            del self.axes[key]
            self.add_axis(key, value)
        else:
            self.base.append(word)

    def expand(self):
        """Makes the cells."""
        names = [n for n in self.named if n.startswith(self.only)] or [""]
        if self.only and names == [""]:
            raise Error(f"only={self.only}: no [cell NAME] begins with this; the names: "
                        f"{', '.join(self.named) or 'none'}")
        count = len(names)
        for values in self.axes.values():
            count *= len(values)
        if count > MOST_CELLS:
            raise Error(f"{count} cells are more than {MOST_CELLS}")
        for named, *values in itertools.product(names, *self.axes.values()):
            words = self.base + [w for v in values for w in v.words]
            words = words + self.named.get(named, [])
            parts = [named] * bool(named) + [v.name for v in values]
            lines = {}
            for section in "base", "matrix", f"cell {named}":
                lines |= self.lines.get(section, {})
            self.cells.append(Cell(visible(" ".join(parts) or "only"), words, named,
                                   tuple(values), named in self.peers, lines))
        seen = {}
        for i, cell in enumerate(self.cells):
            other = seen.setdefault(cell.folder, i)
            if other != i:
                raise Error(f"cells {other + 1} and {i + 1} would both have the folder "
                            f"{cell.folder}; try: names and values that differ in "
                            "letters or digits")
        if self.baseline:
            self._find_baselines()
        self.figures = self.figures or self._usual_figures()

    def _usual_figures(self):
        usual = "speedup throughput loss_seconds memory breakdown"
        if len(self.axes) == 2:
            return usual + " heatmap"
        return usual + " sweep" if self.axes else usual

    def _find_baselines(self):
        """baseline= may fix the named cell and some values. The baseline of a cell has
        these, and otherwise the cell's own. It has none if only= leaves that cell out."""
        rest = f" {self.baseline} "

        def fixed(pieces):
            nonlocal rest
            for piece in sorted(filter(None, pieces), key=len, reverse=True):
                if f" {piece} " in rest:
                    rest = rest.replace(f" {piece} ", "  ", 1)
                    return piece
            return None

        named = fixed(self.named)
        values = [fixed([v.name for v in axis]) for axis in self.axes.values()]
        if rest.strip():
            first = self.cells[0].name
            quote = "'" if " " in first else ""
            raise Error(f"baseline={self.baseline}: no cell has this name; try: "
                        f"baseline={quote}{first}{quote}")
        place = {(c.named, *(v.name for v in c.values)): i
                 for i, c in enumerate(self.cells)}
        for cell in self.cells:
            wanted = [want or v.name for want, v in zip(values, cell.values)]
            cell.baseline = place.get((named or cell.named, *wanted))
        if all(cell.baseline is None for cell in self.cells):
            self.baseline = ""


def _lines(path, follow):
    """(line, section, key, value) of an INI file; a value of several lines, which
    are indented, is one."""
    section, seen, found = "", {}, []

    def once(what, *place):
        if (line := seen.setdefault(place, count)) != count:
            raise Error(f"{where}: {what} stands twice, first in line {line}; try: remove "
                        "one of the two, or give it another name")
    for count, line in enumerate(read_lines(path, MOST_BYTES, follow), 1):
        where = f"{visible(path)}:{count}"
        line = re.sub(r"^\s*#.*|(^|\s);.*", "", line).rstrip()
        if not line:
            continue
        if line[0].isspace() and found and found[-1][1] == section:
            comma = "," if section == "matrix" else ""
            found[-1][3] += f"{comma} {line.strip()}"
        elif line.lstrip()[0] == "[":
            if line[-1] != "]":
                raise Error(f"{where}: {line}: a section ends with ]")
            section = line.strip()[1:-1]
            once(f"[{section}]", section)
            if section not in ("experiment", "base", "matrix") and \
                    not section.startswith("cell "):
                raise Error(f"{where}: [{section}]: unknown section; try: "
                            "experiment, base, matrix or cell NAME")
            if section.startswith("cell "):
                found.append([where, section, "", ""])
        else:
            key, equals, value = line.partition("=")
            if not equals or not section or not key.strip():
                raise Error(f"{where}: {line}: not key = value below a [section]")
            once(f"[{section}] {key.strip()}", section, key.strip())
            found.append([where, section, key.strip(), value.strip()])
    return found


def read_experiment(path, words=(), follow=True):
    """The experiment of an INI file with the words of a command line."""
    found = _lines(path, follow)
    e = Experiment(os.path.splitext(os.path.basename(path))[0])
    if not any(key for _, _, key, _ in found):
        raise Error(f"{visible(path)}: no key=value line, so it is no experiment")
    for where, section, key, value in found:
        try:
            if not key:
                e.named[section[5:]] = []
            else:
                e.take(section, key, value)
                keys = [word.partition("=")[0] for v in e.axes[key] for word in v.words] \
                    if section == "matrix" else [key]
                e.lines.setdefault(section, {}).update(dict.fromkeys(keys, where))
        except Error as why:
            raise Error(f"{where}: {why}") from None
    try:
        e.check_words()
    except Error as why:
        raise Error(f"{visible(path)}: {why}") from None
    for word in words:
        e.override(word)
    e.expand()
    return e
