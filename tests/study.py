"""Tests lockstep run, report and compare as a person uses them.

    study.py LOCKSTEP
"""

import csv
import html
import html.parser
import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from study_bad import bad_input

LOCKSTEP = str(pathlib.Path(sys.argv[1]).resolve())
INI = """
; two cells that train the same, and one that does not
[experiment]
title = A <small> experiment
question = Does it run,
  and go on?
figures = throughput loss_step
[base]
model = nano
context = 16
steps = 6
warmup = 1
eval = 0
threads = 1
[matrix]
batch = 2 (log=2), 4 (log=3)
[cell plain]
accum = 1
[cell twice]
accum = 2
"""


def lockstep(*words, **more):
    return subprocess.run([LOCKSTEP, *map(str, words)], capture_output=True,
                          text=True, timeout=250, **more)


class Page(html.parser.HTMLParser):
    """Counts a page's elements, and fails if one is not closed."""

    VOID = {"meta", "br", "img", "hr", "link"}

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], {}

    def handle_starttag(self, tag, attrs):
        self.seen[tag] = self.seen.get(tag, 0) + 1
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert name not in ("src",) and not \
                (tag == "link" and name == "href"), "not self-contained"

    def handle_startendtag(self, tag, attrs):
        self.seen[tag] = self.seen.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:])
        self.open.pop()


def runs_all(ini, out):
    done = lockstep("run", ini, "repeat=2", f"out={out}")
    assert done.returncode == 0, done.stderr
    assert "[8/8]" in done.stderr and "left" in done.stderr
    with open(out / "table.csv", newline="") as f:
        table = list(csv.DictReader(f))
    assert [r["cell"] for r in table] == [
        "plain batch=2", "plain batch=4", "twice batch=2", "twice batch=4"]
    assert [r["global_batch"] for r in table] == ["2", "4", "4", "8"]
    for batch, log in (2, 2), (4, 3):  # log= is set, though the names leave it out
        run = out / "cells" / f"plain_batch={batch}" / "r1" / "run.json"
        assert json.loads(run.read_text())["effective"]["log"] == log
    for r in table:
        assert r["n"] == "2"
        assert float(r["step_s_least"]) <= float(r["step_s"]) <= \
            float(r["step_s_most"])
    with open(out / "runs.csv", newline="") as f:
        rows = list(csv.DictReader(f))
    assert len(rows) == 8
    # a column for each setting of the experiment; all rows have as many cells
    assert {(r["batch"], r["accum"]) for r in rows} == {
        ("2", "1"), ("4", "1"), ("2", "2"), ("4", "2")}
    assert all(None not in r and None not in r.values() for r in rows)
    head, *lines = (out / "table.txt").read_text().splitlines()
    assert head.split()[1:6] == ["backend", "workers", "servers", "u0", "total"], head
    for line in lines[:4]:  # CELL WORKERS SERVERS, a column for each worker, total ..
        assert re.search(r"\d +\d +\d+% +\d+% +", line), line


def files_of(folder):
    """{path: (contents, time)} of all files."""
    return {p: (p.read_bytes(), p.stat().st_mtime_ns)
            for p in folder.rglob("*") if p.is_file()}


def keeps_settings(ini, out):
    """A finished run counts only if its settings are the cell's: other words, or
    another INI file of the same name, are refused, and nothing is changed. More
    repeats are added, fewer leave runs out, and fresh=1 begins anew."""
    text, before = ini.read_text(), files_of(out)
    at = {part: f"{ini}:{text[:text.index(part)].count(chr(10)) + 1}: cell "
          for part in ("warmup = 1", "(log=2)")}
    for words, changed, said in (
            (["lr=0.5"], text, "ran with lr=0.002, now lr=0.5"),
            (["accum=7"], text, ""),  # each cell has an accum= of its own
            (["steps=8"], text, "ran with steps=6, now steps=8"),
            ([], text.replace("steps = 6", "steps = 7"), "now steps=7"),
            ([], text.replace("(log=2)", "(log=6)"), "ran with log=2, now log=6"),
            ([], text.replace("warmup = 1\n", ""), "ran with warmup=1, now"),
            (["bach=3"], text, "unknown key bach"),
            ([], text.replace("warmup = 1\n", "warm = 1\n"), at["warmup = 1"]),
            ([], text.replace("(log=2)", "(lgo=2)"), at["(log=2)"]),
            (["batch=3", "fresh=2"], text, "must be 0 or 1"),
            (["figures=lossy"], text, "figures=lossy")):
        ini.write_text(changed)
        done = lockstep("run", ini, "repeat=2", *words, f"out={out}")
        assert done.returncode == (1 if said else 0), done
        assert said in done.stderr and done.stderr.count("\n") == 1, done.stderr
        if said:
            assert files_of(out) == before, (words, said)
        before = files_of(out)
    ini.write_text(text)
    done = lockstep("run", ini, "repeat=1", f"out={out}")
    assert done.returncode == 0 and "4 of 4 runs are done already" in done.stderr
    assert '"least .. most"' not in done.stdout and "Each cell ran once" in done.stdout
    done = lockstep("run", ini, "repeat=2", f"out={out}")
    assert "8 of 8 runs are done already" in done.stderr, done.stderr
    one = out.parent / "one.ini"
    one.write_text(text.replace("batch = 2 (log=2), 4 (log=3)", "batch = 2").replace(
        "[cell twice]\naccum = 2\n", ""))
    new = out.parent / "one"
    for words, said in ((["repeat=1"], "[1/1]"), (["repeat=2"], "[2/2]"),
                        (["repeat=2", "lr=0.5", "fresh=1"], "[1/2]")):
        done = lockstep("run", one, *words, f"out={new}")
        assert done.returncode == 0 and said in done.stderr, done
    done = lockstep("report", new)
    assert done.returncode == 0 and "lr=0.5" in (new / "report.html").read_text()


def repeats_are_equal(out, folder):
    """Repeats that differ in a setting, in data, build or machine are an error, for
    report, compare and run; so are runs of other settings than the cell's."""
    copy = folder / "unequal"
    shutil.copytree(out, copy)
    path = copy / "cells" / "plain_batch=2" / "r2" / "run.json"
    text = path.read_text()
    for change, said in (
            ({"revision": "0000000"}, "not a repeat of repeat 1, which has build="),
            ({"machine.host": "other"}, "host="),
            ({"machine.cores": 1000}, "cores="),
            ({"data.hash_xxh3": "00"}, "data="),
            ({"asked.seed": 3}, "seed="),
            ({"asked.batch": 7, "effective.batch": 7}, "ran with batch=7, now batch=2")):
        run = json.loads(text)
        for name, value in change.items():
            *parents, key = name.split(".")
            at = run
            for parent in parents:
                at = at[parent]
            at[key] = value
        path.write_text(json.dumps(run))
        before = files_of(copy)
        for words in (["report", copy], ["compare", copy],
                      ["run", copy / "small.ini", "repeat=2", f"out={copy}"]):
            done = lockstep(*words)
            assert done.returncode == 1 and said in done.stderr, (words, done)
            assert done.stderr.count("\n") == 1, done.stderr
        assert files_of(copy) == before
    path.write_text(text)
    assert lockstep("report", copy).returncode == 0
    for later in copy.glob("cells/*/r2"):  # a repeat that another build would add
        shutil.rmtree(later)
    for path in copy.glob("cells/*/r1/run.json"):
        path.write_text(path.read_text().replace('"revision"', '"revision": "0", "x"'))
    before = files_of(copy)
    for repeat in 1, 2:  # and those that another build made
        done = lockstep("run", copy / "small.ini", f"repeat={repeat}", f"out={copy}")
        assert done.returncode == 1 and "repeat 1: its build changed since (then 0, now " \
            in done.stderr, done
        assert files_of(copy) == before
    assert lockstep("report", copy).returncode == 0


def goes_on(ini, out):
    """Runs that are done are not repeated; a run that was lost is."""
    kept = out / "cells" / "plain_batch=2" / "r1" / "summary.json"
    lost = out / "cells" / "plain_batch=4" / "r2" / "summary.json"
    before = kept.stat().st_mtime_ns
    lost.unlink()
    said = lockstep("compare", out).stdout
    assert re.search(r"plain batch=4, repeat 2 reached only step \d+ of", said), said
    done = lockstep("run", ini, "repeat=2", f"out={out}")
    assert done.returncode == 0, done.stderr
    assert "7 of 8 runs are done already" in done.stderr
    assert kept.stat().st_mtime_ns == before and lost.exists()


def is_stopped(ini, out):
    """A signal ends the current run. Complete runs stay, and a message says so."""
    child = subprocess.Popen(
        [LOCKSTEP, "run", ini, "repeat=2", f"out={out}", "steps=100000"],
        stderr=subprocess.PIPE, text=True)
    while not any(out.glob("**/steps*.csv")):  # the first run has begun
        assert child.poll() is None, child.communicate()[1]
        time.sleep(0.02)
    again = lockstep("run", ini, "repeat=2", f"out={out}")
    assert again.returncode == 1 and "another lockstep run" in again.stderr
    child.send_signal(signal.SIGINT)
    said = child.communicate(timeout=60)[1]
    assert child.returncode == 130, (child.returncode, said)
    assert "stopped; the same command continues" in said
    done = lockstep("report", out)
    assert done.returncode == 1 and "no run is finished" in done.stderr, done
    assert lockstep("compare", out).returncode == 1


def runs_only(ini, folder):
    """only= runs the cells whose names begin with it."""
    out = folder / "only"
    done = lockstep("run", ini, "only=tw", "repeat=1", "batch=2", f"out={out}")
    assert done.returncode == 0 and "[1/1] twice batch=2" in done.stderr, done.stderr
    with open(out / "runs.csv", newline="") as f:
        assert [r["cell"] for r in csv.DictReader(f)] == ["twice batch=2"]
    done = lockstep("run", ini, "only=pl", "repeat=1", "batch=2", f"out={out}")
    assert "Left out, as the experiment no longer has their cell or repeat: " \
        "cells/twice_batch=2/r1.\n" in done.stdout, done
    done = lockstep("run", ini, "only=tw", "baseline=plain", "batch=2", "repeat=1",
                    f"out={folder / 'alone'}")  # without its baseline
    assert done.returncode == 0 and "speed-up:" not in done.stdout, done
    done = lockstep("run", ini, "only=third", f"out={folder / 'none'}")
    assert done.returncode == 1 and done.stderr == (
        "lockstep: only=third: no [cell NAME] begins with this; the names: plain, "
        "twice\n"), done.stderr
    assert not (folder / "none").exists()


def begins_anew(folder):
    """fresh=1 removes all runs of the folder, other cells' too, and all that describes
    them, before the first new run. A copy of an INI file of another name goes, too."""
    out, ini, other = folder / "anew", folder / "anew.ini", folder / "other.ini"
    text = INI.replace("throughput loss_step", "throughput").replace("batch = 2 (log=2), 4 "
                                                                     "(log=3)", "batch = 2")
    ini.write_text(text)
    assert lockstep("run", ini, "repeat=1", f"out={out}").returncode == 0
    other.write_text(text.replace("[cell twice]", "[cell other]"))
    child = subprocess.Popen(
        [LOCKSTEP, "run", other, "repeat=1", f"out={out}", "fresh=1", "steps=100000"],
        stderr=subprocess.PIPE, text=True)
    while not ((out / "other.ini").exists() and any(out.glob("cells/*/r1/steps*.csv"))):
        assert child.poll() is None, child.communicate()[1]
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)
    assert child.returncode == 130
    assert {p.name for p in out.iterdir()} == {"cells", "command.txt", "other.ini", ".lock"}
    assert len(list(out.glob("cells/*/r1"))) == 1
    own = folder / "own"  # cells/ of a folder that is no experiment
    (own / "cells").mkdir(parents=True)
    (own / "cells" / "kept").write_text("x")
    done = lockstep("run", other, "repeat=1", f"out={own}", "fresh=1")
    assert done.returncode == 0 and (own / "cells" / "kept").exists(), done.stderr


def faults_are_settings(folder):
    """A fault on purpose is a setting of a cell, though it is of one start only: a run
    that was restarted is the cell's, a run without the fault is not."""
    out, ini = folder / "faults", folder / "faults.ini"
    text = INI.replace("throughput loss_step", "none").replace(
        "accum = 2", "save = 2\nrestarts = 1\ninject = kill:5").replace(
        "batch = 2 (log=2), 4 (log=3)", "batch = 2")
    run = out / "cells" / "twice_batch=2" / "r1" / "run.json"

    def again(changed, said):
        ini.write_text(changed)
        done = lockstep("run", ini, "repeat=1", f"out={out}")
        assert said in done.stderr and (done.returncode == 0) == ("done" in said), done
    ini.write_text(text)
    done = lockstep("run", ini, "repeat=1", f"out={out}")
    assert done.returncode == 0, done.stderr
    assert json.loads(run.read_text())["effective"]["inject"] == "kill:5"
    again(text, "2 of 2 runs are done already")
    again(text.replace("inject = kill:5\n", ""),
          "twice batch=2, repeat 1: ran with inject=kill:5, now no inject=")
    again(text.replace("accum = 1", "inject = delay:2:1"), "now inject=delay:2:1")
    value = json.loads(run.read_text())  # as an older version wrote it
    value["effective"]["inject"] = ""
    run.write_text(json.dumps(value | {"format": 2}))
    again(text, "2 of 2 runs are done already")
    run.write_text(json.dumps(value))
    again(text, "ran with no inject=, now inject=kill:5")


def reports_elsewhere(out, folder):
    """With out= the report of an experiment goes to another folder, and that of one
    run, too. A folder that has runs is refused."""
    before, new = files_of(out), folder / "elsewhere"
    for source in out, out / "cells" / "plain_batch=2" / "r1":
        for words in [], ["figure=throughput"]:
            done = lockstep("report", source, f"out={new}", *words)
            assert done.returncode == 0, done.stderr
            assert f"{new}/" in done.stdout, done.stdout
        assert "A &lt;small&gt;" in (new / "report.html").read_text() or source != out
        assert (new / "table.csv").exists() and (new / "figures/throughput.svg").exists()
        assert files_of(out) == before
    done = lockstep("report", out, f"out={out / 'cells' / 'plain_batch=2' / 'r1'}")
    assert done.returncode == 1 and "has runs of its own" in done.stderr, done
    assert files_of(out) == before


def reports(out):
    done = lockstep("report", out)
    assert done.returncode == 0, done.stderr
    text = (out / "report.html").read_text()
    assert "A &lt;small&gt; experiment" in text
    assert "lockstep run small.ini repeat=2" in text
    shown = html.unescape(text)
    assert "transport = \"none\"" in shown and "libzmq = " in shown
    assert re.search(r"rank 0 = \"host \S+, pid \d+\"", shown)
    page = Page()
    page.feed(text)
    assert not page.open
    # one worker sends nothing, so there is no table of the law
    assert page.seen["table"] == 1 and page.seen["svg"] == 2, page.seen
    assert "least and most" in text and "Was it the same" in text
    single = out / "cells" / "plain_batch=2" / "r1"
    done = lockstep("report", single)
    assert done.returncode == 0, done.stderr
    text = (single / "report.html").read_text()
    for absent in "least", "the same", "law":  # a report of one run has none of these
        assert absent not in re.sub("<svg.*?</svg>", "", text, flags=re.S) \
            and absent not in done.stdout, absent


def adds_paces(single, folder):
    """Under asp each worker has its own pace, the mean of all its steps. The job's
    rate is the sum of the paces."""
    copy = folder / "paces"
    shutil.copytree(single, copy)
    run = json.loads((copy / "run.json").read_text())
    run["world"] = 2
    run["effective"]["consistency"] = "asp"
    (copy / "run.json").write_text(json.dumps(run))
    head, *lines = (copy / "steps.csv").read_text().splitlines()
    names = head.split(",")
    both, tokens = [], run["model"]["context"] * run["effective"]["batch"]
    for step in range(1, 2501):
        for rank, us in ("0", 20000), ("1", 60000):
            cells = lines[0].split(",")
            cells[names.index("rank")] = rank
            cells[names.index("step")] = str(step)
            # slower at first, so that mean and median differ
            now = us * 2 if step < 1200 else us
            cells[names.index("t_step_us")] = str(now)
            cells[names.index("tokens")] = str(2 * tokens * step)  # of both
            both.append(",".join(cells))
    (copy / "steps.csv").write_text("\n".join([head, *both]) + "\n")
    done = lockstep("report", copy)
    assert done.returncode == 0, done.stderr
    with open(copy / "table.csv", newline="") as f:
        row, = csv.DictReader(f)
    assert abs(float(row["step_s"]) - 0.03) < 1e-6, row["step_s"]
    want = tokens / 0.02 + tokens / 0.06
    assert abs(float(row["tokens_per_s"]) / want - 1) < 1e-3, row


def many_workers(single, folder):
    """A report has up to 4096 workers, and refuses more."""
    copy = folder / "many"
    shutil.copytree(single, copy)
    run = json.loads((copy / "run.json").read_text())
    head, *lines = (copy / "breakdown.csv").read_text().splitlines()
    (copy / "breakdown.csv").write_text("\n".join(
        [head] + [f"{w},{line.split(',', 1)[1]}"
                  for w in range(100) for line in lines]) + "\n")
    for world, status in (100, 0), (4097, 1):
        run["world"] = world
        (copy / "run.json").write_text(json.dumps(run))
        done = lockstep("report", copy)
        assert done.returncode == status, done.stderr
    assert "world is 4097; must be 1 .. 4096" in done.stderr, done.stderr
    with open(copy / "workers.csv", newline="") as f:
        utils = [row["utilisation"] for row in csv.DictReader(f)]
    assert len(utils) == 100 and float(utils[0]) > 0
    head = (copy / "table.txt").read_text().splitlines()[0].split()
    assert head[4:8] == ["least", "..", "most", "total"], head  # not u0 .. u99
    assert utils == 100 * utils[:1], utils


def a_gpu_is_what_counts(single, folder):
    """A worker with a GPU: utilisation is the share in which the GPU computes."""
    copy = folder / "gpu"
    shutil.copytree(single, copy)
    text = (copy / "breakdown.csv").read_text()
    busy = .25 * sum(float(r["seconds"])
                     for r in csv.DictReader(text.splitlines())
                     if r["kind"] not in ("checkpoint", "evaluate"))
    (copy / "breakdown.csv").write_text(
        f"{text}0,gpu_compute,{busy:.9f},0,6\n"
        f"0,gpu_comm,{busy / 5:.9f},0,6\n0,gpu_up,0.000001,0,6\n")
    done = lockstep("report", copy)
    assert done.returncode == 0, done.stderr
    with open(copy / "table.csv", newline="") as f:
        row, = csv.DictReader(f)
    assert abs(float(row["utilisation_mean"]) - .25) < 1e-4, row
    with open(copy / "shares.csv", newline="") as f:
        row, = csv.DictReader(f)
    assert abs(float(row["gpu_compute_share"]) - .25) < 1e-4, row
    assert abs(float(row["gpu_idle_share"]) - .75) < 1e-4, row
    assert abs(float(row["gpu_comm_share"]) - .05) < 1e-4, row
    assert float(row["backward_share"]) == 0, row  # the host's time, which only waits
    with open(copy / "workers.csv", newline="") as f:
        row, = csv.DictReader(f)
    assert abs(float(row["gpu_comm"]) - .05) < 1e-4, row


def compares(out):
    done = lockstep("compare", out)
    assert done.returncode == 0, done.stdout
    assert "trained the same thing" in done.stdout
    assert re.search(r"plain batch=4: the losses of the first 6 steps (are the "
                     r"same in every digit|differ by at most \S+ of their)",
                     done.stdout), done.stdout
    path = out / "cells" / "twice_batch=2" / "r1" / "steps.csv"
    lines = path.read_text().splitlines()
    cells = lines[3].split(",")
    cells[6] = "9.5"  # another loss
    lines[3] = ",".join(cells)
    path.write_text("\n".join(lines) + "\n")
    done = lockstep("compare", out)
    assert done.returncode == 1 and "DIFFERS" in done.stdout, done.stdout


def main():
    with tempfile.TemporaryDirectory(prefix="lockstep-study-") as name:
        folder = pathlib.Path(name)
        ini, out = folder / "small.ini", folder / "out"
        ini.write_text(INI)
        runs_all(ini, out)
        goes_on(ini, out)
        keeps_settings(ini, out)
        repeats_are_equal(out, folder)
        reports(out)
        reports_elsewhere(out, folder)
        runs_only(ini, folder)
        begins_anew(folder)
        faults_are_settings(folder)
        adds_paces(out / "cells" / "plain_batch=2" / "r1", folder)
        many_workers(out / "cells" / "plain_batch=2" / "r1", folder)
        a_gpu_is_what_counts(out / "cells" / "plain_batch=2" / "r1", folder)
        compares(out)
        is_stopped(ini, folder / "stopped")
        bad_input(lockstep, folder)
    print("ok")


main()
