"""Checks the answer of a study: that each sentence that must be said is said, with
the right names and numbers, and nothing else.
"""

import re

import study_oracle_remarks as remarks
from study_oracle_say import MIB, Said, f, g3, hover, ms, names, ranged, sentence_is, short, \
    span


class Choice:
    """Cells that differ in their way of agreeing only."""

    def __init__(self, study, cells, where):
        self.study, self.where = study, where
        self.cells = cells
        for self.measure in "seconds_to_target", "tokens_per_s":
            self.rank()
            if len(self.ranked) > 1:
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
        if cell not in self.cells:
            return short(self.study, cell)
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
                self.name(base)]

    def place(self, cells, cell, one, many):
        said = [f"{self.names(cells)} {one if len(cells) == 1 else many}"]
        if len(cells) > 1:
            said += [f", {self.close(cell, cells)}: their ranges overlap. "
                     + self.name(cell)]
        return said + [": ", *self.value(cell), *self.beside(cell)]

    def close(self, one, cells):
        for a in cells:
            if len(self.level(a, cells)) < len(cells):
                return f"not to be told apart from {self.name(one)}"
        return "too close to tell apart"

    def hover(self, *measures):
        """What the pointer shows on a sentence of the choice."""
        return hover(self.study, self.cells, measures, self.name)

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
                said += [f"; the next are {self.names(level)}, {self.close(after, level)}; "
                         f"{self.name(after)} {'takes' if self.timed else 'is'} ", *times]
            else:
                said += [f"; the next is {self.name(after)}, "
                         + "which takes " * self.timed, *times]
        return Said(said + ["."], self.hover(self.measure))

    def last(self):
        if not self.rest:
            return []
        last = self.rest[-1]
        words = ("takes longest", "take longest") if self.timed else \
            ("is slowest", "are slowest")
        said = self.place(self.level(last, self.ranked), last, *words)
        times = "computing data other exposed wait bubble join".split()
        return Said(said + self.why(last) + ["."], self.hover(
            "step_s", *(f"{kind}_s_per_step" for kind in times), "law_exchange_s",
            "tokens_to_target", "trained_share"))

    def why(self, cell):
        median = self.study.median
        best = self.ranked[0]
        if remarks.disturbed_of([*cell.runs.values(), *best.runs.values()]):
            return [". Other programs took the processors, so the cause is not known"]
        tokens = self.study.ratio(cell, best, "tokens_to_target")[0]
        rate = self.study.ratio(cell, best, "tokens_per_s")[0]
        if tokens and tokens > 1.05 and tokens > 1 / rate:
            return [": it needs ", f(tokens, 2), " times the tokens of " + self.name(best)]
        step = median(cell, "step_s")
        law = median(cell, "law_exchange_s")
        share, first_share = (median(c, "trained_share") for c in (cell, best))
        if first_share > 1.05 * share and \
                first_share / share > step / median(best, "step_s"):
            return [": its gradients have ", f(100 * share, 0), "% of the tokens that it "
                    f"read, those of {self.name(best)} ", f(100 * first_share, 0), "%"]
        def held_up(one):
            found = {words: median(one, f"{kind}_s_per_step") for kind, words in (
                ("exposed", "its link is busy for "), ("wait", "it waits for others for "),
                ("bubble", "it waits for other stages for "),
                ("join", "it waits for other slices or pieces for "))}
            return {words: v for words, v in found.items() if v is not None}
        held = held_up(cell)
        if not held or step <= median(best, "step_s"):
            return []
        idle, first_idle = sum(held.values()), sum(held_up(best).values())
        more = {words: (median(cell, f"{kind}_s_per_step"), median(best, f"{kind}_s_per_step"))
                for kind, words in (
                    ("computing", "it computes for "), ("data", "it waits for data for "),
                    ("other", "it does what is not measured for "))}
        more = {words: (v, w or 0) for words, (v, w) in more.items() if v is not None}
        words = max(more, key=lambda w: more[w][0] - more[w][1])
        works, first_works = more[words]
        if works > first_works and works - first_works > idle - first_idle:
            return [": " + words, *ms(works), " of each step's ", *ms(step),
                    f", {self.name(best)} for ", *ms(first_works)]
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
        counts = sorted({r.set["eval_batches"] * r.set["batch"] * r.world / r.way["parts"]
                         for c in self.cells for r in c.runs.values()})
        if val and len(counts) > 1:
            few = f"cells evaluate {counts[0]:.0f} to" if counts[0] else \
                "some cells evaluate all of the text, others at most"
            said += ["; validation" if said else "Validation",
                     f" losses are not comparable: {few} {counts[-1]:.0f} sequences"]
        elif val:
            said += ["; the" if said else "The", " best validation loss is ", *val]
        return Said(said + ["."] if said else [],
                    self.hover("peak_memory_bytes", "best_val_loss_nats"))

    def later(self):
        """Cells and baselines that did not run in turns with those before them."""
        groups, bases = [], [self.study.baseline(c) for c in self.cells]
        for cell in sorted(self.cells + sorted(
                {b for b in bases if b and b.runs} - set(self.cells), key=bases.index),
                           key=lambda c: min(begins(c))):
            if groups and not self.follows(groups[-1], min(begins(cell))):
                groups[-1].append(cell)
            else:
                groups.append([cell])
        for i, group in enumerate(groups[1:], 1):
            before = [c for g in groups[:i] for c in g]
            gap = min(map(min, map(begins, group))) - max(map(max, map(begins, before)))
            where = f"with {names(self.where)}, " if self.where else ""
            yield Said([f"Warning: {where}{self.names(group)} ran {span(gap)} after "
                        f"{self.names(before)} and not in turns, so what changed on "
                        "the machine meanwhile is a part of the difference."], [
                [f"{self.name(c)}: " + ", ".join(sorted(
                    r.json["started"] for r in c.runs.values()))]
                for c in before + group])

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


def over_all(study, found):
    """Ways are the same in two choices if their names are, but for the words of keys of
    [matrix] that make the choices."""
    if len(found) < 2:
        return []
    kind = {c: (c.first.net, c.first.world, c.first.batch, str(task(c.first)))
            for c in study.filled}
    making = {k for a in study.filled for b in study.filled
              for k in range(1, len(a.parts)) if kind[a] != kind[b] and
              a.parts[k] != b.parts[k] and
              [p for i, p in enumerate(a.parts) if i != k] ==
              [p for i, p in enumerate(b.parts) if i != k]}
    words = {c: [w for w in c.name.split() if w not in " ".join(
        c.parts[k] for k in making).replace("=?", "=").split()] for c in study.filled}
    shared = set.intersection(*map(set, words.values()))
    ways = {c.first.json["backend"] for c in study.filled}

    def of(cell):
        name, way = " ".join(w for w in words[cell] if w not in shared) or \
            " ".join(words[cell]), cell.first.json["backend"]
        told = len(ways) == 1 or re.search(rf"(^|\W){way}(\W|$)", name)
        return name if name and told else f"{name} [{way}]" if name else way
    if not set.intersection(*({of(x) for x in c.ranked} for c in found)):
        return []
    lines = [[f"{names(c.where)}: {c.names(c.tied)}"] for c in found]
    always = set.intersection(*({of(x) for x in c.tied} for c in found))
    if always:
        return Said([f"Over all {len(found)} choices {names(sorted(always))} "
                     f"{'is' if len(always) == 1 else 'are'} first, or too close to "
                     "the first to tell apart."], lines)
    places = {}
    for c in found:
        places.setdefault(names(sorted({of(x) for x in c.tied})), []).append(
            names(c.where))
    return Said(["Over all choices no way is always first: " + "; ".join(
        f"{who} with {', '.join(where)}" for who, where in places.items()) + "."], lines)


def answer(study):
    """All sentences, each as texts and Numbers."""
    every = choices(study)
    found = [c for c in every if len(c.ranked) > 1]
    said = [*remarks.not_given(study), *remarks.merged(study), *remarks.unfinished(study),
            *remarks.failed(study), *remarks.busy(study)]
    for c in found:
        said += [*c.later(), c.first(), c.last(), c.price()]
    said += [over_all(study, found), *remarks.alone(study, every)]
    for of in remarks.ALL:
        said += of(study)
    if len(study.filled) > 1 and not study.repeats:
        said.append(["Each cell ran once, so the variation of its times is unknown; "
                     "try: repeat=3."])
    return [s for s in said if s]


def answer_is(study, text):
    want, have = answer(study), text.splitlines()
    for h, w in zip(have, want):
        sentence_is(h, w)
    assert len(have) == len(want), ("said", have, "must say",
                                    ["".join(str(getattr(p, "value", p))
                                             for p in w) for w in want])
