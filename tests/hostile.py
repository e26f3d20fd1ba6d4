"""Folders and files from strangers: they are read, never run, never waited for.

    hostile.py LOCKSTEP
"""

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
    """A quote in the name of a folder or of a cell reaches no shell."""
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
        assert done.returncode == 1 and b"not the name of" in done.stderr, done
    assert not list(folder.glob("**/PWNED"))


def a_report_holds_text(run, folder):
    """What a run's files say is shown, as text; a drawing is only that."""
    copy = folder / "markup"
    shutil.copytree(run, copy)
    text = (copy / "run.json").read_text()
    (copy / "run.json").write_text(
        text.replace('"started"', '"<script>alert(1)</script>"', 1))
    plots = folder / "plots"
    plots.mkdir()
    for name in "loss", "util_timeline", "breakdown":
        (plots / f"{name}.gp").write_text(
            'set print ARG2\nprint "<svg><script>alert(2)</script></svg>"\n')
    done = lockstep("report", copy,
                    env={**os.environ, "LOCKSTEP_PLOTS": str(plots)})
    assert done.returncode == 0, done.stderr
    page = (copy / "report.html").read_text()
    assert "<script" not in page and "&lt;script&gt;alert(1)" in page
    assert b"holds more than a drawing" in done.stderr, done.stderr


def nothing_is_waited_for(run, folder):
    """What never ends, or never begins, is refused at once."""
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
                done = lockstep(command, copy)  # its own limit ends the test
                assert done.returncode == 1, done
                assert b"not a regular file" in done.stderr, done


def a_resumed_run_names_no_program(run, folder):
    """sync=lab loads a file: which one does not come from the folder."""
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


def main():
    with tempfile.TemporaryDirectory(prefix="lockstep-hostile-") as name:
        folder = pathlib.Path(name)
        run = folder / "clean"
        done = lockstep("train", *SMALL, f"out={run}")
        assert done.returncode == 0, done.stderr
        a_name_is_not_a_command(run, folder)
        a_figure_is_one_of_ours(run, folder)
        a_report_holds_text(run, folder)
        nothing_is_waited_for(run, folder)
        a_resumed_run_names_no_program(run, folder)
        latest_stays_inside(run, folder)
        messages_move_no_cursor(folder)
    print("ok")


main()
