"""Tables of a study: CSV files for plots, spreadsheets and pandas, and table.txt.

    file          a row for each    columns
    runs.csv      run               each setting and each measure
    table.csv     cell              median, least and most of each measure
    shares.csv    cell              share of a step for each kind of time
    memory.csv    cell              peak memory, and its predicted parts
    verbs.csv     cell              bytes by verb, measured and by the law
    workers.csv   cell and worker   utilisation
    curves.csv    cell and step     loss (mean of workers, first repeat)
    sweep.csv     cell              x and y of the last two keys of [matrix]
"""

import os

from .files import remove, write_csv, write_text
from .measures import MEASURES, MIB
from .runs import KINDS, PARTS, SMOOTH, VERBS, WHOLE_RUN

SWEPT = ("tokens_per_s", "step_s", "seconds_to_target", "best_val_loss_nats")
SHOWN = 8  # workers whose utilisation fits a line


def keys_of(study):
    """The keys that the experiment sets and that have no column of their own."""
    own = ("sync", "precision", "wire", "net", "workers", "servers", "global_batch",
           "oversubscribed", "out")
    return list(dict.fromkeys(k for c in study.cells for k in c.settings if k not in own))


def settings_of(run, keys):
    """The columns of a run's settings. One that its way does not read is empty."""
    ignored = run.names("way.ignores")
    return {"backend": run.backend, "precision": run.setting("precision"),
            "wire": run.wire, "net": run.net or "unshaped", "workers": run.world,
            "servers": run.servers, "global_batch": run.global_batch,
            "oversubscribed": run.oversubscribed,
            **{k: "" if k in ignored else run.setting(k) for k in keys}}


def _ranges(study, cell, names):
    columns = {}
    for name in names:
        r = study.range(cell, name)
        columns |= {name: r.median, f"{name}_least": r.least, f"{name}_most": r.most}
    return columns


def runs_table(study):
    """Rows of runs.csv."""
    keys = keys_of(study)
    for run in study.runs:
        yield {"cell": run.cell.shown, "repeat": run.repeat, **settings_of(run, keys),
               **{name: m.of(run) for name, m in MEASURES.items()}}


def cells_table(study):
    """Rows of table.csv."""
    keys = keys_of(study)
    for cell in study.filled:
        yield {"cell": cell.shown, "n": len(study.of(cell)),
               **settings_of(study.first(cell), keys), "target_loss_nats": study.target,
               **_ranges(study, cell, MEASURES)}


def _head(study, cell):
    run = study.first(cell)
    return {"cell": cell.shown, "backend": run.backend, "workers": run.world}


def shares_table(study):
    """Rows of shares.csv."""
    for cell in study.filled:
        yield {**_head(study, cell), "oversubscribed": study.first(cell).oversubscribed,
               "step_s": study.range(cell, "step_s").median,
               **{f"{k}_share": study.share(cell, k) for k in KINDS
                  if k not in WHOLE_RUN}}


def memory_table(study):
    """Rows of memory.csv."""
    for cell in study.filled:
        yield {**_head(study, cell), "peak_bytes": study.range(
            cell, "peak_memory_bytes").median,
            **{f"{p}_bytes": study.part_bytes(cell, p) for p in PARTS}}


def verbs_table(study):
    """Rows of verbs.csv."""
    for cell in study.filled:
        run, columns = study.first(cell), {}
        for verb in VERBS:
            law = run.number(f"law.by_verb.{verb}") or 0
            columns |= {f"{verb}_bytes": study.sent(cell, verb),
                        f"law_{verb}_bytes": law if run.get("law.by_verb") else None}
        yield {**_head(study, cell), **columns}


def workers_table(study):
    """Rows of workers.csv."""
    for cell in study.filled:
        for worker in range(study.first(cell).world):
            yield {**_head(study, cell), "worker": worker,
                   "utilisation": study.worker_share(cell, worker),
                   "oversubscribed": study.first(cell).oversubscribed,
                   "gpu_comm": study.worker_share(cell, worker, "gpu_comm")}


def curves_table(study):
    """Rows of curves.csv."""
    for cell in study.filled:
        run = study.first(cell)
        for p in run.curve:
            yield {"cell": cell.shown, "backend": run.backend,
                   "oversubscribed": run.oversubscribed, "step": p.step,
                   "tokens": p.tokens, "time_s": p.time_s, "loss": p.loss,
                   "val_loss": p.val_loss, "train_s": p.train_s,
                   "loss_smooth": p.smooth, "restarts": p.restarts}


def sweep_table(study):
    """Rows of sweep.csv: x is the last key of [matrix], y the one before it, and a
    series is a named cell with one value of each other key."""
    for cell in study.filled if study.experiment.axes else ():
        *rest, x = cell.values
        y = rest.pop() if rest else None
        series = study.had(cell, " ".join(filter(None, [cell.named, *(
            v.name for v in rest)])))
        yield {"series": series, "x_key": x.key, "y_key": y.key if y else "",
               "x": study.value(cell, x), "y": study.value(cell, y) if y else "",
               "backend": study.first(cell).backend, **_ranges(study, cell, SWEPT)}


TABLES = {"runs.csv": runs_table, "table.csv": cells_table, "shares.csv": shares_table,
          "memory.csv": memory_table, "verbs.csv": verbs_table,
          "workers.csv": workers_table, "curves.csv": curves_table,
          "sweep.csv": sweep_table}


def write_tables(study):
    """Writes all tables; one without rows is removed."""
    for name, rows in TABLES.items():
        path = os.path.join(study.to, name)
        table = list(rows(study))
        if table:
            write_csv(path, table)
        else:
            remove(path)
    write_text(os.path.join(study.to, "table.txt"), text(study))


# ---- table.txt

def _number(value, decimals, scale=1.0):
    return "-" if value is None else f"{value * scale:.{decimals}f}"


def _percent(share):
    return "-" if share is None else f"{100 * share:.0f}%"


def _with_range(study, cell, measure, decimals):
    """The median, and with repeats a column "least .. most"."""
    r, scale = study.range(cell, measure), MEASURES[measure].scale
    row = [_number(r.median, decimals, scale)]
    if study.repeats:
        row.append(f"{_number(r.least, decimals, scale)} .. "
                   f"{_number(r.most, decimals, scale)}" if r.n > 1 else "")
    return row


def _format(head, rows):
    """Columns of equal width, the first to the left, the others to the right."""
    widths = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]
    return ["  ".join(cell.ljust(w) if i == 0 else cell.rjust(w)
                      for i, (cell, w) in enumerate(zip(row, widths))).rstrip()
            for row in [head, *rows]]


def _remark(run):
    parts = [f"net={run.net}"] * bool(run.net) + ["oversubscribed"] * run.oversubscribed
    parts += [f"slept: pace={run.pace}"] * bool(run.pace)
    parts += [f"WRONG: {run.mistakes}"] * bool(run.mistakes)
    return "  ".join(parts)


def _speed(study):
    ranged = ["least .. most"] * study.repeats
    few = study.workers <= SHOWN
    speedups = bool(study.experiment.baseline)
    head = ["cell", "backend", "workers", "servers", *(
        [f"u{w}" for w in range(study.workers)] if few else ["least .. most"]), "total",
        "tokens/s", *ranged, *(["speed-up", *ranged] if speedups else []), "step ms"]
    rows, remarks = [], []
    for cell in study.filled:
        run = study.first(cell)
        shares = [study.worker_share(cell, w) for w in range(run.world)]
        known = [s for s in shares if s is not None]
        each = [_percent(shares[w]) if w < run.world else "" for w in range(study.workers)] \
            if few else [f"{_percent(min(known, default=None))} .. "
                         f"{_percent(max(known, default=None))}"]
        rows.append([cell.shown, run.backend, str(run.world), str(run.servers), *each,
                     _percent(study.range(cell, "utilisation_total").median),
                     *_with_range(study, cell, "tokens_per_s", 0),
                     *(_with_range(study, cell, "speedup", 2) if speedups else []),
                     _number(study.range(cell, "step_s").median, 1, 1e3)])
        remarks.append(_remark(run))
    head_line, *lines = _format(head, rows)
    return [head_line, *(f"{line}  {remark}".rstrip() for line, remark in
                         zip(lines, remarks))]


def _outcome(study):
    ranged = ["least .. most"] * study.repeats
    validated = study.has("best_val_loss_nats")
    timed = study.target is not None
    head = ["cell", *([f"s to {study.target:.2f}", *ranged, "tokens to"] if timed else []),
            "loss", *(["best val.", *ranged] if validated else []), "worker MiB",
            "server MiB"]
    rows = []
    for cell in study.filled:
        def median(measure, decimals, scale=1.0, cell=cell):
            return _number(study.range(cell, measure).median, decimals, scale)
        rows.append([cell.shown, *(
            [*_with_range(study, cell, "seconds_to_target", 2), median("tokens_to_target", 0)]
            if timed else []), median("train_loss_nats", 4),
            *(_with_range(study, cell, "best_val_loss_nats", 4) if validated else []),
            median("peak_memory_bytes", 1, 1 / MIB),
            median("server_peak_memory_bytes", 1, 1 / MIB)])
    return _format(head, rows)


BUBBLES = ("bubble_share", "law_bubble_share", "timetable_bubble_share", "step_s",
           "timetable_step_s")


def staged(study):
    """The cells with stages of a pipeline."""
    return [c for c in study.filled if (study.first(c).number("way.stages") or 1) > 1]


def _bubbles(study):
    head = ["cell", "stages", *(MEASURES[m].label for m in BUBBLES)]
    rows = [[cell.shown, f"{study.first(cell).number('way.stages'):.0f}", *(
        _number(study.range(cell, m).median, 1, MEASURES[m].scale) for m in BUBBLES)]
        for cell in staged(study)]
    return ["", *_format(head, rows)] if rows else []


def text(study):
    """table.txt: speed, outcome and, for pipelines, how long stages wait."""
    few, steps = study.workers <= SHOWN, study.timed_steps(study.filled)
    steps = f" of {steps}" if steps else ""
    notes = ["", *["All values are medians of a cell's repeats."] * study.repeats,
             ("u0: the utilisation of worker 0, and so on for u1" if few else
              "least .. most: the utilisation of the least and most utilised worker")
             + ". Utilisation is the",
             "share of a worker's time in forward, backward and update. total: the sum over "
             "all workers.",
             f"tokens/s: the tokens of a step, divided by the time of the median step{steps}."]
    if study.experiment.baseline:
        notes.append(f"speed-up: tokens/s, divided by those of {study.experiment.baseline}"
                     + ("; least .. most compare runs of the same repeat."
                        if study.repeats else "."))
    if study.target is not None:
        notes.append(f"s to {study.target:.2f}, tokens to: until the mean training loss of "
                     f"{SMOOTH} steps is {study.target:.2f}; -: not reached.")
    notes.append("worker MiB, server MiB: the highest peak of any worker, of any server "
                 "(-: no server).")
    if staged(study):
        notes += ["bubble: the share of a step in which a stage waits for other stages. law: "
                  "the same for",
                  "equal stages. timetable: the same with each stage's measured times, but "
                  "no time for messages."]
    return "\n".join([*_speed(study), "", *_outcome(study), *_bubbles(study), *notes]) + "\n"
