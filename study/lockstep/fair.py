"""Which runs trained the same thing, and which numbers of which cells may be
compared.

Two runs trained the same thing if their data and the settings on which losses
depend are equal. The trainer lists these settings in run.json ("training"), since
it knows what each means. The way in which workers agree must not matter: compare()
tests that.
"""

import dataclasses
import math

from .files import number
from .measures import MEASURES
from .same import differences
from .study import stopped_where

WITHIN = 2e-3  # relative difference of two losses that count as the same
WITHIN_16 = 3e-2  # the same where something that both computed or sent has 16 bits
FIRST = 20  # steps that are compared: the effect of rounding grows with time


def names_of(names):
    """"a", "a and b" or "a, b and c"."""
    *head, last = names
    return f"{', '.join(head)} and {last}" if head else last


PAUSE = 600  # seconds; between runs of one command there are fewer


def eras(study, cells):
    """[(cells, first begin, last begin)]: groups of cells, of which each began after all
    runs of the one before it. The rounds of one command run in turns: they are one group.
    Cells that ran in one round only are in turns unless nothing ran for a while between
    them."""
    times = {c: sorted(r.started for r in study.of(c)) for c in cells
             if all(r.started is not None for r in study.of(c))}
    groups, last, once = [], None, True
    for cell in sorted(times, key=lambda c: times[c][0]):
        begin = times[cell][0]
        if last is None or begin > last and (
                not once or _paused(study, last, begin)):
            groups.append([])
            once = True
        groups[-1].append(cell)
        once &= len({r.round for r in study.of(cell)}) == 1
        last = max(last or begin, times[cell][-1])
    return [(group, times[group[0]][0], max(times[c][-1] for c in group))
            for group in groups]


def _paused(study, since, until):
    """Whether nothing ran for a while between two times at which runs began."""
    end = since
    for run in sorted((r for r in study.runs if r.started is not None),
                      key=lambda r: r.started):
        if since < run.started <= until and run.started > end + PAUSE:
            return True
        if since <= run.started:
            end = max(end, run.started + (run["seconds"] or 0))
    return False


def is_apart(run):
    """Whether its workers have different parameters between two exchanges."""
    return run.get("way.apart") is True


def _bounds(values):
    values = [v for v in values if v is not None]
    return (min(values), max(values)) if values else (None, None)


def _trainings(study):
    """Sentences about which cells trained the same thing."""
    groups = []  # lists of cells
    for cell in study.filled:
        for group in groups:
            if not differences(study.first(group[0]), study.first(cell)):
                group.append(cell)
                break
        else:
            groups.append([cell])
    for group in groups:
        run = study.first(group[0])
        if len(group) > 1:
            yield (f"Loss by step: {names_of([c.short for c in group])} trained the same "
                   f"thing (global batch {run.global_batch}).")
        elif group is not groups[0]:
            other = study.first(groups[0][0])
            yield (f"Loss by step: {group[0].short} trained something else; it differs "
                   f"from {groups[0][0].short} in {', '.join(differences(run, other))}.")


def evaluated(runs):
    """(the least, the most) sequences that one of the runs evaluates; 0: all."""
    return _bounds((number(r.setting("eval_batches")) or 0) *
                   (number(r.setting("batch")) or 0) * r.replicas for r in runs)


def fairness(study):
    """Sentences about which cells may be compared, and by which measures."""
    said = list(_trainings(study))
    runs = study.runs
    apart = [c.short for c in study.filled if is_apart(study.first(c))]
    if apart:
        said.append(f"Training loss: the workers of {names_of(apart)} have different "
                    "parameters between two exchanges, so each has training losses of "
                    "its own. Compare validation losses at multiples of every=.")
    said.append("Seconds to a loss: all cells; they have the same model and data."
                if study.one_task else "Seconds to a loss: not comparable; cells have "
                "different models or data.")
    least, largest = _bounds(MEASURES["tokens"].of(r) for r in runs)
    if largest is not None:
        said.append(f"Last loss: all cells; each trains on {largest:.0f} tokens."
                    if least == largest else f"Last loss: cells train on {least:.0f} to "
                    f"{largest:.0f} tokens, so compare it only between cells with the same "
                    "number.")
    batch = [number(r.setting("batch")) or 0 for r in runs]
    least, largest = evaluated(runs)
    if least < largest:
        said.append("Validation loss: " + (
            f"cells evaluate {least:.0f} to {largest:.0f} sequences" if least else
            "some cells evaluate all of the validation text, others at most "
            f"{largest:.0f} sequences of it") + ", so compare it only between cells that "
            "evaluate the same number (eval_batches= counts the batches of one worker).")
    least, largest = _bounds(batch)
    said.append(f"Tokens/s and memory: all cells; batch= is {largest:.0f} sequences."
                if least == largest else f"Tokens/s and memory: batch= is {least:.0f} to "
                f"{largest:.0f} sequences, and this alone changes both numbers.")
    return said


@dataclasses.dataclass
class Verdict:
    """Whether all runs trained the same thing, in words."""
    lines: list
    different: bool

    def __str__(self):
        return "\n".join(self.lines)

    def __bool__(self):
        return not self.different


def _within(run):
    """The relative difference that rounding may make. Two ways of adding up round
    otherwise, and what they round has the format of the model and of the wire."""
    formats = {run.setting(key) for key in ("precision", "wire", "tp_wire")}
    return WITHIN_16 if formats & {"fp16", "bf16"} else WITHIN


def _distance(a, b):
    """(the relative difference of two runs' losses, which losses). The difference is
    None if the workers' parameters differ and no validation loss is just after an
    exchange. Where rounding made an overflow, one run skips a step that the other makes:
    losses after it are not compared."""
    if is_apart(a):
        for x, y in zip(a.curve, b.curve):
            met = x.step % a.every == 0 or x.step == a.steps
            if x.val_loss and y.val_loss and met:
                return (abs(x.val_loss - y.val_loss) / abs(x.val_loss),
                        f"the validation losses at step {x.step}")
        return None, ""
    pairs = list(zip(a.curve[:FIRST], b.curve))
    if not pairs:
        return None, ""
    odd = next((i for i, (x, y) in enumerate(pairs, 1) if x.skipped != y.skipped), 0)
    what = f"the losses of the first {odd or len(pairs)} steps" + (
        f" (only one run skipped step {odd}, for an overflow)" if odd else "")
    # A loss is None if it is not a number.
    pairs = [(x.loss, y.loss) for x, y in pairs[:odd or FIRST]]
    return max(0 if x == y else math.inf if x is None or y is None else
               abs(x - y) / abs(x) if x else math.inf for x, y in pairs), what


def _compare_cell(run, others):
    """(a line about a cell's first run, whether it was compared, whether equal)."""
    name = run.cell.short
    if run.pace:
        return f"  {name}: slept (pace={run.pace}), so it has no loss", False, True
    others = [o for o in others if not o.pace]
    if not others:
        return f"  {name}: all cells before it slept, so it has no other", False, True
    other = next((o for o in others if not differences(run, o)), None)
    if not other:
        why = ", ".join(differences(run, others[0]))
        return (f"  {name}: not comparable with {others[0].cell.short}, differs in {why}",
                False, True)
    far, what = _distance(run, other)
    if far is None:
        return (f"  {name}: its workers' parameters differ between exchanges, and no "
                "validation loss is just after an exchange; try: eval= a multiple of "
                "every=", False, True)
    promise = run.text("way.promise") or other.text("way.promise")
    if promise:
        return (f"  {name}: {promise} does not promise the losses of {other.cell.short} "
                f"(they differ by at most {far:.1e} of their value)", False, True)
    same = far <= _within(run)
    return (f"  {name} {'=' if same else 'DIFFERS FROM'} {other.cell.short}: {what} "
            + (f"differ by at most {far:.1e} of their value" if far
               else "are the same in every digit")
            + ", as 16 bits may" * (same and far > WITHIN), True, same)


def compare(study):
    """Compares the first run of each cell with the earliest that had the same
    training to do, and the repeats of a cell with each other."""
    runs = study.runs
    if not runs:
        return Verdict([], False)
    data = len({r.text("data.hash_xxh3") for r in runs}) == 1
    batches = len({r.global_batch for r in runs}) == 1
    lines = [f"data: {'the same for all runs' if data else 'DIFFERS between runs'} (hash "
             f"{runs[0].text('data.hash_xxh3')})",
             f"global batch: {'the same for all runs' if batches else 'differs by cell'}",
             "runs are compared if they differ only in the way their workers exchange",
             "gradients or parameters, and in nothing else that a loss depends on:"]
    compared, different = 0, not data
    firsts = [study.first(c) for c in study.filled]
    for i, run in enumerate(firsts[1:], 1):
        line, counts, same = _compare_cell(run, firsts[:i])
        lines.append(line)
        compared += counts
        different |= not same
    for cell in study.filled:
        for a, b in zip(study.of(cell), study.of(cell)[1:]):
            far, _ = _distance(b, a) if not b.pace else (None, "")
            compared += far is not None
            if far:
                lines.append(f"  {cell.short}: repeats {a.repeat} and {b.repeat} are "
                             f"{far:.1e} apart")
    lines += [f"  {stopped_where(r)}, so it is left out" for r in study.unfinished]
    lines.append("some runs did NOT train the same thing: see above" if different
                 else "one run: there is nothing to compare" if len(runs) == 1
                 else "all comparable runs trained the same thing" if compared
                 else "no two cells are comparable: there is nothing to compare" +
                 "; try: the same global_batch= for all" * (not batches))
    return Verdict(lines, different)
