"""Prepares the figures of lines, and heatmap: a function for each, as in prepare.py."""

import collections
import itertools
import re

from .drawing import (FIRST, GREY, MARKS, NOTE, Drawing, Line, beside_key, colour_of, crowded,
                      figure, lines, linespoints, names, point_of, short, tic, tics, width,
                      worker_colour)
from .files import Error, number
from .measures import MIB
from .runs import SMOOTH, mean
from .same import difference, differences
from .study import short_names, with_way
from .tables import sweep_table


# ---- lines

def _styles(kinds):
    """A (colour, dash) for each line of these backends: the backend's colour, or a
    colour for each line if many have the same backend."""
    nth, seen = [], collections.Counter()
    for backend in kinds:
        seen[backend] += 1
        nth.append(seen[backend])
    if max(nth, default=0) > 4 or len(nth) > 1 and len(seen) == 1:
        return [(worker_colour(i), 1 + i // 6) for i in range(len(nth))]
    return [(colour_of(b), n) for b, n in zip(kinds, nth)]


def _cell_lines(study, cells, points_of, **about):
    """A line for each cell: the points (x, y) of its first repeat."""
    found, n = [], len(cells)
    styles = _styles([study.first(c).backend for c in cells])
    marks, note = crowded(study, cells)
    for i, (cell, label, mark, (colour, dash)) in enumerate(
            zip(cells, names(cells), marks, styles)):
        points = points_of(cell)
        # Later lines are thinner, so that equal lines are all seen; with many lines
        # each one has a few points.
        style = {"width": 1.5 + 3.5 * (n - 1 - i) / (n - 1) if n > 1 else 2,
                 "point": MARKS[i % len(MARKS)], "size": 1.0 if n > 6 else 0}
        found.append(Line("line", points, colour, cell.shown, dash=dash, **style))
        found.append(Line("key", [], colour, label + mark, dash=dash, **style))
        if n > 6:
            each = max(1, len(points) // 6)
            first = each * (i + 1) // (n + 1)
            found.append(Line("point", points[first::each], colour, cell.shown,
                              **style | {"width": 1.5}))
        reached = study.first(cell)["seconds_to_target"]
        if "target" in about and reached is not None:
            found.append(Line("point", [(reached, study.target)], colour, cell.shown,
                              width=1, size=1.6))
    key = max(width(name) for name in names(cells)) if n > 8 else 0
    note = "; ".join(filter(None, (note, FIRST * study.repeats)))
    return lines(found, high=beside_key(n * (n > 8)), note=note, right=n > 8,
                 WIDE=1120 + max(0, key - 200), **about)


def _curves(study, x, y, scale=1.0, **about):
    """A line for each cell that has this curve."""
    def points(cell):
        return [(getattr(p, x) * scale, getattr(p, y)) for p in study.first(cell).curve
                if getattr(p, y) is not None and getattr(p, x) is not None]
    cells = [c for c in study.filled
             if any(getattr(p, y) is not None for p in study.first(c).curve)]
    if not cells:
        raise Error(f"no run has {f'{SMOOTH} ' * (y == 'smooth')}steps with a loss")
    return _cell_lines(study, cells, points, **about)


@figure
def loss_apart(study):
    def losses(cell):
        return {p.step: p.loss for p in study.first(cell).curve if p.loss is not None}

    def points(cell):
        base, curve = losses(study.baseline(cell)), losses(cell)
        steps = [s for s in curve if base.get(s)]
        most = itertools.accumulate((abs(curve[s] / base[s] - 1) for s in steps), max)
        return [(s, y) for s, y in zip(steps, most) if y]
    cells = [c for c in study.filled if study.baseline(c) in study.filled and points(c)]
    if not cells:
        raise Error("no cell has other losses than its baseline; try: baseline=")
    return _cell_lines(study, cells, points)


@figure
def loss_step(study):
    return _curves(study, "step", "loss")


@figure
def loss_tokens(study):
    return _curves(study, "tokens", "loss", 1e-6)


@figure
def loss_seconds(study):
    title = "Training loss by seconds, mean of ten steps"
    if study.target is None:
        return _curves(study, "train_s", "smooth", title=title)
    return _curves(study, "train_s", "smooth", target=study.target,
                   title=f"{title} (points: loss {study.target:.2f} reached)")


@figure
def loss(study):
    if len(study.cells) > 1 or not study.runs:
        raise Error("shows one run; try: figure=loss_step, or lockstep report RUN figure=loss")
    curve = study.runs[0].curve
    points = [(p.step, p.loss) for p in curve if p.loss is not None]
    if not points:
        raise Error("the run has no steps with a loss")
    held = [(p.step, p.val_loss) for p in curve if p.val_loss is not None]
    again, before = [], 0
    for p in curve:
        if p.restarts and p.restarts > before:
            again.append(p.step)
            before = p.restarts
    return lines([Line("line", points, "#a9c9e6", "training, each step", width=1),
                  Line("point", held, "#c2410c", "validation", size=1)],
                 smooth=len(points) > 3, again=again or [0], agains=len(again))


@figure
def loss_seeds(study):
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    kinds = {}
    for cell in study.filled:
        words = cell.shown.split(" ")
        net = next((w for w in words if w.startswith("net=")), "")
        name = " ".join(w for w in words if not w.startswith(("seed=", "net="))) or \
            study.first(cell).backend
        for p in study.first(cell).curve:
            if p.val_loss is not None:
                found[net, name][p.step].append((p.train_s, p.val_loss))
                kinds[name] = study.first(cell).backend
    if not found:
        raise Error("no run has a validation loss")
    nets, shared = list(dict.fromkeys(net for net, _ in found)), \
        len(set(kinds.values())) < len(kinds)
    drawn = []
    for (net, name), steps in found.items():
        i = list(kinds).index(name)
        points = [(mean(t for t, _ in v), mean(y for _, y in v), min(y for _, y in v),
                   max(y for _, y in v)) for _, v in sorted(steps.items())]
        style = {"panel": nets.index(net) + 1, "width": 2.5, "dash": 1 + i // 6,
                 "point": MARKS[(i + i // 6) % 6], "size": 0.9}
        colour = worker_colour(i) if shared else colour_of(kinds[name])
        drawn += [Line("band", points, colour, name, panel=style["panel"]),
                  *linespoints(points, colour, name, **style)]
    note = "; ".join(filter(None, (crowded(study, study.filled)[1], FIRST * study.repeats)))
    return lines(drawn, len(nets), 90 + max(470, 28 * len(kinds)) * len(nets), note, right=len(kinds) > 6,
                 net=[f", {short(net)}" if net else "" for net in nets])


@figure
def sweep(study):
    rows = list(sweep_table(study))
    if not rows:
        raise Error("the experiment has no [matrix], or no finished run")
    series = collections.defaultdict(list)
    for row in rows:
        name = [row["series"]] * bool(row["series"]) + \
            [f"{row['y_key']}={row['y']}"] * bool(row["y_key"])
        if row["tokens_per_s"] is not None:
            series[" ".join(name)].append(row)
    places = list(dict.fromkeys(r["x"] for r in rows))
    numeric = all(number(x) is not None for x in places)
    found, nth = [], collections.Counter()
    for i, (name, of_name) in enumerate(series.items()):
        points = [(number(r["x"]) if numeric else places.index(r["x"]), r["tokens_per_s"],
                   r["tokens_per_s_least"], r["tokens_per_s_most"]) for r in of_name]
        # a line of several ways is grey, its points have their ways' colours
        ways = [colour_of(r["backend"]) for r in of_name]
        colour = ways[0] if len(set(ways)) == 1 else GREY
        nth[colour] += 1
        style = {"dash": nth[colour], "point": MARKS[i % len(MARKS)]}
        found += [Line(what, points if what != "key" else [], colour,
                       name if what != "key" else short(name), **style)
                  for what in ("line", "range", "key")]
        for way in dict.fromkeys(ways):
            found.append(Line("point", [p for p, w in zip(points, ways) if w == way], way,
                              name, point=style["point"]))
    return lines(found, right=True, high=beside_key(len(series)),
                 n=0 if numeric else len(places), x_key=rows[0]["x_key"],
                 label=tics(map(short, places)))


@figure
def heatmap(study):
    rows = [r for r in sweep_table(study) if r["tokens_per_s"] is not None]
    if not rows:
        raise Error("the experiment has no [matrix], or no finished run")
    if not rows[0]["y_key"]:  # one key: the named cells are the rows
        rows = [{**r, "y": r["series"], "series": ""} for r in rows]
    xs, ys, panels = (list(dict.fromkeys(r[k] for r in rows)) for k in ("x", "y", "series"))
    fields = [{"panel": panels.index(r["series"]) + 1, "column": xs.index(r["x"]),
               "row": ys.index(r["y"]), "tokens_per_s": r["tokens_per_s"], "x": r["x"],
               "y": r["y"], "series": r["series"]} for r in rows]
    across = 1 if len(panels) == 1 else 2
    values = [f["tokens_per_s"] for f in fields]
    return Drawing(fields, {
        "across": across, "panels": len(panels), "x_key": rows[0]["x_key"],
        "y_key": rows[0]["y_key"], "columns": len(xs), "rows": len(ys),
        "x_label": tics(map(short, xs)), "y_label": tics(map(short, ys)),
        "WIDE": 1280 if across > 1 else 960, "least": min(values), "most": max(values),
        "HIGH": 100 + 440 * -(-len(panels) // across),
        "title": [f"{short(s)}: " if s else "" for s in panels]})


@figure
def bandwidth(study):
    groups, note = collections.defaultdict(list), crowded(study, study.filled)[1]
    for name, cell in zip(names(study.filled), study.filled):
        rate = re.fullmatch(r"([0-9.]+)([mg])bit", study.first(cell).net)
        if rate and number(rate[1]):
            words = [w for w in name.split(" ") if not w.startswith("net=")]
            groups[" ".join(words) or study.first(cell).backend].append(
                (float(rate[1]) / (1000 if rate[2] == "m" else 1), cell))
    if not groups:
        raise Error("no run has emulated links; try: net=1gbit")
    found, styles = [], _styles([study.first(g[0][1]).backend for g in groups.values()])
    for i, (name, group) in enumerate(groups.items()):
        group.sort(key=lambda rc: rc[0])
        style = {"width": 2, "point": point_of(study.first(group[0][1]).backend),
                 "dash": styles[i][1]}

        def ms(*measures, group=group):
            values = [(r, [study.range(c, m).median for m in measures]) for r, c in group]
            return [(r, 1e3 * sum(v)) for r, v in values if None not in v and sum(v) > 0]
        found += linespoints(ms("step_s"), styles[i][0], name, **style)[:2]
        # One worker alone exchanges nothing. The key, in panel 2, has it too.
        held = ms("exposed_s_per_step", "wait_s_per_step") \
            if study.first(group[0][1]).world > 1 else []
        found += linespoints(held, styles[i][0], name, panel=2, **style)
        found.append(Line("line", ms("law_exchange_s"), styles[i][0], f"{name}: law", 2,
                          8 - 6 * (i + 1) / len(groups), 3))
    if not any(li.panel == 2 and li.points for li in found):
        raise Error("no run has breakdown.csv with the times of all workers")
    return lines(found, 2, beside_key(len(groups)), note, True, WIDE=1280)


# What may differ between the points of a line: what is scaled, and what changes no time
# of a step. The run of one worker, with which a line is compared, has no links either.
SCALED = set("""sync workers servers batch accum global_batch steps epochs warmup lr min_lr
lr_scale base_batch seed out eval eval_batches save save_async keep log samples trace
restarts timeout""".split())
ALONE = {"net", "mesh"}


def _without(run, keys):
    """What a run was asked for, without some keys and without its replicas."""
    found = {k: v for k, v in sorted(run.asked.items()) if k not in keys}
    if "mesh" in found:
        found["mesh"] = re.sub(r"dp\d+,?", "", str(found["mesh"]))
    return found


def _base_of(study, cells, alone):
    """{global batch: the cell of one worker that computes as these cells do}"""
    run, found = study.first(cells[0]), {}
    for base in alone:
        one = study.first(base)
        ignored = SCALED.union(ALONE, one.names("way.ignores"), run.names("way.ignores"))
        same = not difference(_without(run, ignored), _without(one, ignored)) and \
            not differences(run, one, "task")
        old = found.get(one.global_batch)
        if same and (old is None or one.backend == run.backend != study.first(old).backend):
            found[one.global_batch] = base
    return found


@figure
def scaling(study):
    cells = [c for c in study.filled if study.range(c, "tokens_per_s").median]
    alone = [c for c in cells if study.first(c).world == 1]
    if not alone:
        raise Error("no run has one worker")
    groups = collections.defaultdict(list)  # all that is one line
    for c in cells:
        run = study.first(c)
        if run.world > 1:
            groups[run.backend, run.net, str(_without(run, SCALED))].append(c)
    drawn, lost = [], []  # (name, backend, panel, points)
    shared = [" ".join(w for w in of[0].shown.split(" ") if all(
        w in c.shown.split(" ") for c in of)) for of in groups.values()]
    for (way, *_), name, of in zip(groups, short_names(shared), groups.values()):
        bases, left = _base_of(study, of, alone), set(of)
        name = with_way(name, way)
        for (batch, base), p in itertools.product(bases.items(), (1, 2)):
            points = [(1, 1.0)]
            for c in of:
                run = study.first(c)
                if run.global_batch == batch * (1 if p == 1 else run.world):
                    points.append((run.world, study.ratio(c, base, "tokens_per_s").median))
                    left.discard(c)
            if len(points) > 1:
                more = f", batch {batch}" * (len(bases) > 1)
                drawn.append((name + more, way, p, sorted(points)))
        lost += [c.short for c in of if c in left]
    if not drawn:
        raise Error("no run of one worker has the settings, or the batch, of a run of "
                    "several")
    top = max(study.workers, 2)
    crowd = [study.first(c).world for c in cells if study.first(c).oversubscribed]
    found = [Line(what, [(0.8, 0.8), (top + 0.3, top + 0.3)][:2 * (what == "line")], "#999999",
                  "ideal", panel=p, width=1.5, dash=2, point=-1)
             for p in (1, 2) for what in ("line", "key")]
    names_ = dict.fromkeys((name, way) for name, way, _, _ in drawn)
    styles = dict(zip(names_, _styles([way for _, way in names_])))
    for name, way, p, points in drawn:
        colour, dash = styles[name, way]
        found += linespoints(points, colour, name, panel=p, size=1.3, dash=dash,
                             point=point_of(way))
    notes = [NOTE] * bool(crowd)
    if lost:
        notes.append(f"no run of one worker is like {short(lost[0], 24)}"
                     + f" and {len(lost) - 1} more" * (len(lost) > 1))
    return lines(found, 2, WIDE=1280, top=top, tic=max(1, tic(top, 12)),
                 crowd=min(crowd, default=0), note="; ".join(notes))


# ---- lines by time

def _samples(run, metrics, servers):
    """{rank: {metric: [(second, value)]}} of util.csv, workers before servers."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in run.rows("util"):
        rank, metric = row.get("rank", ""), row.get("metric")
        if metric in metrics and re.fullmatch("s?[0-9]{1,4}" if servers else "[0-9]{1,4}",
                                              rank):
            at, value = number(row.get("t_s")), number(row.get("value"))
            if at is not None and value is not None:
                found[rank][metric].append((at, value))
    return {r: found[r] for r in sorted(found, key=_order)}


def _order(rank):
    return rank[0] == "s", int(rank.lstrip("s"))


MOST_LINES = 12  # of a panel


def _timeline(study, metrics, unit, servers=False, beside="", grey="", **about):
    """A panel for each cell with a line for each worker: the first of `metrics` that it
    has. `beside` is a thin line, `grey` the impulses of worker 0."""
    runs = []
    for name, cell in zip(names(study.filled), study.filled):
        samples = _samples(study.first(cell), (*metrics, beside, grey), servers)
        if any(m in of for of in samples.values() for m in metrics):
            runs.append((name, samples))
    if not runs:
        raise Error(f"no run has samples of {' or '.join(metrics)} in its util.csv")
    every = (len(runs) + 15) // 16
    found, keys, top, last = [], {}, 0.0, 0.0
    for p, (_, samples) in enumerate(runs[::every], 1):
        for t, value in samples.get("0", {}).get(grey, []):
            found.append(Line("impulse", [(t, unit * value)], "#dddddd", grey, p, 4))
        for rank in list(samples)[:MOST_LINES]:
            server, at = rank[0] == "s", int(rank.lstrip("s"))
            colour = worker_colour(at + 3 * server)
            dash = 1 + server + 3 * (at // 6 % 2)  # there are six colours
            name = f"{'server' if server else 'worker'} {at}"
            metric = next((m for m in metrics if m in samples[rank]), None)
            for m in filter(None, (metric, beside * (beside in samples[rank]))):
                points = [(t, unit * v) for t, v in samples[rank][m]]
                last = max(last, *(t for t, _ in points))
                top = max(top, *(v for _, v in points))
                if m == metric or any(v > 0 for _, v in points):
                    found.append(Line("line", points, colour, f"{name}: {m}", p,
                                      dash=3 if m == beside else dash))
            if metric:
                keys[rank] = Line("key", [], colour, name, width=2.5, dash=dash, point=-1)
    found = _joined(found)
    keys = [keys[r] for r in sorted(keys, key=_order)]
    if any(beside and li.name.endswith(beside) for li in found):
        keys.append(Line("key", [], "#555555", "its GPU in collectives", width=1.5, dash=3,
                         point=-1))
    shown = runs[::every]
    across = 2 if len(shown) > 6 else 1
    wide = 1280 if across > 1 else 1120
    each_key = max(width(li.name) for li in keys) + 60
    key_rows = -(-len(keys) // max(1, int(0.95 * wide / each_key)))
    down = -(-len(shown) // across)
    left = [FIRST] * study.repeats
    if every > 1:
        left.append({2: "every second cell", 3: "every third cell"}.get(
            every, f"every {every}th cell"))
    if (n := max(len(samples) for _, samples in shown)) > MOST_LINES:
        left.append(f"{MOST_LINES} of {n} workers and servers")
    return lines(found + keys, len(shown), across=across, down=down, last=last or 1,
                 top=top, tic=tic(top, 3), name_of=[name for name, _ in shown],
                 WIDE=wide, key_rows=key_rows,
                 high=(190 + 145 * down if len(shown) > 1 else 560) + 24 * (key_rows - 1),
                 left="".join(f"; {text}" for text in left), **about)


def _joined(found):
    """The impulses of a panel as one line."""
    joined, rest = {}, []
    for li in found:
        if li.what != "impulse":
            rest.append(li)
        elif li.panel in joined:
            joined[li.panel].points += li.points
        else:
            joined[li.panel] = li
    return [*joined.values(), *rest]


@figure
def util_timeline(study):
    return _timeline(study, ("gpu_compute_share", "compute_share"), 100,
                     beside="gpu_comm_share", grey="evaluate_share")


@figure
def memory_timeline(study):
    return _timeline(study, ("resident_bytes",), 1 / MIB, servers=True)


@figure
def gpu_timeline(study):
    metrics = (("gpu_util_share", 100, "GPU-Util (%)"),
               ("gpu_memory_bytes", 1 / MIB, "memory (MiB)"),
               ("gpu_power_w", 1, "power (W)"), ("gpu_clock_mhz", 1, "SM clock (MHz)"))
    for run in study.runs:
        samples = _samples(run, [m for m, _, _ in metrics], False)
        if any("gpu_util_share" in of for of in samples.values()):
            break
    else:
        raise Error("no run has samples of a GPU")
    found, tics = [], []
    last = max(t for of in samples.values() for v in of.values() for t, _ in v)
    metrics = [m for m in metrics if any(m[0] in of for of in samples.values())]
    for p, (metric, unit, _) in enumerate(metrics, 1):
        top = 0.0
        for rank in samples:
            colour, i = worker_colour(int(rank)), int(rank)
            points = [(t, unit * v) for t, v in samples[rank].get(metric, [])]
            top = max([top, *(v for _, v in points)])
            style = {"panel": p, "width": 5 - i if i < 4 else 1.5, "point": -1,
                     "dash": 1 + i // 6}
            found.append(Line("line", points, colour, f"worker {rank}: {metric}", **style))
            if p == 1:
                found.append(Line("key", [], colour, f"worker {rank}", **style))
        tics.append(50 if p == 1 else tic(top, 3))
    return lines(found, len(metrics), 100 + 200 * len(metrics), last=last or 1, tic=tics,
                 right=True, axis=[axis for _, _, axis in metrics],
                 of=f", {short(run.cell.shown)}, repeat {run.repeat}" * (len(study.runs) > 1))
