"""Counts which values were drawn together, and says why others cannot be.

A pair that was never drawn is put into jobs that have one of its values. If none of them
can start, the commonest refusal is the reason.
"""

import collections
import itertools
import math

from cases import Case
from draw import MOST_WORKERS
from promise import sizes, value_of, world
from story import STORIES

TRIES = 40  # jobs that a pair is put into; pairs that are put into a job
ROUNDS = 3


def _line(story, rng, job):
    """The line of a case, with a seed for its story."""
    return f"{story}:{rng.randrange(10 ** 6)} " + \
        " ".join(f"{k}={v}" for k, v in job.items())


class Pairs:
    """The pairs of values of all cases."""

    def __init__(self, lockstep):
        self.lockstep = lockstep
        self.counts = collections.Counter()
        self.jobs = collections.defaultdict(list)  # of each value
        self.refused = collections.Counter()  # how often no job took a pair
        self.last = None  # the case that was taken last

    def take(self, case):
        """Counts a case."""
        values = sorted(case.values())
        self.counts.update(itertools.combinations(values, 2))
        for value in values:
            self.jobs[value].append(case.job)
        self.last = case

    def never(self):
        """The pairs that were never drawn."""
        key = {v: v.split("=")[0] for v in self.jobs}
        return [p for p in itertools.combinations(sorted(self.jobs), 2)
                if key[p[0]] != key[p[1]] and not self.counts[p]]

    def _put(self, job, value):
        """The job with a value; or why there is none."""
        key, _, text = value.partition("=")
        if key == "story":
            return job if STORIES[text].holds(job) else STORIES[text].needs
        if text == "none" and key in ("net", "stages"):
            return {k: v for k, v in job.items() if k != key}
        if key == "stages":
            parts = sizes(job)["pp"] * job.get("chunks", 1)
            more = job["layers"] - parts
            return {**job, key: ",".join([str(1 + more)] + ["1"] * (parts - 1))} \
                if parts > 1 and more >= 0 else "too few layers, or one stage"
        if key == "net" or (value == "transport=shm" and job.get("net")):
            shm = key == "transport" or job.get("transport") == "shm"
            job = {**job, "net": f"1gbit,hosts={1 if shm else 2}"}
            if key == "net":
                return job
        if key not in ("dp", "pp", "tp", "cp", "up"):
            return {**job, key: value_of(text)}
        found = {**sizes(job), key: int(text)}
        more = {"mesh": ",".join(f"{k}{n}" for k, n in found.items())}
        if found["up"] > 1 and found["cp"] == 1:
            return "up is within cp"
        if math.prod(n for k, n in found.items() if k != "dp") == 1:
            more = {"workers": found["dp"], "mesh": ""}
        if world({**job, **more}) > MOST_WORKERS:
            return f"more than {MOST_WORKERS} workers"
        return {k: v for k, v in {**job, **more}.items() if v != "" and
                not ("mesh" in more and more["mesh"] and k == "workers")}

    def _gain(self, job, story, never):
        """How many pairs that were never drawn a case has."""
        values = sorted(Case(self.lockstep, story, 0, job).values())
        return sum(pair in never for pair in itertools.combinations(values, 2))

    def _with(self, pair, job, story):
        """(job, story) with a pair, or None."""
        want = dict(value.split("=", 1) for value in pair)
        story = want.get("story", story)
        for value in pair:
            job = self._put(job, value)
            if isinstance(job, str):
                return None
        return (job, story) if STORIES[story].holds(job) else None

    def fill(self, rng):
        """The line of a case that has many pairs that were never drawn. Each of TRIES such
        pairs is put into a job that had one of its values. What has most of them gets
        others in the same way. Pairs that no job took come last. None if there are none."""
        never = set(self.never())
        best, better, most = None, None, 0
        for _ in range(ROUNDS):
            some = sorted(never, key=lambda p: (self.refused[p], rng.random()))[:TRIES]
            put = [self._with(pair, *(best or (rng.choice(self.jobs[rng.choice(pair)]),
                                               self.last.story))) for pair in some]
            fine = self.lockstep.accepted([p[0] for p in put if p])
            for pair, p in zip(some, put):
                if not p or not fine.pop(0):
                    self.refused[pair] += 1
                elif (gain := self._gain(*p, never)) > most:
                    better, most = p, gain
            best = better
        if not best:
            return None
        return _line(best[1], rng, best[0])

    def _puts(self, pair):
        """Jobs that have a pair, of those that had one of its values, and why others
        cannot."""
        story = next((STORIES[v[6:]] for v in pair if v.startswith("story=")), None)
        jobs, refused = [], collections.Counter()
        for value, other in pair, pair[::-1]:
            drawn = self.jobs[value]
            for job in drawn[::max(1, len(drawn) // TRIES)]:
                put = self._put(job, other)
                if not isinstance(put, str) and story and not story.holds(put):
                    put = story.needs
                if isinstance(put, str):
                    refused[put] += 1
                else:
                    jobs.append(put)
        return jobs, refused

    def find(self, pair):
        """A job that has a pair; or, as a text, why no job has."""
        jobs, refused = self._puts(pair)
        for job, plan in zip(jobs, self.lockstep.plans(jobs) if jobs else ()):
            if "error" not in plan and self.lockstep.accepts(job):
                return job
            refused[plan.get("error", "shared memory ends at a host")] += 1
        return refused.most_common(1)[0][0] if refused else "none has one of the values"

    def rest(self, rng):
        """The lines of cases that have, one after the other, all pairs that were never
        drawn and that a job can have. What no job had may go into one of these cases."""
        tried, more = set(), True
        while more:
            more = False
            for pair in self.never():
                job = "" if self.counts[pair] or pair in tried else self.find(pair)
                if isinstance(job, str):
                    continue
                more = True
                tried.add(pair)
                story = next((v[6:] for v in pair if v.startswith("story=")), "quiet")
                yield _line(story, rng, job)

    def print(self):
        """A line for each pair that was never drawn: its values, and why it cannot be;
        tabs between them."""
        never = {p: self.find(p) for p in self.never()}
        left = 0
        for (a, b), why in never.items():
            if not isinstance(why, str):
                left, why = left + 1, "NEVER DRAWN"
            print(f"{a}\t{b}\t{why}")
        print(f"{len(self.jobs)} values, {len(self.counts)} pairs of them drawn, the median "
              f"{sorted(self.counts.values())[len(self.counts) // 2]} times; {left} never "
              f"drawn, {len(never) - left} that no job has")
