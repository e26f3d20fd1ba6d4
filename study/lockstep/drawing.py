"""What figures are made of: bars and lines, with their colours and labels.

A figure is prepared here and drawn by plots/NAME.gp. A Drawing holds `rows`, which
become figures/NAME.csv, and `about`, variables of the script: texts, colours and
counts. A script opens no other file. Texts that come from a run are variables, and
in the CSV they are in the last columns, so no text can move a number to another
column.
"""

import collections
import dataclasses
import functools
import math
import re

from .files import read_text, visible
from .places import share

LONGEST = 40  # letters of a name
GREY = "#888888"
NOTE = "‡ oversubscribed: more threads than cores, so workers share cores"
FIRST = "the first repeat of each cell"
# Colours of one figure differ in lightness as well as in hue: they stay different
# for colour-blind people and in grey print.
WORKERS = ("#2b6cb0", "#f2b04c", "#222222", "#2ba58d", "#9a3412", "#888888")
KINDS = {  # of a step's time: computing is blue, communication and waiting orange
    "data": ("#8c8c8c", "data"), "forward": ("#c2dcf0", "forward"),
    "backward": ("#6ba6d6", "backward"), "compress": ("#1f9e9e", "compress"),
    "update": ("#235a97", "update"),
    "slowed": ("#45257a", "slowed on purpose"),
    "exposed": ("#c2410c", "exposed transfer"), "wait": ("#f5b06f", "wait"),
    "bubble": ("#fbe0bd", "wait for stages"),
    "join": ("#e2763a", "wait for slices or pieces"),
    "other": ("#e4e4e4", "other"), "gpu_compute": ("#3f8f4f", "GPU computes"),
    "gpu_idle": ("#e4e4e4", "GPU does not"),
    "gpu_comm": ("#c2410c", "GPU in collectives")}
MARKS = (7, 5, 9, 11, 13, 15, 6, 4, 8, 10, 12, 14, 3)  # gnuplot's points


@functools.cache
def backends():
    """{backend: (colour, point)}, in the order of the table of backends."""
    text = read_text(share("core/config/backends.def"), follow=True)
    found = re.findall(r'^BACKEND\("(\w+)".*?\.colour = "(#[0-9a-f]{6})".*?'
                       r"\.point = (\d+)", text, re.M | re.S)
    return {name: (colour, int(point)) for name, colour, point in found}


def colour_of(backend):
    """A backend's colour in all figures."""
    return backends().get(backend, (GREY, 11))[0]


def point_of(backend):
    """A backend's point in all figures."""
    return backends().get(backend, (GREY, 11))[1]


def worker_colour(i):
    """The colour of worker i of a run, or of line i."""
    return WORKERS[i % len(WORKERS)]


def short(text, most=LONGEST):
    """A label of at most `most` letters: the middle of a longer one is left out."""
    text = visible(text)
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[:half]}…{text[half - most + 1:]}"


def tics(labels):
    """Labels of tics, of which gnuplot reads % as the begin of a format."""
    return [text.replace("%", "%%") for text in labels] or [""]


def width(text):
    """About how many pixels a text takes, at most."""
    narrow, wide = "fijlrt .,:;'|!()[]-", "mwMW@%+=…"
    return 18.7 * sum(0.38 if c in narrow else 1.0 if c in wide or ord(c) > 0x24f else
                      0.78 if c.isupper() else 0.64 for c in text)


def beside_key(n):
    """The height of a figure beside whose plot a key of n entries stands."""
    return max(640, 200 + 28 * n)


def names(cells):
    """The labels of cells: without the settings that all of them have."""
    words = [c.shown.split(" ") for c in cells]
    shared = {w for w in set.intersection(*map(set, words)) if "=" in w} \
        if len(cells) > 1 else set()
    found = [" ".join(w for w in ws if w not in shared) or c.shown
             for c, ws in zip(cells, words)]
    count = collections.Counter(map(short, found))
    return [short(name) if count[short(name)] == 1 else
            f"{short(name, LONGEST - 6)} ({i})" for i, name in enumerate(found, 1)]


def crowded(study, cells):
    """The mark of each cell whose workers share cores, and the note that says so."""
    marks = [" ‡" * study.first(c).oversubscribed for c in cells]
    return marks, NOTE * any(marks)


def tic(most, n=4):
    """The distance of tics: up to n + 1 of them from 0 to `most`."""
    if not most or most <= 0:
        return 1
    unit = 10.0 ** math.floor(math.log10(most / n))
    return next(k * unit for k in (2, 5, 10) if most / n / unit <= k)


FIGURES = {}  # a function of a study for each, which returns a Drawing


def figure(function):
    """Registers a function that prepares the figure of its name."""
    FIGURES[function.__name__] = function
    return function


@dataclasses.dataclass
class Drawing:
    """A prepared figure."""
    rows: list
    about: dict  # variables of the script


# ---- bars

@dataclasses.dataclass
class Bar:
    """What stands in the row of a cell. `what` is
    bar     a bar from `least` to `most`
    range   the mark of a range, from `least` to `most`
    repeat  one repeat, a point at `least`
    text    `value` above a bar that ends at `most`
    law     a line across the bar at `least`: a law, or a peak"""
    what: str
    place: float  # the first row is 0; of a bar the middle
    least: float
    most: float
    colour: str = "#000000"
    half: float = 0.36  # of a bar's height
    value: float = None  # what the bar or line says
    name: str = ""  # of a part of a bar, as in the key
    cell: str = ""  # the whole name
    panel: int = 1


def _finite(*values):
    """Whether gnuplot can draw these numbers."""
    return all(map(math.isfinite, values))


BARS = ("bar", "range", "repeat", "law", "text")


def bars(bars_, labels, keys=(), panels=1, high=None, note="", law="",
         right=False, **about):
    """A Drawing of rows of bars. `labels` has those of all rows, panel after panel;
    `keys` are (colour, text); with `right` they stand to the right of the plot."""
    n, bars_ = len(labels) // panels, [b for b in bars_ if _finite(b.place, b.least, b.most)]
    room = [max(map(width, labels[p * n:(p + 1) * n]), default=0) + 25
            for p in range(panels)]
    rows = [{"what": b.what, "panel": b.panel, "place": b.place, "half": b.half,
             "least": b.least, "most": b.most,
             "value": b.most if b.value is None else b.value, "colour": b.colour,
             "name": b.name, "cell": b.cell} for b in bars_]
    have = [int(any(b.what == what and b.panel == p for b in bars_))
            for p in range(1, panels + 1) for what in BARS]
    return Drawing(rows, {
        "n": n, "panels": panels, "label": tics(labels), "have": have,
        "room": room, "WIDE": (1120, 1280)[panels > 1] + max(0, room[0] - 280),
        "key_room": max((width(text) for _, text in [*keys, ("", law)]), default=0) + 60
        if right and keys else 0,
        "keys": len(keys), "key_colour": [c for c, _ in keys] or [GREY],
        "key": [text for _, text in keys] or [""], "note": note, "law": law,
        "HIGH": high or max(640, 130 + 27 * n), **about})


# ---- lines

@dataclasses.dataclass
class Line:
    """Points of one colour. `what` is
    band     an area between `least` and `most`
    impulse  a grey line from 0 to each point
    line     a line through the points
    range    the marks of ranges, from `least` to `most`
    point    the points alone
    key      an entry of the key, without points"""
    what: str
    points: list  # of (x, y) or (x, y, least, most)
    colour: str
    name: str = ""  # whole; the key has a shorter one
    panel: int = 1
    width: float = 2
    dash: int = 1
    point: int = 7
    size: float = 1.2


LINES = ("band", "impulse", "line", "range", "point", "key")


def linespoints(points, colour, name="", **more):
    """Points on a line: both, and an entry of the key."""
    mark = {k: v for k, v in more.items() if k != "dash"}
    return [Line("line", points, colour, name, **more),
            Line("point", points, colour, name, **mark),
            Line("key", [], colour, short(name), **more)]


def lines(lines_, panels=1, high=640, note="", right=False, **about):
    """A Drawing of panels with lines. `ends` tells the script which numbers of lines
    each panel has of each kind. With `right` the key stands to the right."""
    for li in lines_:
        li.points = [p for p in li.points if _finite(*p)]
    ordered = sorted((li for li in lines_ if li.points or li.what == "key"),
                     key=lambda li: (li.panel, LINES.index(li.what)))
    rows, ends = [], [0]
    for p in range(1, panels + 1):
        for what in LINES:
            ends.append(ends[-1] + sum(li.panel == p and li.what == what
                                       for li in ordered))
    most = max(100, min(4000, int(math.sqrt(1e7)) // max(1, len(ordered))))
    for number, li in enumerate(ordered, 1):
        for x, y, *ends_ in thin(li.points, most):
            least, largest = ends_ or (y, y)
            rows.append({"number": number, "panel": li.panel, "x": x, "y": y,
                         "least": least, "most": largest, "what": li.what,
                         "colour": li.colour, "name": li.name})
    keys = [width(li.name) for li in ordered if li.what == "key"]
    return Drawing(rows, {
        "panels": panels, "ends": ends, "note": note, "HIGH": high,
        "key_room": max(keys) + 60 if right and keys else 0,
        "colour": [li.colour for li in ordered], "width": [li.width for li in ordered],
        "dash": [li.dash for li in ordered], "point": [li.point for li in ordered],
        "size": [li.size for li in ordered],
        "name": [li.name for li in ordered], **about})


def thin(points, most):
    """At most `most` points, for a picture: of each stretch the least and the greatest."""
    if len(points) <= most:
        return points
    found, stretch = [], 2 * len(points) / most
    for k in range(most // 2):
        part = points[int(k * stretch):int((k + 1) * stretch)]
        ends = {min(part, key=lambda p: p[1]), max(part, key=lambda p: p[1])}
        found += [p for p in part if p in ends]
    return found
