#!/usr/bin/env python3
"""mutants.py SCRATCH [NAME ..] - puts mistakes into a copy of the product, one at a time,
and measures how long random jobs take to find each.
mutants.py --check - fails if a text that a mistake replaces is not in the product once.

    --seed S       the seed of the draws (default 1)
    --minutes M    how long to draw at most for a mistake (default 5)
    --jobs J       how many cases run at once (default 4)
    --list         only print the mistakes

SCRATCH becomes a copy of the tree with a build of its own; it is kept, so that the next
call builds less. A mistake replaces a text, which must be there once: if the product
changes, say it anew here. For each mistake found, prints the case, which kept.txt may
keep. Exit status 1 if a mistake was not found.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
TARGETS = ("lockstep", "trainer", "ps_server", "slow_disk")

# name: what is wrong, [(file, the right text, the wrong one)]
MUTANTS = {
    "answers-of-another-question": (
        "D1: a SLICE is taken for the present vector, and AGAIN restarts any task", [
            ("ps_worker/task.c",
             "    if (c->current == TASK_ROUND && h->round == c->round)\n"
             "        begin_anew(c, r);", "    begin_anew(c, r);"),
            ("ps_worker/task.c", "h->what == asked_for(c) && h->bytes",
             "asked_for(c) >= 0 && h->bytes")]),
    "no-rewind": ("D2: later checkpoints stay where a run went back", [
        ("train/run_state.c",
         "    return folder_rewind(out, is_own(t, folder, t->step) ? t->step : -1) ||",
         "    return (is_own(t, folder, 0) ? 0 : 0) ||")]),
    "unsaved-end": ("D4: the last step need not be saved", [
        ("train/save.c", "for (bool saved = false; !rc && !saved;) {",
         "for (bool saved = true; !rc && !saved;) {")]),
    "joins-at-a-round": ("D5: who joins a resumed run forgets its first step", [
        ("train/loop.c", "    t->step += steps;\n", "    t->step = steps;\n")]),
    "epoch-not-told": ("D7: a worker that joins later does not hear of a new epoch", [
        ("ps_server/bsp_members.c",
         "        if (s->peers[r].alive)\n"
         "            server_send(s, r, bsp_answer(s, PS_AGAIN)",
         "        if (s->peers[r].alive && b->order_of[r] >= 0)\n"
         "            server_send(s, r, bsp_answer(s, PS_AGAIN)")]),
    "skips-are-updates": ("a worker that is back counts skipped steps as updates", [
        ("ps_server/async.c", "h->value = (double)(p->clock - k->n);",
         "h->value = (double)(p->clock - 0 * k->n);")]),
    "full-unseen": ("rows that could not be written count as merged", [
        ("core/base/file.c", "file_flush(f) ?", "file_flush(f) && !path ?"),
        ("core/base/file.c", "return fclose(f) && !rc ?", "return fclose(f) && !path ?")]),
    "verify-while-elastic": ("D8: verify= compares with a dead worker", [
        ("core/config/check_run.c", "if (r->verify && set->elastic)",
         "if (r->verify < 0 && set->elastic)")]),
    "joins-at-0": ("D9: the first worker that is back in an ssp job begins at step 0", [
        ("ps_server/async.c", "least == UINT64_MAX ? a->most : least",
         "least == UINT64_MAX ? 0 * a->most : least")]),
    "tables-drift": ("D10: the last stage's copy of the table is not aligned", [
        ("train/stages.c", "if (n == 0 || !law_mesh_order_matters(t->members->world, wire))",
         "if (n != SIZE_MAX || !law_mesh_order_matters(t->members->world, wire))")]),
    "save-has-a-deadline": ("D11: the others wait for a save for timeout= only", [
        ("train/save.c",
         "    return own_pace ? sync_work(save->t->sync, part, save)\n"
         "                    : cluster_work(save->t->cluster, part, save);",
         "    int rc = part(save);\n"
         "    return own_pace ? rc : cluster_check(save->t->cluster, rc);")]),
    "busy-not-heard": ("D11: servers do not know of a worker's save at its own pace", [
        ("ps_server/peers.c", "    s->peers[rank].busy_ns = now_ns();\n", "")]),
    "stale-copies": ("D12: 16-bit copies of aligned tensors are stale", [
        ("train/slices.c", "        model_copy(t->model)->fresh = false;\n    return 0;",
         "        (void)0;\n    return 0;")]),
    "end-has-a-deadline": ("the first worker to end waits for timeout= only", [
        ("train/loop.c", "return own_pace && !set->elastic && !t->run.verify",
         "return own_pace && t->run.verify < 0")]),
    "overlapping-chunks": ("off by one: each chunk has an element of the next", [
        ("core/group/chunk.c", "size_t to = from + (even + (k < more)) * grain;",
         "size_t to = from + (even + (k <= more)) * grain;")]),
    "short-last-slice": ("off by one: the rest of a row belongs to no server", [
        ("ps_wire/shard.c", "return each * i + (i < rest ? i : rest);",
         "return each * i + (i < rest ? i : rest) * 0;")]),
    "lost-credit": ("a server's credit is not counted", [
        ("ps_worker/task.c", "        r->credit++;\n",
         "        r->credit += r->acked % 7 > 0;\n")]),
    "old-epoch": ("a round that is restarted keeps its epoch", [
        ("ps_server/bsp_members.c", "    b->epoch++;\n", "")]),
    "first-micro-batch-lost": ("the second micro-batch replaces the first's gradient", [
        ("train/compute.c", ".accumulate = a.micro > 0 && !lent,",
         ".accumulate = a.micro > 1 && !lent,")]),
    "mean-over-all-ranks": ("gradients are divided by stages and slices, too", [
        ("train/setup.c", "1 / ((float)t->replicas * (float)t->run.accum",
         "1 / ((float)t->cluster->world * (float)t->run.accum")]),
    "data-off-by-one": ("a resumed run leaves a batch out", [
        ("train/run_state.c", "    t->position = a.place.position;",
         "    t->position = a.place.position + 1;")]),
    "last-micro-batch-alone": ("zero: sums of earlier micro-batches are lost", [
        ("zero/blocks.c", "    *summed = true;\n", "    *summed = false;\n")]),
    "prunes-one-more": ("keep=N keeps one checkpoint less", [
        ("train/folder.c", "    if (rc || !keep || count <= keep)",
         "    keep -= keep > 1;\n    if (rc || !keep || count <= keep)")]),
    "last-rank-not-merged": ("steps.csv lacks the rows of the last rank", [
        ("core/telemetry/merge.c", "    for (int r = 0; r < world; r++) {\n"
         "        if (text_into", "    for (int r = 0; r < world - 1; r++) {\n"
         "        if (text_into")]),
    "scratch-stays": ("mpirun's folders are not removed", [
        ("launch/scratch.c", "        if (*(*s)->path[i])\n            remove_all",
         "        if (0 && *(*s)->path[i])\n            remove_all")]),
    "wire-not-unscaled": ("a 16-bit wire's factor is not taken back", [
        ("sync/sync.c", "1 : in->grad_scale / s->scale,", "1 : in->grad_scale,")]),
    "places-reused": ("shared memory: a place is written while others read it", [
        ("horovod_ring/ring_shm.c",
         "            s->done.places + 1 >= s->ready.places &&\n"
         "            all_have(s, READY, s->placed));", "            true);")]),
    "decay-of-others": ("zero: weight decay is that of a unit's begin", [
        ("zero/zero.c", "u->own.off + at, n, &rule, scale);",
         "u->all.off + at, n, &rule, scale);")]),
    "table-not-tied": ("the two stages' gradients of the table are not added", [
        ("train/compute.c", "    if (stages_tie(t))\n",
         "    if (t->run.pace.given && stages_tie(t))\n")]),
    "ssp-one-more": ("ssp: a worker may be a step further ahead", [
        ("ps_server/async.c", "return slowest_other(s, rank) >= next - bound;",
         "return slowest_other(s, rank) >= next - bound - 1;")]),
    "skips-count": ("a skipped step counts as an update", [
        ("train/loop.c", ".step = t->updates + 1,", ".step = t->step + 1,")]),
    "rows-stay": ("rows of steps that are done again are not dropped", [
        ("core/telemetry/steps.c", "        if (step > keep)\n            continue;\n", "")]),
    "saves-another-vector": ("save_async=1: the copy has the parameters as a moment", [
        ("train/save.c", "    memcpy(snapshot_vector(saver->copy, 0), place_read(",
         "    memcpy(snapshot_vector(saver->copy, 1), place_read(")]),
    "norm-counts-twice": ("slices: the norm counts a tensor of all slices for each", [
        ("train/parts.c", "        if (t.n == 0 || part_counts(c, i))",
         "        if (t.n == 0 || i >= 0 || part_counts(c, i))")]),
    "velocity-forgotten": ("the outer velocity is not carried on", [
        ("outer/outer.c", "velocity[i] = momentum * velocity[i] + d;",
         "velocity[i] = d;")]),
}


def build(scratch):
    """Builds the programs. Whether they could be built."""
    done = subprocess.run(["cmake", "--build", scratch / "build", "--target", *TARGETS],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout[-2000:])
    return done.returncode == 0


def copy_tree(scratch):
    """Copies what git knows, and configures a build. Files that did not change keep
    their times."""
    files = subprocess.run(["git", "ls-files", "-z"], cwd=TREE, capture_output=True,
                           text=True, check=True).stdout.split("\0")
    for name in filter(None, files):
        old, new = TREE / name, scratch / name
        if not new.exists() or new.read_bytes() != old.read_bytes():
            new.parent.mkdir(parents=True, exist_ok=True)
            new.write_bytes(old.read_bytes())
            new.chmod(old.stat().st_mode)
    if not (scratch / "build" / "build.ninja").exists():
        subprocess.run(["cmake", "-S", scratch, "-B", scratch / "build", "-G", "Ninja",
                        "-DCMAKE_BUILD_TYPE=Release", "-DLOCKSTEP_CUDA=OFF",
                        "-DCMAKE_C_COMPILER_LAUNCHER=ccache"], check=True,
                       stdout=subprocess.DEVNULL)


def draw(scratch, a):
    """Draws until a case fails. Returns (seconds, the case's line), or None."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, TREE / "tests/random_jobs/main.py",
         scratch / "build/bin/lockstep", "--seed", a.seed, "--minutes", str(a.minutes),
         "--jobs", str(a.jobs), "--until"], capture_output=True, text=True, check=False)
    found = re.search(r"^case .*?: (.*)\n(?:  .*\n)*?  FAILED after \d+ s: (.*)$",
                      done.stdout, re.M)
    return (time.monotonic() - began, *found.groups()) if found else None


def check():
    """Whether the product has the text of each mistake once. Prints those that it has
    not."""
    wrong = [(name, file, count) for name, (_, changes) in MUTANTS.items()
             for file, right, _ in changes
             if (count := (TREE / file).read_text().count(right)) != 1]
    for name, file, count in wrong:
        print(f"{name}: {file} has its text {count} times, instead of once; try: say the "
              "mistake anew")
    if not wrong:
        print(f"ok: the texts of {len(MUTANTS)} mistakes are in the product")
    return not wrong


def judge(scratch, name, a):
    """Whether a mistake is found. Prints how."""
    what, changes = MUTANTS[name]
    before = {}
    for file, right, wrong in changes:
        path = scratch / file
        before.setdefault(path, path.read_text())
        path.write_text(path.read_text().replace(right, wrong))
    found = draw(scratch, a) if build(scratch) else None
    for path, text in before.items():
        path.write_text(text)
    print(f"{name}: " + (f"{found[0]:.0f} s: {found[2][:160]}\n    {found[1]}" if found else
                         f"NOT FOUND in {a.minutes:g} minutes: {what}"), flush=True)
    return found


def main():
    """Judges the mistakes that were named, or all."""
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("scratch", type=pathlib.Path, nargs="?")
    p.add_argument("names", nargs="*")
    p.add_argument("--seed", default="1")
    p.add_argument("--minutes", type=float, default=5)
    p.add_argument("--jobs", type=int, default=4)
    p.add_argument("--list", action="store_true")
    p.add_argument("--check", action="store_true")
    a = p.parse_args()
    if a.check:
        return 0 if check() else 1
    if a.list:
        print(*(f"{n}: {what}" for n, (what, _) in MUTANTS.items()), sep="\n")
        return 0
    if not a.scratch:
        p.error("SCRATCH is missing")
    if not check():
        return 1
    a.scratch = a.scratch.resolve()
    copy_tree(a.scratch)
    missed = [n for n in a.names or MUTANTS if not judge(a.scratch, n, a)]
    print(f"{len(a.names or MUTANTS) - len(missed)} of {len(a.names or MUTANTS)} found"
          + (f"; not {', '.join(missed)}" if missed else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
