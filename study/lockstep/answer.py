"""The answer of a study in sentences, each with the numbers that it stands on.

For each choice (links, workers, batch, model: what is not a way of agreeing) the
ways are ranked:

    first    the cell that reaches the target loss first, or without a target the
             fastest
    last     the last cell, and why: more tokens, a busy link, or others that are late
    price    memory, and the best validation loss

With the first, the next and the last cell all are named whose ranges overlap its own.
Then one sentence over all choices. Remarks stand before and after (remarks.py). No way
is known here by name.
"""

import math

from .fair import eras, evaluated, names_of
from .measures import MIB
from .remarks import Sentence, after, all_or, before, is_disturbed, numbers_of
from .same import differences, task_of
from .study import short_names, with_way

HELD_UP = (("exposed_s_per_step", "its link is busy"),  # what a worker does meanwhile
           ("wait_s_per_step", "it waits for others"),
           ("bubble_s_per_step", "it waits for other stages"),
           ("join_s_per_step", "it waits for other slices or pieces"))
WORKS = (("computing_s_per_step", "it computes"), ("data_s_per_step", "it waits for data"),
         ("other_s_per_step", "it does what is not measured"))


def ms(seconds):
    """A time for people: "436 ms", "3.1 ms" or "0.074 ms"."""
    v = 1e3 * seconds
    return f"{v:.{3 if 0 < v < 1 else 1 if 0 < v < 10 else 0}f} ms"


def ago(seconds):
    """A span of time for people: "2 days"."""
    unit, name = next((u, n) for u, n in (
        (86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"), (0, "second"))
        if seconds >= u)
    count = int(seconds // max(1, unit))
    return f"{count} {name}{'s' * (count != 1)}"


def _with_range(r, digits):
    text = f"{r.median:{digits}}"
    return text + (f" ({r.least:{digits}} .. {r.most:{digits}})" if r.wide else "")


class Choice:
    """Cells that differ only in their way of agreeing, ranked."""

    def __init__(self, study, cells, settings, timed):
        self.study, self.cells, self.settings = study, cells, settings
        self.names = self._names()
        self.measure = "seconds_to_target" if timed else "tokens_per_s"
        self.rank()
        if timed and len(self.ranked) < 2:
            self.measure = "tokens_per_s"
            self.rank()

    def _names(self):
        """{cell: its name without what all cells of the choice share}. It tells the
        way, too, if the ways differ."""
        ways = {c: self.study.first(c).backend for c in self.cells}
        names = dict(zip(self.cells, short_names([c.shown for c in self.cells])))
        several = len(set(ways.values())) > 1
        return {c: with_way(name, ways[c]) if several else name
                for c, name in names.items()}

    def rank(self):
        """Sorts the cells, the best first, and finds those tied with it."""
        order = [c for c in self.cells if self.median(c, self.measure) is not None]
        order.sort(key=lambda c: (1 if self.timed else -1) * self.median(c, self.measure))
        self.ranked = order
        self.tied = self.level(order[0], order) if order else []

    def level(self, cell, cells, measure=None):
        """Those of the cells that cannot be told apart from one: their ranges overlap."""
        mine = self.range(cell, measure)
        return [c for c in cells if self.range(c, measure).overlaps(mine)]

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

    def who(self, *cells):
        """Their names: "ring and dps"."""
        return names_of([self.names.get(c, c.short) for c in cells])

    @property
    def where(self):
        """The settings that make the choice: "net=1gbit and workers=2"."""
        return names_of([f"{k}={v}" for k, v in self.settings.items()]) \
            if self.settings else ""

    def numbers(self, *measures):
        """The numbers of all cells, for a reader who doubts a sentence."""
        return numbers_of(self.study, self.cells, *measures or (self.measure,),
                        names=self.names)

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
                f"{self.who(base)}")

    def place(self, cells, cell, one, many):
        """"ring is fastest: 40 tokens/s", or of several cells, with the numbers of one
        of them."""
        text = f"{one}: " if len(cells) == 1 else \
            f"{many}, {self.level_with(cell, cells)}: their ranges overlap. {self.who(cell)}: "
        return f"{self.who(*cells)} {text}{self.value(cell)}{self.beside(cell)}"

    def level_with(self, cell, cells):
        """What is said of cells whose ranges overlap that of one of them. They need not
        overlap each other's."""
        ranges = [self.range(c) for c in cells]
        return "too close to tell apart" if all(
            a.overlaps(b) for a in ranges for b in ranges) else \
            f"not to be told apart from {self.who(cell)}"

    @property
    def behind(self):
        """The cells that are not level with the first."""
        return [c for c in self.ranked if c not in self.tied]

    def first(self):
        """Which cell is first, and by how much."""
        best, words = self.ranked[0], ("is fastest", "are fastest")
        if self.timed:
            loss = f"loss {self.study.target:.2f} first"
            words = f"reaches {loss}", f"reach {loss}"
        text = f"With {self.where}, " if self.where else ""
        text += self.place(self.tied, best, *words)
        if self.behind and self.behind[0] is not self.study.baseline(best):
            text += self.next(best, self.behind[0])
        return Sentence(text + ".", self.numbers())

    def next(self, best, second):
        """"; the next is dps, 1.20 times slower"."""
        level = self.level(second, self.behind)
        a, b = (self.range(c).median for c in (best, second))
        more, less = (b, a) if self.timed else (a, b)
        times = f"{more / less if less else math.inf:.2f} times"
        if len(level) > 1:
            return (f"; the next are {self.who(*level)}, {self.level_with(second, level)}; "
                    f"{self.who(second)} " + (
                        f"takes {times} as long" if self.timed else f"is {times} slower"))
        return f"; the next is {self.who(second)}, " + (
            f"which takes {times} as long" if self.timed else f"{times} slower")

    def spent(self, cell, kinds):
        """[(seconds of a step, what a worker does meanwhile)] of the measured kinds."""
        found = [(self.median(cell, m), what) for m, what in kinds]
        return [f for f in found if f[0] is not None]

    def why(self, cell):
        """Why a cell is last."""
        best = self.ranked[0]
        if any(map(is_disturbed, self.study.of(cell) + self.study.of(best))):
            return ". Other programs took the processors, so the cause is not known"
        tokens, rate = (self.study.ratio(cell, best, m).median for m in (
            "tokens_to_target", "tokens_per_s"))
        if tokens and rate and tokens > 1.05 and tokens > 1 / rate:
            return f": it needs {tokens:.2f} times the tokens of {self.who(best)}"
        step, first_step = (self.median(c, "step_s") for c in (cell, best))
        if step is None or first_step is None:
            return ""
        share, first_share = (self.median(c, "trained_share") for c in (cell, best))
        if share and first_share and first_share / share > max(1.05, step / first_step):
            return (f": its gradients have {100 * share:.0f}% of the tokens that it read, "
                    f"those of {self.who(best)} {100 * first_share:.0f}%")
        held = sorted(self.spent(cell, HELD_UP), key=lambda h: -h[0])
        if not held or step <= first_step:
            return ""
        # Is it held up longer than the first, or does it work longer?
        idle, first_idle = (sum(v for v, _ in self.spent(c, HELD_UP)) for c in (cell, best))
        first = {what: v for v, what in self.spent(best, WORKS)}
        longer, works, what = max(((v - first.get(what, 0), v, what)
                                   for v, what in self.spent(cell, WORKS)), default=(0, 0, ""))
        if longer > max(0, idle - first_idle):
            return (f": {what} for {ms(works)} of each step's {ms(step)}, "
                    f"{self.who(best)} for {ms(works - longer)}")
        if idle < first_idle:
            return ""
        said = [f"{what} for {ms(v)}" for v, what in held if v > 0.1 * step or v == held[0][0]]
        text = f": {said[0]} of each step's {ms(step)} without computing"
        text += "".join(f", and {other}" for other in said[1:])
        law = self.median(cell, "law_exchange_s")
        return text + (f"; the law predicts an exchange of {ms(law)}" if law else "")

    def last(self):
        """Which cell is last of those that are behind the first, and why."""
        cell = self.behind[-1]
        words = ("takes longest", "take longest") if self.timed else \
            ("is slowest", "are slowest")
        text = self.place(self.level(cell, self.ranked), cell, *words)
        return Sentence(text + self.why(cell) + ".",
                        self.numbers("step_s", *(m for m, _ in WORKS + HELD_UP),
                                     "law_exchange_s", "tokens_to_target",
                                     "trained_share"))

    def extremes(self, measure, close, form):
        """"50 MiB in all cells", or "from 50 MiB (ring) to 60 MiB (dps)"; "" if no cell
        has the measure. Medians that differ by at most `close` are the same."""
        cells = [c for c in self.cells if self.median(c, measure) is not None]
        if not cells:
            return ""
        ends = [f(cells, key=lambda c: self.median(c, measure)) for f in (min, max)]
        a, b = (self.median(c, measure) for c in ends)
        if b - a <= close:
            return f"{form(a)} in all cells"
        level = [self.level(c, cells, measure) for c in ends]
        if ends[1] in level[0]:
            return f"from {form(a)} to {form(b)}, too close to tell apart: ranges overlap"
        return f"from {form(a)} ({self.who(*level[0])}) to {form(b)} ({self.who(*level[1])})"

    def price(self):
        """Memory and validation loss. The losses of different sequences say nothing."""
        parts, (least, most) = [], evaluated(
            [r for c in self.cells for r in self.study.of(c)])
        memory = self.extremes("peak_memory_bytes", MIB / 2, lambda v: f"{v / MIB:.0f} MiB")
        loss = self.extremes("best_val_loss_nats", 0.0005, lambda v: f"{v:.3f}")
        if memory:
            parts.append(f"the peak memory of a worker is {memory}")
        if loss and least == most:
            parts.append(f"the best validation loss is {loss}")
        elif loss:
            parts.append("validation losses are not comparable: " + (
                f"cells evaluate {least:.0f} to" if least else
                "some cells evaluate all of the text, others at most") +
                f" {most:.0f} sequences")
        text = "; ".join(parts)
        return Sentence(f"{text[0].upper()}{text[1:]}.", self.numbers(
            "peak_memory_bytes", "best_val_loss_nats")) if text else None

    def turns(self):
        """A warning for each group of cells that ran later than the others. The baseline
        of a cell may have another choice."""
        before, last = [], 0
        bases = [b for b in map(self.study.baseline, self.cells) if b and self.study.of(b)]
        for group, begin, end in eras(self.study, dict.fromkeys(self.cells + bases)):
            if before:
                where = f"with {self.where}, " if self.where else ""
                yield Sentence(f"Warning: {where}{self.who(*group)} ran {ago(begin - last)} "
                               f"after {self.who(*before)} and not in turns, so what "
                               "changed on the machine meanwhile is a part of the "
                               "difference.", "\n".join(
                                   f"{self.who(c)}: " + ", ".join(sorted(
                                       r.text("started") for r in self.study.of(c)))
                                   for c in before + group))
            before, last = before + group, end

    def sentences(self):
        """First, last and price."""
        return [s for s in (*self.turns(), self.first(), self.last() if self.behind else None,
                            self.price()) if s]


CHOSEN = ("net", "workers", "global_batch")  # besides model and data


def _groups(study):
    """[(settings, cells)] of the cells that agree in what is chosen. One worker has
    nobody to agree with, so it joins every group of its batch, model and data, on any
    links that it has."""
    groups = []
    for cell in study.filled:
        run = study.first(cell)
        settings = dict(zip(CHOSEN, (run.net, run.world, run.global_batch)))
        for known, cells in groups:
            if known == settings and not differences(study.first(cells[0]), run, "task"):
                cells.append(cell)
                break
        else:
            groups.append((settings, [cell]))
    lone, joined = [g for g in groups if g[0]["workers"] == 1], set()
    for settings, cells in groups:
        for other, more in lone:
            if settings["workers"] > 1 and other["net"] in ("", settings["net"]) and \
                    other["global_batch"] == settings["global_batch"] and \
                    not differences(study.first(cells[0]), study.first(more[0]), "task"):
                cells += more
                joined.update(more)
    return [(s, sorted(cells, key=study.cells.index)) for s, cells in groups
            if cells[0] not in joined or s["workers"] > 1]


def choices(study):
    """The cells of a study by what is not a way of agreeing: a list of Choice. A cell
    that has no other of its choice is in a Choice of its own."""
    groups = _groups(study)
    named = [k for k in CHOSEN if len({s[k] for s, _ in groups}) > 1 or
             (k == "net" and any(s[k] for s, _ in groups[:1]))]
    tasks = [task_of(study.first(cells[0])) for _, cells in groups]
    model = [k for k in tasks[0] if len({t.get(k) for t in tasks}) > 1] if tasks else []
    return [Choice(study, cells, {**{k: s[k] or "none" for k in named},
                                  **{k: task.get(k, "none") for k in model}},
                   study.target is not None)
            for (s, cells), task in zip(groups, tasks)]


def _names_over_all(study):
    """{cell: its name without the values of those keys of [matrix] that make choices}"""
    def choice(cell):
        run = study.first(cell)
        return run.net, run.world, run.global_batch, *task_of(run).items()
    choosing = set()  # the numbers of these keys
    for a in range(len(study.experiment.axes)):
        found = {}
        for c in study.filled:
            others = c.named, *(v.name for v in c.values[:a] + c.values[a + 1:])
            found.setdefault(others, set()).add(choice(c))
        if any(len(kinds) > 1 for kinds in found.values()):
            choosing.add(a)
    names = []
    for c in study.filled:
        without = {w for a in choosing for w in c.values[a].name.replace("=?", "=").split(" ")}
        names.append(" ".join(w for w in c.shown.split(" ") if w not in without))
    ways = [study.first(c).backend for c in study.filled]
    return {c: with_way(name, way) if len(set(ways)) > 1 else name or way
            for c, name, way in zip(study.filled, short_names(names), ways)}


def _over_all(study, found):
    """One sentence over several choices; None if no way is in all of them."""
    names = _names_over_all(study)
    if not set.intersection(*({names[x] for x in c.ranked} for c in found)):
        return None
    first = [names_of(sorted({names[x] for x in c.tied})) for c in found]
    best = sorted(set.intersection(*({names[x] for x in c.tied} for c in found)))
    numbers = "\n".join(f"{c.where}: {c.who(*c.tied)}" for c in found)
    if best:
        return Sentence(f"Over all {len(found)} choices {names_of(best)} "
                        f"{'is' if len(best) == 1 else 'are'} first, or too close to the "
                        "first to tell apart.", numbers)
    return Sentence("Over all choices no way is always first: " + "; ".join(
        f"{who} with {', '.join(c.where for c, w in zip(found, first) if w == who)}"
        for who in dict.fromkeys(first)) + ".", numbers)


def answer(study):
    """All sentences of a study."""
    said = before(study)
    found = choices(study)
    alone = [c for c in found if len(c.cells) == 1]
    found = [c for c in found if len(c.ranked) > 1]
    for choice in found:
        said += choice.sentences()
    if len(found) > 1:
        said += filter(None, [_over_all(study, found)])
    if alone and len(study.filled) > 1:
        said.append(Sentence("Not ranked, since no other cell has the same links, workers, "
                             "global batch and model: "
                             f"{all_or(study, [c.cells[0] for c in alone])}.",
                             "\n".join(f"{c.who(*c.cells)}: {c.where}" for c in alone)))
    said += after(study)
    if len(study.filled) > 1 and not study.repeats:
        said.append(Sentence("Each cell ran once, so the variation of its times is unknown; "
                             "try: repeat=3."))
    return said

