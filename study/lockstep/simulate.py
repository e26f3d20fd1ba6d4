"""The command simulate: an exchange, a collective or a step on many simulated workers,
or the timetable of a pipeline.

For each number of workers it writes a platform (one switch, and a link for each host)
and lets SimGrid's smpirun run the program simulate_job on it. It prints the simulated
time and the law's. docs/scale.md has results.
"""

import contextlib
import math
import os
import shutil
import signal
import subprocess
import sys
import time

from . import figures
from .core import Core, key, key_help
from .files import Error, create, make_folder, number, read_lines, visible, write_text
from .forecast import mesh_of, names_of, read_backends, read_workers, refuse_pieces
from .places import helper
from .runner import end_with_parent

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
The law is the textbooks' time of the exchange, without contention. ratio is
simulated / law. took and memory are the time and the memory of the simulation itself.
  lockstep simulate workers=2,16,128 model=gpt2 link=10gbit
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

# SimGrid's links behave as the law assumes: a message takes the latency, plus its bytes
# divided by its share of the bandwidth.
IDEAL = ("network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0",
         "network/latency-factor:1", "network/bandwidth-factor:1")


def explain():
    """What --help says."""
    with Core() as core:
        simulated = names_of(core.table()["backends"], "is_simulated")
        return (HELP + key_help(core, EXCHANGE) + f"\nsync={simulated}\n" + EXCHANGES +
                "".join(before + key_help(core, rows) + after
                        for rows, before, after in KINDS))


# ---- one simulation


class Simulator:
    """Runs simulate_job on simulated hosts, whose files are in a folder."""

    def __init__(self, core, values):
        self.link = core.ask("link", values["link"],
                             repr(float(values["alpha_us"]) * 1e-6), "tcp", "0")
        self.folder, self.timeout_s = values["out"], float(values["timeout"])
        self.ideal = values["network"] == "ideal"
        self.job = helper("simulate_job")

    def law_seconds(self, law, size):
        """The seconds that a law predicts for so many bytes."""
        return law["hops"] * self.link["alpha_s"] + \
            law["share"] * size / self.link["bytes_per_s"]

    def check(self):
        """Refuses to go on without SimGrid."""
        if not shutil.which("smpirun"):
            raise Error("simulate: SimGrid is not installed; try: apt-get install "
                        "libsimgrid-dev, then cmake --preset release and build")
        if not self.job:
            raise Error("simulate: this build has no simulate_job; try: cmake --preset "
                        "release, then cmake --build --preset release (not with "
                        "sanitizers)")

    def _write(self, hosts):
        """The platform and the hosts. A path between two hosts has two links, so each has
        half the latency. Messages within a host take almost no time."""
        write_text(os.path.join(self.folder, "platform.xml"),
                   "<?xml version='1.0'?>\n"
                   '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
                   '<platform version="4.1">\n'
                   '  <cluster id="cluster" prefix="host" suffix="" '
                   f'radical="0-{hosts - 1}" speed="1Gf"\n'
                   f'           bw="{self.link["bytes_per_s"]:.9g}Bps" '
                   f'lat="{self.link["alpha_s"] / 2:.9g}s" '
                   'loopback_bw="1000GBps" loopback_lat="0s"/>\n</platform>\n')
        write_text(os.path.join(self.folder, "hosts.txt"),
                   "".join(f"host{i}\n" for i in range(hosts)))

    def run(self, name, workers, backend, words, waited=False, halving=False):
        """(simulated seconds, seconds that it took, MB of memory). The job gets `words`.
        `waited`: it waits until its messages are sent."""
        hosts = workers + (backend["servers"] == 1)  # a single server has its own host
        ranks = 2 * workers if backend["servers"] < 0 else hosts
        self._write(hosts)
        # All ranks share one block of memory for gradients ("local"), or one page for all
        # messages whose content nobody reads ("global").
        shared = "local" if backend["traffic"] == "library" else "global"
        config = ["smpi/simulate-computation:no", "smpi/wtime:0",
                  *["smpi/send-is-detached-thresh:0"] * waited,
                  f"smpi/allreduce:{'rab_rdb' if halving else 'lr'}",
                  f"smpi/shared-malloc:{shared}", *(IDEAL if self.ideal else ())]
        # smpirun cuts paths at blanks, and that of TMPDIR. So it starts in the folder.
        command = ["smpirun", "-quiet", "-no-privatize", "-np", str(ranks), "-platform",
                   "platform.xml", "-hostfile", "hosts.txt", *(f"--cfg={c}" for c in config),
                   "--log=root.thres:error", self.job, *words]
        log, began = os.path.join(self.folder, "log.txt"), time.monotonic()
        with create(log) as errors:
            child = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, cwd=self.folder,
                env={**os.environ, "TMPDIR": "."}, process_group=0,
                preexec_fn=end_with_parent)
        said, peak = self._wait(child, f"simulate: {name}, {workers} workers")
        seconds = number(said.partition("@seconds=")[2].strip())
        if child.returncode or seconds is None:
            why = next(iter(read_lines(log, 1 << 22)), "") or "no output"
            raise Error(f"simulate: {name}, {workers} workers: {why} ({visible(log)})")
        return seconds, time.monotonic() - began, peak * 1024e-6

    def _wait(self, child, what):
        """(what a child has said, its largest resident size in KiB)."""
        late = False

        def stop(*_):
            nonlocal late
            late = True
            os.killpg(child.pid, signal.SIGKILL)

        signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, self.timeout_s)
        try:
            with child.stdout:
                said = child.stdout.read().decode("utf-8", "replace")
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        except BaseException:
            child.terminate()  # smpirun forwards it
            child.wait()
            raise
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if late:
            raise Error(f"{what}: not done after {self.timeout_s:g} s; try: "
                        f"timeout={4 * self.timeout_s:g}, or fewer workers")
        return said, usage.ru_maxrss


class Table:
    """The table of simulated times beside the law's, on the screen and in a file.
    `columns`: the heads of what `names` fills in each row."""

    def __init__(self, simulator, elements, name, columns):
        self.simulator, self.elements = simulator, elements
        make_folder(simulator.folder)
        self.path = os.path.join(simulator.folder, name)
        link = simulator.link
        self._file = create(self.path)
        self._file.write(f"workers,{columns},mb,simulated_s,law_s,ratio,wall_s,memory_mb\n")
        print(f"{elements * 4e-6:.4g} MB; links of {link['bytes_per_s'] * 8e-9:.4g} Gbit/s "
              f"of payload, {link['alpha_s'] * 1e6:g} us\n\n"
              f"{'workers':>7}  {columns:<20} {'simulated (s)':>13} {'law (s)':>12} "
              f"{'ratio':>8} {'took (s)':>9} {'memory (MB)':>12}")

    def row(self, names, law_s, workers, *job, **more):
        """Runs a simulation, and writes a row with its seconds and the law's."""
        seconds, wall_s, memory = self.simulator.run(names.partition(",")[0], workers, *job,
                                                     **more)
        print(f"{workers:7d}  {names:<20} {seconds:13.6g} {law_s:12.6g} "
              f"{seconds / law_s:8.4f} {wall_s:9.1f} {memory:12.0f}", flush=True)
        self._file.write(f"{workers},{names},{self.elements * 4e-6:.9g},{seconds:.9g},"
                         f"{law_s:.9g},{seconds / law_s:.6f},{wall_s:.2f},{memory:.0f}\n")
        self._file.flush()

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        self._file.close()
        if not error:
            print(f"\n{self.path}")


def _check_size(elements, workers):
    for n in workers:
        if elements < n:
            raise Error(f"simulate: {elements} gradients are less than {n} workers; try: "
                        "mb=1")


# ---- an exchange of gradients


def _exchange(core, words):
    values = core.ask("words", EXCHANGE, ALL, *words)
    elements = int(float(values["mb"]) * 1e6 / 4) if values["mb"] != "0" else \
        core.ask("run", f"model={values['model']}")["params"]
    workers = read_workers(values["workers"])
    simulator = Simulator(core, values)
    _check_size(elements, workers)
    algorithm = values["algorithm"]
    if algorithm not in ALGORITHMS[:3]:
        raise Error(f"simulate: algorithm={algorithm}: must be auto, ring or halving")
    backends = core.table()["backends"]
    ways = read_backends(core, backends, names_of(backends, "is_simulated")
                         if values["sync"] == "all" else values["sync"])
    for way in ways:
        if not way["is_simulated"]:
            raise Error(f"simulate: sync={way['name']} has a law but no simulation; try: "
                        "lockstep predict")
    simulator.check()
    worker_updates = values["update"] == "worker"
    usual = core.ask("run")["settings"]["slice_kb"]
    with Table(simulator, elements, "simulate.csv", "backend") as table:
        jobs = [(n, way) for n in workers for way in ways]
        for i, (n, way) in enumerate(jobs, 1):
            print(f"simulation {i} of {len(jobs)}: {way['name']}, {n} workers",
                  file=sys.stderr, flush=True)
            law = core.ask(
                "law", f"sync={way['name']}", f"workers={n}",
                f"held={int(not worker_updates or way['traffic'] == 'owner')}",
                f"algorithm={'halving' if algorithm == 'halving' else 'ring'}")
            # 0 for the ring, which then sends a chunk as one message
            slice_kb = usual if values["slice_kb"] == "0" and way["servers"] else \
                values["slice_kb"]
            table.row(way["name"], simulator.law_seconds(law, elements * 4), n, way,
                      [f"sync={way['name']}", f"workers={n}", f"n={elements}",
                       f"slice_kb={slice_kb}", f"bucket_mb={float(values['bucket_mb']):.9g}",
                       f"payload={values['payload']}",
                       f"worker_updates={int(worker_updates)}"],
                      waited=bool(way["servers"]) or way["traffic"] == "owner",
                      halving=algorithm == "halving")


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
