#!/usr/bin/env python3
"""names.py LOCKSTEP - folders and texts may have any name: runs in them are recorded,
resumed, started again, watched and sampled like others."""

import csv
import json
import pathlib
import subprocess
import sys
import tempfile

NAMES = ["pp2,tp2", "mesh=cp2", "say \"hi\"", "two words", "grüß", "n" * 200]
MODEL = ("model=nano layers=1 heads=1 channels=8 context=8 batch=2 threads=1 eval=2 "
         "log=0 samples=0 warmup=0 timeout=30").split()


def run(lockstep, folder, *words, status=0):
    done = subprocess.run([lockstep, *words], capture_output=True, errors="replace",
                          cwd=folder, check=False)
    assert done.returncode == status, (words, done.stdout, done.stderr)
    return done


def judge(lockstep, folder, name, workers):
    data = folder / f"{name}.txt"
    data.write_text("the quick brown fox " * 500)
    words = ["train", *MODEL, f"data={name}.txt", f"out={name}", "save=2",
             f"workers={workers}", f"sync={'ring' if workers > 1 else 'local'}"]
    dies = ["inject=kill:3", "restarts=1"] if workers > 1 else []
    run(lockstep, folder, *words, "steps=4", *dies)
    run(lockstep, folder, *words, "steps=6", "resume=auto")
    summary = json.loads((folder / name / "summary.json").read_text())
    assert summary["steps"] == 6 and summary["tokens"] == 6 * workers * 16, summary
    assert summary["final_train_loss"] > 0 and summary["best_val_loss"] > 0, summary
    assert summary["restarts"] == len(dies[:1]), (name, summary)
    with open(folder / name / "steps.csv", newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    assert [int(r["step"]) for r in rows] == [s for s in range(1, 7)
                                              for _ in range(workers)]
    assert {r["run"] for r in rows} == {name}, rows[0]
    seen = run(lockstep, folder, "watch", name, "times=1").stdout
    assert "step 6 of 6, over" in seen, seen
    run(lockstep, folder, "sample", name, "prompt=the", "tokens=2")


def main():
    lockstep = sys.argv[1]
    with tempfile.TemporaryDirectory() as top:
        folder = pathlib.Path(top)
        for name in NAMES:
            judge(lockstep, folder, name, 2 if name == NAMES[0] else 1)
        said = run(lockstep, folder, "train", *MODEL, "out=two\nlines", status=1)
        assert "out: control character 10 at 3" in said.stderr, said.stderr
    print(f"{len(NAMES)} names")


if __name__ == "__main__":
    main()
