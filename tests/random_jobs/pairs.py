"""Counts which values were drawn together, and says why others cannot be.

A pair that was never drawn is put into jobs that have one of its values. If none of them
can start, the commonest refusal is the reason.
"""

import collections
import itertools

from draw import MOST_WORKERS
from promise import sizes, value_of, world
from story import STORIES

TRIES = 40  # jobs that a pair is put into; pairs that are put into a job
FIXED = ("net", "stages")  # values of these are not put into another job


class Pairs:
    """The pairs of values of all cases."""

    def __init__(self, lockstep):
        self.lockstep = lockstep
        self.counts = collections.Counter()
        self.jobs = collections.defaultdict(list)  # of each value
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
        if key not in ("dp", "pp", "tp", "cp", "up"):
            return {**job, key: value_of(text)}
        found = {**sizes(job), key: int(text)}
        more = {"mesh": ",".join(f"{k}{n}" for k, n in found.items())}
        if found["up"] > 1 and found["cp"] == 1:
            return "up is within cp"
        if world({**found, "dp": 1, "mesh": ""}) == 1:
            more = {"workers": found["dp"], "mesh": ""}
        if world({**job, **more}) > MOST_WORKERS:
            return f"more than {MOST_WORKERS} workers"
        return {k: v for k, v in {**job, **more}.items() if v != "" and
                not ("mesh" in more and more["mesh"] and k == "workers")}

    def fill(self, rng):
        """The line of a case that has pairs that were never drawn: one, in a job that had
        one of its values, and as many others as can be put into it. None if there are
        none."""
        never = self.never()
        some = rng.sample(never, min(TRIES, len(never)))
        if not some:
            return None
        job = rng.choice(self.jobs[rng.choice(some[0])])
        story, fixed = self.last.story, {}
        for pair in some:
            want = dict(value.split("=", 1) for value in pair)
            if any(k in FIXED or fixed.get(k, v) != v for k, v in want.items()):
                continue
            put = job
            for value in pair:
                put = put if isinstance(put, str) else self._put(put, value)
            told = want.get("story", story)
            if not isinstance(put, str) and self.lockstep.accepts(put):
                job, story, fixed = put, told, fixed | want
        if not fixed:
            return None
        return f"{story}:{rng.randrange(10 ** 6)} " + \
            " ".join(f"{k}={v}" for k, v in job.items())

    def refusal(self, pair):
        """Why no job has both values; "" if some job can."""
        refused, jobs = collections.Counter(), []
        for value, other in pair, pair[::-1]:
            if other.split("=")[0] in FIXED:
                continue
            for job in self.jobs[value][:TRIES]:
                put = self._put(job, other)
                if isinstance(put, str):
                    refused[put] += 1
                else:
                    jobs.append(put)
        for plan in self.lockstep.plans(jobs) if jobs else ():
            if "error" not in plan:
                return ""
            refused[plan["error"]] += 1
        return refused.most_common(1)[0][0] if refused else ""

    def print(self):
        """A line for each pair that was never drawn: its values, and why it cannot be;
        tabs between them."""
        never = {p: self.refusal(p) for p in self.never()}
        for (a, b), why in never.items():
            print(f"{a}\t{b}\t{why or 'NEVER DRAWN'}")
        left = sum(not why for why in never.values())
        print(f"{len(self.jobs)} values, {len(self.counts)} pairs of them drawn, the median "
              f"{sorted(self.counts.values())[len(self.counts) // 2]} times; {left} never "
              f"drawn, {len(never) - left} that no job has")
