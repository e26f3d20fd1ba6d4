"""Finds the fastest ways to use a number of workers, and prints their table.

It tries all combinations of
    mesh=dpD,ppP,cpC,upU,tpT with D P C U T workers; U > 1 only with C > 1 and groups
        inside a host
    sync=ring, and the backend with shards for each shard= that it supports
    batch= 1, 2, 4 .. sequences of a micro-batch
    ahead= 0, and 1 with stages if pipeline= supports it
    wire=  fp32, and with replicas the 16 bits of precision= (bf16 with fp32)
    tp_sequence= 0, 1 and 2 with slices
    attention_over= gather, ring and heads with sequences in pieces
A key that the run sets has only that value. Of each mesh, backend and shard= it keeps
the fastest combination that train takes and that fits into memory. With GPUs the ways of
which hosts do a part (forecast.on_host) come last, and are not compared with others.
"""

import dataclasses
import itertools
import typing

from .forecast import (COPIES, compresses, divided, marks, memory_head, memory_row, mesh_of,
                       on_host, only_offloading, say_on_host, shards_more, threads)

BEST = 10  # rows of the table
STAGES, MICRO = 64, 4096  # the most (pipeline/timetable.h)
PARTS = 3  # the largest shard=
DP, PP, TP, CP, UP = range(5)  # of a step's bytes


@dataclasses.dataclass
class Way:
    """One way to use the workers."""
    mesh: str
    backend: dict
    shard: int
    batch: int = 1
    micro: int = 1
    ahead: int = 0
    wire: str = "fp32"
    sequence: int = 0  # tp_sequence=
    over: str = "gather"  # attention_over=
    layers: tuple = ()  # of each stage; (): evenly
    works: tuple = ()  # pairs of a name and what hosts do for it
    step: typing.Any = None
    link_s: float = 0  # what messages add to the step
    least_s: float = 0  # its seconds within the links' errors
    most_s: float = 0

    @property
    def sync(self):
        """Its name in the table."""
        name = self.backend["name"]
        return f"{name} shard={self.shard}" if self.backend["shards"] else name

    @property
    def memory(self):
        """Bytes of the worker that needs most."""
        return sum(self.step["worker"])

    @property
    def seconds(self):
        """Of its step, to the four digits that are printed."""
        return float(f"{self.step['seconds']:.4g}")

    @property
    def order(self):
        """Sorts ways: first those of which all is counted, then by time."""
        return bool(self.works), self.seconds, sum(self.step["bytes"])


def _divisors(n, most):
    return [k for k in range(1, min(n, most) + 1) if n % k == 0]


class Search:
    """A question: the fastest ways for a run on `hosts` hosts of `slots` workers."""

    def __init__(self, core, run, hosts, slots, gpu):
        self.core, self.run, self.hosts, self.slots = core, run, hosts, slots
        self.settings, self.asked = run["settings"], run["asked"]
        self.gpu = gpu  # workers are GPUs; sequences are not divided
        self.backends = core.table()["backends"]
        self.ways = only_offloading(
            [b for b in self.backends if
             (b["name"] == self.settings["sync"] if "sync" in self.asked else
              b["parts"] and b["traffic"] == "ring")], self.settings, gpu)
        self.global_batch = int(self.settings["global_batch"]) or 8 * hosts * slots
        self.memory = 0.  # bytes that a worker has; 0: no limit
        nothing = {"alpha_s": 0, "bytes_per_s": 0, "off": 0}
        self.outer, self.inner = nothing, nothing
        self.times = []  # words of a step: the times of computing
        self.best, self.least, self.plain = [], None, None
        self.tried = self.too_large = 0
        self.refused = ""  # why training would refuse the last way

    def _words(self, way, outer=1, inner=1):
        """The words of a step on a way's mesh, if each link's messages take so many times
        as long."""
        words = [f"mesh={way.mesh}", f"sync={way.backend['name']}", f"shard={way.shard}",
                 f"hosts={self.hosts}", f"slots={self.slots}",
                 f"threads={threads(self.run, self.slots)}", *self.times]
        for name, link, times in (("outer", self.outer, outer), ("inner", self.inner, inner)):
            rate = link["bytes_per_s"] / times if times else 1e300
            words += [f"{name}_alpha_s={link['alpha_s'] * times!r}",
                      f"{name}_bytes_per_s={rate!r}"]
        return words

    def ask(self, way, outer=1, inner=1):
        """A step of a way."""
        return self.core.ask(
            "step", *self._words(way, outer, inner), f"wire={way.wire}",
            f"batch={way.batch}", f"accum={way.micro}", f"ahead={way.ahead}",
            f"tp_sequence={way.sequence}", f"attention_over={way.over}",
            f"stages={','.join(map(str, way.layers))}")

    def layer_times(self):
        """Seconds of one sequence in a layer's forward and backward, and in the head's."""
        any_way = Way("dp1", self.backends[0], 1)
        return self.ask(any_way)["times"]

    def _works(self, sizes, backend, step):
        """What hosts of GPUs do in a step of a mesh."""
        works = (backend["name"], on_host(backend, self.settings, step)), \
            ("stages", COPIES * (sizes.get("pp", 1) > 1))
        return tuple(pair for pair in works if self.gpu and pair[1])

    # ---- one mesh, backend and shard

    def _wires(self, sizes, backend):
        if "wire" in self.asked:
            return [self.settings["wire"]]
        narrow = "fp16" if self.settings["precision"] == "fp16" else "bf16"
        travels = max(sizes.get("dp", 1), sizes.get("cp", 1)) > 1 and \
            self.settings["squeeze"] == "none" and "wire" in backend["keys"]
        return ["fp32", narrow] if travels else ["fp32"]

    def _aheads(self, stages):
        least = int(self.settings["ahead"]) if stages > 1 else 0
        more = stages > 1 and "ahead" not in self.asked and \
            self.settings["chunks"] == "1" and self.settings["pipeline"] == "1f1b"
        return [least, 1] if more else [least]

    def _batches(self, sizes):
        """(sequences of a micro-batch, how many make a step)."""
        stages, chunks = sizes.get("pp", 1), int(self.settings["chunks"])
        if not self.settings["mesh"] and stages * (chunks if stages > 1 else 1) > \
                self.run["layers"]:
            return  # a part would have no layer
        given = "batch" in self.asked
        batch = int(self.settings["batch"]) if given else 1
        while batch <= self.global_batch:
            micro, rest = divmod(self.global_batch, batch * sizes.get("dp", 1))
            if not rest and 0 < micro <= MICRO and \
                    (stages == 1 or chunks == 1 or micro % stages == 0):
                yield batch, micro
            if given:
                return
            batch *= 2

    def _try_backend(self, mesh, backend, shard):
        sizes = mesh_of(mesh)
        rows, overs = divided(self.run, sizes)
        choices = [list(self._batches(sizes)), self._aheads(sizes.get("pp", 1)), rows, overs,
                   self._wires(sizes, backend)]
        if not all(choices):
            return
        texts = "batch={} accum={}", "ahead={}", "tp_sequence={}", "attention_over={}", \
            "wire={}"
        words = [word for text, values in zip(texts, choices) for word in
                 ("/", *(text.format(*(v if isinstance(v, tuple) else (v,)))
                         for v in values))]
        now = Way(mesh, backend, shard)
        cut = [f"stages={self.settings['stages']}"] if self.settings["stages"] else ["cut=1"]
        found = self.core.ask("best", repr(self.memory), *self._words(now), *cut, *words)
        ways, self.refused = {}, found.pop("refused", "")
        if self.refused:
            return
        for name, step in found.items():
            (batch, micro), ahead, row, over, wire = \
                (values[at] for values, at in zip(choices, step["at"]))
            ways[name] = dataclasses.replace(
                now, batch=batch, micro=micro, ahead=ahead, sequence=row, over=over,
                wire=wire, layers=tuple(step["cut"]), step=step,
                works=self._works(sizes, backend, step))
        self.tried += 1
        plain = ways.get("plain")
        if plain and (not self.plain or plain.order < self.plain.order):
            self.plain = plain
        if "fastest" in ways:
            self.best.append(ways["fastest"])
            return
        self.too_large += 1
        if not self.least or ways["least"].memory < self.least.memory:
            self.least = ways["least"]

    # ---- all of them

    def _try_mesh(self, mesh):
        """Tries a mesh with each backend that can train parts of a model and exchanges as
        a ring does, or only with the run's own sync=."""
        sizes = mesh_of(mesh)
        replicas = max(sizes.get("dp", 1), sizes.get("cp", 1)) > 1
        cut = any(sizes.get(axis, 1) > 1 for axis in ("pp", "tp", "cp"))
        squeezed = self.settings["squeeze"] != "none"
        for b in self.ways:
            if (cut and not b["parts"] or  # it can train only whole models
                    # messages are for whole replicas
                    squeezed and (cut or not compresses(b, self.settings, self.asked)) or
                    # no replicas to share the shards
                    b["shards"] and not replicas and "sync" not in self.asked):
                continue
            shards = [1]
            if b["shards"] and "shard" in self.asked:
                shards = [int(self.settings["shard"])]
            elif b["shards"] and not cut and shards_more(self.settings):
                shards = range(1, PARTS + 1)
            for shard in shards:
                self._try_backend(mesh, b, shard)

    def _meshes(self):
        workers, stages = self.hosts * self.slots, self.settings["stages"]
        parts = len(stages.split(",")) if stages else 0
        if self.settings["mesh"]:
            yield self.settings["mesh"]
            return
        groups = [over for over in divided(self.run, {"cp": 2, "up": 2})[1] if not self.gpu]
        for cp, up, tp, pp in itertools.product(
                _divisors(workers, 1 if self.gpu else self.run["context"]),
                _divisors(workers, self.run["heads"] if groups else 1),
                _divisors(workers, self.run["heads"]),
                _divisors(workers, min(self.run["layers"], STAGES))):
            inside = pp * cp * up * tp
            if workers % inside or parts and parts != pp * int(self.settings["chunks"]) or \
                    up > 1 and (cp == 1 or self.slots % (up * tp) or
                                cp * up > self.run["context"] or
                                up > self.run["heads"] // tp):
                continue
            sizes = ("dp", workers // inside), ("pp", pp), ("cp", cp), ("up", up), ("tp", tp)
            yield ",".join(f"{axis}{n}" for axis, n in sizes if n > 1) or "dp1"

    def search(self):
        """Fills in best, the fastest first; if two take the same time, first the one that
        sends fewer bytes, and then the simpler one."""
        for mesh in self._meshes():
            self._try_mesh(mesh)
        self.best.sort(key=lambda way: way.order)
        del self.best[BEST:]
        outer, inner = self.outer["off"], self.inner["off"]
        for way in self.best:
            way.link_s = way.step["seconds"] - self.ask(way, 0, 0)["seconds"]
            way.least_s = self.ask(way, 1 - outer, 1 - inner)["seconds"]
            way.most_s = self.ask(way, 1 + outer, 1 + inner)["seconds"]


# ---- the table


def _number(v):
    """With four digits, but never as a power of ten."""
    return f"{v:.4g}" if v < 999.95 else f"{v:.0f}"


def _row(search, way, pieces, budget):
    step, sent = way.step, [_number(b * 1e-6) for b in way.step["bytes"]]
    rate = search.global_batch * search.run["context"] / step["seconds"]
    error = 50 * (way.most_s - way.least_s) / step["seconds"]
    mesh = way.mesh + marks(way.sequence, way.over) + "*" * bool(way.works)
    return (f"{mesh:<24} {way.sync:<12} {way.wire:>4} "
            f"{way.batch:5} {way.micro:5} {_number(step['seconds']):>8} "
            f"{_number(step['compute_s']):>9} {_number(way.link_s):>8} "
            f"{100 * step['bubble']:5.1f}% {error:5.1f}% {way.memory * 1e-6:9.0f} "
            f"{sent[DP]:>8} {sent[PP]:>8} {sent[TP]:>8}" +
            "".join(f" {sent[axis]:>8}" for axis in pieces) +
            f" {rate:8.0f}" + budget.row(rate, search.hosts * search.slots))


def _words(search, way):
    """The settings of train for a way."""
    chunks = int(search.settings["chunks"]) if mesh_of(way.mesh).get("pp", 1) > 1 else 1
    return (f"mesh={way.mesh} sync={way.sync}" + f" wire={way.wire}" * (way.wire != "fp32") +
            f" batch={way.batch} accum={way.micro}" + f" tp_sequence={way.sequence}" * bool(way.sequence) +
            f" attention_over={way.over}" * (way.over != "gather") +
            f" ahead={way.ahead}" * bool(way.ahead) + f" chunks={chunks}" * (chunks > 1) +
            f" stages={','.join(map(str, way.layers))}" * bool(way.layers))


def _say_equals(best):
    """Which rows take the same time, and which may be as fast as the first one."""
    begin = 0
    while begin < len(best):
        end = begin + 1
        while end < len(best) and best[end].seconds == best[begin].seconds:
            end += 1
        if end - begin > 1:
            print(f"Rows {begin + 1} {'to' if end - begin > 2 else 'and'} {end} tie at "
                  f"{best[begin].seconds:.4g} s: first the one that sends fewer bytes, then "
                  "the simpler one.")
        begin = end
    close = [str(i + 1) for i, way in enumerate(best)
             if i and way.least_s <= best[0].most_s]
    if close:
        print(f"As fast as the first, within the error: row{'s' * (len(close) > 1)} "
              f"{', '.join(close)}")


def print_table(search, budget, say_note):
    """The table, the settings of the fastest way, what is as fast, the memory and times
    of its stages, what the columns mean, and notes."""
    first, plain = search.best[0], search.plain
    ranked = [way for way in search.best if not way.works]
    some = " of those without *" * (len(ranked) < len(search.best))
    pieces = [axis for axis in (CP, UP) if any(way.step["bytes"][axis]
                                               for way in search.best)]
    print(f"{'mesh':<24} {'sync':<12} {'wire':>4} {'batch':>5} {'accum':>5} {'step s':>8} "
          f"{'compute s':>9} {'link s':>8} {'bubble':>6} {'error':>6} {'memory MB':>9} "
          f"{'dp MB':>8} {'pp MB':>8} {'tp MB':>8}" +
          "".join(f" {('cp MB', 'up MB')[axis == UP]:>8}" for axis in pieces) +
          f" {'tokens/s':>8}" + budget.head())
    for way in search.best:
        print(_row(search, way, pieces, budget))
    print(f"\n{search.tried - search.too_large} of {search.tried} ways fit. " +
          (f"The fastest{some}: " if ranked else "None is compared (*). The first row: ") +
          _words(search, first))
    if first.wire != "fp32" and plain:
        same = ranked and not plain.works
        print(f"wire={first.wire} rounds the gradients." +
              f" The fastest with wire=fp32 takes {plain.step['seconds']:.4g} s: "
              f"{_words(search, plain)}" * bool(same))
    _say_equals(ranked)
    print(f"\n{memory_head('stage')} {'forward ms':>11} {'backward ms':>11}")
    step = first.step
    for s, times in enumerate(zip(step["forward_s"], step["backward_s"])):
        print(memory_row(str(s), step["of_stage"][str(s)]) +
              "".join(f" {_number(t * 1e3):>11}" for t in times))
    print("\ncompute s      mean time in which a worker computes\n"
          "link s         what messages add to the step: computing does not hide it\n"
          "bubble         share of the stages' time in which they wait for each other and "
          "for\n               messages between them\n"
          "error          of the step, in both directions, because the links' figures are\n"
          "               uncertain\n"
          "memory MB      of the worker that needs most\n"
          "+seq, +seq2    with tp_sequence=1, 2: slices divide the tokens, too\n"
          "+ring, +heads  with attention_over=ring, heads\n"
          "dp, pp, tp MB  sent by the busiest worker in a step, along each axis" +
          "\n               (cp, up MB: for keys, values and heads of divided sequences)" *
          bool(pieces))
    say_note([way.backend["name"] for way in search.best])
    say_on_host(pair for way in search.best for pair in way.works)
