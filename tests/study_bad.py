"""What study.py tests of experiments and folders that are refused."""


def bad_input(lockstep, folder):
    """`lockstep` runs a command, as in study.py."""
    cases = {
        "[experiment]\nrepeat = 0\n": "repeat=0",
        "[experiment]\nfigures = lossy\n": "figures=lossy",
        "[experiment]\nwhat = x\n": "[experiment] what",
        "[elsewhere]\na = b\n": "[elsewhere]",
        "[base]\nbatsh = 3\n": "batch",
        "[matrix]\nbatch =\n": "batch: no values",
        "[matrix]\nbatch = 1, x\n": "batch=x",
        "[matrix]\nbatch = 1 (log=1\n": "must be VALUE or VALUE (key=value ..)",
        "[matrix]\nbatch = 1 (log=x)\n": "log=x",
        "[cell a]\nseed = 1\n[cell a]\nseed = 2\n": "[cell a] stands twice",
        "[base]\nseed = 1\n[base]\nseed = 2\n": "[base] stands twice",
        "[base]\nseed = 1\nlog = 2\nseed = 1\n":
            "bad.ini:4: [base] seed stands twice, first in line 2; try: ",
        "[matrix]\nbatch = 1\nbatch = 2\n": "[matrix] batch stands twice, first in line 2",
        "[cell a]\nlr = 1\n; x\nlr = 2\n": "bad.ini:4: [cell a] lr stands twice",
        "[base]\n= 2\n": "not key = value",
        "[base]\nout = x\n": "try: lockstep run FILE out=DIR",
        f"[experiment]\nrepeat = {'1' * 5000}\n": "must be 1 .. 1000",
    }
    path = folder / "bad.ini"
    for text, expect in cases.items():
        path.write_text(text)
        done = lockstep("run", path, f"out={folder / 'bad'}")
        assert done.returncode == 1 and expect in done.stderr, \
            (text, done.stderr)
        assert not (folder / "bad").exists()
    (folder / "empty.ini").write_text("[base]\n")
    for words in (["run", folder / "absent.ini"], ["report", folder],
                  ["run", folder], ["run", folder / "empty.ini"],
                  ["compare", folder / "absent"]):
        done = lockstep(*words, cwd=folder)
        assert done.returncode == 1 and done.stderr.count("\n") == 1, done
    assert f"{folder}: a folder; try: " in lockstep("run", folder).stderr
    (folder / "a run").mkdir()
    (folder / "a run/run.json").touch()
    path.write_text("[base]\nseed = 1\n")
    done = lockstep("run", path, f"out={folder / 'a run'}")
    assert done.returncode == 1 and "holds a run of lockstep train" in done.stderr, done
    assert len(list((folder / "a run").iterdir())) == 1
    done = lockstep("train", path, f"out={folder / 'out'}")
    assert done.returncode == 1 and "holds an experiment" in done.stderr, done
    path.write_text("[experiment]\ntitle = x\n")
    assert f"try: lockstep run {path}" in lockstep("train", path).stderr
    done = lockstep("report", folder / "out", "figures=none")
    assert done.returncode == 1 and "figures=none: no such folder, and report takes only " \
        "out=, figure=, size= and step=" in done.stderr, done
