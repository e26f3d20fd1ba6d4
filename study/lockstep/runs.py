"""One run: its settings, and its steps, times and samples as numbers.

A Run reads run.json, summary.json, steps.csv, breakdown.csv and util.csv of a
folder. A run that was stopped has no summary.json; then it is read as far as it
went. Laws, and which settings make a training, are not known here: the trainer
wrote them into run.json.
"""

import calendar
import collections
import dataclasses
import functools
import itertools
import os
import re
import statistics
import time

from .files import Error, number, read_csv, read_json, visible, whole

KINDS = ("data", "forward", "backward", "compress", "exposed", "update", "wait", "bubble",
         "join", "checkpoint", "evaluate", "slowed", "other", "gpu_compute", "gpu_idle",
         "gpu_comm")
COMPUTING = ("forward", "backward", "compress", "update", "slowed")
WHOLE_RUN = ("checkpoint", "evaluate")  # between steps
# Not part of a step's time: the GPU works at the same time as the host.
BESIDE_STEP = (*WHOLE_RUN, "gpu_compute", "gpu_idle", "gpu_comm")
HELD = ("exposed", "wait", "bubble", "join")  # a worker is held up
PARTS = ("parameters", "gradients", "optimizer", "buffers", "activations", "process",
         "mapped")
VERBS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "send",
         "recv", "all_to_all", "push")
MOST_WORKERS = 4096
MOST_ROWS = 1 << 22  # of steps.csv, which is kept: a million steps of four workers
SAMPLED = ("cpu_share", "involuntary_switches_per_s", "gpu_util_share", "gpu_power_w")
SMOOTH = 10  # steps; a smoothed loss is the mean of the last ten, none before the tenth


@dataclasses.dataclass
class Point:
    """One step of a run. Losses and the seconds of a step are means over the ranks."""
    step: int
    tokens: float  # of all workers, including this step
    time_s: float  # since training began, with evaluation and so on; of the last rank
    train_s: float  # the sum of the seconds of all steps so far
    loss: float
    val_loss: float  # None at most steps
    restarts: float  # of the job so far
    skipped: float  # 1 if no worker trained in it, for an overflow in 16 bits
    smooth: float = None  # mean loss of the last SMOOTH steps


def mean(values):
    """The mean of the values that are not None; None if all are."""
    values = [v for v in values if v is not None]
    return sum(values) / len(values) if values else None


def most(values):
    """The largest of the values that are not None; None if all are."""
    return max((v for v in values if v is not None), default=None)


def build_of(revision):
    """The hash of the sources in COMMIT+HASH. A commit alone changes no build."""
    return revision.rpartition("+")[2]


class Run:
    """A finished or stopped run."""

    def __init__(self, folder, cell=None, repeat=1):
        self.folder = str(folder)
        self.manifest = read_json(os.path.join(folder, "run.json"))
        path = os.path.join(folder, "summary.json")
        self.finished = os.path.lexists(path)  # it reached its end
        self.summary = read_json(path) if self.finished else {}
        self.name = visible(os.path.basename(os.path.abspath(folder)))
        self.cell, self.repeat, self.study = cell, repeat, None
        self.round = repeat  # in which it ran; repeats of one round ran close in time
        self.backend = self.text("backend")
        self.world = self._whole("world", 1, MOST_WORKERS)
        self.context = self._whole("model.context", 1, 1 << 30)

    def __repr__(self):
        return f"<Run {self.cell.name if self.cell else self.name} r{self.repeat}>"

    def __getitem__(self, measure):
        from .measures import MEASURES
        return MEASURES[measure].of(self)

    # ---- run.json

    def get(self, path, otherwise=None):
        """The value at "object.key" of run.json."""
        value = self.manifest
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        return otherwise if value is None else value

    def text(self, path):
        """The same as a text without control characters; "" if it is none."""
        value = self.get(path)
        return visible(value) if isinstance(value, str) else ""

    def number(self, path):
        """The same as a number; None if it is none."""
        value = self.get(path)
        return number(value) if not isinstance(value, (str, dict)) else None

    def names(self, path):
        """The texts of a list; [] if it is none."""
        value = self.get(path)
        return [v for v in value if isinstance(v, str)] if isinstance(value, list) else []

    def _whole(self, path, least, largest):
        value = whole(self.number(path), least, largest)
        if value is None:
            raise Error(f"{visible(self.folder)}/run.json: {path} is "
                        f"{visible(self.get(path))[:80]}; must be {least} .. {largest}")
        return value

    @property
    def asked(self):
        """The settings that the user named, without those of one start. A fault on
        purpose is of one start, but changes the run."""
        asked = self.get("asked", self.get("settings", {}))
        asked = asked if isinstance(asked, dict) else {}
        fault = {"inject": self.setting("inject")} if self.setting("inject") else {}
        return {visible(k): v for k, v in asked.items()
                if k not in ("out", "resume")} | fault

    @property
    def settings(self):
        """All settings, derived ones included."""
        for name in "effective", "settings":
            if isinstance(self.get(name), dict):
                return self.get(name)
        return {}

    def setting(self, key):
        """A setting as text, "" if there is none."""
        value = self.settings.get(key)
        if value is None or isinstance(value, (dict, list)):
            return ""
        return f"{value:.10g}" if isinstance(value, float) else visible(value)

    @property
    def read(self):
        """Hashes of what it read, "" if it does not say: the trainer's sources, its data,
        and the files of init= and lab=."""
        return {"build": build_of(self.text("revision")), "data": self.text("data.hash_xxh3"),
                "init": self.text("inputs.init_file"), "lab": self.text("inputs.lab_file")}

    @property
    def environment(self):
        """{variable: value} of those that influence speed. mpirun's are of one start."""
        found = self.get("environment", {})
        return {visible(k): visible(v) for k, v in found.items()
                if not k.startswith("OMPI_MCA_")} if isinstance(found, dict) else {}

    @property
    def net(self):
        """The emulated links, "" if there are none."""
        return "" if self.setting("net") == "unshaped" else self.setting("net")

    @property
    def hosts(self):
        """The number of machines that it ran on. Emulated hosts are on one."""
        workers = self.get("workers")
        workers = workers.values() if isinstance(workers, dict) else ()
        return 1 if self.net else max(1, len({str(w).partition(",")[0] for w in workers}))

    @functools.cached_property
    def started(self):
        """When it began, in seconds since 1970; None if it does not say."""
        try:
            return calendar.timegm(time.strptime(self.text("started"),
                                                 "%Y-%m-%dT%H:%M:%SZ"))
        except ValueError:
            return None

    @property
    def every(self):
        """Steps from one exchange to the next."""
        return max(1, int(self.number("way.every") or 1))

    @property
    def servers(self):
        """The number of server processes."""
        return int(self.number("way.servers") or 0)

    @property
    def replicas(self):
        """Workers, or groups of workers, that each have a batch of their own."""
        return int(self.world / max(1, self.number("way.parts") or 1))

    @property
    def global_batch(self):
        """Sequences of a step, of all workers."""
        return int((number(self.setting("batch")) or 0) *
                   (number(self.setting("accum")) or 1) * self.replicas)

    @property
    def wire(self):
        """The number format of gradients that travel."""
        return self.setting("wire") or "fp32"

    @property
    def oversubscribed(self):
        """Whether workers share cores. Those that sleep need none."""
        return self.get("oversubscribed") is True and not self.pace

    @property
    def pace(self):
        """The times for which it slept instead of computing, "" if it computed."""
        return self.setting("pace")

    @property
    def mistakes(self):
        """The settings that are wrong on purpose."""
        return " ".join(self.names("mistakes"))

    @property
    def lacks(self):
        """{setting: (asked, given)} for what was asked and not given. The launcher asks
        for cores of its own for each worker, if there are enough."""
        found = {}
        for key in "net", "transport", "device", "precision":
            asked = str(self.asked.get(key, "")).lstrip("?")
            given = self.setting(key)
            if asked not in ("", "auto", "unshaped") and given and asked != given:
                found[key] = visible(asked), given
        if self.get("own_cores") is False and self.get("oversubscribed") is False and \
                not self.pace:
            found["cores"] = "own", "shared"
        return found

    # ---- steps.csv

    def rows(self, name):
        """The rows of NAME.csv, or of the parts NAME.RANK.csv of a run that was
        stopped before they were merged. A run that went on copies its rows of steps
        into the parts, so its steps.csv is older than they are."""
        path = os.path.join(self.folder, f"{name}.csv")
        parts = [f for f in os.listdir(self.folder)
                 if re.fullmatch(name + r"\.s?\d+\.csv", f)]
        newer = parts and name == "steps" and not self.finished
        if os.path.lexists(path) and not newer:
            yield from read_csv(path)
            return
        for part in sorted(parts, key=lambda f: (len(f), f)):
            yield from read_csv(os.path.join(self.folder, part))

    @functools.cached_property
    def _steps(self):
        """{step: its rows}, in order."""
        steps = collections.defaultdict(list)
        for count, row in enumerate(self.rows("steps")):
            if count == MOST_ROWS:
                raise Error(f"{visible(self.folder)}: steps.csv has more than {MOST_ROWS} "
                            "rows")
            if (step := number(row.get("step"))) is not None:
                steps[int(step)].append({k: number(v) for k, v in row.items()})
        return dict(sorted(steps.items()))

    @functools.cached_property
    def curve(self):
        """A Point for each step."""
        points, train_s, last = [], 0.0, collections.deque(maxlen=SMOOTH)
        for step, rows in self._steps.items():
            def of(key, join=mean, rows=rows):
                return join(row.get(key) for row in rows)
            train_s += (of("t_step_us") or 0) * 1e-6
            point = Point(step, of("tokens", most), of("time_s", most), train_s,
                          of("loss"), of("val_loss"), of("restarts", most),
                          of("skipped", most) or 0)
            last.append(point.loss)
            if len(last) == SMOOTH and None not in last:
                point.smooth = mean(last)
            points.append(point)
        return points

    def column(self, name):
        """A column of steps.csv: its values of all steps and ranks."""
        return [row[name] for rows in self._steps.values() for row in rows
                if row.get(name) is not None]

    @property
    def steps(self):
        """The last step that was made."""
        return self.curve[-1].step if self.curve else 0

    @functools.cached_property
    def _times(self):
        """A list of seconds for each worker, one for each step. The steps between two
        exchanges count as one, with their mean time."""
        rounds = collections.defaultdict(lambda: collections.defaultdict(list))
        for step, rows in self._steps.items():
            for row in rows:
                if row.get("t_step_us") is not None:
                    rounds[row.get("rank")][(step - 1) // self.every].append(
                        row["t_step_us"] * 1e-6)
        return [[mean(t) for t in of_rank.values()] for of_rank in rounds.values()]

    @functools.cached_property
    def step_s(self):
        """Seconds of the median step. A worker's rate is that of its median step; the
        job's rate is the mean of its workers' rates."""
        medians = [statistics.median(times) for times in self._times]
        if not medians or min(medians) <= 0:
            return None
        return len(medians) / sum(1 / m for m in medians)

    @property
    def timed_steps(self):
        """How many times the median step stands on, the fewest of any worker."""
        return min(map(len, self._times), default=None)

    def reached(self, target):
        """The first point with a smoothed loss of at most `target`, or None."""
        return next((p for p in self.curve if target is not None and
                     p.smooth is not None and p.smooth <= target), None)

    # ---- breakdown.csv

    @functools.cached_property
    def spent(self):
        """For each worker {kind: seconds}, or None if it was not measured."""
        spent = [None] * self.world
        for row in self.rows("breakdown"):
            rank, kind = whole(row.get("rank"), 0, self.world - 1), row.get("kind")
            if rank is not None and kind in KINDS:
                spent[rank] = spent[rank] or dict.fromkeys(KINDS, 0.0)
                spent[rank][kind] += number(row.get("seconds")) or 0
        for rank, (step_us, *parts) in self._waited.items():
            if not (s := spent[rank]):
                continue
            all_s = sum(v for k, v in s.items() if k not in BESIDE_STEP)
            for kind, us in zip(("bubble", "join"), parts):
                left = us / step_us * all_s if step_us else 0
                for of in "wait", "exposed":  # breakdown.csv has it there
                    taken = min(left, s[of])
                    s[of], s[kind], left = s[of] - taken, s[kind] + taken, left - taken
        return spent

    @property
    def _waited(self):
        """{rank: microseconds of its steps, and of that waiting for stages, and for
        slices or pieces}"""
        names = "t_step_us", "t_bubble_us", "t_join_us"
        found = collections.defaultdict(lambda: [0.0] * len(names))
        for row in itertools.chain(*self._steps.values()):
            rank = whole(row.get("rank"), 0, self.world - 1)
            if rank is not None:
                for i, name in enumerate(names):
                    found[rank][i] += row.get(name) or 0
        return found

    @functools.cached_property
    def shares(self):
        """For each worker {kind: share of its steps' time}, and None for a worker
        that measured nothing. If a worker has a GPU, only the GPU's kinds are there:
        its host merely waits."""
        shares = []
        for s in self.spent:
            whole = sum(v for k, v in (s or {}).items() if k not in BESIDE_STEP)
            if whole <= 0:
                shares.append(None)
            elif s["gpu_compute"] > 0:
                busy = s["gpu_compute"] / whole
                shares.append({"gpu_compute": busy, "gpu_idle": max(0, 1 - busy),
                               "gpu_comm": s["gpu_comm"] / whole,
                               **{k: s[k] / whole for k in HELD}})
            else:
                shares.append({k: v / whole for k, v in s.items()
                               if k not in BESIDE_STEP})
        return shares

    @property
    def utilisation(self):
        """For each worker the share of its steps' time in which it computes (its GPU,
        if it has one); None if not measured."""
        return [None if s is None else s["gpu_compute"] if "gpu_compute" in s
                else sum(s[k] for k in COMPUTING) for s in self.shares]

    def share(self, kind):
        """The share of a step in a kind of work, mean of the workers; for a bar of
        the whole step, so a GPU's host has none."""
        if not self.shares or None in self.shares:
            return None
        return sum(0 if "gpu_compute" in s and kind in HELD else s.get(kind, 0)
                   for s in self.shares) / self.world

    # ---- util.csv

    @functools.cached_property
    def samples(self):
        """Means over all samples of all workers, and peaks: cpu_share, switches,
        taken, worker_bytes, server_bytes, server_cores, gpu_util, gpu_power, gpu_bytes.
        `server_cores` is the mean of the cores that all servers used together. `taken`
        is the share of the computing time in which a worker had no processor. Two
        things do not count: a worker that is slowed down on purpose sleeps while it
        computes, and a worker with a GPU waits for it."""
        found, peaks, servers = {k: [] for k in SAMPLED}, {}, {}
        computing = computed = taken = 0.0
        now, gpu = None, False
        for row in self.rows("util"):
            rank, metric = row.get("rank", ""), row.get("metric", "")
            value = number(row.get("value"))
            if value is None:
                continue
            if not rank.isdecimal():
                if metric == "resident_bytes":
                    peaks["server_bytes"] = max(value, peaks.get("server_bytes", 0))
                elif metric == "cpu_share":
                    servers.setdefault(rank, []).append(value)
                continue
            if (row.get("t_s"), rank) != now:
                now, computing = (row.get("t_s"), rank), 0.0
            gpu |= metric.startswith("gpu_")
            if metric == "compute_share":
                computing = value
            elif metric == "slowed_share":
                computing -= value
            elif metric == "cpu_share":
                found["cpu_share"].append(value)
                computed += computing
                taken += max(0.0, computing - value)
            elif metric in ("resident_bytes", "gpu_memory_bytes"):
                key = "worker_bytes" if metric[0] == "r" else "gpu_bytes"
                peaks[key] = max(value, peaks.get(key, 0))
            elif metric in found:
                found[metric].append(value)
        return {**peaks, "cpu_share": mean(found["cpu_share"]),
                "server_cores": sum(map(mean, servers.values())) if servers else None,
                "switches": mean(found["involuntary_switches_per_s"]),
                "gpu_util": mean(found["gpu_util_share"]),
                "gpu_power": mean(found["gpu_power_w"]),
                "taken": taken / computed if computed > 0 and not gpu else None}

    # ---- summary.json

    @property
    def _largest(self):
        """The part of summary.json about the rank with the highest peak of memory, or
        about worker 0."""
        ranks = self.summary.get("ranks")
        ranks = ranks.values() if isinstance(ranks, dict) else []
        return max((r for r in ranks if isinstance(r, dict)), default=self.summary,
                   key=lambda r: number(r.get("peak_memory_bytes")) or 0)

    @property
    def peak_bytes(self):
        """The highest peak of memory of any worker. Samples miss short peaks, and
        summary.json has that of worker 0 only, if there is no mesh."""
        return most([number(self._largest.get("peak_memory_bytes")),
                     self.samples.get("worker_bytes")])

    def part_bytes(self, part):
        """Predicted bytes of a part of memory."""
        parts = self._largest.get("predicted_memory")
        return number(parts.get(f"{part}_bytes")) if isinstance(parts, dict) else None

    def sent(self, verb):
        """Bytes that a worker sends in a step by a verb."""
        by_verb = self.summary.get("bytes_tx_per_worker_step")
        return number(by_verb.get(verb)) if isinstance(by_verb, dict) else None
