"""The time to a loss, as the steps to it times the time of a step. results_csv.py uses it.

A folder with these files has such tables:

    runs.csv          the time of a step in each set-up, of workers that may sleep
    validations.csv   losses by step of trainings without links; the name of a cell
                      begins with the same method: "topk workers=2 batch=4 seed=1"
    predict.csv       what `lockstep predict` says about each cell of runs.csv
    whole.csv         losses by seconds and by step of whole runs of two workers:
                      "topk, batch 4, 1gbit"

A set-up is compared with the run of whole gradients that has the same links, workers,
batch and overlap. Of repeats the median counts. The target is the loss of whole gradients
after STEP steps, the mean of the seeds. "Faster" is at least MARGIN faster.
"""

import math

BASE = "dense"
STEP = 96
MARGIN = 1.05
SEED = "1"  # of the whole runs
SAME = "net", "workers", "batch", "overlap"


def method(row):
    return row["cell"].replace(",", " ").split()[0]


def crossing(points, target):
    """Where the (x, loss) first reach the target, on straight lines."""
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        if y0 > target >= y1:
            return x0 + (x1 - x0) * (y0 - target) / (y0 - y1)
    return math.inf


class ToLoss:
    """Counts over set-ups."""

    def __init__(self, read):
        self.step_s = {}
        for r in read("runs.csv"):
            self.step_s.setdefault(r["cell"], []).append(float(r["step_s"]))
        self.runs, self.curves = self.once(read("runs.csv")), {}
        self.forecast = {r["cell"]: float(r["step_s"]) for r in read("predict.csv")}
        for r in read("validations.csv"):
            words = dict(w.split("=") for w in r["cell"].split()[1:])
            key = method(r), words["workers"], words["batch"]
            self.curves.setdefault(key, {}).setdefault(words["seed"], []).append(
                (int(r["step"]), float(r["val_loss"])))
        self.whole = read("whole.csv")
        self.add_whole()
        self.base = {self.same(r): r for r in self.runs if method(r) == BASE}

    def add_whole(self):
        """The losses of whole runs, where a training without links is missing."""
        found = {}
        for r in self.whole:
            row = self.setup(r["cell"])
            key = method(row), row["workers"], row["batch"]
            found.setdefault(key, {}).setdefault(r["cell"], []).append(
                (int(r["step"]), float(r["val_loss"])))
        for key, runs in found.items():
            self.curves.setdefault(key, {SEED: next(iter(runs.values()))})

    @staticmethod
    def once(rows):
        """One row for each cell."""
        return list({r["cell"]: r for r in rows}.values())

    def step(self, row):
        """The time of a step, the median of the repeats."""
        found = sorted(self.step_s[row["cell"]])
        return (found[(len(found) - 1) // 2] + found[len(found) // 2]) / 2

    @staticmethod
    def same(row):
        return tuple(row[key] for key in SAME)

    def of(self, row):
        """The curves of a set-up, by seed."""
        return self.curves.get((method(row), row["workers"], row["batch"]), {})

    def target(self, workers, batch):
        """None if whole gradients were not trained with this size."""
        found = [dict(points)[STEP] for points in
                 self.curves.get((BASE, workers, batch), {}).values()]
        return sum(found) / len(found) if found else None

    def steps(self, row, seed=None):
        """To the target: the mean of the seeds, infinite if one does not reach it, or
        none was trained."""
        target = self.target(row["workers"], row["batch"])
        found = [crossing(points, target) for key, points in self.of(row).items()
                 if target is not None and seed in (None, key)]
        return sum(found) / len(found) if found else math.inf

    def most_steps(self, row):
        return min((points[-1][0] for points in self.of(row).values()), default=0)

    def seconds(self, row):
        """To the target."""
        return self.steps(row) * self.step(row)

    # ---- the columns: functions of a row of runs.csv and of its base

    def step_faster(self, row, base):
        return self.step(base) >= MARGIN * self.step(row)

    def step_predicted(self, row, base):
        return self.forecast[base["cell"]] >= MARGIN * self.forecast[row["cell"]]

    def step_agreed(self, row, base):
        return self.step_faster(row, base) == self.step_predicted(row, base)

    def loss_faster(self, row, base):
        return (math.isfinite(self.steps(row)) and
                self.seconds(base) >= MARGIN * self.seconds(row))

    def trained(self, row, base):
        """Whether there are losses of both."""
        return bool(self.of(row) and self.of(base))

    def loss_open(self, row, base):
        """The training was too short to tell."""
        if not self.trained(row, base):
            return False
        least = self.most_steps(row) * self.step(row)
        return math.isinf(self.steps(row)) and self.seconds(base) >= MARGIN * least

    COUNTS = {
        "faster by step": step_faster,
        "by predict": step_predicted,
        "predict agrees": step_agreed,
        "with losses": trained,
        "faster to the loss": loss_faster,
        "not known": loss_open,
    }

    def count(self, head, rows):
        """The number of set-ups. Whole gradients are none."""
        rows = [r for r in rows if method(r) != BASE]
        return sum(self.COUNTS[head](self, r, self.base[self.same(r)]) for r in rows)

    def step_ratios(self, rows):
        """How many times shorter the step is than that of whole gradients."""
        return [self.step(self.base[self.same(r)]) / self.step(r) for r in rows]

    def exchanges(self, rows):
        """The exchange of whole gradients by the law, in times of computing."""
        return [float(self.base[self.same(r)]["law_exchange_s"]) * 1e3 /
                sum(map(float, r["pace"].split(","))) for r in rows]

    def step_quotients(self, rows):
        """The steps to the target, by those of whole gradients; of each size once."""
        found = {(method(r), r["workers"], r["batch"]):
                 self.steps(r) / self.steps(self.base[self.same(r)]) for r in rows
                 if math.isfinite(self.steps(r))}
        return list(found.values())

    def loss_ratios(self, rows):
        """How many times sooner the target is reached than by whole gradients."""
        return [self.seconds(self.base[self.same(r)]) / self.seconds(r) for r in rows
                if math.isfinite(self.steps(r))]

    def product(self, cell):
        """The seconds of a whole run to the target, by the product."""
        row = self.setup(cell)
        return self.steps(row, SEED) * self.step(row)

    def measured(self, cell):
        """The seconds that they were."""
        row = self.setup(cell)
        if self.target(row["workers"], row["batch"]) is None:
            return math.inf
        points = [(float(r["train_s"]), float(r["val_loss"])) for r in self.whole
                  if r["cell"] == cell]
        return crossing(points, self.target(row["workers"], row["batch"]))

    def values(self, head, keys, of):
        """What a column has to say about a row of a table; `of` finds its runs."""
        if head in self.COUNTS:
            return [self.count(head, self.once(of(keys)))]
        if head in self.WHOLE:
            return list(filter(math.isfinite, [self.WHOLE[head](self, keys["cell"])]))
        return self.QUOTIENTS[head](self, self.once(of(keys)))

    def setup(self, cell):
        """The row of runs.csv with the settings that a whole run is named for."""
        name, batch, net, *rest = cell.split(", ")
        return next(r for r in self.runs if r["workers"] == "2" and
                    (r["cell"].split(" net=")[0], r["net"], r["overlap"]) ==
                    (f"{name}, {batch}", net, "0" if rest else "1"))

    WHOLE = {"by the product, s": product, "whole run, s": measured}
    QUOTIENTS = {
        "exchange / computing": exchanges,
        "step, times shorter": step_ratios,
        "steps, times more": step_quotients,
        "to the loss, times sooner": loss_ratios,
    }
    HEADS = {*COUNTS, *WHOLE, *QUOTIENTS}
