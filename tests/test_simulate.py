"""lockstep simulate, where SimGrid is: the law, sums, and wrong words.

    test_simulate.py BIN        exit status 77 where there is no simulator
"""

import csv
import pathlib
import shutil
import subprocess
import sys
import tempfile

BIN = pathlib.Path(sys.argv[1]).resolve()


def simulate(folder, *words):
    return subprocess.run([BIN / "lockstep", "simulate", *words,
                           f"out={folder}"],
                          capture_output=True, text=True, timeout=250)


def rows(folder, *words):
    done = simulate(folder, *words)
    assert done.returncode == 0, done.stderr
    with open(folder / "simulate.csv", newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def test_law(folder):
    """Without contention every backend takes what the law says. Slices that
    servers may have under way share the link here and come in together, and
    until credits are back it idles."""
    words = "workers=4,16", "mb=498", "link=25gbit", "alpha_us=50"
    seen = rows(folder, *words, "sync=ring,allreduce")
    assert len(seen) == 4, seen
    for row in seen:
        assert abs(float(row["ratio"]) - 1) < 0.01, row
    seen = rows(folder, *words, "sync=sps,dps", "slice_kb=1024")
    assert len(seen) == 4, seen
    for row in seen:
        assert 1 <= float(row["ratio"]) < 1.15, row
    for algorithm in "ring", "halving":
        for row in rows(folder, "workers=8", "sync=allreduce", "mb=8",
                        f"algorithm={algorithm}"):
            assert abs(float(row["ratio"]) - 1) < 0.05, row


def test_latency(folder):
    """With next to no bytes only the messages count: 2(n-1) of them."""
    for row in rows(folder, "workers=2,64", "sync=ring", "mb=0.001",
                    "alpha_us=1000"):
        n = int(row["workers"])
        hops = float(row["simulated_s"]) / 1e-3
        assert 2 * (n - 1) <= hops < 2 * (n - 1) + 1.1, row


def test_sums(folder):
    """Real numbers: simulate_job looks at every sum on every rank."""
    for more in [], ["slice_kb=1"], ["bucket_mb=0.002"]:
        assert len(rows(folder, "workers=2,4,8", "sync=ring,allreduce",
                        "mb=0.0501", "payload=1", *more)) == 6
    for more in [], ["slice_kb=1"], ["slice_kb=1", "update=worker"]:
        assert len(rows(folder, "workers=2,4,8", "sync=sps,dps", "mb=0.0501",
                        "payload=1", *more)) == 6


def test_small_slices(folder):
    """Those that travel in the letter itself, without contents."""
    assert len(rows(folder, "workers=16", "sync=dps", "mb=0.008")) == 1


def test_wrong_words(folder):
    for word, said in (("workers=1", "2 .. 4096"), ("worker=2", "workers="),
                       ("sync=rings", "try: sync=ring"), ("link=fast", "25gbit"),
                       ("mb=0.00001", "try: mb=1"), ("mb=x", "want a number"),
                       ("payload=2", "payload=2")):
        done = simulate(folder, "workers=4", word)
        assert done.returncode == 1 and said in done.stderr, done.stderr
        assert done.stderr.count("\n") == 1, done.stderr


def test_not_built(folder):
    """SimGrid is here, but simulate_job is not beside lockstep."""
    alone = folder / "lockstep"
    shutil.copy2(BIN / "lockstep", alone)
    done = subprocess.run([alone, "simulate", "workers=2"], cwd=folder,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stderr
    assert "cmake --build --preset release" in done.stderr, done.stderr


def test_deadline(folder):
    done = simulate(folder, "workers=1024", "sync=ring", "timeout=1")
    assert done.returncode == 1 and "try: timeout=4" in done.stderr, done.stderr


def main():
    if not shutil.which("smpirun") or not (BIN / "simulate_job").exists():
        done = simulate(pathlib.Path("/nowhere"), "workers=2")
        lacks = "simulate_job" if shutil.which("smpirun") else "libsimgrid-dev"
        assert done.returncode == 1 and lacks in done.stderr, done.stderr
        print("skipped: no SimGrid, or a build with sanitizers")
        sys.exit(77)
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            with tempfile.TemporaryDirectory(prefix="lockstep-sim-") as folder:
                test(pathlib.Path(folder))
            print("passed", name)


main()
