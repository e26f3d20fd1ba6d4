"""Runs and experiments that a test makes of one short run, by other steps, settings
and samples. So it knows every number that a report must have.
"""

import csv
import json
import pathlib
import shutil
import subprocess
import sys

LOCKSTEP = str(pathlib.Path(sys.argv[1]).resolve())
STEPS = 40


def lockstep(*words, status=0):
    done = subprocess.run([LOCKSTEP, *map(str, words)], capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == status, (words, done.stdout, done.stderr)
    return done


def table(path, key="cell"):
    with open(path, newline="") as f:
        return {row[key]: row for row in csv.DictReader(f)}


def change(folder, **objects):
    """Change members of objects of a run's run.json: way={"every": 4}."""
    run = json.loads((folder / "run.json").read_text())
    for name, members in objects.items():
        run[name] |= members
    (folder / "run.json").write_text(json.dumps(run))


def declare(out, cell, asked, **objects):
    """Give a cell and all its runs settings, and the runs what the trainer makes of
    them: declare(out, "a", {"lr": .1}, training={"lr": ".1"})."""
    ini, words = out / "x.ini", "".join(f"{k} = {v}\n" for k, v in asked.items())
    ini.write_text(ini.read_text().replace(f"[cell {cell}]\n", f"[cell {cell}]\n{words}"))
    for run in (out / "cells" / cell).iterdir():
        change(run, asked=asked, effective=asked, **objects)


def rewrite(folder, step_us, loss=lambda k: 5 - .1 * k, **settings):
    """Give a run steps of step_us microseconds, with the losses loss(step)."""
    head, first, *_ = (folder / "steps.csv").read_text().splitlines()
    at = head.split(",").index
    lines = [head]
    for step in range(1, STEPS + 1):
        cells = first.split(",")
        cells[at("step")] = str(step)
        cells[at("tokens")] = str(32 * step)
        cells[at("time_s")] = f"{step * step_us * 2e-6:.6f}"
        cells[at("t_step_us")] = str(step_us)
        cells[at("loss")] = f"{loss(step):.9g}"
        lines.append(",".join(cells))
    (folder / "steps.csv").write_text("\n".join(lines) + "\n")
    change(folder, effective={"steps": STEPS, **settings})


def taken(folder, share, switches=5):
    """Give a run samples of a worker that has no processor for `share` of the time
    in which it computes."""
    (folder / "util.csv").write_text("t_s,rank,metric,value\n" + "".join(
        f"{t / 10},0,compute_share,0.9\n{t / 10},0,cpu_share,"
        f"{.9 * (1 - share):.6f}\n{t / 10},0,resident_bytes,{t}000000\n"
        f"{t / 10},0,involuntary_switches_per_s,{switches}\n"
        for t in range(1, 11)))


def study(single, out, cells, about="baseline = slow\n"):
    """An experiment's folder. cells: {name: microseconds of a step by repeat}. Each has
    another setting that changes nothing, since cells of equal settings are one."""
    out.mkdir()
    text = f"[experiment]\nfigures = none\nrepeat = 3\n{about}[base]\nbatch = 2\n"
    for i, (name, times) in enumerate(cells.items()):
        text += f"[cell {name}]\nsync = local\n"
        for k, us in enumerate(times, 1):
            folder = out / "cells" / name / f"r{k}"
            shutil.copytree(single, folder)
            rewrite(folder, us, log=100 + i)
            taken(folder, .02)
            run = json.loads((folder / "run.json").read_text())
            run["asked"] = {"batch": 2, "sync": "local"}
            (folder / "run.json").write_text(json.dumps(run))
    (out / "x.ini").write_text(text)
    (out / "command.txt").write_text("x.ini\n")
    return out


def answer(out):
    *_, said, path = lockstep("report", out).stdout.split("\n\n")
    assert path.startswith("report: "), path
    return said
