#!/usr/bin/env python3
"""What settings promise: which results are equal, and how closely.

    promise.py           prints docs/promises.md
    promise.py --check   fails if docs/promises.md is another text

The random jobs (main.py) hold every job that they draw to these tables.
"""

import collections
import math
import pathlib
import sys

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "promises.md"
STEPS = 10  # whose losses are compared with one worker's: rounding grows with time
LEAST = .01  # share of the largest gradients that is no rounding


def value_of(text):
    """A setting as a number, if it is one."""
    for kind in int, float:
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def sizes(job):
    """{"dp": .., "pp": .., "tp": .., "cp": .., "up": ..} of a job."""
    found = {"dp": int(job.get("workers") or 1), "pp": 1, "tp": 1, "cp": 1, "up": 1}
    if job.get("mesh"):
        found["dp"] = 1
        for word in job["mesh"].split(","):
            found[word[:2]] = int(word[2:])
    return found


def world(job):
    """The number of workers."""
    return math.prod(sizes(job).values())


def is_loose(job):
    """Whether its workers need not be at the same step."""
    return job.get("consistency", "bsp") != "bsp" or bool(job.get("backup"))


def is_apart(job):
    """Whether its workers have parameters of their own, so that one worker would train
    another model."""
    mean = {"outer_lr": 1, "outer_momentum": 0, "wire": "fp32"}
    plain = {"every": 1, "optimizer": "sgd", "clip": 0, "dropout": 0, "precision": "fp32",
             **mean}
    usual = {"every": 10, **mean}
    return job["sync"] == "outer" and \
        any(job.get(k, usual.get(k)) != v for k, v in plain.items())


def is_lossy(job):
    """Whether its workers do not send all of their gradients in each step."""
    return job.get("squeeze", "none") != "none" and not (
        job["squeeze"] == "topk" and job.get("density", .01) == 1
        and not job.get("momentum_correction"))


def is_whole(job):
    """Whether its gradients travel as they are."""
    return job.get("squeeze", "none") == "none"


def is_of(*names):
    """A condition: the job's sync= is one of these."""
    return lambda job: job["sync"] in names


def has_stages(job):
    return sizes(job)["pp"] > 1


# What a job promises of one worker with the same global batch. The first row that holds
# counts. Largest relative differences: of the mean loss of a step, of the gradient's
# norm, of a tensor of the optimiser's state, and of a tensor of parameters that AdamW
# moves, as a share of lr= times the steps (root mean squares). None: nothing is promised.
One = collections.namedtuple("One", "when holds loss norm state moves",
                             defaults=(None, None, None))
ONE_WORKER = (
    One("`consistency=ssp:K`, `asp`, `backup=N`: workers are at different steps",
        is_loose, None),
    One("`sync=outer`, but for the next line: workers have parameters of their own",
        is_apart, None),
    One("`sync=outer` in fp32 with `every=1`, `outer_lr=1`, `outer_momentum=0`, "
        "`optimizer=sgd`, `clip=0`, `dropout=0`: the mean of the steps is the step of the mean",
        is_of("outer"), 1e-4),
    One("`squeeze=`, but for `topk` with `density=1`: parts of gradients are sent later, "
        "or lost; `momentum_correction=1`: what is sent has no momentum left", is_lossy, None),
    One("`dropout` with several replicas: each draws for itself",
        lambda j: j["dropout"] and sizes(j)["dp"] > 1, None),
    One("`precision=fp16` or `bf16`: the model's numbers are rounded to 16 bits",
        lambda j: j["precision"] != "fp32", 2e-2, 2e-1),
    One("`tp_wire=fp16` or `bf16`: sums between slices are rounded to 16 bits",
        lambda j: sizes(j)["tp"] > 1 and j.get("tp_wire", "fp32") != "fp32", 2e-2, 2e-1),
    One("`wire=bf16`: gradients are rounded to 8 significant bits, so AdamW's first steps "
        "may move an element the other way",
        lambda j: j.get("wire") == "bf16", 5e-3, 2e-1, 1e-1, 1e-1),
    One("`wire=fp16`: gradients are rounded to 11 significant bits",
        lambda j: j.get("wire") == "fp16", 5e-3, 2e-2, 1e-1, 1e-1),
    One("all other jobs: the sums are the same, in another order",
        lambda j: True, 1e-4, 1e-3, 1e-2, 1e-3),
)

# What sync=outer promises of one worker with the batches of each, if those of all
# workers are equal: the largest relative difference of the mean loss of a step, and of
# the change of the parameters until the first exchange; and the smallest number that the
# wire tells from its neighbours.
Equal = collections.namedtuple("Equal", "when holds loss change")
EQUAL_BATCHES = (
    Equal("`precision=bf16`", lambda j: j["precision"] == "bf16", 2e-2, 1e-2),
    Equal("`wire=bf16`", lambda j: j.get("wire") == "bf16", 5e-3, 1e-2),
    Equal("`wire=fp16`, which has steps of 6e-8", lambda j: j.get("wire") == "fp16",
          5e-3, 2e-3),
    Equal("all other jobs", lambda j: True, 1e-4, 1e-4),
)

# When a job that is disturbed has the bits of one that is not: all numbers of
# steps.csv, and the files of the last checkpoint.
Again = collections.namedtuple("Again", "when holds promise")
BETWEEN = "the same bits if the worker was lost between two steps, but for rows not yet written"
AGAIN = (
    Again("`elastic=1` with one worker, not in fp16: the servers have all that it needs",
          lambda j: j.get("elastic") and world(j) == 1 and j["precision"] != "fp16",
          BETWEEN),
    Again("`consistency=ssp:K`, `asp`, `backup=N`: the order of arrival counts",
          is_loose, "nothing; `lockstep verify` finds nothing wrong"),
    Again("`elastic=1`, and a worker was lost: the others went on without it",
          lambda j: j.get("elastic"), "the bits if no worker was lost; else "
          "`lockstep verify` finds nothing wrong"),
    Again("all other jobs", lambda j: True, "the same bits"),
)

# Settings that change no bit of a result, whatever the other settings are.
Same = collections.namedtuple("Same", "key values when holds")
SAME_BITS = (
    Same("recompute", (0, 1), "", lambda j: True),
    Same("trace", ("on", "off"), "", lambda j: True),
    Same("samples", (0, 10), "", lambda j: True),
    Same("eval", (0, 2, 3), "", lambda j: True),
    Same("save_async", (0, 1), "", lambda j: j.get("save")),
    Same("keep", (0, 1, 2), "", lambda j: j.get("save")),
    Same("verify", (0, 1, 2), "", lambda j: not j.get("elastic")),
    Same("staging", ("auto", "always"), "", lambda j: True),
    Same("overlap", (0, 1), "all but `sync=outer`",
         lambda j: j["sync"] not in ("outer", "local")),
    Same("transport", ("tcp", "shm"), "`ring`, `zero`, `outer`, `dataparallel`",
         lambda j: j["sync"] in ("ring", "zero", "outer", "dataparallel")
         and j.get("transport") != "library"),
    Same("slice_kb", (1, 4, 256), "`sps`, `dps` without `squeeze`",
         lambda j: j["sync"] in ("sps", "dps") and is_whole(j)),
    Same("priority", (0, 1), "`sps`, `dps`", is_of("sps", "dps")),
    Same("server_threads", (1, 3), "`sps`, `dps`", is_of("sps", "dps")),
    Same("servers", (1, 2, 3), "`dps` without `squeeze`",
         lambda j: j["sync"] == "dps" and is_whole(j)),
    Same("pipeline", ("naive", "gpipe", "1f1b"), "stages", has_stages),
    Same("ahead", (0, 1), "stages, `pipeline=1f1b`",
         lambda j: has_stages(j) and j.get("pipeline", "1f1b") == "1f1b"
         and j.get("chunks", 1) == 1),
    Same("tp_sequence", (1, 2), "slices (tp) of divided rows",
         lambda j: sizes(j)["tp"] > 1 and j.get("tp_sequence")),
    Same("attention_over", ("gather", "ring"), "sequences in pieces (cp)",
         lambda j: sizes(j)["cp"] > 1 and j.get("attention_over") != "heads"),
    Same("offload", ("none", "disk"),
         "`local`, `ring`, `allreduce`, `outer`, `zero`, without `freeze`",
         lambda j: j["sync"] not in ("sps", "dps", "dataparallel") and not j.get("freeze")),
    Same("shard", (2, 3), "`zero`",
         lambda j: j["sync"] == "zero" and j.get("shard") in (2, 3)),
)


def first(table, job):
    """The first row that holds for a job."""
    return next(row for row in table if row.holds(job))


def bits_after_loss(job, between=False):
    """Whether a job has the bits of an undisturbed one even if it lost processes.
    `between`: between two steps."""
    return first(AGAIN, job).promise in ("the same bits", between and BETWEEN)


def _bound(number):
    return "no promise" if number is None else f"{number:g}"


def page():
    """The text of docs/promises.md."""
    lines = [
        "# Which results are equal", "",
        "Most settings change when and where something is computed, not what. This page",
        "says which results are equal, and how closely. `ctest -R random_jobs` draws jobs",
        "and what happens to them at random, and holds them to these tables. The tables",
        "are those of [tests/random_jobs/promise.py]"
        "(../tests/random_jobs/promise.py), which", "prints this page.", "",
        "## Of one worker with the same global batch", "",
        "`sync=local` with `accum=` times the number of replicas trains on the same",
        f"batches. For the first {STEPS} steps the numbers of a job differ from its numbers",
        "by at most these shares. The first line that holds counts. Where it says `no",
        "promise`, the numbers may differ by any amount.", "",
        "| settings | loss | gradient's norm | optimiser's state | AdamW's parameters |",
        "|---|---|---|---|---|"]
    lines += [f"| {r.when} | {_bound(r.loss)} | {_bound(r.norm)} | {_bound(r.state)} | "
              f"{_bound(r.moves)} |" for r in ONE_WORKER]
    lines += [
        "", "Tensors are compared by their root mean squares. Those of AdamW's parameters are",
        "shares of `lr=` times the number of steps, the most by which AdamW moves a parameter.",
        f"Parameters count whose gradients are at least {LEAST:g} of those of the largest tensor",
        "of their kind: AdamW divides the others by what may be rounding. Steps that were",
        "skipped because fp16 overflowed end the comparison.", "",
        "With `sync=outer` workers have equal batches only if the text is of one symbol.",
        "Then, without `dropout`, they compute what one worker computes with the same",
        "`accum=`: in all steps if the outer step is the mean, else until the first",
        "exchange. Each exchange then changes the parameters by a",
        "[formula](outer.md#the-outer-step). Largest shares:", "",
        "| settings | loss | change until the first exchange |", "|---|---|---|"]
    lines += [f"| {r.when} | {r.loss:g} | {r.change:g} |" for r in EQUAL_BATCHES]
    lines += [
        "",
        "## Of a job that nobody disturbed", "",
        "A job may be killed and started again by `restarts=N`, stopped by a signal and",
        "continued by `resume=auto`, frozen for a while, or resumed from an older",
        "checkpoint; its disk may be slow, or full for a while. Then all its numbers in",
        "steps.csv, but times, and the files of its last checkpoint are compared with",
        "those of a job with the same settings that nobody disturbed.", "",
        "| settings | promised |", "|---|---|"]
    lines += [f"| {r.when} | {r.promise} |" for r in AGAIN]
    lines += [
        "", "## Of a job with other settings", "",
        "These settings change no bit of a result of a job of which the bits are promised",
        "above, whatever its other settings are:", "",
        "| setting | values | where |", "|---|---|---|"]
    lines += [f"| `{r.key}` | {', '.join(map(str, r.values))} | {r.when or 'everywhere'} |"
              for r in SAME_BITS]
    lines += ["", "Another number of `threads` changes the last bits, because the model adds",
              "in another order."]
    return "\n".join(lines) + "\n"


def main():
    """Prints the page, or checks it."""
    if "--check" not in sys.argv:
        print(page(), end="")
        return 0
    if PAGE.read_text() != page():
        print(f"{PAGE.name} is not what the tables say; try: "
              "tests/random_jobs/promise.py >docs/promises.md")
        return 1
    print("ok: docs/promises.md is what the tables say")
    return 0


if __name__ == "__main__":
    sys.exit(main())
