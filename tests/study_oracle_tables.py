"""Checks the tables of a study: every cell of every CSV file and of table.txt."""

import csv
import re

from study_oracle_runs import OF_STEP, PARTS, VERBS, bounds, times
from study_oracle_say import MIB

MEASURES = """tokens_per_s step_s timed_steps seconds train_loss_nats val_loss_nats
utilisation_total utilisation_mean cpu_share_mean computing_s_per_step
data_s_per_step other_s_per_step exposed_s_per_step wait_s_per_step bubble_s_per_step join_s_per_step evaluate_s checkpoint_s
bytes_tx_per_worker_step stage_bytes_tx_per_worker_step
slice_bytes_tx_per_worker_step piece_bytes_tx_per_worker_step law_bytes_tx
law_stage_bytes_tx law_slice_bytes_tx law_piece_bytes_tx bytes_rx_per_server_step
law_exchange_s lag_mean peak_memory_bytes restarts steps_lost seconds_lost
server_peak_memory_bytes smooth_loss_nats best_val_loss_nats tokens trained_share processor_taken_share
involuntary_switches_per_s gpu_util_share gpu_peak_memory_bytes gpu_power_w
bubble_share law_bubble_share timetable_bubble_share timetable_step_s speedup
seconds_to_target tokens_to_target noise_scale""".split()
FIXED = """backend precision wire net workers servers global_batch
oversubscribed""".split()


def same(text, value):
    """Whether a cell of a CSV file has this value, a number within 1e-9."""
    if value is None:
        return text == ""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return text == value
    try:
        return abs(float(text) - value) <= 1e-9 * max(abs(value), 1e-9)
    except ValueError:
        return False


def table_is(study, name, rows):
    """The file has these rows in this order, these columns and nothing else."""
    path = study.folder / name
    if not rows:
        assert not path.exists(), f"{path}: there is nothing to write"
        return
    with open(path, newline="") as f:
        found = list(csv.DictReader(f))
    where = f"{path}: rows {[r.get('cell') for r in found]}"
    assert len(found) == len(rows), (where, len(found), len(rows))
    for k, (have, want) in enumerate(zip(found, rows)):
        assert set(have) == set(want), (where, set(have) ^ set(want))
        for column, value in want.items():
            assert same(have[column], value), \
                (str(path), k, have.get("cell"), column, have[column], value)


def triple(name, range_):
    return dict(zip((name, f"{name}_least", f"{name}_most"), range_))


def settings(study, run):
    keys = [k for c in study.cells for k in c.words
            if k not in FIXED and k != "sync"]
    fixed = (run.json["backend"], run.set["precision"],
             run.set.get("wire") or "fp32", run.net or "unshaped", run.world,
             run.way["servers"], run.batch, int(run.crowded))
    return dict(zip(FIXED, fixed)) | {
        k: "" if k in run.way["ignores"] else run.set.get(k, "") for k in keys}


def head(cell):
    return {"cell": cell.name, "backend": cell.first.json["backend"],
            "workers": cell.first.world}


def runs_csv(study):
    return [{"cell": r.cell.name, "repeat": r.repeat} | settings(study, r)
            | {m: r.value[m] for m in MEASURES} for r in study.runs]


def table_csv(study):
    rows = []
    for c in study.filled:
        row = {"cell": c.name, "n": len(c.runs)} | settings(study, c.first)
        row["target_loss_nats"] = study.target
        for m in MEASURES:
            row |= triple(m, study.range(c, m))
        rows.append(row)
    return rows


def middle(cell, of):
    return bounds([of(r) for r in cell.runs.values()])[0]


def shares_csv(study):
    kinds = OF_STEP + ["gpu_compute", "gpu_idle", "gpu_comm"]
    return [head(c) | {"oversubscribed": int(c.first.crowded),
                       "step_s": study.median(c, "step_s")}
            | {f"{k}_share": middle(c, lambda r: r.share[k]) for k in kinds}
            for c in study.filled]


def memory_csv(study):
    return [head(c) | {"peak_bytes": study.median(c, "peak_memory_bytes")}
            | {f"{p}_bytes": middle(c, lambda r: r.peak["predicted_memory"][f"{p}_bytes"])
               for p in PARTS} for c in study.filled]


def verbs_csv(study):
    rows = []
    for c in study.filled:
        law = c.first.law["by_verb"]
        row = head(c)
        for v in VERBS:
            row[f"{v}_bytes"] = middle(c, lambda r: r.sent.get(v, 0))
            row[f"law_{v}_bytes"] = law.get(v, 0) if law else None
        rows.append(row)
    return rows


def workers_csv(study):
    return [head(c) | {
        "worker": w, "oversubscribed": int(c.first.crowded),
        "utilisation": middle(c, lambda r: r.util[w] if r.util else None),
        "gpu_comm": middle(c, lambda r: r.comm[w] if r.comm else None)}
        for c in study.filled for w in range(c.first.world)]


def curves_csv(study):
    return [{"cell": c.name, "backend": c.first.json["backend"],
             "oversubscribed": int(c.first.crowded)} | point
            for c in study.filled for point in c.first.curve]


def sweep_csv(study):
    rows, keys = [], list(study.axes)
    if not keys:
        return rows
    for c in study.filled:
        named, *values = c.parts
        rest = [f"{k}={v}" if "=" not in v else v
                for k, v in zip(keys[:-2], plain(study, c))]
        shown = plain(study, c)
        row = {"series": " ".join(p for p in [named, *rest] if p and not (
                   p.startswith("net=") and c.lacks)).replace("=?", "="),
               "backend": c.first.json["backend"],
               "x_key": keys[-1], "x": shown[-1],
               "y_key": keys[-2] if len(keys) > 1 else "",
               "y": shown[-2] if len(keys) > 1 else ""}
        for m in ("tokens_per_s", "step_s", "seconds_to_target",
                  "best_val_loss_nats"):
            row |= triple(m, study.range(c, m))
        rows.append(row)
    return rows


def plain(study, cell):
    """The values of a cell as [matrix] has them, without key=; of links those that it
    had."""
    found = [next(shown for name, shown, _ in values if name == part)
             for part, values in zip(cell.parts[1:], study.axes.values())]
    return [("unshaped" if cell.lacks else v.lstrip("?")) if key == "net" else v
            for key, v in zip(study.axes, found)]


# ---- table.txt

class Shown:
    """A number in text: it may be rounded to the decimals that it is shown with."""

    def __init__(self, value, scale=1.0, unit=""):
        self.value, self.unit = times(value, scale), unit

    def is_in(self, text):
        if self.value is None:
            return text == "-"
        if not text.endswith(self.unit):
            return False
        text = text[:len(text) - len(self.unit)]
        decimals = len(text.partition(".")[2])
        return re.fullmatch(r"-?\d+(\.\d+)?", text) and \
            abs(float(text) - self.value) <= .500001 * 10 ** -decimals


def ranged(study, cell, name):
    middle_, least, most = study.range(cell, name)
    yield Shown(middle_)
    measured = [r for r in cell.runs.values() if r.value[name] is not None]
    if name == "speedup":  # of pairs
        measured = [r for r in measured for b in study.baseline(cell).runs.values()
                    if b.round == r.round]
    if study.repeats and len(measured) > 1:
        yield Shown(least)
        yield ".."
        yield Shown(most)


def speed_line(study, c):
    r = c.first
    yield from (*c.name.split(), r.json["backend"], str(r.world), str(r.way["servers"]))
    most = max(run.world for run in study.runs)
    utils = [middle(c, lambda run: run.util[w] if run.util else None)
             for w in range(r.world)]
    if most <= 8:
        for u in utils:
            yield Shown(u, 100, "%")
    else:
        yield Shown(min(utils), 100, "%")
        yield ".."
        yield Shown(max(utils), 100, "%")
    yield Shown(study.median(c, "utilisation_total"), 100, "%")
    yield from ranged(study, c, "tokens_per_s")
    if study.about.get("baseline"):
        yield from ranged(study, c, "speedup")
    yield Shown(study.median(c, "step_s"), 1000)
    if r.net:
        yield f"net={r.net}"
    if r.crowded:
        yield "oversubscribed"
    if r.pace:
        yield from ("slept:", f"pace={r.pace}")
    if r.mistakes:
        yield from ("WRONG:", *r.mistakes)


def outcome_line(study, c):
    yield from c.name.split()
    if study.target is not None:
        yield from ranged(study, c, "seconds_to_target")
        yield Shown(study.median(c, "tokens_to_target"))
    yield Shown(study.median(c, "train_loss_nats"))
    if any(r.value["best_val_loss_nats"] is not None for r in study.runs):
        yield from ranged(study, c, "best_val_loss_nats")
    yield Shown(study.median(c, "peak_memory_bytes"), 1 / MIB)
    yield Shown(study.median(c, "server_peak_memory_bytes"), 1 / MIB)


def stages_line(study, c):
    yield from (*c.name.split(), str(c.first.way["stages"]))
    yield Shown(study.median(c, "bubble_share"), 100)
    yield Shown(study.median(c, "law_bubble_share"), 100)
    yield Shown(study.median(c, "timetable_bubble_share"), 100)
    yield Shown(study.median(c, "step_s"), 1000)
    yield Shown(study.median(c, "timetable_step_s"), 1000)


def line_is(line, want):
    have, want = line.split(), list(want)
    ok = len(have) == len(want) and all(
        w.is_in(h) if isinstance(w, Shown) else w == h
        for h, w in zip(have, want))
    assert ok, (line, [w.value if isinstance(w, Shown) else w for w in want])


def steps_of(cells):
    """"26", or "13 to 26": the steps that median steps are taken of."""
    found = [r.value["timed_steps"] for c in cells for r in c.runs.values()]
    return f"{min(found)} to {max(found)}" if min(found) < max(found) else f"{found[0]}"


def text_is(study):
    text = (study.folder / "table.txt").read_text()
    blocks = [b.splitlines() for b in text.split("\n\n")]
    lines = [(speed_line, study.filled), (outcome_line, study.filled)]
    staged = [c for c in study.filled if c.first.way["stages"] > 1]
    if staged:
        lines.append((stages_line, staged))
    assert len(blocks) == len(lines) + 1, text
    for block, (of, cells) in zip(blocks, lines):
        assert len(block) == len(cells) + 1, (block, len(cells))
        for line, cell in zip(block[1:], cells):
            line_is(line, of(study, cell))
    assert f"time of the median step of {steps_of(study.filled)}.\n" in text, text
    if study.target is not None:
        assert f" s to {study.target:.2f}" in blocks[1][0], blocks[1][0]
        assert f"s to {study.target:.2f}, " in text.replace("\n", " ")
    if study.about.get("baseline"):
        assert f"divided by those of {study.about['baseline']}" in text, text


TABLES = {"runs.csv": runs_csv, "table.csv": table_csv, "shares.csv": shares_csv,
          "memory.csv": memory_csv, "verbs.csv": verbs_csv,
          "workers.csv": workers_csv, "curves.csv": curves_csv,
          "sweep.csv": sweep_csv}


def tables_are(study):
    for name, of in TABLES.items():
        table_is(study, name, of(study))
    text_is(study)
