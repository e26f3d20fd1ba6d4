"""A study: the cells of an experiment with their runs. A single run is a study of
one cell.

    DIR/NAME.ini  command.txt     the experiment, the command's words
    DIR/cells/CELL/rK/            repeat K of a cell
    DIR/runs.csv table.csv ..     tables (tables.py)
    DIR/figures/NAME.csv .svg     prepared and drawn (figures.py)
    DIR/report.html               (page.py)

A run belongs to a cell if its settings are the cell's. Repeats that differ in a
setting, in data, build or machine are no repeats: that is an error. Cells whose runs
had the same of all these are one cell.
"""

import dataclasses
import glob
import math
import os
import re
import statistics

from .experiment import MOST_BYTES, Experiment, Cell, read_experiment
from .files import Error, make_folder, read_lines, visible, write_text
from .measures import MEASURES, measure_of
from .runs import Run, most
from .same import around, difference, differences, kind_of

JOINED = "runs.ini"


@dataclasses.dataclass
class Range:
    """A measure over the repeats of a cell; all None if no repeat has it."""
    median: float = None
    least: float = None
    most: float = None
    n: int = 0  # repeats that have the measure

    @property
    def wide(self):
        """Whether there is a range, not one value."""
        return self.n > 1 and self.least < self.most

    def overlaps(self, other):
        """Whether the two cannot be told apart."""
        return self.least <= other.most and other.least <= self.most


def range_of(values):
    """The median, least and most of the values that are not None. The median of an
    even number is the mean of the two middle ones."""
    v = [x for x in values if x is not None]
    return Range(statistics.median(v), min(v), max(v), len(v)) if v else Range()


def short_names(names):
    """The names without the words that all of them have."""
    words = [name.split(" ") for name in names]
    shared = set.intersection(*map(set, words)) if len(names) > 1 else set()
    return [" ".join(w for w in ws if w not in shared) or name
            for name, ws in zip(names, words)]


def with_way(name, way):
    """A cell's name, with its way if that does not tell it."""
    told = re.search(rf"\b{re.escape(way)}\b", name)
    return name if told else f"{name} [{way}]" if name else way


class Study:
    """All runs of a folder, and what compares them."""

    def __init__(self, out):
        self.out = self.to = str(out).rstrip("/") or "/"  # reads there, writes there
        self.words = []
        command = os.path.join(self.out, "command.txt")
        if os.path.lexists(command):
            ini, *self.words = [*filter(None, read_lines(command, MOST_BYTES))] or [""]
            if os.path.basename(ini) != ini or not ini:
                raise Error(f"{visible(command)}: names no INI file")
            self.ini = os.path.join(self.out, ini)
            self.experiment = read_experiment(self.ini, self.words, follow=False)
        elif os.path.lexists(os.path.join(self.out, "run.json")):
            self.ini = None
            self.experiment = self._alone()
        else:
            why = "neither an experiment nor a run; it has no command.txt and no run.json" \
                if os.path.lexists(self.out) else "no such folder; try: what out= names"
            inside = os.path.join(self.out, "r1")  # of one repeat of a cell
            hint = f"; try: {visible(inside)}" if os.path.lexists(inside) else ""
            raise Error(f"{visible(self.out)}: {why}{hint}")
        self.read()

    def _alone(self):
        """A single run as an experiment of one cell."""
        e = Experiment(os.path.basename(os.path.abspath(self.out)))
        e.title, e.repeat = "One run", 1
        e.cells = [Cell(e.name or "run", [])]
        e.figures = "loss util_timeline memory_timeline breakdown"
        return e

    @property
    def cells(self):
        """The cells of the experiment, with or without runs. Those with the same
        settings are one."""
        return [c for c in self.experiment.cells if c.into is None]

    def __iter__(self):
        return iter(self.runs)

    def __len__(self):
        return len(self.runs)

    # ---- reading

    def folder(self, cell, repeat):
        """The folder of repeat 1 .. of a cell."""
        return os.path.join(self.out, "cells", cell.folder, f"r{repeat}") \
            if self.ini else self.out

    def _places(self, cells):
        """(cell, repeat, folder) of each run that cells may have."""
        for cell in cells:
            for repeat in range(1, self.experiment.repeat + 1):
                yield cell, repeat, self.folder(cell, repeat)

    def strays(self):
        """The folders of runs that no cell or repeat of the experiment has: its INI
        file or the command's words were others when they ran."""
        mine = {folder for _, _, folder in self._places(self.experiment.cells)}
        cells = os.path.join(glob.escape(self.out), "cells", "*", "r*", "run.json")
        found = {os.path.dirname(path) for path in glob.glob(cells)} - mine
        return sorted(os.path.relpath(path, self.out) for path in found)

    def read(self):
        """Reads all runs that are there."""
        self.runs, self.unfinished = [], []
        for cell, repeat, folder in self._places(self.cells):
            if not os.path.lexists(os.path.join(folder, "run.json")):
                continue
            run = Run(folder, cell, repeat)
            run.study = self
            self.check(run)
            (self.runs if run.finished or not self.ini else
             self.unfinished).append(run)
        self._merge()
        self._show()
        self.target = self._target()
        if not self.ini and self.runs and self.runs[0].pace:  # it has no loss
            self.experiment.figures = "util_timeline memory_timeline breakdown"

    def check(self, run, settings=None):
        """Refuses a run that is none of its cell. `settings` are those of the cell as
        run.json has them (runner.py); without them the cell's words must agree. What
        is not in "asked" was for one start of the run, or was not named then: its
        value in "effective" counts."""
        name = f"{self.out}: {run.cell.name}, repeat {run.repeat}"
        if self.ini and not os.path.islink(run.folder):  # join() makes links
            wanted = {k: v for k, v in run.cell.settings.items() if k != "out"}
            wanted |= settings or {}
            if (run.number("format") or 0) < 3 and run["restarts"]:
                wanted.pop("inject", None)  # a restart left it out of run.json
            asked = {k: run.settings.get(k, "") for k in wanted} | run.asked
            if settings is None and run.manifest.get("format") is None:  # an old run
                asked = {k: run.asked.get(k, v) for k, v in wanted.items()}
            # another program, or a run that the cell resumes, may have settings that
            # the cell does not name
            if run.cell.peer or settings is None and "resume" in wanted:
                asked = {k: asked[k] for k in wanted}
            if found := difference(asked, wanted):
                then, now = found
                raise Error(f"{visible(name)}: ran with {then}, now {now}; "
                            "try: fresh=1 to run all again, or another out=")
        others = [r for r in self.runs + self.unfinished if r.cell is run.cell]
        for other in others[:1]:
            found = difference(other.asked, run.asked) or \
                difference(around(other), around(run))
            if found:
                then, now = found
                raise Error(f"{visible(name)}: not a repeat of repeat {other.repeat}, which "
                            f"has {then}; this one has {now}; try: fresh=1 "
                            "to run all again, or another out=")

    def _merge(self):
        """Makes one cell of those whose runs had the same settings, data, build and
        machine. The runs of the later ones become further repeats of the first."""
        first_runs, kinds, e = {}, {}, self.experiment
        for run in self.runs:
            first_runs.setdefault(run.cell, run)
        for cell, run in first_runs.items():
            first = kinds.setdefault(kind_of(run), cell)
            if first is not cell:
                cell.into = first
                first.twins.append(cell)
        for run in self.runs + self.unfinished:
            if first := run.cell.into:
                run.repeat += e.repeat * (1 + first.twins.index(run.cell))
                run.cell = first
        place = {cell: i for i, cell in enumerate(e.cells)}
        self.runs.sort(key=lambda r: (place[r.cell], r.repeat))
        self._of = {c: [r for r in self.runs if r.cell is c] for c in e.cells}

    def lacks(self, cell):
        """{setting: (asked, given)} for what its runs asked for and were not given."""
        found = {}
        for run in self.of(cell.into or cell):
            found |= run.lacks
        return found

    def had(self, cell, name):
        """A name without the settings that the cell's runs did not get."""
        lost = self.lacks(cell)
        kept = [w for w in name.split(" ") if w.partition("=")[0] not in lost]
        return " ".join(kept).replace("=?", "=")

    def value(self, cell, value):
        """A value of [matrix] as the cell got it: "1gbit" for "?1gbit", or
        "unshaped"."""
        got = {k: f"{k}={given}" for k, (_, given) in self.lacks(cell).items()}
        text = " ".join(got.get(w.partition("=")[0], w.replace("=?", "="))
                        for w in value.name.split(" "))
        return text if "=" in value.text else text.removeprefix(f"{value.key}=")

    def _show(self):
        """Sets the names of cells without settings that their runs did not get, and
        for sentences also without those that all cells have."""
        for cell in self.experiment.cells:
            cell.shown = self.had(cell, cell.name) or "run"
        for cell in self.cells:
            same = [c for c in self.cells if c.shown == cell.shown]
            if len(same) > 1:
                for i, c in enumerate(same):
                    c.shown = f"{c.shown} ({i + 1})"
        for cell, short in zip(self.cells, short_names([c.shown for c in self.cells])):
            cell.short = short

    @property
    def one_task(self):
        """Whether all runs train the same model on the same data."""
        return not any(differences(r, self.runs[0], "task") for r in self.runs[1:])

    def _target(self):
        """The loss that is asked for, or the least that every run reaches, rounded up to
        a hundredth. None if the runs have different models or data."""
        if not self.one_task:
            return None
        if self.experiment.target:
            return self.experiment.target
        lowest = [r["smooth_loss_nats"] for r in self.runs if not r.pace]
        if len(lowest) < 2 or None in lowest:
            return None
        return math.ceil(round(100 * max(lowest), 6)) / 100

    # ---- runs of cells

    def of(self, cell):
        """The finished runs of a cell, by repeat."""
        return self._of[cell]

    @property
    def filled(self):
        """The cells that have a finished run."""
        return [c for c in self.cells if self.of(c)]

    def first(self, cell):
        """The first finished run of a cell."""
        return self.of(cell)[0]

    @property
    def repeats(self):
        """Whether some cell has more than one finished run."""
        return any(len(self.of(c)) > 1 for c in self.cells)

    def baseline(self, cell):
        """The cell that a cell is compared with, or None."""
        base = None if cell.baseline is None else self.experiment.cells[cell.baseline]
        return base and (base.into or base)

    def baseline_run(self, run):
        """The baseline's run of the same round, or None."""
        base = self.baseline(run.cell) if run.cell else None
        return next((r for r in self.of(base) if r.round == run.round), None) \
            if base else None

    # ---- measures of cells

    def values(self, cell, measure):
        """A measure of each repeat of a cell."""
        return [MEASURES[measure].of(r) for r in self.of(cell)]

    def range(self, cell, measure):
        """A measure over the repeats of a cell. A speed-up is ratio() of the rates."""
        base = self.baseline(cell)
        if measure == "speedup" and base:
            return self.ratio(cell, base, "tokens_per_s")
        return range_of(self.values(cell, measure))

    def ratio(self, cell, base, measure):
        """A measure of a cell divided by that of another. The median is the ratio of
        the medians; least and most are those of pairs of the same round."""
        of = measure_of(measure).of
        pairs = [(of(r), of(b)) for r in self.of(cell) for b in self.of(base)
                 if r.round == b.round]
        found = range_of([a / b if a is not None and b else None for a, b in pairs])
        mine, its = (range_of(self.values(c, measure)).median for c in (cell, base))
        found.median = mine / its if mine is not None and its else None
        return found if found.median is not None else Range()

    def share(self, cell, kind):
        """The share of a step in a kind of work, median of the repeats."""
        return range_of([r.share(kind) for r in self.of(cell)]).median

    def sent(self, cell, verb):
        """Bytes that a worker sends in a step by a verb, median of the repeats."""
        return range_of([r.sent(verb) or 0 for r in self.of(cell)]).median

    def part_bytes(self, cell, part):
        """Predicted bytes of a part of memory, median of the repeats."""
        return range_of([r.part_bytes(part) for r in self.of(cell)]).median

    def worker_share(self, cell, worker, kind=None):
        """A worker's utilisation, or its share of a kind; median of the repeats."""
        found = []
        for run in self.of(cell):
            shares = run.shares if kind else run.utilisation
            mine = shares[worker] if worker < len(shares) else None
            found.append(mine.get(kind) if kind and mine else None if kind else mine)
        return range_of(found).median

    def timed_steps(self, cells):
        """"26" or "13 to 26": of how many steps the median steps are one; "" if of
        none."""
        found = {r.timed_steps for c in cells for r in self.of(c)} - {None}
        return " to ".join(map(str, sorted({min(found), max(found)}))) if found else ""

    def has(self, measure):
        """Whether some run has a measure."""
        return any(MEASURES[measure].of(r) is not None for r in self.runs)

    @property
    def gpus(self):
        """Whether a run has samples of a GPU."""
        return self.has("gpu_util_share")

    @property
    def workers(self):
        """The most workers of any run."""
        return most([r.world for r in self.runs]) or 0

    # ---- for a notebook

    def rows(self):
        """A dict for each run: cell, repeat, its settings and all measures."""
        return [{"cell": r.cell.shown, "repeat": r.repeat, "backend": r.backend,
                 "workers": r.world, **r.asked,
                 **{name: m.of(r) for name, m in MEASURES.items()}} for r in self.runs]

    def need_runs(self):
        """Raises an Error if no run is finished."""
        if self.runs:
            return
        stopped = "".join(
            f"; {stopped_where(r)}; try: the same lockstep run, or lockstep report "
            f"{visible(r.folder)}" for r in self.unfinished[:1])
        raise Error(f"{visible(self.out)}: no run is finished{stopped}")

    def frame(self):
        """The same as a pandas.DataFrame."""
        try:
            import pandas
        except ModuleNotFoundError as e:
            raise Error(f"{e}; try: apt-get install python3-pandas, or rows()") from None
        return pandas.DataFrame(self.rows())

    def compare(self):
        """Whether all runs trained the same thing: a fair.Verdict."""
        from .fair import compare
        return compare(self)

    def answer(self):
        """The answer in sentences: a list of answer.Sentence."""
        from .answer import answer
        return answer(self)


    # ---- writing

    def write_to(self, out):
        """Lets tables, figures and report be written into another folder."""
        for name in "command.txt", "run.json":
            if os.path.lexists(os.path.join(out, name)):
                raise Error(f"out={visible(out)}: has runs of its own; try: another out=")
        self.to = make_folder(out)


def stopped_where(run):
    """"ring, repeat 2 reached only step 3 of 8": it was stopped, or is going on."""
    return (f"{run.cell.short}, repeat {run.repeat} reached only step {run.steps} of "
            f"{run.setting('steps')}")


def join(folders, out):
    """Makes a study of existing runs, each a cell, in a new folder `out`."""
    if os.path.lexists(os.path.join(out, "run.json")):
        raise Error(f"out={visible(out)}: holds a run of lockstep train; try: another out=")
    used = os.path.lexists(os.path.join(out, "command.txt"))
    own = [r for r in glob.glob(os.path.join(glob.escape(str(out)), "cells", "*", "r1"))
           if not os.path.islink(r)]
    if used and (own or not os.path.lexists(os.path.join(out, JOINED))):
        raise Error(f"out={visible(out)}: has an experiment already; try: another out=")
    ini, names, links = "[experiment]\ntitle = Runs side by side\nrepeat = 1\n", [], []
    for folder in folders:
        path = os.path.realpath(folder)
        if not os.path.lexists(os.path.join(path, "run.json")):
            raise Error(f"{visible(folder)}: not a run, it has no run.json; try: folders of "
                        "runs, as DIR/cells/CELL/r1 of an experiment")
        run = Run(path)
        name = os.path.basename(path)
        if name[:1] == "r" and name[1:].isdecimal():  # a repeat of a cell
            name = os.path.join(os.path.basename(os.path.dirname(path)), name)
        name = re.sub(r"""[\s/,;:\[\]="'\\#]""", "_", visible(name))
        name += f"_{len(names) + 1}" if name in names else ""
        names.append(name)
        ini += f"[cell {name}]\nsync = {run.backend}\n"
        links.append((path, Cell(name, []).folder))
    make_folder(out)
    for path, name in links:
        link = os.path.join(make_folder(out, "cells", name), "r1")
        if os.path.islink(link):
            os.unlink(link)
        os.symlink(path, link)
    write_text(os.path.join(out, JOINED), ini)
    write_text(os.path.join(out, "command.txt"), JOINED + "\n")
    return Study(out)
