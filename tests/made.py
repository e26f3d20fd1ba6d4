"""Folders of runs that nobody trained, with numbers that a test chooses."""

import csv
import json
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP / "study"))
CONTEXT, BATCH, MIB = 32, 8, 1048576
WORKERS = ["#2b6cb0", "#f2b04c", "#222222", "#2ba58d", "#9a3412", "#888888"]
BACKENDS = dict(re.findall(r'BACKEND\("(\w+)".*?colour = "(#\w+)"', (
    TOP / "core/config/backends.def").read_text(), re.S))
PARTS = {"parameters": 10e6, "gradients": 11e6, "optimizer": 20e6, "buffers": 5e6,
         "activations": 15e6, "process": 12e6, "mapped": 3e6}
KINDS = {"data": .01, "forward": .25, "backward": .4, "update": .08, "exposed": .13,
         "wait": .07, "other": .06}


def write(path, rows):
    """A CSV file."""
    with open(path, "w", newline="", encoding="utf-8") as f:
        out = csv.DictWriter(f, rows[0], lineterminator="\n")
        out.writeheader()
        out.writerows(rows)


def run(folder, backend="ring", world=2, steps=20, step_us=50000, loss=None, net="",
        over=False, servers=0, beside=False, lags=(), kinds=None, asked=None, batch=BATCH,
        stages=1, sent=3e6, law=3.1e6, exchange_s=None, peak=80e6, restarts=0, verbs=None,
        law_verbs=None, samples=None, val=None, log=0):
    """One run. `loss` and `val` are functions of a step; `samples` a list of (second,
    rank, metric, value). `log` changes nothing, but cells of equal settings are one."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    verbs = verbs or {"all_reduce": sent}
    (folder / "run.json").write_text(json.dumps({
        "format": 2, "backend": backend, "world": world, "oversubscribed": over,
        "model": {"context": CONTEXT}, "asked": asked or {}, "revision": "1",
        "effective": {**(asked or {}), "batch": batch, "accum": 1, "log": log,
                      "net": net or "unshaped"},
        "way": {"servers": servers, "beside": beside, "apart": False, "every": 1,
                "promise": "", "parts": stages, "stages": stages, "slices": 1,
                "ignores": []},
        "training": {"lr": "0.001"}, "task": {"model": "nano"}, "mistakes": [],
        "law": {"bytes_tx": law, "by_verb": law_verbs or {"all_reduce": law},
                "exchange_s": exchange_s},
        "data": {"hash_xxh3": "1"}, "machine": {"host": "h", "cores": 2}}))
    (folder / "summary.json").write_text(json.dumps({
        "bytes_tx_per_worker_step": verbs, "peak_memory_bytes": peak,
        "predicted_memory": {f"{k}_bytes": v for k, v in PARTS.items()}}))
    loss = loss or (lambda s: 2 + 3 / s)
    write(folder / "steps.csv", [{
        "rank": rank, "step": s, "tokens": s * CONTEXT * batch * world,
        "time_s": s * step_us * 1.5e-6, "loss": loss(s) + (rank - (world - 1) / 2) / 50,
        "val_loss": val(s) if val and s % 5 == 0 else "", "t_step_us": step_us,
        "bytes_tx": sent, "restarts": int(0 < restarts <= s), "steps_lost": 0, "lost_s": 0,
        **({"lag": lags[s % len(lags)]} if lags else {})}
        for s in range(1, steps + 1) for rank in range(world)])
    write(folder / "breakdown.csv", [
        {"rank": rank, "kind": k, "seconds": share * steps * step_us * 1e-6}
        for rank in range(world) for k, share in (kinds or KINDS).items()])
    if samples is None:
        samples = usual_samples(world, servers)
    write(folder / "util.csv", [dict(zip(("t_s", "rank", "metric", "value"), s))
                                for s in samples] or [{"t_s": 0}])
    return folder


def usual_samples(world, servers):
    """The samples of a run's workers and servers."""
    return [(t / 2, rank, metric, value) for t in range(1, 13)
            for rank in [*map(str, range(world)), *(f"s{i}" for i in range(servers))]
            for metric, value in sampled(t, rank).items()]


def sampled(t, rank):
    """The usual samples of a rank."""
    if rank[0] == "s":
        return {"resident_bytes": (10 + t + int(rank[1:])) * MIB,
                "cpu_share": 0.2 + 0.1 * int(rank[1:])}
    return {"compute_share": 0.5 + 0.03 * t - 0.1 * int(rank), "cpu_share": 0.5,
            "resident_bytes": (30 + 2 * t + 5 * int(rank)) * MIB,
            "evaluate_share": 0.6 if t == 6 and rank == "0" else 0}


def rgb(text):
    """The numbers of "#010203"."""
    return tuple(bytes.fromhex(text[1:]))


def study(out, cells, repeat=1, about="", matrix=""):
    """An experiment's folder. `cells` are (name, words of run()) for named cells; with
    a matrix a function of a cell, its number and its repeat gives these words."""
    from lockstep.experiment import Cell, read_experiment
    out = pathlib.Path(out)
    out.mkdir(parents=True)
    named = cells if isinstance(cells, list) else []
    (out / "x.ini").write_text(
        f"[experiment]\ntitle = made\nrepeat = {repeat}\n{about}{matrix}" + "".join(
            f"[cell {name}]\nsync = {words.get('backend', 'ring')}\n"
            for name, words in named), encoding="utf-8")
    (out / "command.txt").write_text("x.ini\n")
    for i, (name, words) in enumerate(named):
        for k in range(1, repeat + 1):
            mine = {key: v[k - 1] if key == "step_us" and isinstance(v, tuple) else v
                    for key, v in words.items()}
            run(out / "cells" / Cell(name, []).folder / f"r{k}",
                asked={"sync": words.get("backend", "ring")}, log=i, **mine)
    if not named:
        for i, cell in enumerate(read_experiment(str(out / "x.ini")).cells):
            for k in range(1, repeat + 1):
                run(out / "cells" / cell.folder / f"r{k}", asked=cell.settings,
                    **cells(cell, i, k))
    return out


def median(values):
    v = sorted(values)
    return (v[(len(v) - 1) // 2] + v[len(v) // 2]) / 2


class Made:
    """A study of named cells, and what it must show."""

    def __init__(self, folder, cells, repeat, about=""):
        from lockstep.study import Study
        self.cells, self.repeat = cells, repeat
        self.study = Study(study(folder, cells, repeat, about))
        self.n = len(cells)

    def times(self, i):
        us = self.cells[i][1]["step_us"]
        return [u * 1e-6 for u in (us if isinstance(us, tuple) else (us,))]

    def world(self, i):
        return self.cells[i][1].get("world", 2)

    def rates(self, i):
        return [CONTEXT * BATCH * self.world(i) / t for t in self.times(i)]

    def colour(self, i):
        return rgb(BACKENDS[self.cells[i][1].get("backend", "ring")])

    def label(self, i, text=""):
        over = " ‡" * self.cells[i][1].get("over", False)
        return f"{self.cells[i][0]}{over}" + (f"  {text}" if text else "")

    def loss(self, i, step):
        return self.cells[i][1].get("loss", lambda s: 2 + 3 / s)(step)

    def smooth(self, i, step):
        last = range(max(1, step - 9), step + 1)
        return sum(self.loss(i, s) for s in last) / len(last)


def cells_of(n, repeat):
    """Cells of all backends; no two have the same numbers, and no range is even."""
    ways = list(BACKENDS)
    found = []
    for i in range(n):
        way, us = ways[i % len(ways)], 20000 + 9000 * ((5 * i) % 12)
        loss = (lambda a: lambda s: 2 + a / 20 + (3 - a / 20) / s)(i)
        found.append((f"cell{i}" + "+x" * (i % 2), {
            "backend": way, "world": 1 + i % 3, "over": i == 1, "loss": loss,
            "servers": 2 if way in ("sps", "dps") else 0, "sent": (1 + i) * MIB,
            "law": (1.4 + .9 * i) * MIB, "peak": (60 + 7 * i) * MIB,
            "lags": [0, 1, 1, 2 + i % 3], "val": lambda s: 4 - s / 50,
            "step_us": tuple(int(us * f) for f in (1, 1.11, .94)[:repeat])
            if repeat > 1 else us}))
    return found
