"""The answer of a study in sentences, each with the numbers that it stands on.

For each choice (links, workers, batch, model: what is not a way of agreeing) the
ways are ranked:

    first    the cell that reaches the target loss first, or without a target the
             fastest; all cells whose ranges overlap its range are named with it
    last     the last cell, and why: more tokens, a busy link, or others that are late
    price    memory, and the best validation loss

Then one sentence over all choices, and warnings. No way is known here by name.
"""

import dataclasses
import math

from .fair import differences, names_of, one_task, task_of
from .measures import MEASURES, MIB
from .study import range_of, short_names

# A run is disturbed if both limits are exceeded: the share of its computing time
# in which other programs had its processor, and involuntary switches a second.
MUCH_TAKEN, MANY_SWITCHES = 0.1, 20


@dataclasses.dataclass
class Sentence:
    """A sentence for the reader."""
    text: str
    numbers: str = ""  # that it stands on
    warns: bool = False

    def __str__(self):
        return self.text


def ms(seconds):
    """A time for people: "436 ms", "3.1 ms" or "0.074 ms"."""
    v = 1e3 * seconds
    return f"{v:.{3 if v < 1 else 1 if v < 10 else 0}f} ms"


def _with_range(r, digits):
    text = f"{r.median:{digits}}"
    return text + (f" ({r.least:{digits}} .. {r.most:{digits}})" if r.wide else "")


class Choice:
    """Cells that differ only in their way of agreeing, ranked."""

    def __init__(self, study, cells, settings, timed):
        self.study, self.cells, self.settings = study, cells, settings
        self.names = dict(zip(map(id, cells), short_names([c.shown for c in cells])))
        self.measure = "seconds_to_target" if timed else "tokens_per_s"
        self.rank()
        if timed and len(self.ranked) < 2:
            self.measure = "tokens_per_s"
            self.rank()

    def rank(self):
        """Sorts the cells, the best first, and finds those tied with it."""
        found = [(self.range(c), c) for c in self.cells]
        found = [(r, c) for r, c in found if r.median is not None]
        found.sort(key=lambda rc: rc[0].median if self.timed else -rc[0].median)
        self.ranked = found
        self.tied = [c for r, c in found if r.overlaps(found[0][0])]

    @property
    def timed(self):
        """Whether less is better."""
        return self.measure == "seconds_to_target"

    def range(self, cell, measure=None):
        """A measure of a cell; without a name that by which cells are ranked."""
        return self.study.range(cell, measure or self.measure)

    def median(self, cell, measure):
        """Its median."""
        return self.range(cell, measure).median

    def name(self, cell):
        """Of a cell, without what all cells of the choice share."""
        return self.names[id(cell)]

    @property
    def where(self):
        """The settings that make the choice: "net=1gbit and workers=2"."""
        return names_of([f"{k}={v}" for k, v in self.settings.items()]) \
            if self.settings else ""

    def numbers(self, *measures):
        """The numbers of all cells, for a reader who doubts a sentence."""
        found = []
        for cell in self.cells:
            values = []
            for m in measures or (self.measure,):
                r = self.range(cell, m)
                scale = MEASURES[m].scale
                if r.median is not None:
                    values.append(f"{MEASURES[m].label} {r.median * scale:.4g}" + (
                        f" ({r.least * scale:.4g} .. {r.most * scale:.4g})"
                        if r.wide else ""))
            if values:
                found.append(f"{self.name(cell)}: {', '.join(values)}; "
                             f"n={len(self.study.of(cell))}")
        return "\n".join(found)

    # ---- sentences

    def value(self, cell):
        """The value of a cell with its range and unit."""
        r = self.range(cell)
        return _with_range(r, ".3g" if self.timed else ".0f") + (
            " s" if self.timed else " tokens/s")

    def beside(self, cell):
        """", 0.55 (0.53 .. 0.57) times the time of single": nothing for the baseline."""
        base = self.study.baseline(cell)
        if base is None or base is cell or not self.study.of(base):
            return ""
        ratio = self.study.ratio(cell, base, self.measure)
        if ratio.median is None:
            return ""
        what = "time" if self.timed else "rate"
        return (f", {_with_range(ratio, '.2f')} times the {what} of "
                f"{self.names.get(id(base), base.short)}")

    def first(self):
        """Which cell is first, and by how much."""
        best, several = self.ranked[0][1], len(self.tied) > 1
        verb = (f"{'reach' if several else 'reaches'} loss {self.study.target:.2f} first"
                if self.timed else "are fastest" if several else "is fastest")
        text = f"{names_of([self.name(c) for c in self.tied])} {verb}"
        text = f"With {self.where}, {text}" if self.where else text
        text += (f", too close to tell apart: their ranges overlap. {self.name(best)}: "
                 if several else ": ")
        text += self.value(best) + self.beside(best)
        behind = [c for _, c in self.ranked if c not in self.tied]
        if behind and behind[0] is not self.study.baseline(best):
            a, b = (self.range(c).median for c in (best, behind[0]))
            more, less = (b, a) if self.timed else (a, b)
            times = more / less if less else math.inf
            text += f"; the next is {self.name(behind[0])}, " + (
                f"which takes {times:.2f} times as long" if self.timed else
                f"{times:.2f} times slower")
        return Sentence(text + ".", self.numbers())

    def why(self, cell):
        """Why a cell is last."""
        base = self.study.baseline(cell)
        if base is not None and base is not cell and self.study.of(base):
            tokens = self.study.ratio(cell, base, "tokens_to_target").median
            rate = self.study.ratio(cell, base, "tokens_per_s").median
            if tokens and rate and tokens > 1.05 and tokens > 1 / rate:
                return f": it needs {tokens:.2f} times the tokens"
        step, link, late = (self.median(cell, m) for m in (
            "step_s", "exposed_s_per_step", "wait_s_per_step"))
        if None in (step, link, late):
            return ""
        if link + late < 0.4 * step:
            return f": it computes for {ms(step - link - late)} of each step's {ms(step)}"
        busy, waits = (f"its link is busy for {ms(link)}", f"it waits for others for {ms(late)}")
        text, other, less = (busy, waits, late) if link >= late else (waits, busy, link)
        text = f": {text} of each step's {ms(step)} without computing"
        if less > 0.1 * step:
            text += f", and {other}"
        law = self.median(cell, "law_exchange_s")
        return text + (f"; the law predicts an exchange of {ms(law)}" if law else "")

    def last(self):
        """Which cell is last of those that are behind the first, and why."""
        cell = [c for _, c in self.ranked if c not in self.tied][-1]
        text = f"{self.name(cell)} {'takes longest' if self.timed else 'is slowest'}: "
        return Sentence(text + self.value(cell) + self.beside(cell) + self.why(cell) + ".",
                        self.numbers("step_s", "exposed_s_per_step", "wait_s_per_step",
                                     "law_exchange_s", "tokens_to_target"))

    def extremes(self, measure):
        """The cells with the least and the largest median, each with its median; None
        if no cell has the measure."""
        found = [(self.median(c, measure), c) for c in self.cells]
        found = [(v, c) for v, c in found if v is not None]
        key = (lambda vc: vc[0])
        return (min(found, key=key), max(found, key=key)) if found else None

    def price(self):
        """Memory and validation loss."""
        parts = []
        if found := self.extremes("peak_memory_bytes"):
            (a, small), (b, large) = found
            parts.append(f"The peak memory of a worker is {a / MIB:.0f} MiB in all cells"
                         if b - a < MIB / 2 else "The peak memory of a worker is from "
                         f"{a / MIB:.0f} MiB ({self.name(small)}) to {b / MIB:.0f} MiB "
                         f"({self.name(large)})")
        if found := self.extremes("best_val_loss_nats"):
            (a, good), (b, bad) = found
            parts.append(f"the best validation loss is {a:.3f} in all cells"
                         if b - a <= 0.0005 else f"the best validation losses are from "
                         f"{a:.3f} ({self.name(good)}) to {b:.3f} ({self.name(bad)})")
        text = "; ".join(parts)
        return Sentence(f"{text[0].upper()}{text[1:]}.", self.numbers(
            "peak_memory_bytes", "best_val_loss_nats")) if text else None

    def sentences(self):
        """First, last and price."""
        said = [self.first()]
        if len(self.tied) < len(self.ranked):
            said.append(self.last())
        return [s for s in (*said, self.price()) if s]


# What makes a choice. Where it leaves a cell alone, the last of these does not count.
CHOSEN = ("net", "workers", "global_batch")


def _groups(study, keys):
    """[(settings, cells)] of the cells that agree in these keys, and in the model if
    there are any. One worker has nobody to agree with, so it joins every group of its
    batch and model, on any links that it has."""
    groups = []
    for cell in study.filled:
        run = study.first(cell)
        whole = {"net": run.net, "workers": run.world, "global_batch": run.global_batch}
        settings = {k: whole[k] for k in keys}
        for known, cells in groups:
            if known == settings and not (keys and differences(
                    study.first(cells[0]), run, "task")):
                cells.append(cell)
                break
        else:
            groups.append((settings, [cell]))
    lone = [g for g in groups if g[0].get("workers") == 1]
    joined = set()
    for settings, cells in groups:
        for other, more in lone:
            if settings["workers"] > 1 and other["net"] in ("", settings["net"]) and \
                    other.get("global_batch") == settings.get("global_batch") and \
                    not differences(study.first(cells[0]), study.first(more[0]), "task"):
                cells += more
                joined |= set(map(id, more))
    return [(s, sorted(cells, key=study.cells.index)) for s, cells in groups
            if not (s.get("workers") == 1 and id(cells[0]) in joined)]


def choices(study):
    """The cells of a study by what is not a way of agreeing: a list of Choice."""
    timed = study.target is not None and one_task(study)
    for n in range(len(CHOSEN), -1, -1):
        groups = _groups(study, CHOSEN[:n])
        if all(len(cells) > 1 for _, cells in groups):
            break
    named = [k for k in CHOSEN[:n] if len({s[k] for s, _ in groups}) > 1 or
             (k == "net" and groups[0][0][k])]
    tasks = [task_of(study.first(cells[0])) for _, cells in groups]
    model = [k for k in tasks[0] if len({t.get(k) for t in tasks}) > 1] if tasks else []
    return [Choice(study, cells, {**{k: s[k] or "none" for k in named},
                                  **{k: task.get(k, "none") for k in model}}, timed)
            for (s, cells), task in zip(groups, tasks) if len(cells) > 1]


def _over_all(found):
    """One sentence over several choices."""
    level = [{c.name(x) for x in c.tied} for c in found]
    best = sorted(set.intersection(*level))
    numbers = "\n".join(f"{c.where}: {names_of([c.name(x) for x in c.tied])}" for c in found)
    if best:
        return Sentence(f"Over all {len(found)} choices {names_of(best)} "
                        f"{'is' if len(best) == 1 else 'are'} first, or too close to the "
                        "first to tell apart.", numbers)
    where = {}
    for choice in found:
        where.setdefault(names_of([choice.name(c) for c in choice.tied]),
                         []).append(choice.where)
    return Sentence("Over all choices no way is always first: " + "; ".join(
        f"{names} with {', '.join(places)}" for names, places in where.items()) + ".",
        numbers)


# ---- warnings

def _not_given(study):
    found = {}
    for cell in study.filled:
        for run in study.of(cell):
            for key, (asked, given) in run.lacks.items():
                found.setdefault((key, asked, given), set()).add(cell.short)
    for (key, asked, given), names in found.items():
        cells = "all cells" if len(names) == len(study.filled) else \
            names_of(sorted(names))
        text = (f"{key}={asked} was asked for and could not be had: {cells} ran "
                + ("on unshaped links" if given == "unshaped" else f"with {key}={given}"))
        yield Sentence(f"Warning: {text}.", warns=True)


def _unfinished(study):
    for run in study.unfinished + [r for r in study.runs if not r.finished]:
        who = f"{run.cell.short}, repeat {run.repeat}" if study.ini else "The run"
        yield Sentence(f"Warning: {who} was stopped at step {run.steps} of "
                       f"{run.setting('steps')}" + (", so it is left out."
                       if study.ini else ", so its numbers are of that part."), warns=True)
    begun = {id(r.cell) for r in study.runs + study.unfinished}
    lost = [c.short for c in study.cells if id(c) not in begun]
    if lost and study.ini:
        yield Sentence(f"Not run: {names_of(lost)}.")


def _unreached(study):
    if study.target is None or not one_task(study):
        return
    names = [c.short for c in study.filled if not study.first(c).pace and
             study.range(c, "seconds_to_target").median is None]
    if names:
        yield Sentence(f"Loss {study.target:.2f} was not reached by {names_of(names)}.")


def _expected(run):
    """The share of computing time in which a worker lacks a processor because the
    job itself has more threads and servers than there are cores."""
    cores = run.number("machine.cores") or 1
    threads = run.world * (run.number("threads") or 1) + run.servers
    return max(0, 1 - cores / max(1, threads))


def _busy(study):
    judged = [r for r in study.runs if MEASURES["processor_taken_share"].of(r) is not None]
    busy = [r for r in judged if
            MEASURES["processor_taken_share"].of(r) > MUCH_TAKEN + _expected(r) and
            (MEASURES["involuntary_switches_per_s"].of(r) or 0) > MANY_SWITCHES]
    if not busy:
        return
    def over(run):
        return MEASURES["processor_taken_share"].of(run) - _expected(run)
    worst = max(busy, key=over)
    yield Sentence(
        f"Warning: the machine was busy. In {len(busy)} of {len(judged)} runs other "
        f"programs took the processors for more than {100 * MUCH_TAKEN:.0f}% of the "
        f"computing time. The worst is {worst.cell.short}, repeat {worst.repeat}, with "
        f"{100 * over(worst):.0f}%. The times of such runs are too long.",
        "\n".join(f"{r.cell.short}, repeat {r.repeat}: "
                  f"{100 * MEASURES['processor_taken_share'].of(r):.0f}% taken, "
                  f"{100 * _expected(r):.0f}% by the job itself" for r in busy), True)


def _crowded(study):
    names = [c.short for c in study.filled if study.first(c).oversubscribed]
    if names:
        cells = "all cells" if len(names) == len(study.filled) else names_of(names)
        yield Sentence("Warning: more threads than cores, so workers share cores and all "
                       f"times are longer than on cores of their own: {cells}.", warns=True)


def _remarks(study):
    for cell in study.filled:
        run = study.first(cell)
        if run.pace:
            yield Sentence(f"{cell.short} slept instead of computing (pace={run.pace} ms): "
                           "its bytes and waits are real, but it learned nothing.")
        if run.mistakes:
            yield Sentence(f"Warning: {cell.short} is wrong on purpose: {run.mistakes}.",
                           warns=True)
    for word, path in (("builds", "revision"), ("processors", "machine.processor")):
        kinds = {str(r.get(path)) for r in study.runs}
        if len(kinds) > 1:
            yield Sentence(f"Warning: the cells ran with {len(kinds)} different {word}: "
                           f"{names_of(sorted(kinds))}.", warns=True)


def _outliers(study):
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
                               f"is {middle:.0f}.")


def answer(study):
    """All sentences of a study."""
    said = [*_not_given(study), *_unfinished(study)]
    found = [c for c in choices(study) if len(c.ranked) > 1]
    for choice in found:
        said += choice.sentences()
    if len(found) > 1:
        said.append(_over_all(found))
    for part in _unreached, _busy, _crowded, _remarks, _outliers:
        said += part(study)
    if found and not study.repeats:
        said.append(Sentence("Each cell ran once, so the variation of its times is unknown; "
                             "try: repeat=3."))
    return said

