"""A case: a job, and what happens to it. Each has a line that says all of it:

    STORY:SEED key=value key=value ...
"""

import pathlib
import random
import shutil
import tempfile
import time

from draw import DEFAULTS, FORCED, draw_job
from promise import sizes, value_of
from run import Wrong, kill_all, processes
from story import STORIES, draw_story, tell

TRIES = 3  # of a smaller case, whose story may hit another moment
STEADY = ("quiet", "twin", "death", "slow_disk", "resume", "rewind", "other_way")
COUNTED = sorted({*FORCED, "sync", "accum", "bucket_mb", "net", "stages",
                  "server_threads", "slice_kb", "tensorboard", "samples"} - {"mesh"})


class Case:
    """A job with its story, which a number makes always the same."""

    def __init__(self, lockstep, story, seed, job, mounts=False):
        self.lockstep, self.story, self.seed, self.job = lockstep, story, seed, job
        self.mounts = mounts  # whether a disk of its own can be mounted
        self.second, self.note = None, ""
        self.folder = self.out = None

    @classmethod
    def drawn(cls, lockstep, seed, number, mounts=False):
        """Case N of a seed."""
        rng = random.Random(f"{seed}/{number}")
        job = draw_job(rng, lockstep, mounts)
        return cls(lockstep, draw_story(rng, job), rng.randrange(10 ** 6), job, mounts)

    @classmethod
    def read(cls, lockstep, line, mounts=False):
        """The case that a line says."""
        story, *words = line.split()
        name, _, seed = story.partition(":")
        if name not in STORIES or not seed.isdigit():
            raise ValueError(f"{story} is no STORY:SEED; stories: {' '.join(STORIES)}")
        job = {k: value_of(v) for k, _, v in (w.partition("=") for w in words)}
        if not mounts:  # nor emulated hosts
            job.pop("net", None)
        return cls(lockstep, name, int(seed), job, mounts)

    def __str__(self):
        return f"{self.story}:{self.seed} " + \
            " ".join(f"{k}={v}" for k, v in self.job.items())

    def run(self, keep=None):
        """None, or what went wrong. The folder of a failed case goes to `keep`."""
        self.second, self.note = None, ""
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.lockstep.folder))
        self.out, why = self.folder / "job", None
        try:
            tell(self, random.Random(self.seed))
        except Wrong as wrong:
            why = str(wrong)
        except (OSError, LookupError, ValueError) as wrong:
            why = f"{type(wrong).__name__}: {wrong}"
        for path in self.folder.iterdir():
            kill_all(processes(path))
        if why and keep:
            shutil.copytree(self.folder, keep, dirs_exist_ok=True, symlinks=True,
                            ignore=fifos)
        shutil.rmtree(self.folder, ignore_errors=True)
        return why

    def values(self):
        """The values that it drew, for counting pairs."""
        found = {"story": self.story, **sizes(self.job)}
        found |= {k: self.job.get(k, DEFAULTS.get(k)) for k in COUNTED
                  if k in self.job or k in DEFAULTS}
        for key in "net", "stages":
            found[key] = "given" if found[key] else "none"
        return frozenset(f"{k}={v}" for k, v in found.items() if v is not None)


def fifos(folder, names):
    """Those of the names that are FIFOs, which mpirun leaves when it is killed."""
    return [name for name in names if (pathlib.Path(folder) / name).is_fifo()]


def _smaller(key, value):
    """Values of a key that make a case smaller, the smallest first."""
    if key in DEFAULTS:
        return [DEFAULTS[key]] if value != DEFAULTS[key] else []
    others = {"steps": (2, 3, 4), "workers": (2, 3), "mesh": ("dp2", "pp2", "tp2"),
              "shard": (1,), "channels": (2, 4), "context": (5,)}.get(key, ())
    return others[:others.index(value)] if value in others else others


def _fails(case):
    """Why a case fails, or None. A story with signals gets some tries."""
    tries = 1 if case.story in STEADY else TRIES
    return next(filter(None, (case.run() for _ in range(tries))), None)


def shrink(case, until):
    """Leaves out what the case still fails without, as long as there is time. Prints what
    it leaves out. Returns the smallest case and why it fails; (case, None) if it does not
    fail."""
    why = _fails(case)
    progress = bool(why)
    while progress:
        progress = False
        for key in list(case.job):
            for other in _smaller(key, case.job[key]):
                job = {**case.job, key: other}
                if time.monotonic() > until:
                    return case, why
                if not case.lockstep.accepts(job):
                    continue
                smaller = Case(case.lockstep, case.story, case.seed, job, case.mounts)
                now = _fails(smaller)
                if now:
                    print(f"still with {key}={other} for {case.job[key]}", flush=True)
                    case, why, progress = smaller, now, True
                    break
    return case, why
