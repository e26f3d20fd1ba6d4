"""Tests lockstep simulate, if SimGrid is installed: the law, sums, and wrong settings.

    test_simulate.py BIN        exit status 77 if there is no simulator
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


def rows(folder, *words, file="simulate.csv"):
    done = simulate(folder, *words)
    assert done.returncode == 0, done.stderr
    with open(folder / file, newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def collectives(folder, *words):
    """Simulated seconds and their ratio to the law, by algorithm."""
    return {row["algorithm"]: (float(row["simulated_s"]), float(row["ratio"]))
            for row in rows(folder, *words, file="collectives.csv")}


def test_law(folder):
    """Without contention every backend takes the time of the law. With servers several
    slices may travel at the same time. Here they share the link and arrive together;
    then the link is idle until credits return."""
    words = "workers=4,16", "mb=498", "link=25gbit", "alpha_us=50"
    seen = rows(folder, *words, "sync=ring,allreduce,dataparallel")
    assert len(seen) == 6, seen
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


def test_owner(folder):
    """Worker 0's messages to different workers overlap, and a message may have more bytes
    than MPI counts in an int."""
    for words in (["workers=2,16", "mb=0.008"], ["workers=2", "mb=3000"]):
        for row in rows(folder, *words, "sync=dataparallel"):
            assert abs(float(row["ratio"]) - 1) < 0.01, row


def test_latency(folder):
    """With very few bytes only the latency of 2(n-1) messages counts."""
    for row in rows(folder, "workers=2,64", "sync=ring", "mb=0.001",
                    "alpha_us=1000"):
        n = int(row["workers"])
        hops = float(row["simulated_s"]) / 1e-3
        assert 2 * (n - 1) <= hops < 2 * (n - 1) + 1.1, row


def test_sums(folder):
    """Real numbers travel: simulate_job checks every sum on every rank."""
    for more in [], ["slice_kb=1"], ["bucket_mb=0.002"]:
        assert len(rows(folder, "workers=2,4,8", "sync=ring,allreduce",
                        "mb=0.0501", "payload=1", *more)) == 6
    assert len(rows(folder, "workers=2,4,8", "sync=dataparallel",
                    "mb=0.0501", "payload=1")) == 3
    for more in [], ["slice_kb=1"], ["slice_kb=1", "update=worker"]:
        assert len(rows(folder, "workers=2,4,8", "sync=sps,dps", "mb=0.0501",
                        "payload=1", *more)) == 6


# 62400 parameters: 6 matrices, and 5 runs of vectors between them.
SIZES = "layers=1", "heads=2", "channels=64", "context=64", "vocab_size=128"
COMPRESSORS = "topk", "int8", "sign", "power", "demo"


def test_squeeze_numbers(folder):
    """Real gradients are compressed. On every rank simulate_job compares the bytes with
    the law's, and what was sent and what is kept with all gradients."""
    for squeeze in COMPRESSORS:
        ways = "ring,allreduce" if squeeze in ("power", "demo") else "all"
        count = 2 if ways != "all" else 5
        for more in (["workers=2,5"], ["workers=3", "bucket_mb=0.05"],
                     ["workers=3", "slice_kb=1"]):
            seen = rows(folder, *SIZES, f"squeeze={squeeze}", f"sync={ways}", "payload=1",
                        *more)
            assert len(seen) == count * (1 + ("," in more[0])), seen
    for more in ("topk density=1", "topk scope=tensor", "sign scope=model", "int8 levels=12",
                 "power squeeze_rank=64"):
        assert len(rows(folder, "workers=3", *SIZES, *f"squeeze={more}".split(),
                        "sync=ring,allreduce", "payload=1")) == 2


def test_squeeze_law(folder):
    """Bytes and messages of two workers, counted by hand. Without latency a link of 1 MB/s
    shows every byte. SimGrid's MPI adds 16 bytes to a message, and our ring a head of
    16."""
    demo = (352 + 176 + 528 + 176 + 704 + 704) + (16 + 20 + 16 + 16 + 12)
    power = (192 + 128 + 256 + 128 + 320 + 320) + (192 + 256 + 192 + 192 + 128)
    for words, size, messages, hops in (
            ("topk density=0.01", 8 * 624, 1, 1),
            ("int8", 2 * (31200 + 4 * 244), 2, 2), ("sign", 2 * (4 + 32 * 122), 2, 2),
            ("power squeeze_rank=1", 4 * power, 2 * (6 * 2 + 5), 2 * (6 * 2 + 5)),
            ("demo density=0.0078125", demo, 11, 11)):
        words = "workers=2", *SIZES, *f"squeeze={words}".split(), "sync=ring,allreduce"
        for row in rows(folder, *words, "link=1MB/s", "alpha_us=0"):
            head = 32 if row["backend"] == "ring" else 16
            assert abs(float(row["law_s"]) - size * 1e-6) < 1e-9, row
            assert abs(float(row["simulated_s"]) - (size + head * messages) * 1e-6) < 1e-5, row
        for row in rows(folder, *words, "link=1000000MB/s", "alpha_us=1000"):
            assert abs(float(row["law_s"]) / 1e-3 - hops) < 1e-3, row
            assert hops <= float(row["simulated_s"]) / 1e-3 < hops + 1.1, row


def test_squeeze_shards_law(folder):
    """The same with sync=zero. Of 62400 parameters worker 0 has 8 blocks of 4096, and
    worker 1 the rest. A message of a part; the norm, 16 doubles that worker 1 sends and
    worker 0 sends back; the parts of the parameters, in fp32."""
    norm, longest = 16 * 8, 4 * 8 * 4096
    for words, size in (("topk density=0.01", 8 * 328), ("int8", 32768 + 4 * 256),
                        ("sign", 4 + 32 * 128)):
        words = "workers=2", *SIZES, *f"squeeze={words}".split(), "sync=zero"
        row, = rows(folder, *words, "link=1MB/s", "alpha_us=0")
        assert abs(float(row["law_s"]) - (size + norm + 4 * 31200) * 1e-6) < 1e-9, row
        seen = size + 2 * norm + longest + 4 * 32
        assert abs(float(row["simulated_s"]) - seen * 1e-6) < 1e-5, (row, seen)
        row, = rows(folder, *words, "link=1000000MB/s", "alpha_us=1000")
        assert abs(float(row["law_s"]) / 1e-3 - 4) < 1e-3, row
        assert abs(float(row["simulated_s"]) / 1e-3 - 4) < 0.01, row


def predicted(*words):
    """The seconds of the exchange that predict says, by backend."""
    done = subprocess.run([BIN / "lockstep", "predict", *words, "compute_ms=1"],
                          capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    found = {}
    for line in done.stdout.partition("efficiency")[2].splitlines()[1:]:
        if not line:
            return found
        name, _, _, number, unit, *_ = line.split()
        found[name] = float(number) * {"us": 1e-6, "ms": 1e-3, "s": 1}[unit]
    return found


def test_squeeze_predict(folder):
    """The simulation takes as long as predict says. Servers have few slices under way at
    a time, and short messages make that visible."""
    for squeeze in COMPRESSORS:
        words = "model=gpt2", "workers=4", "link=10gbit", f"squeeze={squeeze}"
        seen = rows(folder, *words, "sync=ring,allreduce")
        said = predicted(*words, "sync=ring,allreduce",
                         *["optimizer=sgd"] * (squeeze == "demo"))
        for row in seen:
            ratio = float(row["simulated_s"]) / said[row["backend"]]
            assert abs(ratio - 1) < 0.005, (squeeze, ratio, row)
        if squeeze not in ("power", "demo"):
            words += "slice_kb=4096", "sync=sps,dps"
            said = predicted(*words)
            for row in rows(folder, *words):
                ratio = float(row["simulated_s"]) / said[row["backend"]]
                assert 1 <= ratio < 1.06, (squeeze, ratio, row)


def test_small_slices(folder):
    """Messages so short that SimGrid sends them eagerly, without contents."""
    assert len(rows(folder, "workers=16", "sync=dps", "mb=0.008")) == 1


def test_friends(folder):
    """One rank has a file of 5 MB that 7 others need. To send a copy takes 5 s. SimGrid's
    MPI adds 16 bytes to a message."""
    link = "workers=8", "mb=5", "link=1MB/s", "alpha_us=0"
    for op in "broadcast", "reduce":
        seen = collectives(folder, f"op={op}", *link, "slice_kb=100")
        assert abs(seen["linear"][0] - 35) < 1e-3, seen
        assert abs(seen["tree"][0] - 15) < 1e-3, seen
        chain = 5 + 6 * 0.1024  # the vector, and six pieces on their way
        assert abs(seen["chain"][0] - chain) < 1e-3, seen
    for op in "scatter", "gather":
        seen = collectives(folder, f"op={op}", *link)
        assert sorted(seen) == ["linear", "tree"], seen
        for seconds, _ in seen.values():  # seven eighths cross the root's link
            assert abs(seconds - 7 / 8 * 5) < 1e-3, seen


def test_collectives_law(folder):
    """With latency, collectives take the time of the law, also for worlds that are no
    power of two."""
    for op in "broadcast", "reduce", "scatter", "gather":
        for workers in 2, 5, 16:
            seen = collectives(folder, f"op={op}", f"workers={workers}",
                               "link=1MB/s", "alpha_us=1000", "slice_kb=64")
            for algorithm, (_, ratio) in seen.items():
                assert abs(ratio - 1) < 0.01, (op, workers, algorithm, ratio)


def test_collectives_numbers(folder):
    """Real numbers travel: simulate_job checks every number on every rank."""
    for op in "broadcast", "reduce", "scatter", "gather":
        count = len(rows(folder, f"op={op}", "workers=2,3,8,13", "mb=0.0501",
                         "payload=1", "slice_kb=4", file="collectives.csv"))
        assert count == (12 if op in ("broadcast", "reduce") else 8)


def test_mesh(folder):
    """A step of stages, slices and replicas takes the time of the timetable,
    the joins and the ring. If there is little to compute, activations travel at
    the same time as the next joins, and slow them down a little."""
    for mesh, compute_ms, most in (("pp2", 100, 1.001), ("dp4", 100, 1.001),
                                   ("tp4", 100, 1.001), ("dp2,pp3", 100, 1.001),
                                   ("tp2,dp2", 100, 1.001),
                                   ("dp2,pp2,tp2", 1000, 1.01),
                                   ("dp2,pp2,tp2", 100, 1.02)):
        for words in ("", "pipeline=gpipe"):
            seen = rows(folder, f"mesh={mesh}", f"compute_ms={compute_ms}",
                        "model=gpt2", *words.split(), file="mesh.csv")
            assert len(seen) == 1, seen
            assert seen[0]["mesh"] == mesh.replace(",", " "), seen
            assert 0.999 < float(seen[0]["ratio"]) < most, seen


def test_mesh_words(folder):
    for word, said in (("mesh=dp1", "try: mesh=dp2,pp2"),
                       ("mesh=qq2", "want dp"),
                       ("mesh=pp2 stages=1,2,3", "mesh= has 2"),
                       ("mesh=pp2 stages=1,2", "add up to 12"),
                       ("mesh=pp2 payload=1", "try: without")):
        done = simulate(folder, *word.split())
        assert done.returncode == 1 and said in done.stderr, done.stderr
        assert done.stderr.count("\n") == 1, done.stderr


def test_wrong_words(folder):
    for word, said in (("workers=1", "2 .. 4096"), ("worker=2", "nearest: workers"),
                       ("sync=rings", "try: sync=ring"), ("link=fast", "25gbit"),
                       ("mb=0.00001", "try: mb=1"), ("mb=x", "want a number"),
                       ("payload=2", "payload=2"), ("op=send", "broadcast"),
                       ("op=gather algorithm=chain", "try: algorithm=linear"),
                       ("op=reduce mb=1e-5", "try: mb=1"),
                       ("op=reduce sync=ring", "unknown key sync"),
                       ("op=reduce squeeze=topk", "unknown key squeeze"),
                       ("squeeze=topk mb=1", "try: without mb="),
                       ("squeeze=topk density=2", "density=2"),
                       ("squeeze=int8 density=0.1", "a setting of squeeze=topk"),
                       ("squeeze=topk algorithm=ring", "must be auto"),
                       ("squeeze=power sync=zero", "sync=zero cannot compress"),
                       ("squeeze=power sync=ring,dps", "sync=dps cannot compress")):
        done = simulate(folder, "workers=4", *word.split())
        assert done.returncode == 1 and said in done.stderr, done.stderr
        assert done.stderr.count("\n") == 1, done.stderr


def test_not_built(folder):
    """SimGrid is installed, but simulate_job is not in the folder of lockstep."""
    alone = folder / "lockstep"
    shutil.copy2(BIN / "lockstep", alone)
    done = subprocess.run([alone, "simulate", "workers=2"], cwd=folder,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stderr
    assert "cmake --build --preset release" in done.stderr, done.stderr


def test_not_executed(folder):
    """Only SimGrid can load simulate_job, which would crash if a shell started it."""
    done = subprocess.run(["sh", "-c", '"$0" --help', BIN / "simulate_job"], cwd=folder,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 126 and done.stderr.count("\n") == 1, done


def test_deadline(folder):
    """A simulation that fails. The table of an earlier one stays."""
    (folder / "simulate.csv").write_text("earlier")
    done = simulate(folder, "workers=1024", "sync=ring", "timeout=1")
    assert done.returncode == 1 and "try: timeout=4" in done.stderr, done.stderr
    assert (folder / "simulate.csv").read_text() == "earlier"


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
