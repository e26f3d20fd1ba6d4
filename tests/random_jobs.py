#!/usr/bin/env python3
"""random_jobs.py LOCKSTEP - draws jobs and stories at random, and compares each with
an oracle.

    --seed S       the seed (default 1); case N of a seed is always the same job.
                   "new" draws a seed and prints it
    --minutes M    how long to draw (default 1)
    --case N       only this case, with what it does; --case A..B: some
    --shrink       with --case: leave out settings while the case still fails
    --pairs        at the end, print which pairs of values were never drawn together
    --keep DIR     keep the folders of failed cases here

A job is a set of settings that `lockstep plan` accepts. A story is what happens to it:
nothing, a death with a restart, a real SIGKILL, SIGSTOP or SIGTERM of some process, a
stop and a resume, or a resume in another way. The oracle depends on what the settings
promise (PROMISES): the losses of one worker with the same global batch, or those of the
undisturbed job to the bit. Whatever happens, a job ends before its deadline, says why in
one line if it fails, leaves no process, and has every step of every rank once.

A case that fails prints one command that repeats it. Exit status 1 if a case failed.
"""

import argparse
import collections
import csv
import itertools
import json
import math
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

DEADLINE_S = 240  # for one job; its own timeout= is 60 s
MARK = "LOCKSTEP_RANDOM_JOB"  # in the environment of all processes of a job
FIRST = 10  # steps whose losses are compared: rounding grows with time


class Wrong(Exception):
    """What a case did that it must not do."""


# ---- drawing

def draw_size(rng):
    """A model and batches of odd sizes."""
    heads = rng.choice((1, 2, 3, 4, 5))
    return {"model": "nano", "layers": rng.randint(1, 5), "heads": heads,
            "channels": heads * rng.choice((2, 3, 4, 7, 8)),
            "context": rng.choice((5, 8, 11, 16, 17)),
            "vocab_size": rng.choice((256, 257, 263)), "batch": rng.randint(1, 4),
            "accum": rng.choice((1, 1, 2, 3, 4, 6)), "steps": rng.randint(4, 12)}


def draw_rule(rng):
    """How it trains."""
    job = {"threads": 1, "log": 0, "timeout": 60, "warmup": rng.randint(0, 3),
           "seed": rng.randint(1, 99), "lr": rng.choice((0.002, 0.0005)),
           "schedule": rng.choice(("constant", "cosine")),
           "clip": rng.choice((1, 1, 0, 0.05)), "recompute": rng.choice((0, 0, 1)),
           "dropout": rng.choice((0, 0, 0, 0.1)),
           "precision": rng.choice(("fp32", "fp32", "fp32", "bf16", "fp16")),
           "optimizer": rng.choice(("adamw", "adamw", "sgd")),
           "eval": rng.choice((0, 0, 2, 3)), "eval_batches": rng.choice((2, 3)),
           "trace": rng.choice(("on", "off")), "samples": rng.choice((0, 10))}
    if rng.random() < .6:
        job |= {"save": rng.randint(1, 4), "keep": rng.choice((0, 1, 2)),
                "save_async": rng.choice((0, 0, 1))}
    if rng.random() < .3:
        job["verify"] = rng.randint(1, 3)
    return job


def draw_mesh(rng):
    """A mesh of at most 8 workers."""
    while True:
        sizes = {"dp": rng.randint(1, 4), "pp": rng.randint(1, 4), "tp": rng.randint(1, 4)}
        if 1 < math.prod(sizes.values()) <= 8:
            words = [f"{k}{n}" for k, n in sizes.items() if n > 1 or rng.random() < .2]
            rng.shuffle(words)
            return ",".join(words)


def draw_way(rng):
    """How its workers agree."""
    sync = rng.choice(("local", "ring", "ring", "allreduce", "sps", "dps", "zero", "zero",
                       "outer", "dataparallel", "mesh", "mesh", "mesh"))
    job = {"sync": sync}
    if sync == "mesh":
        job = {"sync": rng.choice(("ring", "ring", "allreduce", "zero")),
               "mesh": draw_mesh(rng)}
        if "pp" in job["mesh"]:
            job |= {"pipeline": rng.choice(("1f1b", "gpipe", "naive")),
                    "ahead": rng.choice((0, 1))}
            if rng.random() < .25:
                job["chunks"] = 2
    elif sync != "local":
        job["workers"] = rng.choice((2, 2, 3, 4))
    if rng.random() < .4 and sync != "local":
        job["bucket_mb"] = rng.choice((0.001, 0.003, 0.01))
    if sync != "local":
        job["wire"] = rng.choice(("fp32", "fp32", "bf16", "fp16"))
        job["overlap"] = rng.choice((0, 1))
    if job["sync"] == "ring":
        job["transport"] = rng.choice(("tcp", "shm", "auto"))
    if sync in ("sps", "dps"):
        job |= {"consistency": rng.choice(("bsp", "bsp", "bsp", "ssp:1", "asp")),
                "update": rng.choice(("auto", "server", "worker")),
                "elastic": rng.choice((0, 0, 1)), "slice_kb": rng.choice((1, 4, 256)),
                "priority": rng.choice((0, 1))}
        if sync == "dps":
            job["servers"] = rng.randint(1, 3)
        if rng.random() < .15:
            job["backup"] = 1
    if job["sync"] == "zero":
        job |= {"shard": rng.choice((1, 2, 3)), "carrier": rng.choice(("ring", "library"))}
    if sync == "outer":
        job |= {"every": rng.choice((1, 2, 3)),
                "outer_rule": rng.choice(("average", "nesterov"))}
    return job


STORIES = ("quiet", "quiet", "death", "kill", "freeze", "term", "resume", "other way")
DEFAULTS = {"wire": "fp32", "overlap": 1, "clip": 1, "recompute": 0, "dropout": 0,
            "precision": "fp32", "optimizer": "adamw", "eval": 0, "trace": "on",
            "samples": 10, "save": 0, "keep": 2, "save_async": 0, "verify": 0,
            "consistency": "bsp", "elastic": 0, "backup": 0, "update": "auto",
            "priority": 1, "slice_kb": 256, "accum": 1, "batch": 1, "layers": 1,
            "heads": 1, "warmup": 0, "schedule": "constant", "bucket_mb": 0,
            "transport": "auto", "chunks": 1, "ahead": 0, "pipeline": "1f1b"}


class Lockstep:
    """The programs, and the text that all jobs train on."""

    def __init__(self, program, folder):
        self.program, self.folder = str(pathlib.Path(program).resolve()), folder
        words = random.Random(0)
        text = " ".join("".join(words.choices("etaoinshrdlu", k=words.randint(1, 9)))
                        for _ in range(20000))
        (folder / "text.txt").write_text(text)

    def words(self, job, **more):
        """key=value for each setting."""
        return [f"{k}={v}" for k, v in {"data": str(self.folder / "text.txt"), **job,
                                        **more}.items()]

    def plan(self, job):
        """What `lockstep plan` says of a job: an object with "error" if it is refused."""
        done = subprocess.run([self.program, "plan"], capture_output=True, text=True,
                              input=json.dumps(self.words(job)) + "\n", timeout=60,
                              check=True)
        return json.loads(done.stdout)

    def start(self, job, out, **more):
        """Starts a job. The caller waits for it by finish()."""
        log = open(f"{out}.txt", "w", encoding="utf-8")
        return subprocess.Popen(
            [self.program, "train", *self.words(job, out=out, **more)], stdout=log,
            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, MARK: str(out)})

    def finish(self, child, out):
        """Waits for the end. Returns (exit status, last line)."""
        try:
            status = child.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            who = [f"{p} {command(p)[:60]}" for p in processes(out)]
            for pid in processes(out):
                os.kill(pid, signal.SIGKILL)
            child.wait()
            raise Wrong(f"{out.name}: still there after {DEADLINE_S} s: {who}") from None
        patience = time.monotonic() + 20
        while (left := processes(out)) and time.monotonic() < patience:
            time.sleep(.1)
        if left:
            who = [f"{p} {command(p)[:60]}" for p in left]
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            raise Wrong(f"{out.name}: leaves processes: {who}")
        lines = pathlib.Path(f"{out}.txt").read_text(errors="replace").strip().split("\n")
        return status, lines[-1]

    def train(self, job, out, **more):
        """Runs a job that must succeed. Returns its rows by (step, rank)."""
        status, line = self.finish(self.start(job, out, **more), out)
        if status:
            raise Wrong(f"{out.name}: exit status {status}: {line}")
        self.verify(out)
        return rows_of(out)

    def verify(self, out):
        """What a job left that ended well proves that it did: `lockstep verify`."""
        done = subprocess.run([self.program, "verify", str(out)], capture_output=True,
                              text=True, timeout=DEADLINE_S, check=False)
        if done.returncode:
            lines = [line for line in done.stdout.split("\n") if line.startswith("WRONG")]
            raise Wrong(f"{out.name}: lockstep verify: {lines or done.stderr.strip()}")


def processes(out):
    """The processes of a job, by the mark in their environment."""
    want, found = f"{MARK}={out}".encode(), []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if want in (path / "environ").read_bytes().split(b"\0") and \
                    (path / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                found.append(int(path.name))
        except OSError:
            continue
    return found


def command(pid):
    """The command line of a process; "" if it has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


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


# ---- what settings promise

def sizes(job):
    """{"dp": .., "pp": .., "tp": ..} of a job."""
    found = {"dp": int(job.get("workers", 1)), "pp": 1, "tp": 1}
    if job.get("mesh"):
        found["dp"] = 1
        for word in job["mesh"].split(","):
            found[word[:2]] = int(word[2:])
    return found


def is_free(job):
    """Whether its workers need not be at the same step or have the same parameters."""
    return job.get("consistency", "bsp") != "bsp" or job.get("backup") or \
        job["sync"] == "outer"


# (what is promised, whether it holds for a job, the largest relative difference of two
# losses). The first that holds counts.
PROMISES = (
    ("nothing: workers differ between exchanges", is_free, None),
    ("nothing: each replica has its own dropout",
     lambda j: j["dropout"] and sizes(j)["dp"] > 1, None),
    ("the losses of one worker, within fp16's rounding of the model",
     lambda j: j["precision"] == "fp16", 2e-2),
    ("the losses of one worker, within bf16's rounding of the model",
     lambda j: j["precision"] == "bf16", 2e-2),
    ("the losses of one worker, within the rounding of a 16-bit wire",
     lambda j: j.get("wire", "fp32") != "fp32", 5e-3),
    ("the losses of one worker, within rounding", lambda j: True, 1e-4),
)


def promise(job):
    """(words, bound) of the first promise that holds."""
    return next((words, bound) for words, holds, bound in PROMISES if holds(job))


def oracle_of(job):
    """One worker with the same global batch."""
    dp = sizes(job)["dp"]
    alone = {k: v for k, v in job.items() if k in (
        "model", "layers", "heads", "channels", "context", "vocab_size", "batch", "steps",
        "threads", "log", "timeout", "warmup", "seed", "lr", "schedule", "clip",
        "dropout", "precision", "optimizer", "eval", "trace", "samples")}
    return {**alone, "sync": "local", "accum": job["accum"] * dp,
            "eval_batches": job["eval_batches"] * dp}


def losses(rows, column="loss"):
    """{step: mean over the ranks that have a value}."""
    found = collections.defaultdict(list)
    for (step, _), row in sorted(rows.items()):
        if row[column] != "":
            found[step].append(float(row[column]))
    return {step: sum(v) / len(v) for step, v in found.items()}


def compare_losses(rows, other, bound, steps, what):
    """The mean losses of two jobs are within a bound."""
    for column in "loss", "val_loss":
        mine, its = losses(rows, column), losses(other, column)
        for step in sorted(set(mine) & set(its) & set(steps)):
            a, b = mine[step], its[step]
            if not abs(a - b) <= bound * abs(b):
                raise Wrong(f"{column} of step {step} is {a:.9g}, {what} has {b:.9g}")


def compare_bits(rows, other, what):
    """All rows of two jobs have the same numbers."""
    if set(rows) != set(other):
        missing = sorted(set(other) - set(rows))[:3], sorted(set(rows) - set(other))[:3]
        raise Wrong(f"other steps and ranks than {what}: lacks {missing[0]}, has "
                    f"{missing[1]} in addition")
    for at in sorted(rows):
        for column in "loss", "val_loss", "grad_norm", "lr", "tokens":
            if rows[at][column] != other[at][column]:
                raise Wrong(f"{column} of step {at[0]}, rank {at[1]} is "
                            f"{rows[at][column]}, {what} has {other[at][column]}")


def check_rows(job, rows, out):
    """Every step of every rank, numbers that are numbers, bytes that are the law's."""
    world = math.prod(sizes(job).values())
    want = {(s, r) for s in range(1, job["steps"] + 1) for r in range(world)}
    if not is_free(job) and set(rows) != want:
        raise Wrong(f"{out.name}: lacks rows {sorted(want - set(rows))[:3]}, has "
                    f"{sorted(set(rows) - want)[:3]} in addition")
    for at, row in rows.items():
        if not math.isfinite(float(row["loss"])):
            raise Wrong(f"{out.name}: loss of step {at[0]}, rank {at[1]} is {row['loss']}")
    run = json.loads((out / "run.json").read_text())
    summary = json.loads((out / "summary.json").read_text())
    law = run["law"]["bytes_tx"]
    # A library does not report what it sends. Blocks that an evaluation or verify= gathers are
    # still there in the next step, and so are those of a step that was skipped. In
    # shared memory a short vector takes one round, in which all copies are read.
    uncounted = is_free(job) or job.get("elastic") or job["sync"] == "allreduce" or \
        job.get("carrier") == "library" or any(r["skipped"] != "0" for r in rows.values()) \
        or (run["transport"] == "shm" and run["model"]["parameters"] < 8192) \
        or (job.get("shard", 1) > 1 and (job["eval"] or job.get("verify")))
    if law is not None and not uncounted:
        counted = sum(float(r["bytes_tx"]) for r in rows.values()) / job["steps"] / world
        # norms, flags and checks of verify= are small vectors beside the law
        if not law <= counted * (1 + 1e-9) or counted > law + 4096 + .02 * law:
            raise Wrong(f"{out.name}: {counted:.1f} bytes a worker and step, the law says "
                        f"{law:.1f}")
    steps = job["steps"] - sum(r["skipped"] != "0" for at, r in rows.items() if not at[1])
    if abs(summary["tokens"] - steps * job["batch"] * job["accum"] * job["context"]
           * sizes(job)["dp"]) > .5 and not is_free(job):
        raise Wrong(f"{out.name}: summary.json has {summary['tokens']} tokens")
    if job.get("save"):
        last = out / (out / "latest").read_text().strip()
        if not (last / "state.json").exists():
            raise Wrong(f"{out.name}: latest names {last.name}, which is no checkpoint")


# ---- stories

def is_alive(pid):
    return command(pid) != ""


def some_process(rng, out, words):
    """A process of a job whose command has one of the words, or None."""
    found = [p for p in sorted(processes(out)) if any(w in command(p) for w in words)]
    return rng.choice(found) if found else None


def wait_for_rows(child, out, rng, steps):
    """Waits until the job has made some steps. Returns whether it still runs."""
    until = time.monotonic() + DEADLINE_S
    want = rng.randint(0, max(0, steps - 2))
    while child.poll() is None and time.monotonic() < until:
        for path in (out / "steps.csv", out / "steps.0.csv"):
            if path.exists() and path.read_bytes().count(b"\n") > want:
                return True
        time.sleep(.005)
    return child.poll() is None


def disturb(case, rng, how):
    """A signal to some process of a job with restarts=, or to one without."""
    out, job = case.folder / how, dict(case.job)
    if not job.get("save"):
        job["save"] = 2 * job.get("every", 1)
    job["restarts"] = 3
    child = case.lockstep.start(job, out)
    if wait_for_rows(child, out, rng, job["steps"]):
        time.sleep(rng.random() * .05)
        pid = some_process(rng, out, ("trainer", "ps_server"))
        try:
            if pid and how == "kill":
                os.kill(pid, signal.SIGKILL)
            elif pid:
                os.kill(pid, signal.SIGSTOP)
                time.sleep(rng.uniform(.1, 3))
                os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass
    status, line = case.lockstep.finish(child, out)
    if status:
        raise Wrong(f"{how}: exit status {status}: {line}")
    case.lockstep.verify(out)
    return job, rows_of(out)


def tell(case, rng):
    """Tells the story of a case: raises Wrong if it ends badly."""
    lockstep, job, folder = case.lockstep, case.job, case.folder
    rows = lockstep.train(job, folder / "job")
    check_rows(job, rows, folder / "job")
    words, bound = promise(job)
    if bound is not None and not any(r["skipped"] != "0" for r in rows.values()):
        alone = lockstep.train(oracle_of(job), folder / "alone")
        if not any(r["skipped"] != "0" for r in alone.values()):
            compare_losses(rows, alone, bound, range(1, FIRST + 1), "one worker")
    same = not is_free(job) and not job.get("elastic")  # a rerun has the same bits
    if case.story == "death" and not is_free(job) and not job.get("elastic"):
        world = math.prod(sizes(job).values())
        out, more = folder / "death", dict(job)
        more |= {"save": job.get("save") or 2, "restarts": 1,
                 "inject": f"kill:{rng.randint(1, job['steps'])}",
                 "inject_rank": rng.randrange(world)}
        if job["sync"] == "local" or "error" in lockstep.plan(more):
            return
        compare_bits(lockstep.train(more, out), rows, "the undisturbed job")
    elif case.story in ("kill", "freeze") and not job.get("elastic"):
        _, found = disturb(case, rng, case.story)
        if same:
            compare_bits(found, rows, "the undisturbed job")
    elif case.story == "term":
        out = folder / "term"
        more = {**job, "save": job.get("save") or 2 * job.get("every", 1),
                "steps": job["steps"] + 20}
        child = lockstep.start(more, out)
        if wait_for_rows(child, out, rng, job["steps"]):
            child.send_signal(rng.choice((signal.SIGTERM, signal.SIGINT)))
        status, line = lockstep.finish(child, out)
        if status == 0 and not (out / "summary.json").exists():
            raise Wrong(f"term: exit status 0 without a summary: {line}")
        whole = lockstep.train(more, folder / "whole")
        found = lockstep.train(more, out, resume="auto")
        if same:
            compare_bits(found, whole, "the job that nobody stopped")
    elif case.story == "resume" and job.get("save") and job["steps"] > job["save"]:
        marks = sorted((folder / "job").glob("checkpoint-*"),
                       key=lambda p: int(p.name.rpartition("-")[2]))
        mark = rng.choice(marks)
        found = lockstep.train(job, folder / "resumed", resume=mark) \
            if int(mark.name.rpartition("-")[2]) < job["steps"] else {}
        if same and found:
            late = {at: row for at, row in rows.items() if at in found}
            compare_bits(found, late, "the job that was not resumed")
    elif case.story == "other way" and job.get("save") and not is_free(job):
        other_way(case, rng, rows)


def other_way(case, rng, rows):
    """A checkpoint goes on in another way with the same global batch."""
    job, total = case.job, case.job["accum"] * sizes(case.job)["dp"]
    marks = [p for p in (case.folder / "job").glob("checkpoint-*")
             if int(p.name.rpartition("-")[2]) < job["steps"]]
    if not marks or job["dropout"]:
        return
    rule = {k: v for k, v in oracle_of(job).items() if k not in ("sync", "accum")}
    for _ in range(40):
        other = {**rule, **draw_way(rng)}
        dp = sizes(other)["dp"]
        if total % dp or is_free(other) or other.get("elastic"):
            continue
        other |= {"accum": total // dp, "eval_batches": 2}
        if "error" not in case.lockstep.plan(other):
            break
    else:
        return
    case.second = other
    if "mesh" in job and "mesh" not in other:
        other["mesh"] = ""  # or it stays
    if "mesh" in other and "workers" in job:
        other["workers"] = math.prod(sizes(other).values())
    found = case.lockstep.train(other, case.folder / "other", resume=rng.choice(marks))
    bounds = [promise(j)[1] for j in (job, other)]
    late = {at: row for at, row in found.items()}
    skips = any(r["skipped"] != "0" for r in [*rows.values(), *found.values()])
    if None not in bounds and not skips:
        first = {at: {**row, "val_loss": ""} for at, row in late.items()}
        compare_losses(first, {at: {**r, "val_loss": ""} for at, r in rows.items()},
                       2 * max(bounds), range(1, FIRST + 1), "the job that went on")


# ---- cases

class Case:
    """Case N of a seed."""

    def __init__(self, lockstep, seed, number):
        self.lockstep, self.seed, self.number, self.second = lockstep, seed, number, None
        self.rng = random.Random(f"{seed}/{number}")
        self.refused = collections.Counter()
        while True:
            self.job = {**draw_size(self.rng), **draw_rule(self.rng), **draw_way(self.rng)}
            self._no_unread()
            plan = lockstep.plan(self.job)
            if "error" not in plan:
                break
            self.refused[plan["error"]] += 1
        self.story = self.rng.choice(STORIES)

    def _no_unread(self):
        """Leaves out what its way does not read, so that more draws are accepted."""
        for _ in range(30):
            plan = self.lockstep.plan(self.job)
            unread = [k for k in self.job if f"{k}=" in plan.get("error", "").split(":")[0]
                      or plan.get("error", "").startswith(f"{k} ")]
            unread = [k for k in unread if k not in ("sync", "mesh", "model", "batch")]
            if not unread:
                return
            del self.job[unread[0]]

    def run(self):
        """None, or what went wrong."""
        self.folder = pathlib.Path(tempfile.mkdtemp(
            prefix=f"case-{self.number}-", dir=self.lockstep.folder))
        try:
            tell(self, random.Random(f"{self.seed}/{self.number}/story"))
            return None
        except Wrong as why:
            return str(why)
        except (OSError, KeyError, ValueError) as why:
            return f"{type(why).__name__}: {why}"

    def values(self):
        """The values that it drew, for counting pairs."""
        job, axes = self.job, sizes(self.job)
        found = {"sync": job["sync"], "story": self.story, **axes}
        for key in ("precision", "wire", "overlap", "recompute", "optimizer", "clip",
                    "save_async", "verify", "shard", "transport", "consistency", "elastic",
                    "update", "carrier", "pipeline", "schedule"):
            if key in job:
                found[key] = job[key]
        return {f"{k}={v}" for k, v in found.items()}

    def __str__(self):
        return f"{self.story}: " + " ".join(f"{k}={v}" for k, v in self.job.items())


def shrink(case):
    """Leaves out settings while the case still fails. Prints what is left."""
    why = case.run()
    if not why:
        print("it does not fail")
        return
    for key in list(case.job):
        if key in DEFAULTS and case.job[key] != DEFAULTS[key]:
            before = dict(case.job)
            case.job[key] = DEFAULTS[key]
            if "error" in case.lockstep.plan(case.job) or not (now := case.run()):
                case.job = before
            else:
                why = now
    print(f"still fails: {why}\n{case}")


def main():
    """Draws cases until the time is over."""
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("lockstep")
    p.add_argument("--seed", default="1")
    p.add_argument("--minutes", type=float, default=1)
    p.add_argument("--case", default="")
    p.add_argument("--shrink", action="store_true")
    p.add_argument("--pairs", action="store_true")
    p.add_argument("--keep", default="")
    a = p.parse_args()
    if a.seed == "new":
        a.seed = str(random.SystemRandom().randrange(10 ** 6))
        print(f"seed {a.seed}", flush=True)
    first, _, last = a.case.partition("..")
    numbers = range(int(first), int(last or first) + 1) if a.case else itertools.count(1)
    until = time.monotonic() + 60 * a.minutes
    failed, ran, drawn, values = 0, 0, collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory(prefix="lockstep-random-") as name:
        lockstep = Lockstep(a.lockstep, pathlib.Path(name))
        for number in numbers:
            if not a.case and time.monotonic() > until:
                break
            case = Case(lockstep, a.seed, number)
            if a.shrink:
                shrink(case)
                break
            why = case.run()
            ran += 1
            if a.case or why:
                print(f"case {number}: {case}" + (
                    "\n  then " + " ".join(f"{k}={v}" for k, v in case.second.items())
                    if case.second else ""), flush=True)
            if why:
                failed += 1
                print(f"  FAILED: {why}\n  again: tests/random_jobs.py {a.lockstep} --seed "
                      f"{a.seed} --case {number}", flush=True)
                if a.keep:
                    shutil.copytree(case.folder, pathlib.Path(a.keep) /
                                    f"seed-{a.seed}-case-{number}", dirs_exist_ok=True)
            shutil.rmtree(case.folder, ignore_errors=True)
            values.update(case.values())
            drawn.update(itertools.combinations(sorted(case.values()), 2))
        if a.pairs:
            keys = sorted(values)
            never = [f"{x} with {y}" for x, y in itertools.combinations(keys, 2)
                     if x.split("=")[0] != y.split("=")[0] and not drawn[x, y]]
            print(f"{len(drawn)} pairs drawn; {len(never)} never:", *never, sep="\n  ")
    print(f"seed {a.seed}: {ran} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
