"""Reads a figure back from the SVG that gnuplot wrote.

A Drawn has panels, and each panel what is drawn in it, in pixels: bars, lines,
points and texts. A panel maps a value to its pixel by the labels of its axes' tics.
The keys are separate.
"""

import math
import pathlib
import re
import struct
import xml.etree.ElementTree as tree
import zlib

import made  # noqa: F401, it finds the package
from lockstep import figures

DRAWN = set()  # names of figures that were compared
WHITE = (255, 255, 255)
AXIS = (85, 85, 85)  # the colour of axes and tics
SUFFIX = {"k": 1e3, "M": 1e6, "G": 1e9}


def colour(text):
    """The numbers of "rgb(1, 2, 3)" or "#010203"; other words are black."""
    if text and text.startswith("#"):
        return tuple(bytes.fromhex(text[1:]))
    found = re.findall(r"[0-9]+", text or "")
    return tuple(map(int, found[:3])) if len(found) == 3 else (0, 0, 0)


def value(label):
    """The number of a tic's label."""
    label = label.strip()
    scale = SUFFIX.get(label[-1:], 1)
    return float(label.rstrip("kMG")) * scale


def places(text):
    """The points of "1,2 3,4"."""
    return [tuple(map(float, pair)) for pair in
            re.findall(r"(-?[0-9.]+),(-?[0-9.]+)", text)]


class Panel:
    """One panel. Its frame is (left, top, right, bottom)."""

    def __init__(self, frame):
        self.frame = frame
        self.x_tics, self.y_tics = [], []  # (pixel, label)
        self.bars = []  # (colour, left, top, right, bottom)
        self.lines = []  # (colour, width, points)
        self.points = []  # (colour, shape, x, y)
        self.texts = []  # (x, y, text)
        self.log = ""  # the axes with a logarithmic scale

    def has(self, x, y, by=1.0):
        """Whether a place is in the frame."""
        left, top, right, bottom = self.frame
        return left - by <= x <= right + by and top - by <= y <= bottom + by

    def pixel(self, axis, number):
        """The pixel of a number on axis "x" or "y"."""
        tics = sorted(self.x_tics if axis == "x" else self.y_tics)
        scale = math.log10 if axis in self.log else float
        (a, first), (b, last) = tics[0], tics[-1]
        low, high = scale(value(first)), scale(value(last))
        for at, label in tics:  # all tics must fit
            fits = a + (b - a) * (scale(value(label)) - low) / (high - low)
            assert abs(at - fits) < 0.6, (axis, label, at, fits)
        return a + (b - a) * (scale(number) - low) / (high - low)

    def at(self, x, y):
        """The pixels of a place."""
        return self.pixel("x", x), self.pixel("y", y)

    def row(self, i, n):
        """The pixel of the middle of row i of n."""
        return self.frame[1] + (i + 0.5) * (self.frame[3] - self.frame[1]) / n

    def labels(self):
        """The labels of the y axis, from above."""
        return [label for _, label in sorted(self.y_tics)]


class Drawn:
    """A figure."""

    def __init__(self, path):
        self.root = tree.parse(path).getroot()
        self.wide, self.high = map(float, self.root.get("viewBox").split()[2:])
        self.panels, self.keys = [], []  # a key: (text, colour, left, right, y)
        self.texts = []  # (x, y, anchor, size, text), all of them
        self.loose = []  # marks outside of panels
        frames = [self.frame(e) for e in self.root.iter() if self.tag(e) == "path"]
        for frame in dict.fromkeys(f for f in frames if f):
            self.panels.append(Panel(frame))
        for group in self.root.iter():
            if self.tag(group) == "g":
                self.read_text(group)
        canvas = next(e for e in self.root if e.get("id") == "gnuplot_canvas")
        for part in canvas:
            if (part.get("id") or "").startswith("gnuplot_plot"):
                self.read_plot(part)
            else:
                self.read_tic(part)

    @staticmethod
    def tag(element):
        return element.tag.rsplit("}")[-1]

    @staticmethod
    def frame(path):
        """The frame that a border's path draws: left side, then lower side."""
        at = places(path.get("d", "").partition(" M")[0])
        if colour(path.get("stroke")) != AXIS or len(at) != 3:
            return None
        (left, top), _, (right, bottom) = at
        return left, top, right, bottom

    def read_text(self, group):
        place = re.match(r"translate\(([-0-9.]+),([-0-9.]+)\)(.*)",
                         group.get("transform", ""))
        for e in group if place else ():
            text = "".join(e.itertext())
            if self.tag(e) == "text" and text.strip():
                self.texts.append((float(place[1]), float(place[2]),
                                   "turned" if "rotate" in place[3]
                                   else group.get("text-anchor"),
                                   float(group.get("font-size")), text.strip()))

    def read_tic(self, part):
        """A tic is a short line with a label in the same group; small tics without a
        label are before it."""
        for e in part:
            at = places(e.get("d", "").rpartition("M")[2])
            text = [t for g in part if self.tag(g) == "g" for t in g.iter()
                    if self.tag(t) == "text"]
            if self.tag(e) != "path" or colour(e.get("stroke")) != AXIS or \
                    len(at) != 2 or not text or e.get("class") == "gridline":
                continue
            (x, y), (to_x, _) = at
            label = "".join("".join(t.itertext()) for t in text).strip()
            for panel in self.panels:
                left, _, right, bottom = panel.frame
                if x == to_x and y == bottom and left <= x <= right:
                    panel.x_tics.append((x, label))
                elif x == left and x != to_x and panel.has(x, y):
                    panel.y_tics.append((y, label))

    def read_plot(self, part):
        """What one element of `plot` drew. An element with a text beside its marks
        is an entry of the key."""
        marks, texts, width = [], [], 1.0
        for e in part.iter():
            tag = self.tag(e)
            if e.get("stroke-width") and tag == "g":
                width = float(e.get("stroke-width"))
            if tag == "polygon":
                at = places(e.get("points"))
                xs, ys = zip(*at)
                marks.append(("bar", colour(e.get("fill")), min(xs), min(ys), max(xs),
                              max(ys)))
            elif tag == "path":
                for piece in e.get("d").split("M")[1:]:
                    marks.append(("line", colour(e.get("stroke")), width, places(piece)))
            elif tag == "use":
                if e.get("transform") is None or colour(e.get("color")) == WHITE:
                    continue  # no point, or the ground of an open one
                at = places(e.get("transform"))[0]
                marks.append(("point", colour(e.get("color")),
                              e.get("{http://www.w3.org/1999/xlink}href")[1:], *at))
            elif tag == "g" and (place := re.match(r"translate\(([-0-9.]+),([-0-9.]+)\)",
                                                   e.get("transform", ""))):
                texts += [(float(place[1]), float(place[2]), "".join(t.itertext()).strip())
                          for t in e if self.tag(t) == "text"]
        if marks and texts:
            xs = [x for m in marks for x in (
                m[2::2] if m[0] == "bar" else m[3:4] if m[0] == "point"
                else [p[0] for p in m[3]])]
            self.keys.append((texts[0][2], marks[0][1], min(xs), max(xs), texts[0][1]))
            return
        for kind, *mark in marks:
            at = mark[1:3] if kind != "line" else mark[2][0]
            if kind == "point":
                at = mark[2:]
            panel = next((p for p in self.panels if p.has(*at)), None)
            if panel is None:
                self.loose.append((kind, mark))
            else:
                getattr(panel, f"{kind}s").append(tuple(mark))
        for x, y, text in texts:
            panel = next((p for p in self.panels if p.has(x, y, 12)), None)
            assert panel, (x, y, text)
            panel.texts.append((x, y, text))


def same(found, expected, what, by=0.7):
    """Fails unless two lists of tuples are equal: numbers within `by` pixels, other
    values exactly. Their order does not matter."""
    assert len(found) == len(expected), (what, len(found), len(expected), found, expected)
    left = list(found)
    for e in expected:
        near = next((f for f in left if _near(f, e, by)), None)
        assert near is not None, (what, "not drawn", e, "drawn", sorted(
            left, key=lambda f: _far(f, e))[:2])
        left.remove(near)


def _numbers(value_):
    return [n for v in value_ for n in (_numbers(v) if isinstance(v, (list, tuple)) else [v])]


def _near(f, e, by):
    f, e = _numbers(f), _numbers(e)
    return len(f) == len(e) and all(
        abs(a - b) <= by if isinstance(a, float) or isinstance(b, float) else a == b
        for a, b in zip(f, e))


def _far(f, e):
    return sum(abs(a - b) for a, b in zip(_numbers(f), _numbers(e))
               if isinstance(a, float) and isinstance(b, float))


def png_rows(path):
    """(width, height, rows of bytes, bytes of a pixel) of a PNG of 8 bits."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", f"{path}: not a PNG"
    wide, high, depth, kind = struct.unpack(">IIBB", data[16:26])
    step = {2: 3, 6: 4}[kind]
    assert depth == 8, depth
    packed, at = b"", 8
    while at < len(data):
        size, name = struct.unpack(">I4s", data[at:at + 8])
        packed += data[at + 8:at + 8 + size] if name == b"IDAT" else b""
        at += 12 + size
    raw, rows, above = zlib.decompress(packed), [], bytearray(wide * step)
    for y in range(high):
        line = raw[y * (wide * step + 1):(y + 1) * (wide * step + 1)]
        above = _unfiltered(line[0], bytearray(line[1:]), above, step)
        rows.append(above)
    return wide, high, rows, step


def _unfiltered(kind, row, above, step):
    if kind == 2:
        return bytearray((a + b) & 255 for a, b in zip(row, above))
    for i, byte in enumerate(row if kind else ()):
        a, b, c = (row[i - step], above[i], above[i - step]) if i >= step else \
            (0, above[i], 0)
        guess = a if kind == 1 else (a + b) // 2 if kind == 3 else \
            min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
        row[i] = (byte + guess) & 255
    return row


SAID, gnuplot = [], figures.gnuplot


def listening(*words):
    """Runs gnuplot and keeps what it says."""
    SAID[:] = [gnuplot(*words)]
    return SAID[0]


figures.gnuplot = listening


def draw(study, name, **more):
    """Draws a figure, checks what all must have, and returns it."""
    paths = [pathlib.Path(p) for p in figures.draw(study, name, **more)]
    return checked(name, *paths)


def checked(name, svg, *pngs):
    figure = Drawn(svg)
    for png in pngs:
        wide, high = struct.unpack(">II", png.read_bytes()[16:24])
        assert abs(wide - 2 * figure.wide) < 2 and abs(high - 2 * figure.high) < 2, name
        assert png.stat().st_size > 5000, name
    assert not "".join(SAID).strip(), (name, SAID)  # gnuplot has no complaint
    assert not figure.loose, (name, figure.loose)
    for x, y, anchor, size, text in figure.texts:
        assert size >= 14, (name, "letters of", size)
        long = 0.66 * size * len(text)  # DejaVu Sans, more than its mean
        left = x - {"end": long, "middle": long / 2}.get(anchor, 0)
        right = x + {"start": long, "middle": long / 2}.get(anchor, 0)
        assert anchor == "turned" or left > -3 and right < figure.wide + 3, (name, text)
        assert 0 < y < figure.high, (name, text)
    for text, _, left, right, y in figure.keys:
        assert 0 <= left <= right <= figure.wide and 0 < y < figure.high, (name, text)
    note = [y for _, y, _, _, text in figure.texts if text.startswith("‡ over")]
    assert all(y > p.frame[3] + 30 for y in note for p in figure.panels), (name, note)
    DRAWN.add(name)
    return figure
