"""Tests that a run's files from an unknown sender can do no harm: Lockstep reads
them, does not run them and never waits for them.

    hostile.py LOCKSTEP
"""

import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

LOCKSTEP = str(pathlib.Path(sys.argv[1]).resolve())
SMALL = ["model=nano", "layers=1", "context=16", "batch=1", "steps=5",
         "eval=0", "threads=1", "save=5"]
ESCAPE = "\x1b[31mred\u009b"


def lockstep(*words, **more):
    return subprocess.run([LOCKSTEP, *map(str, words)], capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=100, **more)


def a_name_is_not_a_command(run, folder):
    """The name of a folder or cell with a quote is not run by a shell."""
    for name in ("it's; touch PWNED;'", '"; touch PWNED; "', "$(touch PWNED)"):
        copy = folder / name
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
    assert done.returncode == 1 and b"only a part of other" in done.stderr, done
    assert not list(folder.glob("**/PWNED"))


# SVG that does more than draw, or is not well formed.
ACTIVE = ("<svg><script>alert(2)</script></svg>", "<svg><g onwheel='x()'></g></svg>",
          "<svg/onload=x()>", "<svg><a xlink:href='java&#115;cript:x()'>y</a></svg>",
          "<svg><style>@import 'http://x/y'</style></svg>",
          "<svg><image src='http://x/y.png'/></svg>",
          "<svg><use xlink:HREF='http://x/y.svg'/></svg>",
          "<svg><g fill='url(http://x)'></g></svg>", "<svg><g style='x'></g></svg>",
          "<svg><g fill=onwheel></g></svg>", "<svg><g")


# Figures' scripts pass words of a column, and folders, to awk in a shell. {word}
# is such a word.
WORD = "x';touch${IFS}PWNED;'"
COLUMNS = {
    "pipeline": ("timetable.csv", "schedule,stage,action,micro,chunk,begin_ms,end_ms\n"
                 "{word},0,forward,0,0,0,10\n"),
    "heatmap": ("sweep.csv", "series,x_key,y_key,x,y,a,b,c\n{word},k,k,1,1,1,1,1\n"),
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
    for text in ACTIVE:
        for name in "loss", "util_timeline", "breakdown":
            (plots / f"{name}.gp").write_text(f'set print ARG2\nprint "{text}"\n')
        done = lockstep("report", copy,
                        env={**os.environ, "LOCKSTEP_PLOTS": str(plots)})
        assert done.returncode == 0, done.stderr
        page = (copy / "report.html").read_text()
        assert "<script" not in page and "<svg" not in page, text
        assert page.count("&lt;script&gt;alert(1)") > 3
        assert b"more than a drawing" in done.stderr, done.stderr


def nothing_is_waited_for(run, folder):
    """A file that never ends, or gives no data, is refused at once."""
    for k, name in enumerate(("run.json", "summary.json", "steps.csv",
                              "util.csv")):
        for how in "fifo", "zero":
            copy = folder / f"endless{k}{how}"
            shutil.copytree(run, copy)
            (copy / name).unlink()
            if how == "fifo":
                os.mkfifo(copy / name)
            else:
                (copy / name).symlink_to("/dev/zero")
            for command in "report", "compare":
                done = lockstep(command, copy)  # a wait ends at lockstep()'s timeout
                assert done.returncode == 1, done
                assert b"not a regular file" in done.stderr, done
    for k, source in enumerate((None, "/dev/zero")):
        copy = folder / f"endless-trace{k}"
        shutil.copytree(run, copy)
        (copy / "trace.json").unlink()
        if source:
            (copy / "trace.json").symlink_to(source)
        else:
            os.mkfifo(copy / "trace.json")
        done = lockstep("explain", copy, f"out={folder / 'page.html'}")
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
    for name in "../../elsewhere", "checkpoint-5/../../../elsewhere", ESCAPE:
        (copy / "latest").write_text(name)
        done = lockstep("sample", copy, "tokens=2")
        assert done.returncode == 1, done
        assert b"which is no checkpoint of this run" in done.stderr, done
        assert b"\x1b" not in done.stderr, done


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
    print("ok")


main()
