#!/usr/bin/env python3
"""main.py LOCKSTEP - draws jobs and stories at random, and compares each with an oracle.

    --seed S        the seed (default 1); case N of a seed is always the same job.
                    "new" draws a seed and prints it. S,T,..: several, one after the
                    other, each for its part of the minutes
    --minutes M     how long to draw (default 1)
    --case N        only this case, with what it does; --case A..B: some
    --line LINE     only the case of this line, "STORY:SEED key=value .."
    --kept          only the cases of kept.txt, each of which has found a mistake
    --first N       with --kept: then the first N cases of the seed
    --jobs J        how many cases run at once (default 1)
    --shrink        leave out settings while a case still fails, for --minutes
    --pairs         after each drawn case run one that has values that were never drawn
                    together; when the time is over, run one for each pair that is left;
                    at the end, print which never were, and why no job can have them
    --draw N        draw N cases, and run none; for --pairs
    --until         end at the first failure
    --keep DIR      keep the folders of failed cases here

A job is a set of settings that `lockstep plan` accepts. A story is what happens to it:
nothing, signals, a slow or full disk, a resume. What must be equal afterwards is said by
the tables of promise.py. Whatever happens, a job ends before its deadline, says why in
one line if it fails, and leaves no process, no temporary file and no emulated host.

A case that fails prints one command that repeats it. Exit status 1 if a case failed.
"""

import argparse
import collections
import concurrent.futures
import itertools
import os
import pathlib
import random
import shlex
import subprocess
import sys
import tempfile
import time

from cases import Case, shrink
from pairs import Pairs
from run import Lockstep

KEPT = pathlib.Path(__file__).with_name("kept.txt")
MOUNTS = "LOCKSTEP_RANDOM_MOUNTS"


def words():
    """The words of the command line."""
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("lockstep")
    p.add_argument("--seed", default="1")
    p.add_argument("--minutes", type=float, default=1)
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--first", type=int, default=0)
    p.add_argument("--draw", type=int, default=0)
    for name in "case", "line", "keep":
        p.add_argument(f"--{name}", default="")
    for name in "kept", "shrink", "pairs", "until":
        p.add_argument(f"--{name}", action="store_true")
    return p.parse_args()


def has_own_mounts():
    """Root starts again in a mount namespace of its own, where full disks can be made."""
    if os.geteuid():
        return False
    if MOUNTS not in os.environ:
        own = ["unshare", "--mount"]
        if subprocess.run([*own, "true"], capture_output=True, check=False).returncode:
            return False
        os.environ[MOUNTS] = "1"
        os.execvp(own[0], [*own, sys.executable, *sys.argv])
    return True


class Session:
    """Runs cases, and counts."""

    def __init__(self, a, seed, pairs, mounts):
        self.a, self.seed, self.pairs, self.mounts = a, seed, pairs, mounts
        self.lockstep = pairs.lockstep
        self.until = time.monotonic() + 60 * a.minutes
        self.ran, self.failed, self.began = 0, 0, time.monotonic()
        self.stories = collections.Counter()

    def cases(self):
        """(what to call it, a function that makes the case)."""
        a = self.a
        if a.line or a.kept:
            lines = [a.line] if a.line else [
                line for line in KEPT.read_text().splitlines()
                if line and not line.startswith("#")]
            for line in lines:
                yield line.split()[0], \
                    lambda text=line: Case.read(self.lockstep, text, self.mounts)
        first, _, last = a.case.partition("..")
        numbers = range(1, a.first + 1) if a.line or a.kept else \
            range(int(first), int(last or first) + 1) if a.case else itertools.count(1)
        for n in numbers:
            if not (a.case or a.kept or a.draw) and time.monotonic() > self.until:
                return
            yield n, lambda n=n: Case.drawn(self.lockstep, self.seed, n, self.mounts)
            if a.pairs and (line := self.fill(n)):
                yield f"{n}b", lambda line=line: Case.read(self.lockstep, line,
                                                           self.mounts)

    def fill(self, n):
        """With --pairs each drawn case is followed by one that has pairs that were never
        drawn."""
        return self.ran and self.pairs.fill(random.Random(f"{self.seed}/{n}b"))

    def rest(self):
        """With --pairs, when the time is over: what has the pairs that are left."""
        lines = self.pairs.rest(random.Random(f"{self.seed}/rest"))
        for n, line in enumerate(lines, 1):
            yield f"rest-{n}", lambda line=line: Case.read(self.lockstep, line, self.mounts)

    def one(self, name, make):
        """Runs one case. Returns (its name, the case, what went wrong or None)."""
        case = make()
        if self.a.shrink:
            case, why = shrink(case, self.until)
            print(f"still fails: {why}" if why else "it does not fail", flush=True)
            return name, case, why
        keep = pathlib.Path(self.a.keep) / f"case-{name}" if self.a.keep else None
        return name, case, case.run(keep)

    def take(self, name, case, why):
        """Counts a case, and prints what it found."""
        self.ran += 1
        self.stories[case.story] += 1
        self.pairs.take(case)
        if self.a.case or self.a.line or why:
            print(f"case {name}: {case}" + (f"\n  {case.note}" if case.note else ""))
        if case.second and why:
            print("  then " + " ".join(f"{k}={v}" for k, v in case.second.items()))
        if why:
            self.failed += 1
            print(f"  FAILED after {time.monotonic() - self.began:.0f} s: {why}\n  again: "
                  f"tests/random_jobs/main.py {shlex.quote(self.a.lockstep)} --line "
                  f"{shlex.quote(str(case))}")
        sys.stdout.flush()

    def draw(self, cases):
        """Only draws."""
        for name, make in cases:
            self.take(name, make(), None)

    def run(self, cases):
        """Runs cases, some at once."""
        with concurrent.futures.ThreadPoolExecutor(self.a.jobs) as pool:
            waiting = set()
            while True:
                while len(waiting) < self.a.jobs and (following := next(cases, None)):
                    waiting.add(pool.submit(self.one, *following))
                if not waiting:
                    return
                done, waiting = concurrent.futures.wait(
                    waiting, return_when=concurrent.futures.FIRST_COMPLETED)
                for future in done:
                    self.take(*future.result())
                if self.failed and self.a.until:
                    cases = iter(())

    def print(self):
        """How many cases there were."""
        stories = ", ".join(f"{n} {s}" for s, n in sorted(self.stories.items()))
        print(f"seed {self.seed}: {self.ran} cases ({stories}), {self.failed} failed",
              flush=True)


def main():
    """Draws cases until the time is over."""
    a = words()
    mounts = has_own_mounts()
    if a.seed == "new":
        a.seed = str(random.SystemRandom().randrange(10 ** 6))
        print(f"seed {a.seed}", flush=True)
    seeds, failed = a.seed.split(","), 0
    a.minutes /= len(seeds)
    with tempfile.TemporaryDirectory(prefix="lockstep-random-") as name:
        pairs = Pairs(Lockstep(a.lockstep, name))
        for seed in seeds:
            session = Session(a, seed, pairs, mounts)
            run = session.draw if a.draw else session.run
            run(itertools.islice(session.cases(), a.draw or None))
            if a.pairs and seed == seeds[-1]:
                run(session.rest())
            session.print()
            failed += session.failed
        if a.pairs:
            pairs.print()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
