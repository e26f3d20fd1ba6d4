"""The stories: what happens to a job, and what must be true afterwards."""

import collections
import os
import shutil
import signal
import subprocess

from disturb import MOMENTS, Victim
from draw import draw_way
from oracle import (alone, check_ranks, check_run, check_saved, compare_alone,
                    compare_bits, compare_files, compare_means, latest, rows_of, skips)
from outer import compare_outer
from promise import ONE_WORKER, SAME_BITS, bits_after_loss, first, is_loose, is_whole, \
    sizes, world
from run import Wrong

RESTARTS = 4  # of a job that signals hit
ROSE = .7  # nats that the loss of a disturbed elastic job may be above the undisturbed


def every_of(job):
    """The steps from one exchange of the workers to the next."""
    return job.get("every", 10) if job["sync"] == "outer" else 1


def saving(job):
    """A job with checkpoints."""
    return job if job.get("save") else {**job, "save": 2 * every_of(job)}


def compare_runs(out, other, what):
    """The rows and the last checkpoints of two runs are the same, to the bit."""
    compare_bits(rows_of(out), rows_of(other), what)
    compare_files(out, other, what)


def check_disturbed(case, job, out, whole, between=False):
    """What a job promises that lost processes, and ended well nevertheless. `between`:
    it lost them between two steps."""
    case.lockstep.verify(out)
    rows = rows_of(out)
    if bits_after_loss(job, between):
        other = rows_of(whole)
        if job.get("elastic"):  # a step that was made may lack its row
            other = {at: row for at, row in other.items() if at in rows}
        compare_bits(rows, other, "the undisturbed job")
        compare_files(out, whole, "the undisturbed job")
        return
    check_ranks(job, rows, out)
    last = max(step for step, _ in rows)
    if not is_loose(job) and last != job["steps"]:
        raise Wrong(f"{out.name}: the last step is {last} of {job['steps']}")
    ends = []
    for run in out, whole:
        rows = rows_of(run)
        late = [float(r["loss"]) for (step, _), r in rows.items() if step > last - 2]
        ends.append(sum(late) / len(late))
    if not ends[0] <= ends[1] + ROSE:
        raise Wrong(f"{out.name}: the loss ends with {ends[0]:.5g}, that of the "
                    f"undisturbed job with {ends[1]:.5g}")


def check_losses(case, job, victim, status, line):
    """Only those are lost that a signal hit: nobody starts again more often than
    processes were ended, and the job ends well as long as restarts= lasts."""
    restarts = victim.says("; restart ")
    # the last one was lost after the last step, and started again: then all are
    again = victim.says("no worker reached the end of the run; rank ") \
        if job.get("elastic") else 0
    if restarts > victim.sent + again:
        raise Wrong(f"{victim.out.name} ({case.note}): {restarts} restarts after "
                    f"{victim.sent} signals")
    if status and "restart" not in line and victim.sent <= RESTARTS:
        raise Wrong(f"{victim.out.name} ({case.note}): exit status {status}: {line}")


def whole_of(case, job):
    """The undisturbed job with these settings."""
    if job == case.job:
        return case.out
    out = case.folder / "whole"
    case.lockstep.train(job, out)
    return out


def go_on(case, job, out, **more):
    """Continues a job until it ends well."""
    case.lockstep.train(job, out, resume="auto", **more)


# ---- quiet

def quiet(case, rng):
    """Nothing happens."""
    del case, rng


def twin(case, rng):
    """The same job with settings that change no bit."""
    job = dict(case.job)
    rows = [r for r in SAME_BITS if r.holds(job)]
    for row in rng.sample(rows, min(len(rows), 4)):
        before = dict(job)
        job[row.key] = rng.choice(row.values)
        if not case.lockstep.accepts(job):
            job = before
    case.second = job
    out = case.folder / "twin"
    case.lockstep.train(job, out)
    compare_runs(out, case.out, "the job with other settings that change no bit")


# ---- losses

def death(case, rng):
    """A worker dies by inject=, and the job starts again."""
    job = saving(case.job)
    more = {**job, "restarts": 2,
            "inject": f"kill:{rng.randint(1, job['steps'])}@{rng.randrange(world(job))}"}
    if not case.lockstep.accepts(more):
        return
    out = case.folder / "death"
    case.lockstep.train(more, out)
    check_disturbed(case, job, out, whole_of(case, job), between=True)


def kill(case, rng):
    """One or two signals that end processes. The job starts again by itself, or by its
    user if the launcher was hit or an elastic job lost too many workers."""
    job, out = saving(case.job), case.folder / "kill"
    whole = whole_of(case, job)
    child = case.lockstep.start({**job, "restarts": RESTARTS}, out)
    victim = Victim(child, out, rng, job["steps"])
    hit, stopped = [], False
    slow = job.get("elastic") and job.get("net")  # messages are under way in each step
    for _ in range(rng.choice((1, 1, 2, 3))):
        moment = "step" if slow else rng.choice(MOMENTS if hit else MOMENTS[:-1])
        who = "worker" if slow else rng.choice((
            "worker", "worker", "worker", "server", "carrier", "launcher", "all workers"))
        number = rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
        restarts = victim.says("; restart ")
        if victim.wait(moment) and victim.send(who, number):
            hit.append(f"{signal.Signals(number).name} to {who} in {moment}")
            stopped = stopped or who == "launcher"
            if job.get("elastic") and who == "worker" and not slow:
                hit.append(victim.hold(restarts))
    case.note = "; ".join(hit)
    status, line = case.lockstep.finish(child)
    # without its servers an elastic job loses all workers
    if not stopped and not (job.get("elastic") and "to server" in case.note):
        check_losses(case, job, victim, status, line)
    if status:
        go_on(case, job, out, restarts=0)
    check_disturbed(case, job, out, whole)


def torn(case, rng):
    """A worker of an elastic job is killed in a save or a round that cannot end, because
    a server or another worker stands still."""
    job, out = dict(saving(case.job)), case.folder / "torn"
    if job["heads"] * 16 > job["channels"]:  # so large that a save can be hit
        job |= {"channels": 64 * job["heads"], "slice_kb": 1, "save": 1}
        job.pop("bucket_mb", None)  # so small ones would be too many
    whole = whole_of(case, job)
    child = case.lockstep.start({**job, "restarts": RESTARTS}, out)
    victim = Victim(child, out, rng, job["steps"])
    case.note = "; ".join(moment for moment in rng.choices(("save", "step"), k=3)
                          if victim.tear(moment))
    status, line = case.lockstep.finish(child)
    check_losses(case, job, victim, status, line)
    if status:
        go_on(case, job, out, restarts=0)
    check_disturbed(case, job, out, whole)


def again(case, rng):
    """A run that was resumed loses a worker, which comes back."""
    job = dict(saving(case.job))
    # The end of a run is an exchange of outer's, which a longer run has not there.
    job["steps"] += -job["steps"] % every_of(job)
    more = {**job, "steps": job["steps"] + rng.randint(3, 12), "restarts": RESTARTS}
    rank = rng.randrange(world(job))
    more["inject"] = f"kill:{rng.randint(1, more['steps'] - job['steps'])}@{rank}"
    if not case.lockstep.accepts(more):
        return
    out = case.folder / "again"
    case.lockstep.train({**job, "schedule": "constant"}, out)
    straight = {**job, "schedule": "constant", "steps": more["steps"]}
    whole = case.folder / "straight"
    case.lockstep.train(straight, whole)
    child = case.lockstep.start({**more, "schedule": "constant"}, out, resume="auto")
    victim = Victim(child, out, rng, more["steps"])
    if job.get("elastic"):
        case.note = victim.hold(0, 30)
    victim.sent += 1  # by inject=
    status, line = case.lockstep.finish(child)
    check_losses(case, job, victim, status, line)
    if status:
        go_on(case, straight, out)
    check_disturbed(case, straight, out, whole, between=True)


def freeze(case, rng):
    """A process stands still for 0.1 to 20 s. Nobody is lost."""
    job, out = saving(case.job), case.folder / "freeze"
    whole = whole_of(case, job)
    child = case.lockstep.start({**job, "restarts": 3}, out)
    victim = Victim(child, out, rng, job["steps"])
    seconds = .1 * 200 ** rng.random() ** 2
    if victim.wait(rng.choice(MOMENTS[:-1])):
        who = rng.choice(("worker", "worker", "server", "carrier", "launcher"))
        if victim.freeze(who, seconds):
            case.note = f"{who} for {seconds:.1f} s"
    status, line = case.lockstep.finish(child)
    if status:
        raise Wrong(f"freeze ({case.note}): exit status {status}: {line}")
    log = (out / "log.txt").read_text(errors="replace") if (out / "log.txt").exists() else ""
    # mpirun takes ranks that end while it is frozen for dead
    if "; restart " in log and not case.note.startswith("carrier"):
        raise Wrong(f"freeze ({case.note}): the job was restarted")
    case.lockstep.verify(out)
    if not is_loose(job):
        compare_runs(out, whole, "the undisturbed job")


def thaw(case, rng):
    """A process stands still for longer than timeout=. The job starts again, or gives up
    in time and goes on by resume=auto."""
    job, out = {**saving(case.job), "timeout": 3}, case.folder / "thaw"
    whole = whole_of(case, saving(case.job))
    child = case.lockstep.start({**job, "restarts": 3}, out)
    victim = Victim(child, out, rng, job["steps"])
    if victim.wait("step"):
        who = rng.choice(("worker", "worker", "server", "carrier"))
        if victim.freeze(who, rng.uniform(4, 20)):
            case.note = who
    status, _ = case.lockstep.finish(child)
    if status:
        go_on(case, {**job, "timeout": 60}, out, restarts=0)
    check_disturbed(case, job, out, whole)


def term(case, rng):
    """SIGTERM or SIGINT to the launcher, once or twice; then resume=auto."""
    job, out = {**saving(case.job), "steps": case.job["steps"] + 8}, case.folder / "term"
    child = case.lockstep.start(job, out)
    victim = Victim(child, out, rng, job["steps"])
    number = rng.choice((signal.SIGTERM, signal.SIGINT))
    sent = victim.wait(rng.choice(MOMENTS[:-1])) and victim.send("launcher", number)
    numbers = [number]
    if sent and rng.random() < .3:
        numbers.append(rng.choice((signal.SIGTERM, signal.SIGINT)))
        victim.send("launcher", numbers[1])
    status, line = case.lockstep.finish(child)
    if status not in (0, 128 + signal.SIGTERM, 128 + signal.SIGINT) and \
            -status not in numbers:
        raise Wrong(f"term: exit status {status}: {line}")
    if status == 0 and not (out / "summary.json").exists():
        raise Wrong(f"term: exit status 0 without a summary: {line}")
    go_on(case, job, out)
    if not is_loose(job):
        compare_runs(out, whole_of(case, job), "the job that nobody stopped")


def late(case, rng):
    """The last step of worker 0 takes longer than timeout=. Nobody needs it for a step, so
    the others wait at their end as long as it lives."""
    del rng  # the timeout is long enough for a start on a busy machine
    job = {**case.job, "timeout": 8, "inject": f"delay:{case.job['steps']}:10000"}
    case.lockstep.train(job, case.folder / "late")


# ---- disks

def slow_disk(case, rng):
    """The disk takes long for each save."""
    if not case.lockstep.disk.exists():
        return
    job, out = saving(case.job), case.folder / "slow"
    # others go on during a save, and then wait for who saves, at their end at the latest
    waited = is_loose(job)
    seconds = 3 if waited else rng.choice((.2, 1, 3))
    if seconds >= 1:  # a save takes six times as long, and there is time for some
        every = every_of(job)
        rarely = -(-job["steps"] // (4 * every)) * every
        job = {**job, "save": max(job["save"], rarely)}
    # a straggler's step may take longer than a short timeout on a busy machine
    short = .8 if waited else .3
    timeout = 60 if rng.random() > short or job.get("straggler") else 2
    case.note = f"{seconds} s a save, timeout={timeout}"
    case.lockstep.train({**job, "timeout": timeout}, out, {
        "LD_PRELOAD": str(case.lockstep.disk), "SLOW_DISK_S": str(seconds)})
    if not is_loose(job):
        compare_runs(out, whole_of(case, job), "the job with a fast disk")


def full_disk(case, rng):
    """The disk is full before the job ends. When there is room, the job goes on."""
    job, out = saving(case.job), case.folder / "full"
    whole = whole_of(case, job)
    if not case.mounts:
        return
    size = int(4096 * 500 ** rng.random())
    out.mkdir()
    case.note = f"{size} bytes"
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(out)]
    subprocess.run(mount, check=True)
    try:
        status, line = case.lockstep.finish(case.lockstep.start(job, out))
        if status and "space" not in line:
            raise Wrong(f"full ({case.note}): exit status {status}: {line}")
        subprocess.run([*mount[:3], "-o", "remount,size=1g", "tmpfs", str(out)],
                       check=True)
        go_on(case, job, out)
        if not is_loose(job):
            compare_runs(out, whole, "the job with an empty disk")
    finally:
        subprocess.run(["umount", "-l", str(out)], check=True)


# ---- resumes

def number(checkpoint):
    """The step of a checkpoint."""
    return int(checkpoint.name.rpartition("-")[2])


def checkpoints(out, before):
    """The checkpoints of a run of steps before one, in order."""
    found = [p for p in out.glob("checkpoint-*") if "aside" not in p.name]
    return sorted((p for p in found if number(p) < before), key=number)


def resume(case, rng):
    """A new folder goes on from the latest or an older checkpoint."""
    job, marks = case.job, checkpoints(case.out, case.job["steps"])
    out = case.folder / "resumed"
    if not marks and job.get("backup"):  # worker 0 left out all steps but the last
        return
    case.lockstep.train(job, out, resume=rng.choice(marks))
    if not is_loose(job):
        found, rows = rows_of(out), rows_of(case.out)
        compare_bits(found, {at: row for at, row in rows.items() if at in found},
                     "the job that was not resumed")
        compare_files(out, case.out, "the job that was not resumed")


def rewind(case, rng):
    """The same folder goes back to an older checkpoint with another learning rate, twice
    as long, and is stopped and continued on the way."""
    job = {**saving(case.job), "keep": 0}
    start, keep = case.folder / "start", case.job.get("keep", 2)
    case.lockstep.train(job, start)
    marks = checkpoints(start, job["steps"])
    if not marks:
        return
    mark, back = rng.choice(marks), case.folder / "rewound"
    shutil.copytree(start, back, symlinks=True)
    other = {**job, "lr": job["lr"] / 4, "steps": job["steps"] + rng.randint(0, 3)}
    straight = case.folder / "straight"
    case.lockstep.train(other, straight, resume=mark)
    more = {**other, "restarts": 2, "keep": keep}
    if job["sync"] != "local" and rng.random() < .5:
        more["inject"] = f"kill:{rng.randint(1, other['steps'])}"
        if not case.lockstep.accepts(more):
            del more["inject"]
    case.lockstep.train(more, back, resume=back / mark.name)
    if not (job.get("elastic") and "inject" in more):  # worker 0 may have been away
        check_saved(more, back)
    later = {p.name for p in checkpoints(start, job["steps"] + 1) if number(p) > number(mark)}
    aside = {p.name.partition(".")[0] for p in back.glob("checkpoint-*.aside-1")}
    if aside != later:
        raise Wrong(f"rewound to {mark.name}: {sorted(aside)} were put aside, not "
                    f"{sorted(later)}")
    if bits_after_loss(job) and not is_loose(job):
        found, rows = rows_of(straight), rows_of(back)
        compare_bits({at: row for at, row in rows.items() if at in found}, found,
                     "the job that went on in another folder")
        compare_files(back, straight, "the job that went on in another folder")


def other_way(case, rng):
    """A checkpoint goes on in another way with the same global batch."""
    job, total = case.job, case.job["accum"] * sizes(case.job)["dp"]
    marks = checkpoints(case.out, job["steps"])
    rule = {k: v for k, v in alone(job).items() if k not in ("sync", "accum")}
    for _ in range(60):
        other = {**rule, **draw_way(rng, job["layers"])}
        dp = sizes(other)["dp"]
        if not is_whole(job) and other["sync"] == job["sync"]:
            continue  # what squeeze= has asked for would stay
        if other["optimizer"] != job["optimizer"]:
            continue  # squeeze=demo is a rule
        if not total % dp and not is_loose(other) and not other.get("elastic"):
            other |= {"accum": total // dp, "eval_batches": 2}
            if case.lockstep.accepts(other):
                break
    else:
        return
    case.second = other
    if "mesh" in job and "mesh" not in other:
        other["mesh"] = ""  # or it stays
    if other["sync"] == "local":
        other["workers"] = 1
    for key, usual in ("net", ""), ("save_async", 0), ("offload", "none"):  # or they stay
        if job.get(key) and case.lockstep.accepts({**other, key: usual}):
            other[key] = usual
    if "mesh" in other and "workers" in job:
        other["workers"] = world(other)
    out = case.folder / "other"
    case.lockstep.train(other, out, resume=rng.choice(marks))
    rows, found = rows_of(case.out), rows_of(out)
    bounds = [first(ONE_WORKER, j).loss for j in (job, other)]
    if None not in bounds and not skips(rows) and not skips(found):
        compare_means(found, rows, {"loss": 2 * max(bounds)}, "the job that went on")


# ---- readers

def look(case, rng):
    """Somebody reads a run while it is written, and afterwards."""
    job, out = saving(case.job), case.folder / "looked"
    child = case.lockstep.start({**job, "steps": job["steps"] + 10}, out)
    victim = Victim(child, out, rng, job["steps"])
    if victim.wait(rng.choice(("step", "save"))):
        for words in rng.sample((("report", out), ("verify", out), ("explain", out),
                                 ("sample", out, "tokens=5")), 3):
            status, _, line = case.lockstep.ask(*words)
            if status not in (0, 1) or status and not line.startswith("lockstep: "):
                raise Wrong(f"{words[0]} while it runs: exit status {status}: {line}")
    status, line = case.lockstep.finish(child)
    if status:
        raise Wrong(f"looked: exit status {status}: {line}")
    case.lockstep.verify(out)
    for words in ("report", out), ("sample", latest(out), "tokens=5"):
        status, _, line = case.lockstep.ask(*words)
        if status:
            raise Wrong(f"{words[0]} after the end: exit status {status}: {line}")


def _has_marks(job):
    """Whether a checkpoint from before the last step stays."""
    return 0 < job.get("save", 0) < job["steps"] and job.get("keep", 2) != 1


# Each story, how often it is drawn, and which jobs it can be told of.
Story = collections.namedtuple("Story", "tell weight holds needs",
                               defaults=(lambda job: True, ""))
STORIES = {
    "quiet": Story(quiet, 2),
    "twin": Story(twin, 4, lambda job: not is_loose(job),
                  "no bits are promised of workers at different steps"),
    "death": Story(death, 2, lambda job: job["sync"] != "local",
                   "one worker alone is not lost by inject="),
    "kill": Story(kill, 4),
    "again": Story(again, 1, lambda job: job["sync"] != "local",
                   "one worker alone is not lost by inject="),
    "torn": Story(torn, 0, lambda job: job.get("elastic"), "only elastic=1 goes on"),
    "freeze": Story(freeze, 1),
    "thaw": Story(thaw, .5),
    "term": Story(term, 1.5),
    "late": Story(late, 12, lambda job: job.get("consistency") == "asp" and not (
        job.get("elastic") or job.get("straggler") or job.get("net")),
        "only under asp nobody waits for a step"),
    "slow_disk": Story(slow_disk, 1),
    "full_disk": Story(full_disk, 1),
    "resume": Story(resume, 3, _has_marks, "needs a checkpoint from before the end"),
    "rewind": Story(rewind, 1.5),
    "other_way": Story(other_way, 4, lambda job: _has_marks(job) and not (
        job["dropout"] or is_loose(job)), "needs losses that another way can have, and a "
        "checkpoint from before the end"),
    "look": Story(look, .7)}


def draw_story(rng, job):
    """The name of a story. Elastic jobs mostly lose somebody."""
    if job.get("elastic") and rng.random() < (.9 if job.get("net") else .7):
        return "kill" if job.get("net") else \
            rng.choice(("kill", "kill", "again", "again", "torn", "torn", "slow_disk"))
    names = [name for name, story in STORIES.items() if story.holds(job)]
    return rng.choices(names, [STORIES[n].weight for n in names])[0]


def tell(case, rng):
    """Runs a case: raises Wrong if it ends badly."""
    case.lockstep.train(case.job, case.out)
    rows = check_run(case.job, case.out)
    compare_alone(case.lockstep, case.job, rows, case.out)
    if case.job["sync"] == "outer":
        compare_outer(case.lockstep, case.job, case.out)
    if STORIES[case.story].holds(case.job):
        STORIES[case.story].tell(case, rng)
