"""Runs all of docs/python.md, block after block, as a reader would.

    notebook.py LOCKSTEP

A stand-in takes what the page gives to the module wandb; the real one took the same
block, version 0.31. Without pandas frame() is left out, without gnuplot the drawing.
"""

import contextlib
import importlib.util
import io
import os
import pathlib
import re
import shutil
import sys
import tempfile
import types

import made

PAGE = made.TOP / "docs/python.md"
INI = """[experiment]
figures = none
[base]
model = nano
layers = 1
context = 16
batch = 2
threads = 1
steps = 60
eval = 0
[cell a]
[cell b]
accum = 2
"""


class StandIn(types.ModuleType):
    """What the block calls of wandb. Keeps what it is given."""

    def __init__(self):
        super().__init__("wandb")
        self.runs, self.rows, self.summary = [], [], {}

    def init(self, **about):
        self.runs.append(about)
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def log(self, row, step):
        self.rows.append((step, row))


def blocks():
    """{heading: its indented lines}"""
    found = {}
    for section in re.split(r"\n## ", PAGE.read_text()):
        head, _, text = section.partition("\n")
        lines = [line[4:] for line in text.splitlines() if line.startswith("    ")]
        found[head.split(",")[0]] = "\n".join(lines)
    return found


def runs_here():
    """The folders and files that the page names."""
    made.study("runs/study", [("a", {}), ("b", {"backend": "dps"})], 2)
    made.run("runs/a", log=1)
    made.run("runs/b", step_us=25000, log=2)
    pathlib.Path("mine.ini").write_text(INI)


def handed_over(stand_in):
    assert [run["name"] for run in stand_in.runs] == ["a 1", "a 2", "b 1", "b 2"]
    assert all(run["mode"] == "offline" and run["config"]["batch"] == made.BATCH
               for run in stand_in.runs)
    assert [step for step, _ in stand_in.rows] == [*range(1, 21)] * 4
    assert [row["loss"] for _, row in stand_in.rows[:2]] == [5, 3.5]
    assert stand_in.summary["tokens_per_s"] > 0


def main():
    os.environ["LOCKSTEP_PROGRAM"] = str(pathlib.Path(sys.argv[1]).resolve())
    stand_in = sys.modules["wandb"] = StandIn()
    here, names = {}, []
    with tempfile.TemporaryDirectory(prefix="lockstep-notebook-") as name:
        os.chdir(name)
        runs_here()
        for head, block in blocks().items():
            if not importlib.util.find_spec("pandas"):
                block = re.sub(r".*\.frame\(\).*", "", block)
            if head == "Draw" and not shutil.which("gnuplot"):
                continue
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile(block, f"{PAGE.name}: {head}", "exec"), here)
            names.append(head)
            if head == "Load":
                assert here["r"].median > 0 and here["r"].n == 1, here["r"]
                assert "is fastest" in said.getvalue() or "reaches loss" in said.getvalue()
                assert "tokens_per_s - The tokens that a step trained on" in said.getvalue()
            if head == "Run":
                assert len(here["runs"]) == 6 and here["runs"].runs[0].steps == 60
                assert "report: runs/again/report.html" in said.getvalue()
        assert names[-1] == "A measure of your own" and len(names) >= 5, names
        assert "slowest_step_s" in pathlib.Path("runs/again/table.csv").read_text()
        handed_over(stand_in)
        os.chdir("/")
    print("ok:", *names, sep="\n  ")


main()
