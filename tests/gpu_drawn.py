"""Checks a GPU's figures with an emulated GPU and a fake NVML.

    gpu_drawn.py LOCKSTEP FOLDER_OF_NVML

Two workers train on the emulated GPU. The fake NVML always reports 37%, which
differs from the share in which the host computes and from the share in which the
GPU computes. gpu_timeline must show 37, and util_timeline the GPU's share.
"""

import csv
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

LOCKSTEP, NVML = map(os.path.abspath, sys.argv[1:])


def drawn(name, run):
    with open(run / "figures" / f"{name}.csv", newline="") as f:
        return [(float(r["x"]), float(r["y"])) for r in csv.DictReader(f)]


def samples(run, rank, metric):
    with open(run / "util.csv", newline="") as f:
        return [(float(r["t_s"]), float(r["value"])) for r in csv.DictReader(f)
                if r["rank"] == str(rank) and r["metric"] == metric]


def close(a, b):
    return abs(a[0] - b[0]) < 1e-3 and abs(a[1] - 100 * b[1]) < 1e-2


def main():
    with tempfile.TemporaryDirectory(prefix="lockstep-gpu-") as name:
        folder = pathlib.Path(name)
        run = folder / "run"
        done = subprocess.run(
            [LOCKSTEP, "train", "device=cuda", "sync=ring", "workers=2",
             "model=nano", "layers=1", "channels=32", "heads=2", "context=16",
             "batch=1", "steps=2", "warmup=0", "eval=0", "threads=1",
             f"out={run}"],
            env=dict(os.environ, LD_LIBRARY_PATH=NVML), capture_output=True,
            text=True, timeout=250)
        assert done.returncode == 0, done.stderr
        done = subprocess.run([LOCKSTEP, "report", str(run)],
                              capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        for rank in range(2):
            said = samples(run, rank, "gpu_util_share")
            assert said and all(v == .37 for _, v in said), said
        with open(run / "workers.csv", newline="") as f:
            rows = list(csv.DictReader(f))
        assert all(0 < float(r["utilisation"]) < 1.1 and r["gpu_comm"] == "0"
                   for r in rows), rows
        if not shutil.which("gnuplot"):
            print("no gnuplot: figures not drawn")
            return
        assert (run / "figures" / "gpu_timeline.png").exists()  # not asked for
        said = [v for _, v in drawn("gpu_timeline", run)]
        assert 37 in said, said
        for rank in range(2):
            gpu = samples(run, rank, "gpu_compute_share")
            points = drawn("util_timeline", run)
            assert gpu and all(any(close(p, g) for p in points) for g in gpu), \
                (gpu, points)


main()
