// answer.c - the program around a student's file.
//
// The grader starts it once for a test, as `program CONTROL FIRST COUNT STACK`:
// the descriptor that it is told by, those of COUNT ranks, and the most bytes
// of a rank's stack. Each rank is a process of its own, which is forked when it
// is needed. It has one descriptor, by which it gets the arguments of the
// student's functions and makes the calls of lab.h. It holds no clock, no
// counters, no other rank's memory and no way to tell a result.

#include "labs/answer.h"

#include "base/base.h"
#include "labs/calls.h"
#include "labs/ops.h"
#include "labs/sandbox.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

// A message under way: the student's memory, and its hash when it was sent.
struct slot {
    bool used, sends;
    void *p;
    size_t bytes;
    uint64_t hash;
};

struct block { // of lab_alloc()
    struct block *next;
    void *p;
};

// The state of a rank's process.
static struct {
    struct wire wire;
    jmp_buf again; // where control goes if the grader gives up a call
    struct message next;
    struct part parts[MESSAGE_PARTS];
    size_t n_parts;
    struct slot slots[CALL_SLOTS];
    struct block *blocks;
} me;

static void leave(void)
{
    fflush(NULL);
    _exit(0);
}

// Calls a function of the grader. The grader may give up the student's call
// instead, if its rank was killed or is stuck: then it makes the next call.
static int64_t call(int what, const struct part *parts, int n)
{
    if (message_call(&me.wire, what, parts, n) ||
        message_next(&me.wire, &me.next))
        leave();
    if (me.next.kind == MESSAGE_CALL)
        longjmp(me.again, 1);
    if (message_results(&me.wire, &me.next, parts, n))
        leave();
    return me.next.result;
}

int64_t lab_back(int what, const struct part *parts, int n)
{
    return call(CALL_BACK + what, parts, n);
}

static uint64_t hash_of(const void *p, size_t bytes)
{
    uint64_t hash = 14695981039346656037u;
    const unsigned char *c = p;
    for (; bytes >= 8; bytes -= 8, c += 8) {
        uint64_t word;
        memcpy(&word, c, 8);
        hash = (hash ^ word) * 1099511628211u;
        hash ^= hash >> 29;
    }
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ c[i]) * 1099511628211u;
    return hash;
}

static int free_slot(void)
{
    int i = 0;
    while (i < CALL_SLOTS - 1 && me.slots[i].used)
        i++;
    return i;
}

// A request holds the number of its slot, from 1.
static struct slot *slot_of(const struct lab_req *r)
{
    uintptr_t i = (uintptr_t)r->op - 1;
    return i < CALL_SLOTS && me.slots[i].used ? &me.slots[i] : NULL;
}

// Finds the vector of the grader's call that holds these bytes. Part 0 is the
// place of the call.
static void find_vector(const void *p, size_t bytes, struct call_slot *its)
{
    uintptr_t at = (uintptr_t)p;
    for (size_t i = 1; i < me.n_parts; i++) {
        uintptr_t first = (uintptr_t)me.parts[i].p;
        if (at < first || at + bytes > first + me.parts[i].bytes)
            continue;
        its->part = (int64_t)i - 1;
        its->off = at - first;
    }
}

static int begin(int what, int peer, void *p, size_t bytes, struct lab_req *r)
{
    int i = free_slot();
    struct call_slot its = {i, peer, bytes, -1, 0};
    find_vector(p, bytes, &its);
    bool sends = what == CALL_SEND;
    struct part parts[] = {{&its, sizeof its, PART_IN}, {p, bytes, PART_IN}};
    int err = (int)call(what, parts, sends ? 2 : 1);
    *r = (struct lab_req){err ? NULL : (void *)(uintptr_t)(i + 1), err};
    if (!err)
        me.slots[i] =
            (struct slot){true, sends, p, bytes, sends ? hash_of(p, bytes) : 0};
    return err;
}

static int answer_isend(struct lab *l, int to, const void *p, size_t bytes,
                        struct lab_req *r)
{
    (void)l;
    return begin(CALL_SEND, to, (void *)p, bytes, r);
}

static int answer_irecv(struct lab *l, int from, void *p, size_t bytes,
                        struct lab_req *r)
{
    (void)l;
    if (bytes)
        memset(p, 0xff, bytes);
    return begin(CALL_RECV, from, p, bytes, r);
}

// Tells the grader of a message whose bytes the student has changed too early.
static void judge_slot(int64_t i)
{
    struct slot *s = &me.slots[i];
    if (s->sends && hash_of(s->p, s->bytes) != s->hash)
        call(CALL_CHANGED, &(struct part){&i, sizeof i, PART_IN}, 1);
}

static int answer_wait(struct lab *l, struct lab_req *r, int n)
{
    int64_t slots[LAB_REQUESTS];
    int32_t errs[LAB_REQUESTS];
    struct part parts[LAB_REQUESTS + 2];
    int count = 2;
    bool fits = n >= 0 && n <= LAB_REQUESTS;
    size_t known = fits ? (size_t)n : 0;
    for (size_t i = 0; i < known; i++) {
        const struct slot *s = slot_of(&r[i]);
        slots[i] = s ? s - me.slots : r[i].op ? CALL_SLOTS : -1;
        if (s)
            judge_slot(slots[i]);
        if (s && !s->sends)
            parts[count++] = (struct part){s->p, s->bytes, PART_OUT};
    }
    parts[0] = (struct part){slots, known * sizeof *slots, PART_IN};
    parts[1] = (struct part){errs, known * sizeof *errs, PART_OUT};
    int64_t many = n;
    struct part all = {&many, sizeof many, PART_IN};
    int err = (int)call(CALL_WAIT, fits ? parts : &all, fits ? count : 1);
    for (size_t i = 0; i < known; i++) {
        struct slot *s = slot_of(&r[i]);
        if (s)
            s->used = false;
        r[i] = (struct lab_req){NULL, errs[i]};
    }
    (void)l;
    return err;
}

static int answer_recv_any(struct lab *l, struct lab_note *n, void *p,
                           size_t most)
{
    struct part parts[] = {{n, sizeof *n, PART_OUT}, {p, most, PART_OUT}};
    (void)l;
    return (int)call(CALL_ANY, parts, 2);
}

static double answer_now(const struct lab *l)
{
    double seconds = 0;
    (void)l;
    call(CALL_NOW, &(struct part){&seconds, sizeof seconds, PART_OUT}, 1);
    return seconds;
}

static void answer_compute(struct lab *l, double seconds)
{
    (void)l;
    call(CALL_COMPUTE, &(struct part){&seconds, sizeof seconds, PART_IN}, 1);
}

static void *answer_alloc(struct lab *l, size_t n, size_t size)
{
    uint64_t sizes[] = {n, size};
    (void)l;
    if (call(CALL_ALLOC, &(struct part){sizes, sizeof sizes, PART_IN}, 1))
        return NULL;
    struct block *b = malloc(sizeof *b);
    void *p = malloc(n * size);
    if (!b || !p)
        die("no memory for %zu bytes", n * size);
    *b = (struct block){me.blocks, p};
    me.blocks = b;
    return memset(p, 0xff, n * size);
}

static int answer_missing(struct lab *l, int rank, const char *why)
{
    int64_t number = rank;
    struct part parts[] = {{&number, sizeof number, PART_IN},
                           {(char *)why, strlen(why) + 1, PART_IN}};
    (void)l;
    return (int)call(CALL_MISSING, parts, 2);
}

static const struct lab_ops ops = {
    .isend = answer_isend,
    .irecv = answer_irecv,
    .wait = answer_wait,
    .recv_any = answer_recv_any,
    .now = answer_now,
    .compute = answer_compute,
    .alloc = answer_alloc,
    .missing = answer_missing,
};

// Frees the memory of a call that has ended or was given up.
static void free_call(void)
{
    while (me.blocks) {
        struct block *b = me.blocks;
        me.blocks = b->next;
        free(b->p);
        free(b);
    }
    message_free(me.parts, me.n_parts);
    me.n_parts = 0;
}

// Runs the student's function that me.next calls, and answers.
static void answer(void)
{
    if (message_parts(&me.wire, &me.next, me.parts))
        leave();
    struct call_place place;
    me.n_parts = me.next.parts;
    CHECK(me.next.parts > 0 && me.parts[0].bytes == sizeof place);
    CHECK(me.next.what >= 0 && me.next.what < lab_n_answers);
    memcpy(&place, me.parts[0].p, sizeof place);
    if (place.fresh)
        memset(me.slots, 0, sizeof me.slots);
    struct lab l = {.rank = place.rank,
                    .workers = place.workers,
                    .servers = place.servers,
                    .thread = place.thread,
                    .alpha_s = place.alpha_s,
                    .bytes_per_s = place.bytes_per_s,
                    .ops = &ops};
    int64_t result = lab_answers[me.next.what](&l, me.parts + 1);
    if (message_done(&me.wire, result, me.parts, (int)me.n_parts))
        leave();
    free_call();
}

static void run_rank(int fd, size_t stack)
{
    me.wire.fd = fd;
    if (sandbox_enter(stack))
        die("%s", fail_message());
    if (setjmp(me.again)) {
        free_call();
        answer();
    }
    for (;;) {
        if (message_next(&me.wire, &me.next))
            leave();
        answer();
    }
}

// Forks a rank's process, which keeps no descriptor but its own.
static pid_t fork_rank(int fd, int control, int first, int count, size_t stack)
{
    pid_t pid = fork();
    if (pid < 0)
        die("no process for a rank; try: fewer workers");
    if (pid) {
        close(fd);
        return pid;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(control);
    for (int i = first; i < first + count; i++)
        if (i != fd)
            close(i);
    run_rank(fd, stack);
    return 0;
}

// If memory is short, these processes end, and not the grader.
static void end_first(void)
{
    FILE *f = fopen("/proc/self/oom_score_adj", "we");
    if (f) {
        fputs("1000", f);
        fclose(f);
    }
}

// Orders of the grader: a number of a rank to start; ~number: how did this rank
// end?
int main(int argc, char **argv)
{
    if (argc != 5)
        die("this program is started by labs/grade");
    int control = atoi(argv[1]), first = atoi(argv[2]), count = atoi(argv[3]);
    size_t stack = (size_t)atol(argv[4]);
    pid_t *pids = calloc((size_t)count, sizeof *pids);
    int32_t order;
    if (!pids)
        die("no memory for %d ranks", count);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    end_first();
    setvbuf(stdout, NULL, _IONBF, 0);
    while (recv(control, &order, sizeof order, MSG_WAITALL) == sizeof order) {
        int i = order < 0 ? ~order : order, status = 0;
        if (order >= 0) {
            pids[i] = fork_rank(first + i, control, first, count, stack);
        } else {
            waitpid(pids[i], &status, 0);
            if (send(control, &status, sizeof status, MSG_NOSIGNAL) < 0)
                return 1;
        }
    }
    return 0;
}
