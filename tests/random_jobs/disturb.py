"""Sends signals to the processes of a job, at moments of its life."""

import math
import os
import signal
import time

from run import command, processes

WHO = {"worker": ("trainer",), "server": ("ps_server",), "carrier": ("mpirun", "orted"),
       "launcher": ("lockstep train",)}
MOMENTS = ("start", "step", "step", "save", "restart")


class Victim:
    """A job that runs, and a draw of whom to hit when."""

    def __init__(self, child, out, rng, steps):
        self.child, self.out, self.rng, self.steps = child, out, rng, steps
        self.until = time.monotonic() + child.most / 2
        self.sent = 0  # signals that end processes

    def _wait(self, is_there, seconds=math.inf):
        """Looks until something is there. Returns whether the job still runs."""
        until = min(self.until, time.monotonic() + seconds)
        while self.child.poll() is None and time.monotonic() < until:
            if is_there():
                return True
            time.sleep(.002)
        return False

    def _has_rows(self, want):
        return any(_lines(self.out / name) > want for name in ("steps.csv", "steps.0.csv"))

    def _saves(self):
        try:
            return any(name.startswith(".next-") for name in os.listdir(self.out))
        except OSError:
            return False

    def says(self, text):
        """How often a text is in the log."""
        log = self.out / "log.txt"
        return log.read_text(errors="replace").count(text) if log.exists() else 0

    def wait(self, moment):
        """Waits for a moment. Returns whether the job still runs."""
        rng, pause = self.rng, self.rng.random() * .05
        if moment == "start":
            time.sleep(rng.random() * .4)
            return self.child.poll() is None
        want = rng.randint(0, max(0, self.steps - 2))
        there = self._wait({"step": lambda: self._has_rows(want), "save": self._saves,
                            "restart": lambda: self.says("; restart ")}[moment])
        if moment == "restart":
            pause = rng.random() * 1.6  # the first restart waits for 1 s
        time.sleep(pause if moment != "save" else pause / 5)
        return there

    def find(self, who):
        """A process of the job, or None."""
        if who == "launcher":
            return self.child.pid
        found = self.all(who)
        return self.rng.choice(found) if found else None

    def all(self, who):
        """All such processes of the job. mpirun's command names all others."""
        carriers = [p for p in processes(self.out)
                    if any(f"/{w} " in f"/{command(p)}" for w in WHO["carrier"])]
        return carriers if who == "carrier" else [
            p for p in processes(self.out) if p not in carriers and
            any(f"/{w} " in f"/{command(p)}" for w in WHO[who])]

    def send(self, who, number):
        """Sends a signal to such a process, or to all workers. Returns whether there was
        one."""
        pids = self.all("worker") if who == "all workers" else [self.find(who)]
        for pid in filter(None, pids):
            self.sent += _signal(pid, number)
        return any(pids)

    def freeze(self, who, seconds):
        """Stops a process for a while. Returns whether there was one."""
        pid = self.find(who)
        if not pid or not _signal(pid, signal.SIGSTOP):
            return False
        time.sleep(seconds)
        return _signal(pid, signal.SIGCONT)

    def tear(self, moment):
        """A server, or in a step a worker, stands still; meanwhile a worker that does not
        save is killed, and is missed half a second later. Returns whether both were
        there."""
        if not self.wait(moment):
            return False
        workers = self.all("worker")
        others = [p for p in workers if " rank=0 " not in command(p)]
        dies = self.rng.choice(others) if others else None
        still = self.find("server")
        if moment == "step" and len(workers) > 1 and self.rng.random() < .4:
            still = self.rng.choice([p for p in workers if p != dies])
        if not dies or not still or not _signal(still, signal.SIGSTOP):
            return False
        self.sent += _signal(dies, signal.SIGKILL)
        time.sleep(self.rng.uniform(.1, 1.2))
        return _signal(still, signal.SIGCONT)

    def hold(self, restarts, seconds=4):
        """Stops the workers that are left until the lost one is back, after restart number
        `restarts`, for which it waits so long. Mostly one of them is killed then. Returns
        what it did."""
        if not self._wait(lambda: self.says("; restart ") > restarts, seconds):
            return "nobody came back"
        held = self.all("worker")
        self.rng.shuffle(held)
        dies = len(held) > 1 and self.rng.random() < .75
        for i, pid in enumerate(held):
            _signal(pid, signal.SIGSTOP)
            if dies and not i:  # the others have sent all that they can without it
                time.sleep(self.rng.random() * .2)
        joined = self.says(" joins ")
        self._wait(lambda: self.says(" joins ") > joined, 20)
        if dies:
            self.sent += _signal(held.pop(0), signal.SIGKILL)
        time.sleep(self.rng.random() * .3)
        for pid in held:
            _signal(pid, signal.SIGCONT)
        return "another one is killed when it is back" if dies else "it comes back in time"


def _lines(path):
    """The lines of a file, which the job may remove at any time."""
    try:
        return path.read_bytes().count(b"\n")
    except OSError:
        return 0


def _signal(pid, number):
    """Sends a signal. Returns whether the process was there."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True
