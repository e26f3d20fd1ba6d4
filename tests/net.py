#!/usr/bin/env python3
"""net.py LOCKSTEP - net=RATE stops a job that cannot have emulated links, and
net=?RATE lets it go on without them. As root, both have them."""

import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

MODEL = ("model=nano layers=1 heads=1 channels=8 context=8 vocab_size=256 batch=2 "
         "threads=1 eval=0 log=0 samples=0 timeout=30 data=text.txt sync=sps workers=2 "
         "steps=2").split()
CAPBSET_DROP, NET_ADMIN, SYS_ADMIN = 24, 12, 21


def without_rights():
    """In the child: the programs that it runs may not make network namespaces."""
    for capability in NET_ADMIN, SYS_ADMIN:
        ctypes.CDLL(None).prctl(CAPBSET_DROP, capability, 0, 0, 0)


class Job:
    def __init__(self, lockstep, folder):
        self.lockstep, self.folder = lockstep, folder

    def run(self, *words, rights=False, text=None):
        return subprocess.run([self.lockstep, *words], capture_output=True, text=True,
                              input=text, cwd=self.folder, check=False,
                              preexec_fn=None if rights else without_rights)

    def plan(self, *words, rights=False):
        done = self.run("plan", text=json.dumps(words), rights=rights)
        return json.loads(done.stdout)

    def nets(self, out):
        run = json.loads(pathlib.Path(self.folder, out, "run.json").read_text())
        return run["asked"]["net"], run["effective"]["net"], run["law"]["exchange_s"]


def judge_without(job):
    why = ("net=1gbit needs root to make network namespaces; try: sudo, or net=?1gbit "
           "to go without a network if there is none")
    done = job.run("train", *MODEL, "net=1gbit", "out=never")
    assert done.returncode == 1 and done.stdout == "", done
    assert done.stderr == f"lockstep: {why}\n", done.stderr
    assert not os.path.exists(job.folder + "/never")
    assert job.plan(*MODEL, "net=1gbit") == {"error": why}
    assert job.plan(*MODEL, "net=?1gbit")["effective"]["net"] == "unshaped"
    assert "want RATE" in job.plan(*MODEL, "net=?fast")["error"]
    for words in ["train", *MODEL, "net=?1gbit"], ["train", "once/run.json"]:
        out = "again" if "once/run.json" in words else "once"
        done = job.run(*words, f"out={out}")
        assert done.returncode == 0, done
        assert "uses unshaped links instead of net=1gbit" in done.stderr, done.stderr
        assert job.nets(out) == ("?1gbit", "unshaped", None), job.nets(out)


def judge_with(job):
    """Times of messages of S = 2000 floats in 2 messages, of 100 us each."""
    done = job.run("train", *MODEL, "net=?1gbit", "out=shaped", rights=True)
    assert done.returncode == 0, done
    if "unshaped" in done.stderr:
        print("skipped, as root without network namespaces:", done.stderr)
        return
    asked, effective, seconds = job.nets("shaped")
    assert (asked, effective) == ("?1gbit", "1gbit") and seconds > 2e-4, seconds
    for sync, workers, net, share, hops in [
            ("ring", 4, "100mbit,hosts=4", 1.5, 6),
            ("sps", 4, "100mbit", 8, 2),
            ("dps", 4, "100mbit", 1.5, 2),
            ("dps servers=2", 4, "100mbit,hosts=6", 4, 2),
            ("ring wire=fp16 transport=tcp", 4, "100mbit", 0.75, 6)]:
        words = f"sync={sync} workers={workers} net={net} channels=64 layers=2".split()
        law = job.plan(*MODEL[:4], "vocab_size=256", *words, rights=True)["law"]
        ring = job.plan(*MODEL[:4], "vocab_size=256", "sync=ring", "workers=2",
                        "channels=64", "layers=2", rights=True)["law"]
        bytes_of_all = ring["bytes_tx"]  # 2(n-1)/n S is S
        want = hops * 100e-6 + share * bytes_of_all * 8 / 0.957e8
        assert abs(law["exchange_s"] / want - 1) < 0.05, (sync, law, want)
    for words in ("sync=sps net=1gbit,hosts=2", "sync=dps servers=1 net=1gbit"):
        law = job.plan(*MODEL[:4], "vocab_size=256", "workers=2", *words.split(),
                       rights=True)["law"]
        assert law["exchange_s"] is None, law  # the server is beside one of the workers


def judge_bytes(job):
    """The bytes that workers count are those of the law, with servers on the workers'
    hosts and on hosts of their own."""
    for hosts, share in (3, 4 / 3), (6, 1):
        out = f"hosts{hosts}"
        done = job.run("train", *MODEL, "sync=dps", "workers=3", "servers=3",
                       f"net=?1gbit,hosts={hosts}", f"out={out}", rights=True)
        assert done.returncode == 0, done
        if "unshaped" in done.stderr:
            return
        run, summary = (json.loads(pathlib.Path(job.folder, out, name).read_text())
                        for name in ("run.json", "summary.json"))
        law = run["law"]["bytes_tx"]
        assert abs(law / (4 * run["model"]["parameters"] * share) - 1) < 0.01, (law, run)
        assert abs(summary["bytes_tx_per_worker_step"]["push"] / law - 1) < 0.01, (
            hosts, summary["bytes_tx_per_worker_step"], law)


def judge_blank(job):
    """mpirun reaches emulated hosts by `lockstep`, whose folder may have a blank in its
    name."""
    programs = pathlib.Path(job.folder, "a folder")
    programs.mkdir()
    for name in "lockstep", "trainer":
        shutil.copy(pathlib.Path(job.lockstep).with_name(name), programs / name)
    os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=0")  # Open MPI leaks
    done = Job(str(programs / "lockstep"), job.folder).run(
        "train", *MODEL, "sync=allreduce", "net=?1gbit", "out=blank", rights=True)
    assert done.returncode == 0, done


def main():
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "text.txt").write_text("the quick brown fox " * 500)
        job = Job(sys.argv[1], folder)
        judge_without(job)
        if os.geteuid() == 0:
            judge_with(job)
            judge_bytes(job)
            judge_blank(job)
    print("net=RATE and net=?RATE")


if __name__ == "__main__":
    main()
