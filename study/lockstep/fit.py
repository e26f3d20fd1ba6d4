"""The command fit: which ways fit into a worker's memory, and with how large a batch."""

import itertools
import math

from . import gpu_step
from .core import Core, key, key_help, own_words
from .files import Error, visible
from .forecast import (MOST_WORKERS, divided, marks, memory_head, memory_rows, mesh_of,
                       names_of, only_compressing, place, read_backends, read_size,
                       read_workers, refuse_pieces, say_gpu_memory, shards_more, threads)
from .meshes import STAGES

ALL = "lockstep fit --help"
MOST_BATCH, WORKERS, SHARDS = 65536, 4, 3

ROWS = [
    key("fit", "memory", "", "text", "of each worker and server, as 2gb, 900mb or 1.5gib",
        unit="SIZE"),
    key("fit", "workers", "", "text", "numbers of workers, as 4,16; empty: 4, or by mesh=",
        unit="N,.."),
    key("fit", "hosts", "0", "int", "number of machines, instead of workers=", min=1,
        max=MOST_WORKERS, zero="not asked"),
    key("fit", "slots", "0", "int", "workers on each host", min=1, max=MOST_WORKERS,
        zero="8 with hosts="),
    key("fit", "sync", "", "text", "some of the ways below; empty: all", unit="WAY,.."),
    key("fit", "device", "cpu", "text",
        "h100: the workers are such GPUs, with precision=bf16", unit="NAME"),
]

# The keys of backends that the answer depends on.
NEEDED = ("wire", "staging", "servers", "update", "slice_kb", "bucket_mb",
          "outer_lr", "outer_momentum", "offload", "squeeze", "density",
          "scope", "levels", "squeeze_rank", "feedback", "momentum_correction",
          "squeeze_after", "freeze")

HELP = """\
lockstep fit memory=SIZE [key=value] ...

Prints which backends fit into the memory of a worker, and the largest batch of each.
Without sync= and mesh=, also for workers that divide the model or its sequences.
It uses the formulas of ARCHITECTURE.md, as train does before step 1.
"""

MORE = """
These keys of train count as well: model and its sizes, precision, dropout, threads,
optimizer, momentum, wire, staging, servers, update, slice_kb, bucket_mb,
outer_lr, outer_momentum, offload, squeeze, density, scope, levels,
squeeze_rank, feedback, momentum_correction, squeeze_after, freeze, mesh, accum, pipeline,
chunks, ahead, stages, tp_sequence, attention_over, tp_wire.
  lockstep fit memory=2gb model=gpt2 workers=4
"""


def explain():
    """What --help says."""
    with Core() as core:
        return (HELP + key_help(core, ROWS) +
                f"\nsync={names_of(core.table()['backends'], 'has_law')}\n" + MORE)


class Question:
    """The words of a command line, and what follows from them."""

    def __init__(self, core, words):
        self.core = core
        self.values, rest = own_words(core, ROWS, ALL, words)
        backends = core.table()["backends"]
        device = self.values["device"]
        self.gpu = device != "cpu"
        if self.values["memory"]:
            self.bytes = read_size("memory", self.values["memory"])
        self.run = gpu_step.with_precision(core, device, rest) if self.gpu else \
            core.ask("run", *rest)
        self.settings = self.run["settings"]
        for name in "batch", "recompute":
            if name in self.run["asked"]:
                raise Error(f"fit: {name}= is what fit looks for; try: without {name}=")
        if not self.values["memory"]:
            raise Error("fit: memory= is missing; try: memory=2gb")
        core.ask("check", "fit", *NEEDED)
        self.squeezes = self.settings["squeeze"] != "none"
        ways = read_backends(core, backends, self.values["sync"] or
                             names_of(backends, "has_law"))
        self.ways = only_compressing("fit", ways, self.run, bool(self.values["sync"]),
                                     self.gpu)
        self.mesh = mesh_of(self.settings["mesh"])
        if self.mesh:
            self._check_mesh()
        self.threads = []  # words
        self.workers = self._read_workers()

    def _check_mesh(self):
        """workers= must be its number of ranks, and sync= must name a backend that can
        train parts of a model."""
        workers, ranks = self.values["workers"], math.prod(self.mesh.values())
        if workers and workers != str(ranks):
            raise Error(f"fit: mesh={self.settings['mesh']} has {ranks} ranks, not "
                        f"workers={visible(workers)}; try: without workers=")
        if not any(way["parts"] for way in self.ways):
            raise Error(f"fit: sync={visible(self.values['sync'])} cannot train parts of a "
                        f"model (mesh={self.settings['mesh']}); try: sync=ring")
        if self.gpu:
            refuse_pieces(self.mesh, "fit")

    def _read_workers(self):
        """The numbers of workers. With hosts= or slots= there is one, and a worker has its
        share of a host's cores."""
        words = self.values["workers"]
        hosts, slots = int(self.values["hosts"]), int(self.values["slots"])
        asked = read_workers(words) if words else []
        given = math.prod(self.mesh.values()) if self.mesh else 0
        if not given and len(asked) == 1:
            given = asked[0]
        if not hosts and not slots:
            return asked or [given or WORKERS]
        if len(asked) > 1:
            raise Error(f"fit: workers={words} are several numbers, but hosts= and slots= "
                        "make one; try: without workers=")
        hosts, slots = place(hosts, slots, given, "fit")
        self.threads = [f"threads={threads(self.run, slots)}"]
        return [hosts * slots]

    def measure(self, words, batch, recompute):
        """The memory of a worker, and of its server."""
        return self.core.ask("memory", *words, f"batch={batch}", f"recompute={recompute}",
                             *self.threads)

    def largest(self, words, recompute):
        """The largest batch that fits; 0: none does."""
        fits, over = 0, MOST_BATCH + 1
        while over - fits > 1:
            batch = fits + (over - fits) // 2
            need = self.measure(words, batch, recompute)
            if max(sum(need["worker"]), sum(need["server"])) <= self.bytes:
                fits = batch
            else:
                over = batch
        return fits

    def row(self, name, words):
        """The row of a way, and of its server."""
        batches = [self.largest(words, recompute=k) for k in (0, 1)]
        need = self.measure(words, 1, 0)
        return memory_rows(name, need["worker"], need["server"],
                           "".join(f" {batch or '-':>9}" for batch in batches))

    def places(self, way):
        """Where a way can have the optimiser's state: values of offload=."""
        s = self.settings
        moved = s["momentum_correction"] == "1" or s["squeeze"] == "demo"
        stays = s["optimizer"] in ("lars", "lamb") or s["freeze"] != "0" or \
            (s["optimizer"] == "sgd" and (moved or float(s["momentum"]) == 0))
        able = ["none"] if self.gpu or stays or "offload" not in way["keys"] else \
            ["none", "disk"]
        return [v for v in able if v == s["offload"]] if "offload" in self.run["asked"] else able

    def divided_rows(self, name, way, mesh, shard=1):
        """The rows of a way on a mesh: of each way to divide tokens, and each place of the
        state; without those of mesh= that training would refuse, unless sync= asked for them."""
        for sequence, over, at in itertools.product(
                *divided(self.run, mesh_of(mesh)), self.places(way)):
            settings = [
                f"mesh={mesh}", f"sync={way['name']}", f"shard={shard}",
                f"tp_sequence={sequence}", f"attention_over={over}", f"offload={at}"]
            refused = self.measure(settings, 1, 0).get("refused")
            if not refused:
                yield from self.row(
                    name + marks(sequence, over) + "+disk" * (at == "disk"), settings)
            elif self.values["sync"] or not self.mesh:
                raise Error(refused)

    def rows(self, way, workers):
        """The rows of a backend: of each value of shard= that it has."""
        parts = any(self.mesh.get(axis, 1) > 1 for axis in ("pp", "tp", "cp"))
        if self.mesh and not way["parts"]:
            return
        # A part of a model supports no other value.
        several = way["shards"] and not parts and shards_more(self.settings)
        for shard in range(1, SHARDS + 1 if several else 2):
            yield from self.divided_rows(
                f"{way['name']} shard={shard}" if way["shards"] else way["name"], way,
                self.settings["mesh"] or f"dp{workers}", shard)

    def parts(self, workers):
        """The rows of workers that divide one replica: stages, slices, sequences."""
        most = {"pp": min(self.run["layers"], STAGES), "tp": self.run["heads"],
                "cp": 1 if self.gpu else self.run["context"]}
        ring = next(way for way in self.ways
                    if way["parts"] and way["traffic"] == "ring")
        meshes = [f"{axis}{workers}" for axis, count in most.items() if workers <= count]
        meshes += [f"cp{workers // n},up{n}" for n in range(2, workers // 2 + 1)
                   if not workers % n and workers <= most["cp"] and n <= most["tp"] and
                   divided(self.run, {"cp": 2, "up": n})[1]]
        for mesh in meshes:
            yield from self.divided_rows(mesh, ring, mesh)

    def tables(self):
        """Their lines."""
        for i, workers in enumerate(self.workers):
            head = memory_head(self.settings["mesh"] or f"{workers} workers")
            yield "\n" * bool(i) + f"{head} {'batch':>9} {'recompute':>9}"
            for way in self.ways:
                yield from self.rows(way, workers)
            if not self.mesh and not self.values["sync"] and not self.squeezes:
                yield from self.parts(workers)

    def answer(self):
        """Prints the tables. A row that is refused comes before the first line."""
        travel, lines = "squeeze" if self.squeezes else "wire", list(self.tables())
        print(f"{self.run['says']}, {travel}={self.settings[travel]}\n", *lines, sep="\n")
        print("\nThe memory of a worker is in MB, with batch=1"
              f"{', for the rank that needs most' * bool(self.mesh)}.\nbatch: the largest "
              "batch within memory=; recompute: the same with recompute=1.\n-: batch=1 does "
              "not fit into a worker or into its server. +disk: with offload=disk.")
        if self.gpu:
            say_gpu_memory([way["name"] for way in self.ways
                            if way["parts"] or not self.mesh])


def fit(words):
    """lockstep fit."""
    with Core() as core:
        Question(core, words).answer()
    return 0
