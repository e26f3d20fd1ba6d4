"""Tests what lockstep report says about a table of runs.

    answers.py LOCKSTEP

The test trains one short run. An experiment's folder gets copies of it with other
steps, so that the test knows every figure that the report must have.
"""

import csv
import json
import os
import pathlib
import re
import shutil
import tempfile

import answers_why
from fabricated import STEPS, answer, change, declare, lockstep, rewrite, study, table, taken


def sentences(single, folder):
    """The report says which cell is first and last, and by how much. If two cells
    swap their runs, their names are swapped."""
    out = study(single, folder / "plain", {
        "fast": (9000, 10000, 11000), "slow": (20000, 21000, 19000),
        "last": (40000, 41000, 39000)})
    said = answer(out)
    # the mean of the last ten losses 5 - k/10 is 5 - (k - 4.5)/10, which is 1.45
    # at step 40
    assert said.startswith(
        "fast reaches loss 1.45 first: 0.4 (0.36 .. 0.44) s, 0.50 (0.45 .. "
        "0.58) times the time of slow.\nlast takes longest: 1.6 (1.56 .. 1.64) "
        "s, 2.00 (1.95 .. 2.05) times the time of slow"), said
    page = (out / "report.html").read_text()
    assert page.index("fast reaches loss") < page.index("<table") < \
        page.index("What may be compared")
    row = table(out / "table.csv")["fast"]
    assert abs(float(row["speedup"]) - 2) < 1e-6
    assert abs(float(row["speedup_least"]) - 19 / 11) < 1e-6
    assert abs(float(row["speedup_most"]) - 20 / 9) < 1e-6
    (out / "cells" / "fast").rename(out / "cells" / "other")
    (out / "cells" / "last").rename(out / "cells" / "fast")
    (out / "cells" / "other").rename(out / "cells" / "last")
    swapped = [line.replace("last takes", "fast takes").replace(
        "fast reaches", "last reaches").replace(", fast for", ", last for")
               for line in said.splitlines()[:2]]
    assert answer(out).splitlines()[:2] == swapped, answer(out)


def doubts(single, folder):
    """The report warns of ranges that overlap, a busy machine, an outlier, and of
    cells that ran once."""
    out = study(single, folder / "doubt", {
        "a": (9000, 10000, 12000), "b": (11000, 10500, 11000),
        "slow": (20000, 20000, 40000)})
    said = answer(out)
    assert "a and b reach loss 1.45 first, too close to tell apart: their " \
        "ranges overlap" in said, said
    assert "Outlier (kept in all ranges): slow, repeat 3, has 800 tokens/s; " \
        "the cell's median is 1600" in said, said
    assert "Warning" not in said, said
    taken(out / "cells" / "b" / "r2", .4)  # few switches: threads wait for each other
    assert "Warning" not in answer(out)
    taken(out / "cells" / "b" / "r2", .4, 150)
    said = answer(out)
    assert "Warning: the machine was busy. In 1 of 9 runs" in said, said
    assert "b, repeat 2, with 40%" in said, said
    assert re.search(r'<p class="warn" title="b, repeat 2: 40% taken[^>]*>Warning',
                     (out / "report.html").read_text())
    for path in out.glob("cells/*/r[23]"):
        shutil.rmtree(path)
    assert "Each cell ran once" in answer(out)
    for name in "table.txt", "report.html":
        said = (out / name).read_text().split("Each cell ran once")[-1]
        said = said.split("How to repeat")[0]
        assert "peed-up" in said or "speed-up" in said, said
        assert "repeats" not in said and "least" not in said, (name, said)


def reaches(single, folder):
    """Seconds and tokens to the target loss agree with curves.csv."""
    out = study(single, folder / "reach", {"slow": (20000,) * 3,
                                           "fast": (10000,) * 3},
                "baseline = slow\ntarget_loss = 3.5\n")
    for k in (1, 2, 3):  # does not reach the target
        rewrite(out / "cells" / "fast" / f"r{k}", 10000,
                lambda step: 5 - .02 * step + .3 * (step % 3))
    lockstep("report", out)
    rows = table(out / "table.csv")
    with open(out / "curves.csv", newline="") as f:
        curve = [r for r in csv.DictReader(f) if r["cell"] == "slow"]
    at = next(i for i in range(STEPS) if sum(
        float(r["loss"]) for r in curve[max(0, i - 9):i + 1])
        / min(i + 1, 10) <= 3.5)
    assert abs(float(rows["slow"]["seconds_to_target"]) - .02 * (at + 1)) < 1e-6
    assert float(rows["slow"]["tokens_to_target"]) == 32 * (at + 1)
    assert rows["fast"]["seconds_to_target"] == ""
    text = (out / "table.txt").read_text()
    assert re.search(r"^cell +s to 3.50", text, re.M), text
    assert re.search(r"^fast +- ", text, re.M), text
    assert "Loss 3.50 was not reached by fast." in answer(out)
    assert float(rows["fast"]["peak_memory_bytes"]) >= 1e7


def one_training(single, folder):
    """Cells are compared only if the settings on which losses depend are equal."""
    out = study(single, folder / "fair", {
        "slow": (20000,) * 3, "same": (10000,) * 3, "rate": (10000,) * 3})
    for k in (1, 2, 3):
        rewrite(out / "cells" / "rate" / f"r{k}", 10000, lambda step: 4 - .05 * step)
    declare(out, "rate", {"lr": .001}, training={"lr": "0.001"})
    said = lockstep("compare", out).stdout
    assert "same = slow: the losses of the first 20 steps are the same" in said
    assert "rate: not comparable with slow, differs in lr (0.001, 0.002)" \
        in said, said
    lockstep("report", out)
    page = (out / "report.html").read_text()
    assert "slow and same trained the same thing (global batch 2)" in page
    assert "rate trained something else; it differs from slow in lr (0.001" \
        in page
    # equal: lr=.001 is doubled by lr_scale=linear, as the trainer says
    for k in (1, 2, 3):
        rewrite(out / "cells" / "rate" / f"r{k}", 10000)
    declare(out, "rate", {"lr_scale": "linear", "base_batch": 1},
            training={"lr": "0.0020"})
    said = lockstep("compare", out).stdout
    assert "rate = slow" in said, said
    alone = folder / "alone"
    shutil.copytree(out, alone)
    (alone / "x.ini").write_text((alone / "x.ini").read_text().replace(
        "repeat = 3", "repeat = 1").replace("[cell same]\nsync = local\n", ""))
    change(alone / "cells" / "rate" / "r1", training={"lr": "0.001"})
    said = lockstep("compare", alone).stdout
    assert "no two cells are comparable: there is nothing to compare" in said
    rewrite(out / "cells" / "same" / "r1", 10000, lambda step: 4 - .05 * step)
    said = lockstep("compare", out, status=1).stdout
    assert "same DIFFERS FROM slow" in said, said
    rewrite(out / "cells" / "same" / "r1", 10000)
    change(out / "cells" / "same" / "r1", way={"promise": "asp"})
    said = lockstep("compare", out).stdout
    assert "same: asp does not promise the losses of slow" in said, said
    for k in (1, 2, 3):  # other data: nothing is comparable
        change(out / "cells" / "same" / f"r{k}", data={"hash_xxh3": "00"})
    said = lockstep("compare", out, status=1).stdout
    assert "data: DIFFERS between runs" in said, said
    assert "same: not comparable with slow, differs in the data (hash 00" in said, said


def meets(run, validations, factor=1):
    """Turn a run into one whose workers exchange in every fourth step, which takes
    50 ms. validations: {step: validation loss}."""
    rewrite(run, 10000, lambda step: factor * (5 - .1 * step), every=4,
            eval_batches=10)
    manifest = json.loads((run / "run.json").read_text())
    manifest["backend"] = "outer"
    manifest["asked"] = {"batch": 2, "sync": "outer", "workers": 2, "every": 4}
    manifest["way"] |= {"every": 4, "apart": True, "ignores": []}
    manifest["training"]["every"] = "4"
    (run / "run.json").write_text(json.dumps(manifest))
    head, *lines = (run / "steps.csv").read_text().splitlines()
    at = head.split(",").index
    for i, line in enumerate(lines):
        cells = line.split(",")
        if i % 4 == 3:
            cells[at("t_step_us")] = "50000"
        cells[at("val_loss")] = str(validations.get(i + 1, ""))
        lines[i] = ",".join(cells)
    (run / "steps.csv").write_text("\n".join([head] + lines) + "\n")


def apart(single, folder):
    """Workers exchange only every few steps. Such a cell is comparable only with
    cells of the same kind, and its rate is that of whole rounds. The report also
    says if cells evaluate different amounts of text."""
    out = study(single, folder / "apart", {"slow": (20000,) * 3,
                                           "meets": (10000,) * 3})
    ini = (out / "x.ini").read_text()
    (out / "x.ini").write_text(ini.replace(
        "[cell meets]\nsync = local",
        "[cell meets]\nsync = outer\nworkers = 2\nevery = 4") +
        "[cell net]\nsync = outer\nworkers = 2\nevery = 4\n")
    for k in (1, 2, 3):
        meets(out / "cells" / "meets" / f"r{k}", {})
        change(out / "cells" / "slow" / f"r{k}", way={"ignores": ["every", "workers"]})
    shutil.copytree(out / "cells" / "meets", out / "cells" / "net")
    for path in (out / "cells" / "net").iterdir():
        change(path, effective={"log": 99})
    said = lockstep("compare", out).stdout
    assert "meets: not comparable with slow, differs in every (4, none)" in said
    assert "net: its workers' parameters differ between exchanges, and no " \
        "validation loss is just after an exchange" in said, said
    # Each worker has its own training loss. So only a validation loss just after
    # an exchange counts.
    for name, early, late, factor in (("meets", 3, 2.5, 1), ("net", 9, 2.5, 2)):
        meets(out / "cells" / name / "r1", {2: early, 8: late}, factor)
    said = lockstep("compare", out).stdout
    assert "net = meets: the validation losses at step 8 are the same" in said
    meets(out / "cells" / "net" / "r1", {8: 2.6})
    said = lockstep("compare", out, status=1).stdout
    assert "net DIFFERS FROM meets: the validation losses at step 8" in said
    shutil.rmtree(out / "cells" / "net")
    lockstep("report", out)
    assert "Training loss: the workers of meets have different parameters" in \
        (out / "report.html").read_text()
    assert abs(float(table(out / "table.csv")["meets"]["step_s"]) - .02) < 1e-9
    runs = table(out / "runs.csv")
    assert runs["meets"]["every"] == "4" and runs["slow"]["every"] == "", runs
    page = (out / "report.html").read_text()
    assert "Validation loss: cells evaluate 20 to 40 sequences, so compare it " \
        "only between cells that evaluate the same number" in page, page
    for k in (1, 2, 3):
        rewrite(out / "cells" / "slow" / f"r{k}", 20000, eval_batches=0)
    lockstep("report", out)
    page = (out / "report.html").read_text()
    assert "some cells evaluate all of the validation text, others at most 20 " \
        "sequences of it, so" in page, page


def matrix(single, out, nets, ways, times, given=lambda net: net):
    """An experiment of ways by links. times: {(net, way): microseconds by repeat}.
    The runs got the links given(net)."""
    out.mkdir()
    (out / "x.ini").write_text(
        "[experiment]\nfigures = none\nrepeat = 3\n[base]\nbatch = 2\nworkers = 2\n"
        f"sync = ring\n[matrix]\nnet = {', '.join(nets)}\n" +
        "".join(f"[cell {way}]\nseed = {k}\n" for k, way in enumerate(ways, 1)))
    (out / "command.txt").write_text("x.ini\n")
    for net, way in ((n, w) for n in nets for w in ways):
        for k, us in enumerate(times[net, way], 1):
            run = out / "cells" / f"{way}_net={net}" / f"r{k}"
            shutil.copytree(single, run)
            rewrite(run, us, net=given(net), seed=ways.index(way) + 1)
            taken(run, .02)
            manifest = json.loads((run / "run.json").read_text())
            manifest["asked"] = {"batch": 2, "workers": 2, "sync": "ring", "net": net,
                                 "seed": ways.index(way) + 1}
            (run / "run.json").write_text(json.dumps(manifest))
    return out


def choices(single, folder):
    """The answer names the first and the last way of each choice, here of each kind of
    links, without what all cells of the choice share; all ties by name; and what is
    first over all choices."""
    fast, slow = (10000, 10100, 10200), (20000, 20100, 20200)
    two = matrix(single, folder / "choices", ("1gbit", "100mbit"), ("a", "b", "c"), {
        ("1gbit", "a"): fast, ("1gbit", "b"): slow, ("1gbit", "c"): (30000,) * 3,
        ("100mbit", "a"): (10100, 10200, 10300), ("100mbit", "b"): fast,
        ("100mbit", "c"): (40000,) * 3})
    said = answer(two)
    assert re.search(r"^With net=1gbit, a reaches loss 1.45 first: \S+ \(.*\) s; the next is "
                     r"b, which takes 1.99 times as long\.$", said, re.M), said
    assert re.search(r"^With net=100mbit, b and a reach loss 1.45 first, too close to tell "
                     r"apart: their ranges overlap. b: ", said, re.M), said
    assert said.count("\nc takes longest: ") == 2, said
    assert "Over all 2 choices a is first, or too close to the first to tell apart." in \
        said, said
    assert "The peak memory of a worker is" in said, said
    page = (two / "report.html").read_text()
    assert 'title="a: seconds to target 0.4' in page and "n=3" in page
    for path in (two / "cells" / "a_net=100mbit").iterdir():
        rewrite(path, 50000, net="100mbit")
    said = answer(two)
    assert "Over all choices no way is always first: a with net=1gbit; b with " \
        "net=100mbit." in said, said
    assert "a takes longest" in said, said


def not_given(single, folder):
    """What was asked for and not given is said, and is no name of a cell. Cells that
    got the same are one, and neither is ranked against the other."""
    times = {(net, way): (us, us + 100, us + 200) for net in ("?1gbit", "?100mbit")
             for way, us in (("a", 10000), ("b", 20000))}
    out = matrix(single, folder / "lacks", ("?1gbit", "?100mbit"), ("a", "b"), times,
                 lambda net: "unshaped")
    said = answer(out)
    for net in "1gbit", "100mbit":
        assert f"Warning: net={net} was asked for and could not be had: all cells ran on " \
            "unshaped links." in said, said
    assert "Cells that had the same settings are one here, and their runs are its repeats: " \
        "a (2 cells) and b (2 cells)." in said, said
    assert "With net=" not in said and "net=" not in said.replace("Warning: net=", ""), said
    rows = table(out / "table.csv")
    assert {r["net"] for r in rows.values()} == {"unshaped"} and list(rows) == ["a", "b"]
    assert {r["n"] for r in rows.values()} == {"6"}, rows
    assert all("gbit" not in name and "mbit" not in name for name in rows), rows
    one = matrix(single, folder / "given", ("?1gbit",), ("a", "b"), times,
                 lambda net: net[1:])  # asked politely and given
    said = answer(one)
    assert "could not be had" not in said and "With net=1gbit, a reaches" in said, said
    assert {r["net"] for r in table(one / "table.csv").values()} == {"1gbit"}


def other_than_asked(single, folder):
    """The same for other settings, and for cores of a worker's own, which the launcher
    asks for."""
    for key, asked, given in (("transport", "shm", "tcp"), ("device", "cuda:0", "cpu"),
                              ("precision", "bf16", "fp32")):
        out = study(single, folder / f"other_{key}", {"slow": (20000,), "last": (40000,)},
                    "repeat = 1\nbaseline = slow\n")
        ini = (out / "x.ini").read_text().replace("repeat = 3\n", "")
        (out / "x.ini").write_text(ini)
        declare(out, "last", {key: asked})
        assert f"{key}={asked} was asked for" not in answer(out)
        change(out / "cells/last/r1", effective={key: given})
        said = answer(out)
        assert said.startswith(f"Warning: {key}={asked} was asked for and could not be had: "
                               f"last ran with {key}={given}.\n"), said
        page = (out / "report.html").read_text()
        assert page.index(f"{key}={asked} was asked") < page.index(said.splitlines()[1][:9])


def shared_cores(single, folder):
    """Two workers that may use one core only, on a machine that has more."""
    del single
    mine = os.sched_getaffinity(0)
    if len(mine) < 2:
        return
    for cores, shares in ({min(mine)}, True), (mine, False):
        os.sched_setaffinity(0, cores)
        run = folder / f"cores_{shares}"
        lockstep("train", "model=nano", "context=16", "batch=2", "steps=2", "eval=0",
                 "threads=1", "sync=ring", "workers=2", f"out={run}")
        os.sched_setaffinity(0, mine)
        assert json.loads((run / "run.json").read_text())["own_cores"] == (not shares)
        assert ("Warning: cores of their own could not be had: the workers of all cells "
                "share cores." in answer(run)) == shares


def interrupted(single, folder):
    """A run without summary.json was stopped: an experiment leaves it out of all
    tables, the report of it alone has what it did, and both say so."""
    out = study(single, folder / "stopped", {"slow": (20000,) * 3, "fast": (10000,) * 3})
    run = out / "cells" / "fast" / "r2"
    (run / "summary.json").unlink()
    lines = (run / "steps.csv").read_text().splitlines()
    (run / "steps.csv").unlink()
    (run / "steps.0.csv").write_text("\n".join(lines[:31]) + "\nr2,loc")
    said = answer(out)
    assert "Warning: fast, repeat 2 reached only step 30 of 40, so it is left out." in \
        said, said
    assert table(out / "table.csv")["fast"]["n"] == "2"
    assert len((out / "runs.csv").read_text().splitlines()) == 6
    said = lockstep("report", run).stdout
    assert "Warning: The run reached only step 30 of 40, so its numbers are of that " \
        "part." in said, said
    assert float(table(run / "runs.csv")["r2"]["tokens"]) == 32 * 30
    for path in out.glob("cells/*/*/summary.json"):
        path.unlink()
    for command in "report", "compare":
        done = lockstep(command, out, status=1)
        assert "no run is finished; " in done.stderr and \
            "reached only step" in done.stderr, done


def joins(single, folder):
    """A report of several existing runs, and one figure in a given size."""
    a, b = folder / "runs" / "a", folder / "more" / "a"
    for run, us in ((a, 10000), (b, 20000)):
        shutil.copytree(single, run)
        rewrite(run, us, log=us)
    out = folder / "both"
    for _ in range(2):  # the second time replaces the first
        lockstep("report", a, b, f"out={out}")
        rows = table(out / "table.csv")
        assert list(rows) == ["a", "a_2"], rows
        assert abs(float(rows["a"]["tokens_per_s"]) - 3200) < 1
    assert "a_2 = a" in lockstep("compare", out).stdout
    refused = {
        (a, b): "out=DIR",
        (a, f"out={out}"): "has runs of its own",
        (a, folder, f"out={out}"): "no run",
        (folder / "plain", "figure=throughputt"): "throughputt",
        (folder / "plain", "figure=throughput", "size=9"): "size=9",
        (folder / "plain", "size=900x600"): "figure=NAME",
        (a, b, f"out={folder / 'plain'}"): "another out=",
        (a, b, f"out={a}"): "holds a run",
    }
    for words, expect in refused.items():
        done = lockstep("report", *words, status=1)
        assert expect in done.stderr and done.stderr.count("\n") == 1, done
    change(b, effective={"log": 10000})  # the same settings: repeats of one cell
    lockstep("report", a, b, f"out={out}")
    row, = table(out / "table.csv").values()
    assert row["cell"] == "a" and row["n"] == "2" and row["timed_steps"] == str(STEPS), row
    if shutil.which("gnuplot"):
        lockstep("report", out, "figure=throughput", "size=1600x900")
        png = (out / "figures" / "throughput.png").read_bytes()
        assert png[16:24] == bytes.fromhex("00000640 00000384"), png[16:24]
        assert not (out / "figures" / "breakdown_x.png").exists()


def watches(single, folder):
    """watch shows every worker of a running run, from the ends of its files."""
    run = folder / "live"
    shutil.copytree(single, run)
    rewrite(run, 10000)
    for left in "summary.json", "util.csv":
        (run / left).unlink()
    manifest = json.loads((run / "run.json").read_text())
    manifest["world"] = 3
    (run / "run.json").write_text(json.dumps(manifest))
    head, *lines = (run / "steps.csv").read_text().splitlines()
    (run / "steps.csv").unlink()
    at = head.split(",").index
    for rank, compute_us in enumerate((4000, 4000, 8000)):
        own = [head]
        for k, line in enumerate(lines * 20):
            cells = line.split(",")
            cells[at("rank")] = str(rank)
            cells[at("step")] = str(k + 1)
            cells[at("tokens")] = str(96 * (k + 1))
            cells[at("t_compute_us")] = str(compute_us)
            own.append(",".join(cells))
        # the last row is not complete: it does not count
        (run / f"steps.{rank}.csv").write_text("\n".join(own) + "\nrun,lo")
        (run / f"util.{rank}.csv").write_text(
            "t_s,rank,metric,value\n"
            + f"0.1,{rank},compute_share,0.1\n" * 3000
            + f"9.0,{rank},compute_share,0.8{rank}\n"
            f"9.0,{rank},resident_bytes,{3 << 20}\n9.1,{rank},comp")
    (run / "util.s0.csv").write_text("t_s,rank,metric,value\n"
                                     "9.0,s0,compute_share,0.25\n")
    said = lockstep("watch", run, "times=2", "every=0.05").stdout
    assert said.count("3 workers, step 800 of 40") == 2, said
    assert "9600 tokens/s" in said, said
    assert "-: not measured, or not yet" in said, said
    for row in (r"worker 0 +\[#{16}\.{4}\] +80% +800 +3200 +1.0000 +3 MiB$",
                r"worker 2 .* slow: computes 2.0 times as long as the median",
                r"server 0 +\[#{5}\.{15}\] +25% "):
        assert re.search(row, said, re.M), (row, said)
    (run / "summary.json").write_text("{}")
    assert ", over" in lockstep("watch", run).stdout  # it ends by itself
    assert lockstep("watch", folder / "reach").stdout.count("/cells/") == 1
    going = folder / "going"  # an experiment without its table is still running
    shutil.copytree(folder / "reach", going)
    (going / "table.csv").unlink()
    said = lockstep("watch", going, "times=2", "every=0.05").stdout
    assert said.count("/cells/") == 2, said
    assert "no run has begun" in lockstep("watch", folder, status=1).stderr


def names(folder):
    """Errors in the keys of [experiment] and cells; help lists the figures."""
    path = folder / "bad.ini"
    for text, expect in {
            "[experiment]\nbaseline = x\n[cell y]\nsync = local\n":
                "baseline=x: no cell has this name; try: baseline=y",
            "[experiment]\ntarget_loss = low\n": "must be auto",
            "[cell a,b]\nseed = 1\n[cell a/b]\nseed = 2\n":
                "cells 1 and 2 would both have the folder a_b",
            "[base]\nglobal_batch = 6\nbatch = 4\n": "global_batch=6"}.items():
        path.write_text(text)
        done = lockstep("run", path, f"out={folder / 'bad'}", status=1)
        assert expect in done.stderr, done.stderr
    path.write_text("[base]\nbatch = 2\n")
    done = lockstep("run", path, "figures=lossy", f"out={folder / 'bad'}", status=1)
    assert "figures=lossy" in done.stderr, done.stderr
    help_ = lockstep("run", "--help").stdout
    assert "[matrix]" in help_ and re.search("^  throughput +tokens a", help_, re.M), help_


def main():
    with tempfile.TemporaryDirectory(prefix="lockstep-answers-") as name:
        folder = pathlib.Path(name)
        single = folder / "single"
        lockstep("train", "model=nano", "context=16", "batch=2", "steps=2",
                 "eval=0", "threads=1", f"out={single}")
        for part in sentences, doubts, reaches, one_training, *answers_why.ALL, apart, \
                choices, not_given, other_than_asked, shared_cores, interrupted, joins, watches:
            part(single, folder)
        names(folder)
    print("ok")


main()
