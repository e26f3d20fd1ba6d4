"""What a reader must know besides the ranking: what was not given, not run, disturbed,
slept, or wrong on purpose. Each remark is a sentence with the numbers that it stands on.
"""

import dataclasses
import os

from .fair import names_of
from .files import number, visible
from .measures import MEASURES
from .study import range_of, stopped_where

# A run is disturbed if both limits are exceeded: the share of its computing time
# in which other programs had its processor, and involuntary switches a second.
MUCH_TAKEN, MANY_SWITCHES = 0.1, 20
FEW = 10  # steps; a median of fewer may be the first one's
WHOLE = 0.995  # share of tokens; shown as 100%


@dataclasses.dataclass
class Sentence:
    """A sentence for the reader."""
    text: str
    numbers: str = ""  # that it stands on

    @property
    def warns(self):
        """Whether it says that numbers may mislead."""
        return self.text.startswith("Warning: ")

    def __str__(self):
        return self.text


def numbers_of(study, cells, *measures, names=None):
    """The measures of cells, a line for each that has one."""
    found = []
    for cell in cells:
        values = []
        for m in measures:
            median, ends = MEASURES[m].text_of(study.range(cell, m))
            if median != "-":
                values.append(f"{MEASURES[m].label} {median}" + f" ({ends})" * bool(ends))
        if values:
            name = names[cell] if names else cell.short
            found.append(f"{name}: {', '.join(values)}; n={len(study.of(cell))}")
    return "\n".join(found)


def all_or(study, cells):
    """"all cells", or the names of some."""
    return "all cells" if len(cells) == len(study.filled) else \
        names_of([c.short for c in cells])


def merged(study):
    cells, parts = [c for c in study.filled if c.twins], []
    for cell in cells:
        others = [c.shown for c in cell.twins if c.shown != cell.shown]
        parts.append(f"{cell.short} ({1 + len(cell.twins)} cells" + (
            f", also {names_of(others)})" if others else ")"))
    if parts:
        yield Sentence("Cells that had the same settings are one here, and their runs are "
                       f"its repeats: {names_of(parts)}.", "\n".join(
                           f"{c.shown}, repeat {r.repeat}: "
                           f"{os.path.relpath(r.folder, study.out)}"
                           for c in cells for r in study.of(c)))


def not_given(study):
    found = {}
    for cell in study.filled:
        for run in study.of(cell):
            for key, (asked, given) in run.lacks.items():
                found.setdefault((key, asked, given), {})[cell] = True
    for (key, asked, given), cells in found.items():
        who = all_or(study, cells)
        text = f"cores of their own could not be had: the workers of {who} share cores" \
            if key == "cores" else \
            f"{key}={asked} was asked for and could not be had: {who} ran " + (
                "on unshaped links" if given == "unshaped" else f"with {key}={given}")
        yield Sentence(f"Warning: {text}.")


def unfinished(study):
    for run in study.unfinished + [r for r in study.runs if not r.finished]:
        yield Sentence(f"Warning: {stopped_where(run)}, so it is left out." if study.ini
                       else f"Warning: The run reached only step {run.steps} of "
                       f"{run.setting('steps')}, so its numbers are of that part.")
    begun = {id(r.cell) for r in study.runs + study.unfinished}
    lost = [c.short for c in study.cells if id(c) not in begun]
    if lost and study.ini:
        yield Sentence(f"Not run: {names_of(lost)}.")
    if strays := study.strays() if study.ini else []:
        more = f" and {len(strays) - 1} more" if len(strays) > 1 else ""
        yield Sentence("Left out, as the experiment no longer has their cell or repeat: "
                       f"{visible(strays[0])}{more}.", "\n".join(map(visible, strays)))


def failed(study):
    """Its times and losses are not those of a job that nothing befell."""
    dead = [r for r in study.runs if r.finished and r.setting("elastic") == "1" and
            len(r.column("step")) < r.world * len(r.curve)]
    for runs, text in (
            (dead, "a worker was dead in some steps, which trained on smaller batches: {}. "
             "Do not compare their times and losses with those of others"),
            ([r for r in study.runs if r["restarts"]],
             "started again after a failure: {}. Their times leave out the steps that were "
             "done again, and the time of each start")):
        if cells := list(dict.fromkeys(r.cell for r in runs)):
            yield Sentence(f"Warning: {text.format(all_or(study, cells))}.",
                           numbers_of(study, cells, "trained_share", "restarts",
                                      "steps_lost", "seconds_lost"))


def unreached(study):
    if study.target is None:
        if study.experiment.target and study.runs:
            yield Sentence(f"No cell has the seconds to loss {study.experiment.target:.2f}, "
                           "since cells have different models or data.")
        return
    lost = [c for c in study.filled if not study.first(c).pace and
            study.range(c, "seconds_to_target").median is None]
    if lost:
        yield Sentence(f"Loss {study.target:.2f} was not reached by "
                       f"{names_of([c.short for c in lost])}.",
                       numbers_of(study, lost, "smooth_loss_nats"))


def _load(run):
    """(threads of workers and servers, cores of the machines). They count as equal
    machines."""
    return (run.world * (run.number("threads") or 1) +
            run.servers * (number(run.setting("server_threads")) or 1),
            run.hosts * (run.number("machine.cores") or 1))


def _expected(run):
    """The share of computing time in which a worker lacks a processor because the
    job itself can use more cores than its machines have. A server uses those that it
    was seen to use; it mostly waits."""
    threads, cores = _load(run)
    if run.samples["server_cores"] is not None:
        threads = run.world * (run.number("threads") or 1) + run.samples["server_cores"]
    return max(0, 1 - cores / max(1, threads))


def is_disturbed(run):
    """Whether other programs took the processors while a worker computed."""
    return (MEASURES["processor_taken_share"].of(run) or 0) > MUCH_TAKEN + _expected(run) and \
        (MEASURES["involuntary_switches_per_s"].of(run) or 0) > MANY_SWITCHES


def busy(study):
    judged = [r for r in study.runs if MEASURES["processor_taken_share"].of(r) is not None]
    busy = [r for r in judged if is_disturbed(r)]
    if not busy:
        return
    def over(run):
        return MEASURES["processor_taken_share"].of(run) - _expected(run)
    worst = max(busy, key=over)
    yield Sentence(
        f"Warning: the machine was busy. In {len(busy)} of {len(judged)} runs other "
        f"programs took the processors for more than {100 * MUCH_TAKEN:.0f}% of the "
        f"computing time. The worst is {worst.cell.short}, repeat {worst.repeat}, with "
        f"{100 * over(worst):.0f}%. The times of such runs are too long, "
        "and what follows from them may be wrong.",
        "\n".join(f"{r.cell.short}, repeat {r.repeat}: "
                  f"{100 * MEASURES['processor_taken_share'].of(r):.0f}% taken, "
                  f"{100 * _expected(r):.0f}% by the job itself" for r in busy))


def crowded(study):
    cells = [c for c in study.filled if study.first(c).oversubscribed]
    if cells:
        yield Sentence("Warning: more threads than cores, so workers share cores and all "
                       "times are longer than on cores of their own: "
                       f"{all_or(study, cells)}.", "\n".join(
                           "{}: {:.0f} threads, {:.0f} cores".format(
                               c.short, *_load(study.first(c))) for c in cells))


def dropped(study):
    found = {c: study.range(c, "trained_share").least for c in study.filled}
    cells = [c for c, share in found.items() if share is not None and share < WHOLE]
    if cells:
        yield Sentence("Not all that was read was trained on: " + names_of([
            f"{c.short} has {100 * found[c]:.0f}% of the tokens" for c in cells])
            + ". The others are no part of tokens/s.", numbers_of(
                study, cells, "trained_share", "tokens"))


def few(study):
    cells = [c for c in study.filled if (study.range(c, "timed_steps").least or FEW) < FEW]
    if cells:
        yield Sentence(f"Warning: few steps. The times of {all_or(study, cells)} stand on "
                       f"{study.timed_steps(cells)} steps, of which the first is often the "
                       "slowest; try: steps=20.", numbers_of(study, cells, "timed_steps"))


def on_purpose(study):
    slept = {}
    for cell in study.filled:
        run = study.first(cell)
        slept.setdefault(run.pace, []).append(cell)
        if run.mistakes:
            yield Sentence(f"Warning: {cell.short} is wrong on purpose: {run.mistakes}.")
    for pace, cells in slept.items():
        if pace:
            yield Sentence(f"Slept instead of computing (pace={pace} ms), so that bytes and "
                           f"waits are real, but nothing was learned: {all_or(study, cells)}.")
    for word, of in (("builds", lambda r: r.read["build"]),
                     ("processors", lambda r: r.text("machine.processor"))):
        kinds = {of(r) for r in study.runs}
        if len(kinds) > 1:
            yield Sentence(f"Warning: the cells ran with {len(kinds)} different {word}: "
                           f"{names_of(sorted(kinds))}.", "\n".join(
                               f"{c.short}: {of(study.first(c))}" for c in study.filled))


def outliers(study):
    """Repeats far from the median: by more than a tenth of it, and more than three
    times the median distance of the repeats."""
    for cell in study.filled:
        rates = study.values(cell, "tokens_per_s")
        if len(rates) < 3 or None in rates:
            continue
        middle = range_of(rates).median
        usual = range_of([abs(v - middle) for v in rates]).median
        for run, rate in zip(study.of(cell), rates):
            if abs(rate - middle) > max(3 * usual, 0.1 * middle):
                yield Sentence(f"Outlier (kept in all ranges): {cell.short}, repeat "
                               f"{run.repeat}, has {rate:.0f} tokens/s; the cell's median "
                               f"is {middle:.0f}.", "\n".join(
                                   f"repeat {r.repeat}: {v:.0f}"
                                   for r, v in zip(study.of(cell), rates)))


def before(study):
    """What a reader must know before a ranking."""
    return [*not_given(study), *merged(study), *unfinished(study), *failed(study),
            *busy(study)]


def after(study):
    """What else is worth a sentence."""
    return [s for part in (unreached, crowded, dropped, few, on_purpose, outliers)
            for s in part(study)]
