"""Tests that runs of before are not taken for those of now: if the data, the build, or
the files of init= and lab= have changed since, lockstep run stops and changes nothing.

    study_since.py LOCKSTEP
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

LOCKSTEP = str(pathlib.Path(sys.argv[1]).resolve())
SOURCE = pathlib.Path(__file__).resolve().parents[1]
INI = """[experiment]
figures = none
repeat = 2
[base]
data = {0}/book.txt
model = nano
layers = 1
context = 16
threads = 1
batch = 2
steps = 3
eval = 0
[cell a]
sync = local
[cell b]
init = {0}/weights/checkpoint-3/model.safetensors
"""


def lockstep(*words, status=0):
    done = subprocess.run([LOCKSTEP, *map(str, words)], capture_output=True, text=True,
                          timeout=250, env={**os.environ, "LOCKSTEP": LOCKSTEP})
    assert done.returncode == status, (words, done.stdout, done.stderr)
    return done


def files_of(folder):
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def same_as_then(words, out):
    done = lockstep("run", *words)
    count = len(list(out.glob("cells/*/r*/run.json")))
    assert f"{count} of {count} runs are done already" in done.stderr, done.stderr


def changed(words, out, what):
    before = files_of(out)
    done = lockstep("run", *words, status=1)
    assert f": its {what} changed since (then " in done.stderr and \
        "fresh=1" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert files_of(out) == before
    lockstep("report", out)  # what ran then


def weights(folder, seed):
    lockstep("train", f"data={folder}/book.txt", "model=nano", "layers=1", "context=16",
             "batch=2", "threads=1", "steps=3", "eval=0", "save=3", f"seed={seed}",
             f"out={folder}/weights")


def revision(out, change):
    """Runs of another build."""
    for path in out.glob("cells/*/r*/run.json"):
        about = json.loads(path.read_text())
        about["revision"] = change(*about["revision"].split("+"))
        path.write_text(json.dumps(about))


def of_files(folder):
    book, ini, out = folder / "book.txt", folder / "x.ini", folder / "x"
    text = "it was the best of times, " * 500
    book.write_text(text)
    weights(folder, 1)
    ini.write_text(INI.format(folder))
    words = ini, f"out={out}"
    lockstep("run", *words)
    same_as_then(words, out)
    book.write_text(text.replace("best", "worst"))
    changed(words, out, "data")
    book.write_text(text)
    same_as_then(words, out)
    shutil.rmtree(folder / "weights")
    weights(folder, 2)
    changed(words, out, "init")
    lockstep("run", *words, "fresh=1")
    same_as_then(words, out)
    revision(out, lambda commit, sources: f"1234567.dirty+{sources}")
    same_as_then(words, out)  # what was committed since changes no build
    revision(out, lambda commit, sources: f"{commit}+00000000")
    changed(words, out, "build")
    lockstep("run", *words, "fresh=1")
    os.environ["OMP_WAIT_POLICY"] = "active"
    changed(words, out, "OMP_WAIT_POLICY")
    del os.environ["OMP_WAIT_POLICY"]
    same_as_then(words, out)
    book.unlink()
    done = lockstep("run", *words, status=1)
    assert "cell a: data=" in done.stderr and "No such file" in done.stderr, done.stderr


def of_a_lab(folder):
    lab, out = folder / "labs/04/lab.so", folder / "y"
    subprocess.run([SOURCE / "labs/grade", "4", SOURCE / "labs/04-ring/reference.c", "--out",
                    folder / "labs", "--train", "steps=1", "context=16", "threads=1",
                    "eval=0"], env={**os.environ, "LOCKSTEP": LOCKSTEP}, check=True,
                   capture_output=True, timeout=250)
    (folder / "y.ini").write_text(
        "[experiment]\nfigures = none\nrepeat = 1\n[base]\nmodel = nano\nlayers = 1\n"
        "context = 16\nthreads = 1\nbatch = 2\nsteps = 3\neval = 0\nsync = lab\n"
        "workers = 2\n")
    words = folder / "y.ini", f"lab={lab}", f"out={out}"
    lockstep("run", *words)
    same_as_then(words, out)
    lab.write_bytes(lab.read_bytes() + b"\0")
    changed(words, out, "lab")


def main():
    with tempfile.TemporaryDirectory(prefix="lockstep-since-") as name:
        of_files(pathlib.Path(name))
        of_a_lab(pathlib.Path(name))
    print("ok")


main()
