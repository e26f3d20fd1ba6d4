"""What a job of sync=outer computes if all its workers have equal batches.

A text of one symbol makes them equal. Until the first exchange each worker is `local`
with the same accum=, and if the outer step is the mean afterwards, too. Else each
exchange moves the parameters p and the velocity v by a formula (docs/outer.md), with
outer_lr= l, outer_momentum= m, and the mean change d of the workers:

    v' = m v + d        p' = p - l (d + m v')

Without a velocity the checkpoints do not have d, so nothing is compared after the first
exchange.
"""

from oracle import alone, compare_means, rms, rows_of, tensors
from promise import EQUAL_BATCHES, first, world
from run import Wrong

HALF_STEP = 2 ** -25  # fp16 rounds a tiny change by so much at most


def _marks(out):
    """The checkpoints of a run, in order."""
    return sorted(out.glob("checkpoint-*"), key=lambda p: int(p.name.partition("-")[2]))


def _velocity(mark):
    return {name.partition(".")[2]: numbers
            for name, numbers in tensors(mark / "optimizer.safetensors").items()
            if name.startswith("outer_velocity.")}


def _check_formula(job, out, one, share, least):
    """The parameters of all checkpoints: one after each exchange. What travelled was
    rounded by `share` of its size, and by `least`."""
    lr, momentum = job.get("outer_lr", 1), job.get("outer_momentum", 0)
    start = tensors(_marks(one)[0] / "model.safetensors")
    before = None
    for mark in _marks(out):
        model, velocity = tensors(mark / "model.safetensors"), _velocity(mark)
        for name, v in velocity.items():
            if not before:  # the first exchange: d is v, and p is what was left by d
                p, change = [a + b for a, b in zip(start[name], v)], v
            else:
                p = start[name]
                change = [b - momentum * a for a, b in zip(before[name], v)]
            want = [a - lr * (d + momentum * b) for a, d, b in zip(p, change, v)]
            far = rms([a - b for a, b in zip(model[name], want)])
            most = 1e-6 * rms(model[name]) + 1e-4 * rms(v)
            if not before:
                most += share * rms(v) + least
            if not far <= most:
                raise Wrong(f"{name} of {mark.name} is {far:.3g} from what the formula "
                            f"gives; the velocity is {rms(v):.3g}")
        start, before = model, velocity


def compare_outer(lockstep, job, out):
    """Trains on one symbol, with all workers and with one, and compares."""
    if job["dropout"]:
        return  # each worker draws for itself
    bound = first(EQUAL_BATCHES, job)
    every = job.get("every", 10)
    leg = min(every, job["steps"])
    same, one = out.parent / "equal", out.parent / "equal_one"
    more = {"data": lockstep.folder / "symbol.txt", "save": every, "keep": 0}
    lockstep.train({**job, **more}, same)
    lockstep.train({**alone(job), "accum": job["accum"],
                    "eval_batches": job["eval_batches"], **more}, one)
    rows, other = rows_of(same), rows_of(one)
    average = job.get("outer_lr", 1) == 1 and not job.get("outer_momentum")
    if not average:
        rows = {at: row for at, row in rows.items() if at[0] <= leg}
    columns = ("loss", "val_loss") if average else ("loss",)
    compare_means(rows, other, dict.fromkeys(columns, bound.loss),
                  "one worker with the same batches")
    if not average:
        # workers send their changes divided by a power of two that is not below their
        # number (group_scale()), and all round theirs to the same side
        divisor = 1 << (world(job) - 1).bit_length()
        least = divisor * HALF_STEP if job.get("wire") == "fp16" else 0
        _check_formula(job, same, one, bound.change, least)
