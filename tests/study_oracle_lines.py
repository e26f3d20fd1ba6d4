"""Checks more figures/NAME.csv: scaling, heatmap, bandwidth, loss_apart, and what
workers and servers did.
"""

import collections
import re

from study_oracle_runs import bounds, mean, read_csv
from study_oracle_say import MIB
from study_oracle_tables import middle, plain, same


def lines_of(rows, what="line"):
    """{(panel, name): [(x, y)]}"""
    found = collections.defaultdict(list)
    for r in rows:
        if r["what"] == what:
            found[r["panel"], r["name"]].append((r["x"], r["y"]))
    return found


def points_are(found, want, where):
    assert len(found) == len(want), (where, found, want)
    for have, point in zip(found, want):
        assert all(map(same, have, point)), (where, have, point)


def scaling_is(study, rows):
    """Each way over the run of one worker that has its batch, or as much a worker. The
    cells differ in way, batch and workers alone."""
    rate = {c: study.median(c, "tokens_per_s") for c in study.filled}
    want, batches = collections.defaultdict(dict), set()
    alone = [c for c in study.filled if c.first.world == 1]
    for base in alone:
        for c in study.filled:
            for panel, batch in (("1", base.first.batch),
                                 ("2", base.first.batch * c.first.world)):
                if c.first.world > 1 and c.first.batch == batch:
                    key = panel, c.first.json["backend"], base.first.batch
                    want[key][c.first.world] = rate[c] / rate[base]
                    batches.add(base.first.batch)
    several = len({b.first.batch for b in alone}) > 1
    found = lines_of(rows)
    for panel in "12":
        assert len(found.pop((panel, "ideal"))) == 2
    assert len(found) == len(want), (found, want)
    for (panel, way, batch), points in want.items():
        (name, line), = ((n, v) for (p, n), v in found.items() if p == panel and re.search(
            rf"\b{way}\b", n) and (not several or n.endswith(f", batch {batch}")))
        points_are(line, [(1, 1), *sorted(points.items())], (panel, name))


def heatmap_is(study, rows):
    """A field for each cell, in the column and row of its values."""
    cells = [c for c in study.filled if study.median(c, "tokens_per_s") is not None]
    assert len(rows) == len(cells), rows
    values = {c: plain(study, c) for c in cells}
    xs, ys = (list(dict.fromkeys(v[k] for v in values.values())) for k in (-1, -2))
    for row, c in zip(rows, cells):
        assert (row["x"], row["y"]) == (values[c][-1], values[c][-2]), (row, values[c])
        for column, value in (("column", xs.index(row["x"])), ("row", ys.index(row["y"])),
                              ("tokens_per_s", study.median(c, "tokens_per_s"))):
            assert same(row[column], value), (row, column, value)


def bandwidth_is(study, rows):
    """By the rate of the links: a step; of several workers, how long it is held up, and
    the law."""
    found = lines_of(rows)
    ways = dict.fromkeys(c.first.json["backend"] for c in study.filled)

    def points(way, *measures):
        got = {}
        for c in study.filled:
            number, unit = re.fullmatch(r"([\d.]+)([mg])bit", c.first.net).groups()
            values = [study.median(c, m) for m in measures]
            if c.first.json["world"] == 1 and measures != ["step_s"]:
                continue
            if c.first.json["backend"] == way and None not in values and sum(values) > 0:
                got[float(number) / (1000 if unit == "m" else 1)] = 1e3 * sum(values)
        return sorted(got.items())
    for way in ways:
        for panel, law, measures in (
                ("1", False, ["step_s"]), ("2", True, ["law_exchange_s"]),
                ("2", False, ["exposed_s_per_step", "wait_s_per_step"])):
            lines = [v for (p, n), v in found.items() if p == panel and way in n
                     and n.endswith(": law") == law]
            want = points(way, *measures)
            assert len(lines) == bool(want), (way, panel, lines)
            if want:
                points_are(lines[0], want, (way, panel))


def apart_is(study, rows):
    """The greatest relative difference so far from the baseline's loss."""
    found, left = lines_of(rows), []
    for c in study.filled:
        base = study.baseline(c)
        if base is None or not base.runs:
            continue
        mine, its = ({p["step"]: p["loss"] for p in x.first.curve} for x in (c, base))
        points, most = [], 0
        for step in mine:
            if its.get(step):
                most = max(most, abs(mine[step] / its[step] - 1))
                points += [(step, most)] if most else []
        if points:
            points_are(found["1", c.name], points, c.name)
            left.append(("1", c.name))
    assert sorted(found) == sorted(left), (list(found), left)


def util_bars_are(study, rows):
    bars = [r for r in rows if r["what"] == "bar" and r["name"] != "gpu_comm"]
    want = [(c.name, f"worker {w}", middle(c, lambda r: r.util[w]))
            for c in study.filled for w in range(c.first.world)]
    want = [w for w in want if w[2] is not None]
    assert [(b["cell"], b["name"]) for b in bars] == [w[:2] for w in want], bars
    for bar, (*_, value) in zip(bars, want):
        assert same(bar["most"], 100 * value), (bar, value)


def staleness_is(study, rows):
    """Shares of the steps of all repeats."""
    for c in study.filled:
        lags = collections.Counter(int(float(r["lag"])) for run in c.runs.values()
                                   for r in read_csv(run.folder / "steps.csv"))
        mine = [r for r in rows if r["cell"] == c.name]
        assert [r["name"] for r in mine] == [f"lag {lag}" for lag in sorted(lags)], mine
        for row, lag in zip(mine, sorted(lags)):
            assert same(row["most"], 100 * lags[lag] / sum(lags.values())), row


def samples(run, metric):
    found = collections.defaultdict(list)
    for r in read_csv(run.folder / "util.csv"):
        if r["metric"] == metric:
            found[r["rank"]].append((float(r["t_s"]), float(r["value"])))
    return found


def server_load_is(study, rows):
    """Medians and ranges of the repeats' means."""
    for c in study.filled:
        loads = collections.defaultdict(list)
        for run in c.runs.values():
            for rank, values in samples(run, "cpu_share").items():
                if rank.startswith("s"):
                    loads[rank].append(100 * mean(v for _, v in values))
        bars = [r for r in rows if (r["cell"], r["what"]) == (c.name, "bar")]
        assert [b["name"] for b in bars] == sorted(loads), (bars, loads)
        for bar in bars:
            median, least, most = bounds(loads[bar["name"]])
            assert same(bar["most"], median), (bar, median)
            ranges = [r for r in rows if r["what"] == "range" and
                      (r["cell"], r["name"]) == (c.name, bar["name"])]
            assert len(ranges) == (least < most), ranges
            for r in ranges:
                assert same(r["least"], least) and same(r["most"], most), r


def timelines_are(study, rows, metric, unit):
    """Each worker and server of the first repeat."""
    found, panel = lines_of(rows), 0
    for c in study.filled:
        of = samples(c.first, metric)
        panel += bool(of)
        for rank, points in of.items():
            if unit > 1 and rank.startswith("s"):
                continue  # utilisation is of workers
            who = f"{'server' if rank[0] == 's' else 'worker'} {rank.lstrip('s')}: {metric}"
            points_are(found.pop((str(panel), who)), [(t, unit * v) for t, v in points],
                       (c.name, who))
    assert not [name for _, name in found if name.endswith(metric)], found


MORE = {"scaling": scaling_is, "heatmap": heatmap_is, "bandwidth": bandwidth_is,
        "loss_apart": apart_is, "util_bars": util_bars_are, "staleness": staleness_is,
        "server_load": server_load_is,
        "util_timeline": lambda s, rows: timelines_are(s, rows, "compute_share", 100),
        "memory_timeline": lambda s, rows: timelines_are(s, rows, "resident_bytes", 1 / MIB)}
