"""Sends signals to the processes of a job, at moments of its life."""

import os
import signal
import time

from run import DEADLINE_S, command, processes

WHO = {"worker": ("trainer",), "server": ("ps_server",), "carrier": ("mpirun", "orted"),
       "launcher": ("lockstep train",)}
MOMENTS = ("start", "step", "step", "save", "restart")


class Victim:
    """A job that runs, and a draw of whom to hit when."""

    def __init__(self, child, out, rng, steps):
        self.child, self.out, self.rng, self.steps = child, out, rng, steps
        self.until = time.monotonic() + DEADLINE_S / 2

    def _wait(self, is_there):
        """Looks until something is there. Returns whether the job still runs."""
        while self.child.poll() is None and time.monotonic() < self.until:
            if is_there():
                return True
            time.sleep(.002)
        return False

    def _has_rows(self, want):
        return any(path.exists() and path.read_bytes().count(b"\n") > want
                   for path in (self.out / "steps.csv", self.out / "steps.0.csv"))

    def _saves(self):
        try:
            return any(name.startswith(".next-") for name in os.listdir(self.out))
        except OSError:
            return False

    def _restarts(self):
        log = self.out / "log.txt"
        return log.exists() and b"; restart " in log.read_bytes()

    def wait(self, moment):
        """Waits for a moment. Returns whether the job still runs."""
        rng, pause = self.rng, self.rng.random() * .05
        if moment == "start":
            time.sleep(rng.random() * .4)
            return self.child.poll() is None
        want = rng.randint(0, max(0, self.steps - 2))
        there = self._wait({"step": lambda: self._has_rows(want), "save": self._saves,
                            "restart": self._restarts}[moment])
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
        """All such processes of the job."""
        return [p for p in processes(self.out)
                if any(f"/{w} " in f"/{command(p)}" for w in WHO[who])]

    def send(self, who, number):
        """Sends a signal to such a process, or to all workers. Returns whether there was
        one."""
        pids = self.all("worker") if who == "all workers" else [self.find(who)]
        for pid in pids:
            try:
                if pid:
                    os.kill(pid, number)
            except ProcessLookupError:
                continue
        return any(pids)

    def freeze(self, who, seconds):
        """Stops a process for a while. Returns whether there was one."""
        pid = self.find(who)
        try:
            if pid:
                os.kill(pid, signal.SIGSTOP)
                time.sleep(seconds)
                os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            return False
        return bool(pid)
