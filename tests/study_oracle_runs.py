"""Every number of a study from the raw files of its runs, and from nothing else.

No line of this file is shared with study/lockstep, which it checks: see
tests/study_oracle.py.
"""

import csv
import datetime
import json
import math
import pathlib
import re
import statistics

OF_STEP = ("data forward backward compress exposed update wait bubble join slowed "
           "other").split()
PARTS = "parameters gradients optimizer buffers activations process mapped".split()
VERBS = ("all_reduce reduce_scatter all_gather broadcast reduce send recv "
         "all_to_all push").split()
ABOUT = ("title", "question", "expect", "figures", "repeat", "baseline",
         "target_loss")


def number(text):
    return float(text) if text not in ("", None) else None


def mean(values):
    values = [v for v in values if v is not None]
    return math.fsum(values) / len(values) if values else None


def largest(values):
    return max((v for v in values if v is not None), default=None)


def times(a, b):
    return None if a is None or b is None else a * b


def over(a, b):
    return None if a is None or not b else a / b


def read_csv(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


def apart(spent, waited):
    """What a worker waited for stages, and for slices or pieces, shares of its steps, is in
    breakdown.csv a part of wait, and where that is too little of exposed."""
    whole = sum(spent.get(k, 0) for k in OF_STEP)
    for kind, share in zip(("bubble", "join"), waited):
        wait, exposed = spent.get("wait", 0), spent.get("exposed", 0)
        more = min(exposed, max(0, share * whole - wait))
        spent |= {"wait": max(0, wait - share * whole), "exposed": exposed - more,
                  kind: min(wait, share * whole) + more}


class Run:
    """All that is known of one run. value: {measure: number or None}."""

    def __init__(self, folder):
        self.folder = folder
        self.json = json.loads((folder / "run.json").read_text())
        self.finished = (folder / "summary.json").is_file()
        self.asked, self.set = self.json["asked"], self.json["effective"]
        self.way, self.law = self.json["way"], self.json["law"]
        self.world = self.json["world"]
        self.net = self.set["net"].replace("unshaped", "")
        self.pace = self.set["pace"]
        self.mistakes = self.json["mistakes"]
        self.crowded = self.json["oversubscribed"] and not self.pace
        self.began = datetime.datetime.fromisoformat(self.json["started"]).timestamp()
        self.hosts = 1 if self.net else len(
            {w.split(",")[0] for w in self.json["workers"].values()})
        self.batch = self.set["batch"] * self.set["accum"] * self.world \
            // self.way["parts"]
        self.value = {}
        if self.finished:
            self.summary = json.loads((folder / "summary.json").read_text())
            self.steps()
            self.summarised()
            self.times()
            self.samples()
            self.pipeline()

    def steps(self):
        rows = read_csv(self.folder / "steps.csv")
        by_step, rounds = {}, {}
        for r in rows:
            step = int(r["step"])
            by_step.setdefault(step, []).append(r)
            rounds.setdefault((int(r["rank"]), (step - 1) // self.way["every"]),
                              []).append(float(r["t_step_us"]) * 1e-6)
        paces = {}
        for (rank, _), took in rounds.items():
            paces.setdefault(rank, []).append(mean(took))
        # the workers' rates are added
        step_s = len(paces) / sum(1 / statistics.median(p)
                                  for p in paces.values())
        self.mean_step_s = mean(float(r["t_step_us"]) for r in rows) * 1e-6
        bubble = mean(float(r["t_bubble_us"]) for r in rows) * 1e-6
        self.waits = bubble / self.mean_step_s
        self.waited = {rank: [
            sum(float(r[c]) for r in rows if int(r["rank"]) == rank)
            / sum(float(r["t_step_us"]) for r in rows if int(r["rank"]) == rank)
            for c in ("t_bubble_us", "t_join_us")] for rank in range(self.world)}
        for of in "stage", "slice", "piece":
            self.value[f"{of}_bytes_tx_per_worker_step"] = None \
                if self.way[f"{of}s"] < 2 else \
                sum(float(r[f"{of}_tx"]) for r in rows) / len(by_step) / self.world
            self.value[f"law_{of}_bytes_tx"] = self.law[f"{of}_tx"]
        self.curve, losses, train_s = [], [], 0.0
        for step in sorted(by_step):
            of = by_step[step]
            losses.append(mean(number(r["loss"]) for r in of))
            train_s += mean(number(r["t_step_us"]) for r in of) * 1e-6
            self.curve.append({
                "step": step,
                "tokens": largest(number(r["tokens"]) for r in of),
                "time_s": largest(number(r["time_s"]) for r in of),
                "loss": losses[-1],
                "val_loss": mean(number(r["val_loss"]) for r in of),
                "train_s": train_s,
                "loss_smooth": mean(losses[-10:]) if len(losses) > 9 else None,
                "restarts": largest(number(r["restarts"]) for r in of)})
        # ranks without a row of a step; with backup= they were alive
        self.gaps = self.set.get("elastic") and any(len(of) < self.world for of in by_step.values())
        self.skipped = {int(r["step"]) for r in rows if r["skipped"] == "1"}
        vals = [p["val_loss"] for p in self.curve if p["val_loss"] is not None]
        self.value |= {
            "step_s": step_s,
            "timed_steps": min(len(p) for p in paces.values()),
            # what entered an update; a batch may have had more
            "tokens_per_s": largest(number(r["tokens"]) for r in rows) / max(by_step) / step_s,
            "trained_share": largest(number(r["tokens"]) for r in rows) / max(by_step)
                / (self.json["model"]["context"] * self.batch),
            "seconds": largest(p["time_s"] for p in self.curve),
            "tokens": largest(p["tokens"] for p in self.curve),
            "train_loss_nats": losses[-1],
            "val_loss_nats": vals[-1] if vals else None,
            "smooth_loss_nats": min((p["loss_smooth"] for p in self.curve[9:]),
                                    default=None),
            "best_val_loss_nats": min(vals, default=None),
            "restarts": largest(p["restarts"] for p in self.curve),
            "steps_lost": largest(number(r["steps_lost"]) for r in rows),
            "seconds_lost": largest(number(r["lost_s"]) for r in rows),
            "lag_mean": mean(number(r["lag"]) for r in rows)}
        if self.pace:  # it learned nothing
            for name in ("train_loss_nats", "val_loss_nats", "best_val_loss_nats",
                         "smooth_loss_nats"):
                self.value[name] = None

    def summarised(self):
        s = self.summary
        sent = s["bytes_tx"] / s["steps"] / self.world
        own = self.way["servers"] and not self.way["beside"]
        self.sent = s["bytes_tx_per_worker_step"]
        ranks = list(s.get("ranks", {}).values()) or [s]
        self.peak = max(ranks, key=lambda r: r["peak_memory_bytes"])
        self.value |= {
            "bytes_tx_per_worker_step": sent,
            "law_bytes_tx": self.law["bytes_tx"],
            "law_exchange_s": self.law["exchange_s"],
            "bytes_rx_per_server_step":
                sent * self.world / self.way["servers"] if own else None,
            "peak_memory_bytes": self.peak["peak_memory_bytes"]}

    def times(self):
        spent = {w: {} for w in range(self.world)}
        path = self.folder / "breakdown.csv"
        for r in read_csv(path) if path.exists() else ():
            if r["rank"].isdigit():
                spent[int(r["rank"])][r["kind"]] = float(r["seconds"])
        for rank, s in spent.items():
            apart(s, self.waited[rank])
        self.util, self.comm, shares, held, rest = [], [], [], [], []
        for s in spent.values():
            whole = sum(s.get(k, 0) for k in OF_STEP)
            gpu, share = s.get("gpu_compute", 0), {}
            if not whole:  # a worker that was not measured: no number of all workers
                self.util.append(None)
                self.comm.append(None)
                continue
            held.append([s.get(k, 0) / whole for k in (
                "exposed", "wait", "bubble", "join")])
            if gpu:
                share = {"gpu_compute": gpu / whole,
                         "gpu_idle": max(0, 1 - gpu / whole),
                         "gpu_comm": s.get("gpu_comm", 0) / whole}
                self.util.append(gpu / whole)
            else:
                share = {k: s.get(k, 0) / whole for k in OF_STEP}
                self.util.append(sum(share[k] for k in (
                    "forward", "backward", "compress", "update", "slowed")))
                rest.append([share["data"], share["other"]])
            self.comm.append(share.get("gpu_comm"))
            shares.append(share)
        whole = None not in self.util
        if not whole:
            held, rest, shares = [], [], []
        self.share = {k: mean(s.get(k, 0) for s in shares) for k in
                      OF_STEP + ["gpu_compute", "gpu_idle", "gpu_comm"]}
        step = self.value["step_s"]
        exposed, wait, bubble, join = (times(mean(v), step) for v in zip(*held)) \
            if held else (None,) * 4
        data, other = (times(mean(v), step) for v in zip(*rest)) if rest else (None,) * 2
        self.value |= {
            "computing_s_per_step": times(mean(self.util) if whole else None, step),
            "data_s_per_step": data, "other_s_per_step": other,
            "utilisation_total": sum(self.util) if whole else None,
            "utilisation_mean": mean(self.util) if whole else None,
            "exposed_s_per_step": exposed, "wait_s_per_step": wait,
            "bubble_s_per_step": bubble if self.way["stages"] > 1 else None,
            "join_s_per_step":
                join if self.way["slices"] > 1 or self.way["pieces"] > 1 else None,
            "evaluate_s": mean(s.get("evaluate") for s in spent.values()),
            "checkpoint_s": mean(s.get("checkpoint") for s in spent.values())}

    def samples(self):
        path = self.folder / "util.csv"
        of, servers, used = {}, [], {}
        for r in read_csv(path) if path.exists() else ():
            if r["rank"].startswith("s"):
                if r["metric"] == "resident_bytes":
                    servers.append(float(r["value"]))
                if r["metric"] == "cpu_share":
                    used.setdefault(r["rank"], []).append(float(r["value"]))
            else:
                of.setdefault((r["t_s"], r["rank"]), {})[r["metric"]] = \
                    float(r["value"])
        every = {}
        for sample in of.values():
            for metric, v in sample.items():
                every.setdefault(metric, []).append(v)
        computed = taken = 0.0
        for s in of.values():
            if "cpu_share" in s:
                busy = s.get("compute_share", 0) - s.get("slowed_share", 0)
                computed += busy
                taken += max(0, busy - s["cpu_share"])
        gpu = any(m.startswith("gpu_") for m in every)
        self.server_cores = sum(mean(v) for v in used.values()) if used else None
        self.value |= {
            "cpu_share_mean": mean(every.get("cpu_share", [])),
            "peak_memory_bytes": largest([self.value["peak_memory_bytes"],
                                          *every.get("resident_bytes", [])]),
            "server_peak_memory_bytes": largest(servers),
            "processor_taken_share":
                taken / computed if computed > 0 and not gpu and not self.pace
                else None,
            "involuntary_switches_per_s":
                mean(every.get("involuntary_switches_per_s", [])),
            "gpu_util_share": mean(every.get("gpu_util_share", [])),
            "gpu_peak_memory_bytes": largest(every.get("gpu_memory_bytes", [])),
            "gpu_power_w": mean(every.get("gpu_power_w", []))}

    def pipeline(self):
        staged = self.way["stages"] > 1
        plan = self.summary.get("timetable") or {}
        factor = self.value["step_s"] / self.mean_step_s
        self.value |= {
            "bubble_share": self.waits if staged else None,
            "law_bubble_share": self.law["bubble_share"] if staged else None,
            "timetable_bubble_share": plan.get("bubble_share"),
            "timetable_step_s": times(plan.get("step_s"), factor),
            "noise_scale": None}  # no run here has own_norm=1

    @property
    def lacks(self):
        """[(setting, asked, given)] of what it was not given."""
        found = [(key, str(self.asked[key]).lstrip("?"), str(self.set[key]))
                 for key in ("net", "transport", "device", "precision")
                 if key in self.asked and key in self.set]
        found = [(key, a, b) for key, a, b in found if a != b and a not in ("auto", "unshaped")]
        if not (self.json["own_cores"] or self.json["oversubscribed"] or self.pace):
            found.append(("cores", "own", "shared"))
        return found

    def last_step(self):
        """Of a run that was stopped: its rows may not be merged yet."""
        return max((int(r["step"]) for path in self.folder.glob("steps*.csv")
                    for r in read_csv(path) if r["lost_s"] is not None), default=0)

    def reaches(self, target):
        if self.pace or target is None:
            return None
        return next((p for p in self.curve[9:] if p["loss_smooth"] <= target), None)

    def kind(self):
        """All that could make another run differ from this one, but chance."""
        own = ("out", "resume", "rank", "world", "rendezvous", "iface", "servers",
               "workers", "global_batch", "net")
        host = None if self.net else self.json["machine"]["host"]
        return json.dumps([
            {k: v for k, v in self.set.items() if k not in own}, self.net, self.world,
            self.batch, self.way["servers"], self.json["backend"], host,
            self.json["transport"], self.json["revision"].split("+")[-1], self.json["data"]["hash_xxh3"],
            self.json["machine"]["processor"], self.json["machine"]["cores"]],
            sort_keys=True)


class Cell:
    def __init__(self, parts, words):
        self.parts = parts  # ["ring", "batch=4"]: without what is in ()
        self.words = words
        self.planned = " ".join(p for p in parts if p)
        self.runs = {}  # by repeat, finished ones only
        self.all = {}
        self.twins = []  # cells whose runs had the same settings

    @property
    def asked_net(self):
        return self.words.get("net", "").lstrip("?")

    @property
    def lacks(self):
        """Whether emulated links were asked for and not had."""
        return bool(self.asked_net) and bool(self.first) and \
            not self.first.net

    @property
    def first(self):
        return self.runs[min(self.runs)] if self.runs else None


def sections(path):
    """(section, key, value) of an INI file."""
    section = ""
    for line in path.read_text().splitlines():
        if line.startswith("["):
            section = line.strip().strip("[]")
            yield section, "", ""
        elif line.strip() and line[0] not in "; \t":
            key, _, value = line.partition("=")
            yield section, key.strip(), value.strip()


def values_of(key, text):
    """[(its name, its words)] of one line of [matrix]."""
    for value in text.split(","):
        shown, _, hidden = value.strip().partition("(")
        shown = shown.strip()
        words = shown.split() if re.match(r"\w+=", shown) else [f"{key}={shown}"]
        yield (" ".join(words), shown,
               dict(w.split("=", 1) for w in words + hidden.strip(" )").split()))


class Study:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.about, self.base, self.axes, named = {}, {}, {}, []
        ini, = self.folder.glob("*.ini")
        for section, key, value in sections(ini):
            if section.startswith("cell "):
                if not key:
                    named.append((section[5:].strip(), {}))
                elif key != "peer":  # who trains it
                    named[-1][1][key] = value
            elif key:
                {"experiment": self.about, "base": self.base,
                 "matrix": self.axes}[section][key] = value
        _, *words = (self.folder / "command.txt").read_text().splitlines()
        last = {}
        for word in words:
            key, _, value = word.partition("=")
            if key in ABOUT:
                self.about[key] = value
            elif key in self.axes:
                self.axes[key] = value
            elif key not in ("out", "fresh"):
                last[key] = value
        self.axes = {k: list(values_of(k, v)) for k, v in self.axes.items()}
        self.cells = self.planned = self.expand(named or [("", {})], last)
        for cell in self.cells:
            self.read(cell)
        self.set_names()
        self.merge()
        self.set_target()
        for cell in self.cells:
            self.compare(cell)

    def expand(self, named, last):
        rows = [([name], self.base | last) for name, _ in named]
        for values in self.axes.values():
            rows = [(parts + [shown], words | more) for parts, words in rows
                    for shown, _, more in values]
        own = dict(named)
        return [Cell(parts, words | own[parts[0]]) for parts, words in rows]

    def read(self, cell):
        folder = next((f for f in (self.folder / "cells").iterdir()
                       if tidy(f.name) == tidy(cell.planned)), self.folder / "none")
        for k in range(1, int(self.about.get("repeat", 3)) + 1):
            if (folder / f"r{k}" / "run.json").is_file():
                run = cell.all[k] = Run(folder / f"r{k}")
                run.cell, run.repeat, run.round = cell, k, k
                if run.finished:
                    cell.runs[k] = run

    def merge(self):
        """Cells of one kind are the first of them, which has the runs of all."""
        kinds, repeats = {}, int(self.about.get("repeat", 3))
        for cell in self.planned:
            if cell.runs:
                kinds.setdefault(cell.first.kind(), []).append(cell)
        for first, *others in kinds.values():
            for i, twin in enumerate(others, 1):
                for k, run in twin.all.items():
                    run.cell, run.repeat = first, k + i * repeats
                    first.all[run.repeat] = run
                    if run.finished:
                        first.runs[run.repeat] = run
            first.twins = others
        merged = [c for first, *others in kinds.values() for c in others]
        self.cells = [c for c in self.planned if c not in merged]
        for name in {c.name for c in self.cells}:
            same = [c for c in self.cells if c.name == name]
            for k, c in enumerate(same, 1):
                c.name += f" ({k})" if len(same) > 1 else ""

    @property
    def runs(self):
        return [cell.runs[k] for cell in self.cells for k in sorted(cell.runs)]

    @property
    def filled(self):
        return [c for c in self.cells if c.runs]

    @property
    def repeats(self):
        return any(len(c.runs) > 1 for c in self.cells)

    def one_task(self):
        tasks = {json.dumps([r.json["task"], r.json["data"]["hash_xxh3"]])
                 for r in self.runs}
        return len(tasks) < 2

    def set_names(self):
        """As tables have them. Emulated links that were asked for and not had are
        in no name; equal names of different cells are counted."""
        for c in self.planned:
            c.name = " ".join(filter(None, (
                "" if p.startswith("net=") and c.lacks else p.replace("=?", "=")
                for p in c.parts))) or "run"

    def set_target(self):
        given = self.about.get("target_loss", "auto")
        learned = [r for r in self.runs if not r.pace]
        self.target = None
        if not self.one_task():
            return
        if given != "auto":
            self.target = float(given)
        elif len(learned) > 1 and all(len(r.curve) > 9 for r in learned):
            worst = max(min(p["loss_smooth"] for p in r.curve[9:]) for r in learned)
            self.target = math.ceil(100 * worst - 1e-6) / 100

    def baseline(self, cell):
        want = self.about.get("baseline")
        if not want:
            return None
        def match(c):
            fixed = set(c.parts) & set(want.split()) | {
                p for p in c.parts if p == want}
            rest = [p for p, q in zip(c.parts, cell.parts)
                    if p not in fixed and p != q]
            return " ".join(p for p in c.parts if p in fixed) == want \
                and not rest
        found = next((c for c in self.planned if match(c)), None)
        return next((c for c in self.cells if found in (c, *c.twins)), None)

    def compare(self, cell):
        base = self.baseline(cell)
        for run in cell.runs.values():
            other = base and next((b for _, b in sorted(base.runs.items())
                                   if b.round == run.round), None)
            point = run.reaches(self.target)
            run.value |= {
                "speedup": over(run.value["tokens_per_s"],
                                other and other.value["tokens_per_s"]),
                "seconds_to_target": point and point["train_s"],
                "tokens_to_target": point and point["tokens"]}

    def range(self, cell, name):
        """(median, least, most) of a cell."""
        if name == "speedup":
            base = self.baseline(cell)
            return self.ratio(cell, base, "tokens_per_s") if base else (None,) * 3
        return bounds([r.value[name] for r in cell.runs.values()])

    def ratio(self, cell, base, name):
        pairs = [over(r.value[name], b.value[name]) for r in cell.runs.values()
                 for b in base.runs.values() if b.round == r.round]
        _, least, most = bounds(pairs)
        return over(self.range(cell, name)[0], self.range(base, name)[0]), \
            least, most

    def median(self, cell, name):
        return self.range(cell, name)[0]


def tidy(name):
    return re.sub(r"[^\w.+=-]", "_", name)


def bounds(values):
    values = [v for v in values if v is not None]
    return (statistics.median(values), min(values), max(values)) if values \
        else (None, None, None)
