"""Tests that a run's files from an unknown sender can do no harm: Lockstep reads
them, does not run them and never waits for them. stranger.py has more of it, for
report and compare.

    hostile.py LOCKSTEP
"""

import csv
import fcntl
import html
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

LOCKSTEP = str(pathlib.Path(sys.argv[1]).resolve())
SMALL = ["model=nano", "layers=1", "context=16", "batch=1", "steps=5",
         "eval=0", "threads=1", "save=5"]
ESCAPE = "\x1b[31mred\u009b"


def lockstep(*words, **more):
    return subprocess.run([LOCKSTEP, *map(str, words)], capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=100, **more)


def a_name_is_not_a_command(run, folder):
    """The name of a folder or cell with a quote is not run by a shell."""
    copy = folder / "it's; touch PWNED;'\"; touch PWNED; \"$(touch PWNED)"
    shutil.copytree(run, copy)
    done = lockstep("report", copy, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    assert (copy / "figures" / "loss.svg").stat().st_size > 1000
    ini = folder / "cells.ini"
    ini.write_text("[experiment]\nrepeat = 1\nfigures = util_timeline "
                   "staleness\n[base]\n" + "\n".join(SMALL) +
                   "\n[cell x'; touch PWNED; ']\nseed = 2\n")
    done = lockstep("run", ini, f"out={folder / 'cells'}", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert not list(folder.glob("**/PWNED"))


def a_figure_is_one_of_ours(run, folder):
    (folder / "evil.gp").write_text('system("touch PWNED")\n')
    copy = folder / "figures"
    shutil.copytree(run, copy)
    (copy / "command.txt").write_text("mine.ini\n")
    for path in (f"../../../../../../../../{folder}/evil", f"{folder}/evil"):
        (copy / "mine.ini").write_text(
            f"[experiment]\nfigures = {path}\n[base]\nsteps = 3\n")
        done = lockstep("report", copy, cwd=folder)
        assert done.returncode == 1 and b"no such figure" in done.stderr, done
    done = lockstep("report", run, "figure=style")  # no figure: other figures load it
    assert done.returncode == 1 and b"figure=style: style.gp is only a part of other" in \
        done.stderr, done
    assert not list(folder.glob("**/PWNED"))


# Figures' scripts pass words of a column, and folders, to awk in a shell. {word}
# is such a word.
WORD = "x';touch${IFS}PWNED;'"
COLUMNS = {
    "pipeline": ("timetable.csv", "schedule,stage,action,micro,chunk,begin_ms,end_ms\n"
                 "{word},0,forward,0,0,0,10\n"),
    "gpu_timeline": ("util.csv", "t_s,rank,metric,value\n{word},gpu_util_share,1\n"
                     "0.5,{word},gpu_util_share,1\n"),
}


def a_column_is_not_a_command(run, folder):
    plots = pathlib.Path(__file__).resolve().parent.parent / "plots"
    for name, (file, text) in COLUMNS.items():
        copy = folder / f"column-{name}"
        shutil.copytree(run, copy)
        (copy / file).write_text(text.format(word=WORD))
        cell = copy / "cells" / "x';touch PWNED;'" / "r1"
        cell.mkdir(parents=True)
        (cell / "util.csv").write_text("0.5,0,gpu_util_share,1\n")
        lockstep("report", copy, f"figure={name}", cwd=folder)
        found = [*folder.glob("**/PWNED"), *plots.glob("PWNED")]
        for path in found:
            path.unlink()
        assert not found, name


def a_report_holds_text(run, folder):
    """The report shows what a run's files say as text, and includes no SVG that does
    more than draw."""
    copy = folder / "markup"
    shutil.copytree(run, copy)
    alert = "<script>alert(1)</script>"
    manifest = json.loads((copy / "run.json").read_text())
    manifest |= {alert: alert, "transport": alert, "backend": "ring", "world": 2}
    manifest["effective"] |= {"net": alert}
    (copy / "run.json").write_text(json.dumps(manifest))
    plots = folder / "plots"
    plots.mkdir()
    for name, text in (("loss", "<svg><script>alert(2)</script></svg>"),
                       ("util_timeline", "<svg/onload=x()>"),
                       ("memory_timeline", "<svg><g")):
        (plots / f"{name}.gp").write_text(f'set print OUT\nprint "{text}"\n')
    done = lockstep("report", copy, env={**os.environ, "LOCKSTEP_PLOTS": str(plots)})
    assert done.returncode == 0, done.stderr
    page = (copy / "report.html").read_text()
    assert "<script" not in page and "<svg" not in page
    assert page.count("&lt;script&gt;alert(1)") > 3
    assert done.stderr.count(b"more than a drawing") == 3, done.stderr


def nothing_is_waited_for(run, folder):
    """A file that never ends, or gives no data, is refused at once."""
    for k, (name, command) in enumerate((
            ("run.json", "compare"), ("steps.csv", "compare"), ("summary.json", "report"),
            ("util.csv", "report"), ("trace.json", "explain"))):
        for how in "fifo", "zero":
            copy = folder / f"endless{k}{how}"
            shutil.copytree(run, copy)
            (copy / name).unlink()
            if how == "fifo":
                os.mkfifo(copy / name)
            else:
                (copy / name).symlink_to("/dev/zero")
            # a wait ends at lockstep()'s timeout
            done = lockstep(command, copy, *[f"out={folder}/page.html"] * (k == 4))
            assert done.returncode == 1, done
            assert b"not a regular file" in done.stderr, done


def a_drawing_holds_text(run, folder):
    """The SVG of explain shows what a run's files say as text."""
    copy = folder / "drawn"
    shutil.copytree(run, copy)
    manifest = json.loads((copy / "run.json").read_text())
    manifest |= {"backend": "ring", "world": 2,
                 "transport": "<script>alert(1)</script>"}
    (copy / "run.json").write_text(json.dumps(manifest))
    done = lockstep("explain", copy, f"out={folder / 'page.html'}",
                    f"svg={folder / 'page.svg'}")
    assert done.returncode == 0, done
    drawing = (folder / "page.svg").read_text()
    assert "<script" not in drawing and "&lt;script" in drawing


def a_resumed_run_names_no_program(run, folder):
    """sync=lab loads a file. A resumed run cannot say which one."""
    copy = folder / "resumed"
    shutil.copytree(run, copy)
    manifest = json.loads((copy / "run.json").read_text())
    manifest["asked"] |= {"sync": "lab", "lab": str(copy / "evil.so")}
    (copy / "run.json").write_text(json.dumps(manifest))
    done = lockstep("train", f"resume={copy}", f"out={folder / 'on'}", "steps=6")
    assert done.returncode == 1 and b"sync=lab: no file" in done.stderr, done


def latest_stays_inside(run, folder):
    copy = folder / "run" / "latest"
    shutil.copytree(run, copy)
    shutil.copytree(run / "checkpoint-5", folder / "elsewhere")
    for name in ("../../elsewhere", "checkpoint-5/../../../elsewhere", ESCAPE,
                 "checkpoint-99x\nmore"):
        (copy / "latest").write_text(name)
        done = lockstep("sample", copy, "tokens=2")
        assert done.returncode == 1, done
        assert b"which is no checkpoint of this run" in done.stderr, done
        assert b"\x1b" not in done.stderr and b"more" not in done.stderr, done


def messages_move_no_cursor(folder):
    for words in (["train", ESCAPE], ["run", ESCAPE], ["sample", ESCAPE],
                  ["report", ESCAPE], [ESCAPE], ["train", f"steps={ESCAPE}"]):
        done = lockstep(*words, cwd=folder)
        assert done.returncode == 1 and b"\x1b" not in done.stderr, done
        assert "\u009b".encode() not in done.stderr, done
        assert done.stderr.count(b"\n") == 1, done


def tables_move_no_cursor(run, folder):
    copy = folder / "cursor"
    shutil.copytree(run, copy)
    manifest = json.loads((copy / "run.json").read_text())
    manifest["backend"] = ESCAPE
    manifest["effective"] |= {"net": ESCAPE}
    (copy / "run.json").write_text(json.dumps(manifest))
    ini = folder / "title.ini"
    ini.write_text(f"[experiment]\ntitle = {ESCAPE}\nrepeat = 1\nfigures = none\n"
                   "[base]\n" + "\n".join(SMALL) + "\n")
    for words in (["watch", copy, "times=1"], ["report", copy],
                  ["run", ini, f"out={folder / 'title'}"]):
        done = lockstep(*words)
        assert done.returncode == 0, done
        assert b"\x1b" not in done.stdout and "\u009b".encode() not in done.stdout


def a_comma_is_no_column(run, folder):
    copy, joined = folder / "comma", folder / "joined"
    shutil.copytree(run, copy)
    manifest = json.loads((copy / "run.json").read_text())
    manifest["effective"] |= {"net": "three,four", "wire": "five,six"}
    (copy / "run.json").write_text(json.dumps(manifest))
    done = lockstep("report", copy, run, f"out={joined}")
    assert done.returncode == 0, done
    with open(joined / "runs.csv", newline="", encoding="utf-8") as f:
        rows = list(csv.reader(f))
    assert len(rows) == 3 and len({len(row) for row in rows}) == 1, rows


def files_of(folder):
    """{path: (contents or target, time)} of all that is in a folder."""
    return {p: (os.readlink(p) if p.is_symlink() else p.is_dir() or p.read_bytes(),
                p.is_dir() or p.lstat().st_mtime_ns) for p in folder.rglob("*")}


def modules_are_not_loaded(run, folder):
    """Python takes no module from the current folder, the run's or PYTHONPATH, and
    gnuplot no commands of a file there."""
    copy = folder / "modules"
    shutil.copytree(run, copy)
    for name in ("csv.py", "json.py", "re.py", "jinja2.py", "sitecustomize.py",
                 "usercustomize.py", "lockstep/__init__.py", "lockstep/main.py",
                 "figures.py", "main.py"):
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_text(f"open({str(folder / 'PWNED')!r}, 'w')\n")
    (copy / ".gnuplot").write_text(f"system('touch {folder}/PWNED')\n")
    shutil.copy(copy / ".gnuplot", copy / "gnuplotrc")
    env = {**os.environ, "PYTHONPATH": str(copy), "PYTHONSTARTUP": str(copy / "csv.py"),
           "PYTHONHOME": "", "GNUPLOT_LIB": str(copy)}
    for words in (["report", "."], ["compare", "."], ["report", ".", "figure=loss"]):
        done = lockstep(*words, cwd=copy, env=env)
        assert done.returncode == 0 and not done.stderr, done
    assert not (folder / "PWNED").exists()


def experiment(folder, name, steps=3):
    """The INI file of a small experiment, of one cell."""
    ini = folder / f"{name}.ini"
    ini.write_text("[experiment]\nrepeat = 1\nfigures = none\n[base]\n" +
                   "\n".join(SMALL).replace("steps=5", f"steps={steps}") +
                   "\n[cell a]\nseed = 1\n")
    return ini


def runs_stay_inside(folder):
    """lockstep run follows no link out of its folder, whatever it replaces."""
    ini, outside = experiment(folder, "inside"), folder / "outside"
    outside.mkdir()
    for name in "victim", "r1/run.json", "r1/summary.json":
        (outside / name).parent.mkdir(exist_ok=True)
        (outside / name).write_text("{}")
    before = files_of(outside)
    for name, target, *words in (
            (".lock", "new"), ("cells", "."), ("cells/a", ".", "fresh=1"), ("cells/a", "."),
            ("cells/a/r1", "r1"), ("cells/a/r1", ".", "fresh=1"), ("cells/a/r1.txt", "new"),
            ("command.txt", "victim"), ("inside.ini", "victim"), ("report.html", "victim")):
        out = folder / "in"
        (out / name).parent.mkdir(parents=True)
        (out / name).symlink_to(outside / target)
        done = lockstep("run", ini, *words, f"out={out}", cwd=folder)
        assert done.returncode in (0, 1), (name, target, done)
        assert b"Traceback" not in done.stderr, (name, target, done)
        assert files_of(outside) == before, (name, target, done)
        shutil.rmtree(out)


def a_refused_run_changes_nothing(folder):
    """While a run uses a folder, another one, of the same or another experiment, is
    refused and leaves all files as they are. Of two that start at once one runs."""
    first, second = experiment(folder, "first"), experiment(folder, "second", 4)
    out = folder / "shared"
    both = [subprocess.Popen([LOCKSTEP, "run", first, f"out={out}"], text=True,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for _ in range(2)]
    said = [p.communicate(timeout=100)[1] for p in both]
    for process, text in zip(both, said):
        assert process.returncode == 0 or "another lockstep run is using" in text, said
    assert 0 in (both[0].returncode, both[1].returncode), said
    before = files_of(out)
    with open(out / ".lock", "r+b") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        for words in ([first], [second], [first, "fresh=1"], [second, "fresh=1"]):
            done = lockstep("run", *words, f"out={out}")
            assert done.returncode == 1 and files_of(out) == before, done
            assert done.stderr.count(b"\n") == 1, done
    done = lockstep("run", second, f"out={out}")
    assert done.returncode == 1 and b"ran with steps=3, now steps=4" in done.stderr
    assert files_of(out) == before
    assert lockstep("report", out).returncode == 0


def files_are_whole(folder):
    """Who reads while a report is written sees old files or new ones, but no part of
    one. A report of a run that is being written is made, or refused in a line."""
    out = folder / "shared"
    page, table = out / "report.html", out / "curves.csv"
    reports = [subprocess.Popen([LOCKSTEP, "report", out], stdout=subprocess.DEVNULL)
               for _ in range(4)]
    reads = 0
    while any(p.poll() is None for p in reports):
        assert page.read_text().endswith("</html>")
        rows = list(csv.reader(table.read_text().splitlines()))
        assert len(rows) == 4 and len({len(row) for row in rows}) == 1, rows
        reads += 1
        time.sleep(0.001)
    assert reads > 10 and not any(p.returncode for p in reports), reads
    assert not list(out.glob("**/.written-*"))
    live = folder / "being-written"
    job = subprocess.Popen([LOCKSTEP, "train", *SMALL, "steps=400", "save=20", f"out={live}"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    reported = 0
    while job.poll() is None or not reported:
        done = lockstep("report", live)
        assert done.returncode == 0 or done.stderr.count(b"\n") == 1, done
        assert b"Traceback" not in done.stderr, done
        reported += done.returncode == 0
    said = job.communicate()[1][-500:]
    done = lockstep("report", live)
    assert job.returncode == 0 and done.returncode == 0, (said, done)


def odd_names_work(folder):
    """Odd names of out=, data=, cells and titles are used as they are. Those with
    control characters are refused before anything is written."""
    folder /= "odd"  # files_of() would wait for the pipes beside it
    for i, name in enumerate((
            "größe,ışık", "x" * 200, "it's a \"quote\"; #c $(touch PWN) `touch PWN` 100% {x}",
            "=key=value")):
        home = folder / f"odd{i}" / name
        home.mkdir(parents=True)
        (home / "book.txt").write_text("it was the best of times, " * 200)
        ini = folder / f"odd{i}" / "x.ini"
        cell = name.replace("]", "").replace(";", "").replace("#", "").replace("=", "")
        ini.write_text(f"[experiment]\ntitle = {cell}\nfigures = throughput\nrepeat = 1\n"
                       f"[cell {cell}]\nmodel = nano\n[cell b]\nmodel = nano\nseed = 2\n",
                       encoding="utf-8")
        words = [w for w in SMALL if not w.startswith(("model=", "data="))]
        done = lockstep("run", ini, *words, f"data={home}/book.txt", f"out={home}/of, it")
        assert done.returncode == 0, (name, done.stderr)
        with open(home / "of, it/runs.csv", newline="", encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
        assert [r["cell"] for r in rows] == [cell, "b"], (name, rows)
        assert all(float(r["train_loss_nats"]) > 0 for r in rows), rows
        page = (home / "of, it/report.html").read_text(encoding="utf-8")
        assert html.escape(cell, quote=True).replace("&#x27;", "&#39;").replace(
            "&quot;", "&#34;") in page, name
        assert lockstep("compare", f"{home}/of, it").returncode == 0
    for words in ([ini, f"out={folder}/new\nline"], [folder / "of\na.ini"],
                  [ini, f"data={folder}/new\nline", f"out={folder}/refused"]):
        (folder / "of\na.ini").write_text(ini.read_text())
        before = files_of(folder)
        done = lockstep("run", *words, cwd=folder)
        assert done.returncode == 1 and b"control character" in done.stderr and \
            done.stderr.count(b"\n") == 1 and files_of(folder) == before, (words, done)
        assert not (folder / "runs").exists() and not (folder / "refused").exists()


def main():
    with tempfile.TemporaryDirectory(prefix="lockstep-hostile-") as name:
        folder = pathlib.Path(name)
        run = folder / "clean"
        done = lockstep("train", *SMALL, f"out={run}")
        assert done.returncode == 0, done.stderr
        a_name_is_not_a_command(run, folder)
        a_figure_is_one_of_ours(run, folder)
        a_column_is_not_a_command(run, folder)
        a_report_holds_text(run, folder)
        nothing_is_waited_for(run, folder)
        a_resumed_run_names_no_program(run, folder)
        latest_stays_inside(run, folder)
        messages_move_no_cursor(folder)
        tables_move_no_cursor(run, folder)
        a_comma_is_no_column(run, folder)
        a_drawing_holds_text(run, folder)
        modules_are_not_loaded(run, folder)
        runs_stay_inside(folder)
        a_refused_run_changes_nothing(folder)
        files_are_whole(folder)
        odd_names_work(folder)
    print("ok")


main()
