// grade.c - lab 9: the tests of checkpoints after a kill or a loss of power.
//
// The disk is a list of all its changes. So the tests can try every state that
// a kill or a loss of power can leave: after every call, and with any subset of
// the unsynced changes lost. Of ten or more unsynced changes, 1024 random
// subsets are tried.

#include "labs/09-resume/resume.h"

#include "labs/check.h"
#include "labs/crash.h"
#include "labs/term.h"

#include "base/rng.h"

#include <string.h>

enum { MOST = 6000, KILLED = -2, STATES = 1024 };

// Where a disk's steps begin, and their distance: a hidden case draws them.
static int first_step, gap = 1;

// The step of save number i of a disk. i counts from 1 to at most 30; 0: none.
static int step_of(int i)
{
    return i ? first_step + gap * (LAB_STEPS_DOWN ? 31 - i : i) : 0;
}

static void draw_steps(const struct lab_case *k)
{
    gap = (int)lab_pick(k, 1, 9000);
    first_step = (int)lab_pick(k, 0, 700000);
}

// The bytes of a step's checkpoint.
static size_t content(int step, size_t bytes, char *p)
{
    for (size_t i = 0; i < bytes; i++)
        p[i] = (char)rng_u64((uint64_t)step, i);
    return bytes;
}

// Runs save number i.
static int save(struct disk *d, int i, size_t bytes)
{
    char p[MOST], text[32];
    snprintf(text, sizeof text, "save of step %d", step_of(i));
    crash_mark(d, text);
    return checkpoint_save(d, step_of(i), p, content(step_of(i), bytes, p));
}

// The same, but the process is killed in its call number `call`: then the
// result is KILLED. With `half` a write in this call writes half of its bytes.
static int save_until(struct disk *d, int i, size_t bytes, long call, bool half)
{
    jmp_buf leave;
    volatile int result = KILLED;
    if (!setjmp(leave)) {
        crash_at(d, call, half, &leave);
        result = save(d, i, bytes);
    }
    crash_at(d, 0, false, NULL);
    return result;
}

static int prune_until(struct disk *d, int keep, long call)
{
    jmp_buf leave;
    volatile int result = KILLED;
    if (!setjmp(leave)) {
        crash_mark(d, "prune");
        crash_at(d, call, false, &leave);
        result = checkpoint_prune(d, keep);
    }
    crash_at(d, 0, false, NULL);
    return result;
}

// Resume must give the whole data of save number a or b; 0 is no save.
static bool want_one(struct lab_case *k, struct disk *d, int a, int b,
                     size_t bytes, const char *when)
{
    char p[MOST + 1], ought[MOST];
    int step = -7;
    long n = checkpoint_resume(d, &step, p, sizeof p);
    if (n < 0)
        return lab_want(k, a == 0 || b == 0,
                        "%s: resume finds nothing; step %d was saved", when,
                        step_of(a));
    if (!lab_want(k, (step == step_of(a) || step == step_of(b)) && step > 0,
                  "%s: resume finds step %d, and not %d or %d", when, step,
                  step_of(a), step_of(b)))
        return false;
    content(step, bytes, ought);
    return lab_want(
        k, n == (long)bytes && memcmp(p, ought, bytes) == 0,
        "%s: resume finds step %d with %ld bytes, which are not the "
        "%zu that were saved",
        when, step, n, bytes);
}

// Makes a disk with this many saves. Returns NULL if the test failed.
static struct disk *disk_with(struct lab_case *k, int saves, size_t bytes)
{
    struct disk *d = crash_new();
    bool ok = lab_want(k, d, "no memory for a disk");
    for (int i = 1; ok && i <= saves; i++)
        ok = lab_want(k, save(d, i, bytes) == 0,
                      "checkpoint_save() of step %d, %zu bytes, failed",
                      step_of(i), bytes);
    if (!ok)
        crash_free(&d);
    return d;
}

static const size_t sizes[] = {1, 300, 5000};

// Saves steps 0, 999999 and some between, with 0 bytes and more than a reader
// wants, 40 on one disk, which has 16 descriptors.
static void round_hidden(struct lab_case *k)
{
    struct disk *d = crash_new();
    int step = 0;
    for (int i = 0; i < 40 && d && !lab_failed(k); i++) {
        char p[MOST + 1], ought[MOST];
        int up = i == 0 ? 0 : i == 39 ? 999999 : i * 25000 + step % 7 + i % 3;
        step = LAB_STEPS_DOWN ? 999999 - up : up;
        size_t bytes = i % 5 ? lab_pick(k, 1, 900) + (size_t)i : 0;
        size_t most = i % 3 ? sizeof p : bytes / 2;
        content(step, bytes, ought);
        memset(p, 7, sizeof p);
        lab_want(k, checkpoint_save(d, step, ought, bytes) == 0,
                 "save %d of one disk, step %d, %zu bytes, failed", i + 1, step,
                 bytes);
        int is = -7;
        long n = checkpoint_resume(d, &is, p, most);
        size_t got = bytes < most ? bytes : most;
        lab_want(k, is == step && n == (long)got && !memcmp(p, ought, got),
                 "save %d of one disk: of step %d with %zu bytes resume finds "
                 "step %d and %ld bytes, for a buffer of %zu",
                 i + 1, step, bytes, is, n, most);
        if (i % 4 == 3)
            lab_want(k, checkpoint_prune(d, 2) == 0,
                     "save %d of one disk: checkpoint_prune(2) failed", i + 1);
    }
    crash_free(&d);
}

static void round_trip(struct lab_case *k)
{
    if (lab_hidden(k))
        round_hidden(k);
    for (int i = 0; i < 3 * 13 && !lab_failed(k); i++) {
        struct disk *d = disk_with(k, i % 13, sizes[i / 13]);
        if (d)
            want_one(k, d, i % 13, i % 13, sizes[i / 13], "no crash");
        crash_free(&d);
    }
}

// The next process must find a whole checkpoint, and a disk on which it can
// save.
static bool want_next(struct lab_case *k, struct disk *after, int old, int new,
                      size_t bytes, const char *when)
{
    if (!lab_want(k, after, "no memory for a disk"))
        return false;
    return want_one(k, after, old, new, bytes, when) &&
           lab_want(k, save(after, new + 1, bytes) == 0,
                    "%s: the next save failed", when) &&
           want_one(k, after, new + 1, new + 1, bytes, when);
}

struct loss {
    uint64_t mask, seed;
    bool by_mask;
};

static bool is_lost(const void *ctx, int i)
{
    const struct loss *l = ctx;
    return (l->by_mask ? l->mask >> i : rng_u64(l->seed, (uint64_t)i)) & 1;
}

// Shows the student what led to the first failure: the calls, and what the
// crash left of them.
static void show(struct lab_case *k, const struct disk *d,
                 const struct loss *loss, bool torn)
{
    FILE *f = lab_failed(k) ? lab_log(k) : NULL;
    struct disk *after = crash_after(d, loss ? is_lost : NULL, loss, torn);
    if (f && after)
        crash_show(d, after, loss ? is_lost : NULL, loss, torn, f);
    crash_free(&after);
}

// Calls each() on all states that a loss of power can leave.
static void for_losses(struct lab_case *k, const struct disk *d,
                       void (*each)(struct lab_case *, struct disk *, void *),
                       void *arg)
{
    int pending = crash_pending(d);
    uint64_t states = pending < 10 ? (uint64_t)1 << pending : STATES;
    for (uint64_t i = 0; i < 2 * states && !lab_failed(k); i++) {
        struct loss loss = {.mask = i / 2,
                            .seed = i / 2,
                            .by_mask = pending < 10};
        struct disk *after = crash_after(d, is_lost, &loss, i % 2);
        if (lab_want(k, after, "no memory for a disk"))
            each(k, after, arg);
        crash_free(&after);
        show(k, d, &loss, i % 2);
    }
}

// What a process may find after a crash: save number old or new.
struct found {
    int old, new;
    size_t bytes;
    char when[96];
};

static void want_found(struct lab_case *k, struct disk *after, void *arg)
{
    const struct found *f = arg;
    want_next(k, after, f->old, f->new, f->bytes, f->when);
}

// Tries all states that a loss of power can leave. If saved == 0, `new` was
// saved.
static void lose_power(struct lab_case *k, const struct disk *d, int saved,
                       int old, int new, size_t bytes, long call)
{
    struct found f = {saved == 0 ? new : old, new, bytes, ""};
    snprintf(f.when, sizeof f.when,
             "power lost %s call %ld of save, %d pending",
             saved == 0 ? "after the last" : "before", call, crash_pending(d));
    for_losses(k, d, want_found, &f);
}

// Kills save(new) in its first call, then in its second, and so on until a save
// is complete.
static void each_call(struct lab_case *k, int old, size_t bytes, bool power)
{
    int new = old + 1, saved = KILLED;
    for (long call = 1; saved == KILLED; call++)
        for (int half = 0; half < 2; half++) {
            struct disk *d = disk_with(k, old, bytes);
            if (!d)
                return;
            saved = save_until(d, new, bytes, call, half);
            if (power) {
                lose_power(k, d, saved, old, new, bytes, call);
            } else {
                struct disk *after = crash_after(d, NULL, NULL, false);
                char when[96];
                snprintf(when, sizeof when, "killed in call %ld of save", call);
                want_next(k, after, saved == 0 ? new : old, new, bytes, when);
                crash_free(&after);
                show(k, d, NULL, false);
            }
            crash_free(&d);
            if (!lab_want(k, saved == 0 || saved == KILLED,
                          "checkpoint_save() failed on a sound disk") ||
                lab_failed(k))
                return;
        }
}

static void crashes(struct lab_case *k, bool power)
{
    for (int s = 0; s < 3; s++)
        for (int old = 0; old <= 2; old++)
            each_call(k, old, sizes[s], power);
    for (int old = 1; old <= 2 && lab_hidden(k) && !lab_failed(k); old++) {
        draw_steps(k);
        each_call(k, old, lab_pick(k, 2, MOST), power);
    }
}

static void killed(struct lab_case *k)
{
    crashes(k, false);
}

static void power(struct lab_case *k)
{
    crashes(k, true);
}

// Sync number `number` of a save fails. If save returns 0 nevertheless, the
// checkpoint must survive a loss of power; else that before it must.
static void want_failure(struct lab_case *k, int number)
{
    struct disk *d = lab_failed(k) ? NULL : disk_with(k, 2, 300);
    if (!d)
        return;
    crash_fail_sync(d, number);
    int saved = save(d, 3, 300);
    crash_fail_sync(d, 0);
    struct found f = {saved == 0 ? 3 : 2, 3, 300, ""};
    snprintf(f.when, sizeof f.when,
             "sync %d of save failed, it returned %d, then power lost", number,
             saved);
    for_losses(k, d, want_found, &f);
    crash_free(&d);
}

// Twenty saves that fail, on a full disk or because the first sync fails; the
// disk has 16 descriptors.
static void want_failures(struct lab_case *k, bool is_full)
{
    const char *when = is_full ? "the disk is full" : "the first sync fails";
    struct disk *d = lab_failed(k) ? NULL : disk_with(k, 2, 300);
    for (int i = 0; d && i < 20; i++) {
        crash_set_space(d, is_full ? 7 * (size_t)i : SIZE_MAX);
        crash_fail_sync(d, is_full ? 0 : 1);
        int saved = save(d, 3, 300);
        lab_want(k, saved == -1,
                 "%s for the %dth time: checkpoint_save() returned %d, not -1",
                 when, i + 1, saved);
    }
    if (!d)
        return;
    crash_set_space(d, SIZE_MAX);
    crash_fail_sync(d, 0);
    want_one(k, d, 2, 2, 300, "after twenty saves that failed");
    lab_want(k, save(d, 4, 300) == 0, "%s twenty times: the next save failed",
             when);
    want_one(k, d, 4, 4, 300, "a save after twenty that failed");
    crash_free(&d);
}

// The disk has space for this many bytes of save 3.
static void want_full(struct lab_case *k, size_t bytes, size_t space)
{
    struct disk *d = lab_failed(k) ? NULL : disk_with(k, 2, bytes);
    if (!d)
        return;
    crash_set_space(d, space);
    int saved = save(d, 3, bytes), left = saved == 0 ? 3 : 2;
    char when[96];
    snprintf(when, sizeof when, "space for %zu of %zu bytes", space, bytes);
    lab_want(k, saved == -1 || space >= bytes,
             "%s: checkpoint_save() returned %d, not -1", when, saved);
    want_one(k, d, left, left, bytes, when);
    crash_set_space(d, SIZE_MAX);
    lab_want(k, save(d, 4, bytes) == 0, "%s: the next save failed", when);
    want_one(k, d, 4, 4, bytes, "a save after the disk was full");
    crash_free(&d);
}

static void full(struct lab_case *k)
{
    want_failures(k, true);
    for (int number = 1; number <= 3 && lab_hidden(k); number++)
        want_failure(k, number);
    if (lab_hidden(k))
        want_failures(k, false);
    for (size_t space = 0; space < 320; space += 20)
        want_full(k, 300, space);
    for (size_t space = 0; space < 40 && lab_hidden(k); space += 9)
        want_full(k, lab_pick(k, 40, 63), space);
}

// How many checkpoints checkpoint_prune(keep) must leave, if there are as many.
static int to_keep(int keep)
{
    int least = LAB_KEEP == 2 ? 2 : 1;
    return LAB_KEEP == 1 ? keep + 1 : keep < least ? least : keep;
}

// Checks how many bytes checkpoint_prune(keep) leaves of `saves` checkpoints of
// 300 bytes. Each checkpoint may take up to 100 bytes more.
static void want_pruned(struct lab_case *k, int saves, int keep)
{
    struct disk *d = lab_failed(k) ? NULL : disk_with(k, saves, 300);
    int kept = to_keep(keep) < saves ? to_keep(keep) : saves;
    if (!d)
        return;
    save_until(d, saves + 1, 300, 4, false); // unfinished, or whole
    int step = 0;
    char p[MOST];
    checkpoint_resume(d, &step, p, sizeof p);
    int newest = saves + (step == step_of(saves + 1));
    lab_want(k, checkpoint_prune(d, keep) == 0, "checkpoint_prune(%d) failed",
             keep);
    want_one(k, d, newest, newest, 300, "after prune");
    size_t stored = crash_stored(d);
    lab_want(k, stored >= (size_t)kept * 300 && stored <= (size_t)kept * 400,
             "prune(%d) of %d checkpoints of 300 bytes leaves %zu bytes, which "
             "are not those of %d",
             keep, saves, stored, kept);
    crash_free(&d);
}

static void want_kept(struct lab_case *k, struct disk *after, void *arg)
{
    const struct found *f = arg;
    want_one(k, after, f->old, f->new, f->bytes, f->when);
}

// Save 3 is killed in its call number `call`. The next process prunes, and the
// power fails in prune's call number `then`. Returns the results of both.
static void want_newest(struct lab_case *k, long call, long then, int result[2])
{
    struct disk *d = disk_with(k, 2, 300);
    struct found f = {.old = 2, .new = 3, .bytes = 300};
    int step = 0;
    char p[MOST];
    if (!d)
        return;
    result[0] = save_until(d, 3, 300, call, false);
    checkpoint_resume(d, &step, p, sizeof p);
    result[1] = prune_until(d, 1, then);
    snprintf(f.when, sizeof f.when,
             "save killed in call %ld, prune in call %ld, then power lost",
             call, then);
    if (result[0] == 0 || (result[1] == 0 && step == step_of(3)))
        f.old = 3;
    for_losses(k, d, want_kept, &f);
    crash_free(&d);
}

// A save of an older step, after three saves.
static void want_older(struct lab_case *k)
{
    struct disk *d = LAB_AGAIN ? disk_with(k, 3, 300) : NULL;
    if (!d)
        return;
    int saved = save(d, 2, 300), left = LAB_AGAIN == 2 ? 2 : 3;
    lab_want(k, (saved == 0) == (LAB_AGAIN == 2),
             "a save of step %d after step %d: checkpoint_save() returned %d",
             step_of(2), step_of(3), saved);
    want_one(k, d, left, left, 300, "after a save of an older step");
    lab_want(k, save(d, 4, 300) == 0, "the save after it failed");
    want_one(k, d, 4, 4, 300, "the save after it");
    crash_free(&d);
}

// Kills checkpoint_prune(keep) of 6 checkpoints in each of its calls.
static void want_prune_killed(struct lab_case *k, int keep)
{
    int pruned = KILLED;
    for (long call = 1; pruned == KILLED && !lab_failed(k); call++) {
        struct disk *d = disk_with(k, 6, 300);
        if (!d)
            return;
        pruned = prune_until(d, keep, call);
        lose_power(k, d, 0, 6, 6, 300, call);
        crash_free(&d);
    }
}

static void prune(struct lab_case *k)
{
    int result[2] = {KILLED, KILLED};
    want_older(k);
    for (int keep = 0; keep <= 7; keep++)
        want_pruned(k, 6, keep);
    want_prune_killed(k, 2);
    for (long call = 1; result[0] == KILLED && !lab_failed(k); call++) {
        result[1] = KILLED;
        for (long then = 1; result[1] == KILLED && !lab_failed(k); then++)
            want_newest(k, call, then, result);
    }
    for (int i = 0; i < 2 && lab_hidden(k); i++) {
        draw_steps(k);
        want_pruned(k, (int)lab_pick(k, 7, 25), (int)lab_pick(k, 8, 24));
        want_prune_killed(k, i ? 1 : 3);
    }
}

static const struct lab_test tests[] = {
    {"round", 10, round_trip, NULL,
     LAB_STEPS_DOWN
         ? "Step 9 is newer than step 10, also where names are compared."
         : "Step 10 is newer than step 9, also where names are compared."},
    {"kill", 20, killed, "round",
     "Until it is whole, a checkpoint must not have the name that resume looks "
     "for."},
    {"power", 20, power, "kill",
     "Which of your calls make bytes survive, and which make names survive? In "
     "which order must they come?"},
    {"full", 10, full, "round",
     "disk_write() says how many bytes it has written."},
    {"prune", 10, prune, "round",
     "Whichever changes of a prune are lost, the newest checkpoint must "
     "stay."},
    {NULL, 0, NULL, NULL, NULL},
};

const struct lab_about lab_about = {
    .number = 9,
    .name = "kill it and resume",
    .file = "resume.c",
    .functions = "checkpoint_save checkpoint_resume checkpoint_prune",
    .floor = 10,
    .tests = tests,
};
