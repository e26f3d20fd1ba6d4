"""Checks the verdict of lockstep compare."""

import re

from study_oracle_say import names, short


def differ(a, b):
    """What makes two runs different trainings."""
    def same(x, y):
        try:
            return float(x) == float(y)
        except ValueError:
            return x == y
    mine, its = a.json["training"], b.json["training"]
    hashes = [r.json["data"]["hash_xxh3"] for r in (a, b)]
    found = [f"the data (hash {hashes[0]}, {hashes[1]})"] \
        if hashes[0] != hashes[1] else []
    for key in dict.fromkeys([*mine, *its]):
        x, y = mine.get(key, "none"), its.get(key, "none")
        one = ("squeeze" in mine) != ("squeeze" in its)
        if one and key != "squeeze" and not (key in mine and key in its):
            continue
        if not same(x, y):
            found.append(f"{'the ' * (key == 'global batch')}{key} ({x}, {y})")
    return found


def distance(a, b):
    """(the relative difference of the losses, which losses)."""
    if a.way["apart"]:
        last = a.curve[-1]["step"]
        for x, y in zip(a.curve, b.curve):
            if x["step"] % a.way["every"] == 0 or x["step"] == last:
                if None not in (x["val_loss"], y["val_loss"]):
                    return abs(x["val_loss"] - y["val_loss"]) \
                        / abs(x["val_loss"]), \
                        f"the validation losses at step {x['step']}"
        return None, ""
    n, note = min(20, len(a.curve), len(b.curve)), ""
    odd = min(a.skipped ^ b.skipped | {n + 1})
    if odd <= n:
        n, note = odd, f" (only one run skipped step {odd}, for an overflow)"
    return max(abs(a.curve[i]["loss"] - b.curve[i]["loss"])
               / abs(a.curve[i]["loss"]) for i in range(n)), \
        f"the losses of the first {n} steps{note}"


def allowed(run):
    """How far rounding may bring two losses apart."""
    return 3e-2 if "16" in run.set["precision"] + run.set.get("wire", "") else 2e-3


def lines(study):
    """[(text before a number, the number or None, text after it)], and whether
    some runs differ."""
    firsts = [c.first for c in study.filled]
    hashes = [r.json["data"]["hash_xxh3"] for r in study.runs]
    one = len(set(hashes)) == 1
    yield f"data: {'the same for all runs' if one else 'DIFFERS between runs'} " \
        f"(hash {hashes[0]})", None, ""
    batches = {r.batch for r in study.runs}
    yield "global batch: " + ("the same for all runs" if len(batches) == 1
                              else "differs by cell"), None, ""
    yield "runs are compared if they differ only in the way their workers exchange", \
        None, ""
    yield "gradients or parameters, and in nothing else that a loss depends on:", \
        None, ""
    compared, different = 0, not one
    for i, run in enumerate(firsts[1:], 1):
        name = "  " + short(study, run.cell)
        awake = [r for r in firsts[:i] if not r.pace]
        if run.pace:
            yield f"{name}: slept (pace={run.pace}), so it has no loss", None, ""
            continue
        if not awake:
            yield f"{name}: all cells before it slept, so it has no other", None, ""
            continue
        other = next((r for r in awake if not differ(run, r)), None)
        if other is None:
            yield f"{name}: not comparable with {short(study, awake[0].cell)}, " \
                f"differs in {', '.join(differ(run, awake[0]))}", None, ""
            continue
        far, what = distance(run, other)
        beside = short(study, other.cell)
        promise = run.way["promise"] or other.way["promise"]
        if far is None:
            yield f"{name}: its workers' parameters differ between exchanges, and " \
                "no validation loss is just after an exchange; try: eval= a " \
                "multiple of every=", None, ""
        elif promise:
            yield f"{name}: {promise} does not promise the losses of {beside} " \
                "(they differ by at most ", far, " of their value)"
        else:
            compared += 1
            same = far <= allowed(run)
            different |= not same
            yield f"{name} {'=' if same else 'DIFFERS FROM'} {beside}: {what} ", \
                *((None, "are the same in every digit") if far == 0 else
                  (far, " of their value" + ", as 16 bits may" * (2e-3 < far and same)))
    for c in study.filled:
        runs = [c.runs[k] for k in sorted(c.runs)]
        for a, b in zip(runs, runs[1:]):
            far = None if b.pace else distance(b, a)[0]
            compared += far is not None
            if far:
                yield f"  {short(study, c)}: repeats {a.repeat} and {b.repeat} are ", \
                    far, " apart"
    for c in study.cells:
        for k, run in sorted(c.all.items()):
            if not run.finished:
                yield f"  {short(study, c)}, repeat {k} reached only step " \
                    f"{run.last_step()} of {run.set['steps']}, so it is left out", None, ""
    yield ("some runs did NOT train the same thing: see above" if different
           else "one run: there is nothing to compare" if len(study.runs) == 1
           else "all comparable runs trained the same thing" if compared
           else "no two cells are comparable: there is nothing to compare" +
           "; try: the same global_batch= for all" * (len(batches) > 1)), None, ""


def verdict_is(study, text, status):
    have, want = text.splitlines(), list(lines(study))
    for line, (before, value, after) in zip(have, want):
        found = re.fullmatch(
            re.escape(before) + (r"(?:differ by at most )?(\d\.\de[+-]\d\d)"
                                 if value is not None else "()")
            + re.escape(after), line)
        assert found, (line, before, value, after)
        assert value is None or abs(float(found[1]) - value) <= .05 * value, \
            (line, value)
    assert len(have) == len(want), (have, want)
    assert (status == 0) == ("NOT" not in have[-1]), (status, have[-1])
