"""Checks the answer of a study: that each sentence that must be said is said, with
the right names and numbers, and nothing else.
"""

import re

from study_oracle_runs import bounds
from study_oracle_tables import steps_of

MIB = 1 << 20


class Number:
    """A number in a sentence. kind: decimals, or "3" significant digits, or "ms"."""

    def __init__(self, value, kind):
        self.value, self.kind = value, kind

    def is_in(self, text):
        if self.kind == "ms":
            value, decimals = 1000 * self.value, len(text.partition(".")[2])
            want = 3 if value < 1 else 1 if value < 10 else 0
            return decimals == want and close(text, value, decimals)
        if self.kind == "3":
            size = f"{self.value:.2e}"
            return close(text, self.value, 2 - int(size.partition("e")[2]))
        return len(text.partition(".")[2]) == self.kind and \
            close(text, self.value, self.kind)


def close(text, value, decimals):
    return abs(float(text) - value) <= .500001 * 10 ** -decimals


def g3(value):
    return Number(value, "3")


def f(value, decimals):
    return Number(value, decimals)


def ms(value):
    """A time, with its unit."""
    return [Number(value, "ms"), " ms"]


def sentence_is(have, want):
    """want: texts and Numbers."""
    pattern = "".join(re.escape(w) if isinstance(w, str) else
                      r"(-?\d+(?:\.\d+)?(?:e[+-]\d+)?)" for w in want)
    found = re.fullmatch(pattern, have)
    shown = [w if isinstance(w, str) else w.value for w in want]
    assert found, f"have: {have}\nwant: {shown}"
    for text, number in zip(found.groups(), (
            w for w in want if not isinstance(w, str))):
        assert number.is_in(text), \
            f"have: {have}\nwant: {shown}\n{text} is not {number.value}"


def names(list_):
    list_ = list(list_)
    return list_[0] if len(list_) == 1 else \
        f"{', '.join(list_[:-1])} and {list_[-1]}"


def ranged(r, digits):
    """ (least .. most), if they differ."""
    number = g3 if digits == "3" else lambda v: f(v, digits)
    if r[1] is None or not r[1] < r[2]:
        return []
    return [" (", number(r[1]), " .. ", number(r[2]), ")"]


class Choice:
    """Cells that differ in their way of agreeing only."""

    def __init__(self, study, cells, where):
        self.study, self.where = study, where
        self.cells = cells
        for self.measure in "seconds_to_target", "tokens_per_s":
            self.rank()
            if len(self.ranked) > 1 and (study.one_task() or not self.timed):
                break

    def rank(self):
        self.ranked = [c for c in self.cells
                       if self.study.median(c, self.measure) is not None]
        sign = 1 if self.timed else -1
        self.ranked.sort(key=lambda c: sign * self.range(c)[0])
        if self.ranked:
            self.tied = self.level(self.ranked[0], self.ranked)
            self.rest = [c for c in self.ranked if c not in self.tied]

    def level(self, one, cells, measure=None):
        """Those whose ranges overlap that of one."""
        of = {c: self.study.range(c, measure or self.measure) for c in (one, *cells)}
        return [c for c in cells if max(of[c][1], of[one][1]) <= min(of[c][2], of[one][2])]

    @property
    def timed(self):
        return self.measure == "seconds_to_target"

    def range(self, cell):
        return self.study.range(cell, self.measure)

    def name(self, cell):
        text, way = short(self.study, cell, self.cells), cell.first.json["backend"]
        ways = {c.first.json["backend"] for c in self.cells}
        told = re.search(rf"(^|\W){way}(\W|$)", text)
        return text if len(ways) == 1 or told else f"{text} [{way}]"

    def names(self, cells):
        return names(map(self.name, cells))

    def with_(self):
        return f"With {names(self.where)}, " if self.where else ""

    def value(self, cell):
        if self.timed:
            return [g3(self.range(cell)[0]), *ranged(self.range(cell), "3"), " s"]
        return [f(self.range(cell)[0], 0), *ranged(self.range(cell), 0),
                " tokens/s"]

    def beside(self, cell):
        base = self.study.baseline(cell)
        if base is None or base is cell:
            return []
        r = self.study.ratio(cell, base, self.measure)
        if r[0] is None:
            return []
        return [", ", f(r[0], 2), *ranged(r, 2), " times the time of "
                if self.timed else " times the rate of ",
                self.name(base) if base in self.cells else short(self.study, base)]

    def place(self, cells, cell, one, many):
        said = [f"{self.names(cells)} {one if len(cells) == 1 else many}"]
        if len(cells) > 1:
            said += [", too close to tell apart: their ranges overlap. "
                     + self.name(cell)]
        return said + [": ", *self.value(cell), *self.beside(cell)]

    def first(self):
        best = self.ranked[0]
        loss = f"loss {self.study.target or 0:.2f} first"
        said = [self.with_(), *(
            self.place(self.tied, best, f"reaches {loss}", f"reach {loss}") if self.timed
            else self.place(self.tied, best, "is fastest", "are fastest"))]
        after = self.rest[0] if self.rest else None
        base = self.study.baseline(best)
        if after and (after is not base or not self.beside(best)):
            level = self.level(after, self.rest)
            ratio = self.range(after)[0] / self.range(best)[0]
            times = [f(ratio if self.timed else 1 / ratio, 2), " times",
                     " as long" if self.timed else " slower"]
            if len(level) > 1:
                said += [f"; the next are {self.names(level)}, too close to tell apart; "
                         f"{self.name(after)} {'takes' if self.timed else 'is'} ", *times]
            else:
                said += [f"; the next is {self.name(after)}, "
                         + "which takes " * self.timed, *times]
        return said + ["."]

    def last(self):
        if not self.rest:
            return []
        last = self.rest[-1]
        words = ("takes longest", "take longest") if self.timed else \
            ("is slowest", "are slowest")
        said = self.place(self.level(last, self.ranked), last, *words)
        return said + self.why(last) + ["."]

    def why(self, cell):
        median = self.study.median
        best = self.ranked[0]
        tokens = self.study.ratio(cell, best, "tokens_to_target")[0]
        rate = self.study.ratio(cell, best, "tokens_per_s")[0]
        if tokens and tokens > 1.05 and tokens > 1 / rate:
            return [": it needs ", f(tokens, 2), " times the tokens of " + self.name(best)]
        step = median(cell, "step_s")
        law = median(cell, "law_exchange_s")
        def held_up(one):
            found = {words: median(one, f"{kind}_s_per_step") for kind, words in (
                ("exposed", "its link is busy for "), ("wait", "it waits for others for "),
                ("bubble", "it waits for other stages for "),
                ("join", "it waits for the sums of its slices for "))}
            return {words: v for words, v in found.items() if v is not None}
        held = held_up(cell)
        if not held:
            return []
        computes, idle = step - sum(held.values()), sum(held.values())
        first_idle = sum(held_up(best).values())
        first_computes = median(best, "step_s") - first_idle
        if computes > first_computes and computes - first_computes > idle - first_idle:
            return [": it computes for ", *ms(computes), " of each step's ", *ms(step),
                    f", {self.name(best)} for ", *ms(first_computes)]
        if idle < first_idle:
            return []
        (words, longest), *others = sorted(held.items(), key=lambda h: h[1], reverse=True)
        said = [": " + words, *ms(longest), " of each step's ", *ms(step),
                " without computing"]
        for words, v in others:
            said += [", and " + words, *ms(v)] if v > .1 * step else []
        if law is not None:
            said += ["; the law predicts an exchange of ", *ms(law)]
        return said

    def extremes(self, name, scale, decimals, unit, close):
        cells = [c for c in self.cells if self.study.median(c, name) is not None]
        if not cells:
            return []
        low, high = (pick(cells, key=lambda c: self.study.median(c, name))
                     for pick in (min, max))
        a, b = (self.study.median(c, name) for c in (low, high))
        first, second = (f(v * scale, decimals) for v in (a, b))
        if b - a <= close:
            return [first, unit + " in all cells"]
        at_low, at_high = (self.level(c, cells, name) for c in (low, high))
        if high in at_low:
            return ["from ", first, unit + " to ", second,
                    unit + ", too close to tell apart: ranges overlap"]
        return ["from ", first, f"{unit} ({self.names(at_low)}) to ", second,
                f"{unit} ({self.names(at_high)})"]

    def price(self):
        memory = self.extremes("peak_memory_bytes", 1 / MIB, 0, " MiB", MIB / 2)
        val = self.extremes("best_val_loss_nats", 1, 3, "", .0005)
        said = ["The peak memory of a worker is ", *memory] if memory else []
        if val:
            said += ["; the" if said else "The", " best validation loss is ", *val]
        return said + ["."] if said else []

    def later(self):
        """Cells that did not run in turns with those before them."""
        groups = []
        for cell in sorted(self.cells, key=lambda c: min(begins(c))):
            if groups and not self.follows(groups[-1], min(begins(cell))):
                groups[-1].append(cell)
            else:
                groups.append([cell])
        for i, group in enumerate(groups[1:], 1):
            before = [c for g in groups[:i] for c in g]
            gap = min(map(min, map(begins, group))) - max(map(max, map(begins, before)))
            where = f" with {names(self.where)}" if self.where else ""
            yield [f"Warning: {self.names(group)} ran {span(gap)} after "
                   f"{self.names(before)}{where} and not in turns, so what changed on the "
                   "machine meanwhile is a part of the difference."]

    def follows(self, group, begin):
        """Whether all that a group did, in several rounds or long ago, was before."""
        end = max(map(max, map(begins, group)))
        rounds = max(len({r.round for r in c.runs.values()}) for c in group)
        return begin > end and (rounds > 1 or self.pause(end, begin))

    def pause(self, since, until):
        """Whether the machine had nothing to do for ten minutes."""
        runs = sorted(((r.began, r.began + r.value["seconds"]) for r in self.study.runs
                       if since <= r.began <= until))
        return any(begin - max(end for _, end in runs[:i]) > 600
                   for i, (begin, _) in enumerate(runs) if i and begin > since)


def begins(cell):
    return [r.began for r in cell.runs.values()]


def span(seconds):
    for unit, name in (86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"):
        if seconds >= unit:
            n = int(seconds / unit)
            return f"{n} {name}" + "s" * (n > 1)
    return "0 seconds"


def short(study, cell, cells=None):
    """A cell's name without the words that all of `cells` have."""
    words = [c.name.split() for c in cells or study.cells]
    shared = set(words[0]).intersection(*words) if len(words) > 1 else ()
    return " ".join(w for w in cell.name.split() if w not in shared) or cell.name


def choices(study):
    """The cells by links, workers, batch and model. One worker is in all choices of its
    batch and model."""
    groups = grouped(study)
    found = []
    for key, cells in groups:
        where = []
        for k, word in enumerate(("net", "workers", "global_batch")):
            if len({other[k] for other, _ in groups}) > 1 or \
                    (word == "net" and groups[0][0][0]):
                where.append(f"{word}={key[k] or 'none'}")
        tasks = [task(cells_[0].first) for _, cells_ in groups]
        where += [f"{k}={v}" for k, v in task(cells[0].first).items()
                  if any(t[k] != v for t in tasks)]
        found.append(Choice(study, cells, where))
    return found


def task(run):
    return run.json["task"] | {"data": run.json["data"]["hash_xxh3"]}


def grouped(study):
    groups = {}
    for c in study.filled:
        groups.setdefault((c.first.net, c.first.world, c.first.batch,
                           str(task(c.first))), []).append(c)
    alone = {k: list(cells) for k, cells in groups.items() if k[1] == 1}
    joined = set()
    for k, cells in groups.items():
        for one, more in alone.items():
            if k[1] > 1 and one[2:] == k[2:] and one[0] in ("", k[0]):
                cells += more
                joined.add(one)
    return [(k, sorted(cells, key=study.cells.index))
            for k, cells in groups.items() if k not in joined]


def over_all(found):
    if len(found) < 2:
        return []
    always = set.intersection(*({c.name(x) for x in c.tied} for c in found))
    if always:
        return [f"Over all {len(found)} choices {names(sorted(always))} "
                f"{'is' if len(always) == 1 else 'are'} first, or too close to "
                "the first to tell apart."]
    places = {}
    for c in found:
        places.setdefault(names(c.name(x) for x in c.tied), []).append(
            names(c.where))
    return ["Over all choices no way is always first: " + "; ".join(
        f"{who} with {', '.join(where)}" for who, where in places.items()) + "."]


# ---- what else must be said

def all_or(study, cells):
    return "all cells" if len(cells) == len(study.filled) else names(cells)


def not_given(study):
    for asked in dict.fromkeys(t.asked_net for c in study.filled if c.lacks
                               for t in (c, *c.twins) if t.asked_net):
        cells = [short(study, c) for c in study.filled if c.lacks and asked in (
            t.asked_net for t in (c, *c.twins))]
        cells = all_or(study, cells)
        yield [f"Warning: net={asked} was asked for and could not be had: "
               f"{cells} ran on unshaped links."]


def unfinished(study):
    for c in study.cells:
        for k, run in sorted(c.all.items()):
            if not run.finished:
                yield [f"Warning: {short(study, c)}, repeat {k} was "
                       f"stopped at step {run.last_step()} of {run.set['steps']}, "
                       "so it is left out."]
    lost = [short(study, c) for c in study.cells if not c.all]
    if lost:
        yield [f"Not run: {names(lost)}."]


def unreached(study):
    lost = [short(study, c) for c in study.filled
            if not c.first.pace and
            study.median(c, "seconds_to_target") is None]
    if study.target is not None and study.one_task() and lost:
        yield [f"Loss {study.target:.2f} was not reached by {names(lost)}."]


def expected(run):
    """The share of a worker's computing time in which it cannot have a core."""
    need = run.world * run.json["threads"]
    if run.way["servers"]:
        need += run.way["servers"] * run.set["server_threads"]
    return max(0, 1 - run.hosts * run.json["machine"]["cores"] / need)


def busy(study):
    judged = [r for r in study.runs
              if r.value["processor_taken_share"] is not None]
    def surplus(r):
        return r.value["processor_taken_share"] - expected(r)
    disturbed = [r for r in judged if surplus(r) > .1
                 and (r.value["involuntary_switches_per_s"] or 0) > 20]
    if disturbed:
        worst = max(disturbed, key=surplus)
        yield [f"Warning: the machine was busy. In {len(disturbed)} of "
               f"{len(judged)} runs other programs took the processors for more "
               "than 10% of the computing time. The worst is "
               f"{short(study, worst.cell)}, repeat {worst.repeat}, "
               "with ", f(100 * surplus(worst), 0),
               "%. The times of such runs are too long."]


def crowded(study):
    cells = [short(study, c) for c in study.filled
             if c.first.crowded]
    if cells:
        yield ["Warning: more threads than cores, so workers share cores and all "
               "times are longer than on cores of their own: "
               f"{all_or(study, cells)}."]


def few(study):
    cells = [c for c in study.filled
             if min(r.value["timed_steps"] for r in c.runs.values()) < 10]
    if cells:
        yield ["Warning: few steps. The times of "
               f"{all_or(study, [short(study, c) for c in cells])} stand on "
               f"{steps_of(cells)} steps, of which the first is often the slowest; try: "
               "steps=20."]


def merged(study):
    found = []
    for c in study.filled:
        others = [t.name for t in c.twins if t.name != c.name]
        if c.twins:
            found.append(f"{short(study, c)} ({1 + len(c.twins)} cells" + (
                f", also {names(others)})" if others else ")"))
    if found:
        yield ["Cells that had the same settings are one here, and their runs are its "
               f"repeats: {names(found)}."]


def alone(study, found):
    """No sentence ranks what has nothing like it."""
    cells = [short(study, c.cells[0]) for c in found if len(c.cells) == 1]
    if cells and len(study.filled) > 1:
        yield ["Not ranked, since no other cell has the same links, workers, global batch "
               f"and model: {all_or(study, cells)}."]


def remarks(study):
    for c in study.filled:
        if c.first.mistakes:
            yield [f"Warning: {short(study, c)} is wrong on purpose: "
                   f"{' '.join(c.first.mistakes)}."]
    for pace in dict.fromkeys(c.first.pace for c in study.filled if c.first.pace):
        asleep = [short(study, c) for c in study.filled if c.first.pace == pace]
        yield [f"Slept instead of computing (pace={pace} ms), so that bytes and waits are "
               f"real, but nothing was learned: {all_or(study, asleep)}."]
    for word, of in (("builds", lambda r: r.json["revision"]),
                     ("processors", lambda r: r.json["machine"]["processor"])):
        kinds = sorted({of(r) for r in study.runs})
        if len(kinds) > 1:
            yield [f"Warning: the cells ran with {len(kinds)} different {word}: "
                   f"{names(kinds)}."]


def outliers(study):
    for c in study.filled:
        middle = study.median(c, "tokens_per_s")
        off = {k: abs(r.value["tokens_per_s"] - middle)
               for k, r in c.runs.items()}
        usual = bounds(off.values())[0]
        for k, run in sorted(c.runs.items()):
            if len(off) > 2 and off[k] > .1 * middle and off[k] > 3 * usual:
                yield ["Outlier (kept in all ranges): "
                       f"{short(study, c)}, repeat {k}, has ",
                       f(run.value["tokens_per_s"], 0),
                       " tokens/s; the cell's median is ", f(middle, 0), "."]


def once(study):
    if any(len(c.ranked) > 1 for c in choices(study)) and not study.repeats:
        yield ["Each cell ran once, so the variation of its times is unknown; "
               "try: repeat=3."]


def answer(study):
    """All sentences, each as texts and Numbers."""
    every = choices(study)
    found = [c for c in every if len(c.ranked) > 1]
    said = [*not_given(study), *merged(study), *unfinished(study)]
    for c in found:
        said += [*c.later(), c.first(), c.last(), c.price()]
    said += [over_all(found), *alone(study, every), *unreached(study), *busy(study),
             *crowded(study), *few(study), *remarks(study), *outliers(study),
             *once(study)]
    return [s for s in said if s]


def answer_is(study, text):
    want, have = answer(study), text.splitlines()
    for h, w in zip(have, want):
        sentence_is(h, w)
    assert len(have) == len(want), ("said", have, "must say",
                                    ["".join(str(getattr(p, "value", p))
                                             for p in w) for w in want])
