"""Tests that Lockstep can run every file of experiments/: `lockstep plan` accepts each
cell, the figures exist, and a run with a cell's settings counts as a run of it.

    experiments.py LOCKSTEP
"""

import json
import os
import pathlib
import re
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TREE / "study"))
os.environ["LOCKSTEP_PROGRAM"] = str(pathlib.Path(sys.argv[1]).resolve())

from lockstep import figures
from lockstep.experiment import read_experiment
from lockstep.runner import plans
from lockstep.runs import Run
from lockstep.study import Study


def belongs(cell, plan, folder):
    """A run with these settings is accepted by `lockstep run` and by `lockstep report`."""
    (folder / "run.json").write_text(json.dumps(
        {**plan, "backend": "x", "world": 1, "model": {"context": 16}}))
    study = Study.__new__(Study)
    study.out, study.ini, study.runs, study.unfinished = str(folder), "x.ini", [], []
    for settings in plan["asked"], None:
        study.check(Run(folder, cell), settings)


def resumes(folder):
    """A cell that resumes a run has settings of that run that it does not name."""
    ini, first = folder / "resumes.ini", folder / "first"
    first.mkdir()
    ini.write_text("[cell first]\nsync=local\nlog=3\nsave=2\n"
                   f"[cell more]\nresume={first}\nsteps=9\n")
    cells = read_experiment(str(ini)).cells
    (first / "run.json").write_text(json.dumps(plans(cells[:1])[0]))
    plan = plans(cells)[1]
    assert plan["asked"]["log"] == 3, plan["asked"]
    belongs(cells[1], plan, folder)


def main():
    files = sorted((TREE / "experiments").glob("*.ini"))
    assert len(files) > 10, files
    with tempfile.TemporaryDirectory(prefix="lockstep-experiments-") as name:
        for path in files:
            e = read_experiment(str(path))
            assert e.title and e.cells, path
            figures.check(e.figures)
            if os.geteuid():  # only root has networks; others may ask for them with a ?
                for cell in e.cells:
                    cell.words = [re.sub(r"^net=(?=\d)", "net=?", w) for w in cell.words]
            for cell, plan in zip(e.cells, plans(e.cells)):
                belongs(cell, plan, pathlib.Path(name))
        resumes(pathlib.Path(name))
    print("ok")


main()
