"""Tests lockstep verify: what it says of good runs and of damaged ones.

    verify.py LOCKSTEP
"""

import contextlib
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

LOCKSTEP = str(pathlib.Path(sys.argv[1]).resolve())
JOB = ("model=nano layers=2 context=16 batch=2 steps=8 eval=2 eval_batches=3 save=4 "
       "threads=1 log=0 warmup=1 samples=0").split()
TEXT = "To be, or not to be, that is the question. " * 400
GOOD = {"local": [], "ring": ["sync=ring", "workers=2", "verify=4", "restarts=1"],
        "zero": ["sync=zero", "workers=2", "precision=bf16"],
        "stages": ["sync=ring", "mesh=pp2", "accum=2"]}


def train(out, *words):
    data = out.parent / "text.txt"
    data.write_text(TEXT)
    done = subprocess.run(
        [LOCKSTEP, "train", *JOB, f"data={data}", *words, f"out={out}"],
        capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr


def verify(run):
    """(exit status, {what: (mark, text)})"""
    done = subprocess.run([LOCKSTEP, "verify", str(run)], capture_output=True, text=True,
                          timeout=250)
    found = {}
    for line in done.stdout.splitlines():
        mark, rest = line[:5].strip(), line[6:]
        what, _, text = rest.partition(": ")
        assert mark in ("ok", "WRONG", "--"), line
        assert what not in found, line
        found[what] = mark, text
    return done.returncode, found


def marks(found, mark):
    return {what for what, (m, _) in found.items() if m == mark}


def good_runs_are_ok(folder):
    for name, words in GOOD.items():
        train(folder / name, *words)
        status, found = verify(folder / name)
        unknown = {"replicas"} if name in ("zero", "stages") else set()
        assert status == 0 and marks(found, "--") == unknown, (name, found)
        for what in ("end", "rows", "summary", "tokens", "latest", "checkpoint-4",
                     "checkpoint-8 state", "checkpoint-4 loss", "checkpoint-8 loss"):
            assert found[what][0] == "ok", (name, what, found)


@contextlib.contextmanager
def copy(run):
    """A copy of a run, to be damaged."""
    with tempfile.TemporaryDirectory(dir=run.parent) as name:
        yield pathlib.Path(shutil.copytree(run, pathlib.Path(name) / "run",
                                           symlinks=True))


def edit(path, old, new):
    text = path.read_text()
    assert old in text, (old, text)
    path.write_text(text.replace(old, new, 1))


def cells(run):
    """The cells of steps.csv, the header first."""
    return [line.split(",") for line in (run / "steps.csv").read_text().splitlines()]


def put_cells(run, rows):
    (run / "steps.csv").write_text("".join(",".join(r) + "\n" for r in rows))


def flip_byte(run):
    path = run / "checkpoint-8" / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def unseal(folder):
    """Takes the hashes out of state.json: that of an older version has none."""
    path = folder / "state.json"
    state = json.loads(path.read_text())
    del state["files"], state["hash_xxh3"]
    path.write_text(json.dumps(state))


def put_number(folder, tensor, value):
    """Writes the first number of a tensor, without its hash."""
    path = folder / "optimizer.safetensors"
    data = bytearray(path.read_bytes())
    length = struct.unpack_from("<Q", data)[0]
    head = json.loads(data[8:8 + length])
    name = next(k for k in head if k.startswith(tensor))
    struct.pack_into("<f", data, 8 + length + head[name]["data_offsets"][0], value)
    path.write_bytes(data)
    unseal(folder)


def remove_row(run):
    put_cells(run, [r for r in cells(run) if r[2:4] != ["1", "5"]])


def double_row(run):
    rows = cells(run)
    put_cells(run, rows[:5] + rows[4:])


def change(column, step, by):
    """Changes a number of a step in the rows of all ranks."""
    def damage(run):
        head, *rows = cells(run)
        for row in rows:
            if row[3] == str(step):
                row[head.index(column)] = f"{float(row[head.index(column)]) + by:.9g}"
        put_cells(run, [head, *rows])
    return damage


def change_summary(run):
    path = run / "summary.json"
    summary = json.loads(path.read_text())
    summary["final_train_loss"] += .01
    path.write_text(json.dumps(summary))


def rename_checkpoint(run):
    shutil.rmtree(run / "checkpoint-8")
    (run / "checkpoint-4").rename(run / "checkpoint-8")


def other_weights(run):
    """The weights of another step, with files that fit each other."""
    for name in "model.safetensors", "optimizer.safetensors":
        shutil.copy(run / "checkpoint-4" / name, run / "checkpoint-8" / name)
    unseal(run / "checkpoint-8")


# (what is done to the run `ring`, {what is wrong: words of the line})
DAMAGE = (
    (flip_byte, {"checkpoint-8": "model.safetensors: damaged: its hash is"}),
    (lambda run: put_number(run / "checkpoint-4", "exp_avg_sq.", -1e-9),
     {"checkpoint-4": "is -1e-09 at element 0, and cannot be negative"}),
    (lambda run: put_number(run / "checkpoint-4", "exp_avg.", float("nan")),
     {"checkpoint-4": "nan"}),
    (remove_row, {"rows": "lacks step 5 of rank 1", "summary": "bytes_tx is"}),
    (double_row, {"rows": "step 2 of rank 1 is there twice",
                  "summary": "bytes_tx is"}),
    (change("loss", 8, .01), {"summary": "final_train_loss is"}),
    (change("val_loss", 4, .01), {"checkpoint-4 loss": "steps.csv has"}),
    (change("tokens", 3, 32), {"tokens": "step 3 of rank 0 adds 96; a step has 64"}),
    (lambda run: (run / "latest").write_text("checkpoint-4"),
     {"latest": "names checkpoint-4, the newest is checkpoint-8"}),
    (change_summary, {"summary": "final_train_loss is"}),
    (rename_checkpoint, {"checkpoint-8 state": "it is of step 4"}),
    (other_weights, {"checkpoint-8 loss": "steps.csv has"}),
    (lambda run: shutil.rmtree(run / "checkpoint-8"),
     {"save": "checkpoint-8 is not there", "latest": "the newest is checkpoint-4"}),
    (lambda run: (run / ".next-8").mkdir(), {"left": ".next-8"}),
    (lambda run: edit(run / "checkpoint-8" / "config.json", '"n_head"', '"n_heads"'),
     {"checkpoint-8": "config.json: damaged"}),
)


def damage_is_found(ring):
    for number, (damage, want) in enumerate(DAMAGE):
        with copy(ring) as run:
            damage(run)
            status, found = verify(run)
            assert status == 1 and marks(found, "WRONG") == set(want), (number, found)
            for what, words in want.items():
                assert words.lower() in found[what][1].lower(), (number, found[what])
            if damage is other_weights:
                assert found["checkpoint-8"][0] == "--", found


def what_cannot_be_proved_is_named(folder):
    data, run = folder / "text.txt", folder / "stopped"
    train(run, "resume=auto")
    data.write_text("Whether 'tis nobler in the mind to suffer " * 400)
    (run / "summary.json").unlink()
    (run / ".next-12").mkdir()
    status, found = verify(run)
    assert status == 0 and marks(found, "--") == {
        "end", "summary", "left", "checkpoint-4 loss", "checkpoint-8 loss"}, found
    assert "data have changed" in found["checkpoint-8 loss"][1], found
    data.unlink()
    assert "text.txt" in verify(run)[1]["checkpoint-8 loss"][1], found


def put_parts(run):
    """A run of several workers as a SIGKILL of all leaves it: its rows are in parts."""
    head, *rows = cells(run)
    for rank in sorted({r[2] for r in rows}):
        part = [head] + [r for r in rows if r[2] == rank]
        (run / f"steps.{rank}.csv").write_text("".join(",".join(r) + "\n" for r in part))
    (run / "steps.csv").unlink()
    (run / "summary.json").unlink()


def a_run_that_went_on_is_ok(folder):
    """With more workers, and stopped after that; then with fewer."""
    run = folder / "longer"
    train(run, "sync=ring", "workers=2")
    train(run, "sync=ring", "workers=3", "steps=12", "resume=auto")
    status, found = verify(run)
    assert status == 0 and marks(found, "--") == {"replicas", "checkpoint-8 loss"}, found
    assert "2 of 3 workers" in found["checkpoint-8 loss"][1], found
    head, *rows = cells(run)
    put_parts(run)
    put_cells(run, [head] + [r for r in rows if int(r[3]) <= 8])  # of the first part
    status, found = verify(run)
    assert found["rows"] == ("ok", "steps 1 .. 12 of 3 ranks, each once"), found
    train(run, "sync=ring", "workers=2", "steps=16", "resume=auto")
    assert verify(run)[1]["rows"] == ("ok", "steps 1 .. 16 of 2 ranks, each once")
    assert not list(run.glob("steps.*.csv"))
    put_parts(run)
    train(run, "sync=local", "workers=1", "steps=20", "resume=auto")
    status, found = verify(run)
    assert status == 0 and found["rows"] == ("ok", "steps 1 .. 20 of 1 rank, each once"), \
        found


def a_rank_that_was_behind_may_lack_steps(folder):
    """Under ssp a job that is restarted goes on from worker 0's step, at all ranks."""
    loose = "sync=sps", "workers=2", "consistency=ssp:1"
    for name, words, mark in [("straight", (), "WRONG"), (
            "behind", ("restarts=1", "inject=kill:5@1"), "--")]:
        train(folder / name, *loose, *words)
        assert verify(folder / name)[0] == 0
        change("tokens", 5, -1000)(folder / name)
        assert verify(folder / name)[1]["tokens"][0] == mark.replace("--", "ok"), name
        remove_row(folder / name)
        assert verify(folder / name)[1]["rows"][0] == mark, (name, verify(folder / name))


def rows_of_an_elastic_run_may_end_early(folder):
    """All its workers may be lost after the last step, before they write a row of it."""
    run = folder / "lost"
    train(run, "sync=sps", "workers=2", "elastic=1")
    put_cells(run, [r for r in cells(run) if r[3] != "8"])
    found = verify(run)[1]
    assert found["end"][0] == "--" and found["save"][0] == "ok", found
    shutil.rmtree(run / "checkpoint-8")
    found = verify(run)[1]
    assert found["save"] == ("WRONG", "checkpoint-8 is not there"), found
    put_cells(run, [r for r in cells(run) if r[3] != "7"])  # but of that step only
    assert verify(run)[1]["end"][0] == "WRONG"


def a_missed_step_of_an_elastic_run_is_counted(folder):
    """steps_lost counts it, and after two starts also steps that were done again."""
    run = folder / "missed"
    train(run, "sync=sps", "workers=2", "elastic=1")
    remove_row(run)
    head, *rows = cells(run)
    for lost, starts, mark in (0, 1, "WRONG"), (1, 1, "ok"), (2, 1, "WRONG"), \
            (2, 2, "ok"), (0, 2, "WRONG"):
        for row in rows:
            if row[2] == "1" and int(row[3]) > 5:
                row[head.index("steps_lost")] = str(lost)
                row[head.index("restarts")] = str(starts)
        put_cells(run, [head, *rows])
        assert verify(run)[1]["rows"][0] == mark, (lost, starts, verify(run))


def only_runs(folder):
    done = subprocess.run([LOCKSTEP, "verify", str(folder)], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 1 and "no run.json is there; try: " in done.stderr, done


with tempfile.TemporaryDirectory(prefix="lockstep-verify-") as temporary:
    place = pathlib.Path(temporary)
    good_runs_are_ok(place)
    damage_is_found(place / "ring")
    what_cannot_be_proved_is_named(place)
    a_run_that_went_on_is_ok(place)
    a_rank_that_was_behind_may_lack_steps(place)
    rows_of_an_elastic_run_may_end_early(place)
    a_missed_step_of_an_elastic_run_is_counted(place)
    only_runs(place)
