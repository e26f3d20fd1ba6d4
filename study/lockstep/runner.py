"""Runs every cell of an experiment, in a shuffled order.

Each round runs every cell once, in an order of its own. So a machine that is slow
for an hour slows all cells equally. Finished runs of the same settings are kept:
after an interruption the same command continues. A run of other settings is
refused before anything is written.
"""

import contextlib
import fcntl
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

from . import figures
from .experiment import MOST_BYTES, read_experiment
from .files import (Error, make_folder, open_regular, read_lines, read_text, reason, remove,
                    visible, write_text)
from .places import program, share, trainer
from .runs import Run, build_of
from .study import Study
from .tables import TABLES

DEADLINE = 600  # seconds; hashing large data takes a while
NOT_HERE = 77  # exit status of a peer that cannot train a cell: no PyTorch
READ = ("data", "vocab", "val_fraction", "init", "lab")  # say what is read
OUTPUTS = (*TABLES, "table.txt", "report.html", "figures")  # all that describes runs


class Stopped(Exception):
    """A signal asks to stop."""

    def __init__(self, number):
        super().__init__(number)
        self.number = number


def find_ini(name):
    """The path of an experiment: as it stands, or else among the installed ones."""
    if os.path.isdir(name):
        raise Error(f"{visible(name)}: a folder; try: the path of an experiment's INI file, "
                    f"or lockstep report {visible(name)}")
    if os.path.exists(name):
        return name
    if not os.path.exists(share(name)):
        raise Error(f"{visible(name)}: No such file or directory; try: the path of an "
                    "experiment, as in experiments/study.ini")
    return share(name)


def _ask(path, *words, given=""):
    """A finished process of one of our programs."""
    try:
        return subprocess.run([path, *words], capture_output=True, input=given,
                              encoding="utf-8", errors="replace", timeout=DEADLINE,
                              check=False)
    except (OSError, subprocess.TimeoutExpired) as why:
        raise Error(f"{visible(path)} {' '.join(words)}: {visible(why)}") from None


def _line(cell, error):
    """"FILE:LINE: " of the first setting that a refusal names; "" if it has none."""
    keys = re.findall(r"\w+", re.split("[:;]", error)[0])
    return next((f"{cell.lines[k]}: " for k in keys if k in cell.lines), "")


def plans(cells, *words):
    """For each cell what run.json will say ("asked", "way", ..), with the word hash=1
    also hashes of what it will read. An Error names the first cell that cannot be
    trained."""
    done = _ask(program(), "plan", *words,
                given="".join(json.dumps(c.words) + "\n" for c in cells))
    lines = done.stdout.splitlines()
    if done.returncode or len(lines) != len(cells):
        raise Error(f"lockstep plan: {visible(done.stderr.strip()) or 'no answer'}")
    found = [json.loads(line) for line in lines]
    for cell, plan in zip(cells, found):
        if "error" in plan:
            error = visible(plan["error"])
            raise Error(f"{_line(cell, error)}cell {cell.name}: {error}")
    return found


@contextlib.contextmanager
def locked(out):
    """Only one `lockstep run` may use a folder: two would disturb each other."""
    try:
        fd = os.open(os.path.join(out, ".lock"),
                     os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    except OSError as e:
        raise Error(f"{visible(out)}/.lock: {reason(e)}") from None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise Error(f"{visible(out)}: another lockstep run is using this folder; try: "
                    "another out=") from None
    finally:
        os.close(fd)


def _revision():
    """The revision of the program that trains, as run.json has it; "" if it does not
    say."""
    return _ask(trainer(), "--version").stdout.partition("(")[2].partition(")")[0]


class Runner:
    """Makes the runs of an experiment that are not there yet."""

    def __init__(self, ini, words, out):
        self.ini, self.words, self.out = ini, words, out
        self.experiment = read_experiment(ini, words)
        figures.check(self.experiment.figures)
        self.cells = self.experiment.cells
        self.plans, self.hashes = plans(self.cells), {}
        self.log = lambda text: print(text, file=sys.stderr, flush=True)

    def folder(self, cell, repeat):
        """Of a repeat of a cell."""
        return os.path.join(self.out, "cells", cell.folder, f"r{repeat}")

    def done(self, cell, repeat):
        """Whether it is finished."""
        return os.path.lexists(os.path.join(self.folder(cell, repeat), "summary.json"))

    def check(self):
        """Refuses runs of other settings, and those whose data, build or files have
        changed since. (Whether the machine is the same is known after the next run.)"""
        study = Study.__new__(Study)
        study.out, study.ini, study.runs, study.unfinished = self.out, self.ini, [], []
        there = {cell: [k for k in range(1, self.experiment.repeat + 1)
                        if self.done(cell, k)] for cell in self.cells}
        reads = self.reads([c for c in self.cells if there[c]])
        for cell, plan in zip(self.cells, self.plans):
            asked = {k: v for k, v in plan["asked"].items() if k not in ("out", "resume")}
            for repeat in there[cell]:
                run = Run(self.folder(cell, repeat), cell, repeat)
                study.check(run, asked)
                study.runs.append(run)
                then = {k: v for k, v in run.read.items() if v}
                then |= {k: run.environment.get(k, "not set")
                         for k in reads[cell] if k not in run.read}
                for what, now in reads[cell].items():
                    if then.get(what, now) != now:
                        raise Error(
                            f"{visible(self.out)}: {cell.name}, repeat {repeat}: its {what} "
                            f"changed since (then {then[what]}, now {visible(now)}); try: fresh=1 to "
                            "run all again, another out=, or lockstep report for what ran "
                            "then")

    def reads(self, cells):
        """{cell: hashes of what it would read now, as Run.read has them, and the
        environment that this process has}"""
        plan = dict(zip(self.cells, self.plans))
        kinds = {}  # cells that read the same: hashes of large data take long
        for cell in (c for c in cells if c not in self.hashes):
            kind = tuple(plan[cell]["effective"].get(key) for key in READ)
            kinds.setdefault(kind, []).append(cell)
        firsts = [of[0] for of in kinds.values()]
        for of, now in zip(kinds.values(), plans(firsts, "hash=1") if firsts else ()):
            self.hashes |= dict.fromkeys(of, {
                **{k: v for k, v in now["environment"].items() if k[:9] != "OMPI_MCA_"},
                "build": build_of(_revision()), "data": now["data"]["hash_xxh3"],
                **{key.removesuffix("_file"): v for key, v in now["inputs"].items()}})
        return self.hashes

    def begin(self, fresh):
        """Checks what is there; then writes the INI file and command.txt beside it.
        With `fresh` it first removes all runs, and before them what describes them."""
        command, old = os.path.join(self.out, "command.txt"), ""
        if os.path.lexists(command):
            old = read_lines(command, MOST_BYTES)[0]
            for path in (*OUTPUTS, "cells") if fresh else ():
                remove(os.path.join(self.out, path))
        self.check()
        name = f"{self.experiment.name}.ini"
        text = read_text(self.ini, MOST_BYTES, follow=True)
        write_text(os.path.join(self.out, name), text)
        write_text(command, "\n".join([name, *self.words]) + "\n")
        if old != name and re.fullmatch(r"[^/]+\.ini", old):  # a copy of another name
            remove(os.path.join(self.out, old))

    def command(self, cell, folder):
        """The words of the process that trains a cell."""
        train = [program(), "train"]
        if cell.peer:
            train = [self.experiment.peer_python or "python3",
                     share("tests/oracle/gpt2_torch_ddp.py"), program()]
        return [*train, *cell.words, f"out={folder}"]

    def run_one(self, cell, repeat):
        """Runs a repeat of a cell. None, or why it failed and whether it was only
        skipped."""
        folder = os.path.join(make_folder(self.out, "cells", cell.folder), f"r{repeat}")
        log = f"{folder}.txt"
        remove(folder)
        remove(log)
        make_folder(folder)
        with open(log, "xb") as f:
            try:
                child = subprocess.Popen(
                    self.command(cell, folder), stdin=subprocess.DEVNULL, stdout=f,
                    stderr=f, process_group=0, preexec_fn=end_with_parent)
            except OSError as e:
                return f"{cell.name}, repeat {repeat}: {visible(e)}", False
        try:
            status = child.wait()
        except (Stopped, KeyboardInterrupt) as why:
            child.send_signal(getattr(why, "number", signal.SIGINT))
            child.wait()
            raise
        if status == 0 and self.done(cell, repeat):
            return None
        with open_regular(log) as f:
            f.seek(max(0, os.fstat(f.fileno()).st_size - 4096))
            lines = f.read().decode("utf-8", "replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "no output")
        return (f"{cell.name}, repeat {repeat}: {visible(last)}",
                cell.peer and status == NOT_HERE)

    def run_all(self):
        """Runs what is not there yet. Returns how many runs failed."""
        cells, repeats = self.cells, range(1, self.experiment.repeat + 1)
        total = len(cells) * len(repeats)
        done = sum(self.done(c, k) for c in cells for k in repeats)
        failed = ran = 0
        began = time.monotonic()
        if done:
            self.log(f"{self.experiment.name}: {done} of {total} runs are done already")
        for k in repeats:
            for cell in random.Random(k).sample(cells, len(cells)):
                if self.done(cell, k):
                    continue
                each = (time.monotonic() - began) / ran if ran else 0
                left = f", about {each * (total - done - failed):.0f} s left" if ran else ""
                self.log(f"[{done + failed + 1}/{total}] {cell.name}, repeat {k}{left}")
                why, skipped = self.run_one(cell, k) or (None, False)
                if why:
                    self.log(f"lockstep: {'skipped' if skipped else 'failed'}: {why}")
                failed += bool(why) and not skipped
                done += not why or skipped
                ran += 1
        return failed


def end_with_parent():
    """In the child: it gets SIGTERM if this process dies."""
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def run_experiment(ini, words=(), out="", fresh=False):
    """Runs an experiment. Returns its Study and how many runs failed."""
    ini = find_ini(ini)
    out = out or os.path.join("runs", os.path.splitext(os.path.basename(ini))[0])
    if out != visible(out):
        raise Error(f"out={visible(out)}: has a control character where the ? is; try: "
                    "another name")
    if os.path.lexists(os.path.join(out, "run.json")):
        raise Error(f"out={visible(out)}: holds a run of lockstep train; try: another out=")
    runner = Runner(ini, list(words), out)
    if not fresh:
        runner.check()  # before anything is written
    make_folder(out)
    with locked(out):
        runner.begin(fresh)
        failed = runner.run_all()
        return Study(out), failed
