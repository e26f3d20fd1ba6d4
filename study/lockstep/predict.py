"""The command predict: which way is fastest on a cluster, and by how much.

It has two forms. One compares backends on several numbers of workers, each on a host of
its own. The other looks for the best mesh of workers on hosts with several each
(meshes.py). In both a step is one of forecast/mesh_case.h: N workers without a mesh are
dpN.
"""

import math
import os
import subprocess
import sys
import tempfile

from . import budget, gpu_step, meshes
from .core import Core, key, key_help, own_words
from .files import Error, number, read_csv, read_json
from .forecast import (BYTES, memory_head, memory_rows, mesh_of, names_of, on_host,
                       only_compressing, only_offloading, place, read_backends, read_size,
                       read_workers, refuse_pieces, say, say_gpu_memory, say_on_host,
                       threads)
from .places import program
from .runner import end_with_parent

ALL = "lockstep predict --help"
STEPS = 3  # of the training that is measured
MOST_S = 6 * 3600  # a few steps of the largest model that a machine can hold
CLOSE = 1.005  # no forecast is so exact
FEW = 2  # layers of the model that is measured for a mesh

ROWS = [
    key("predict", "workers", "", "text", "numbers of workers, as 4,16,64", unit="N,.."),
    key("predict", "sync", "", "text", "some of the ways below; empty: all", unit="WAY,.."),
    key("predict", "link", "", "text",
        "rate of a network that was not measured, as 25gbit, or as 3MB/s of payload; or a "
        "file with measurements: of the network by lockstep bench link out=FILE, or of "
        "each way on it by lockstep bench sync workers=2 out=FILE. With a mesh: between "
        "hosts, shared by all workers of a host; empty: 25gbit", unit="RATE|FILE"),
    key("predict", "alpha_us", "25", "number", "latency of a message, with a RATE", min=0,
        max=1e9, unit="us"),
    key("predict", "compute_ms", "0", "number",
        "forward, backward and update of one worker's step; with a mesh: forward and "
        "backward of the model with batch= sequences; measuring takes minutes for a large "
        "model", min=1e-6, max=1e9, zero="measured here", unit="ms"),
    key("predict", "device", "cpu", "text",
        "h100: estimate compute_ms for such a GPU, part by part, with precision=bf16",
        unit="NAME"),
    key("predict", "flops", "0", "number",
        "with mfu=, instead of compute_ms=: the peak of a worker's device, as 312e12",
        min=1, max=1e18, zero="not known", unit="FLOP/s"),
    key("predict", "mfu", "0", "number",
        "with flops=: the share of the peak that training reaches", min=1e-6, max=1,
        zero="not known", unit="share"),
    key("predict", "disk", "0", "number",
        "with offload=disk: bytes a second of the file, of reading and writing together",
        min=1, max=1e15, zero="not known", unit="B/s"),
    key("predict", "tokens", "0", "number", "of the whole training, to print its time",
        min=1, max=1e18, zero="not asked"),
    key("predict", "price", "0", "number",
        "of a worker and hour (a host's price by its slots), to print the cost; with "
        "tokens=", min=1e-9, max=1e9,
        zero="not asked"),
    key("mesh", "hosts", "1", "int",
        "number of machines (for train hosts= is a file with their names)", min=1,
        max=4096),
    key("mesh", "slots", "0", "int", "on each host", min=1, max=4096,
        zero="8, or by workers= or mesh=", unit="workers"),
    key("mesh", "memory", "", "text", "of each worker, as 16gb; empty: no limit",
        unit="SIZE"),
    key("mesh", "inner", "", "text",
        "of each worker within a host; empty: what is assumed for device=, or link= with "
        "one host", unit="RATE|FILE"),
]
# The first two are lists, of the form that compares backends. With a mesh they are keys
# of train.
MESH_ROWS = ROWS[2:]
MESH_WORDS = "hosts=", "slots=", "memory=", "inner=", "mesh="

# The keys of backends that a forecast needs.
NEEDED = ("wire", "update", "servers", "bucket_mb", "algorithm", "shard",
          "staging", "slice_kb", "every", "outer_lr", "outer_momentum", "squeeze",
          "density", "scope", "levels", "squeeze_rank", "feedback", "squeeze_after", "freeze",
          "offload")

# In so many steps gradients are not yet compressed.
WHOLE_STEPS = "squeeze_after", "freeze"
LIMIT = 1.3  # if no compressor can make a step so many times shorter, the link is no limit

HELP = """\
lockstep predict workers=N,.. link=LINK [key=value] ...

Predicts the time of an exchange and of a step for each backend, from its law and
the network's latency and rate, and says how uncertain the prediction is.

With hosts=, slots=, memory=, inner= or mesh=, it tries all ways to divide the
workers into replicas, stages, slices, pieces of sequences and groups of these
(mesh=dpD,ppP,cpC,upU,tpT), or only the mesh= that you give. It prints the fastest ones
that fit into memory=.
"""

MORE = """
These keys of train count as well: model and its sizes, batch, accum, precision, wire,
servers (on hosts of their own), update, algorithm, every, shard, offload, squeeze, density,
levels, squeeze_rank, scope, squeeze_after, freeze (less than steps), bucket_mb; and for
memory only: optimizer, recompute, threads, outer_lr, outer_momentum, staging, slice_kb,
feedback. With a mesh: model and its sizes, precision, recompute, optimizer, wire (without
it fp32 and 16 bits), global_batch (8 for each worker), batch (of a micro-batch; without it
the best one), sync, shard, mesh, pipeline, chunks, ahead, stages, tp_sequence,
attention_over, tp_wire, workers.
  lockstep predict model=gpt2 workers=16,64 link=25gbit compute_ms=900
  lockstep predict model=gpt2 workers=64 link=25gbit flops=312e12 mfu=0.4 tokens=1e10
  lockstep predict model=gpt2-xl hosts=8 memory=16gb link=25gbit inner=200gbit \\
      tokens=1e9 price=2.5
"""

LEGEND = """
traffic     bytes a step on the busiest link, in one direction
exchange    time of the exchange of all gradients alone
no overlap  time of a step that computes first, then exchanges
overlap     time of a step that exchanges while backward runs; shards are
            gathered while forward runs
error       of the time with overlap, in both directions, because the
            network's figures are uncertain
tokens/s    of all workers, with overlap
efficiency  share of a step with overlap that computes"""


def explain():
    """What --help says."""
    with Core() as core:
        return (HELP + key_help(core, ROWS) +
                f"\nsync={names_of(core.table()['backends'], 'has_law')}\n" + MORE)


# ---- the time of computing


def _measure_step(run, batch, accum, layers):
    """(seconds of a step, {kind: seconds of it}) of one worker here."""
    settings = run["settings"]
    words = [f"model={settings['model']}", f"layers={layers}", f"batch={batch}",
             f"accum={accum}", f"heads={run['heads']}", f"channels={run['channels']}",
             f"context={run['context']}", f"vocab_size={run['vocab']}",
             *(f"{k}={settings[k]}" for k in ("precision", "recompute", "optimizer",
                                              "momentum")),
             *(f"{k}={settings[k]}" for k in ("data", "threads")
               if settings[k] not in ("", "0")),
             f"steps={STEPS}", "warmup=0", "eval=0", "log=0"]
    with tempfile.TemporaryDirectory(prefix="lockstep-predict-") as folder:
        child = subprocess.Popen([program(), "train", *words, f"out={folder}"],
                                 stdout=subprocess.DEVNULL, process_group=0,
                                 preexec_fn=end_with_parent)
        try:
            status = child.wait(MOST_S)
        except BaseException:
            child.terminate()
            child.wait()
            raise
        if status:
            raise Error("predict: the training to be measured failed; try: compute_ms=")
        step = number(read_json(os.path.join(folder, "summary.json")).get("median_step_s"))
        seconds = dict.fromkeys(("forward", "backward", "update", "data"), 0)
        for row in read_csv(os.path.join(folder, "breakdown.csv")):
            if row["kind"] in seconds:
                seconds[row["kind"]] += number(row["seconds"]) or 0
    total = sum(seconds.values())
    if not step or not total:
        raise Error("predict: the training to be measured left no times of its steps; "
                    "try: compute_ms=")
    return {kind: s / total * step for kind, s in seconds.items()}


def _measure(run, mesh):
    """Words of a step with the times of one worker here. With a mesh it is a model of the
    same width with few layers, which fits into this machine's memory."""
    layers = min(run["layers"], FEW) if mesh else run["layers"]
    batch, accum = int(run["settings"]["batch"]), int(run["settings"]["accum"])
    if mesh:
        batch, accum = batch if "batch" in run["asked"] else 1, 1
    print(f"measuring how long one worker computes here: {STEPS} steps of {layers} layers; "
          "to skip this, give compute_ms=", file=sys.stderr, flush=True)
    times = _measure_step(run, batch, accum, layers)
    return [f"layers_measured={layers}",
            f"forward_s={times['forward'] / (batch * accum)!r}",
            f"backward_s={times['backward'] / (batch * accum)!r}",
            f"update_s={times['update'] / _parameters(run, layers)!r}"]


def _parameters(run, layers):
    """Of the run's model with another number of layers."""
    C = run["channels"]
    return run["params"] - (run["layers"] - layers) * (12 * C * C + 13 * C)


class Question:
    """The words of a command line, and what follows from them for both forms."""

    def __init__(self, core, words):
        self.core = core
        self.mesh = any(word.startswith(MESH_WORDS) for word in words)
        rows = MESH_ROWS if self.mesh else ROWS
        self.values, rest = own_words(core, rows, ALL, words)
        self.link, self.device = self.values["link"], self.values["device"]
        self.alpha_us = float(self.values["alpha_us"])
        self.gpu = self.device != "cpu"
        self.compute_ms = float(self.values["compute_ms"])
        if self.gpu and self.compute_ms:
            gpu_step.find(self.device)
            raise Error(f"predict: device={self.device} estimates compute_ms=; try: "
                        "without one of them")
        self.run = gpu_step.with_precision(core, self.device, rest) if self.gpu else \
            core.ask("run", *rest)
        self.settings, self.asked = self.run["settings"], self.run["asked"]
        self.budget = budget.Budget(self.values)
        self.budget.check(self.gpu, self.compute_ms)
        self.times = []  # words of a step
        self.computing = "compute_ms=, divided by FLOP"

    def read_times(self):
        """Finds the times of computing. compute_ms= is the time of all micro-batches, or
        with a mesh of one."""
        ms, sequences = self.compute_ms, int(self.settings["batch"])
        if not self.mesh:
            sequences *= int(self.settings["accum"])
        if self.budget.flops:
            ms = 1e3 * (sequences * self.run["context"]) * self.run["flop"] / \
                (self.budget.flops * self.budget.mfu)
            self.computing = "flops= and mfu=, divided by FLOP"
        if self.gpu:
            sequences = int(self.settings["batch"])
            ms = gpu_step.estimate(self.device, self.run, sequences)
            self.computing = "estimated for this device, divided by FLOP"
            if not self.mesh and not self.link:
                return  # only the estimate was asked for
        if ms:
            self.times = [f"compute_s={ms * 1e-3 / sequences!r}"]
        else:
            self.times = _measure(self.run, self.mesh)
            self.computing = "measured here, divided by FLOP" if self.mesh else \
                "measured here"
        self._add_disk()

    def _add_disk(self):
        """With offload=disk the rate of the file is a time, too."""
        rate = float(self.values["disk"])
        if (self.settings["offload"] == "disk") != bool(rate):
            has, lacks = ("disk=", "offload=disk") if rate else ("offload=disk", "disk=")
            raise Error(f"predict: {has} requires {lacks}, too; try: offload=disk disk=1e9")
        self.times += [f"disk={rate!r}"] * bool(rate)

    def say_note(self, names):
        """What is not counted for GPUs in tables of these backends."""
        if self.gpu:
            say_gpu_memory(names)
        elif self.budget.flops:
            say("If workers are GPUs, what hosts do for zero, dataparallel, servers, outer "
                "and stages is not counted.")

    def read_link(self, text, alpha_s, who="tcp"):
        """The fit of a link, with its error for all gradients in fp32."""
        return self.core.ask("link", text, alpha_s, who, str(self.run["params"] * 4))


# ---- the form that compares backends


def _time_text(seconds):
    """With four digits, in us, ms or s."""
    us = seconds * 1e6
    return f"{us:.4g} us" if us < 1e3 else f"{us * 1e-3:.4g} ms" if us < 1e6 else \
        f"{seconds:.4g} s"


def _bytes_text(count):
    return f"{count * 1e-9:.4g} GB" if count >= 1e9 else f"{count * 1e-6:.4g} MB"


class Ways:
    """The question about backends."""

    def __init__(self, question):
        self.q = q = question
        backends = q.core.table()["backends"]
        for name, mesh in (("tp_sequence", "tp2"), ("tp_wire", "tp2"),
                           ("attention_over", "cp2")):
            if name in q.asked:
                raise Error(f"predict: {name}= is for workers that divide a replica; try: "
                            f"mesh={mesh}")
        if q.settings["global_batch"] != "0":
            raise Error("predict: global_batch= needs a single number of workers; try: "
                        "batch= and accum= instead")
        if q.settings["attention"] == "cudnn":
            raise Error("predict: attention=cudnn: nothing of cuDNN's kernels was counted "
                        "or measured; try: attention=ours")
        if not q.link and not q.gpu:
            raise Error("predict: link= is missing; try: link=25gbit")
        if not q.link:
            return
        q.core.ask("check", "predict", *NEEDED)
        one = q.settings["sync"] == backends[0]["name"]
        self.workers = read_workers(q.values["workers"] or (
            q.settings["workers"] if "workers" in q.asked else "4"))
        self.ways = read_backends(q.core, backends, q.values["sync"] or (
            names_of(backends, "has_law") if one else q.settings["sync"]))
        self.ways = only_compressing("predict",
                                     only_offloading(self.ways, q.settings, q.gpu), q.run,
                                     bool(q.values["sync"]) or not one, q.gpu)
        self.fit = q.read_link(q.link, repr(q.alpha_us * 1e-6), who="")
        self.whole = max(int(q.settings[name]) for name in WHOLE_STEPS)

    def work(self, way, step):
        """What hosts of GPUs do in it."""
        return on_host(way, self.q.settings, step) * self.q.gpu

    def step(self, workers, way, *more):
        """A step. Workers are on hosts of their own. They share this machine's cores,
        which decide how much memory their threads take."""
        q = self.q
        return q.core.ask("step", f"mesh=dp{workers}", f"sync={way['name']}",
                          f"threads={threads(q.run, workers)}", f"hosts={workers}",
                          "slots=1", "measured=1", *q.times, *more)

    def whole_steps(self, workers):
        """Steps that send whole gradients. Workers update in them, too."""
        return [self.step(workers, way, "squeeze=none", "update=worker") for way in self.ways]

    def tokens_per_s(self, step, first):
        """The mean of the training of tokens=, whose first steps are like `first`."""
        after, tokens = step["exchange"]["tokens_per_s"], self.q.budget.tokens
        before = first["exchange"]["tokens_per_s"]
        early = min(self.whole * before * first["exchange"]["overlapped_s"], tokens)
        return tokens / (early / before + (tokens - early) / after) if tokens else after

    def say_question(self, step):
        """What was asked, and assumed."""
        q, wire, squeeze = self.q, self.q.settings["wire"], self.q.settings["squeeze"]
        print(f"model:     {q.run['says']}")
        print(f"gradients: wire={wire}, {BYTES[wire]} bytes each: "
              f"{_bytes_text(q.run['params'] * BYTES[wire])}")
        if squeeze != "none":
            print(f"           compressed by squeeze={squeeze}; the time to compress is not "
                  "known, and not counted")
        if self.fit["sizes"]:
            print(f"network:   as measured by {self.fit['workers']} workers, {q.link}")
        else:
            print(f"network:   {q.link}, not measured; assumed: "
                  f"{self.fit['bytes_per_s'] * 8e-9:.4g} Gbit/s of payload, "
                  f"{self.fit['alpha_s'] * 1e6:g} us a message")
        tokens = int(q.settings["batch"]) * int(q.settings["accum"]) * q.run["context"]
        print(f"computing: one worker takes {_time_text(step['compute_s'])} for a step of "
              f"{float(tokens):g} tokens, {_time_text(step['backward_s'][0])} of it for "
              f"backward ({q.computing})")

    def say_times(self, workers, steps, first=()):
        """The table of the times with so many workers. With `first` also of the training,
        which begins with such steps."""
        head, whole, width = f"{workers} workers", self.q.budget, 12 + self.q.gpu
        print(f"\n{head:<{width}} {'traffic':>10} {'exchange':>10} {'no overlap':>11} "
              f"{'overlap':>10} {'error':>7} {'tokens/s':>10} {'efficiency':>10}"
              f"{whole.head() if first else ''}")
        for way, step, early in zip(self.ways, steps, first or steps):
            x = step["exchange"]
            error = 50 * (x["most_s"] - x["least_s"]) / x["overlapped_s"]
            name = way["name"] + "*" * bool(self.work(way, step))
            print(f"{name:<{width}} {_bytes_text(x['link_bytes']):>10} "
                  f"{_time_text(x['exchange_s']):>10} {_time_text(x['apart_s']):>11} "
                  f"{_time_text(x['overlapped_s']):>10} {error:6.1f}% "
                  f"{x['tokens_per_s']:10.0f} {x['efficiency'] * 100:9.1f}%" +
                  (whole.row(self.tokens_per_s(step, early), workers) if first else ""))

    def say_memory(self, workers, steps):
        """The table of the memory of a worker, and of a server."""
        print("\n" + memory_head(f"{workers} workers"))
        for way, step in zip(self.ways, steps):
            for row in memory_rows(way["name"], step["worker"], step["server"]):
                print(row)

    def winner(self, workers, steps):
        """The fastest backend with those that are equal within the error, and how much
        longer each other takes, of those that train the same thing and of which all is
        counted."""
        rows = [(way["name"], step["exchange"]) for way, step in zip(self.ways, steps)
                if not way["apart"] and not self.work(way, step)]
        if len(rows) < 2:
            return []
        best = min((x for _, x in rows), key=lambda x: x["overlapped_s"])
        equal = [name for name, x in rows if x["least_s"] <= CLOSE * best["most_s"]]
        *first, last = equal
        since = f", from step {self.whole + 1} on" * bool(self.whole)
        return [f"{workers} workers{since}: {', '.join(first)}{' and ' * bool(first)}{last}"
                f"{' are fastest, too close to tell apart' if first else ' is fastest'}" +
                "".join(f"; {name} takes {x['overlapped_s'] / best['overlapped_s']:.3g} "
                        "times as long" for name, x in rows if name not in equal)]

    def most(self, workers, steps):
        """How much shorter compressing makes a step, and how much any compressor could: a
        step takes as long as its computing at least (docs/squeeze.md). With GPUs only the
        second is known, of ways that leave whole gradients on them."""
        whole_settings, gpu = {**self.q.settings, "squeeze": "none"}, self.q.gpu
        for way, step, whole in zip(self.ways, steps, self.whole_steps(workers)):
            if gpu and on_host(way, whole_settings, whole):
                continue
            took, alone = whole["exchange"]["overlapped_s"], step["compute_s"]
            won = took / step["exchange"]["overlapped_s"]
            times = "" if gpu else f", {won:.3g} times as long"
            yield (f"{workers} workers, {way['name']}: whole gradients take "
                   f"{_time_text(took)} a step{times}; no compressor can win "
                   f"more than {took / alone:.3g} times" +
                   ": the link is not the limit" * (took / alone < LIMIT))

    def apart(self, steps):
        """Why ways whose workers train apart are not compared, if hosts are no reason."""
        for way, step in zip(self.ways, steps):
            if way["apart"]:
                why = " It is left out of the\ncomparison: its workers train apart in " \
                    "between, so they may learn less in as many steps."
                yield f"{way['name']} exchanges every {self.q.settings['every']} steps; " \
                    "its row is the mean of all steps." + why * (not self.work(way, step))

    def answer(self):
        """Prints all of it."""
        steps = {}
        for workers in self.workers:
            steps[workers] = [self.step(workers, way) for way in self.ways]
            if len(steps) == 1:
                self.say_question(steps[workers][0])
            first = steps[workers]
            if self.whole:
                first = self.whole_steps(workers)
                print(f"\nsteps 1 to {self.whole} send whole gradients:")
                self.say_times(workers, first)
                print(f"\nfrom step {self.whole + 1} on:")
            self.say_times(workers, steps[workers], first)
        print(LEGEND)
        if self.q.budget.tokens:
            print(budget.LEGEND)
        for workers in self.workers:
            self.say_memory(workers, steps[workers])
        print(f"\nThe memory of a worker by part is in MB, with "
              f"batch={self.q.settings['batch']}"
              f"{' and recompute=1' * (self.q.settings['recompute'] == '1')}.")
        self.q.say_note([way["name"] for way in self.ways])
        say_on_host((way["name"], self.work(way, step))
                    for way, step in zip(self.ways, steps[self.workers[0]]))
        lines = []
        for workers in self.workers:
            lines += self.winner(workers, steps[workers])
            if self.q.settings["squeeze"] != "none":
                lines += self.most(workers, steps[workers])
        lines += self.apart(steps[self.workers[0]])
        if lines:
            print("", *lines, sep="\n")


# ---- the form with a mesh


def _mesh_search(q):
    """The search of a question with a mesh."""
    mesh, core = mesh_of(q.settings["mesh"]), q.core
    core.ask("check", "predict")
    for name in WHOLE_STEPS:
        if q.settings[name] != "0":
            raise Error(f"predict: {name}={q.settings[name]} makes two kinds of steps, and a "
                        "table of meshes has one; try: workers= instead of hosts=, slots= "
                        "and mesh=")
    ranks = math.prod(mesh.values()) if mesh else 0
    given = int(q.settings["workers"]) if "workers" in q.asked else 0
    if ranks and given and given != ranks:
        raise Error(f"predict: mesh={q.settings['mesh']} has {ranks} ranks, not "
                    f"workers={given}; try: without workers=")
    hosts, slots = place(int(q.values["hosts"]), int(q.values["slots"]), given or ranks,
                         "predict")
    if "accum" in q.asked:
        raise Error("predict: accum= follows from hosts=, slots= and global_batch=; try: "
                    "without accum=")
    if hosts * slots > 4096:
        raise Error(f"predict: hosts={hosts} with slots={slots} are {hosts * slots} workers; "
                    "at most 4096 are possible")
    if mesh.get("tp", 1) > q.run["heads"] or mesh.get("pp", 1) > meshes.STAGES:
        raise Error(f"predict: mesh={q.settings['mesh']}: tp is more than the model's "
                    f"{q.run['heads']} heads, or pp is more than {meshes.STAGES}")
    if q.gpu:
        refuse_pieces(mesh, "predict")
    search = meshes.Search(core, q.run, hosts, slots, q.gpu)
    _read_links(q, search)
    if q.values["memory"]:
        search.memory = read_size("memory", q.values["memory"])
    return search


def _read_links(q, search):
    """Workers of one host have inner=, or with one host link=, or what is assumed for the
    device."""
    one, alpha_s = search.hosts == 1, repr(q.alpha_us * 1e-6)
    q.inside, q.assumed = q.values["inner"] or (q.link if one else ""), ""
    q.link = q.link or ("" if one else "25gbit")
    if q.link:
        search.outer = q.read_link(q.link, alpha_s)
    if q.inside:
        search.inner = q.read_link(q.inside, alpha_s)
    elif search.slots > 1 and not q.gpu:
        raise Error(f"predict: inner= is missing, the rate between the {search.slots} "
                    "workers of a host; try: inner=200gbit")
    elif search.slots > 1:
        gpu = gpu_step.find(q.device)
        search.inner, q.assumed = q.read_link(*gpu["inner"]), gpu["assumed"]


def _say_mesh_question(q, search, times):
    several = search.hosts > 1
    where = "within a host" if several else "between workers"
    links = [f"{q.link} between hosts, {q.alpha_us:g} us a message"] * several
    if search.slots > 1:
        links.append(f"{where}, {q.assumed}" if q.assumed else
                     f"{q.inside} {where}, {q.alpha_us:g} us a message")
    ms = [t * 1e3 for t in times]
    print(f"model:     {q.run['says']}\n"
          f"workers:   {search.slots} on {'each of ' * several}{search.hosts} "
          f"host{'s' * several}, {q.values['memory'] or 'unlimited memory'} each")
    for i, link in enumerate(links):
        print(f"{'' if i else 'links:':<10} {link}")
    print(f"computing: ms for one sequence: a layer {ms[0]:.4g} forward, {ms[1]:.4g} "
          f"backward; the head {ms[2]:.4g}, {ms[3]:.4g}\n           ({q.computing})\n"
          f"step:      {search.global_batch} sequences of {q.run['context']} tokens\n")


def _answer_mesh(q, search):
    search.times = q.times
    search.search()
    _say_mesh_question(q, search, search.layer_times())
    if not search.best and search.too_large:
        raise Error(f"memory={q.values['memory']}: none of {search.tried} ways fits; the "
                    f"smallest takes {sum(search.least.step['worker']) * 1e-6:.0f} MB; try: "
                    "recompute=1, precision=bf16 or more hosts")
    if not search.best:
        raise Error(search.refused or
                    f"predict: no mesh can divide a step of {search.global_batch} "
                    "sequences; try: another global_batch=, batch= or mesh=")
    meshes.print_table(search, q.budget, q.say_note)


def predict(words):
    """lockstep predict."""
    with Core() as core:
        q = Question(core, words)
        form = _mesh_search(q) if q.mesh else Ways(q)
        q.read_times()
        if q.mesh:
            _answer_mesh(q, form)
        elif q.link:
            form.answer()
    return 0
