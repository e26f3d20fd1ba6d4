"""Tests that explain, train and predict read files of an unknown sender, wait for none
of them, and put nothing of them into a page but text.

    hostile_explain.py LOCKSTEP
"""

import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

LOCKSTEP = str(pathlib.Path(sys.argv[1]).resolve())
SMALL = ["model=nano", "layers=1", "context=16", "batch=1", "steps=5",
         "eval=0", "threads=1", "save=5"]
SCRIPT = "<img src=q onerror=alert(1)>"
VECTORS = ('"cells":{"ranks":1,"vectors":[{"name":"a","n":"' + SCRIPT +
           '","cuts":[0],"lanes":[]}],"states":[]}')


def lockstep(*words, **more):
    """A wait for a file ends at the timeout, with an error."""
    return subprocess.run([LOCKSTEP, *map(str, words)], capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=100, text=True,
                          check=False, **more)


def copy_of(run, folder, name):
    copy = folder / name
    shutil.copytree(run, copy)
    return copy


def data_of(page):
    return json.loads(re.search(
        r'<script id="data" type="application/json">(.*?)</script>', page, re.S)[1])


def events_are_parsed_whole(run, folder):
    """What is behind an event's object does not get into the page."""
    copy, page = copy_of(run, folder, "behind"), folder / "page.html"
    lines = (copy / "trace.json").read_text().splitlines()
    lines[1:1] = ['{"ph":"M","pid":0,"name":"z"}]},' + VECTORS +
                  ',"zz":{"q":[{"ph":"Q"},',
                  '{"ph":"M","pid":0,"tid":0,"name":"thread_name",'
                  '"args":{"name":"</script>' + SCRIPT + '"}},']
    (copy / "trace.json").write_text("\n".join(lines))
    done = lockstep("explain", copy, f"out={page}")
    assert done.returncode == 0, done
    text = page.read_text()
    assert "<img" not in text and text.count("</script>") == 2
    panel, = data_of(text)["panels"]
    assert "cells" not in panel
    names = [e["args"]["name"] for e in panel["trace"]["traceEvents"]
             if e["name"] == "thread_name"]
    assert "</script>" + SCRIPT in names  # text, which the page escapes


def memory_is_bounded(run, folder):
    """A line or a file that is too large is refused."""
    copy = copy_of(run, folder, "long")
    (copy / "trace.json").write_text('{"ph": "X", "name": "' + "a" * 70000 + '"}\n')
    done = lockstep("explain", copy, f"out={folder / 'page.html'}")
    assert done.returncode == 1 and "line 1 is not text of less than" in done.stderr
    free = int(re.search(r"MemAvailable: *(\d+) kB",
                         pathlib.Path("/proc/meminfo").read_text())[1]) * 1024
    large = free // 12
    for name, size, status in (("trace.json", free, 1), ("steps.csv", 1 << 40, 1),
                               ("breakdown.csv", large, 0)):  # it is optional
        copy = copy_of(run, folder, f"large-{name}")
        os.truncate(copy / name, size)  # zeros, which take no space on the disk
        done = lockstep("explain", copy, f"out={folder / 'page.html'}")
        assert done.returncode == status, done
        assert not status or re.search("larger than|more than", done.stderr), done
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    assert most < large // 2, (most, large)


def zeros_end_a_file(run, folder):
    """A sparse file of a tebibyte is not read to its end."""
    for name in "steps.csv", "trace.json", "util.csv":
        copy = copy_of(run, folder, f"zeros-{name}")
        os.truncate(copy / name, 1 << 40)
        done = lockstep("train", *SMALL, "resume=auto", f"out={copy}", "steps=6")
        assert done.returncode == 0, (name, done)
    hosts = folder / "hosts"
    hosts.write_text("localhost slots=2\n")
    os.truncate(hosts, 1 << 40)
    done = lockstep("train", *SMALL, "sync=sps", "workers=2", f"hosts={hosts}",
                    f"out={folder / 'placed'}")
    assert done.returncode == 0, done


def endless(path):
    """Replace a file by ones that give no data, and by one that never ends."""
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    yield path
    path.unlink()
    path.symlink_to("/dev/zero")
    yield path
    path.unlink()


def nothing_is_waited_for(run, folder):
    for name in "trace.json", "steps.csv", "run.json", "summary.json":
        copy = copy_of(run, folder, f"explain-{name}")
        for _ in endless(copy / name):
            done = lockstep("explain", copy, f"out={folder / 'page.html'}")
            assert done.returncode == 1, (name, done)
            assert re.search("not a regular file|a symbolic link", done.stderr), (name, done)
    for name in ("trace.json", "steps.csv", "run.json", "util.csv"):
        copy = copy_of(run, folder, f"resume-{name}")
        for _ in endless(copy / name):
            done = lockstep("train", *SMALL, "resume=auto", f"out={copy}", "steps=6")
            assert done.returncode == 1, (name, done)
            assert re.search("not a regular file|a symbolic link", done.stderr), (name, done)
    copy = copy_of(run, folder, "resumed")
    for _ in endless(copy / "run.json"):
        done = lockstep("train", f"resume={copy}", f"out={folder / 'on'}", "steps=6")
        assert done.returncode == 1 and "not a regular file" in done.stderr, done
    for path in endless(folder / "file"):
        for words in (["train", path], ["train", *SMALL, "sync=sps", "workers=2",
                                        f"hosts={path}"],
                      ["predict", "compute_ms=9", f"link={path}"],
                      ["predict", "compute_ms=9", "hosts=2", f"link={path}"]):
            done = lockstep(*words, cwd=folder)
            assert done.returncode == 1, (words, done)
            assert "not a regular file" in done.stderr, (words, done)


def main():
    with tempfile.TemporaryDirectory(prefix="lockstep-hostile-") as name:
        folder = pathlib.Path(name)
        run = folder / "clean"
        done = lockstep("train", *SMALL, f"out={run}")
        assert done.returncode == 0, done.stderr
        events_are_parsed_whole(run, folder)
        memory_is_bounded(run, folder)
        zeros_end_a_file(run, folder)
        nothing_is_waited_for(run, folder)
    print("ok")


main()
