#!/usr/bin/env python3
"""compare_builds.py OLD_BIN NEW_BIN - compares the training results of two builds.

It tests that a change does not change results. Both builds train the same tiny jobs with
every backend, on one machine. Two jobs are equal if every checkpoint has the same model,
optimizer and state files, and if steps.csv has the same losses, gradient norms, loss
scales, skipped steps, bytes and header bytes for each worker and step. Two jobs that both
end with an error are equal, too. A resumed job saves with one backend and goes on with
another; there the new build also resumes the old build's checkpoint.

Servers over ZeroMQ send a ping to every worker twice a second, and the number of other
messages without data between workers and servers depends on who comes first, on a busy
machine. So their header bytes are compared modulo 64, the bytes of such a message.

    --quick         jobs that cover all pairs of settings; default: all triples
    --all           all combinations of four settings; this takes hours
    --only WORD     only jobs with this setting, as sync=ring; may be repeated
    --allow NAME    do not compare this column of steps.csv or this file;
                    "NAME SETTING ..": only in jobs with these settings
    --also WORD     a setting for all jobs, as device=cuda
    --job WORDS     this job instead, as "sync=zero workers=2"; may be repeated
    --rounding R    for builds for two kinds of processors: losses and norms of gradients
                    may differ by this part of their values. All other columns must be
                    equal. The numbers of models and optimizers are not compared
    --jobs N        number of jobs that run at the same time, 1 or 2 (default 2)
    --list          print the jobs, and run none

BIN is a folder of programs, build/release/bin. Exit status 0: all are equal.
"""

import argparse
import concurrent.futures
import csv
import hashlib
import itertools
import json
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
DEADLINE_S = 900  # for one training job
PINGED, PING_BYTES = ("head_rx", "head_tx"), 64
STEPS, SAVE = 4, 2
BASE = ("batch=2 warmup=1 threads=1 trace=off samples=0 log=0 keep=0 "
        f"save={SAVE} steps={STEPS}").split()
FILES = ["model.safetensors", "optimizer.safetensors", "state.json"]
COLUMNS = ["tokens", "loss", "lr", "grad_norm", "loss_scale", "skipped",
           "dropped", "val_loss"]
COUNTS = ("bytes_", "head")  # also all columns that begin so
ROUNDED = ["loss", "grad_norm", "val_loss"]

# A factor is a list of values; a value is one or more settings.
WORKERS = ["workers=1", "workers=2", "workers=3", "workers=4"]
NANO = "model=nano context=16"
TINY = ("model=nano layers=1 heads=3 channels=36 context=15 "
        "vocab_size=257")  # not a multiple of 2, 3 or 4 parameters
THREE_LAYERS = TINY.replace("layers=1", "layers=3")  # for stages
COMPUTE = [
    [NANO, TINY],
    ["accum=1", "accum=3"],
    ["clip=0", "clip=0.5"],
    ["precision=fp32", "precision=bf16", "precision=fp16 inject=inf:2",
     "precision=fp16 loss_scale=64 inject=nan:3"],
    ["optimizer=adamw", "optimizer=sgd"],
    ["eval=0", "eval=2 eval_batches=1 verify=1"],
    ["overlap=1", "overlap=0"],
    ["staging=auto", "staging=always"],
    ["", "bucket_mb=0.05"],
]
WIRE = ["wire=fp32", "wire=fp16", "wire=bf16"]
RING = [WORKERS, WIRE, ["", "bucket_mb=0.01"], ["slice_kb=256", "slice_kb=4"]]
SERVERS = [WORKERS, WIRE, ["server_threads=1", "server_threads=2"],
           ["priority=1", "priority=0"], ["slice_kb=256", "slice_kb=4"]]
UPDATE = ["update=server", "update=worker"]
ELASTIC = UPDATE + ["update=server elastic=1"]
SHARDS = ["", "servers=1", "servers=3"]
CARRIERS = ["transport=tcp", "transport=shm", "transport=library"]
TRANSPORTS = CARRIERS[:2]
ZERO = [WORKERS, WIRE, CARRIERS, ["", "bucket_mb=0.1"],
        ["slice_kb=256", "slice_kb=4"]]
MESH = [WIRE, ["", "sync=zero", "sync=allreduce"]]  # the last sync= counts
STAGES = ["pipeline=1f1b", "pipeline=1f1b ahead=1", "pipeline=gpipe",
          "pipeline=naive"]
ROWS = ["tp_sequence=0", "tp_sequence=1"]
WAYS = {
    "local": [],
    "ring transport=tcp": RING,
    "ring transport=shm": RING,
    "allreduce": [WORKERS, WIRE, ["algorithm=ring", "algorithm=halving",
                                  "algorithm=doubling", "algorithm=tree",
                                  "algorithm=library"]],
    "sps transport=zmq": SERVERS + [ELASTIC],
    "sps transport=mpi": SERVERS + [UPDATE],
    "dps transport=zmq": SERVERS + [ELASTIC, SHARDS],
    "dps transport=mpi": SERVERS + [UPDATE, SHARDS],
    "zero shard=1": ZERO,
    "zero shard=2": ZERO,
    "zero shard=3": ZERO,
    "outer": [WORKERS, WIRE, CARRIERS, ["every=1", "every=2"],
              ["", "outer_lr=0.5 outer_momentum=0.9"]],
    "dataparallel": [WORKERS, TRANSPORTS],
    "lab": [["workers=2", "workers=3"], TRANSPORTS],
    "ring mesh=pp2": MESH + [STAGES],
    "ring mesh=tp2": MESH + [ROWS],
    "ring mesh=dp2,pp2,tp2": MESH + [STAGES, ROWS],
    "ring mesh=cp2": MESH + [["attention_over=gather", "attention_over=ring",
                              "attention_over=heads"]],
    "ring squeeze=": [WORKERS, TRANSPORTS, [
        "squeeze=topk density=0.05", "squeeze=topk scope=model",
        "squeeze=topk optimizer=sgd momentum_correction=1", "squeeze=int8",
        "squeeze=sign", "squeeze=power squeeze_rank=2"],
        ["feedback=1", "feedback=0"], ["", "squeeze_after=2"]],
    "dps squeeze=": [WORKERS, SHARDS, [
        "squeeze=topk density=0.05", "squeeze=int8", "squeeze=sign"]],
}

# For every backend: many settings that are not the default, together.
RARE = [
    *(f"{wire} {TINY} accum=3 clip=0.5 precision=fp16 overlap=0 staging=always"
      for wire in WIRE),
    f"wire=fp16 {NANO} accum=3 clip=0.5 precision=fp16 overlap=0 "
    "staging=always bucket_mb=0.05 inject=inf:3",
    f"wire=bf16 {NANO} accum=2 clip=0.5 precision=bf16 staging=always",
]

# The results are deterministic with one worker only.
ALONE = ["consistency=asp", "consistency=ssp:0", "consistency=ssp:2"]

# For every backend: jobs that end with an error after they have begun.
FAULTS = ["inject=nan:3", "inject=kill:2"]

REFUSED = [
    "sync=local workers=2", "sync=local wire=fp16", "sync=ring wire=int8",
    "sync=ring workers=2 update=worker", "sync=ring workers=2 servers=2",
    "sync=ring workers=2 transport=mpi", "sync=ring workers=2 algorithm=tree",
    "sync=allreduce workers=2 transport=shm", "sync=sps workers=2 servers=2",
    "sync=sps workers=2 transport=tcp", "sync=dps workers=2 algorithm=ring",
    "sync=dps workers=2 consistency=ssp", "sync=sps workers=2 backup=2",
    "sync=sps workers=2 consistency=asp update=worker",
    "sync=dps workers=2 elastic=1 transport=mpi",
    "sync=ring workers=2 staging=never", "sync=none",
]

# Each job saves at step 2 with the first settings, and goes on with the second. The
# second name everything that changes, because a build may take all other settings from
# the run that is resumed.
RESUMED = [
    ("sync=ring transport=tcp workers=3 wire=fp16",
     "sync=sps transport=zmq workers=3 wire=fp32 update=server"),
    ("sync=sps transport=zmq workers=2 update=server",
     "sync=ring transport=shm workers=4"),
    ("sync=dps transport=zmq workers=3 update=server",
     "sync=allreduce workers=2 accum=2"),
    ("sync=allreduce workers=3", "sync=dps transport=zmq workers=3 "
                                 "update=worker wire=bf16"),
    ("sync=local", "sync=ring transport=shm workers=4 staging=always"),
    ("sync=ring transport=shm workers=2", "sync=local workers=1"),
    ("sync=dps transport=mpi workers=2 update=worker",
     "sync=dps transport=mpi workers=3 update=server servers=1"),
    ("sync=sps transport=mpi workers=2 update=server",
     "sync=ring transport=tcp workers=2 overlap=0"),
    ("sync=ring transport=tcp workers=3 precision=fp16 inject=inf:2",
     "sync=dps transport=zmq workers=3 precision=fp16 wire=fp16"),
    ("sync=dps transport=zmq workers=4 optimizer=sgd update=server",
     "sync=ring transport=tcp workers=3 optimizer=sgd"),
    ("sync=sps transport=zmq workers=2 optimizer=sgd update=worker",
     "sync=sps transport=zmq workers=3 optimizer=sgd update=server"),
    ("sync=local precision=bf16 optimizer=sgd",
     "sync=sps transport=zmq workers=1 precision=bf16 optimizer=sgd"),
    ("sync=zero shard=3 workers=3", "sync=ring mesh=dp2,pp2,tp2 accum=2"),
    ("sync=ring mesh=pp2 accum=2", "sync=zero mesh=dp2 shard=2"),
    ("sync=zero mesh=dp2,tp2", "sync=allreduce mesh=cp2"),
    ("sync=ring workers=2 squeeze=topk", "sync=ring workers=2 squeeze=topk"),
    ("sync=outer workers=2 every=2 "
     "outer_lr=0.7 outer_momentum=0.9",
     "sync=outer workers=3 every=1"),
    ("sync=dataparallel workers=2", "sync=lab workers=3"),
]


# ---- which jobs

def cover(factors, strength):
    """Rows with one value of each factor. Every combination of values of
    `strength` factors is in at least one row. Greedy, and always the same."""
    strength = min(strength, len(factors))
    dice = random.Random(61)
    left = {}  # a dict: unlike a set, it keeps its order
    for where in itertools.combinations(range(len(factors)), strength):
        for chosen in itertools.product(*(range(len(factors[f]))
                                          for f in where)):
            left[tuple(zip(where, chosen))] = True
    while left:
        row = dict(next(iter(left)))
        rest = [f for f in range(len(factors)) if f not in row]
        dice.shuffle(rest)
        for f in rest:
            sets = list(itertools.combinations(sorted(row.items()),
                                               strength - 1))
            values = list(range(len(factors[f])))
            dice.shuffle(values)
            row[f] = max(values, key=lambda v: sum(
                tuple(sorted(s + ((f, v),))) in left for s in sets))
        for s in itertools.combinations(sorted(row.items()), strength):
            left.pop(s, None)
        yield [factors[f][v] for f, v in sorted(row.items())]


# Values of COMPUTE that a way refuses, and values that it takes instead; in the order of
# the ways' words.
REFUSES = [
    ("local", "overlap=", None),
    ("outer", "overlap=", None),
    ("outer", "bucket_mb=", None),
    ("outer", "precision=fp16 inject=inf:2", "precision=fp32 inject=delay:2:1"),
    ("outer", "precision=fp16 loss_scale=64 inject=nan:3", "precision=bf16"),
    ("outer", "verify=1", "verify=2"),
    ("zero shard=2", "staging=always", None),
    ("zero shard=3", "staging=always", None),
    ("pp2", TINY, THREE_LAYERS),
    ("squeeze=", "precision=fp16 inject", "precision=fp16 loss_scale=64 inject"),
]


def compute_of(way):
    """The factors of COMPUTE that a way has."""
    factors = []
    for values in COMPUTE:
        for where, word, other in REFUSES:
            if where in way:
                values = [v.replace(word, other or "") for v in values
                          if other is not None or word not in v]
        factors.append(list(dict.fromkeys(values)))
    return [values for values in factors if values]


def list_jobs(strength):
    """All jobs. A job is one line of settings, or two lines: the second resumes."""
    jobs = []
    for way, own in WAYS.items():
        sync = f"sync={way.removesuffix(' squeeze=')}"
        for words in cover(own + compute_of(way), strength):
            line = " ".join([sync, *filter(None, words)])
            if "elastic=1" in line:  # it has no verify=, no changing loss scale
                line = line.replace(" verify=1", "").replace(
                    "precision=fp16 inject", "precision=fp16 loss_scale=64 inject")
            if "momentum_correction" in line:  # it needs both
                line = line.replace("feedback=0", "").replace("optimizer=adamw", "")
            jobs.append((line,))
        workers = ("workers=1" if way == "local" else
                   "" if "mesh=" in way else "workers=3")
        more = "every=2 " * (way == "outer")
        jobs += [(f"{sync} {workers} {more}{fault} {NANO}",) for fault in FAULTS]
        if WORKERS in own and WIRE in own and way != "outer":
            jobs += [(f"{sync} workers=3 {rare}",) for rare in RARE
                     if "staging=always" in str(compute_of(way))]
        for mode in ALONE if SERVERS[2] in own else []:
            jobs.append((f"{sync} workers=1 {mode} {NANO}",))
    jobs += [(f"{words} {NANO}",) for words in REFUSED]
    jobs += [tuple(f"{words} {NANO}" for words in pair) for pair in RESUMED]
    return jobs


# ---- run one job

class Children:
    """All running processes, so that they can be ended."""

    def __init__(self):
        self.lock, self.running, self.stopped = threading.Lock(), set(), False

    def run(self, command, folder, deadline_s):
        """(exit status, or None after the deadline; its output)."""
        with open(folder / "said", "w+") as said:
            with self.lock:
                if self.stopped:
                    return None, "stopped"
                child = subprocess.Popen(
                    command, cwd=folder, stdin=subprocess.DEVNULL, stdout=said,
                    stderr=subprocess.STDOUT, start_new_session=True)
                self.running.add(child)
            try:
                status = child.wait(deadline_s)
            except subprocess.TimeoutExpired:
                status = None
                end(child)
            finally:
                with self.lock:
                    self.running.discard(child)
            said.seek(0)
            return status, said.read()

    def stop(self):
        with self.lock:
            self.stopped = True
            for child in self.running:
                child.terminate()


def end(child):
    """End a launcher with SIGTERM, or else with SIGKILL. Its workers end with it."""
    child.terminate()
    try:
        child.wait(15)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def content(path):
    """The bytes of a file. Leaves out what older builds did not write in a state.json:
    the hashes of other files, and the tokens, which steps.csv has, too."""
    if path.name != "state.json":
        return path.read_bytes()
    state = json.loads(path.read_text())
    for name in "files", "hash_xxh3", "tokens":
        state.pop(name, None)
    return json.dumps(state).encode()


class Result:
    """The results of one training job, or its error."""

    def __init__(self, folder, pinged, status, said):
        out, self.pinged = folder / "out", pinged
        lines = said.strip().splitlines() or ["(said nothing)"]
        self.said = lines[-1]
        self.files, self.rows, self.columns = {}, {}, set()
        for path in sorted(out.glob("steps*.csv")):
            with open(path, newline="") as f:
                for row in csv.DictReader(f):
                    self.columns.update(row)
                    self.rows[int(row["rank"]), int(row["step"])] = row
        for path in sorted(out.glob("checkpoint-*/*")):
            if path.name in FILES:
                digest = hashlib.sha256(content(path)).hexdigest()
                self.files[f"{path.parent.name}/{path.name}"] = digest
        self.error = status is not None and status > 0
        self.failed = None
        if status is None:
            self.failed = f"not done after {DEADLINE_S} s"
        elif status < 0:
            self.failed = f"the launcher was killed by signal {-status}"
        elif status == 0 and f"checkpoint-{STEPS}/{FILES[0]}" not in self.files:
            self.failed = "left no checkpoint"
        elif status == 0 and not self.rows:
            self.failed = "left no row in steps.csv"


def train(children, bin_dir, words, text, folder, resume=None):
    folder.mkdir()
    command = [str(bin_dir / "lockstep"), "train", f"data={text}", *BASE,
               *words.split(), "out=out"]
    if resume:
        command.append(f"resume={resume / 'out' / f'checkpoint-{SAVE}'}")
    return Result(folder, bool({"sync=sps", "sync=dps"} & set(command)),
                  *children.run(command, folder, DEADLINE_S))


# ---- compare two results

def cells(result, key, columns):
    """The values to compare in the row of one (rank, step)."""
    row = {c: result.rows.get(key, {}).get(c, "-") for c in columns}
    for name in PINGED if result.pinged else ():
        if row.get(name, "-").isdigit():
            row[name] = f"{int(row[name]) % PING_BYTES} mod {PING_BYTES}"
    return row


def near(a, b, rounding):
    """Whether two cells hold numbers that differ by rounding only."""
    try:
        a, b = float(a), float(b)
    except ValueError:
        return False
    return abs(a - b) <= rounding * max(abs(a), abs(b))


def compare(old, new, allowed, rounding):
    """Lines that say how two results differ; none if they are equal."""
    if old.error or new.error:
        if old.error and new.error:
            return []
        return [f"{name} ends with an error: {r.said}" for name, r in
                (("old", old), ("new", new)) if r.error]
    lines = []
    for name in sorted(old.files.keys() | new.files.keys()):
        if name.split("/")[-1] in allowed:
            continue
        a, b = old.files.get(name, "-"), new.files.get(name, "-")
        if a != b:
            lines.append(f"{name}: old {a[:16]} new {b[:16]}")
    columns = COLUMNS + sorted(c for c in old.columns | new.columns
                               if c.startswith(COUNTS))
    columns = [c for c in columns if c not in allowed]
    for name, result in ("old", old), ("new", new):
        lines += [f"steps.csv: {name} has no column {c}" for c in columns
                  if c not in result.columns]
    for key in sorted(old.rows.keys() | new.rows.keys()):
        a, b = cells(old, key, columns), cells(new, key, columns)
        unequal = [f"{c} old {a[c]} new {b[c]}" for c in columns
                   if a[c] != b[c] and not (
                       c in ROUNDED and near(a[c], b[c], rounding))]
        if unequal:
            lines.append(f"steps.csv: rank {key[0]} step {key[1]}: "
                         + ", ".join(unequal))
    return lines


# How settings are said to an older build: a key that it has, what is replaced, by what.
WAS = (("carrier", r"transport=library", "carrier=library"),
       ("first_bucket_mb", r"bucket_mb=(\S+)", r"bucket_mb=\1 first_bucket_mb=\1"),
       ("fusion_mb", r"^(?=.*sync=(?:ring|zero))(?=.*bucket_mb=)"
        r"(?!.*(?:squeeze=|sync=allreduce))", "fusion_mb=0.001 "),
       ("outer_rule", r"outer_lr=(\S+) outer_momentum=0.9",
        r"outer_rule=nesterov outer_lr=\1 outer_momentum=0.9"))


def words_of(bin_dir):
    """[(what is replaced, by what)] in the words for this build."""
    told = subprocess.run([bin_dir / "lockstep", "train", "--help"], check=True,
                          capture_output=True, text=True).stdout
    return [pair for key, *pair in WAS if re.search(rf"^ *{key}\b", told, re.M)]


class Gate:
    def __init__(self, args, folder):
        self.old, self.new = args.old.resolve(), args.new.resolve()
        self.words = {build: words_of(build) for build in (self.old, self.new)}
        self.allow = [entry.split() for entry in args.allow]
        self.rounding = args.rounding
        if self.rounding:
            self.allow += [[name] for name in FILES if name != "state.json"]
        self.also = " ".join(args.also)
        self.children, self.folder = Children(), folder
        self.text = folder / "text.txt"
        dice = random.Random(4)
        words = [bytes(dice.choices(b"etaoinshrdlu", k=dice.randint(1, 9)))
                 for _ in range(60)]
        self.text.write_bytes(b" ".join(dice.choices(words, k=3000)) + b"\n")
        self.lab = folder / "lab.so"
        subprocess.run(["cc", "-std=c11", "-O2", "-fPIC", "-shared", f"-I{TOP}",
                        f"-I{TOP}/core", TOP / "labs/04-ring/reference.c",
                        TOP / "labs/lab.c", "-o", self.lab, "-lm"], check=True)

    def train_all(self, number, job):
        """Train one job. Return its pairs to compare: (title, old result, new result)."""
        folder = self.folder / str(number)
        folder.mkdir()

        def go(name, bin_dir, words, resume=None):
            lab = f"lab={self.lab}" if "sync=lab" in words else ""
            for now, was in self.words[bin_dir]:
                words = re.sub(now, was, words)
            return train(self.children, bin_dir, f"{words} {self.also} {lab}",
                         self.text, folder / name, resume and folder / resume)

        try:
            pairs = [("", go("old", self.old, job[0]),
                      go("new", self.new, job[0]))]
            if len(job) == 2:
                old = go("old-2", self.old, job[1], "old")
                pairs += [("resumed: ", old,
                           go("new-2", self.new, job[1], "new")),
                          ("resumed from old's checkpoint: ", old,
                           go("mixed", self.new, job[1], "old"))]
        finally:
            shutil.rmtree(folder)
        return pairs

    def run(self, number, job):
        """Compare one job. Return (verdict, lines to print below it)."""
        words = " ".join(job).split()
        allowed = {name for name, *settings in self.allow
                   if set(settings) <= set(words)}
        pairs = self.train_all(number, job)
        lines = [title + line for title, old, new in pairs
                 for line in compare(old, new, allowed, self.rounding)]
        failed = [f"{title}{name}: {r.failed}; said: {r.said}"
                  for title, *both in pairs
                  for name, r in zip(("old", "new"), both) if r.failed]
        if failed:
            return "FAILED", failed + lines
        if lines:
            return "DIFFER", lines
        return ("error", [pairs[-1][1].said]) if pairs[-1][1].error else \
            ("equal", [])


# ---- all

def parse():
    p = argparse.ArgumentParser(
        description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("old", type=pathlib.Path, metavar="OLD_BIN")
    p.add_argument("new", type=pathlib.Path, metavar="NEW_BIN")
    size = p.add_mutually_exclusive_group()
    size.add_argument("--quick", dest="strength", action="store_const", const=2,
                      default=3)
    size.add_argument("--all", dest="strength", action="store_const", const=4)
    p.add_argument("--only", action="append", default=[], metavar="WORD")
    p.add_argument("--allow", action="append", default=[], metavar="NAME")
    p.add_argument("--also", action="append", default=[], metavar="WORD")
    p.add_argument("--job", action="append", default=[], metavar="WORDS")
    p.add_argument("--rounding", type=float, default=0, metavar="R")
    p.add_argument("--jobs", type=int, choices=(1, 2), default=2)
    p.add_argument("--list", action="store_true")
    args = p.parse_args()
    for folder in args.old, args.new:
        if not (folder / "lockstep").is_file():
            p.error(f"{folder}: no program lockstep; try: build/release/bin")
    return args


def main():
    args = parse()
    jobs = [j for j in [(words,) for words in args.job] or list_jobs(args.strength)
            if all(w in " then ".join(j).split() for w in args.only)]
    if args.list:
        print("\n".join(" then ".join(j) for j in jobs))
        return 0
    if not jobs:
        sys.exit(f"--only {' '.join(args.only)}: no such job; try: --list")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    count = dict.fromkeys(("equal", "error", "DIFFER", "FAILED"), 0)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lockstep-compare-") as folder:
        gate = Gate(args, pathlib.Path(folder))
        pool = concurrent.futures.ThreadPoolExecutor(args.jobs)
        try:
            for job, (verdict, lines) in zip(jobs, pool.map(
                    gate.run, range(len(jobs)), jobs)):
                count[verdict] += 1
                print(f"{verdict:7}  {' then '.join(job)}", *lines,
                      sep="\n         ", flush=True)
        finally:
            gate.children.stop()
            pool.shutdown(cancel_futures=True)
    print(f"{len(jobs)} jobs in {time.monotonic() - began:.0f} s; "
          f"{count['error']} equal ones end with an error in both builds")
    print(f"{count['equal'] + count['error']} equal, {count['DIFFER']} differ,"
          f" {count['FAILED']} failed")
    return 1 if count["DIFFER"] or count["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
