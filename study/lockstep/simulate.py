"""The command simulate: an exchange, a collective or a step on many simulated workers,
or the timetable of a pipeline.

For each number of workers it writes a platform (one switch, and a link for each host)
and lets SimGrid's smpirun run the program simulate_job on it. It prints the simulated
time and the law's. docs/scale.md has results.
"""

import contextlib
import math
import os
import sys

from .core import Core, key, key_help, own_words
from .files import Error, make_folder, number, visible, write_text
from .forecast import (mesh_of, names_of, only_compressing, read_backends, read_workers,
                       refuse_pieces)
from .simulator import Simulator, Table

ALL = "lockstep simulate --help"
ALGORITHMS = ["auto", "ring", "halving", "doubling", "tree", "library"]
OPS = ["broadcast", "reduce", "scatter", "gather"]
COLLECTIVES = ["linear", "tree", "chain"]
SCHEDULES = ["naive", "gpipe", "1f1b"]
STAGES, MICRO, CHUNKS = 64, 4096, 16  # the most (pipeline/timetable.h)


def _common(group):
    """The rows that every table has but that of a pipeline."""
    return [
        key(group, "workers", "2,4,8,16", "text", "numbers of workers, 2..4096 each",
            unit="N,N.."),
        key(group, "link", "25gbit", "text",
            "of every worker: 25gbit, 3MB/s of payload, or a file that lockstep bench link "
            "wrote", unit="RATE|FILE"),
        key(group, "alpha_us", "25", "number", "latency of a message, with link=RATE",
            min=0, max=1e6, unit="us"),
        key(group, "network", "ideal", "choice",
            "ideal: as the law assumes; smpi: SimGrid's default model",
            words=["ideal", "smpi"]),
        key(group, "payload", "0", "int", "send real numbers, and check the sums", min=0,
            max=1),
        key(group, "timeout", "600", "number", "the longest time of each simulation", min=1,
            max=1e6, unit="s"),
        key(group, "out", "runs/simulate", "text",
            "the folder of the table and the simulator's files", unit="FOLDER"),
    ]


EXCHANGE = _common("simulate") + [
    key("simulate", "model", "gpt2", "word",
        "the model whose fp32 gradients are exchanged", unit="PRESET"),
    key("simulate", "mb", "0", "number", "size of the gradients", min=1e-5, max=8000,
        zero="the model's", unit="MB"),
    key("simulate", "sync", "all", "text", "the backends to simulate", unit="NAME,.."),
    key("simulate", "update", "server", "choice",
        "with servers: who updates the parameters", words=["server", "worker"]),
    key("simulate", "algorithm", "auto", "choice",
        "of sync=allreduce: ring, or halving; auto is ring", words=ALGORITHMS),
    key("simulate", "bucket_mb", "0", "number",
        "without servers: size of a bucket, or all gradients", min=.001, max=1e6,
        zero="whole", unit="MiB"),
    key("simulate", "slice_kb", "0", "int",
        "size of a message; auto: a chunk in a ring, 256 with servers", min=1, max=65536,
        zero="auto", unit="KiB"),
]

# Keys of train that count as well: how gradients are compressed, and the model's sizes.
SQUEEZE = "squeeze", "density", "scope", "levels", "squeeze_rank"
SIZES = "layers", "heads", "channels", "context", "vocab_size"
WHOLE = "4096"  # MiB: the largest bucket

COLLECTIVE = [
    key("op=", "op", "broadcast", "choice", "the collective; its root is worker 0",
        words=OPS),
    key("op=", "algorithm", "all", "choice", "scatter and gather have only linear and tree",
        words=["all", *COLLECTIVES]),
    key("op=", "mb", "5", "number", "size of the whole vector", min=1e-5, max=2000,
        unit="MB"),
    key("op=", "slice_kb", "256", "number", "chain: size of a piece", min=.004, max=1e6,
        unit="KiB"),
] + _common("op=")

MESH = [
    key("mesh=", "mesh", "", "parts", "replicas, stages and slices, as dp16,pp8,tp8"),
    key("mesh=", "model", "gpt2", "word", "the model, in fp32", unit="PRESET"),
    key("mesh=", "batch", "1", "int", "of a micro-batch", min=1, max=65536,
        unit="sequences"),
    key("mesh=", "micro", "8", "int", "micro-batches of a step", min=1, max=MICRO),
    key("mesh=", "pipeline", "1f1b", "choice", "the schedule", words=SCHEDULES),
    key("mesh=", "ahead", "0", "int",
        "1f1b: further forwards a stage runs ahead for each hop", min=0, max=STAGES),
    key("mesh=", "stages", "", "parts", "layers of each stage; empty: evenly"),
    key("mesh=", "compute_ms", "1000", "number",
        "of a micro-batch through the whole model on one worker", min=0, max=1e9,
        unit="ms"),
] + _common("mesh=")

PIPELINE = [
    key("pipeline=", "pipeline", "all", "choice", "the schedule", words=["all", *SCHEDULES]),
    key("pipeline=", "stages", "4", "int", "parts of the model, one for each worker", min=1,
        max=STAGES),
    key("pipeline=", "micro", "8", "int", "micro-batches of a step", min=1, max=MICRO),
    key("pipeline=", "chunks", "1", "int",
        "parts of the model in each stage; above 1: interleaved", min=1, max=CHUNKS),
    key("pipeline=", "ahead", "0", "int",
        "1f1b: further forwards a stage runs ahead for each hop", min=0, max=STAGES),
    key("pipeline=", "forward_ms", "10", "text", "one time for all stages, or one for each",
        unit="MS[,MS..]"),
    key("pipeline=", "backward_ms", "20", "text",
        "one time for all stages, or one for each", unit="MS[,MS..]"),
    key("pipeline=", "hop_ms", "0", "number", "time of a message to the next stage", min=0,
        max=1e6, unit="ms"),
    key("pipeline=", "out", "runs/pipeline", "text",
        "the folder of timetable.csv and the figure", unit="FOLDER"),
]

HELP = """\
lockstep simulate [key=value] ...

Simulates one exchange of all gradients on a cluster of any size, and prints its
seconds beside the law's. Every host has a link of its own to one switch. It needs
SimGrid.
"""

EXCHANGES = """
These keys of train count as well: layers, heads, channels, context, vocab_size; and for
gradients that are compressed squeeze, density, scope, levels, squeeze_rank.

The law is the textbooks' time of the exchange, without contention. ratio is
simulated / law. took and memory are the time and the memory of the simulation itself.
  lockstep simulate workers=2,16,128 model=gpt2 link=10gbit
  lockstep simulate workers=2,16 squeeze=topk density=0.001
"""

KINDS = [  # what else it explains: (rows, before, after)
    (COLLECTIVE, "\nWith op= it simulates a collective, as textbooks teach it "
     "(docs/collectives.md).\n",
     "  lockstep simulate op=broadcast workers=8 mb=5 link=1MB/s alpha_us=0\n"),
    (MESH, "\nWith mesh= it simulates a step of a model in replicas, stages and slices. "
     "The\nexchange is done by the trainer's own code. Every worker has a link of its "
     "own.\n", "  lockstep simulate mesh=dp16,pp8,tp8 model=gpt2-xl link=25gbit\n"),
    (PIPELINE, "\nWith pipeline= it computes the timetable of a step of a model that is "
     "divided into\nstages, and draws it. It needs no SimGrid.\n",
     "  lockstep simulate pipeline=all stages=2 forward_ms=26 backward_ms=51 hop_ms=8.8\n"),
]

def explain():
    """What --help says."""
    with Core() as core:
        simulated = names_of(core.table()["backends"], "is_simulated")
        return (HELP + key_help(core, EXCHANGE) + f"\nsync={simulated}\n" + EXCHANGES +
                "".join(before + key_help(core, rows) + after
                        for rows, before, after in KINDS))


def _check_size(elements, workers):
    for n in workers:
        if elements < n:
            raise Error(f"simulate: {elements} gradients are less than {n} workers; try: "
                        "mb=1")


# ---- an exchange of gradients


class Exchange:
    """The words of an exchange, and what follows from them."""

    def __init__(self, core, words):
        self.core = core
        self.values, self.train = own_words(core, EXCHANGE, ALL, words)
        for word in self.train:
            if word.partition("=")[0] not in SQUEEZE + SIZES:
                core.ask("words", EXCHANGE, ALL, word)  # which refuses it
        values = self.values
        self.run = self._ask_run()
        self.settings = self.run["settings"]
        self.squeezes = self.settings["squeeze"] != "none"
        core.ask("check", "simulate")
        if values["mb"] != "0" and self.train:
            raise Error(f"simulate: mb={values['mb']} has no model, and {self.train[0]} needs "
                        "one; try: without mb=")
        self.elements = int(float(values["mb"]) * 1e6 / 4) if values["mb"] != "0" else \
            self.run["params"]
        if values["algorithm"] not in ALGORITHMS[:1 if self.squeezes else 3]:
            raise Error(f"simulate: algorithm={values['algorithm']}: must be auto" +
                        ("; squeeze= sums no whole gradients" if self.squeezes else
                         ", ring or halving"))
        self.ways = self._read_ways()

    def _ask_run(self, *more):
        """What the words of train say. squeeze=demo is a rule of its own."""
        bucket = WHOLE if self.values["bucket_mb"] == "0" else self.values["bucket_mb"]
        return self.core.ask("run", f"model={self.values['model']}", *self.train,
                             f"bucket_mb={bucket}",
                             *["optimizer=sgd"] * ("squeeze=demo" in self.train), *more)

    def _read_ways(self):
        """The backends. With squeeze= those that compress gradients."""
        backends, given = self.core.table()["backends"], self.values["sync"]
        ways = read_backends(self.core, backends, names_of(backends, "is_simulated")
                             if given == "all" else given)
        for way in ways if given != "all" else ():
            if not way["is_simulated"]:
                raise Error(f"simulate: sync={way['name']} has a law but no simulation; try: "
                            "lockstep predict")
        return only_compressing("simulate", ways, self.run, given != "all")

    def law(self, way, workers, slice_kb):
        """The law of a backend."""
        updates = self.values["update"] == "server" or way["traffic"] == "owner"
        self._ask_run(*[f"slice_kb={slice_kb}"] * bool(way["servers"]))
        return self.core.ask(
            "law", f"sync={way['name']}", f"workers={workers}", f"held={int(updates)}",
            f"algorithm={'halving' if self.values['algorithm'] == 'halving' else 'ring'}")

    def words(self, way, workers, slice_kb):
        """The words of simulate/main.c."""
        values, run = self.values, self.run
        words = [f"sync={way['name']}", f"workers={workers}", f"n={self.elements}",
                 f"slice_kb={slice_kb}", f"bucket_mb={float(values['bucket_mb']):.9g}",
                 f"payload={values['payload']}",
                 f"worker_updates={int(values['update'] == 'worker')}"]
        if self.squeezes:
            sizes = dict(zip(SIZES, (run["layers"], run["heads"], run["channels"],
                                     run["context"], run["vocab"])))
            words += ["train", *(f"{name}={size:.0f}" for name, size in sizes.items()),
                      *(f"{name}={self.settings[name]}"
                        for name in (*SQUEEZE, "bucket_mb"))]
        return words


def _exchange(core, words):
    e = Exchange(core, words)
    workers, simulator = read_workers(e.values["workers"]), Simulator(core, e.values)
    _check_size(e.elements, workers)
    simulator.check()
    usual = core.ask("run")["settings"]["slice_kb"]
    note = f", squeeze={e.settings['squeeze']}" * e.squeezes
    with Table(simulator, e.elements, "simulate.csv", "backend", note) as table:
        jobs = [(n, way) for n in workers for way in e.ways]
        for i, (n, way) in enumerate(jobs, 1):
            print(f"simulation {i} of {len(jobs)}: {way['name']}, {n} workers",
                  file=sys.stderr, flush=True)
            # 0 for the ring, which then sends a chunk as one message
            slice_kb = usual if e.values["slice_kb"] == "0" and way["servers"] else \
                e.values["slice_kb"]
            law = e.law(way, n, slice_kb)
            table.row(way["name"], simulator.law_seconds(law, e.elements * 4), n, way,
                      e.words(way, n, slice_kb),
                      waited=e.squeezes or bool(way["servers"]) or way["traffic"] == "owner",
                      halving=e.values["algorithm"] == "halving")


# ---- a collective of the textbooks


def _collective(core, words):
    """One worker has a file that 7 others need, and a copy takes 5 s: the linear broadcast
    takes 35 s, the tree 15 s. docs/collectives.md has more."""
    values = core.ask("words", COLLECTIVE, ALL, *words)
    op, elements = values["op"], int(float(values["mb"]) * 1e6 / 4)
    able = COLLECTIVES if op in OPS[:2] else COLLECTIVES[:2]
    asked = able if values["algorithm"] == "all" else [values["algorithm"]]
    if asked[0] not in able:
        raise Error(f"simulate: op={op} has no algorithm={asked[0]}; try: algorithm=linear "
                    "or tree")
    workers, simulator = read_workers(values["workers"]), Simulator(core, values)
    _check_size(elements, workers)
    simulator.check()
    piece = min(int(float(values["slice_kb"]) * 1024 / 4), elements)
    alone = core.table()["backends"][0]  # no servers
    with Table(simulator, elements, "collectives.csv", "op,algorithm") as table:
        for n in workers:
            for algorithm in asked:
                which, by = OPS.index(op), COLLECTIVES.index(algorithm)
                law = core.ask("law", f"op={which + 1}", f"by={by}", f"workers={n}",
                               f"n={elements}", f"piece={piece}")
                table.row(f"{op},{algorithm}", simulator.law_seconds(law, elements * 4), n,
                          alone, [f"op={which}", f"algorithm={by}", f"piece={piece}",
                                  f"workers={n}", f"n={elements}", "slice_kb=0",
                                  "bucket_mb=0", f"payload={values['payload']}",
                                  "worker_updates=0"], waited=True)


# ---- a step on a mesh of workers


def _mesh_words(values, mesh, run, step):
    """The words of simulate/mesh_step.c, with lists by stage: the times without joins,
    which are simulated; the numbers of joins; the parameters."""
    slices, batch = mesh.get("tp", 1), int(values["batch"])
    times, count = step["times"], len(step["layers"])

    def listed(name, numbers):
        return f"{name}=" + ",".join(f"{v:.6g}" for v in numbers)

    def computes(layer, head):
        return [batch / slices * (layers * layer + (s == count - 1) * head)
                for s, layers in enumerate(step["layers"])]

    join = batch * run["context"] * run["channels"]
    return [f"mesh={values['mesh']}", f"pipeline={values['pipeline']}",
            f"micro={values['micro']}", f"ahead={values['ahead']}", f"stream={join * 4}",
            f"join={join}", f"tied={run['vocab'] * run['channels'] / slices:.0f}",
            listed("forward_s", computes(times[0], times[2])),
            listed("backward_s", computes(times[1], times[3])),
            listed("joins_forward", step["joins_forward"]),
            listed("joins_backward", step["joins_backward"]),
            listed("params", map(math.ceil, step["params"]))]


def _mesh(core, words):
    """The law is that of forecast/mesh_case.h, without overlap: the timetable with each
    stage's times, joins and hops, then the tied embedding and the norm, then the ring of
    the replicas. Every worker has a link of its own."""
    values = core.ask("words", MESH, ALL, *words)
    mesh = mesh_of(values["mesh"])
    ranks, stages = math.prod(mesh.values()), mesh.get("pp", 1)
    if ranks < 2:
        raise Error("simulate: mesh= has one worker, which exchanges nothing; try: "
                    "mesh=dp2,pp2")
    if values["payload"] == "1":
        raise Error("simulate: payload=1 does not work with mesh=; try: without payload=")
    read_workers(values["workers"])
    simulator = Simulator(core, values)
    run = core.ask("run", f"model={values['model']}")
    cut = values["stages"].count(",") + 1 if values["stages"] else 0
    if cut and cut != stages:
        raise Error(f"simulate: stages= has {cut} stages, mesh= has {stages}; try: without "
                    "stages=")
    refuse_pieces(mesh, "simulate")
    ring = next(b for b in core.table()["backends"] if b["traffic"] == "ring" and b["parts"])
    link = simulator.link
    step = core.ask(
        "step", f"mesh={values['mesh']}", f"sync={ring['name']}", f"batch={values['batch']}",
        f"accum={values['micro']}", f"pipeline={values['pipeline']}",
        f"ahead={values['ahead']}", f"stages={values['stages']}", f"hosts={ranks}", "slots=1",
        f"compute_s={float(values['compute_ms']) * 1e-3 / int(values['batch'])!r}",
        *(f"{side}_{k}={link[k]!r}" for side in ("outer", "inner")
          for k in ("alpha_s", "bytes_per_s")))
    simulator.check()
    replicas, sums_s = mesh.get("dp", 1), 0
    if replicas > 1:
        law = core.ask("law", f"sync={ring['name']}", f"workers={replicas}")
        sums_s = max(simulator.law_seconds(law, math.ceil(p) * 4) for p in step["params"])
    law_s = step["pipeline_s"] + step["tied_s"] + sums_s
    with Table(simulator, math.ceil(step["params"][0]), "mesh.csv", "mesh") as table:
        table.row(values["mesh"].replace(",", " "), law_s, ranks, ring,
                  _mesh_words(values, mesh, run, step))
    print(f"the law: {step['pipeline_s']:.6g} s for the timetable (bubble "
          f"{100 * step['bubble']:.1f}%), {step['tied_s']:.6g} s for the tied embedding and "
          f"the norm,\n{sums_s:.6g} s for the replicas' ring")


# ---- the timetable of a pipeline


def _read_times(values, name):
    """One time for all stages, or one for each."""
    text, stages = values[name], int(values["stages"])
    times = [number(item) for item in text.split(",")]
    for item, ms in zip(text.split(","), times):
        if ms is None or not 0 <= ms <= 1e9:
            raise Error(f"simulate: {name}={visible(text)}: {visible(item)}: must be 0 .. "
                        "1e9 milliseconds")
    if len(times) not in (1, stages):
        raise Error(f"simulate: {name}={visible(text)}: {len(times)} times for {stages} "
                    "stages; try: one time, or one for each stage")
    return times * stages if len(times) == 1 else times


def _timetables(core, values):
    """(schedule, answer) of the schedules that the words ask for. pipeline=all means those
    that support the other words: only 1f1b supports chunks and ahead."""
    def ask(kind):
        return core.ask("timetable", f"pipeline={kind}",
                        *(f"{k}={values[k]}" for k in ("stages", "micro", "chunks", "ahead",
                                                       "hop_ms", "forward_ms",
                                                       "backward_ms")))
    if values["pipeline"] != "all":
        return [(values["pipeline"], ask(values["pipeline"]))]
    *others, last = SCHEDULES
    found = [(last, ask(last))]
    for kind in reversed(others):
        with contextlib.suppress(Error):
            found.insert(0, (kind, ask(kind)))
    return found


def _pipeline(core, words):
    """The user gives the times of a stage, measured or guessed. A hop always takes the
    same time, even if several messages are sent at once."""
    from . import figures
    for word in words:
        if word == "pipeline=interleaved":
            raise Error(f"{word}: that is 1f1b with several chunks a stage; try: "
                        "pipeline=1f1b chunks=2")
    values = core.ask("words", PIPELINE, ALL, *words)
    stages, micro, chunks = (int(values[k]) for k in ("stages", "micro", "chunks"))
    busy = micro * chunks * 1e-3 * sum(map(sum, zip(
        _read_times(values, "forward_ms"), _read_times(values, "backward_ms"))))
    tables = _timetables(core, values)
    make_folder(values["out"])
    path = os.path.join(values["out"], "timetable.csv")
    rows = ["schedule,stage,action,micro,chunk,begin_ms,end_ms"]
    print(f"{stages} stages, {micro} micro-batches, {chunks} chunk{'s' * (chunks != 1)} a "
          f"stage; forward {values['forward_ms']} ms, backward {values['backward_ms']} ms, a "
          f"hop {float(values['hop_ms']):g} ms\n\n{'schedule':<8} {'step (ms)':>10} "
          f"{'idle (%)':>8} {'formula (%)':>11}    slots of each stage")
    for kind, table in tables:
        seconds = table["seconds"]
        idle = 100 * (1 - busy / (seconds * stages)) if seconds > 0 else 0
        print(f"{kind:<8} {seconds * 1e3:10.6g} {idle:8.1f} {100 * table['bubble']:11.1f}    "
              + " ".join(map(str, table["slots"])))
        rows += [f"{kind},{s},{('forward', 'backward')[action]},{m},{chunk},"
                 f"{begin * 1e3:.9g},{end * 1e3:.9g}"
                 for s, action, m, chunk, begin, end in table["entries"]]
    write_text(path, "\n".join(rows) + "\n")
    print("\nidle: share of the stages' time. formula: the same for equal stages and a hop "
          "of 0 ms.\nslots: micro-batches whose activations a stage keeps at the same time.\n"
          f"{visible(path)}")
    print("\n".join(map(visible, figures.draw_folder(values["out"], "pipeline", "", ""))))


def simulate(words):
    """lockstep simulate. The first kind that is asked for counts: mesh= has a key
    pipeline=, too."""
    with Core() as core:
        for name, kind in (("op=", _collective), ("mesh=", _mesh), ("pipeline=", _pipeline)):
            if any(word.startswith(name) for word in words):
                kind(core, words)
                return 0
        _exchange(core, words)
    return 0
