#!/usr/bin/env python3
"""Adds backends with a folder and a row each, and shows that no more is needed.

    add_backend.py TREE       exit status 77 if a program is missing

The test copies the tree. In the copy, tests/gathered/ and tests/gossip/ become
folders of the root, their rows go into the table of backends, and ARCHITECTURE.md
gets their floors. The test then builds the programs and checks that each of them can
use the new backends. The law of gathered is that of sync=ring; gossip averages
parameters, and its row has a law of its own.
"""

import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

INI = """
[experiment]
title = An added backend
question = Is it drawn and predicted like the others?
figures = bytes loss_step
[base]
model = nano
context = 16
steps = 4
warmup = 1
eval = 0
threads = 1
workers = 2
transport = tcp
[cell ring]
sync = ring
[cell gathered]
sync = gathered
"""


def run(*words, status=0, cwd=None):
    done = subprocess.run([str(word) for word in words], cwd=cwd,
                          capture_output=True, text=True, timeout=3000)
    said = done.stdout + done.stderr
    assert done.returncode == status, f"{words}: {done.returncode}\n{said}"
    return said


def edit(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1, (path, old)
    path.write_text(text.replace(old, new))


def add(source, tree):
    """Copy the tree, and add the folders, rows and floors: no other change."""
    shutil.copytree(source, tree, ignore=shutil.ignore_patterns(
        "build", "runs", ".*"))
    for name in "gathered", "gossip":
        shutil.copytree(source / "tests" / name, tree / name)
        row = tree / name / "row.def"
        edit(tree / "core" / "config" / "backends.def", "#undef BACKEND",
             row.read_text() + "#undef BACKEND")
        row.unlink()
    edit(tree / "ARCHITECTURE.md", "    floor 6  ps_worker",
         "    floor 6  gathered gossip ps_worker")
    for rule in "floors", "circles", "backends":
        run(sys.executable, tree / "tests" / f"{rule}.py", tree)


def build(tree, folder):
    targets = ["lockstep", "trainer", "sync_perf"]
    run("cmake", "--preset", "release", "-B", folder, "-DLOCKSTEP_WERROR=ON",
        cwd=tree)
    if "simulate_job" in run("cmake", "--build", folder, "--target", "help"):
        targets.append("simulate_job")
    run("cmake", "--build", folder, "--parallel", len(os.sched_getaffinity(0)),
        "--target", *targets)
    return folder / "bin"


def is_named(binary):
    """Help names it, and so do the errors for a wrong name or a wrong key."""
    said = run(binary / "lockstep", "train", "--help")
    assert re.search(r"\|\s*gathered", said), said
    assert ", gathered" in said, said
    assert "gathered        replicas; gradients are summed in chunks" in said
    said = run(binary / "lockstep", "train", "sync=gatherd", status=1)
    assert "try: sync=gathered" in said, said
    said = run(binary / "lockstep", "train", "sync=gathered", "slice_kb=2",
               "workers=2", status=1)
    assert "gathered has no such setting" in said, said


def losses(binary, out, *words):
    run(binary / "lockstep", "train", "model=nano", "context=16", "steps=8",
        "workers=2", "threads=1", "eval=0", "verify=4", f"out={out}", *words)
    with open(out / "steps.csv", newline="") as f:
        rows = [row for row in csv.DictReader(f) if row["rank"] == "0"]
    assert len(rows) == 8
    return [(row["loss"], row["grad_norm"]) for row in rows]


def trains(binary, folder):
    """It trains. With two workers a sum of two numbers has only one order, so
    losses equal those of other backends to the bit."""
    seen = losses(binary, folder / "tcp", "sync=gathered", "transport=tcp")
    assert seen == losses(binary, folder / "shm", "sync=gathered",
                          "transport=shm", "bucket_mb=0.1")
    assert seen == losses(binary, folder / "ring", "sync=ring")
    assert seen == losses(binary, folder / "allreduce", "sync=allreduce")


def averages(binary, folder):
    """Workers that average parameters in pairs have the same ones, to the bit, and
    two of them have those of sync=outer. Three are refused."""
    seen = losses(binary, folder / "pairs", "sync=gossip", "every=2")
    assert seen == losses(binary, folder / "outer", "sync=outer", "every=2")
    losses(binary, folder / "four", "sync=gossip", "every=2", "workers=4")
    said = run(binary / "lockstep", "train", "sync=gossip", "workers=3",
               "model=nano", "steps=2", status=1)
    assert "3 workers are no power of two" in said, said
    about = json.loads((folder / "four/run.json").read_text())
    sent = json.loads((folder / "four/summary.json").read_text())
    law = about["law"]["bytes_tx"]  # two rounds of whole vectors every two steps
    assert law == 4 * about["model"]["parameters"], about["law"]
    assert sent["bytes_tx_per_worker_step"]["send"] == law, sent
    said = run(binary / "lockstep", "simulate", "sync=gossip", "workers=2",
               status=1)
    assert "has a law but no simulation" in said, said


def is_predicted(binary, folder):
    """A forecast and a simulation give it the same times as sync=ring."""
    said = run(binary / "lockstep", "predict", "model=gpt2", "workers=4",
               "link=25gbit", "compute_ms=900")
    rows = {line.split()[0]: line.split()[1:] for line in said.splitlines()
            if line.startswith(("ring ", "gathered "))}
    assert len(rows) == 2 and rows["ring"] == rows["gathered"], said
    if not (binary / "simulate_job").exists() or not shutil.which("smpirun"):
        return
    said = run(binary / "lockstep", "simulate", "sync=ring,gathered", "mb=1",
               "workers=4", f"out={folder}")
    with open(folder / "simulate.csv", newline="") as f:
        rows = list(csv.DictReader(f))
    assert [row["backend"] for row in rows] == ["ring", "gathered"], rows
    assert rows[0]["simulated_s"] == rows[1]["simulated_s"], rows


def is_measured(binary):
    """sync_perf measures it over each of its carriers, and checks every sum."""
    said = run(binary / "sync_perf", "workers=2", "sync=gathered,gathered-shm",
               "min_bytes=64", "max_mb=0.01", "rounds=1")
    assert "# gathered, 2 workers" in said, said
    assert "# gathered-shm, 2 workers" in said, said


def is_drawn(binary, folder):
    """The report has the bytes of its law, and figures show it in its colour."""
    ini, out = folder / "two.ini", folder / "two"
    ini.write_text(INI)
    run(binary / "lockstep", "run", ini, "repeat=1", f"out={out}")
    run(binary / "lockstep", "report", out)
    with open(out / "table.csv", newline="") as f:
        ring, gathered = csv.DictReader(f)
    assert gathered["backend"] == "gathered", gathered
    assert float(gathered["law_bytes_tx"]) == float(ring["law_bytes_tx"]) > 0
    sent, law = (float(gathered[name]) for name in
                 ("bytes_tx_per_worker_step", "law_bytes_tx"))
    assert abs(sent / law - 1) < 0.01, (sent, law)
    drawn = (out / "figures" / "loss_step.svg").read_text()
    assert re.search(r"#7b3fa0|rgb\(123, *63, *160\)", drawn, re.I)
    assert "gathered" in (out / "report.html").read_text()


def main():
    for program in "cmake", "mpirun", "gnuplot":
        if not shutil.which(program):
            print(f"skipped: no {program}")
            sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="lockstep-add-") as name:
        folder = pathlib.Path(name)
        add(pathlib.Path(sys.argv[1]).resolve(), folder / "tree")
        binary = build(folder / "tree", folder / "build")
        is_named(binary)
        trains(binary, folder)
        averages(binary, folder)
        is_predicted(binary, folder / "simulated")
        is_measured(binary)
        is_drawn(binary, folder)
    print("passed: each backend needed one folder and one row")


if __name__ == "__main__":
    main()
