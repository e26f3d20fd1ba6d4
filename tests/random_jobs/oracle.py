"""Compares what jobs left with each other, and with what their settings promise."""

import array
import collections
import csv
import json
import math
import struct

from promise import LEAST, ONE_WORKER, STEPS, first, is_loose, sizes, world
from run import Wrong

SPARE = 4 << 20  # bytes that a process of a tiny job may take beyond its forecast
COLUMNS = ("loss", "val_loss", "grad_norm", "lr", "tokens")


# ---- rows

def rows_of(out):
    """{(step, rank): row} of steps.csv. Each is there once."""
    rows = {}
    with open(out / "steps.csv", newline="", encoding="utf-8") as f:
        for row in csv.DictReader(f):
            at = int(row["step"]), int(row["rank"])
            if at in rows:
                raise Wrong(f"{out.name}: step {at[0]} of rank {at[1]} stands twice")
            rows[at] = row
    return rows


def skips(rows):
    """Whether a step was skipped because of an overflow."""
    return any(r["skipped"] != "0" for r in rows.values())


def means(rows, column):
    """{step: mean over the ranks that have a value}."""
    found = collections.defaultdict(list)
    for (step, _), row in sorted(rows.items()):
        if row[column] != "":
            found[step].append(float(row[column]))
    return {step: sum(v) / len(v) for step, v in found.items()}


def compare_means(rows, other, bounds, what):
    """The means of columns of two jobs differ by a share of at most their bounds."""
    for column, bound in bounds.items():
        mine, its = means(rows, column), means(other, column)
        for step in sorted(set(mine) & set(its) & set(range(1, STEPS + 1))):
            a, b = mine[step], its[step]
            if not abs(a - b) <= bound * abs(b):
                raise Wrong(f"{column} of step {step} is {a:.9g}, {what} has {b:.9g}")


def compare_bits(rows, other, what):
    """All rows of two jobs have the same numbers. Where only one of the two was
    evaluated, there is nothing to compare."""
    if set(rows) != set(other):
        missing = sorted(set(other) - set(rows))[:3], sorted(set(rows) - set(other))[:3]
        raise Wrong(f"other steps and ranks than {what}: lacks {missing[0]}, has "
                    f"{missing[1]} in addition")
    for at in sorted(rows):
        for column in COLUMNS:
            a, b = rows[at][column], other[at][column]
            if a != b and (column != "val_loss" or a and b):
                raise Wrong(f"{column} of step {at[0]}, rank {at[1]} is {a}, {what} has "
                            f"{b}")


# ---- checkpoints

def latest(out):
    """The newest checkpoint of a run; None if there is none."""
    path = out / "latest"
    return out / path.read_text().strip() if path.exists() else None


def compare_files(out, other, what):
    """The newest checkpoints of two runs have the same numbers, to the bit."""
    a, b = latest(out), latest(other)
    if not a or not b:
        return
    if a.name != b.name:
        raise Wrong(f"{out.name}: the newest checkpoint is {a.name}, {what} has {b.name}")
    for name in "model.safetensors", "optimizer.safetensors":
        files = [(p / name).read_bytes() if (p / name).exists() else b"" for p in (a, b)]
        if files[0] != files[1]:
            raise Wrong(f"{a.name}/{name} differs from that of {what}")


def tensors(path):
    """{name: numbers} of a safetensors file in fp32."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    head, found = json.loads(data[8:8 + size]), {}
    for name, at in head.items():
        if name != "__metadata__" and at["dtype"] == "F32":
            begin, end = at["data_offsets"]
            found[name] = array.array("f", data[8 + size + begin:8 + size + end])
    return found


def rms(numbers):
    """The root mean square."""
    return math.sqrt(sum(x * x for x in numbers) / max(1, len(numbers)))


def _pair(out, other, file, what):
    """The tensors of a file of the newest checkpoints of two runs; ({}, {}) if one has
    none. One worker has no residuals of what it did not send."""
    pair = [p / file for p in (latest(out), latest(other))]
    if not all(p.exists() for p in pair):
        return {}, {}
    mine, its = map(tensors, pair)
    other = {n for n in set(mine) ^ set(its) if not n.startswith("residual")}
    if other:
        raise Wrong(f"{file} has other tensors than that of {what}: {sorted(other)[:3]}")
    return mine, {name: its[name] for name in its if name in mine}


def _largest(sizes_of):
    """{kind: the size of the largest tensor}, of {name: size}. Kinds are weight, bias."""
    found = collections.defaultdict(float)
    for name, size in sizes_of.items():
        kind = name.rpartition(".")[2]
        found[kind] = max(found[kind], size)
    return found


def compare_tensors(out, other, file, bound, what):
    """The numbers of a file of two runs are the same within rounding. Where a gradient is
    0 but for rounding, as that of the bias of keys, a share of the largest tensor
    counts."""
    mine, its = _pair(out, other, file, what)
    largest = _largest({name: rms(numbers) for name, numbers in its.items()})
    for name, numbers in sorted(its.items()):
        far = rms([a - b for a, b in zip(mine[name], numbers)])
        size = max(rms(numbers), LEAST * largest[name.rpartition(".")[2]])
        if not far <= bound * size:
            raise Wrong(f"{name} of {latest(out).name} is {far:.3g} from that of {what}, "
                        f"whose numbers are {size:.3g}")


def compare_moves(job, out, other, bound, what):
    """AdamW has moved the parameters of two runs to the same places, but for a share of
    what lr= allows. Those count whose gradients are no rounding."""
    mine, its = _pair(out, other, "model.safetensors", what)
    squares = _pair(out, other, "optimizer.safetensors", what)[1]
    squares = {name.partition(".")[2]: numbers for name, numbers in squares.items()
               if name.startswith("exp_avg_sq.")}
    largest = _largest({name: math.sqrt(sum(v) / len(v)) for name, v in squares.items()})
    for name, v in squares.items():
        least = (LEAST * largest[name.rpartition(".")[2]]) ** 2
        far = rms([a - b for a, b, square in zip(mine[name], its[name], v)
                   if square > least])
        if not far <= bound * job["lr"] * job["steps"]:
            raise Wrong(f"{name} of {latest(out).name} is {far:.3g} from that of {what}; "
                        f"lr= allows {job['lr'] * job['steps']:.3g}")


# ---- one run

# What a library's carriers count of a verb, as a share of what a ring of n moves: the
# elements that they give it (allreduce/operands.h).
GIVEN = {"all_reduce": lambda n: n / (2 * (n - 1)), "reduce_scatter": lambda n: n / (n - 1),
         "all_gather": lambda n: 1 / (n - 1)}
SHORT = 2048  # elements: in shared memory all copies of such a vector are read at once


def _times_law(job, run, law):
    """The least and the most bytes that the replicas may count for each of the law's."""
    size = sizes(job)
    n, parts = size["dp"] * size["cp"] * size["up"], size["pp"] * size["tp"]
    if n > 1 and run["transport"] == "mpi" and job["sync"] not in ("sps", "dps"):
        given = sum(b * GIVEN.get(v, lambda n: 1)(n) for v, b in law["by_verb"].items())
        return (given / law["bytes_tx"],) * 2
    if job.get("backup"):  # a gradient that comes too late is not counted
        return 0, 1
    if is_loose(job) and job["sync"] == "dps":
        return 0.5, 1  # nor what a server beside a worker sends after the worker's end
    cut = job.get("bucket_mb") or job["sync"] == "zero" or \
        job.get("bucket") == "block" or job.get("squeeze") == "power" or \
        job.get("scope") == "tensor"
    short = cut or run["model"]["parameters"] <= SHORT * parts
    return 1, n / 2 if run["transport"] == "shm" and n > 2 and short else 1


def _times_slices(job):
    """The same of slices, whose exchanges stay in shared memory unless transport=tcp."""
    t = sizes(job)["tp"]
    return 1, t / 2 if t > 2 and job.get("transport") != "tcp" else 1


def _plain_steps(job, rows):
    """The steps that send what the law says. A step that is skipped sends less. With
    shard=3 blocks that an evaluation, verify= or a skipped step has gathered are still
    there in the next step."""
    skipped = {step for (step, _), row in rows.items() if row["skipped"] != "0"}
    found = set(range(1, job["steps"] + 1)) - skipped
    if job.get("shard", 1) == 3:
        found -= {step + 1 for step in skipped}
        for key in "eval", "verify":
            if job.get(key):
                found -= {step + 1 for step in range(job[key], job["steps"], job[key])}
    return found


def _compare_bytes(job, rows, law, column, bounds, what):
    """The mean of all workers and steps. If some steps are not plain, the mean of the
    workers in each other one; not where the end of a step may be counted in the next, or
    the law is a mean of different steps."""
    steps, sums = _plain_steps(job, rows), collections.Counter()
    for (step, _), row in rows.items():
        sums[step] += float(row[column] or 0) / world(job)
    if len(steps) == job["steps"]:
        sums, steps = {"all": sum(sums.values()) / job["steps"]}, {"all"}
    elif column == "bytes_tx" and (is_loose(job) or job["sync"] in ("outer", "zero") and
                                   job.get("shard") != 3 or
                                   job.get("squeeze_after") or job.get("freeze")):
        return
    for step in steps:
        least, most = (law * bound for bound in bounds)
        if not least * (1 - 1e-9) <= sums[step] <= most * (1 + 1e-9):
            raise Wrong(f"{what}: {column} of step {step} is {sums[step]:.1f} bytes a "
                        f"worker, the law says {least:.1f}" +
                        (f" to {most:.1f}" if most > least else ""))


def _check_bytes(job, rows, run, out):
    """All bytes are those of the law."""
    law = run["law"]
    if law["bytes_tx"]:
        _compare_bytes(job, rows, law["bytes_tx"], "bytes_tx", _times_law(job, run, law),
                       out.name)
    for column, bounds in ("stage_tx", (1, 1)), ("slice_tx", _times_slices(job)), \
            ("piece_tx", (1, 1)):
        _compare_bytes(job, rows, law[column] or 0, column, bounds, out.name)


def _check_memory(summary, out):
    forecast = summary["predicted_memory_bytes"] + \
        summary["predicted_memory"].get("mapped_bytes", 0)
    if summary["peak_memory_bytes"] > forecast + SPARE:
        raise Wrong(f"{out.name}: took {summary['peak_memory_bytes']} bytes, the forecast "
                    f"was {forecast}")


def check_saved(job, out):
    """The newest checkpoints of save= and keep=, and no others."""
    every, keep = job.get("save", 0), job.get("keep", 2)
    steps = sorted({*range(every, job["steps"] + 1, every), job["steps"]}) if every else []
    want = {f"checkpoint-{step}" for step in steps[-keep if keep else 0:]}
    found = {p.name for p in out.glob("checkpoint-*") if "aside" not in p.name}
    if not is_loose(job) and found != want:
        raise Wrong(f"{out.name}: lacks {sorted(want - found)}, has {sorted(found - want)} "
                    "in addition")


def check_ranks(job, rows, out):
    """All ranks have the norm of the same sum, and the same learning rate."""
    if is_loose(job) or job["sync"] == "outer":
        return
    first_of = {}
    for (step, rank), row in sorted(rows.items()):
        mine = row["grad_norm"], row["lr"]
        if first_of.setdefault(step, mine) != mine:
            raise Wrong(f"{out.name}: norm and rate of step {step}, rank {rank} are {mine}, "
                        f"another rank has {first_of[step]}")


def _check_bound(job, rows, run, out):
    """Under ssp:K each other worker may push S + K times before a worker pushes the S-th
    time. The lag of a step counts those pushes since the step before, if all parameters
    are one row; of several rows it is the largest, which may count a push twice."""
    kind, _, bound = job.get("consistency", "bsp").partition(":")
    one_row = run["way"]["servers"] == 1 and \
        4 * run["model"]["parameters"] <= 1024 * job.get("slice_kb", 256)
    came = collections.Counter()
    for (step, rank), row in sorted(rows.items()):
        came[rank] += int(row["lag"])
        most = (world(job) - 1) * (step + int(bound or 0))
        if kind == "ssp" and (one_row or step == 1) and came[rank] > most:
            raise Wrong(f"{out.name}: {came[rank]} updates came before push {step} of rank "
                        f"{rank}, {most} may")


def check_run(job, out):
    """Every step of every rank, finite losses, bytes of the law, memory of the forecast,
    all tokens and checkpoints. Returns the rows."""
    rows = rows_of(out)
    want = {(s, r) for s in range(1, job["steps"] + 1) for r in range(world(job))}
    if not is_loose(job) and set(rows) != want:
        raise Wrong(f"{out.name}: lacks rows {sorted(want - set(rows))[:3]}, has "
                    f"{sorted(set(rows) - want)[:3]} in addition")
    for at, row in rows.items():
        if not math.isfinite(float(row["loss"])):
            raise Wrong(f"{out.name}: loss of step {at[0]}, rank {at[1]} is {row['loss']}")
    run = json.loads((out / "run.json").read_text())
    summary = json.loads((out / "summary.json").read_text())
    _check_bytes(job, rows, run, out)
    _check_memory(summary, out)
    check_ranks(job, rows, out)
    _check_bound(job, rows, run, out)
    check_saved(job, out)
    steps = job["steps"] - sum(r["skipped"] != "0" for at, r in rows.items() if not at[1])
    tokens = steps * job["batch"] * job["accum"] * job["context"] * sizes(job)["dp"]
    if not is_loose(job) and abs(summary["tokens"] - tokens) > .5:
        raise Wrong(f"{out.name}: summary.json has {summary['tokens']} tokens, not {tokens}")
    return rows


# ---- one worker with the same global batch

def alone(job):
    """The settings of one worker with the same global batch."""
    dp = sizes(job)["dp"]
    found = {k: job[k] for k in (
        "model", "layers", "heads", "channels", "context", "vocab_size", "batch", "steps",
        "threads", "log", "timeout", "warmup", "seed", "lr", "schedule", "clip",
        "dropout", "precision", "optimizer", "momentum", "eps", "eval", "trace",
        "samples") if k in job}
    return {**found, "sync": "local", "accum": job["accum"] * dp,
            "eval_batches": job["eval_batches"] * dp}


def compare_alone(lockstep, job, rows, out):
    """Trains with one worker what a job promises to equal, and compares."""
    bounds, what = first(ONE_WORKER, job), "one worker"
    if bounds.loss is None or skips(rows):
        return
    one = out.parent / "alone"
    lockstep.train({**alone(job), "save": job["steps"]}, one)
    other = rows_of(one)
    if skips(other):
        return
    compare_means(rows, other, {"loss": bounds.loss, "val_loss": bounds.loss}, what)
    if bounds.norm is not None:
        compare_means(rows, other, {"grad_norm": bounds.norm}, what)
    if bounds.state is None or not job.get("save") or job["steps"] > STEPS:
        return
    compare_tensors(out, one, "optimizer.safetensors", bounds.state, what)
    if job["optimizer"] == "sgd":
        compare_tensors(out, one, "model.safetensors", bounds.state / 10, what)
    else:
        compare_moves(job, out, one, bounds.moves, what)
