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


def _table(*columns, remarks=()):
    """Lines of columns, each a list of its head and its cells: the first is flush left,
    the others are flush right."""
    widths = [max(map(len, column)) for column in columns]
    lines = ["  ".join(cell.rjust(w) if i else cell.ljust(w)
                       for i, (cell, w) in enumerate(zip(row, widths)))
             for row in zip(*columns)]
    return [f"{line}  {more}".rstrip() for line, more in zip(
        lines, ["", *(remarks or [""] * len(lines))])]


def _measured(study, head, measure, decimals, ranged=False, scale=None):
    """The column of a measure's medians, and with repeats one of "least .. most"."""
    ranges = [study.range(c, measure) for c in study.filled]
    scale = MEASURES[measure].scale if scale is None else scale
    yield [head, *(_number(r.median, decimals, scale) for r in ranges)]
    if ranged and study.repeats:
        yield ["least .. most", *(
            f"{_number(r.least, decimals, scale)} .. {_number(r.most, decimals, scale)}"
            if r.n > 1 else "" for r in ranges)]


def _names(study):
    return ["cell", *(c.shown for c in study.filled)]


def _remark(run):
    parts = [f"net={run.net}"] * bool(run.net) + ["oversubscribed"] * run.oversubscribed
    parts += [f"slept: pace={run.pace}"] * bool(run.pace)
    parts += [f"WRONG: {run.mistakes}"] * bool(run.mistakes)
    return "  ".join(parts)


def _of_workers(study):
    """A column for each worker, or one for all if they are many."""
    shares = [[study.worker_share(c, w) for w in range(study.first(c).world)]
              for c in study.filled]
    if study.workers > SHOWN:
        known = [[s for s in of if s is not None] for of in shares]
        return [["least .. most", *(f"{_percent(min(s, default=None))} .. "
                                    f"{_percent(max(s, default=None))}" for s in known)]]
    return [[f"u{w}", *(_percent(s[w]) if w < len(s) else "" for s in shares)]
            for w in range(study.workers)]


def _speed(study):
    runs = [study.first(c) for c in study.filled]
    speedups = _measured(study, "speed-up", "speedup", 2, True) \
        if study.experiment.baseline else ()
    return _table(
        _names(study), ["backend", *(r.backend for r in runs)],
        ["workers", *(str(r.world) for r in runs)],
        ["servers", *(str(r.servers) for r in runs)], *_of_workers(study),
        ["total", *(_percent(study.range(c, "utilisation_total").median)
                    for c in study.filled)],
        *_measured(study, "tokens/s", "tokens_per_s", 0, True), *speedups,
        *_measured(study, "step ms", "step_s", 1), remarks=list(map(_remark, runs)))


def _outcome(study):
    timed = () if study.target is None else (
        *_measured(study, f"s to {study.target:.2f}", "seconds_to_target", 2, True),
        *_measured(study, "tokens to", "tokens_to_target", 0, scale=1))
    validated = _measured(study, "best val.", "best_val_loss_nats", 4, True) \
        if study.has("best_val_loss_nats") else ()
    return _table(_names(study), *timed, *_measured(study, "loss", "train_loss_nats", 4),
                  *validated, *_measured(study, "worker MiB", "peak_memory_bytes", 1),
                  *_measured(study, "server MiB", "server_peak_memory_bytes", 1))


BUBBLES = ("bubble_share", "law_bubble_share", "timetable_bubble_share", "step_s",
           "timetable_step_s")


def staged(study):
    """The cells with stages of a pipeline."""
    return [c for c in study.filled if (study.first(c).number("way.stages") or 1) > 1]


def _bubbles(study):
    cells = staged(study)
    return ["", *_table(
        ["cell", *(c.shown for c in cells)],
        ["stages", *(f"{study.first(c).number('way.stages'):.0f}" for c in cells)],
        *([MEASURES[m].label, *(_number(study.range(c, m).median, 1, MEASURES[m].scale)
                                for c in cells)] for m in BUBBLES))] if cells else []


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
             f"tokens/s: the tokens that a step trained on, divided by the time of the median "
             f"step{steps}."]
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
