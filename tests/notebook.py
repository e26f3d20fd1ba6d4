"""Tests the block of docs/python.md that gives runs to W&B: it runs with a stand-in for
the module wandb. The real one took the same block, version 0.31.
"""

import pathlib
import sys
import tempfile
import types

import made

PAGE = made.TOP / "docs/python.md"


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


def main():
    section = PAGE.read_text().split("## Weights & Biases")[1].split("\n## ")[0]
    block = "\n".join(line[4:] for line in section.splitlines() if line.startswith("    "))
    stand_in = sys.modules["wandb"] = StandIn()
    with tempfile.TemporaryDirectory(prefix="lockstep-notebook-") as name:
        out = made.study(pathlib.Path(name) / "x", [("a", {}), ("b", {"backend": "dps"})], 2)
        exec(block.replace("runs/study", str(out)), {})
    assert [run["name"] for run in stand_in.runs] == ["a 1", "a 2", "b 1", "b 2"]
    assert all(run["mode"] == "offline" and run["config"]["batch"] == made.BATCH
               for run in stand_in.runs)
    assert [step for step, _ in stand_in.rows] == [*range(1, 21)] * 4
    assert [row["loss"] for _, row in stand_in.rows[:2]] == [5, 3.5]
    assert stand_in.summary["tokens_per_s"] > 0
    print("ok")


main()
