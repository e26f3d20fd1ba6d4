"""Tests that the folder of a run or an experiment from a stranger can do no harm to
who reports, compares or runs it: what it says is shown as text, nothing outside it is
read or written, nothing is waited for, and an error is one line.

    stranger.py LOCKSTEP      with LOCKSTEP_LONG=1 in the environment: 300 random
                              changes instead of 40
"""

import html
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

from sandbox import (ALL, INI, LOCKSTEP, NUMBERS, PATH, PAYLOADS, Page, Sandbox,
                     every_text, fake_gnuplot, kinds_of, leaves, put)

from lockstep import runs
from lockstep.experiment import Cell
from lockstep.files import visible
from lockstep.page import drawing


# ---- what a folder may say

def texts_are_text(box):
    """Every text of a run, at once, is a payload."""
    drawn = itertools.cycle(ALL)
    for payload in PAYLOADS:
        box.renew(itertools.islice(drawn, 5))
        every_text(box.given, payload)
        for words in (["report", box.given], ["compare", box.given],
                      ["report", box.given / "cells" / "two_batch=1" / "r1"]):
            status, said = box.run(*words, why=payload)
            assert status == 0 or words[0] == "compare", (payload, said)
        shown = html.unescape((box.given / "report.html").read_text())
        assert visible(json.loads(json.dumps(payload))) in shown, payload


def figures_are_drawings(box):
    """All figures are drawn of runs with a payload in every text, column and name,
    by gnuplot itself."""
    path, os.environ["PATH"] = os.environ["PATH"], PATH
    box.renew(ALL)
    every_text(box.given, *PAYLOADS)
    payloads = itertools.cycle(PAYLOADS)
    for name, columns in (("util.csv", "t_s rank metric"), ("breakdown.csv", "rank kind"),
                          ("steps.csv", "run backend rank")):
        for file in box.given.glob(f"cells/*/r[12]/{name}"):
            head, *rows = file.read_text().splitlines()
            last = rows[-1].split(",")
            for column in columns.split():
                cells = list(last)
                cells[head.split(",").index(column)] = next(payloads)
                rows.append(",".join('"' + c.replace('"', '""') + '"' for c in cells))
            file.write_bytes("\n".join([head, *rows, ""]).encode("utf-8", "replace"))
    for file in box.given.glob("cells/*/r[12]/trace.json"):
        file.write_text(file.read_text().replace('"forward"', json.dumps(next(payloads))))
    ini = box.given / "x.ini"
    name = "'; system('touch PWNED'); '`touch PWNED`@x{/*9 b}"
    ini.write_text(ini.read_text().replace("[cell one]", f"[cell {name}]").replace(
        "= one batch", f"= {name} batch"))
    for batch in 1, 2:
        (box.given / "cells" / f"one_batch={batch}").rename(
            box.given / "cells" / Cell(f"{name} batch={batch}", []).folder)
    status, said = box.run("report", box.given)
    assert status == 0, said
    drawn = [p.stem for p in box.given.glob("figures/*.svg")]
    assert len(drawn) > len(ALL) // 2, (drawn, said)
    assert (box.given / "report.html").read_text().count("<svg") == len(drawn), said
    os.environ["PATH"] = path


def files_without_runs(box):
    """The figures of files that are no study."""
    words = "0,x';touch PWNED;',1e999,<script>,-1,\x1b[1m,\"a\nb\",9,nan,`touch PWNED`"
    for figure, name, text in (
            ("law", "sweep.txt", "# ring, 2 workers:\n" + words.replace(",", " ")),
            ("law", "sweep.txt", "# ring, 2 workers:\n1 2 3 4 5 6 7 8 9\n1e999" + " 8" * 9),
            ("law", "sweep.txt", "# ring, 0 workers:\n1 2 3 4 5 6 7 8 9\n"),
            ("size_sweep", "sweep.txt", "# ring, " + "9" * 5000 + " workers:\n" + "1 " * 9),
            ("scale", "simulate.csv", "backend,workers,simulated_s,law_s,ratio\n"
             "x';touch PWNED;',1,2,3,4\n<script>,0,0,0,0\n1e999,1e999,-1,1e300,nan\n"),
            ("pipeline", "timetable.csv", "schedule,stage,action,micro,chunk,begin_ms,end_ms\n"
             "x';touch PWNED;',0,forward,1e90,0,-1,1e99\n`a`,4095,backward,0,4000,0,0\n")):
        for k in range(-1, 9):
            folder = box.given / f"{figure}{k}"
            folder.mkdir(exist_ok=True)
            path = folder / name
            os.chdir(folder)
            if k < 0:
                path.write_text(text)
            else:
                path.unlink(missing_ok=True)
                kinds_of(path, box.victim)[k][1]()
            status, said = box.run("report", folder, f"figure={figure}", why=(figure, k))
            assert status == 1 or k < 0, (figure, k, said)
            if k >= 0:
                shutil.rmtree(folder)


def numbers_are_checked(box):
    """Every number of run.json and summary.json, one after the other and all at
    once."""
    run = box.given / "cells" / "two_batch=1" / "r1"
    box.renew(["bytes", "verbs", "memory_parts", "scaling"])
    kinds = itertools.cycle(NUMBERS)
    for name in "run.json", "summary.json":
        text = (run / name).read_text()
        whole = json.loads(text)
        paths = [p for p in leaves(whole) if p[0] not in ("versions", "environment")]
        for path in paths:
            if path[0] in ("training", "task", "effective") and len(path) > 1 and \
                    path[1] not in ("batch", "accum", "net", "pace", "lr", "steps"):
                continue
            value = json.loads(text)
            put(value, path, next(kinds))
            (run / name).write_text(json.dumps(value))
            box.run("report", box.given, why=(name, path))
        for number in NUMBERS:
            value = json.loads(text)
            for path in paths:
                if path not in (("world",), ("model", "context")) and path[0] != "asked":
                    put(value, path, number)
            (run / name).write_text(json.dumps(value))
            for words in ("report", box.given), ("compare", box.given), ("report", run):
                box.run(*words, why=(name, number))
        (run / name).write_text(text)
    for text in "[" * 100000, '{"a":' * 100000, "[1]", "nul", '{"world": 1', "{}", "":
        (run / "run.json").write_text(text)
        status, said = box.run("report", box.given, why=text[:9])
        assert status == 1 and "not a JSON object" in said or text == "{}", said


def columns_are_checked(box):
    """Every column of every CSV file: numbers that are none, and payloads."""
    run = box.given / "cells" / "two_batch=1" / "r1"
    box.renew(["util_timeline", "memory_timeline", "util_bars", "staleness", "loss_seeds"])
    values = itertools.cycle(("1e999", "-1", "nan", "", "9" * 5000, "x';touch PWNED;'", "0",
                              '"<script>"', "\x1b[31m", "s0"))
    for name in "steps.csv", "util.csv", "breakdown.csv":
        text = (run / name).read_text()
        head, *rows = text.splitlines()
        for at, _ in enumerate(head.split(",")):
            for value in itertools.islice(values, 3):
                made = [head]
                for row in rows:
                    cells = row.split(",")
                    cells[at] = value
                    made.append(",".join(cells))
                (run / name).write_text("\n".join(made) + "\n")
                box.run("report", box.given, why=(name, at, value))
        for bad in (head, head + "\n" + '"' + "x\n" * 99999, "a\rb\nc\rd\n", "\0" * 70000,
                    head + "\n" + "1," * 40000 + "\n", "x" * 70000, "\n\n\n", head + "\n1\n",
                    '"' * 1001 + "\n", head + "\n" + rows[0] + "\r\n"):
            (run / name).write_text(bad)
            box.run("report", box.given, why=(name, bad[:40]))
        (run / name).write_text(text)
    (run / "steps.csv").write_text("step\n" + "1\n" * 5000)
    largest, runs.MOST_ROWS = runs.MOST_ROWS, 4999
    status, said = box.run("report", box.given)
    assert status == 1 and "steps.csv has more than 4999 rows" in said, said
    runs.MOST_ROWS = largest


def an_ini_is_checked(box):
    """Lines of the experiment's file and of command.txt."""
    ini = box.given / "x.ini"
    for payload in (*PAYLOADS, "x" * 60000, "(" * 30000, "a=b " * 9999, "%(x)s", "@"):
        payload = payload.encode("utf-8", "replace").decode()
        about = f"[experiment]\ntitle = {payload}\nquestion = {payload}\nexpect = {payload}"
        for line in (about, f"[experiment]\nfigures = {payload}", f"[{payload}]", payload,
                     f"[experiment]\nbaseline = {payload}", f"[experiment]\n{payload} = 1",
                     f"[cell {payload}]\nseed = 3", f"[matrix]\nseed = {payload}",
                     f"[base]\ndata = {payload}", f"[matrix]\n{payload} = 1, 2"):
            ini.write_text(f"[base]\nsteps = 6\n{line}\n" if "[base]" not in line
                           else line + "\n")
            for command in "report", "compare":
                box.run(command, box.given, why=line)
    box.renew()
    for text in ("", "\n", "x.ini\nbatch\n", "/etc/passwd\n", "..\n", "cells\n", "x.ini\n\0\n",
                 "\x1b[1mx\n", "x.ini\n" + "seed=1\n" * 20000, "x.ini\nrepeat=" + "9" * 9999):
        (box.given / "command.txt").write_text(text)
        status, _ = box.run("report", box.given, why=text[:40])
        assert status == 1


def names_are_text(box):
    """The name of a folder, of a cell, and of runs side by side."""
    run = box.clean / "cells" / "two_batch=1" / "r1"
    for payload in PAYLOADS:
        name = payload.replace("/", "|").replace("\ud800\udfff", "\udcff") or "- -"
        copy = box.given / name
        shutil.copytree(run, copy)
        status, said = box.run("report", copy, why=name)
        assert status == 0, said
        joined = box.given / f"{name}, joined"
        status, said = box.run("report", copy, run, f"out={joined}", why=name)
        assert status == 0 and len(list(joined.glob("cells/*/r1"))) == 2, said
    drawn = 0
    for payload in PAYLOADS:
        box.renew()
        name = visible(payload.encode("utf-8", "replace").decode().split("\n")[0])
        text = (box.given / "x.ini").read_text()
        (box.given / "x.ini").write_text(text.replace("[cell one]", f"[cell {name}]").replace(
            "baseline = one batch=1\n", ""))
        for batch in 1, 2:
            (box.given / "cells" / f"one_batch={batch}").rename(
                box.given / "cells" / Cell(f"{name} batch={batch}".strip(), []).folder)
        status, said = box.run("report", box.given, why=payload)
        drawn += status == 0 and name in said
    assert drawn > len(PAYLOADS) // 2, drawn


# ---- files that are none

def files_are_files(box):
    """A pipe, a device, a socket, a folder, a link or 3 GB in the place of each file
    that is read: refused at once, and nothing of another file is shown."""
    run = pathlib.Path("cells/two_batch=1/r1")
    for name in ("command.txt", "x.ini", run / "run.json", run / "summary.json",
                 run / "steps.csv", run / "util.csv", run / "breakdown.csv",
                 run / "trace.json"):
        for k in range(9):
            box.renew()
            path = box.given / name
            path.unlink()
            os.chdir(path.parent)  # the name of a socket must be short
            kind, make = kinds_of(path, box.victim)[k]
            make()
            for words in (["report", box.given], ["compare", box.given],
                          ["report", box.given / run]):
                status, said = box.run(*words, why=(name, kind))
                if path.name != "trace.json" and kind not in ("gone", "folder", "socket") and \
                        "cells" in str(name) and words[0] == "report":
                    assert status == 1 and ("regular file" in said or "more than" in said), \
                        (name, kind, said)


TABLES = ("report.html", "table.txt", "table.csv", "runs.csv", "shares.csv", "memory.csv",
          "verbs.csv", "workers.csv", "curves.csv", "sweep.csv")


def links_are_replaced(box):
    """Links to a file or folder outside in the place of each file and folder that is
    written: what they lead to stays as it is."""
    drawn = [f"figures/{name}.{kind}" for name in ("loss", "breakdown", "throughput")
             for kind in ("csv", "svg", "png", "gp")]
    for target in box.victim, box.folder / "outside" / "new", pathlib.Path("/dev/full"):
        box.renew()
        for name in [*TABLES, *drawn]:
            path = box.given / name
            path.parent.mkdir(exist_ok=True)
            path.unlink(missing_ok=True)
            path.symlink_to(target)
        status, said = box.run("report", box.given, why=target)
        assert status == 0, said
        assert not any((box.given / name).is_symlink() for name in TABLES)
        for figure in "loss", "breakdown":
            box.run("report", box.given / "cells" / "two_batch=1" / "r1", f"figure={figure}")
    for name in TABLES:  # folders in the place of files
        box.renew()
        (box.given / name).unlink(missing_ok=True)
        (box.given / name).mkdir()
        box.run("report", box.given, why=name)
    box.renew()
    shutil.rmtree(box.given / "figures", ignore_errors=True)
    (box.given / "figures").symlink_to(box.folder / "outside")
    box.run("report", box.given, why="figures")
    box.run("report", box.given, "figure=throughput", why="figures")


# ---- any change

def mutations(rng, box):
    """Makes one random change somewhere in the folder. Returns what it was."""
    paths = sorted(p for p in box.given.rglob("*") if p.is_file() and
                   p.suffix in (".json", ".csv", ".ini", ".txt") and p.parent.name != "figures")
    path = rng.choice(paths)
    data = bytearray(path.read_bytes())
    at = rng.randrange(len(data) + 1)
    end = min(len(data), at + rng.choice((1, 1, 4, 30, 1000, 1 << 20)))
    kind = rng.choice(("flip", "cut", "twice", "insert", "number", "text", "json", "move"))
    if kind == "flip" and data:
        data[min(at, len(data) - 1)] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        del data[at:end]
    elif kind == "twice":
        data[at:at] = data[at:end] * rng.choice((1, 1, 50))
    elif kind == "insert":
        data[at:at] = rng.randbytes(rng.choice((1, 3, 100)))
    elif kind in ("number", "text"):
        found = [*re.finditer(rb"-?\d+(\.\d+)?" if kind == "number" else rb"\w+", data)]
        if found:
            match = rng.choice(found)
            new = json.dumps(rng.choice(NUMBERS)) if kind == "number" else \
                rng.choice(PAYLOADS)
            data[match.start():match.end()] = new.encode("utf-8", "replace")
    elif kind == "json" and path.suffix == ".json" and path.name != "trace.json":
        value = json.loads(data)
        put(value, rng.choice([*leaves(value)]), rng.choice(NUMBERS + PAYLOADS))
        data = json.dumps(value).encode()
    elif kind == "move":
        data = bytearray(rng.choice(paths).read_bytes())
    path.write_bytes(data)
    return path, kind, at


def any_change(box, count=300 if os.environ.get("LOCKSTEP_LONG") else 40):
    """Random changes of a valid folder, always the same ones."""
    rng, ended = random.Random(7), {0: 0, 1: 0}
    for k in range(count):
        box.renew(rng.sample(ALL, k % 2))
        done = [mutations(rng, box) for _ in range(rng.choice((1, 1, 3)))]
        for command in "report", "compare":
            status, _ = box.run(command, box.given, why=(k, done))
            ended[status] += 1
    assert min(ended.values()) > count // 10, ended  # some were refused, some not


# ---- what must not start

def only_words_name_programs(box):
    """An INI file may not name a program, a compiled file or hosts, wherever it does.
    Words of the command line may."""
    evil = box.cwd / "evil"
    evil.write_text("#!/bin/sh\ntouch EVIL\nexit 77\n")
    evil.chmod(0o755)
    ini, out = box.cwd / "evil.ini", box.given / "evil"
    for key in "peer_python", "lab", "hosts":
        for text in (f"[base]\n{key} = {evil}", f"[cell x]\n{key} = {evil}",
                     f"[matrix]\n{key} = {evil}", f"[matrix]\na = {key}={evil} seed=1",
                     f"[matrix]\nseed = 1 ({key}={evil})", f"[experiment]\n{key} = {evil}"):
            ini.write_text(f"[cell y]\nsync = local\npeer = ddp\n{text}\n")
            status, said = box.run("run", ini, f"out={out}", why=text)
            assert status == 1 and not out.exists(), said
            assert "only from the command line" in said or "unknown key" in said or \
                " " in str(evil) and "is not key=value" in said, said
    ini.write_text("[experiment]\nfigures = none\n[cell y]\nsync = local\npeer = ddp\n")
    done = subprocess.run([LOCKSTEP, "run", ini, f"peer_python={evil}", f"out={out}"],
                          capture_output=True, text=True, cwd=box.given, timeout=60)
    assert (box.given / "EVIL").exists(), done


def drawings_only_draw():
    """A drawing with more than elements that draw is left out; what a browser would
    take for more is not there."""
    xmlns = "xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink'"
    for inner in ("<script>x()</script>", "<g onwheel='x()'/>", "<foreignObject/>",
                  "<a xlink:href='java&#115;cript:x()'>y</a>", "<image href='x.png'/>",
                  "<style>@import 'http://x/y'</style>", "<use xlink:HREF='http://x'/>",
                  "<g fill='url(http://x)'/>", "<g style='x'/>", "<g", "&x;",
                  "<animate attributeName='href'/>", "<set/>", "<use href='x.svg'/>"):
        assert not drawing(f"<svg {xmlns}>{inner}</svg>"), inner
    assert not drawing("<!DOCTYPE svg [<!ENTITY x 'y'>]><svg>&x;</svg>")
    for inner in ("<!--><script>x()</script>-->", "<?x <script>x()</script> ?>",
                  "<text><![CDATA[<script>x()</script>]]></text>",
                  "<title>&lt;/title&gt;&lt;script&gt;x()</title>"):
        page = drawing(f"<!-- <svg --><svg {xmlns}>{inner}</svg>")
        assert page.startswith("<svg") and "<script" not in page, page
        Page().feed(page)
    text = f"<svg {xmlns}><g fill='none'><use xlink:href='#a'/><text>a &lt; b</text></g></svg>"
    assert "a &lt; b" in drawing(text) and 'href="#a"' in drawing(text)


def main():
    if not shutil.which("gnuplot"):
        print("skipped: no gnuplot")
        sys.exit(77)
    drawings_only_draw()
    with tempfile.TemporaryDirectory(prefix="lockstep-stranger-") as name:
        folder = pathlib.Path(name)
        (folder / "x.ini").write_text(INI.format(figures="none"))
        clean = folder / "clean"
        done = subprocess.run([LOCKSTEP, "run", folder / "x.ini", f"out={clean}"],
                              capture_output=True, text=True, timeout=250)
        assert done.returncode == 0, done
        fake_gnuplot(folder)
        for part in (texts_are_text, figures_are_drawings, files_without_runs,
                     numbers_are_checked, columns_are_checked, an_ini_is_checked,
                     names_are_text, files_are_files, links_are_replaced,
                     only_words_name_programs, any_change):
            os.chdir(folder)
            part(Sandbox(folder / part.__name__, clean))
            shutil.rmtree(folder / part.__name__)
            print("ok", part.__name__, flush=True)


main()
