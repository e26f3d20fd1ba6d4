#!/usr/bin/env python3
"""watch.py LOCKSTEP - watch shows a run from the ends of its files and how old its
newest row is, ends with the run, and ends when a run was stopped."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HEAD = ("run,backend,rank,step,tokens,loss,t_step_us,t_compute_us,val_loss\n")
ESCAPE = "\x1b[2Jx\u009b1m"


class Run:
    """A folder as a job of `workers` workers leaves it, `ago` seconds ago."""

    def __init__(self, folder, workers, compute_us=lambda rank: 4000):
        self.folder, self.workers = folder, workers
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps(
            {"backend": "ring" + ESCAPE, "world": workers, "effective": {"steps": 40}}))
        for rank in range(workers):
            rows = [f"run,ring,{rank},{k},{96 * k},1.0,10000,{compute_us(rank)},\n"
                    for k in range(1, 801)]
            # the last row is not complete: it does not count
            (folder / f"steps.{rank}.csv").write_text(HEAD + "".join(rows) + "run,ri")
            (folder / f"util.{rank}.csv").write_text(
                "t_s,rank,metric,value\n" + f"0.1,{rank},compute_share,0.1\n" * 3000
                + f"9.0,{rank},compute_share,0.8\n9.0,{rank},resident_bytes,{3 << 20}\n"
                f"9.1,{rank},comp")

    def age(self, seconds):
        """Makes all files older by so many seconds."""
        for path in self.folder.iterdir():
            at = path.stat().st_mtime - seconds
            os.utime(path, (at, at))


def watch(*words, status=0):
    done = subprocess.run([sys.argv[1], "watch", *map(str, words)],
                          capture_output=True, text=True, check=False)
    assert done.returncode == status, (words, done)
    return done


def shows_every_worker(folder):
    run = Run(folder / "live", 3, lambda rank: 8000 if rank == 2 else 4000)
    (run.folder / "util.s0.csv").write_text("t_s,rank,metric,value\n"
                                            "9.0,s0,compute_share,0.25\n")
    said = watch(run.folder, "times=2", "every=0.05").stdout
    assert len(re.findall(r"3 workers, step 800 of 40, last row \d+ s ago\n",
                          said)) == 2, said
    assert "9600 tokens/s" in said and "-: not measured, or not yet" in said, said
    for row in (r"worker 0 +\[#{16}\.{4}\] +80% +800 +3200 +1.0000 +3 MiB$",
                r"worker 2 .* slow: computes 2.0 times as long as the median",
                r"server 0 +\[#{5}\.{15}\] +25% "):
        assert re.search(row, said, re.M), (row, said)
    (run.folder / "summary.json").write_text("{}")
    run.age(1000)
    said = watch(run.folder).stdout  # it ends by itself
    assert ", over\n" in said and "ago" not in said, said


def ends_when_nothing_comes(folder):
    run = Run(folder / "stopped", 2)
    run.age(1000)
    done = watch(run.folder, status=1)
    assert re.search(r"step 800 of 40, last row 10\d\d s ago\n", done.stdout), done
    assert re.search(r"stopped: nothing came for 10\d\d s, and there is no "
                     r"summary.json: the run was stopped, or it hangs\n$",
                     done.stderr), done
    (run.folder / "util.1.csv").touch()  # slow steps, but the run is alive
    said = watch(run.folder, "times=1").stdout
    assert re.search(r"last row 10\d\d s ago\n", said), said
    cell = Run(folder / "exp" / "cells" / "a" / "r1", 1)  # between two cells
    (cell.folder / "summary.json").write_text("{}")
    cell.age(1000)
    said = watch(folder / "exp", "times=2", "every=0.05").stdout
    assert said.count("/cells/a/r1: ") == 2 and "over" not in said, said
    (folder / "exp" / "table.csv").write_text("")
    assert ", over\n" in watch(folder / "exp").stdout
    assert "no run has begun" in watch(folder, status=1).stderr


def moves_no_cursor(folder):
    run = Run(folder / ("cursor" + ESCAPE), 1)
    run.age(1000)
    done = watch(run.folder, status=1)
    for text in done.stdout, done.stderr:
        assert "cursor?[2Jx?1m: " in text, done
        assert "\x1b" not in text and "\u009b" not in text, done
    assert "ring?[2Jx?1m, 1 worker" in done.stdout, done


def main():
    with tempfile.TemporaryDirectory() as top:
        for judge in shows_every_worker, ends_when_nothing_comes, moves_no_cursor:
            judge(pathlib.Path(top))
    print("watch shows and ends")


if __name__ == "__main__":
    main()
