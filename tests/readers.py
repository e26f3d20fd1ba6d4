"""Every file that a run leaves is read by somebody else's reader.

    readers.py TRAINER      trains twice for a few steps into a temporary folder

csv and json are Python's own; event files are read by tensorboard where it is
installed, traces by HTA's rules, and what cannot be checked here is named.
"""

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
KINDS = ["data", "forward", "backward", "exposed", "update", "wait",
         "checkpoint", "evaluate", "other"]


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
    assert run["settings"]["steps"] == STEPS and run["world"] == 1
    assert summary["steps"] == STEPS
    steps = rows(out / "steps.csv")
    assert abs(summary["final_train_loss"] - float(steps[-1]["loss"])) < 1e-6


def check_nesting(events):
    threads = {}
    for e in events:
        if e["ph"] == "X":
            assert e["dur"] >= 0
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
    """The trace format's rules, and units: steps as long as steps.csv says."""
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
              if e["name"] == "backward" and "args" in e}
    assert layers == set(range(4))


def check_hta(out):
    """What HTA's parser asks of a file (trace_file.py, trace_parser.py)."""
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


def train(trainer, out, *words):
    done = subprocess.run(
        [trainer, "model=nano", "context=16", "batch=2", "threads=1",
         f"steps={STEPS}", "warmup=2", "eval=6", "eval_batches=2", "log=0",
         f"out={out}", *words], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr


def main():
    with tempfile.TemporaryDirectory(prefix="lockstep-readers-") as folder:
        out = pathlib.Path(folder) / "on"
        train(sys.argv[1], out, "trace=hta", "tensorboard=1", "samples=50",
              "save=6")
        for check in (check_steps, check_util, check_breakdown, check_json,
                      check_trace, check_hta, check_events):
            check(out)
            print("ok", check.__name__)
        off = pathlib.Path(folder) / "off"
        train(sys.argv[1], off, "trace=off", "samples=0")
        left = sorted(p.name for p in off.iterdir())
        assert left == ["run.json", "steps.csv", "summary.json"], left
        print("ok, and nothing of it where it is off")


main()
