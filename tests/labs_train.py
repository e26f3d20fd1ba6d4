#!/usr/bin/env python3
"""labs_train.py - show that a lab's reference trains a real model, with the losses and
bytes of the ring. If a student's file fails, the job ends with a line that says why.

LOCKSTEP names the launcher.
"""

import csv
import os
import pathlib
import re
import sys
import tempfile

from labs import TOP, run_job


def steps_of(out):
    """The loss, norm and bytes of each worker's steps, as text."""
    with open(out / "steps.csv", newline="", encoding="utf-8") as f:
        return [(row["rank"], row["step"], row["loss"], row["grad_norm"],
                 row["bytes_tx"], row["bytes_rx"]) for row in csv.DictReader(f)]


# (workers, transport). MODEL has one bucket, so that the ring sums all gradients as
# one vector, as a lab does.
JOBS = ((2, "transport=shm"), (3, "transport=tcp"))
MODEL = ("model=nano", "context=16", "layers=2", "batch=2", "steps=6", "threads=1",
         "eval=0", "verify=3", "timeout=60", "bucket_mb=64")


def judge_trained(lockstep, folder, workers, transport):
    """Complaints about lab 4's reference if its steps differ from the ring's, which
    adds in the same order, and about lab 6's if it does not halve the bytes."""
    words = MODEL + (f"workers={workers}", transport)
    mine, ring = folder / f"lab-{workers}", folder / f"ring-{workers}"
    status, said = run_job(
        TOP / "labs/grade", 4, TOP / "labs/04-ring/reference.c", "--out", folder,
        "--train", *words, f"out={mine}")
    if status:
        return [f"the reference does not train: {said}"]
    status, said = run_job(lockstep, "train", "sync=ring", *MODEL, "transport=tcp",
                           f"workers={workers}", f"out={ring}")
    if status:
        return [f"the ring does not train: {said}"]
    if steps_of(mine) != steps_of(ring):
        return [f"{workers} workers, {transport}: {steps_of(mine)} and the ring's "
                f"{steps_of(ring)}"]
    if workers > 2:
        return []
    narrow = folder / f"narrow-{workers}"
    status, said = run_job(
        TOP / "labs/grade", 6, TOP / "labs/06-narrow/reference.c", "--out", folder,
        "--train", *words, f"out={narrow}")
    if status:
        return [f"lab 6's reference does not train: {said}"]
    return [f"lab 6: {half}, the ring: {full}"
            for half, full in zip(steps_of(narrow), steps_of(ring), strict=True)
            if abs(float(half[2]) / float(full[2]) - 1) > 1e-3 or
            2 * int(half[4]) != int(full[4])]


# {name: (body of lab_exchange(), the message of the job or the command)}
FAILS = {
    "gives_up": ("return -1;", "lab_exchange\\(\\) failed: no reason was given"),
    "names_one": ('return lab_missing(l, 0, "its chunk");', "misses rank 0: its chunk"),
    "sends_to_itself": ("return lab_send(l, l->rank, v, 4);", "sends to rank"),
}


def judge_failing(folder, name):
    body, said = FAILS[name]
    path = folder / f"{name}.c"
    path.write_text('#include "labs/04-ring/ring.h"\n'
                    "size_t ring_bytes(size_t n, int r, int w, enum lab_way d)\n"
                    "{\n    return n + (size_t)r + (size_t)w + d;\n}\n"
                    "int lab_exchange(struct lab *l, float *v, size_t n)\n"
                    f"{{\n    (void)l, (void)v, (void)n;\n    {body}\n}}\n")
    status, text = run_job(TOP / "labs/grade", 4, path, "--out", folder, "--train",
                           *MODEL, f"out={folder / name}")
    if status == 0 or not re.search(said, text):
        return [f"{name}: status {status}, and no {said!r} in {text!r}"]
    return []


# {lab: (its folder, settings of the way that does the same, a change that is wrong, what
# the job then says; "": nothing, but the losses differ)}
WAYS = {
    13: ("13-outer", ("sync=outer", "outer_lr=0.7", "outer_momentum=0.9"),
         ("start[i] - mean[i]", "mean[i] - start[i]"), ""),
    15: ("15-slices", ("sync=ring", "mesh=tp2"),
         ("int w = l->workers, me = l->rank;", "int w = l->workers, me = l->rank;\n"
          "    if (w > 1)\n        return -1;"), "join: lab_exchange\\(\\) failed"),
}


def losses_of(out):
    return [float(row[2]) for row in steps_of(out)]


def judge_way(lockstep, folder, number):
    """Complaints about a lab whose file does a part of another way's work: its losses are
    those of that way, and a wrong file is noticed."""
    name, way, (right, wrong), says = WAYS[number]
    reference = TOP / "labs" / name / "reference.c"
    bad = folder / f"{name}.c"
    bad.write_text(reference.read_text().replace(right, wrong, 1))
    words = [word for word in MODEL if "bucket" not in word] + ["workers=2"]
    words += ["every=3"] if number == 13 else []
    done = {path: run_job(TOP / "labs/grade", number, path, "--out", folder, "--train",
                          *words, f"out={folder / path.stem}-{number}")
            for path in (reference, bad)}
    status, said = run_job(lockstep, "train", *words, *way, f"out={folder / name}")
    if status or done[reference][0]:
        return [f"lab {number} does not train: {done[reference]}: {said}"]
    ours = losses_of(folder / f"reference-{number}")
    theirs = losses_of(folder / name)
    far = [pair for pair in zip(ours, theirs, strict=True) if
           abs(pair[0] / pair[1] - 1) > 1e-3]
    complaints = [f"lab {number}: losses {far}"] if far else []
    status, said = done[bad]
    if says and (status == 0 or not re.search(says, said)):
        complaints.append(f"lab {number}: status {status}, and no {says!r} in {said!r}")
    if not says and losses_of(folder / f"{name}-{number}") == ours:
        complaints.append(f"lab {number}: a wrong file has the same losses")
    return complaints


# Of a small model the exchange takes whole matrices: none has a rank above 32.
SMALL = ["layers=1", "heads=2", "channels=32"]
FULL = "squeeze_rank=32"


def judge_lowrank(lockstep, folder):
    """Complaints about lab 14's file in sync=lab squeeze=power. With the whole rank its
    losses are those of plain sums, with a lower one its bytes are those of squeeze=power
    and a resumed run has the same bits. Files that do not agree, or owe nothing, are
    noticed."""
    reference = TOP / "labs/14-lowrank/reference.c"
    text = reference.read_text()
    words = [*MODEL, *SMALL, "workers=2"]

    def train(name, *more, wrong=("", "")):
        path = folder / f"lowrank-{name}.c"
        path.write_text(text.replace(*wrong, 1))
        return run_job(TOP / "labs/grade", 14, path, "--out", folder, "--train", *words,
                       *more, f"out={folder / name}")

    done = [train("full", FULL), train("low", "save=3"),
            train("forgets", wrong=("error[at] = g[at] - sum;", "error[at] = 0;")),
            train("resumed", f"resume={folder / 'low/checkpoint-3'}"),
            run_job(lockstep, "train", *words, "sync=ring", f"out={folder / 'sums'}"),
            run_job(lockstep, "train", *words, "sync=ring", "squeeze=power",
                    f"out={folder / 'power'}")]
    if any(status for status, _ in done):
        return [f"lab 14 does not train: {done}"]
    steps = {name: steps_of(folder / name)
             for name in ("full", "low", "forgets", "resumed", "sums", "power")}
    complaints = [f"lab 14: the loss {mine[2]}, and {its[2]} of plain sums"
                  for mine, its in zip(steps["full"], steps["sums"], strict=True)
                  if abs(float(mine[2]) / float(its[2]) - 1) > 1e-3]
    complaints += [f"lab 14: {mine}, and squeeze=power {its}"
                   for mine, its in zip(steps["low"], steps["power"], strict=True)
                   if mine[4:] != its[4:]]
    if steps["resumed"] != steps["low"][-len(steps["resumed"]):]:
        complaints.append(f"lab 14: resumed {steps['resumed']}, not {steps['low']}")
    if steps["forgets"] == steps["low"]:
        complaints.append("lab 14: a file that owes nothing has the same losses")
    for name, wrong, says in (
            ("differs", ("if (mean_of(l, o, next, nq))", "if (mean_of(l, o, p, 0))"),
             "the parameters of rank 1 are not those of rank 0"),
            ("fails", ("size_t np = 0, nq = 0, rest;",
              "size_t np = 0, nq = 0, rest;\n    if (o->n)\n        return -1;"),
             "lowrank_exchange\\(\\) failed: no reason was given")):
        status, said = train(name, wrong=wrong)
        if status == 0 or not re.search(says, said):
            complaints.append(f"lab 14: status {status}, and no {says!r} in {said!r}")
    return complaints


def judge_training():
    lockstep = os.environ["LOCKSTEP"]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        complaints = []
        for workers, transport in JOBS:
            complaints += judge_trained(lockstep, folder, workers, transport)
        for wrong in FAILS:
            complaints += judge_failing(folder, wrong)
        for number in WAYS:
            complaints += judge_way(lockstep, folder, number)
        complaints += judge_lowrank(lockstep, folder)
        status, said = run_job(lockstep, "train", "sync=lab", *MODEL, "workers=2",
                               f"out={folder / 'none'}")
        if status == 0 or "try: lab=FILE" not in said:
            complaints.append(f"no file: status {status}: {said}")
        status, said = run_job(lockstep, "train", "sync=lab", "squeeze=topk", *MODEL)
        if status == 0 or "try: squeeze=power" not in said:
            complaints.append(f"sync=lab squeeze=topk: status {status}: {said}")
        status, said = run_job(lockstep, "predict", "sync=lab", "model=nano",
                               "workers=2", "compute_ms=1", "link=1gbit")
        if status == 0 or "try: labs/grade" not in said:
            complaints.append(f"predict sync=lab: status {status}: {said}")
        status, said = run_job(TOP / "labs/grade", 3, TOP / "labs/03-shard/reference.c",
                               "--train")
        if status != 2 or "try: 4" not in said:
            complaints.append(f"lab 3 trains: status {status}: {said}")
    return complaints


def main():
    complaints = judge_training()
    print("\n".join(complaints) or "train: passed")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
