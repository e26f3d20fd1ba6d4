"""What can be proved of a run from what it left.

Each check yields a Finding: it holds, it is wrong, or it cannot be proved, and why.
The checkpoints are checked by the trainer (`trainer verify`), which knows how they are
written: hashes, numbers, and the validation loss of their weights.
"""

import collections
import dataclasses
import fcntl
import json
import math
import os
import re
import resource
import subprocess

from .files import Error, number, read_json, read_text, visible, whole
from .places import trainer
from .runs import Run

OK, WRONG, UNKNOWN = "ok", "WRONG", "--"
WITHIN, WITHIN_16_BITS = 1e-5, 1e-2  # of a loss that is computed again
NUMBERS = {"tokens": "tokens", "time_s": "time_s", "loss": "loss", "val_loss": "val_loss",
           "skipped": "skipped", "dropped": "dropped", "sent": "bytes_tx",
           "received": "bytes_rx", "restarts": "restarts", "lost": "steps_lost",
           "lost_s": "lost_s"}
SIZES = {"layers": "n_layer", "heads": "n_head", "channels": "n_embd",
         "context": "n_positions", "vocab_size": "vocab_size"}
LEFT = r"\.(next|old)-.*|.*\.tmp|.*\.csv\.next|(steps|util|breakdown)\.\d+\.csv"
Row = collections.namedtuple("Row", ("step", "rank", *NUMBERS))


@dataclasses.dataclass
class Finding:
    """A line of the report."""
    mark: str
    what: str
    text: str

    def __str__(self):
        return f"{self.mark:5} {self.what}: {visible(self.text)}"


def _float(text):
    try:
        return float(text)
    except (TypeError, ValueError):
        return math.nan


class _Facts:
    """A run, and its rows of each rank in the order of the file."""

    def __init__(self, folder):
        self.run = run = Run(folder)
        self.ranks, self.at = collections.defaultdict(list), {}
        self.steps = collections.defaultdict(list)
        for count, cells in enumerate(run.rows("steps"), 2):
            step = whole(cells.get("step"), 1, 1e9)
            rank = whole(cells.get("rank"), 0, 1e6)
            if step is None or rank is None:
                raise Error(f"line {count} has step {visible(cells.get('step'))} of rank "
                            f"{visible(cells.get('rank'))}")
            row = Row(step, rank, *(_float(cells.get(c)) for c in NUMBERS.values()))
            self.ranks[rank].append(row)
            self.steps[step].append(row)
            self.at[step, rank] = row
        self.resumed = bool(run.setting("resume"))
        self.since = int(run.number("resumed_from_step") or 0)
        self.elastic = run.setting("elastic") == "1"
        self.leaves_out = run.setting("backup") not in ("", "0")  # late workers
        # its workers need not be at the same step
        self.free = run.text("way.promise") or \
            (self.leaves_out and "backup=") or \
            (run.mistakes and f"mistakes ({run.mistakes})")
        self.last = max(self.steps, default=0)
        self.asked = int(number(run.setting("steps")) or 0)


def _end(facts):
    where = f"step {facts.last} of {facts.asked}"
    if not facts.run.finished:
        yield Finding(UNKNOWN, "end",
                      f"it was stopped after {where}: there is no summary.json")
    elif facts.elastic and facts.last == facts.asked - 1:
        yield Finding(UNKNOWN, "end", f"summary.json is there; the last row is of {where}: "
                      "a worker that is lost right after a step leaves no row of it")
    else:
        yield Finding(OK if facts.last == facts.asked else WRONG, "end",
                      f"summary.json is there; the last step is {where}")


# ---- rows

def _gap(facts, a, b):
    """What is wrong between two rows of a rank; "" if nothing is."""
    who = f"of rank {a.rank}"
    if b.step == a.step:
        return f"step {a.step} {who} is there twice"
    if b.step < a.step:
        return f"step {b.step} {who} follows step {a.step}"
    missing, lost = b.step - a.step - 1, b.lost - a.lost
    # started twice between them, it may also have done steps again
    explained = lost == missing or lost > missing and b.restarts > a.restarts + 1
    if not missing or facts.elastic and explained:
        return ""
    lacks = f"lacks step {a.step + 1} {who}" if missing == 1 else \
        f"lacks steps {a.step + 1} .. {b.step - 1} {who}"
    return lacks + (f"; steps_lost explains {lost:.0f}" if facts.elastic else "")


def _may_lack(facts, row):
    """Whether a rank may lack steps or tokens before a row: its steps come too late for
    backup=, or all went on with a checkpoint, which has worker 0's step and tokens."""
    return facts.leaves_out or facts.free and (facts.resumed or row.restarts > 0)


def _rows(facts):
    """Every step of every rank is there once."""
    wrong, unknown, world = [], [], facts.run.world
    if set(facts.ranks) != set(range(world)):
        lacks = set(range(world)) - set(facts.ranks)
        (unknown if facts.elastic or facts.free or not facts.run.finished else wrong).append(
            f"rows of ranks {sorted(facts.ranks)}, there were {world} workers"
            if not lacks else f"no row of rank {min(lacks)}")
    for rank, rows in sorted(facts.ranks.items()):
        first, last = rows[0].step, rows[-1].step
        for a, b in zip(rows, rows[1:]):
            if gap := _gap(facts, a, b):
                (unknown if _may_lack(facts, b) else wrong).append(gap)
        # what goes on in its own folder keeps the rows of worker 0
        own = rank == 0 and facts.run.setting("resume") == "auto"
        begins = {1} if own else {1, facts.since + 1}
        if facts.elastic:  # it came too late for its first steps
            begins.add(rows[0].lost + 1)
        if first not in begins:
            early = facts.resumed and first <= facts.since
            (unknown if early or facts.leaves_out else wrong).append(
                f"the rows of rank {rank} begin with step {first}"
                + f"; this part of the run began with step {facts.since + 1}"
                * (facts.since > 0))
        if last != facts.last:
            (unknown if facts.elastic or facts.free or not facts.run.finished
             else wrong).append(f"the rows of rank {rank} end with step {last}, those of "
                                f"others with step {facts.last}")
    if wrong:
        yield Finding(WRONG, "rows", "; ".join(wrong[:3]))
    elif unknown:
        yield Finding(UNKNOWN, "rows", "; ".join(unknown[:3]))
    else:
        first = min(facts.steps, default=0)
        lost = facts.elastic and any(r[-1].lost for r in facts.ranks.values())
        yield Finding(OK, "rows", f"steps {first} .. {facts.last} of {world} "
                      f"rank{'s' * (world > 1)}, each once" +
                      ", but for those lost" * bool(lost))


def _restarts(facts):
    """Restarts and lost steps are counted, and never fall."""
    for rank, rows in sorted(facts.ranks.items()):
        for a, b in zip(rows, rows[1:]):
            if b.restarts < a.restarts or b.lost < a.lost or b.lost_s < a.lost_s:
                yield Finding(WRONG, "restarts", f"fall after step {a.step} of rank {rank}")
                return
    ends = [rows[-1] for rows in facts.ranks.values()]
    restarts = max((r.restarts for r in ends), default=0)
    lost = max((r.lost for r in ends), default=0)
    wrong = not restarts and lost
    yield Finding(WRONG if wrong else OK, "restarts",
                  f"{restarts:.0f}, and {lost:.0f} steps were lost")


def _tokens(facts):
    """Each step of this part of the run adds the tokens of its batch, or none if it
    was skipped."""
    run, more = facts.run, facts.run.global_batch * facts.run.context
    exact = not facts.free and not facts.elastic
    for rank, rows in sorted(facts.ranks.items()):
        before = Row(0, rank, 0, *[0] * (len(NUMBERS) - 1))
        for row in rows:
            follows = row.step == before.step + 1 and row.step > facts.since
            adds = row.tokens - before.tokens
            if adds < 0 and not _may_lack(facts, row) or exact and follows and adds != (0 if row.skipped else more):
                yield Finding(WRONG, "tokens", f"step {row.step} of rank {rank} adds "
                              f"{adds:.0f}; a step has {more}")
                return
            before = row
    whole_run = max((r[-1].tokens for r in facts.ranks.values()), default=0)
    yield Finding(OK, "tokens", f"{whole_run:.0f}" +
                  (f"; {more} a step" if exact and run.finished else ", never fewer"))


def _sums(facts):
    """What summary.json must say: {name: value}."""
    rows = [r for of in facts.ranks.values() for r in of]
    loss = best = val = best_val = math.nan
    best_step = 0
    for step, of in sorted(facts.steps.items()):
        loss = sum(r.loss for r in of) / len(of)
        best = best if loss >= best else loss
        vals = [r.val_loss for r in of if not math.isnan(r.val_loss)]
        if vals:
            val = sum(vals) / len(vals)
            if not val >= best_val:
                best_val, best_step = val, step
    return {"steps": facts.last, "tokens": max(r.tokens for r in rows),
            "final_train_loss": loss, "best_train_loss": best, "final_val_loss": val,
            "best_val_loss": best_val, "best_val_step": best_step,
            "steps_skipped": sum(r.skipped != 0 for r in rows if not r.rank),
            "gradients_dropped": sum(r.dropped for r in rows),
            "restarts": max(r.restarts for r in rows),
            "steps_lost": max(r.lost for r in rows),
            "seconds": max(r.time_s for r in rows),
            "seconds_lost": max(r.lost_s for r in rows),
            "bytes_tx": sum(r.sent for r in rows), "bytes_rx": sum(r.received for r in rows)}


def _same(a, b, within=1e-9):
    if a is None or b is None or math.isnan(a) or math.isnan(b):
        return (a is None or math.isnan(a)) and (b is None or math.isnan(b))
    return abs(a - b) <= within * max(abs(a), abs(b))


def _summary(facts):
    """summary.json has the sums of steps.csv."""
    summary = facts.run.summary
    if not facts.run.finished:
        yield Finding(UNKNOWN, "summary", "the run did not end")
        return
    found = {k: (number(summary.get(k)), v) for k, v in _sums(facts).items()}
    wrong = [f"{k} is {'none' if said is None else f'{said:.9g}'}, steps.csv gives "
             f"{v:.9g}" for k, (said, v) in found.items() if not _same(said, v)]
    yield Finding(WRONG if wrong else OK, "summary", "; ".join(wrong) or
                  f"{len(found)} numbers are those of steps.csv")


def _replicas(facts):
    """Whether replicas were the same is known only while they run."""
    run, every = facts.run, number(facts.run.setting("verify")) or 0
    if run.world == 1:
        yield Finding(OK, "replicas", "one worker")
    elif every and not facts.free:
        yield Finding(OK, "replicas",
                      f"verify={every:.0f} found them equal until step {facts.last}")
    else:
        yield Finding(UNKNOWN, "replicas", "whether they were equal is not recorded; "
                      "verify=K compares them every K steps")


# ---- checkpoints

def _checkpoints(run):
    """{step: folder's name}, in order, without those that were moved aside."""
    found = (re.fullmatch(r"checkpoint-(\d{1,9})", f) for f in os.listdir(run.folder))
    return dict(sorted((int(m[1]), m[0]) for m in found if m))


def _saved(facts):
    """The last step was saved, `latest` names the newest, nothing else is left."""
    run, there = facts.run, _checkpoints(facts.run)
    every, keep = (number(run.setting(k)) or 0 for k in ("save", "keep"))
    newest = list(there.values())[-1] if there else "none"
    path = os.path.join(run.folder, "latest")
    latest = read_text(path, 4096).strip() if os.path.lexists(path) else "none"
    after = WRONG if run.finished else UNKNOWN  # what a stopped run may leave
    if run.finished and every:
        kept = facts.asked in there
        yield Finding(OK if kept else WRONG, "save",
                      f"checkpoint-{facts.asked} is {'' if kept else 'not '}there")
        if keep and len(there) > keep:
            yield Finding(WRONG, "save", f"{len(there)} checkpoints, keep={keep:.0f}")
    if there or latest != "none":
        yield Finding(OK if latest == newest else after, "latest",
                      f"names {latest}, the newest is {newest}")
    left = sorted(f for f in os.listdir(run.folder) if re.fullmatch(LEFT, f))
    if left:
        yield Finding(after, "left", f"by a process that ended early: {', '.join(left[:5])}")


def _ask_trainer(folder, words):
    """What `trainer verify` says of a checkpoint."""
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    command = [trainer(), "verify", os.path.abspath(folder), *words]
    done = subprocess.run(  # it may need more memory than files from a stranger may
        command, capture_output=True, encoding="utf-8", errors="replace", check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (most, most)))
    if done.returncode:
        raise Error(f"trainer verify {visible(folder)}: exit status {done.returncode}: "
                    f"{visible(done.stderr.strip()[-300:])}")
    return json.loads(done.stdout.splitlines()[-1])


def _state_wrong(facts, step, state):
    """What state.json and config.json say that the run does not."""
    run, resumed = facts.run, facts.resumed and step <= facts.since
    # any worker of an elastic job may have saved, and each counts for itself
    savers = range(run.world) if facts.elastic else [0]
    rows = [facts.at.get((step, r)) for r in savers]
    says = {k: number(state.get(k)) for k in ("step", "updates", "epoch",
                                              "windows_of_epoch", *SIZES)}
    tokens = number(state.get("tokens"))  # an older version did not count them
    if None in says.values():
        yield f"state.json has no {min(k for k, v in says.items() if v is None)}"
        return
    if says["step"] != step:
        yield f"it is of step {says['step']:.0f}"
        return
    for key in SIZES:
        if says[key] != run.number(f"model.{key}"):
            yield f"{key} is {says[key]:.0f}, run.json has {run.number(f'model.{key}')}"
    if all(rows) and tokens is not None and tokens not in (r.tokens for r in rows):
        yield (f"{tokens:.0f} tokens, steps.csv has "
               f"{' or '.join(f'{r.tokens:.0f}' for r in rows)}")
    before = [r for r in facts.ranks.get(0, []) if r.step <= step]
    if [r.step for r in before] == list(range(1, step + 1)) and \
            says["updates"] != sum(not r.skipped for r in before):
        yield (f"{says['updates']:.0f} updates, steps.csv has "
               f"{sum(not r.skipped for r in before)}")
    position = says["epoch"] * (run.number("data.steps_per_epoch") or 0) + \
        says["windows_of_epoch"] / max(1, run.global_batch)
    if position != step and not facts.resumed:
        yield f"the data are at step {position:g}"
    if state.get("data_hash_xxh3") != run.text("data.hash_xxh3") and not resumed:
        yield "it was trained on other data than run.json names"


def _files_wrong(facts, folder, step):
    state = read_json(os.path.join(folder, "state.json"))
    yield from _state_wrong(facts, step, state)
    config = read_json(os.path.join(folder, "config.json"))
    for key, name in SIZES.items():
        if number(config.get(name)) != facts.run.number(f"model.{key}"):
            yield (f"config.json has {name} {visible(config.get(name))}, run.json "
                   f"{facts.run.number(f'model.{key}')}")


def _recorded(facts, step):
    """(the validation loss that the run recorded at a step, ""), or (None, why it
    cannot be computed again)."""
    run, rows = facts.run, facts.steps.get(step, [])
    vals = [r.val_loss for r in rows if not math.isnan(r.val_loss)]
    if not vals:
        return None, (f"step {step} has no val_loss; try: eval=, at the steps at which "
                      "save= saves")
    if facts.free:
        return None, f"under {facts.free} workers have parameters of their own"
    if len(vals) < run.world:
        return None, f"{len(vals)} of {run.world} workers evaluated"
    if run.get("way.apart") is True and step % run.every and step != facts.last:
        return None, "workers have parameters of their own between two exchanges"
    return sum(vals) / len(vals), ""


def _evaluation(run):
    """Words with which one worker evaluates what all did."""
    batch = int(number(run.setting("batch")) or 1)
    replicas = int(run.world / max(1, run.number("way.parts") or 1))
    there = max(0, int(run.number("data.val_tokens") or 0) - 1) // run.context // \
        (batch * replicas)
    most = int(number(run.setting("eval_batches")) or 0)
    return [f"batch={batch}", "eval=1",
            f"eval_batches={max(1, min(most, there) if most else there) * replicas}"]


def _loss(facts, step, said, recorded, why):
    run, name = facts.run, f"checkpoint-{step} loss"
    loss = number(said.get("val_loss"))
    if why or said.get("unknown"):
        return Finding(UNKNOWN, name, why or str(said.get("unknown")))
    if said.get("data_hash_xxh3") != run.text("data.hash_xxh3"):
        return Finding(UNKNOWN, name, "the data have changed since")
    exact = run.setting("precision") == "fp32" and run.setting("tf32") in ("", "0")
    within = WITHIN if exact else WITHIN_16_BITS
    same = loss is not None and _same(loss, recorded, within)
    text = f"{'none' if loss is None else f'{loss:.9g}'}, steps.csv has {recorded:.9g}"
    if not same and facts.resumed and step <= facts.since:
        return Finding(UNKNOWN, name, text + ", of an earlier part of the run, which may "
                       "have had other settings")
    return Finding(OK if same else WRONG, name, text)


def _checkpoint(facts, step, folder):
    name = os.path.basename(folder)
    recorded, why = _recorded(facts, step)
    said = _ask_trainer(folder, ["eval=0"] if why else _evaluation(facts.run))
    if said.get("wrong"):
        yield Finding(WRONG, name, str(said["wrong"]))
        return
    sealed = "hash_xxh3" in read_json(os.path.join(folder, "state.json"))
    yield Finding(OK if sealed else UNKNOWN, name, ("hashes right" if sealed else
                  "no hashes, as an older version wrote it") +
                  ", numbers finite, second moments not negative")
    try:
        wrong = list(_files_wrong(facts, folder, step))
    except Error as broken:
        wrong = [str(broken)]
    yield Finding(WRONG if wrong else OK, f"{name} state", "; ".join(wrong) or
                  "step, tokens, updates, position in the data and sizes are the run's")
    if not wrong:
        yield _loss(facts, step, said, recorded, why)


# ---- all

def _is_written(folder):
    """Whether a job holds the folder's lock."""
    try:
        fd = os.open(os.path.join(folder, ".lock"), os.O_RDONLY | os.O_NONBLOCK |
                     os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(fd)


def verify(folder):
    """The findings about a run, one after the other."""
    if not os.path.exists(os.path.join(folder, "run.json")):
        raise Error(f"{visible(folder)}: no run.json is there; try: the folder of a run, "
                    "which out= names")
    if _is_written(folder):
        raise Error(f"{visible(folder)}: a job is writing there; try: when it has ended")
    run = Run(folder)
    try:
        facts = _Facts(folder)
    except Error as why:
        yield Finding(WRONG, "rows", str(why))
        return
    if not facts.ranks:
        yield Finding(WRONG if run.finished else UNKNOWN, "rows", "none")
        return
    for check in _end, _rows, _restarts, _tokens, _summary, _replicas, _saved:
        yield from check(facts)
    for step, name in _checkpoints(run).items():
        yield from _checkpoint(facts, step, os.path.join(folder, name))
