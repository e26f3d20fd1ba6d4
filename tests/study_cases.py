"""The experiments that tests/study_oracle.py reads: short runs of every kind, and
copies of them whose raw files were rewritten, so that there are ranges, ties,
outliers, losses that do not reach the target, and busy machines for certain.
"""

import csv
import json
import os
import random
import shutil
import subprocess

from study_inis import BASE, INIS

STUDY = """model=nano layers=1 context=16 global_batch=8 steps=26 warmup=5 eval=6
figures=none net=?1gbit repeat=1""".split()


def lab_of(source, folder):
    """The file of a student: the reference of lab 4."""
    call(source / "labs/grade", 4, source / "labs/04-ring/reference.c", "--out", folder,
         "--train", *"context=16 steps=1 threads=1 eval=0".split())
    return folder / "04/lab.so"


def run_all(lockstep, source, folder, only=()):
    """Runs the experiments, each in folder/NAME."""
    os.environ["LOCKSTEP"] = lockstep[0]
    for name, text in INIS.items():
        if only and name not in only:
            continue
        ini = folder / f"{name}.ini"
        if text is None:  # without the cell that PyTorch trains
            study = (source / "experiments" / "study.ini").read_text()
            ini.write_text(study[:study.index("[cell torch DDP]")])
        else:
            own = "layers = 2" in text  # a key stands once
            ini.write_text(text % (BASE.replace("layers = 1\n", "") if own else BASE))
        words = STUDY if text is None else [f"lab={lab_of(source, folder / 'labs')}"] \
            if name == "lab" else []
        call(*lockstep, "run", ini, *words, f"out={folder / name}")


def call(*words):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True,
                          timeout=280)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


# ---- rewritten copies

def edit_json(path, change):
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def steps_of(run):
    with open(run / "steps.csv", newline="") as f:
        return list(csv.DictReader(f))


def put_csv(path, rows):
    with open(path, "w", newline="") as f:
        writer = csv.DictWriter(f, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def new_steps(run, luck, step_us, off, trained, staged, joined):
    """Other times, losses and counts for each row of steps.csv. `off` changes the
    losses, from step off[1] on by the factor off[0], `trained` the tokens. Returns the
    bytes sent."""
    rows = steps_of(run)
    clock, sent, at_rank = {}, 0, {}
    for r in rows:
        rank, step = r["rank"], int(r["step"])
        us = round(step_us * luck.uniform(.8, 1.3)) * (6 if step % 9 == 1 else 1)
        clock[rank] = clock.get(rank, 0) + us + (5000 if step % 5 == 0 else 0)
        # the same for all cells: what a cell learns must not depend on its way
        at_rank[rank] = at_rank.get(rank, 0) + 1
        loss = 5.5 - .08 * step + .3 * ((step * 7) % 5 - 2) / 5
        if step >= off[1]:
            loss *= off[0]
        r |= {"t_step_us": us, "time_s": f"{clock[rank] * 1e-6:.6f}",
              "loss": f"{loss + .01 * int(rank):.9g}",
              "val_loss": f"{loss + .2 + .003 * int(rank):.9g}"
                          if step % 4 == 0 else "",
              "tokens": round(int(r["tokens"]) * trained), "lag": luck.randrange(4), "bytes_tx": luck.randrange(9 ** 6),
              "restarts": luck.randrange(2) if rank == "0" else step // 20,
              "steps_lost": 3 * int(rank) + step // 8,
              "lost_s": f"{step * luck.uniform(.001, .002):.6f}",
              "t_bubble_us": round(us * luck.uniform(.1, .6)) if staged else 0,
              "t_join_us": round(us * luck.uniform(.1, .6)) if joined else 0,
              "stage_tx": luck.randrange(9 ** 6), "slice_tx": luck.randrange(9 ** 6),
              "piece_tx": luck.randrange(9 ** 6)}
        sent += r["bytes_tx"]
    put_csv(run / "steps.csv", rows)
    return sent, rows


def new_times(run, luck, world, gpu, held):
    rows = []
    for rank in range(world):
        kinds = {k: luck.uniform(.01, .6) for k in (
            "data forward backward compress exposed update wait checkpoint "
            "evaluate slowed other").split()}
        kinds["exposed"] *= held[0]
        kinds["wait"] *= held[1]
        if gpu:
            kinds |= {"gpu_compute": luck.uniform(.2, .9),
                      "gpu_comm": luck.uniform(.2, .9),
                      "gpu_down": .1, "gpu_up": .2}
        rows += [{"rank": rank, "kind": k, "seconds": f"{v:.6f}",
                  "share": f"{v / 9:.6f}", "steps": 26}
                 for k, v in kinds.items()]
    put_csv(run / "breakdown.csv", rows)


def new_samples(run, luck, world, taken, switches, gpu, servers):
    rows = []
    def put(t, rank, **values):
        rows.extend({"t_s": t, "rank": rank, "metric": k, "value": f"{v:.6g}"}
                    for k, v in values.items())
    for rank in range(world):
        for k in range(1, 6):
            busy, slow = luck.uniform(.5, .9), luck.choice((0, .05))
            put(k / 10 + rank / 1000, rank, compute_share=busy + slow,
                slowed_share=slow, wait_share=.1,
                cpu_share=busy * (1 - taken) if k != 3 else busy + .05,
                resident_bytes=luck.uniform(2e7, 1.3e8),
                involuntary_switches_per_s=switches * luck.uniform(.9, 1.1))
            if gpu:
                put(k / 10 + rank / 1000, rank, gpu_util_share=luck.uniform(0, 1),
                    gpu_memory_bytes=luck.uniform(1e9, 9e9),
                    gpu_power_w=luck.uniform(90, 400))
    for server in range(servers):
        put(.1, f"s{server}", cpu_share=luck.uniform(.1, .9), resident_bytes=luck.uniform(1e7, 9e7),
            involuntary_switches_per_s=9e4)
    put_csv(run / "util.csv", rows)


def rewrite(run, seed, step_us, off=(1, 1), taken=.02, switches=5, gpu=False,
            held=(1, 1), trained=1):
    """Gives a run other numbers in all of its raw files. off: a factor of the
    losses, and the step from which on it counts. taken, switches: what util.csv
    says of other programs. held: factors of the time of link and wait. trained: the
    share of the tokens that no gradient dropped."""
    edit_json(run / "run.json", lambda about: about["machine"].update(cores=2))
    luck = random.Random(seed)
    about = json.loads((run / "run.json").read_text())
    world, staged = about["world"], about["way"]["stages"] > 1
    sent, rows = new_steps(run, luck, step_us, off, trained, staged,
                           max(about["way"]["slices"], about["way"]["pieces"]) > 1)
    new_times(run, luck, world, gpu, held)
    new_samples(run, luck, world, taken, switches, gpu, about["way"]["servers"])
    last = [float(r["loss"]) for r in rows if r["step"] == rows[-1]["step"]]
    val = [r for r in rows if r["val_loss"]]
    val = [float(r["val_loss"]) for r in val if r["step"] == val[-1]["step"]]

    def change(s):
        s |= {"bytes_tx": sent, "final_train_loss": sum(last) / len(last),
              "final_val_loss": sum(val) / len(val),
              "peak_memory_bytes": luck.randrange(3 << 24, 6 << 24)}
        for verb in s["bytes_tx_per_worker_step"]:
            s["bytes_tx_per_worker_step"][verb] = sent / s["steps"] / world
        for one in [s, *s.get("ranks", {}).values()]:
            one["peak_memory_bytes"] = luck.randrange(3 << 24, 6 << 24)
            for part in one["predicted_memory"]:
                one["predicted_memory"][part] = luck.randrange(1 << 24)
        if "ranks" in s:
            s["peak_memory_bytes"] = s["ranks"]["0"]["peak_memory_bytes"]
        if staged and about["way"]["slices"] == 1:
            s["timetable"] = {"bubble_share": luck.uniform(.1, .5),
                              "step_s": step_us * 1e-6 * luck.uniform(.5, 1)}
    edit_json(run / "summary.json", change)


def copy(folder, out, seed, special=()):
    """A copy of an experiment whose runs were rewritten. special: {the start of a
    cell's folder: a dict for rewrite(), or a list of them, one for each repeat}."""
    shutil.copytree(folder, out)
    for k, path in enumerate(sorted(out.glob("cells/*/r*/run.json"))):
        run = path.parent
        more = next((v for name, v in dict(special).items()
                     if run.parent.name.startswith(name)), {})
        if isinstance(more, list):
            more = more[int(run.name[1:]) - 1]
        rewrite(run, seed + k, **({"step_us": 9000 + 10 * k} | more))
    return out


def set_in_ini(folder, text, instead):
    ini, = folder.glob("*.ini")
    assert text in ini.read_text(), (ini, text)
    ini.write_text(ini.read_text().replace(text, instead))


def set_in_runs(folder, cell, repeat="*", asked=(), got=(), **other):
    """Changes settings that runs asked for or got, and members of run.json."""
    found = list(folder.glob(f"cells/{cell}/r{repeat}/run.json"))
    assert found, (folder, cell)
    for path in found:
        def change(about):
            about["asked"] |= dict(asked)
            about["effective"] |= dict(asked) | dict(got)
            about |= other
        edit_json(path, change)


def unshaped(folder, cells):
    """Its runs had no emulated links, so all were on one host."""
    set_in_runs(folder, cells, got={"net": "unshaped"})
    for path in folder.glob(f"cells/{cells}/r*/run.json"):
        def change(about):
            about["machine"]["host"] = "one"
            about["workers"] = {k: f"host one, pid {i}"
                                for i, k in enumerate(about["workers"])}
        edit_json(path, change)


def shaped(folder):
    """Its runs had emulated links, though the machine may have no root."""
    for rate in "300mbit", "1gbit":
        set_in_runs(folder, f"*{rate}*", got={"net": rate})


def cut(run, steps):
    """A run that ended after fewer steps."""
    rows = [r for r in steps_of(run) if int(r["step"]) <= steps]
    put_csv(run / "steps.csv", rows)
    edit_json(run / "summary.json", lambda s: s.update(
        steps=steps, bytes_tx=sum(int(r["bytes_tx"]) for r in rows)))


def skip(run, step):
    """A run that skipped a step for an overflow."""
    put_csv(run / "steps.csv", [r | {"skipped": int(int(r["step"]) == step)}
                                for r in steps_of(run)])


def begin(run, second):
    """A run that began at a second of some hour, or later."""
    day, second = divmod(second, 86400)
    edit_json(run / "run.json", lambda about: about.update(
        started=f"2026-03-{1 + day:02}T{second // 3600:02}:{second // 60 % 60:02}:"
                f"{second % 60:02}Z"))


def edit_seconds(run, seconds):
    """A run that took this long in all."""
    rows = steps_of(run)
    for r in rows:
        r["time_s"] = f"{seconds * int(r['step']) / len(rows) * 2:.6f}"
    put_csv(run / "steps.csv", rows)


def unmerged(run):
    """A run that was stopped: its rows are in a file for each rank, the last of
    which is not complete, and it has no summary."""
    (run / "summary.json").unlink()
    head, *rows = (run / "steps.csv").read_text().splitlines(keepends=True)
    at = head.split(",").index("rank")
    for rank in {r.split(",")[at] for r in rows}:
        mine = [r for r in rows if r.split(",")[at] == rank][:9]
        (run / f"steps.{rank}.csv").write_text(head + "".join(mine)
                                               + rows[-1][:20])
    (run / "steps.csv").unlink()


def rewritten(kept, out):
    """Copies of the experiments in `kept`, in `out`. Each has something that must
    be said, or some choice that must be right."""
    busy = {"taken": .4, "switches": 150}
    # ties that are not neighbours, or with one cell but not with each other; an outlier;
    # runs that other programs disturbed, and one that the job itself explains
    copy(kept / "repeats", out / "ties", 100, {
        "ring": [{"step_us": 9000}, {"step_us": 8000}, {"step_us": 12000}],
        "sps": [{"step_us": 14500, "taken": .8, "switches": 150},
                {"step_us": 15200, "taken": .4, "switches": 150},
                {"step_us": 14600, "taken": .12, "switches": 150}],
        "outer": [{"step_us": 10500}, {"step_us": 13700}, {"step_us": 13800}],
        "zero": [{"step_us": 13000, "held": (2, 9), **busy},
                 *({"step_us": us, "held": (2, 9)} for us in (15500, 60000))]})
    # the cell with the greatest median is tied with the first
    copy(kept / "repeats", out / "level", 100, {
        cell: [{"step_us": us} for us in times] for cell, times in (
            ("ring", (9000, 8000, 12000)), ("sps", (13500, 15200, 13600)),
            ("outer", (10500, 16500, 16400)), ("zero", (14100, 14300, 60000)))})
    # slept, wrong on purpose, not all repeats; a loss that is not reached
    one = copy(kept / "repeats", out / "missing", 200, {
        "outer": {"step_us": 15000, **busy}, "zero": {"step_us": 9000,
                                                      "off": (1.6, 8)},
        "ring": [{"step_us": 9000, "taken": .3, "switches": 10},
                 {"step_us": 8500, "taken": .5, "switches": 10},
                 {"step_us": 9300}],
        "sps": {"taken": .9, "switches": 150}})  # asleep, so it needed no processor
    set_in_ini(one, "[cell sps]\n", "[cell sps]\npace = 3,4\n")
    set_in_runs(one, "sps", asked={"pace": "3,4"}, oversubscribed=True)
    set_in_ini(one, "[cell outer]\n", "[cell outer]\nmistake=two_updates\n")
    set_in_runs(one, "outer", asked={"mistake": "two_updates"},
                mistakes=["mistake=two_updates"])
    (one / "command.txt").write_text("repeats.ini\ntarget_loss=4\n")
    unmerged(one / "cells/ring/r1")
    unmerged(one / "cells/zero/r3")
    # the first cell slept, another was not run, all runs of another were stopped;
    # two builds; runs of a cell that the experiment no longer has
    one = copy(kept / "wire", out / "slept", 300, {
        "quick": {"step_us": 3000, "off": (1.01, 22)},
        "one": {"step_us": 12000, "off": (1.001, 5)}})
    set_in_ini(one, "[cell ring]\n", "[cell ring]\npace = 5\n")
    set_in_runs(one, "ring", asked={"pace": "5"})
    set_in_runs(one, "quick", revision="1234567-dirty")
    (one / "cells/bf16_model").rename(one / "cells/gone")
    for run in (one / "cells/fp16").glob("r[12]"):
        unmerged(run)
    # other losses: within rounding, beyond it, and only after 20 steps
    copy(kept / "wire", out / "losses", 400, {
        "one": {"step_us": 9000, "off": (1.006, 5)},
        "fp16": [{"step_us": 9000}, {"step_us": 9000, "off": (1.0015, 3)}],
        "quick": {"step_us": 9000, "off": (1.5, 21)}})
    set_in_ini(out / "losses", "[cell quick]\n", "[cell quick]\ntransport = shm\n")
    set_in_runs(out / "losses", "quick", asked={"transport": "shm"}, got={"transport": "tcp"},
                own_cores=False, oversubscribed=False)
    # 16 bits round more; a step that only one run skipped
    one = copy(kept / "wire", out / "rounding", 450, {
        "fp16": {"step_us": 9000, "off": (1.02, 5)},
        "bf16_model": {"step_us": 9000, "off": (1.025, 5)},
        "quick": {"step_us": 9000, "off": (1.04, 5)},
        "one": {"step_us": 9000, "off": (1.02, 13)}})
    ring = json.loads((one / "cells/ring/r1/run.json").read_text())
    for cell in "fp16", "bf16_model", "quick":
        set_in_runs(one, cell, training=ring["training"])
    set_in_runs(one, "quick", asked={"wire": "bf16"})
    set_in_ini(one, "lr = 0.004", "lr = 0.004\nwire = bf16")
    for run in one.glob("cells/one/r[12]"):
        skip(run, 12)
    copy(kept / "baseline", out / "target", 500, {
        "dps": {"step_us": 9000, "off": (1.001, 5)},
        "ring_batch=8": {"step_us": 7000}, "single_batch=4": {"step_us": 12000}})
    (out / "target/command.txt").write_text("baseline.ini\ntarget_loss=4.9\n")
    copy(kept / "baseline", out / "tokens", 550, {  # the last needs more tokens
        "dps": {"step_us": 9000, "off": (1.1, 2)}, "ring": {"step_us": 7000}})
    (out / "tokens/command.txt").write_text("baseline.ini\ntarget_loss=4.9\n")
    # no emulated links; more workers than cores
    one = copy(kept / "links", out / "unshaped", 600, {
        "seed=1_net=?1gbit_sync=dps": {"step_us": 9000, "off": (1.01, 5)}})
    set_in_ini(one, "figures = none", "figures = sweep loss_apart\nbaseline = sync=ring")
    unshaped(one, "*")
    shutil.rmtree(one / "cells/seed=1_net=?300mbit_sync=dps")
    set_in_runs(one, "*ring", oversubscribed=True)
    one = copy(kept / "study", out / "some", 650, {
        "DPS_as_servers": {"step_us": 12000}, "Horovod": {"step_us": 7000}})
    unshaped(one, "SPS_as_a_server*")
    set_in_runs(one, "*", oversubscribed=True)
    one = copy(kept / "links", out / "shaped", 700, {
        "seed=1_net=?300mbit_sync=ring": {"step_us": 5000},
        "seed=1_net=?1gbit_sync=zero": {"step_us": 30000, "held": (9, 2)}})
    set_in_ini(one, "figures = none", "figures = sweep heatmap bandwidth")
    shaped(one)
    one = copy(kept / "repeats", out / "ways", 750)
    set_in_ini(one, "figures = none", "figures = sweep memory_parts verbs")
    set_in_ini(one, "[base]\n", "[matrix]\nseed = 1\n[base]\n")
    for path in list(one.glob("cells/*")):
        path.rename(f"{path}_seed=1")
    set_in_runs(one, "*", asked={"seed": 1})
    set_in_ini(one, "baseline = ring", "baseline = ring seed=1")
    copy(kept / "pipeline", out / "stages", 800, {
        "one": {"step_us": 12000}, "pp2": {"step_us": 8000, "gpu": True}})
    one = copy(kept / "pipeline", out / "pieces", 850, {
        "one": {"step_us": 7000}, "cp2": {"step_us": 30000}})
    set_in_ini(one, "figures = none", "figures = bytes breakdown")
    # gradients that were dropped make a cell last, though its steps are the shortest
    one = copy(kept / "dropped", out / "dropped", 870, {
        "backup": {"step_us": 7000, "trained": .3}, "own": {"step_us": 9000}})
    (one / "command.txt").write_text("dropped.ini\ntarget_loss=1\n")
    copy(kept / "outer", out / "apart", 900, {
        "outer_every=4": {"step_us": 11000, "gpu": True},
        "outer_every=2": [{"step_us": 9000}, {"step_us": 9000, "off": (1.01, 3)}]})
    copy(kept / "stale", out / "promise", 1000, {
        "ssp": {"step_us": 12000, "off": (1.6, 6)}, "slow": {"step_us": 40000},
        "asp": {"step_us": 9000, **busy}})
    one = copy(kept / "stale", out / "drawn", 1050, {"slow": {"step_us": 40000}})
    set_in_ini(one, "figures = none", "figures = speedup throughput memory bytes "
               "breakdown loss_step loss_seconds loss_tokens util_bars staleness "
               "server_load util_timeline memory_timeline")
    one = copy(kept / "baseline", out / "scaled", 1075)
    set_in_ini(one, "figures = none", "figures = scaling")
    # different models: no seconds to a loss
    one = copy(kept / "baseline", out / "models", 1100, {
        "dps": {"step_us": 12000}, "ring": {"step_us": 5000}})
    for path in one.glob("cells/dps_*/r*/run.json"):
        edit_json(path, lambda about: [about[k].update(channels="64")
                                         for k in ("task", "training")])
    # cells that did not run in turns: one just after the others, and one days later
    one = copy(kept / "repeats", out / "late", 1300, {"zero": {"step_us": 9030}})
    for k in 1, 2, 3:
        begin(one / f"cells/ring/r{k}", 1000 * k)
        begin(one / f"cells/outer/r{k}", 1000 * k + 10)
        begin(one / f"cells/sps/r{k}", 3100 + 100 * k)
        begin(one / f"cells/zero/r{k}", 2 * 86400 + 20000 + 100 * k)
    one = copy(kept / "baseline", out / "later", 1325)  # than the baseline of another batch
    set_in_ini(one, "baseline = single", "baseline = ring batch=4")
    for path in one.glob("cells/*/r[12]"):
        begin(path, 1000 * int(path.name[1:]) + 50000 * ("batch=8" in path.parent.name))
    # cells that ran once: in turns, though hours passed, but for one after a pause
    one = copy(kept / "links", out / "paused", 1350)
    shaped(one)
    for i, path in enumerate(sorted(one.glob("cells/*/r1"))):
        begin(path, 900 * i + (700 if i > 4 else 0))
        edit_seconds(path, 850)
    # few steps, and even and odd numbers of them; no ten steps for a target
    one = copy(kept / "baseline", out / "few", 1400)
    for cell, steps in ("ring_batch=4", 6), ("dps_batch=4", 3), ("dps_batch=8", 25):
        for path in one.glob(f"cells/{cell}/r[12]"):
            cut(path, steps)
    # a cell alone in its choice; medians of memory that can be told apart
    one = copy(kept / "baseline", out / "alone", 1450)
    for cell in "dps_batch=8", "single_batch=8":
        shutil.rmtree(one / "cells" / cell)
    for i, path in enumerate(sorted(one.glob("cells/*/r[12]"))):
        edit_json(path / "summary.json", lambda s: s.update(
            peak_memory_bytes=(200 << 20) + (i // 2 << 22) + (i << 12)))
    # several hosts, and servers with several threads
    one = copy(kept / "stale", out / "hosts", 1500, {
        "bsp": {"step_us": 9000, **busy}, "asp": {"step_us": 9000, **busy}})
    two = {"rank 0": "host a, pid 1", "rank 1": "host b, pid 1"}
    set_in_runs(one, "bsp", workers=two)
    set_in_runs(one, "asp", workers=two, got={"server_threads": 4}, oversubscribed=True)
    # links are the only key
    one = shutil.copytree(kept / "links", out / "only")
    (one / "links.ini").write_text(
        "[experiment]\nfigures = none\nrepeat = 1\n[base]\n" + BASE +
        "batch = 4\nworkers = 2\neval = 0\nseed = 1\nsync = ring\n[matrix]\n"
        "net = ?300mbit, ?1gbit\n")
    for path in list((one / "cells").iterdir()):
        if path.name.endswith("sync=ring"):
            path.rename(path.with_name(path.name.split("_", 1)[1]
                                       .removesuffix("_sync=ring")))
        else:
            shutil.rmtree(path)
    for k, path in enumerate(sorted(one.glob("cells/*/r1"))):
        rewrite(path, 1200 + k, 9000)
    unshaped(one, "*")
