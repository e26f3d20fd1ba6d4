#!/usr/bin/env python3
"""plan.py LOCKSTEP - lockstep plan says what a run's run.json will say, and
refuses what lockstep train refuses; the law in it counts the bytes that are sent;
summary.json says how long stages waited, and how long by the timetable."""

import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

MODEL = ("data=text.txt model=nano layers=4 heads=4 channels=32 context=16 "
         "vocab_size=256 batch=2 accum=4 threads=1 eval=0 log=0 steps=2 samples=0 "
         "trace=off timeout=30").split()

# Ways, and the payload between stages, between slices and for sequences in pieces:
# whether there is a law.
WAYS = [
    ("sync=ring mesh=tp2", None, True),
    ("sync=ring mesh=dp2,tp2", None, True),
    ("sync=zero mesh=dp2,tp2", None, True),
    ("sync=ring mesh=dp2,pp2", True, None),
    ("sync=ring mesh=dp2,pp2 wire=bf16 transport=tcp", True, None),
    ("sync=ring mesh=dp2,cp2 context=13 attention_over=ring", None, None, True),
    ("sync=ring mesh=cp2 accum=1 recompute=1 precision=bf16", None, None, True),
    ("sync=ring mesh=cp2,up2 context=13 attention_over=ring", None, None, True),
    ("sync=zero workers=2 shard=2 wire=bf16 transport=tcp", None, None),
    ("sync=dps workers=2", None, None),
    ("sync=outer workers=2 every=2 lr_scale=linear base_batch=4", None, None),
]

REFUSED = [
    (["bach=3"], "unknown key bach; nearest: batch"),
    (["batch=x"], "batch=x: want a whole number"),
    (["workers=2"], "sync=local trains one worker, not 2"),
    (["sync=ring", "mesh=dp2", "workers=3"], "mesh=dp2 has 2 ranks, workers=3"),
    (["sync=ring", "every=3"], "every=3: ring has no such setting"),
    (["sync=sps", "servers=2", "workers=2"], "servers=2: sync=sps has one server"),
    (["sync=ring", "workers=2", "global_batch=7", "batch=2"],
     "global_batch=7 is no multiple of 4"),
    (["resume=auto"], "resume=auto looks for checkpoints in out="),
    (["net=fast", "sync=ring", "workers=2"], "net=fast: want RATE"),
    (["init=/nowhere/x"], "init=/nowhere/x: No such file"),
    ({"a": 1}, "plan: not an array"),
    ([1], "plan: not an array of words"),
]


class Plan:
    def __init__(self, lockstep, folder):
        self.lockstep, self.folder = lockstep, folder

    def ask(self, *lines, words=()):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        done = subprocess.run([self.lockstep, "plan", *words], input=text, text=True,
                              capture_output=True, cwd=self.folder, check=True)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(answers) == len(lines), done.stdout
        return answers

    def train(self, *words):
        out = tempfile.mkdtemp(dir=self.folder) + "/run"
        subprocess.run([self.lockstep, "train", *words, "out=" + out], check=True,
                       cwd=self.folder, stdout=subprocess.DEVNULL)
        return [json.loads(pathlib.Path(out, name).read_text())
                for name in ("run.json", "summary.json")]


def judge_way(plan, way, has_stages, has_slices, has_pieces=None):
    words = MODEL + way.split()
    run, summary = plan.train(*words)
    (planned,) = plan.ask(words, words=["hash=1"])
    assert planned["data"]["hash_xxh3"] == run["data"]["hash_xxh3"], way
    for name in ("asked", "way", "training", "task", "law", "mistakes", "format", "inputs"):
        assert planned[name] == run[name], (way, name, planned[name], run[name])
    law, sent = run["law"], summary["bytes_tx"] / summary["steps"] / summary["world"]
    assert law["bytes_tx"] == sent, (way, law, sent)
    assert law["by_verb"] == summary["bytes_tx_per_worker_step"], (way, law)
    axes = summary.get("bytes_tx_per_step_by_axis", {})
    parts = ("stage_tx", "pp", has_stages), ("slice_tx", "tp", has_slices), \
        ("piece_tx", "cp up", has_pieces)
    for key, axis, there in parts:
        assert law[key] == (sum(axes[a] for a in axis.split()) if there else None), \
            (way, law, axes)
    assert (law["bubble_share"] is not None) == bool(has_stages), (way, law)


def judge_idle(plan):
    """The naive timetable takes the sum of all stages' times, one after the other."""
    run, idle = plan.train(*MODEL, "sync=ring", "mesh=pp2", "pipeline=naive",
                           "trace=on")
    out = pathlib.Path(run["effective"]["out"])
    with open(out / "steps.csv", newline="") as f:
        rows = list(csv.DictReader(f))
    with open(out / "breakdown.csv", newline="") as f:
        busy = sum(float(r["seconds"]) / int(r["steps"]) for r in csv.DictReader(f)
                   if r["kind"] in ("forward", "backward"))
    step, bubble = (sum(float(r[c]) for r in rows) / len(rows) * 1e-6
                    for c in ("t_step_us", "t_bubble_us"))
    whole = busy + max(0, step - bubble - busy / 2)
    want = bubble / step, busy / 2 / whole, whole
    got = (idle["bubble_share"], idle["timetable"]["bubble_share"],
           idle["timetable"]["step_s"])
    assert all(abs(a / b - 1) < 1e-6 for a, b in zip(want, got)), (want, got)
    _, alone = plan.train(*MODEL, "sync=ring", "mesh=pp2,tp2", "trace=on")
    assert alone["bubble_share"] > 0 and "timetable" not in alone, alone
    _, alone = plan.train(*MODEL)
    assert alone["bubble_share"] is None and "timetable" not in alone, alone


def judge_objects(plan):
    one, two, late, link, twice, epochs, spare = plan.ask(
        ["sync=ring", "workers=2", "batch=2", "lr_scale=linear", "base_batch=2",
         "lr=0.001", "min_lr=0.001", "dropout=0.1"],
        ["batch=4", "lr=0.002", "min_lr=0.002", "dropout=0.1"],
        ["sync=dps", "workers=3", "consistency=ssp:2", "save=2"],
        ["sync=ring", "workers=2", "vocab_size=256", "net=unshaped"],
        ["sync=ring", "workers=2", "mistake=two_updates"],
        ["sync=outer", "workers=2", "every=7"],
        ["sync=dps", "workers=3", "backup=1"])
    masks = one["training"].pop("workers"), two["training"].pop("workers")
    assert masks == ("2", "1"), masks
    assert one["training"] == two["training"], (one["training"], two["training"])
    assert one["training"]["global batch"] == "4", one["training"]
    assert one["task"] == late["task"] | {"dropout": "0.1"}, (one["task"], late["task"])
    way = late["way"]
    assert (way["servers"], way["beside"], way["promise"]) == (3, True, "ssp:2"), way
    assert (link["way"]["promise"], spare["way"]["promise"]) == ("", "backup")
    assert "shard" in way["ignores"] and "wire" not in way["ignores"], way
    assert late["law"]["bytes_tx"] is None, late["law"]  # the data gives the vocabulary
    assert link["law"]["bytes_tx"] > 0, link["law"]
    assert link["law"]["exchange_s"] is None, link["law"]
    assert twice["mistakes"] == ["mistake=two_updates"], twice["mistakes"]
    assert twice["training"]["every"] == "none", twice["training"]
    assert epochs["way"]["apart"] and epochs["way"]["every"] == 7, epochs["way"]
    assert epochs["training"]["every"] == "7", epochs["training"]


def judge_terminal(plan):
    """At a terminal it says that it reads lines. `lockstep --help` lists it."""
    ours, its = os.openpty()
    os.write(ours, b"\x04")  # Ctrl-D
    done = subprocess.run([plan.lockstep, "plan"], stdin=its, capture_output=True,
                          text=True, timeout=30, check=True)
    assert "plan: reads lines" in done.stderr and not done.stdout, done
    assert not subprocess.run([plan.lockstep, "plan"], stdin=subprocess.DEVNULL, check=True,
                              capture_output=True).stderr
    listed = subprocess.run([plan.lockstep, "--help"], capture_output=True, text=True,
                            check=True).stdout
    assert "  lockstep plan " in listed, listed


def main():
    with tempfile.TemporaryDirectory() as folder:
        plan = Plan(sys.argv[1], folder)
        pathlib.Path(folder, "text.txt").write_text("the quick brown fox " * 2000)
        for line, why in REFUSED:
            (answer,) = plan.ask(line)
            assert list(answer) == ["error"] and why in answer["error"], (line, answer)
        judge_terminal(plan)
        judge_objects(plan)
        judge_idle(plan)
        for way in WAYS:
            judge_way(plan, *way)
    print(f"{len(WAYS)} ways as planned, {len(REFUSED)} refused")


if __name__ == "__main__":
    main()
