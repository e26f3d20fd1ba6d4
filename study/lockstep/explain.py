"""Plays one step of each of several runs on one clock: a page, and an animated SVG.

A panel shows a run. It has the step's events in trace.json, the bytes in steps.csv,
and the bytes that the law predicts.

    worker 0   [forward|backward    |   |update]     computing
                    [send|receive|add|              communication
                    ====hidden====~~exposed~~

In the SVG a clip path becomes wider and uncovers all runs at the same speed. It is
animated with SMIL, which also works inside an <img>. A viewer without animation
shows the whole picture.
"""

import html
import json
import os
import sys

from .drawing import colour_of
from .files import Error, number, open_regular, read_text, visible, whole, write_text
from .measures import bytes_tx
from .places import share
from .runs import Run

MOST_RUNS = 12
LINE, LARGEST = 64 << 10, 1 << 30  # bytes of a line of trace.json, and of all of it

LEAD = ("Each bar is a span of time that a thread recorded while it trained. "
        "Communication is hidden where the worker computes at the same time, and exposed "
        "where it does not.")

# ---- the trace: one event a line (core/telemetry/trace.h)


def _event(line):
    """The object that is a whole line; None for any other line."""
    text = line.strip().removesuffix(b",")
    if not text.startswith(b'{"ph"'):
        return None
    try:
        return json.loads(text, parse_constant=lambda _: 1 / 0)
    except (ValueError, RecursionError, ZeroDivisionError):
        return None


def _events(folder):
    """The events of a run's trace."""
    path = os.path.join(folder, "trace.json")
    if not os.path.lexists(path):
        raise Error(f"{visible(path)}: no such file; try: a run with trace=on")
    with open_regular(path) as f:
        if os.fstat(f.fileno()).st_size > LARGEST:
            raise Error(f"{visible(path)}: more than {LARGEST} bytes")
        count = 0
        while line := f.readline(LINE):
            count += 1
            if len(line) == LINE and not line.endswith(b"\n"):
                raise Error(f"{visible(path)}: line {count} is not text of less than "
                            f"{LINE} bytes")
            if event := _event(line):
                yield event


def _time(event):
    """(begin, end) of a span in microseconds; None if the event is no span."""
    begin, length = number(event.get("ts")), number(event.get("dur"))
    return None if event.get("ph") != "X" or begin is None or length is None \
        else (begin, begin + length)


# ---- a panel


class Panel:
    """A run, and the step to show."""

    def __init__(self, folder, step):
        self.folder, self.run = folder, Run(folder)
        self.step, self.begin, self.end = self._choose(step)
        self.events = [e for e in _events(folder) if self._shows(e)]

    def _choose(self, asked):
        """(step, begin, end): from the first worker's begin to the last one's end. If
        workers do not wait for each other, it is worker 0's time."""
        path = visible(os.path.join(self.folder, "trace.json"))
        steps = []
        for event in _events(self.folder):
            args, span = event.get("args"), _time(event)
            if event.get("name") == "step" and span and isinstance(args, dict):
                steps.append((event.get("pid"), args.get("step"), *span))
        first = sorted((end - begin, step) for rank, step, begin, end in steps
                       if rank == 0 and isinstance(step, int))
        if not asked and not first:
            raise Error(f"{path}: no steps of worker 0")
        chosen = asked or first[len(first) // 2][1]
        apart = self.run.setting("consistency") not in ("", "bsp")
        spans = [(begin, end) for rank, step, begin, end in steps
                 if step == chosen and (rank == 0 or not apart)]
        if not spans:
            raise Error(f"{path} has no step {chosen}; try: without step=")
        return chosen, min(b for b, _ in spans), max(e for _, e in spans)

    def _shows(self, event):
        span = _time(event)
        return event["ph"] == "M" or \
            bool(span and span[0] < self.end and span[1] > self.begin)

    @property
    def name(self):
        """As "ring over tcp, 2 workers"."""
        run, transport = self.run, self.run.text("transport")
        promise, shard = run.setting("consistency"), run.setting("shard")
        name = run.backend
        ignored = run.get("way.ignores")  # a list; not in old files
        if isinstance(ignored, list) and "shard" not in ignored and shard:
            name += f" shard={shard}"
        if run.world > 1 and transport not in ("", "none"):
            name += f" over {transport}"
        if promise not in ("", "bsp"):
            name += f" {promise}"
        return f"{name}, {run.world} worker{'s' * (run.world > 1)}"

    @property
    def milliseconds(self):
        """The length of the step."""
        return (self.end - self.begin) * 1e-3

    def _totals(self):
        """{rank: bytes out and in} that steps.csv has for this step."""
        found = {}
        for row in self.run.rows("steps"):
            rank, out, into = (number(row.get(key))
                               for key in ("rank", "bytes_tx", "bytes_rx"))
            if number(row.get("step")) == self.step and None not in (rank, out, into):
                found[str(int(rank))] = {"out": int(out), "in": int(into)}
        return found

    def data(self):
        """The panel for core/virtual/page.html (explain/tell.c)."""
        run, law = self.run, self.run.number("law.bytes_tx")
        crowded = " with more workers than cores" if run.oversubscribed else ""
        panel = {"name": self.name, "colour": colour_of(run.backend),
                 "note": f"{self.folder}, step {self.step}: {self.milliseconds:.2f} ms, "
                         f"measured{crowded}.",
                 "step": self.step, "begin_us": round(self.begin, 3),
                 "end_us": round(self.end, 3),
                 "total": self._totals(), "trace": {"traceEvents": self.events}}
        # With every= the law gives the mean of all steps. No single step has it.
        if law and run.get("way.apart") is not True:
            panel["law"] = {str(rank): {"out": round(law), "in": round(law)}
                            for rank in range(run.world)}
        return panel


def _page(panels):
    data = json.dumps({"title": "One step, on one clock", "lead": [LEAD],
                       "panels": [panel.data() for panel in panels]})
    template = read_text(share("core/virtual/page.html"), follow=True)
    return template.replace("{{DATA}}", data.replace("<", "\\u003c"))


# ---- the picture

WIDTH, LEFT, ROW, SHADE, HEAD = 860, 76, 11, 4, 24  # LEFT: where the time axis begins
PLAY_S, REST_S = 9, 3  # it plays, stands still, and begins again
KINDS = {"forward": "#4f86c6", "backward": "#2b5c9e", "update": "#7e57c2",
         "send": "#e39b30", "receive": "#c9752b", "add": "#8f5a2a", "gather": "#d9d9d9"}
COMPUTING = ("forward", "backward", "update")
WAITS = "gather"  # for weights, within forward or backward: that is not computing
SHADES = {"hidden": "#2ba58d", "exposed": "#c02f1d"}


def _rect(begin, end, y, height, colour):
    return (f"<rect x='{LEFT + begin:.1f}' y='{y}' width='{max(end - begin, .4):.1f}' "
            f"height='{height}' fill='{colour}'/>")


def _bars(panel, scale):
    """{rank: [(begin, end, kind)]} in pixels, in order."""
    bars = {rank: [] for rank in range(panel.run.world)}
    for event in panel.events:
        span, rank, kind = _time(event), event.get("pid"), event.get("name")
        if span and kind in KINDS and rank in bars:
            begin, end = (min(max(t, panel.begin), panel.end) - panel.begin for t in span)
            bars[rank].append((begin / scale, end / scale, kind))
    return {rank: sorted(of_rank) for rank, of_rank in bars.items()}


def _joined(bars):
    """Bars of one kind that are less than a third of a pixel apart become one."""
    joined = []
    for begin, end, kind in bars:
        if joined and joined[-1][2] == kind and begin - joined[-1][1] < .34:
            begin, last, _ = joined.pop()
            end = max(end, last)
        joined.append((begin, end, kind))
    return joined


def _shades(bars, y):
    """Marks the time in which a worker communicates: hidden where it computes at the
    same time, else exposed."""
    drawn, state, since = [], None, 0
    for x in range(WIDTH - LEFT + 1):
        now = {kind for begin, end, kind in bars
               if begin <= x + .5 <= end and x < WIDTH - LEFT}
        computes = now & set(COMPUTING) and WAITS not in now
        shade = None if not now - {*COMPUTING, WAITS} else \
            "hidden" if computes else "exposed"
        if shade != state:
            if state:
                drawn.append(_rect(since, x, y, SHADE, SHADES[state]))
            since, state = x, shade
    return drawn


def _lanes(bars, y):
    """Computing, communication, and which of it is hidden."""
    moving = [bar for bar in bars if bar[2] not in (*COMPUTING, WAITS)]
    rows = ((y, _joined(bar for bar in bars if bar[2] in COMPUTING)),
            (y, [bar for bar in bars if bar[2] == WAITS]), (y + ROW + 1, _joined(moving)))
    return [_rect(begin, end, top, ROW, KINDS[kind])
            for top, of_row in rows for begin, end, kind in of_row] + \
        _shades(bars, y + 2 * ROW + 2)


def _height(world):
    return 2 * ROW + SHADE + 8 if world > 1 else ROW + 6


def _drawn_panel(panel, scale, y):
    run = panel.run
    sent = bytes_tx(run)
    each = f", each worker sends {sent * 1e-6:.2f} MB" if sent else ""
    yield (f"<text x='0' y='{y + 17}' font-weight='bold' fill='{colour_of(run.backend)}'>"
           f"{html.escape(panel.name)}</text><text x='{WIDTH}' y='{y + 17}' "
           f"text-anchor='end' fill='#555'>{panel.milliseconds:.2f} ms{each}</text>\n")
    for rank, bars in _bars(panel, scale).items():
        top = y + HEAD + rank * _height(run.world)
        yield f"<text x='0' y='{top + 11}' fill='#555'>worker {rank}</text>"
        yield f"<g clip-path='url(#played)'>{''.join(_lanes(bars, top))}</g>\n"


def _legend(y):
    for i, (name, colour) in enumerate({**KINDS, **SHADES}.items()):
        x = LEFT + i * 86
        yield (f"<rect x='{x}' y='{y + 8}' width='10' height='10' fill='{colour}'/>"
               f"<text x='{x + 15}' y='{y + 17}' fill='#555'>{name}</text>")


def _animate(attribute, begin, end):
    play = PLAY_S / (PLAY_S + REST_S)
    return (f"<animate attributeName='{attribute}' values='{begin};{end};{end}' "
            f"keyTimes='0;{play:.2f};1' dur='{PLAY_S + REST_S}s' "
            "repeatCount='indefinite'/>")


def _svg(panels):
    scale = max(panel.end - panel.begin for panel in panels) / (WIDTH - LEFT)
    ends = [HEAD + panel.run.world * _height(panel.run.world) for panel in panels]
    height = sum(ends) + 40
    drawn = [f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='-10 -6 {WIDTH + 20} "
             f"{height}' font-family='sans-serif' font-size='12'>\n"
             "<title>One step of each run, on one clock</title>\n"
             "<rect x='-10' y='-6' width='100%' height='100%' rx='8' fill='#fff'/>\n"
             f"<clipPath id='played'><rect x='{LEFT}' y='0' width='{WIDTH - LEFT}' "
             f"height='{height}'>{_animate('width', 0, WIDTH - LEFT)}</rect>"
             "</clipPath>\n"]
    for i, panel in enumerate(panels):
        drawn.extend(_drawn_panel(panel, scale, sum(ends[:i])))
    drawn.extend(_legend(sum(ends)))
    drawn.append(f"\n<rect x='{WIDTH}' y='0' width='1' height='{sum(ends)}' "
                 f"fill='#c02f1d'>{_animate('x', LEFT, WIDTH)}</rect>\n</svg>\n")
    return "".join(drawn)


# ---- the command


def _is_run(word):
    return os.path.lexists(os.path.join(word, "run.json"))


def explain(folders, out, svg, step):
    """Writes the page, and the picture if `svg` names a file. Returns their paths."""
    if len(folders) > MOST_RUNS:
        raise Error(f"explain: {len(folders)} runs; try: at most {MOST_RUNS}")
    for folder in folders:
        if "=" in folder and not _is_run(folder):
            raise Error(f"explain: unknown key {visible(folder)}; try: step=, out= or "
                        "svg=")
        if not _is_run(folder):
            raise Error(f"explain: {visible(folder)} has no run.json; try: the folder of "
                        "a run")
    if step and not whole(step, 1, 1 << 30):
        raise Error(f"step={visible(step)}: must be a number of a step")
    out = out or "explain.html"
    if svg and os.path.realpath(out) == os.path.realpath(svg):
        raise Error(f"explain: svg={visible(svg)} is the page, too; try: another svg=")
    panels = [Panel(folder, whole(step, 1, 1 << 30)) for folder in folders]
    paths = {out: _page, **({svg: _svg} if svg else {})}
    for path in paths:
        if os.path.exists(path) and not os.path.isfile(path):  # also through a link
            raise Error(f"{visible(path)}: not a regular file; try: the name of a file")
    for path, text in paths.items():
        old = os.path.lexists(path)
        write_text(path, text(panels))
        if old:
            print(f"{visible(path)}: replacing the existing file", file=sys.stderr)
    return list(paths)
