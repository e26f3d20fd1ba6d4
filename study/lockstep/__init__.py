"""Reads, runs and compares experiments of Lockstep.

    import lockstep
    runs = lockstep.load("runs/study")               # an experiment or a run
    runs = lockstep.run("mine.ini", steps=200)       # runs it first
    runs.frame()                                     # a pandas.DataFrame
    for sentence in runs.answer(): print(sentence)
    print(runs.compare())                            # the same training?

docs/python.md shows more.
"""

import importlib

from .files import Error

# Where the rest is. It is imported when it is asked for, because a command of the
# terminal needs few of these modules.
_HOMES = {"MEASURES": "measures", "Range": "study", "Run": "runs", "Study": "study",
          "join": "study", "mean": "runs", "measure": "measures", "most": "runs",
          "read_experiment": "experiment"}
__all__ = ["Error", "load", "report", "run", *_HOMES]


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)


def load(*folders, out=""):
    """The Study of a folder: of an experiment, or of one run. Several runs become a
    study of their own in a new folder `out`."""
    from .study import Study, join
    if len(folders) > 1 and not out:
        raise Error("load: several runs; try: out=, the folder of their study")
    return Study(folders[0]) if len(folders) == 1 and not out else join(folders, out)


def run(ini, out="", fresh=False, **settings):
    """Runs an experiment, or what is missing of it, and returns its Study. Settings
    are words of the command line: steps=200, repeat=1."""
    from .runner import run_experiment
    study, failed = run_experiment(
        ini, [f"{key}={value}" for key, value in settings.items()], out, fresh)
    if failed:
        raise Error(f"{failed} runs failed; their logs are {study.out}/cells/*/*.txt")
    return study


def report(study):
    """Writes tables, figures and report.html into the study's folder. Returns what
    `lockstep report` prints."""
    from .page import finish
    return finish(study, print)
