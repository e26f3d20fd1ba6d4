"""Checks figures/NAME.csv, which has all that a figure of a study draws: the bars
and ranges of measures, the parts of a step, and lines by step. A figure that was not
prepared is not checked; without gnuplot there is none.
"""

import csv
import shutil

from study_oracle_tables import MIB, middle, same

BARS = {"throughput": {"tokens_per_s": 1},
        "speedup": {"speedup": 1, "seconds_to_target": 1},
        "memory": {"peak_memory_bytes": 1 / MIB, "server_peak_memory_bytes": 1 / MIB},
        "bytes": {"bytes_tx_per_worker_step": 1 / MIB}}
LINES = {"loss_step": ("step", "loss"), "loss_seconds": ("train_s", "loss_smooth")}


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
    x, y = LINES[name]
    for cell in study.filled:
        mine = [r for r in rows if r["name"] == cell.name and r["what"] == "line"]
        points = [p for p in cell.first.curve if not cell.first.pace]
        assert len(mine) == len(points), (name, cell.name, len(mine))
        for row, point in zip(mine, points):
            row_is(row, name, x=point[x], y=point[y])


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
    for name in LINES:
        if (rows := drawn(study, name)) is not None:
            lines_are(study, name, rows)
