"""Checks that other programs can read every file of a run.

    readers.py TRAINER      trains for a few steps, into a temporary folder
    readers.py TRAINER PS_SERVER    the same on device=cuda: the columns of a GPU

Python's modules read csv and json. TensorBoard reads event files, and HTA
(HolisticTraceAnalysis) reads traces, if they are installed. The test prints what
it could not check.
"""

import concurrent.futures
import contextlib
import csv
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

STEPS = 12
METRICS = {"compute_share", "wait_share", "data_share", "cpu_share",
           "resident_bytes", "involuntary_switches_per_s"}
GPU_SHARES = ["gpu_compute_share", "gpu_comm_share", "gpu_down_share",
              "gpu_up_share"]
KINDS = ["data", "forward", "backward", "exposed", "compress", "update", "wait",
         "checkpoint", "evaluate", "slowed", "other"]


def rows(path):
    with open(path, newline="") as f:
        read = list(csv.DictReader(f))
    assert read, f"{path.name}: no rows"
    for row in read:
        assert None not in row and None not in row.values(), \
            f"{path.name}: a row of another length: {row}"
    return read


def check_steps(out):
    read = rows(out / "steps.csv")
    assert [int(r["step"]) for r in read] == list(range(1, STEPS + 1))
    times = [float(r["time_s"]) for r in read]
    assert times == sorted(times)
    assert all(math.isfinite(float(r["loss"])) for r in read)
    assert [bool(r["val_loss"]) for r in read] == \
        [s % 6 == 0 for s in range(1, STEPS + 1)]


def check_util(out):
    read = rows(out / "util.csv")
    assert list(read[0]) == ["t_s", "rank", "metric", "value"]
    assert METRICS <= {r["metric"] for r in read}
    for r in read:
        value = float(r["value"])
        assert math.isfinite(value) and value >= 0, r
        if r["metric"] in ("compute_share", "wait_share", "data_share"):
            assert value <= 1.0001, r


def check_breakdown(out):
    read = rows(out / "breakdown.csv")
    assert [r["kind"] for r in read] == KINDS
    assert abs(sum(float(r["share"]) for r in read) - 1) < 1e-4
    by = {r["kind"]: float(r["seconds"]) for r in read}
    assert by["forward"] > 0 and by["backward"] > 0 and by["update"] > 0


def check_json(out):
    run = json.loads((out / "run.json").read_text())
    summary = json.loads((out / "summary.json").read_text())
    assert run["effective"]["steps"] == STEPS and run["world"] == 1
    assert summary["steps"] == STEPS and run["transport"] == "none"
    assert all(run["versions"][k] for k in ("compiler", "libc", "libzmq",
                                            "onednn", "mpi")), run["versions"]
    steps = rows(out / "steps.csv")
    assert abs(summary["final_train_loss"] - float(steps[-1]["loss"])) < 1e-6


def check_nesting(events):
    threads = {}
    for e in events:
        if e["ph"] == "X":
            assert e["dur"] >= 0 and e["ts"] >= 0  # Perfetto drops others
            threads.setdefault((e["pid"], e["tid"]), []).append(e)
    for thread in threads.values():
        open_ends = []
        for e in sorted(thread, key=lambda e: (e["ts"], -e["dur"])):
            end = e["ts"] + e["dur"]
            while open_ends and open_ends[-1] <= e["ts"] + 5e-4:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1] + 5e-4, e
            open_ends.append(end)


def check_trace(out):
    """The trace follows the rules of its format. Its unit is right: each step is as
    long as in steps.csv."""
    events = json.loads((out / "trace.json").read_text())["traceEvents"]
    for e in events:
        assert e["ph"] in "XCM" and isinstance(e["pid"], int)
        assert e["ph"] == "M" or isinstance(e["ts"], (int, float))
    check_nesting(events)
    names = {e["name"] for e in events if e["ph"] == "M"}
    assert {"process_name", "thread_name"} <= names
    steps = [e for e in events if e["name"] == "step"]
    assert [e["args"]["step"] for e in steps] == list(range(1, STEPS + 1))
    for e, row in zip(steps, rows(out / "steps.csv")):
        assert abs(e["dur"] - float(row["t_step_us"])) < \
            1000 + 0.05 * e["dur"], (e, row)
    layers = {e["args"]["layer"] for e in events
              if e["name"] == "backward" and "layer" in e.get("args", {})}
    assert layers == set(range(4))


def check_hta(out):
    """The file is what HTA's parser expects (trace_file.py, trace_parser.py)."""
    import re
    text = (out / "hta" / "rank-0.json").read_text()
    assert re.search(r'"rank":\s+(\d+)', text).group(1) == "0"
    events = json.loads(text)["traceEvents"]
    check_nesting(e for e in events if e.get("cat") == "kernel")
    launched = {e["args"]["correlation"] for e in events
                if e.get("cat") == "cuda_runtime"}
    kernels = [e for e in events if e.get("cat") == "kernel"]
    assert kernels and all(e["args"]["correlation"] in launched and
                           e["args"]["stream"] >= 0 for e in kernels)
    assert any(e["name"] == "ProfilerStep#1" for e in events)
    read_by_hta(out, 1)


def read_by_hta(out, world):
    """HTA, if it is installed, reads the times of each rank."""
    try:
        from hta.trace_analysis import TraceAnalysis
    except ImportError:
        print("skipped: HTA's own reader (pip install HolisticTraceAnalysis)")
        return
    import logging
    import warnings
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    analysis = TraceAnalysis(trace_dir=str(out / "hta"))
    times = analysis.get_temporal_breakdown(visualize=False)
    assert sorted(times["rank"]) == list(range(world)), times
    for busy, idle, all_us in zip(times["compute_time(us)"],
                                  times["idle_time(us)"],
                                  times["kernel_time(us)"]):
        assert 0 < busy <= all_us and 0 <= idle < all_us, times
    if world > 1:  # HTA finds communication by the kernels' names
        overlap = analysis.get_comm_comp_overlap(visualize=False)
        assert all(0 <= p <= 100 for p in overlap["comp_comm_overlap_pctg"]), \
            overlap


def check_servers(events, shards, within_us=0):
    """Each server is a process in the trace, with times by the workers' clock: it
    adds a slice after the slice's worker began to send, and before that worker's
    step ends."""
    check_nesting(events)
    names = {e["pid"]: e["args"]["name"] for e in events
             if e["name"] == "process_name"}
    servers = [p for p, name in names.items() if name.startswith("server ")]
    assert len(servers) == shards and len(names) == shards + 2, names
    spans = [e for e in events if e["ph"] == "X"]
    sent, over = {}, {}
    for e in spans:
        if e["name"] == "send" and e["pid"] not in servers:
            key = e["pid"], e.get("args", {}).get("part")
            sent[key] = min(sent.get(key, e["ts"]), e["ts"])
        if e["name"] == "step":
            over[e["pid"], e["args"]["step"]] = e["ts"] + e["dur"]
    for server in servers:
        mine = [e for e in spans if e["pid"] == server]
        assert {"receive", "add", "update", "send"} <= {e["name"] for e in mine}
        assert [e["args"]["bytes"] for e in events if e["ph"] == "C"
                and e["pid"] == server][-1] > 0
        slices = {e["args"]["part"] for e in mine if e["name"] == "add"}
        for k in slices:
            adds = sorted(e["ts"] for e in mine if e["name"] == "add"
                          and e["args"]["part"] == k)
            assert len(adds) == 2 * STEPS, (server, k, len(adds))
            for i, ts in enumerate(adds):  # first one worker's, then the other's
                step = i // 2 + 1
                began = sorted(sent[rank, step] for rank in (0, 1))[i % 2]
                ended = max(over[rank, step] for rank in (0, 1))
                assert began - within_us <= ts <= ended + within_us, (k, i)


def check_load(out, shards):
    load = [r for r in rows(out / "util.csv") if r["rank"].startswith("s")]
    assert {r["rank"] for r in load} == {f"s{i}" for i in range(shards)}
    assert {"compute_share", "cpu_share", "resident_bytes"} <= \
        {r["metric"] for r in load}
    assert all(float(r["t_s"]) >= 0 for r in load)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def check_events(out):
    path, = out.glob("events.out.tfevents.*")
    data = path.read_bytes()
    at = records = 0
    while at < len(data):
        size, = struct.unpack_from("<Q", data, at)
        head, = struct.unpack_from("<I", data, at + 8)
        body, = struct.unpack_from("<I", data, at + 12 + size)
        assert head == masked(data[at:at + 8])
        assert body == masked(data[at + 12:at + 12 + size])
        at += 16 + size
        records += 1
    assert records == 1 + 4 * STEPS + 2
    try:
        from tensorboard.backend.event_processing.event_accumulator import \
            EventAccumulator
    except ImportError:
        print("skipped: tensorboard's own reader (pip install tensorboard)")
        return
    accumulator = EventAccumulator(str(out))
    accumulator.Reload()
    loss = accumulator.Scalars("loss/train")
    assert [s.step for s in loss] == list(range(1, STEPS + 1))
    for s, row in zip(loss, rows(out / "steps.csv")):
        assert abs(s.value - float(row["loss"])) < 1e-5


def train(program, out, *words):
    done = subprocess.run(
        [*program, "model=nano", "context=16", "batch=2", "threads=1",
         f"steps={STEPS}", "warmup=2", "eval=6", "eval_batches=2", "log=0",
         f"out={out}", *words], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def serving(*words):
    """Starts a parameter server and yields its endpoint. The server must end by
    itself; if the test fails, it is killed."""
    with subprocess.Popen([*words, "timeout=20"], stdout=subprocess.PIPE,
                          text=True) as server:
        try:
            yield server.stdout.readline().split()[1]
            assert server.wait(timeout=30) == 0
        finally:
            server.kill()


# By how many seconds each clock is ahead of this machine's. None is behind: its
# time would be negative if the machine was started only a short time ago.
AHEAD = {"server": 8000, "rank 0": 3000, "rank 1": 0}


def clocks_apart(bin_dir, out):
    """The server and each worker have different clocks, as on different hosts. Their
    messages to each other must give the offsets."""
    def shifted(name):
        return ["unshare", "--time", "--monotonic", str(AHEAD[name]), "--fork",
                "--kill-child"]
    for name in AHEAD:
        probe = subprocess.run(shifted(name) + ["true"], capture_output=True,
                               text=True)
        if probe.returncode:
            print("skipped: clocks apart (needs root and time namespaces):",
                  probe.stderr.strip())
            return
    out.mkdir()
    trainer = [bin_dir / "trainer"]
    with serving(*shifted("server"), bin_dir / "ps_server", f"out={out}") as \
            endpoint, concurrent.futures.ThreadPoolExecutor() as pool:
        words = ["sync=sps", f"servers={endpoint}", "world=2", "timeout=20"]
        both = [pool.submit(train, shifted(f"rank {rank}") + trainer, out,
                            f"rank={rank}", *words) for rank in (0, 1)]
        for one in both:
            one.result()
    events = [e for part in ("trace.json", "trace.s0.json")
              for e in json.loads((out / part).read_text())["traceEvents"]]
    check_servers(events, 1, within_us=5000)  # clocks differ by more than an hour
    print("ok", clocks_apart.__name__)


def check_gpu(out, copies):
    """util.csv has a row for each step and queue of the GPU, breakdown.csv their sums
    beside the host's times, and summary.json the MFU."""
    steps = rows(out / "steps.csv")
    util = rows(out / "util.csv")
    for metric in GPU_SHARES:
        shares = [float(r["value"]) for r in util if r["metric"] == metric]
        assert len(shares) == STEPS, (metric, shares)
        works = metric == "gpu_compute_share" or \
            (copies and metric in ("gpu_down_share", "gpu_up_share"))
        assert all((v > 0) == works and v < 1.0001 for v in shares), \
            (metric, shares)
    ends = [float(r["t_s"]) for r in util if r["metric"] == GPU_SHARES[0]]
    assert ends == sorted(ends) and ends[-1] <= float(steps[-1]["time_s"]) + 1
    read = rows(out / "breakdown.csv")
    assert [r["kind"] for r in read] == \
        KINDS + ["gpu_compute", "gpu_comm", "gpu_down", "gpu_up"]
    by = {r["kind"]: float(r["seconds"]) for r in read}
    assert 0 < by["gpu_compute"] < sum(by[k] for k in KINDS)
    assert (by["gpu_down"] > 0) == (by["gpu_up"] > 0) == copies
    summary = json.loads((out / "summary.json").read_text())
    rate = summary["flop_per_token"] * 2 * 16 / summary["median_step_s"]
    share = summary["mfu_measured_share"]
    assert abs(share * summary["peak_measured_flop_per_s"] / rate - 1) < 1e-6


def on_a_gpu(trainer, server, folder):
    words = ["device=cuda", "layers=1", "channels=32", "heads=2"]
    train([trainer], folder / "gpu", *words)
    check_gpu(folder / "gpu", copies=False)
    with serving(server) as endpoint:
        train([trainer], folder / "gpu-sps", *words, "sync=sps", "world=1",
              f"servers={endpoint}")
    check_gpu(folder / "gpu-sps", copies=True)
    print("ok", check_gpu.__name__)


def main():
    if len(sys.argv) > 2:
        with tempfile.TemporaryDirectory(prefix="lockstep-gpu-") as folder:
            on_a_gpu(sys.argv[1], sys.argv[2], pathlib.Path(folder))
        return
    bin_dir = pathlib.Path(sys.argv[1]).resolve().parent
    trainer = [bin_dir / "trainer"]
    lockstep = [bin_dir / "lockstep", "train", "workers=2"]
    with tempfile.TemporaryDirectory(prefix="lockstep-readers-") as folder:
        out = pathlib.Path(folder) / "on"
        train(trainer, out, "trace=hta", "tensorboard=1", "samples=50",
              "save=6")
        for check in (check_steps, check_util, check_breakdown, check_json,
                      check_trace, check_hta, check_events):
            check(out)
            print("ok", check.__name__)
        for sync, shards in (("sps", 1), ("dps", 2)):
            out = pathlib.Path(folder) / sync
            train(lockstep, out, f"sync={sync}", "samples=50", "trace=hta")
            check_servers(json.loads((out / "trace.json").read_text())
                          ["traceEvents"], shards)
            check_load(out, shards)
            run = json.loads((out / "run.json").read_text())
            assert run["transport"] == "zmq"
            read_by_hta(out, 2)
            print("ok", check_servers.__name__, sync)
        clocks_apart(bin_dir, pathlib.Path(folder) / "apart")
        off = pathlib.Path(folder) / "off"
        train(lockstep, off, "sync=sps", "trace=off", "samples=0")
        left = sorted(p.name for p in off.iterdir())
        assert left == ["log.txt", "run.json", "steps.csv", "summary.json"], \
            left
        print("ok: without trace and samples none of these files is written")


main()
