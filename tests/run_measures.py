#!/usr/bin/env python3
"""Tests measures of runs that nobody trained, so that the test knows their numbers."""

import csv
import math
import pathlib
import tempfile

import made
from fabricated import change
from lockstep import measures
from lockstep.same import differences
from lockstep.study import Study


def noise(folder):
    """The noise scale of gradients whose mean has the square G2, and whose noise has S
    for one sequence: S / G2."""
    run, g2, s = made.run(folder / "noise", world=2), 0.25, 12.0
    rows = list(csv.DictReader((run / "steps.csv").read_text().splitlines()))
    for row in rows:
        early = int(row["step"]) <= 10  # the first half does not count
        row["grad_norm"] = 9 if early else math.sqrt(g2 + s / (2 * made.BATCH))
        row["own_norm"] = 7 if early else math.sqrt(g2 + s / made.BATCH)
    made.write(run / "steps.csv", rows)
    scale = measures.MEASURES["noise_scale"].of
    assert abs(scale(Study(run).runs[0]) / (s / g2) - 1) < 1e-9
    for key, value in ("consistency", "asp"), ("elastic", 1), ("backup", 1):
        change(run, effective={key: value})
        assert scale(Study(run).runs[0]) is None, key
        change(run, effective={key: "bsp" if key == "consistency" else 0})
    made.write(run / "steps.csv", [{**row, "own_norm": 0} for row in rows])
    assert scale(Study(run).runs[0]) is None


def elsewhere(folder):
    """A run that was resumed in another folder has only the later steps. Bytes are
    those of a step that it made."""
    run = made.run(folder / "elsewhere", steps=20, sent=3e6)
    rows = csv.DictReader((run / "steps.csv").read_text().splitlines())
    made.write(run / "steps.csv", [row for row in rows if int(row["step"]) > 15])
    assert measures.bytes_tx(Study(run).runs[0]) == 3e6


def earlier(folder):
    """The training of an earlier version's run is the same as today's."""
    same = {"vocab": "chars", "precision": "fp32", "outer_lr": "1", "outer_momentum": "0",
            "mistake": "none"}
    old = {"vocab": "", "precision": "fp32", "outer_lr": "0.7", "outer_momentum": "0.9",
           "symbols": "chars", "tf32": "0", "outer_rule": "average",
           "mistake_two_updates": "0", "mistake_own_steps": ""}
    runs = []
    for i, training in enumerate((same, old, {**old, "tf32": "1"},
                                  {**old, "mistake_own_steps": "1:9"})):
        made.run(folder / f"earlier{i}")
        change(folder / f"earlier{i}", training=training)
        runs += Study(folder / f"earlier{i}").runs
    found = [differences(runs[0], run) for run in runs[1:]]
    assert found == [[], ["precision (fp32, tf32)"],
                     ["mistake (none, own_steps:1:9)"]], found


def main():
    with tempfile.TemporaryDirectory(prefix="lockstep-measures-") as name:
        noise(pathlib.Path(name))
        elsewhere(pathlib.Path(name))
        earlier(pathlib.Path(name))
    print("ok")


main()
