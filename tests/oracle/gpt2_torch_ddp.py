#!/usr/bin/env python3
"""Train as `lockstep train` does, with PyTorch's DistributedDataParallel (DDP).

    gpt2_torch_ddp.py LOCKSTEP key=value ... out=DIR
    gpt2_torch_ddp.py check LOCKSTEP

The arguments are settings of `lockstep train`. The script first lets LOCKSTEP
train one step with them: the run.json of this step has the model's sizes, the
data and all settings. Then torchrun starts as many processes as workers= says.
They train the same model on the same batches with DDP over Gloo. For that, the
random weights, the order of windows and the default text are implemented here
again, after core/base/rng.h, core/data/order.h and core/data/headers.c.

DIR gets run.json, steps.csv and summary.json in Lockstep's formats, so that
`lockstep report` can show the run as a row. `check` trains 20 steps with
Lockstep and with DDP: the relative difference of losses must be below 1e-5.
Exit status 77: PyTorch is not installed, or a setting has a value that this
script cannot train.
"""
import csv
import glob
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time

PLAN = "GPT2_DDP_PLAN"
MASK, GOLDEN = (1 << 64) - 1, 0x9e3779b97f4a7c15
TEXT_BYTES = 4 << 20
WITHIN, CHECKED = 1e-5, 20
# The script supports only one value of each of these settings.
ONLY = {"precision": "fp32", "optimizer": "adamw", "vocab": "bytes",
        "order": "epoch", "mistake": "none", "init": "random", "dropout": 0,
        "lr_scale": "none", "wire": "fp32", "net": "", "hosts": "", "device": "cpu", "resume": ""}
COLUMNS = ("run,backend,rank,step,tokens,time_s,loss,lr,grad_norm,loss_scale,"
           "skipped,dropped,lag,t_step_us,t_data_us,t_compute_us,t_ready_us,"
           "t_sync_us,bytes_tx,bytes_rx,head_tx,head_rx,val_loss,restarts,"
           "steps_lost").split(",")


def give_up(why, status=1):
    print(f"torch DDP: {why}", flush=True)
    sys.exit(status)


# ---- core/base/rng.h and core/data/order.h

def rng_u64(key, counter):
    z = (key + (counter + 1) * GOLDEN) & MASK
    z = ((z ^ (z >> 30)) * 0xbf58476d1ce4e5b9) & MASK
    z = ((z ^ (z >> 27)) * 0x94d049bb133111eb) & MASK
    return z ^ (z >> 31)


def rng_key(key, name):
    return rng_u64(key ^ 0xd1b54a32d192ed03, name)


def rng_uniforms(np, key, counters):
    with np.errstate(over="ignore"):
        z = np.uint64(key) + (counters + np.uint64(1)) * np.uint64(GOLDEN)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) * 2.0 ** -53


def rng_normals(np, key, n):
    k = np.arange(n, dtype=np.uint64) * np.uint64(2)
    u = 1.0 - rng_uniforms(np, key, k)
    v = rng_uniforms(np, key, k + np.uint64(1))
    return np.sqrt(-2.0 * np.log(u)) * np.cos(2 * math.pi * v)


def order_at(seed, epoch, n, i):
    key = rng_key(rng_key(seed, 0x6f7264), epoch)
    half = ((n - 1).bit_length() + 1) // 2
    while True:
        left, right = i >> half, i & ((1 << half) - 1)
        for turn in range(6):
            mixed = rng_u64(rng_key(key, turn), right) & ((1 << half) - 1)
            left, right = right, left ^ mixed
        i = left << half | right
        if i < n:
            return i


# ---- the text

def headers(folder):
    """All C headers below a folder, sorted by the bytes of their names."""
    for entry in sorted(os.scandir(folder), key=lambda e: os.fsencode(e.name)):
        if entry.is_dir(follow_symlinks=False):
            yield from headers(entry.path)
        elif entry.is_file(follow_symlinks=False) and \
                entry.name.endswith(".h") and len(entry.name) > 2:
            yield entry.path


def read_text(path):
    if path:
        with open(path, "rb") as f:
            return f.read()
    text = b""
    for name in headers("/usr/include"):
        if len(text) == TEXT_BYTES:
            break
        with open(name, "rb") as f:
            text += f.read(TEXT_BYTES - len(text))
    return text[:text.rindex(b"\n") + 1] if len(text) == TEXT_BYTES else text


class Data:
    """The batches of one rank, the same as those of core/data/data.h."""

    def __init__(self, np, plan, rank):
        s = plan["effective"]
        self.s, self.rank, self.world = s, rank, plan["world"]
        self.T, self.B = plan["model"]["context"], s["batch"]
        self.steps = plan["data"]["steps_per_epoch"]
        text = np.frombuffer(read_text(s["data"]), np.uint8).astype(np.int64)
        n = int(len(text) * (1 - s["val_fraction"]))
        self.train, self.val = text[:n], text[n:]
        if n != plan["data"]["train_tokens"]:
            give_up(f"{n} tokens to train on, Lockstep has "
                    f"{plan['data']['train_tokens']}: the text differs")
        self.windows = (n - 1) // self.T

    def rows(self, tokens, windows):
        T = self.T
        return ([tokens[w * T:w * T + T] for w in windows],
                [tokens[w * T + 1:w * T + T + 1] for w in windows])

    def batch(self, step, micro):
        each = self.world * self.B
        first = step % self.steps * each * self.s["accum"] + micro * each + \
            self.rank * self.B
        return self.rows(self.train, [
            order_at(self.s["seed"], step // self.steps, self.windows, first + b)
            for b in range(self.B)])

    def val_batches(self):
        each = self.world * self.B
        whole = (len(self.val) - 1) // self.T // each
        for i in range(min(self.s["eval_batches"] or whole, whole)):
            first = i * each + self.rank * self.B
            yield self.rows(self.val, range(first, first + self.B))


# ---- the model

def build(torch, np, plan):
    from gpt2_torch_speed import build as plain
    m, seed = plan["model"], plan["effective"]["seed"]
    model = plain(torch, {"layers": m["layers"], "heads": m["heads"],
                          "channels": m["channels"], "vocab": m["vocab_size"],
                          "context": m["context"], "tokens": m["context"]})
    tensors = [(model.wte.weight, False, False), (model.wpe.weight, False, False)]
    # (tensor, whether PyTorch stores it transposed, whether 1/sqrt(2 layers)
    # scales its random weights)
    for b in model.h:
        for part, residual in ((b.ln_1, False), (b.qkv, False), (b.proj, True),
                               (b.ln_2, False), (b.fc, False), (b.out, True)):
            tensors += [(part.weight, part.weight.dim() == 2, residual),
                        (part.bias, False, False)]
    tensors += [(model.ln_f.weight, False, False), (model.ln_f.bias, False, False)]
    with torch.no_grad():
        for i, (p, turned, residual) in enumerate(tensors):
            if p.dim() == 1:
                continue  # a LayerNorm keeps PyTorch's start, 1 and 0
            shape = p.shape[::-1] if turned else p.shape
            sigma = 0.02 / math.sqrt(2 * m["layers"]) if residual else 0.02
            a = (sigma * rng_normals(np, rng_key(seed, i), p.numel())).astype(
                np.float32).reshape(tuple(shape))
            p.copy_(torch.from_numpy(a).T if turned else torch.from_numpy(a))
        for b in model.h:
            for part in (b.qkv, b.proj, b.fc, b.out):
                part.bias.zero_()
    return model


def learning_rate(s, step):
    if step < s["warmup"]:
        return s["lr"] * (step + 1) / s["warmup"]
    if s["schedule"] == "constant":
        return s["lr"]
    done = (step - s["warmup"]) / (s["steps"] - s["warmup"])
    left = 1 - done if s["schedule"] == "linear" else \
        0.5 * (1 + math.cos(math.pi * done))
    return s["min_lr"] + (s["lr"] - s["min_lr"]) * left


# ---- one worker

def due(every, step, last):
    return every and (step % every == 0 or step == last)


def work(plan):
    import numpy as np
    import torch
    import torch.distributed as dist
    rank, s = int(os.environ["RANK"]), plan["effective"]
    cores = sorted(os.sched_getaffinity(0))
    if s["threads"] * plan["world"] <= len(cores):  # as our launcher does
        os.sched_setaffinity(0, cores[rank * s["threads"]:
                                      (rank + 1) * s["threads"]])
    torch.set_num_threads(s["threads"])
    dist.init_process_group("gloo")
    data = Data(np, plan, rank)
    model = torch.nn.parallel.DistributedDataParallel(build(torch, np, plan))
    by_dim = {d: [p for p in model.parameters() if p.dim() == d] for d in (1, 2)}
    optimizer = torch.optim.AdamW(
        [{"params": by_dim[2], "weight_decay": s["weight_decay"]},
         {"params": by_dim[1], "weight_decay": 0.0}],
        betas=(s["beta1"], s["beta2"]), eps=s["eps"])

    def loss_of(rows):
        x, y = (torch.from_numpy(np.stack(part)) for part in rows)
        logits = model(x)
        return torch.nn.functional.cross_entropy(
            logits.view(-1, logits.shape[-1]), y.view(-1))

    def one_step(step, row):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        for group in optimizer.param_groups:
            group["lr"] = row["lr"] = learning_rate(s, step)
        for micro in range(s["accum"]):
            rows = data.batch(step, micro)
            model.require_backward_grad_sync = micro == s["accum"] - 1
            loss = loss_of(rows) / s["accum"]
            loss.backward()
            row["loss"] += loss.item()
        done = time.perf_counter()
        row["grad_norm"] = float(torch.nn.utils.clip_grad_norm_(
            model.parameters(), s["clip"] or math.inf))
        optimizer.step()
        end = time.perf_counter()
        row["t_compute_us"] = int((done - start) * 1e6)
        row["t_sync_us"] = int((end - done) * 1e6)
        row["t_step_us"] = int((end - start) * 1e6)

    began = time.perf_counter()
    with open(f"{s['out']}/ddp.{rank}.csv", "w", newline="") as f:
        out = csv.DictWriter(f, COLUMNS)
        tokens = plan["world"] * s["accum"] * s["batch"] * data.T
        for step in range(s["steps"]):
            row = dict.fromkeys(COLUMNS, 0)
            row.update(run=os.path.basename(s["out"]), backend=plan["backend"],
                       rank=rank, step=step + 1, tokens=tokens * (step + 1),
                       loss_scale=1, val_loss="")
            one_step(step, row)
            if due(s["eval"], step + 1, s["steps"]):
                with torch.no_grad():
                    losses = [loss_of(rows).item() for rows in data.val_batches()]
                row["val_loss"] = sum(losses) / len(losses) if losses else ""
            row["time_s"] = f"{time.perf_counter() - began:.6f}"
            out.writerow(row)
    dist.barrier()
    if rank == 0:
        finish(plan, torch.__version__)


def peak_memory():
    """In bytes. getrusage() would include the memory of the time before exec."""
    with open("/proc/self/status") as f:
        for line in f:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def finish(plan, version):
    """Write the files of a run from the rows of all ranks."""
    out, rows = plan["effective"]["out"], []
    for path in glob.glob(f"{out}/ddp.*.csv"):
        with open(path, newline="") as f:
            rows += csv.DictReader(f, COLUMNS)
        os.remove(path)
    rows.sort(key=lambda row: (int(row["step"]), int(row["rank"])))
    with open(f"{out}/steps.csv", "w", newline="") as f:
        w = csv.DictWriter(f, COLUMNS, lineterminator="\n")
        w.writeheader()
        w.writerows(rows)
    plan["program"] = f"PyTorch {version}, DistributedDataParallel over Gloo"
    with open(f"{out}/run.json", "w") as f:
        json.dump(plan, f, indent=1)
    last = [float(r["loss"]) for r in rows if r["step"] == rows[-1]["step"]]
    peak = peak_memory()
    with open(f"{out}/summary.json", "w") as f:
        json.dump({"backend": plan["backend"], "world": plan["world"],
                   "steps": int(rows[-1]["step"]),
                   "final_train_loss": sum(last) / len(last),
                   "peak_memory_bytes": peak}, f, indent=1)


# ---- the process that starts the workers

def ask_plan(lockstep, words):
    """What the run.json of all steps says besides "effective"."""
    words = [w for w in words if not w.startswith("out=")]
    done = subprocess.run([lockstep, "plan"], input=json.dumps(words), text=True,
                          capture_output=True, check=True)
    plan = json.loads(done.stdout)
    if "error" in plan:
        give_up(plan["error"])
    del plan["effective"]
    return plan


def make_plan(lockstep, words):
    """The run.json of one step by Lockstep, with the out= of this run."""
    out = [w[4:] for w in words if w.startswith("out=")][-1]
    os.makedirs(out, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as folder:
        done = subprocess.run(
            [lockstep, "train", *[w for w in words if not w.startswith("out=")],
             "steps=1", "warmup=0", "eval=0", "save=0", "log=0", "trace=off",
             "samples=0", f"out={folder}/ours"],
            capture_output=True, text=True, check=False)
        if done.returncode:
            give_up((done.stdout + done.stderr).strip().splitlines()[-1])
        with open(f"{folder}/ours/run.json") as f:
            plan = json.load(f)
    asked = dict(w.split("=", 1) for w in words)
    s = plan["effective"]
    for key in ("steps", "warmup", "eval"):  # the one step had others
        s[key] = int(asked.get(key, {"steps": 1000, "warmup": 50,
                                     "eval": 100}[key]))
    s["out"], s["threads"] = os.path.abspath(out), plan["threads"]
    for key, value in ONLY.items():
        if s.get(key, value) != value:
            give_up(f"{key}={s[key]}; try: {key}={value or '(none)'}", 77)
    plan |= ask_plan(lockstep, words)
    plan["law"] = dict.fromkeys(plan["law"]) | {"by_verb": {}}  # Gloo's is not known
    plan["backend"], plan["transport"] = "torch_ddp", "gloo"
    return plan


def train(lockstep, words):
    from gpt2_torch_speed import tune
    try:
        import numpy  # noqa: F401
        import torch  # noqa: F401
    except ImportError as missing:
        give_up(f"{missing}; try: apt-get install python3-torch, or "
                "peer_python= of a virtual environment that has it", 77)
    plan = make_plan(lockstep, words)
    tune(plan["effective"]["threads"])
    # --redirects and --tee are not 0, because torchrun of PyTorch 1.13 does not
    # accept 0 with Python 3.11.
    with tempfile.TemporaryDirectory() as logs:
        with open(f"{logs}/plan.json", "w") as f:
            json.dump(plan, f)
        done = subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--standalone",
             f"--nproc_per_node={plan['world']}", f"--log_dir={logs}",
             "--redirects=1", "--tee=2", os.path.abspath(__file__)],
            env=dict(os.environ, **{PLAN: f"{logs}/plan.json"}), check=False)
        if done.returncode:
            give_up(f"torchrun ended with {done.returncode}")


def column(folder, name):
    """The mean of a column over ranks, by step."""
    with open(f"{folder}/steps.csv", newline="") as f:
        rows = list(csv.DictReader(f))
    steps = sorted({int(r["step"]) for r in rows})
    return [sum(float(r[name]) for r in rows if int(r["step"]) == k) /
            sum(int(r["step"]) == k for r in rows) for k in steps]


def check(lockstep):
    """Train with both, and compare losses and gradient norms by step."""
    for more in ("accum=1", "accum=2"):
        words = ["model=nano", "workers=2", "threads=1", "batch=4", "warmup=5",
                 f"steps={CHECKED}", "eval=10", "eval_batches=2", "sync=ring",
                 more]
        with tempfile.TemporaryDirectory() as folder:
            train(lockstep, words + [f"out={folder}/ddp"])
            subprocess.run([lockstep, "train", *words, f"out={folder}/ours"],
                           check=True, stdout=subprocess.DEVNULL)
            for name in "loss", "grad_norm":
                ours = column(f"{folder}/ours", name)
                theirs = column(f"{folder}/ddp", name)
                far = max(abs(a - b) / abs(a) for a, b in zip(ours, theirs))
                print(f"{more}: {name} of {len(ours)} steps: largest relative "
                      f"difference {far:.1e}; last {ours[-1]:.6f}, "
                      f"{theirs[-1]:.6f}")
                limit = WITHIN if name == "loss" else 10 * WITHIN
                if not (len(ours) == len(theirs) == CHECKED and far < limit):
                    give_up(f"{name}: the limit is {limit:g}")


if __name__ == "__main__":
    if os.environ.get(PLAN):
        with open(os.environ[PLAN]) as plan_file:
            work(json.load(plan_file))
    elif sys.argv[1:2] == ["check"] and len(sys.argv) == 3:
        check(sys.argv[2])
    elif len(sys.argv) > 2 and any(w.startswith("out=") for w in sys.argv):
        train(sys.argv[1], sys.argv[2:])
    else:
        sys.exit(__doc__)
