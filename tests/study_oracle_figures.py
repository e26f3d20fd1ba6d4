"""Checks figures/NAME.csv, which has all that a figure of a study draws: the bars
and ranges of measures, the parts of a step, and lines by step. A figure that was not
prepared is not checked; without gnuplot there is none.
"""

import csv
import pathlib
import re
import shutil

from study_oracle_lines import MORE
from study_oracle_runs import PARTS
from study_oracle_say import MIB
from study_oracle_tables import middle, plain, same

WAYS = pathlib.Path(__file__).parents[1] / "core/config/backends.def"
COLOURS = dict(re.findall(r'BACKEND\("(\w+)".*?colour = "(#\w+)"', WAYS.read_text(), re.S))

BARS = {"throughput": {"tokens_per_s": 1},
        "speedup": {"speedup": 1, "seconds_to_target": 1},
        "memory": {"peak_memory_bytes": 1 / MIB, "server_peak_memory_bytes": 1 / MIB},
        "bytes": {"bytes_tx_per_worker_step": 1 / MIB}}
LINES = {"loss_step": ("step", "loss", 1), "loss_tokens": ("tokens", "loss", 1e-6),
         "loss_seconds": ("train_s", "loss_smooth", 1)}


def drawn(study, name):
    """The rows of a figure; None if it was not prepared."""
    path = study.folder / "figures" / f"{name}.csv"
    if not path.exists():
        return None
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


def row_is(row, name, **want):
    for column, value in want.items():
        assert same(row[column], value), (name, column, value, row)


def bars_are(study, name, rows):
    for measure, scale in BARS[name].items():
        bars, ranges = ([r for r in rows if (r["name"], r["what"]) == (measure, what)]
                        for what in ("bar", "range"))
        cells = [c for c in study.filled if study.median(c, measure) is not None]
        assert [b["cell"] for b in bars] == [c.name for c in cells], (name, bars)
        for bar, cell in zip(bars, cells):
            value = study.median(cell, measure) * scale
            row_is(bar, name, least=0, most=value, value=value)
            assert abs(float(bar["place"]) - study.filled.index(cell)) < .5, bar
        wide = [(c, study.range(c, measure)) for c in cells]
        wide = [(c, r) for c, r in wide if r[1] is not None and r[1] < r[2]]
        ranges = [r for r in ranges if r["cell"] in {c.name for c, _ in wide}
                  or not same(r["least"], float(r["most"]))]
        if measure.startswith("server"):  # ranges are those of workers
            continue
        assert [r["cell"] for r in ranges] == [c.name for c, _ in wide], (name, ranges)
        for row, (_, (median, least, most)) in zip(ranges, wide):
            row_is(row, name, least=least * scale, most=most * scale,
                   value=median * scale)


def bytes_are(study, rows):
    """bytes: what goes to others of a replica follows what goes to other replicas; the
    law's mark is at the sum."""
    for cell in study.filled:
        mine = [r for r in rows if r["cell"] == cell.name]
        end = study.median(cell, "bytes_tx_per_worker_step") / MIB
        laws = [study.median(cell, "law_bytes_tx")]
        for of, name in (("stage", "to other stages"), ("slice", "to other slices"),
                         ("piece", "for other pieces")):
            size = study.median(cell, f"{of}_bytes_tx_per_worker_step")
            bars = [r for r in mine if r["name"] == name]
            assert len(bars) == (size is not None), (cell.name, bars)
            for bar in bars:
                row_is(bar, "bytes", least=end, most=end + size / MIB, value=size / MIB)
                end += size / MIB
                laws.append(study.median(cell, f"law_{of}_bytes_tx"))
        marks = [r for r in mine if r["what"] == "law"]
        assert len(marks) == (None not in laws), (cell.name, marks)
        for mark in marks:
            row_is(mark, "bytes", most=sum(laws) / MIB)


def parts_are(study, rows):
    """breakdown: each kind from the end of the one before, in ms of a step."""
    for cell in study.filled:
        step, end = study.median(cell, "step_s"), 0
        shares = {k: middle(cell, lambda r: r.share[k]) for k in cell.first.share}
        mine = [r for r in rows if r["cell"] == cell.name]
        assert {r["name"] for r in mine} == {k for k, v in shares.items() if v}, mine
        for row in mine:
            ms = 1e3 * step * shares[row["name"]]
            start = 0 if row["name"] == "gpu_comm" else end
            row_is(row, "breakdown", value=ms, least=start, most=start + ms)
            end = end if row["name"] == "gpu_comm" else end + ms


def lines_are(study, name, rows):
    x, y, unit = LINES[name]
    for cell in study.filled:
        mine = [r for r in rows if r["name"] == cell.name and r["what"] == "line"]
        points = [p for p in cell.first.curve
                  if not cell.first.pace and p[y] is not None]
        assert len(mine) == len(points), (name, cell.name, len(mine))
        for row, point in zip(mine, points):
            row_is(row, name, x=point[x] * unit, y=point[y])


def stack_is(name, cell, rows, values):
    """Parts of a bar, each from the end of the one before."""
    end = 0
    parts = {k: v * 1e-6 for k, v in values.items() if v}
    assert [r["name"] for r in rows] == list(parts), (name, cell.name, rows)
    for row, value in zip(rows, parts.values()):
        row_is(row, name, least=end, most=end + value, value=value)
        end += value


def memory_is(study, rows):
    """memory_parts: predicted parts and the measured peak, medians of the repeats."""
    for cell in study.filled:
        mine = [r for r in rows if r["cell"] == cell.name]
        stack_is("memory_parts", cell, [r for r in mine if r["what"] == "bar"], {
            p: middle(cell, lambda r: r.peak["predicted_memory"][f"{p}_bytes"])
            for p in PARTS})
        peak, = (r for r in mine if r["what"] == "law")
        row_is(peak, "memory_parts", most=study.median(cell, "peak_memory_bytes") * 1e-6)


def verbs_are(study, rows):
    """verbs: as counted, median of the repeats; below it the law."""
    names = ("reduce_scatter all_gather all_reduce reduce broadcast send push").split()
    for i, cell in enumerate(study.filled):
        mine = [r for r in rows if r["cell"] == cell.name]
        counted = [r for r in mine if float(r["place"]) < i]
        stack_is("verbs", cell, counted, {
            v: middle(cell, lambda r: r.sent.get(v, 0)) for v in names})
        stack_is("verbs, law", cell, [r for r in mine if r not in counted], {
            v: cell.first.law["by_verb"].get(v, 0) for v in names})


def sweep_is(study, rows):
    """A point for each cell, in its way's colour; a line is grey if ways differ."""
    points = [r for r in rows if r["what"] == "point"]
    assert len(points) == len(study.filled), (len(points), study.folder)
    of_line = {}
    for cell in study.filled:
        rate, way = study.median(cell, "tokens_per_s"), cell.first.json["backend"]
        point, = (r for r in points if same(r["y"], rate))
        assert point["colour"] == COLOURS[way], (point, way)
        of_line.setdefault(point["name"], set()).add(COLOURS[way])
        x = plain(study, cell)[-1]
        places = list(dict.fromkeys(plain(study, c)[-1] for c in study.filled))
        row_is(point, "sweep", x=float(x) if x.isdecimal() else places.index(x))
    for row in rows:
        if row["what"] in ("line", "range"):
            ways = of_line[row["name"]]
            want = ways.copy().pop() if len(ways) == 1 else "#888888"
            assert row["colour"] == want, row


def asked(study):
    """The figures that must be there."""
    names = study.about.get("figures", "none").split()
    return [n for n in names if n != "none" and shutil.which("gnuplot")]


def figures_are(study):
    for name in asked(study):
        assert drawn(study, name), f"figure {name} was not drawn"
    for name in BARS:
        if (rows := drawn(study, name)) is not None:
            bars_are(study, name, rows)
    if (rows := drawn(study, "breakdown")) is not None:
        parts_are(study, rows)
    for name, of in (("sweep", sweep_is), ("memory_parts", memory_is), ("verbs", verbs_are),
                     ("bytes", bytes_are), *MORE.items()):
        if (rows := drawn(study, name)) is not None:
            of(study, rows)
    for name in LINES:
        if (rows := drawn(study, name)) is not None:
            lines_are(study, name, rows)
