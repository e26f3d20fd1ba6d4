"""Prepares the figures of a study, here those of bars: a function for each, which
returns a Drawing. Its name is that of the script that draws it, plots/NAME.gp.

To add a figure, write a function here and a script there. A script without a function
draws the rows of runs.csv (`own`).
"""

import collections
import re

from .drawing import (KINDS, Bar, Drawing, backends, bars, beside_key, colour_of, crowded,
                      figure, names, point_of, tic, width, worker_colour)
from .files import Error, number
from .measures import MIB
from .runs import PARTS, mean
from .study import range_of
from .tables import runs_table

PART_COLOURS = ("#235a97", "#6ba6d6", "#f2b04c", "#c2410c", "#2ba58d", "#c8c8c8", "#ececec")
VERB_COLOURS = {  # as counted, and by the law
    "reduce_scatter": ("#235a97", "#9bb3cf"), "all_gather": ("#6ba6d6", "#c4dcee"),
    "all_reduce": ("#f2b04c", "#f9dba6"), "reduce": ("#c2410c", "#e3a487"),
    "broadcast": ("#e0e0e0", "#f0f0f0"), "send": ("#2ba58d", "#99d3c6"),
    "push": ("#45257a", "#b1a5c9")}
SERVER = "#c9c9c9"
SENT = ((("bytes_tx_per_worker_step", "law_bytes_tx"), None),  # and within a replica
        (("stage_bytes_tx_per_worker_step", "law_stage_bytes_tx"),
         ("#6ba6d6", "to other stages")),
        (("slice_bytes_tx_per_worker_step", "law_slice_bytes_tx"),
         ("#c2410c", "to other slices")),
        (("piece_bytes_tx_per_worker_step", "law_piece_bytes_tx"),
         ("#b1a5c9", "for other pieces")))


def own(study):
    """The rows of runs.csv, with the colour and point of each run's backend."""
    rows = [{**row, "colour": colour_of(row["backend"]), "point": point_of(row["backend"])}
            for row in runs_table(study)]
    # gnuplot knows no quote within a quoted cell
    rows = [{k: v.replace('"', "'") if isinstance(v, str) else v for k, v in row.items()}
            for row in rows]
    about = {f"colour_{b}": colour for b, (colour, _) in backends().items()}
    about["note"] = crowded(study, study.filled)[1]
    return Drawing(rows, about | {f"point_{b}": point for b, (_, point) in
                                  backends().items()})


def _scaled(study, cell, measure, scale):
    """Median, least and most in another unit; None if the cell has no such measure."""
    r = study.range(cell, measure)
    return None if r.median is None else (
        r.median * scale, r.least * scale, r.most * scale)


def _measured(study, cells, measure, scale=1.0, panel=1, shift=0.0, half=0.36, grey=""):
    """A bar for each cell up to the median, with a range if it ran more than once."""
    found = []
    for row, cell in enumerate(cells):
        if not (values := _scaled(study, cell, measure, scale)):
            continue
        median, least, most = values
        colour = grey or colour_of(study.first(cell).backend)
        place = {"place": row + shift, "cell": cell.shown, "name": measure, "panel": panel}
        found.append(Bar("bar", least=0, most=median, colour=colour, half=half, **place))
        if most > least and not grey:
            found.append(Bar("range", least=least, most=most, value=median, **place))
    return found


def _labels(study, cells, measure, form, scale=1.0, named=True):
    """"ring ‡  2.31": the name of each cell and its median."""
    marks = crowded(study, cells)[0] if named else [""] * len(cells)
    found = []
    for name, mark, cell in zip(names(cells) if named else marks, marks, cells):
        values = _scaled(study, cell, measure, scale)
        text = f"{values[0]:{form}}" if values else "-"
        found.append(f"{name}{mark}  {text}" if named else text)
    return found


# ---- bars

@figure
def throughput(study):
    cells = study.filled
    found = _measured(study, cells, "tokens_per_s")
    for row, cell in enumerate(cells):
        for rate in filter(None, study.values(cell, "tokens_per_s")):
            found.append(Bar("repeat", row, rate, rate, cell=cell.shown,
                             name="tokens_per_s"))
    return bars(found, _labels(study, cells, "tokens_per_s", ".0f"),
                note=crowded(study, cells)[1])


@figure
def speedup(study):
    cells, panels = study.filled, []
    if any(study.range(c, "speedup").median for c in cells):
        panels.append(("speedup", "Speed-up: tokens/s over the baseline's", "speed-up", ".2f"))
    if any(study.range(c, "seconds_to_target").median is not None for c in cells):
        panels.append(("seconds_to_target", f"Seconds to loss {study.target:.2f}",
                       "seconds of training steps", ".3g"))
    if not panels:
        raise Error("no run has a speed-up or the seconds to a loss; try: baseline=CELL or "
                    "target_loss=auto in [experiment]")
    found, labels, tics = [], [], []
    for p, (measure, _, _, form) in enumerate(panels, 1):
        found += _measured(study, cells, measure, panel=p)
        labels += _labels(study, cells, measure, form, named=p == 1)
        tics.append(tic(max(b.most for b in found if b.panel == p)))
    return bars(found, labels, panels=len(panels), title=[t for _, t, _, _ in panels],
                axis=[a for _, _, a, _ in panels], tic=tics, note=crowded(study, cells)[1],
                line=[m == "speedup" for m, _, _, _ in panels])


@figure
def memory(study):
    cells = study.filled
    found = _measured(study, cells, "peak_memory_bytes", 1 / MIB, shift=-0.17, half=0.16)
    if not found:
        raise Error("no run has its peak of memory, which summary.json and util.csv have")
    servers = _measured(study, cells, "server_peak_memory_bytes", 1 / MIB, shift=0.17,
                        half=0.16, grey=SERVER)
    return bars(found + servers, _labels(study, cells, "peak_memory_bytes", ".0f", 1 / MIB),
                [("#777777", "worker (colour: backend)")] +
                [(SERVER, "server")] * bool(servers), note=crowded(study, cells)[1],
                right=True)


@figure
def bytes(study):  # pylint: disable=redefined-builtin
    cells = study.filled
    found = _measured(study, cells, "bytes_tx_per_worker_step", 1 / MIB, shift=-0.17,
                      half=0.16)
    if not found:
        raise Error("no run has steps with the bytes that it sent")
    servers = _measured(study, cells, "bytes_rx_per_server_step", 1 / MIB, shift=0.17,
                        half=0.16, grey=SERVER)
    keys, laws = {}, []
    for row, cell in enumerate(cells):
        sent = [[key, *(_scaled(study, cell, m, 1 / MIB) for m in measures)]
                for measures, key in SENT if study.range(cell, measures[0]).n]
        end = 0.0
        for key, (size, *_), _ in sent:
            if key:
                keys[key] = True
                found.append(Bar("bar", row - 0.17, end, end + size, key[0], 0.16, size,
                                 key[1], cell.shown))
            end += size
        if sent and all(law for _, _, law in sent):
            law = sum(law[0] for _, _, law in sent)
            laws.append(Bar("law", row - 0.17, law, law, half=0.2, cell=cell.shown,
                            name="law"))
    return bars(found + servers + laws, names(cells),
                [("#777777", "worker (colour: backend)"), *keys] +
                [(SERVER, "server, received")] * bool(servers),
                law="law for a worker", right=True)


def _stack(parts, row, cell, **more):
    """Bars one behind the other; `parts` are (name, colour, length)."""
    found, end = [], 0.0
    for name, colour, length in parts:
        if length:
            found.append(Bar("bar", row, end, end + length, colour, value=length, name=name,
                             cell=cell.shown, **more))
            end += length
    return found


@figure
def breakdown(study):
    cells, found = study.filled, []
    kinds = [k for k in KINDS if k != "gpu_comm"]
    for row, cell in enumerate(cells):
        step = study.range(cell, "step_s").median
        if step is None or study.share(cell, "forward") is None:
            continue
        ms = {k: 1e3 * step * (study.share(cell, k) or 0) for k in KINDS}
        found += _stack([(k, KINDS[k][0], ms[k]) for k in kinds], row, cell)
        found += _stack([("gpu_comm", KINDS["gpu_comm"][0], ms["gpu_comm"])], row + 0.42,
                        cell, half=0.05)
    if not found:
        raise Error("no run has breakdown.csv with the times of all workers")
    used = {b.name for b in found}
    marks, note = crowded(study, cells)
    return bars(found, [name + mark for name, mark in zip(names(cells), marks)],
                [KINDS[k] for k in KINDS if k in used], note=note, right=True)


@figure
def memory_parts(study):
    cells, found = study.filled, []
    for row, cell in enumerate(cells):
        parts = [(part, colour, 1e-6 * (study.part_bytes(cell, part) or 0))
                 for part, colour in zip(PARTS, PART_COLOURS)]
        found += _stack(parts, row, cell, half=0.3)
        if values := _scaled(study, cell, "peak_memory_bytes", 1e-6):
            found.append(Bar("law", row, values[0], values[0], half=0.42, cell=cell.shown,
                             name="measured peak"))
    if not any(b.what == "bar" for b in found):
        raise Error("no run has predicted_memory in its summary.json")
    titles = {"optimizer": "optimiser", "mapped": "mapped, of others"}
    used = {b.name for b in found}
    return bars(found, names(cells), [(colour, titles.get(part, part)) for part, colour in
                                      zip(PARTS, PART_COLOURS) if part in used],
                law="measured peak", right=True)


@figure
def verbs(study):
    cells, found = study.filled, []
    for row, cell in enumerate(cells):
        law = study.first(cell).get("law.by_verb")
        law = law if isinstance(law, dict) else {}
        found += _stack([(v, VERB_COLOURS[v][0], 1e-6 * study.sent(cell, v))
                         for v in VERB_COLOURS], row - 0.17, cell, half=0.16)
        found += _stack([(v, VERB_COLOURS[v][1], 1e-6 * (number(law.get(v)) or 0))
                         for v in VERB_COLOURS], row + 0.17, cell, half=0.16)
    if not any(study.sent(c, v) for c in cells for v in VERB_COLOURS):
        raise Error("no run has bytes_tx_per_worker_step in its summary.json, or sent any")
    used = {b.name for b in found}
    keys = [(colour, v) for v, (colour, _) in VERB_COLOURS.items() if v in used]
    return bars(found, names(cells), keys, right=True)


def server_loads(run):
    """{rank: the samples of its processor time} of each server."""
    loads = collections.defaultdict(list)
    for row in run.rows("util"):
        value = number(row.get("value"))
        if re.fullmatch("s[0-9]{1,4}", row.get("rank", "")) and \
                row.get("metric") == "cpu_share" and value is not None:
            loads[row["rank"]].append(value)
    return loads


@figure
def server_load(study):
    found, labels = [], []
    for name, cell in zip(names(study.filled), study.filled):
        loads = collections.defaultdict(list)  # of a server: a mean for each repeat
        for run in study.of(cell):
            for rank, values in server_loads(run).items():
                loads[rank].append(100 * mean(values))
        for rank in sorted(loads, key=lambda r: int(r[1:])):
            load = range_of(loads[rank])
            at = {"place": len(labels), "name": rank, "cell": cell.shown}
            found.append(Bar("bar", least=0, most=load.median,
                             colour=colour_of(study.first(cell).backend), **at))
            if load.wide:
                found.append(Bar("range", least=load.least, most=load.most,
                                 value=load.median, **at))
            labels.append(f"{name} {rank}  {load.median:.0f}%")
    if not found:
        raise Error("no run had a server")
    return bars(found, labels)


# ---- columns: bars that stand

@figure
def util_bars(study):
    cells, found, workers = study.filled, [], study.workers
    many, wide = workers > 12, 0.8 / max(1, workers)  # many: points without names
    for i, cell in enumerate(cells, 1):
        for w in range(study.first(cell).world):
            share, comm = (study.worker_share(cell, w, k) for k in (None, "gpu_comm"))
            if share is None:
                continue
            at = {"place": i - 0.4 + (w + 0.5) * wide, "cell": cell.shown,
                  "name": f"worker {w}"}
            colour, percent = worker_colour(0 if many else w), 100 * share
            found.append(Bar("repeat" if many else "bar", least=0, most=percent,
                             colour=colour, half=0.46 * wide, **at))
            if workers * len(cells) <= 36:
                found.append(Bar("text", least=0, most=percent, **at))
            if comm is not None and not many:
                found.append(Bar("bar", at["place"] + 0.28 * wide, 0, 100 * comm,
                                 KINDS["gpu_comm"][0], 0.1 * wide, name="gpu_comm",
                                 cell=cell.shown))
    if not found:
        raise Error("no run has breakdown.csv with the times of its workers")
    gpu = any(b.name == "gpu_comm" for b in found)
    keys = [] if many else [(worker_colour(w), f"worker {w}") for w in range(workers)]
    marks, note = crowded(study, cells)
    labels = [name + mark for name, mark in zip(names(cells), marks)]
    longest = max(map(width, labels))
    text = max((width(f"{b.most:.0f}") + 4 for b in found if b.what == "text"), default=0)
    room = (len(cells) + 0.2) * text / wide + 0.91 * longest + 150  # no texts overlap
    return bars(found, labels, keys + [KINDS["gpu_comm"]] * gpu, note=note,
                high=500 + max(140, 0.45 * longest),
                WIDE=max(1280, 42 * len(cells) + longest, room if text else 0),
                title="Worker utilisation: share of the time in which its GPU computes"
                if study.has("gpu_util_share") or gpu else
                "Worker utilisation: share of the time in forward, backward and update")


@figure
def staleness(study):
    lags_of = {c: [lag for r in study.of(c) for lag in r.column("lag")] for c in study.filled}
    cells = [c for c, lags in lags_of.items() if lags]
    if not cells:
        raise Error("no run has the column lag in its steps.csv")
    shades = ("#1a1a1a", "#9a3412", "#2b6cb0", "#2ba58d", "#f2b04c", "#b9a3d6")
    found, keys, wide = [], [], 0.85 / len(cells)
    for i, (name, cell) in enumerate(zip(names(cells), cells)):
        lags = collections.Counter(lags_of[cell])
        keys.append((shades[i % len(shades)], name))
        for lag, n in sorted(lags.items()):
            found.append(Bar("bar", lag - 0.425 + (i + 0.5) * wide, 0,
                             100 * n / lags.total(), keys[-1][0], 0.475 * wide,
                             name=f"lag {lag:.0f}", cell=cell.shown))
    return bars(found, [], keys, WIDE=1120, high=beside_key(len(keys)), right=True,
                last=max(max(lags_of[c]) for c in cells))
