"""Shows all workers of a run and updates the output again and again, like `watch
nvidia-smi`. It prints plain text, so it works over ssh and in a pipe.

It reads only the ends of steps.R.csv and util.R.csv of each rank R, so the cost does
not grow with the length of the run.
"""

import csv
import glob
import itertools
import math
import os
import statistics
import sys
import time

from .files import Error, number, open_regular, read_json, visible, whole

BAR, TAIL, LAST_STEPS, MOST_WORKERS = 20, 1 << 15, 20, 4096
QUIET_S = 90  # a run that writes nothing for so long, and has not ended, was stopped
MUCH_SLOWER = 1.25  # times the median worker's time: such a worker is marked


class _Rows:
    """The last whole rows of NAME.WHO.csv while a run of several workers is going on;
    else, or after these files are merged, of NAME.csv. The newest comes first."""

    def __init__(self, folder, name, who):
        path = os.path.join(folder, f"{name}.{who}.csv")
        if not os.path.lexists(path):
            path = os.path.join(folder, f"{name}.csv")
        self.rows, self.changed = [], 0
        if os.path.lexists(path):
            with open_regular(path) as f:
                head = f.readline(TAIL)
                self._take(head, f, who)
                if self.rows:
                    self.changed = os.fstat(f.fileno()).st_mtime

    def _take(self, head, f, who):
        size = os.fstat(f.fileno()).st_size
        begin = max(len(head), size - TAIL)
        f.seek(begin)
        tail = f.read(TAIL).decode("utf-8", "replace")
        lines = tail[:tail.rfind("\n") + 1].split("\n")[begin > len(head):-1]
        names = head.decode("utf-8", "replace").rstrip("\r\n").split(",")
        rows = (dict(zip(names, cells)) for cells in csv.reader(lines)
                if len(cells) == len(names))
        self.rows = [row for row in rows if row.get("rank") == who][::-1]

    def newest(self, key, rows=None):
        """The newest number in a column; None if there is none."""
        found = (number(row.get(key)) for row in (self.rows if rows is None else rows))
        return next((v for v in found if v is not None), None)


class _Worker:
    """What a worker or a server does now. None: not measured, or not yet."""

    def __init__(self, folder, world, rank, server):
        who = f"s{rank}" if server else str(rank)
        self.rank, self.server, self.step = rank, server, 0
        self.loss = self.val_loss = self.rate = self.compute_s = None
        self.row_at = 0 if server else self._steps(_Rows(folder, "steps", who), world)
        samples = _Rows(folder, "util", who)
        self.heard_at = samples.changed

        def newest(metric):
            return samples.newest("value", (row for row in samples.rows
                                            if row.get("metric") == metric))
        host, gpu = newest("compute_share"), newest("gpu_compute_share")
        self.busy = host if gpu is None else gpu
        self.bytes = newest("resident_bytes")
        self.gpu_bytes = newest("gpu_memory_bytes")
        self.gpu_power_w = newest("gpu_power_w")

    def _steps(self, steps, world):
        last = next((r for r in steps.rows if number(r.get("loss")) is not None), {})
        self.step = whole(last.get("step"), 0, 1 << 53) or 0
        self.loss = number(last.get("loss"))
        self.val_loss = steps.newest("val_loss")
        recent = steps.rows[:LAST_STEPS]
        spent = [number(row.get("t_step_us")) for row in recent]
        computed = [number(row.get("t_compute_us")) for row in recent]
        if recent and None not in spent and sum(spent) > 0:
            tokens, step = (number(recent[0].get(key)) for key in ("tokens", "step"))
            if tokens is not None and step:
                self.rate = tokens / step / world * len(recent) / (sum(spent) * 1e-6)
            if None not in computed:
                self.compute_s = sum(computed) * 1e-6 / len(recent)
        return steps.changed


class _Live:
    """The state of DIR: a run, or the latest run of an experiment."""

    def __init__(self, folder):
        self.folder = self._find(folder)
        path = os.path.join(self.folder, "run.json")
        run = read_json(path)
        self.world = whole(run.get("world"), 1, MOST_WORKERS)
        self.backend = run.get("backend")
        if not self.world or not isinstance(self.backend, str):
            raise Error(f"{visible(path)}: not the run.json of a run")
        settings = run.get("effective", run.get("settings"))
        steps = settings.get("steps") if isinstance(settings, dict) else None
        self.steps = whole(steps, 0, 1 << 53) or 0

        def has(where, name):
            return os.path.lexists(os.path.join(where, name))
        # An experiment is over when it has a table, not when one cell is over.
        self.ended = has(self.folder, "summary.json")
        self.over = self.ended and (has(folder, "run.json") or has(folder, "table.csv"))
        self.workers = [_Worker(self.folder, self.world, rank, False)
                        for rank in range(self.world)]
        servers = itertools.takewhile(lambda k: has(self.folder, f"util.s{k}.csv"),
                                      itertools.count())
        self.servers = [_Worker(self.folder, self.world, k, True) for k in servers]
        self.row_at = max(w.row_at for w in self.workers)
        self.heard_at = max(os.stat(path).st_mtime, self.row_at,
                            *(w.heard_at for w in self.workers + self.servers))

    @staticmethod
    def _find(folder):
        if os.path.lexists(os.path.join(folder, "run.json")):
            return folder
        runs = glob.glob(os.path.join(glob.escape(folder), "cells/*/r*/run.json"))
        if not runs:
            raise Error(f"{visible(folder)}: no run has begun here, there is no "
                        "run.json; try: the folder that out= names")
        return os.path.dirname(max(sorted(runs), key=os.path.getmtime))

    def slowness(self, worker):
        """A worker's computing time divided by that of the median worker."""
        times = [w.compute_s for w in self.workers if w.compute_s is not None]
        middle = statistics.median(times) if times else 0
        return worker.compute_s / middle if middle and worker.compute_s else 0


# ---- the text


def _put(value, width, decimals, unit):
    return f"  {'-':>{width or 1}}{'':{len(unit)}}" if value is None else \
        f"  {value:{width or 1}.{decimals}f}{unit}"


def _mib(size):
    return None if size is None else size / 1048576


def _line(live, worker):
    full = int(min(max(worker.busy or 0, 0), 1) * BAR + .5)
    percent = None if worker.busy is None else 100 * worker.busy
    line = (f"{'server' if worker.server else 'worker'} {worker.rank:<4d} "
            f"[{'#' * full}{'.' * (BAR - full)}]{_put(percent, 3, 0, '%')}")
    line += f"  {'':7}  {'':9}  {'':7}" if worker.server else \
        (f"  {worker.step:7d}{_put(worker.rate, 9, 0, '')}"
         f"{_put(worker.loss, 7, 4, '')}")
    line += _put(_mib(worker.bytes), 7, 0, " MiB")
    if worker.gpu_bytes is not None:
        line += _put(_mib(worker.gpu_bytes), 7, 0, " MiB on the GPU") + \
            _put(worker.gpu_power_w, 4, 0, " W")
    times = 0 if worker.server else live.slowness(worker)
    return line + (f"  slow: computes {times:.1f} times as long as the median worker"
                   if times > MUCH_SLOWER else "")


def _age(at):
    return max(0, math.floor(time.time()) - math.floor(at))


def _text(live):
    def total(values):
        return None if None in values else sum(values)
    rate = total([w.rate for w in live.workers])
    val = total([w.val_loss for w in live.workers])
    step = min(w.step for w in live.workers)
    ago = ""
    if not live.ended and live.row_at:
        ago = f", last row {_age(live.row_at)} s ago"
    lines = [f"{visible(live.folder)}: {visible(live.backend)}, {live.world} "
             f"worker{'s' * (live.world > 1)}, step {step} of {live.steps}"
             f"{', over' * live.over}{ago}",
             f"all: {_put(rate, 0, 0, ' tokens/s')}"
             f"{_put(val and val / live.world, 0, 4, ' validation loss')}", "",
             f"{'':12}{'computing':{BAR + 6}}  {'step':>9}  {'tokens/s':>9}  "
             f"{'loss':>7}  {'memory':>11}",
             *(_line(live, w) for w in live.workers + live.servers),
             "", "-: not measured, or not yet"]
    return "\n".join(lines) + "\n"


def watch(folder, every, times):
    """Prints the state of a run every so many seconds, so many times or until the run
    is over."""
    clear = sys.stdout.isatty()
    for i in itertools.count():
        if i:
            time.sleep(every)
        live = _Live(folder)
        sys.stdout.write(("\x1b[H\x1b[J" if clear else "\n" if i else "") + _text(live))
        sys.stdout.flush()
        quiet = _age(live.heard_at)
        if not live.ended and quiet >= QUIET_S:
            raise Error(f"{visible(live.folder)}: nothing came for {quiet} s, and there "
                        "is no summary.json: the run was stopped, or it hangs")
        if live.over or i + 1 == times:
            return
