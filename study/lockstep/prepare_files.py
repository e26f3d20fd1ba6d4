"""Prepares the figures of files that are no study: sync_perf's sweep.txt, and what
lockstep simulate writes.

    law, size_sweep   sweep.txt
    scale             simulate.csv
    pipeline          timetable.csv; of a run its trace.json
"""

import collections
import json
import os
import re
import statistics

from .drawing import (Bar, Drawing, Line, backends, bars, colour_of, lines, linespoints,
                      point_of)
from .files import Error, number, read_csv, read_text, visible

LARGEST_TRACE = 256 << 20  # bytes


def _path(folder, name):
    path = os.path.join(folder, name)
    if not os.path.lexists(path):
        raise Error(f"{visible(folder)} has no {name}")
    return path


# ---- sweep.txt of sync_perf

def _sweep(folder):
    """{(backend, workers): [(bytes, time_us, busbw, law_us)]}"""
    found, rows = {}, None
    for line in read_text(_path(folder, "sweep.txt")).splitlines():
        if head := re.match(r"# (\w+), ([1-9]\d{0,3}) workers:", line):
            rows = found.setdefault((head[1], int(head[2])), [])
        elif rows is not None and not line.startswith("#"):
            cells = [number(c) for c in line.split()]
            if len(cells) > 8 and cells[0] and cells[3] and cells[7]:
                rows.append((cells[0], cells[3], cells[5], cells[7]))
    found = {key: rows for key, rows in found.items() if rows}
    if not found:
        raise Error(f"{visible(folder)}/sweep.txt has no rows of sync_perf")
    return found


def law(folder):
    """A bar for each backend and number of workers: its largest exchange."""
    found, largest, blocks = [], 0, _sweep(folder)
    for i, ((backend, workers), rows) in enumerate(blocks.items(), 1):
        size, time, _, by_law = max(rows)
        name = f"{backend}, {workers} workers"
        colour, largest = colour_of(backend), max(size, largest)
        found.append(Bar("bar", i, 0, time / 1000, colour, 0.3, cell=name))
        found.append(Bar("law", i, by_law / 1000, by_law / 1000, half=0.38, cell=name))
        found.append(Bar("text", i, 0, max(time, by_law) / 1000,
                         value=100 * (time / by_law - 1), cell=name))
    return bars(found, [backend for backend, _ in blocks], high=640,
                under=[f"{workers} workers" for _, workers in blocks],
                title=f"Exchange of {largest / 1e6:.0f} MB: measured (line: law; above: "
                "difference from the law)")


def size_sweep(folder):
    """A line for each backend and number of workers, and one for its law."""
    found = []
    for (backend, workers), rows in _sweep(folder).items():
        moved = 2 * (workers - 1) / workers  # of each byte, as busbw counts
        name, colour = f"{backend}, {workers} workers", colour_of(backend)
        points = [(size, busbw) for size, _, busbw, _ in rows if busbw]
        found += linespoints(points, colour, name, point=point_of(backend), size=1.1,
                             dash=2 if workers > 2 else 1)
        found.append(Line("line", [(size, size / us * 1e-3 * moved)
                                   for size, _, _, us in rows],
                          colour, f"{name}: law", width=1.5, dash=3))
    return lines(found)


# ---- simulate.csv of lockstep simulate

def scale(folder):
    """A line for each backend, in the order of the table of backends."""
    rows = collections.defaultdict(list)
    for row in read_csv(_path(folder, "simulate.csv")):
        numbers = [number(row.get(k)) for k in ("workers", "simulated_s", "law_s", "ratio")]
        if None not in numbers:
            rows[visible(row.get("backend", ""))].append(numbers)
    if not rows:
        raise Error(f"{visible(folder)}/simulate.csv has no rows of lockstep simulate")
    order = [b for b in backends() if b in rows] + sorted(set(rows) - set(backends()))
    top = max(r[0] for of in rows.values() for r in of)
    found = [Line("line", [(2, 1), (max(4, top), 1)], "#999999", "law", 2, 1.5, 2),
             Line("key", [], "#999999", "law", 2, 1.5, 2, point=-1)]
    for i, backend in enumerate(order):
        # The largest points first, so that equal points of several ways are all seen.
        style = {"point": point_of(backend), "width": 1.5,
                 "size": 2.6 - 1.5 * i / max(1, len(order) - 1)}
        colour, points = colour_of(backend), sorted(rows[backend])
        found += linespoints([(n, s) for n, s, _, _ in points], colour, backend, **style)[1:]
        found.append(Line("line", [(n, s) for n, _, s, _ in points], colour,
                          f"{backend}: law", width=1.5))
        found += linespoints([(n, r) for n, _, _, r in points], colour, backend, panel=2,
                             **style)
    return lines(found, 2, WIDE=1280, top=max(4, top))


# ---- a step of a pipeline

def _boxes(rows, row_name, schedules):
    """A panel for each schedule. `rows` are (schedule, stage, action, micro, chunk,
    begin, end), in ms."""
    stages, chunks = (1 + max(r[i] for r in rows) for i in (1, 4))
    last = max(r[6] for r in rows)
    colours = {("forward", 0): "#c2dcf0", ("forward", 1): "#c7e9cf",
               ("backward", 0): "#235a97", ("backward", 1): "#2f7d55"}
    boxes = [{"panel": 1 + schedules.index(s), row_name: stage, "begin_ms": begin,
              "end_ms": end, "micro": micro, "chunk": chunk,
              # a short box does not show its number
              "shown": end - begin >= 0.016 * last, "colour": colours[action, chunk % 2],
              "letters": "#222222" if action == "forward" else "#ffffff",
              "action": action, "schedule": s}
             for s, stage, action, micro, chunk, begin, end in rows]
    kinds = [k for k in colours if chunks > 1 or not k[1]]
    ends = [max(r[6] for r in rows if r[0] == s) for s in schedules]
    return Drawing(boxes, {
        "panels": len(schedules), "row": row_name, "stages": stages, "last": last,
        "title": [f"{s}: {round(end, 2):g} ms" for s, end in zip(schedules, ends)],
        "keys": len(kinds), "key_colour": [colours[k] for k in kinds],
        "key": [a + f", {'odd' if odd else 'even'} chunk" * (chunks > 1) for a, odd in kinds],
        "WIDE": 1200, "chunks": chunks,
        "HIGH": 90 + len(schedules) * (80 + 38 * (max(4, stages) if chunks > 1
                                                  else stages))})


def pipeline(folder):
    """The schedules of lockstep simulate pipeline=.."""
    rows = []
    for row in read_csv(_path(folder, "timetable.csv")):
        stage, micro, chunk, begin, end = (number(row.get(k)) for k in (
            "stage", "micro", "chunk", "begin_ms", "end_ms"))
        if None not in (stage, micro, chunk, begin, end) and \
                row.get("action") in ("forward", "backward") and \
                0 <= stage < 4096 and 0 <= chunk < 4096:
            rows.append((visible(row.get("schedule")), int(stage), row["action"],
                         int(micro), int(chunk), begin, end))
    if not rows:
        raise Error(f"{visible(folder)}/timetable.csv has no forward and no backward")
    schedules = list(dict.fromkeys(r[0] for r in rows))
    if len(schedules) > 16:
        raise Error(f"{visible(folder)}/timetable.csv has {len(schedules)} schedules")
    return _boxes(rows, "stage", schedules)


FIGURES = {"law": law, "size_sweep": size_sweep, "scale": scale, "pipeline": pipeline}


def pipeline_of(study, step=None):
    """A step of the first run with stages, with a row for each rank. Without `step` it
    is the middle one of those that its trace.json has."""
    run = next((r for r in study.runs if (r.number("way.stages") or 1) > 1), None)
    if run is None:
        if os.path.lexists(os.path.join(study.out, "timetable.csv")):
            return pipeline(study.out)
        raise Error("no run has stages; try: mesh=pp2")
    spans = _spans(_path(run.folder, "trace.json"))
    steps = {}  # of each rank: its number -> (begin, end)
    for s in spans:
        if s["name"] == "step" and "step" in s["args"]:
            steps.setdefault(s["args"]["step"], {})[s["pid"]] = (s["ts"], s["ts"] + s["dur"])
    if not steps:
        raise Error("trace.json has no step; try: trace=on")
    if step is None:
        step = statistics.median_low(steps)
    if step not in steps:
        raise Error(f"trace.json has no step {visible(step)}; it has {min(steps):.0f} .. "
                    f"{max(steps):.0f}")
    of, zero = steps[step], min(begin for begin, _ in steps[step].values())
    rows, taken, name = [], collections.Counter(), f"step {step:.0f}"
    if len(study.runs) > 1:
        name += f" of {run.cell.short}, repeat {run.repeat}"
    for s in sorted(spans, key=lambda s: s["ts"]):
        begin, end = of.get(s["pid"], (0, -1))
        if s["name"] in ("forward", "backward") and "micro" in s["args"] and \
                begin <= s["ts"] < end:
            key = s["pid"], s["name"], int(s["args"]["micro"])
            rows.append([name, *key, taken[key], (s["ts"] - zero) / 1000,
                         (s["ts"] + s["dur"] - zero) / 1000])
            taken[key] += 1
    if not rows:
        raise Error(f"step {step:.0f} of trace.json has no forward of a micro-batch")
    # A rank with several chunks computes a micro-batch once for each; backward begins
    # with the last chunk.
    top = max(r[4] for r in rows)
    for row in rows:
        row[4] = row[4] if row[2] == "forward" else top - row[4]
    return _boxes(rows, "rank", [rows[0][0]])


def _spans(path):
    """The spans of a trace with their numbers."""
    try:
        events = json.loads(read_text(path, LARGEST_TRACE))
    except (ValueError, RecursionError):
        raise Error(f"{visible(path)}: not JSON") from None
    events = events.get("traceEvents") if isinstance(events, dict) else events
    found = []
    for e in events if isinstance(events, list) else []:
        args = e.get("args") if isinstance(e, dict) else None
        numbers = [number(e.get(k)) for k in ("pid", "ts", "dur")] \
            if isinstance(e, dict) else [None]
        if None not in numbers and 0 <= numbers[0] < 4096:
            args = {k: v for k, v in args.items() if isinstance(v, (int, float))
                    and abs(v) < 1 << 53} if isinstance(args, dict) else {}
            found.append({"name": e.get("name"), "pid": int(numbers[0]),
                          "ts": numbers[1], "dur": numbers[2], "args": args})
    return found
