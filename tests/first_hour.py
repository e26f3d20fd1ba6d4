#!/usr/bin/env python3
"""first_hour.py TREE BIN - run every command of docs/first_hour.md and tour.md.

BIN has the programs. The test makes a folder with the files of the tree that the
pages need. There it writes the files that a page shows and runs its ```sh commands,
in the page's order. Each command must succeed and leave what the page says.

With LOCKSTEP_LONG=1 everything runs unchanged, in a copy of the tree. Without it,
words added to the commands make training shorter, and the section that builds a
backend is left out.
"""

import csv
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PAGES = ("docs/first_hour.md", "docs/tour.md")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)
NAMED = re.compile(r"[;#] ([\w/]+\.\w+)")
LONG = os.environ.get("LOCKSTEP_LONG") == "1"
NEEDED = ("plots", "experiments", "docs", "study", "README.md", "CMakeLists.txt",
          "core/config/backends.def", "core/virtual/page.html")

# {beginning of a command: words to add at its end}; the last word wins
SMALL = "layers=1 heads=1 channels=8 context=16 batch=2"
SHORTER = {
    "lockstep train data=": f"steps=4 save=4 eval=2 eval_batches=1 {SMALL}",
    "lockstep train resume=": "steps=12",
    "lockstep train runs/": f"steps=4 {SMALL}",
    "lockstep train model=nano workers": "steps=2",
    "lockstep sample": "tokens=20",
    "lockstep run": f"steps=4 warmup=1 repeat=1 eval=0 {SMALL}",
}


def parts(page):
    """(language, text) of each fenced block that this test runs."""
    text = page.read_text()
    if not LONG:
        text = re.sub(r"^## Your own way of agreeing.*", "", text,
                      flags=re.M | re.S)
    return FENCE.findall(text)


def run(command, folder, env):
    if not LONG:
        more = [w for start, w in SHORTER.items() if command.startswith(start)]
        command = " ".join([command, *more])
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=3000,
                          errors="replace",
                          check=False)
    print(f"$ {command}\n{done.stdout[-2000:]}", flush=True)
    assert done.returncode == 0, f"{command}: status {done.returncode}"


def follow(page, folder, env):
    for language, text in parts(page):
        if language == "sh":
            for command in text.splitlines():
                run(command, folder, env)
        else:
            name = NAMED.match(text).group(1)
            (folder / name).write_text(text)


def bucket_of_the_tour(folder):
    """The example has the parameters, buckets and bytes that the tour says."""
    about = json.loads((folder / "runs/tour/run.json").read_text())
    assert about["model"]["parameters"] == 834304, about["model"]
    assert about["model"]["buckets"] == 4, about["model"]
    with open(folder / "runs/tour/steps.csv", newline="") as f:
        for row in csv.DictReader(f):
            assert (row["bytes_tx"], row["head_tx"]) == ("3337216", "224"), row


def opened(folder):
    """The page's lines print every tensor, with its type, shape and first numbers."""
    run_folder = folder / "runs/book"
    latest = (run_folder / "latest").read_text().strip()
    said = subprocess.run([sys.executable, "runs/open.py", f"runs/book/{latest}"],
                          cwd=folder, capture_output=True, text=True, check=True)
    shapes = re.findall(r"^(\S+) F32 \[([\d, ]+)\] \[", said.stdout, re.M)
    assert "wte.weight" in dict(shapes), said.stdout
    count = sum(math.prod(map(int, shape.split(","))) for _, shape in shapes)
    about = json.loads((run_folder / "run.json").read_text())
    assert count == about["model"]["parameters"], (count, about["model"])


def results(folder):
    """The commands leave the files that the first hour says."""
    assert (folder / "runs/longer/report.html").exists()
    if shutil.which("gnuplot"):
        figure = folder / "runs/buckets/figures/buckets.svg"
        assert "milliseconds" in figure.read_text(), figure
    if LONG:
        one, two = ((folder / f"runs/{name}/summary.json").read_text()
                    for name in ("mine", "ring"))
        same = [json.loads(text)["final_train_loss"] for text in (one, two)]
        assert same[0] == same[1], same


def tree_for(source, binary, folder):
    """Make the folder, and return that of its programs. From there they find the
    rest of the tree."""
    if LONG:
        ignored = shutil.ignore_patterns("build", "runs", ".*")
        shutil.copytree(source, folder, ignore=ignored)
        (folder / "runs").mkdir()
    else:
        for name in NEEDED:
            to = folder / name
            to.parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (source / name).is_dir() else shutil.copy
            copy(source / name, to)
    programs = folder / "build/release/bin"
    programs.mkdir(parents=True)
    (programs.parent / "share").mkdir()
    (programs.parent / "share/lockstep").symlink_to(folder)
    for name in ("lockstep", "trainer", "ps_server", "explain_way"):
        shutil.copy2(binary / name, programs)
    return programs


def main():
    source, binary = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    if not shutil.which("mpirun"):
        print("skipped: no mpirun")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="lockstep-hour-") as name:
        folder = pathlib.Path(name) / "tree"
        programs = tree_for(source, binary, folder)
        env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}",
               "LC_ALL": "C.UTF-8"}
        for page in PAGES:
            follow(source / page, folder, env)
        bucket_of_the_tour(folder)
        opened(folder)
        results(folder)
    print("passed: every command of the pages")


if __name__ == "__main__":
    main()
