"""Reads the CSV files of a folder of experiments/results/, and computes what a column
of a table says about a row. tests/results.py uses it. It shares no code with the
package that wrote the files.
"""

import csv
import functools
import re

from results_to_loss import ToLoss

XEON = " on the Xeon"
MIB = 1 / 1048576


def runs(*columns, scale=1.0):
    """A measure of each run: the sum of columns of runs.csv."""
    return "runs.csv", columns, scale


def cells(name, *columns, scale=1.0):
    """A measure of a cell: the sum of columns of another file."""
    return name, columns, scale


HEADS = {
    "tokens/s": runs("tokens_per_s"),
    "step, ms": runs("step_s", scale=1e3),
    "seconds": runs("seconds"),
    "loss": runs("train_loss_nats"),
    "validation loss": runs("best_val_loss_nats"),
    "total, %": runs("utilisation_total", scale=100),
    "utilisation, %": runs("utilisation_mean", scale=100),
    "held up, ms": runs("exposed_s_per_step", "wait_s_per_step", scale=1e3),
    "law, ms": runs("law_exchange_s", scale=1e3),
    "waiting for slices, ms": runs("join_s_per_step", scale=1e3),
    "waiting for pieces, ms": runs("join_s_per_step", scale=1e3),
    "MB sent": runs("bytes_tx_per_worker_step", scale=1e-6),
    "MB to stages": runs("stage_bytes_tx_per_worker_step", scale=1e-6),
    "MB to slices": runs("slice_bytes_tx_per_worker_step", scale=1e-6),
    "MB to pieces": runs("piece_bytes_tx_per_worker_step", scale=1e-6),
    "MB by law": runs("law_bytes_tx", scale=1e-6),
    "lag": runs("lag_mean"),
    "tokens trained": runs("tokens"),
    "steps lost": runs("steps_lost"),
    "seconds lost": runs("seconds_lost"),
    "worker, MiB": runs("peak_memory_bytes", scale=MIB),
    "server, MiB": runs("server_peak_memory_bytes", scale=MIB),
    "worker, MB": runs("peak_memory_bytes", scale=1e-6),
    "server, MB": runs("server_peak_memory_bytes", scale=1e-6),
    "bubble, %": runs("bubble_share", scale=100),
    "bubble by the schedule, %": runs("law_bubble_share", scale=100),
    "bubble by the timetable, %": runs("timetable_bubble_share", scale=100),
    "predicted, MB": cells("memory.csv", "parameters_bytes", "gradients_bytes",
                           "optimizer_bytes", "buffers_bytes", "activations_bytes",
                           "process_bytes", scale=1e-6),
    "activations, MB": cells("memory.csv", "activations_bytes", scale=1e-6),
    "saving, s": cells("saves.csv", "saving_s"),
    "whole command, s": cells("commands.csv", "whole_s"),
    "step by law, ms": cells("predict.csv", "step_s", scale=1e3),
    "bubble by law, %": cells("predict.csv", "bubble_percent"),
    "memory by law, MB": cells("predict.csv", "memory_mb"),
    "dp, MB": cells("predict.csv", "dp_mb"),
    "pp, MB": cells("predict.csv", "pp_mb"),
    "tp, MB": cells("predict.csv", "tp_mb"),
    "gradients, MB": cells("predict.csv", "mb"),
    "computing, ms": cells("predict.csv", "compute_s", scale=1e3),
    "exchange, ms": cells("predict.csv", "simulated_s", scale=1e3),
    "efficiency, nothing hidden": cells("predict.csv", "efficiency_bare"),
    "efficiency, hidden behind backward": cells("predict.csv", "efficiency_hidden"),
    "noise scale": runs("noise_scale"),
    "of ideal by law, %": cells("predict.csv", "law_share", scale=100),
    "of ideal by scores, %": cells("predict.csv", "counted_share", scale=100),
    "of the zigzag by time, %": cells("predict.csv", "timed_share", scale=100),
}
SPEEDUP = "speed-up"
TARGET = re.compile(r"(to|tokens to) (\d+\.\d+)(?:, s)?$")
WORKER = re.compile(r"u(\d+), %$")
VALIDATION = re.compile(r"loss at (\d+)$")  # the validation loss at a step
SECONDS = re.compile(r"s to step (\d+)$")  # the time of all steps until then
REACHED = re.compile(r"s to loss (\d+\.\d+)$")  # to a validation loss
APART = "losses apart"  # of the first 20 steps, relative, from those of the base
APART_ALL = "losses apart, all steps"  # the same of all steps, as the figure shows it
STEPS = 20


class Wrong(Exception):
    """A table cannot be computed; the text says why."""


def median(values):
    v = sorted(values)
    return (v[(len(v) - 1) // 2] + v[len(v) // 2]) / 2


def number(row, column):
    if column not in row:
        raise Wrong(f"no column {column}")
    return float(row[column]) if row[column] != "" else None


class Results:
    """The CSV files of a folder, and one table's way to read them."""

    def __init__(self, folder, over, pooled):
        self.folder, self.over, self.pooled = folder, over, pooled
        self.used = set()
        is_run = (folder / "runs.csv").exists()
        self.runs = self.read("runs.csv" if is_run else "predict.csv")

    def read(self, name):
        path = self.folder / name
        if not path.exists():
            raise Wrong(f"{self.folder.name} has no {name}")
        self.used.add(name)
        with open(path, newline="", encoding="utf-8") as f:
            return list(csv.DictReader(f))

    @functools.cached_property
    def to_loss(self):
        return ToLoss(self.read)

    def is_key(self, head):
        return head == "sync" or (head in self.runs[0] and head not in HEADS)

    def of(self, keys, rows=None):
        """The rows with these settings. `cell` may leave out a cell's settings, if no
        cell has this whole name."""
        of = self.runs if rows is None else rows
        more = "" if any(r["cell"] == keys.get("cell") for r in of if "cell" in r) \
            else r"(?: \w+=\S+)*"

        def agrees(row):
            return all(
                re.fullmatch(re.escape(value) + more, row["cell"])
                if key == "cell" else row["backend" if key == "sync" else key] == value
                for key, value in keys.items())
        found = [r for r in of if agrees(r)]
        if rows is not None:
            return found
        if not found:
            raise Wrong(f"no run with {keys}")
        if len({r["cell"] for r in found}) > 1 and not self.pooled:
            raise Wrong(f"several cells with {keys}")
        return found

    def base(self, keys):
        """The runs that speed-ups of a row are over."""
        words = [w.partition("=") for w in (self.over or "").split(" ")]
        if not self.over:
            raise Wrong("over what are the speed-ups?")
        if not all(equals for _, equals, _ in words):
            return self.of({"cell": self.over})
        return self.of({**keys, **{key: value for key, _, value in words}})

    def values(self, head, keys):
        """A measure of all runs of a row, without those that lack it."""
        if TARGET.match(head):
            return self.to_target(head, keys)
        if WORKER.match(head):
            rows = self.rows_of_cell("workers.csv", keys)
            found = [number(r, "utilisation") for r in rows
                     if r["worker"] == WORKER.match(head).group(1)]
            return [100 * v for v in found]
        if head in ToLoss.HEADS:
            return self.to_loss.values(head, keys, self.of)
        if head == APART:
            return [self.apart(keys)]
        if head == APART_ALL:
            cell = self.of(keys)[0]["cell"]
            found = [number(r, "y") for r in self.read("loss_apart.csv")
                     if r["what"] == "line" and r["name"] == cell]
            return [max(found)] if found else []
        if any(p.match(head) for p in (VALIDATION, SECONDS, REACHED)):
            return [self.validated(head, curve) for curve in self.curves(keys)]
        if head not in HEADS:
            raise Wrong(f"nothing is known of a column {head!r}")
        name, columns, scale = HEADS[head]
        rows = self.of(keys) if name == "runs.csv" else self.rows_of_cell(name, keys)
        found = [[number(r, c) for c in columns] for r in rows]
        return [scale * sum(values) for values in found if None not in values]

    def rows_of_cell(self, name, keys):
        return self.of({"cell": self.of(keys)[0]["cell"]}, self.read(name))

    def to_target(self, head, keys):
        what, target = TARGET.match(head).groups()
        for row in self.read("table.csv"):
            if number(row, "target_loss_nats") != float(target):
                raise Wrong(f"the target is {row['target_loss_nats']}, not {target}")
        column = "seconds_to_target" if what == "to" else "tokens_to_target"
        found = [number(r, column) for r in self.of(keys)]
        return [v for v in found if v is not None]

    def speedup(self, keys):
        """The quotient of the medians; least and most of pairs of one repeat."""
        rates = {r["repeat"]: number(r, "tokens_per_s") for r in self.of(keys)}
        base = {r["repeat"]: number(r, "tokens_per_s") for r in self.base(keys)}
        pairs = [rates[k] / base[k] for k in rates if k in base]
        return (median(rates.values()) / median(base.values()), min(pairs), max(pairs))

    def curves(self, keys):
        """The rows of validations.csv of each cell."""
        rows = self.read("validations.csv")
        return [[r for r in rows if r["cell"] == cell]
                for cell in dict.fromkeys(r["cell"] for r in self.of(keys))]

    @staticmethod
    def validated(head, curve):
        """What a curve of validations says; between two of them a straight line."""
        points = [(int(r["step"]), number(r, "train_s"), number(r, "val_loss"))
                  for r in curve]
        if found := VALIDATION.match(head):
            return next(loss for step, _, loss in points if step == int(found[1]))
        if found := SECONDS.match(head):
            return next(s for step, s, _ in points if step == int(found[1]))
        target = float(REACHED.match(head)[1])
        for (_, s0, loss0), (_, s1, loss1) in zip(points, points[1:]):
            if loss0 > target >= loss1:
                return s0 + (s1 - s0) * (loss0 - target) / (loss0 - loss1)
        raise Wrong(f"the loss does not fall to {target}")

    def apart(self, keys):
        """The greatest difference from the losses of the base."""
        rows = self.read("curves.csv")
        curve, base = ({r["step"]: number(r, "loss") for r in self.of(k, rows)
                        if int(r["step"]) <= STEPS} for k in (
                            keys, {"cell": self.over or ""}))
        if curve.keys() != base.keys() or not base:
            raise Wrong("the curves have other steps")
        return max(abs(curve[s] - base[s]) / base[s] for s in base)

    def earlier(self, head, keys):
        """What xeon.csv has: the median, least and most."""
        rows = self.of(keys, self.read("xeon.csv"))
        if len(rows) != 1:
            raise Wrong(f"xeon.csv has {len(rows)} rows with {keys}")
        column, scale = ("speedup", 1) if head == SPEEDUP else ("seconds", 1) \
            if SECONDS.match(head) else (HEADS[head][1][0], HEADS[head][2])
        found = [number(rows[0], column + end) for end in ("", "_least", "_most")
                 if column + end in rows[0]]
        return [v if v is None else scale * v for v in found]

    def expected(self, head, keys):
        """The median, least and most; [] if there is none."""
        if head.endswith(XEON):
            found = self.earlier(head[:-len(XEON)], keys)
            return [] if found[0] is None else found
        if head == SPEEDUP:
            return list(self.speedup(keys))
        found = self.values(head, keys)
        return [median(found), min(found), max(found)] if found else []
