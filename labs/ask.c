// ask.c - calls the student's functions in other processes, and serves the
// calls of lab.h that they make meanwhile.
//
// Whatever such a process sends, it only makes calls of its own rank: this
// process counts bytes and seconds, and writes the result.

#include "labs/ask.h"

#include "base/base.h"
#include "labs/calls.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 65, ALONE = RANKS - 1, FIRST = 180 };

// A message under way: the grader's copy of its bytes.
struct slot {
    struct lab_req r;
    void *p;
    size_t bytes;
    bool used, sends;
};

struct client {
    struct wire wire;
    bool started, fresh;
    struct slot slots[CALL_SLOTS];
    struct part parts[MESSAGE_PARTS]; // of the call that is served
    size_t n_parts;
};

static struct {
    int control;
    struct client *clients; // RANKS; the last one is for calls without a rank
    struct ask_sent *sent;  // of this run
    size_t n_sent, room;
    bool over; // the run has ended; the next one begins a new list
    char fault[256];
} all;

// The process of a rank has ended: this process ends in the same way, so that
// labs/grade sees why.
static _Noreturn void end_like(int i)
{
    int32_t order = ~i, status = 0;
    if (send(all.control, &order, sizeof order, MSG_NOSIGNAL) < 0 ||
        recv(all.control, &status, sizeof status, MSG_WAITALL) <= 0)
        die("the process of the file has ended");
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    if (WIFEXITED(status) && WEXITSTATUS(status))
        _exit(WEXITSTATUS(status));
    die("the file ended its process");
}

static _Noreturn void refuse(const char *why)
{
    die("the file's process broke off the test: %s", why);
}

void ask_wants(const struct part *parts, int n, int count, const size_t *bytes)
{
    if (n < count)
        refuse("a call with too few parts");
    for (int i = 0; i < count; i++)
        if (parts[i].bytes < bytes[i])
            refuse("a call with a part that is too short");
}

bool ask_bool(const bool *b)
{
    unsigned char byte;
    memcpy(&byte, b, 1);
    return byte != 0;
}

static void free_slot(struct slot *s)
{
    free(s->p);
    *s = (struct slot){.p = NULL};
}

static struct slot *slot_of(struct client *c, int64_t i)
{
    return i >= 0 && i < CALL_SLOTS ? &c->slots[i] : NULL;
}

// Takes the bytes of a part, which message_free() then leaves.
static void *take(struct part *part)
{
    void *p = part->p;
    part->p = NULL;
    return p;
}

// Notes where the bytes of a message came from. Without memory it is not known.
static void note_sent(const struct lab *l, const struct call_slot *its)
{
    int ranks = l->workers + l->servers;
    size_t room = all.room ? 2 * all.room : 256;
    all.n_sent = all.over ? 0 : all.n_sent;
    all.over = false;
    if (all.n_sent == all.room) {
        void *more = realloc(all.sent, room * sizeof *all.sent);
        if (!more)
            return;
        all.sent = more;
        all.room = room;
    }
    bool known = its->part >= 0 && its->part < MESSAGE_PARTS;
    all.sent[all.n_sent++] =
        (struct ask_sent){.from = l->rank + l->thread * ranks,
                          .to = (int)its->peer + l->thread * ranks,
                          .part = known ? (int)its->part : -1,
                          .off = its->off,
                          .bytes = its->bytes};
}

const struct ask_sent *ask_message(int from, int to, size_t number)
{
    for (size_t i = 0; i < all.n_sent; i++)
        if (all.sent[i].from == from && all.sent[i].to == to && !number--)
            return &all.sent[i];
    return NULL;
}

static int begin(struct client *c, struct lab *l, bool sends,
                 struct part *parts, int n)
{
    struct call_slot its;
    ask_wants(parts, n, sends ? 2 : 1, (size_t[]){sizeof its, 0});
    memcpy(&its, parts[0].p, sizeof its);
    struct slot *s = slot_of(c, its.slot);
    if (!s || its.bytes > (uint64_t)1 << 28 ||
        (sends && parts[1].bytes != its.bytes))
        refuse("a message that is too long");
    if (s->used)
        return fail("rank %d has %d messages under way; try: lab_wait()",
                    l->rank, CALL_SLOTS);
    *s = (struct slot){.p = sends ? take(&parts[1]) : malloc(its.bytes + 1),
                       .bytes = its.bytes,
                       .used = true,
                       .sends = sends};
    if (!s->p && its.bytes)
        die("no memory for a message of %zu bytes", s->bytes);
    int err = sends ? lab_isend(l, (int)its.peer, s->p, s->bytes, &s->r)
                    : lab_irecv(l, (int)its.peer, s->p, s->bytes, &s->r);
    if (err)
        free_slot(s);
    else if (sends)
        note_sent(l, &its);
    return err;
}

// Copies what has come to the parts of the receives, which are in their order.
static void give(struct slot *const *slots, size_t n, const struct part *parts,
                 int count)
{
    int at = 0;
    for (size_t i = 0; i < n; i++) {
        if (!slots[i] || slots[i]->sends)
            continue;
        if (at == count || parts[at].bytes != slots[i]->bytes)
            refuse("a wait for other bytes");
        if (slots[i]->bytes)
            memcpy(parts[at].p, slots[i]->p, slots[i]->bytes);
        at++;
    }
}

static int await(struct client *c, struct lab *l, const struct part *parts,
                 int n)
{
    struct lab_req r[LAB_REQUESTS];
    struct slot *slots[LAB_REQUESTS];
    int64_t numbers[LAB_REQUESTS];
    ask_wants(parts, n, 1, (size_t[]){0});
    size_t count = parts[0].bytes / sizeof *numbers;
    if (n == 1) { // more than LAB_REQUESTS, or fewer than none
        ask_wants(parts, n, 1, (size_t[]){sizeof *numbers});
        memcpy(numbers, parts[0].p, sizeof *numbers);
        if (numbers[0] >= 0 && numbers[0] <= LAB_REQUESTS)
            refuse("a wait without its messages");
        return lab_wait(l, r, (int)numbers[0]);
    }
    if (count > LAB_REQUESTS || parts[1].bytes != count * sizeof(int32_t))
        refuse("a wait for too many messages");
    memcpy(numbers, parts[0].p, count * sizeof *numbers);
    for (size_t i = 0; i < count; i++) {
        slots[i] = slot_of(c, numbers[i]);
        slots[i] = slots[i] && slots[i]->used ? slots[i] : NULL;
        r[i] = slots[i]          ? slots[i]->r
               : numbers[i] >= 0 ? (struct lab_req){c, 0} // no request
                                 : (struct lab_req){NULL, 0};
    }
    int err = lab_wait(l, r, (int)count);
    give(slots, count, parts + 2, n - 2);
    for (size_t i = 0; i < count; i++) {
        memcpy((int32_t *)parts[1].p + i, &(int32_t){r[i].err},
               sizeof(int32_t));
        if (slots[i])
            free_slot(slots[i]);
    }
    return err;
}

static int recv_any(struct lab *l, const struct part *parts, int n)
{
    struct lab_note note = {0, 0};
    ask_wants(parts, n, 2, (size_t[]){sizeof note, 0});
    int err = lab_recv_any(l, &note, parts[1].p, parts[1].bytes);
    memcpy(parts[0].p, &note, sizeof note);
    return err;
}

static int alloc(struct lab *l, const struct part *parts, int n)
{
    uint64_t sizes[2];
    ask_wants(parts, n, 1, (size_t[]){sizeof sizes});
    memcpy(sizes, parts[0].p, sizeof sizes);
    return lab_alloc(l, sizes[0], sizes[1]) ? 0 : -1;
}

static int missing(struct lab *l, const struct part *parts, int n)
{
    int64_t rank;
    ask_wants(parts, n, 2, (size_t[]){sizeof rank, 1});
    memcpy(&rank, parts[0].p, sizeof rank);
    char *text = parts[1].p;
    text[parts[1].bytes - 1] = '\0';
    return lab_missing(l, (int)rank, text);
}

static int changed(struct lab *l)
{
    snprintf(all.fault, sizeof all.fault,
             "rank %d changes the bytes of a message before lab_wait() has "
             "returned for it",
             l->rank);
    return 0;
}

static int64_t compute(struct lab *l, const struct part *parts, int n)
{
    double seconds;
    ask_wants(parts, n, 1, (size_t[]){sizeof seconds});
    memcpy(&seconds, parts[0].p, sizeof seconds);
    if (seconds > 1e9) // inf - inf would be no time at all
        refuse("it computes for more than 1e9 s");
    lab_compute(l, seconds);
    return 0;
}

static int64_t now(struct lab *l, const struct part *parts, int n)
{
    double seconds = lab_now(l);
    ask_wants(parts, n, 1, (size_t[]){sizeof seconds});
    memcpy(parts[0].p, &seconds, sizeof seconds);
    return 0;
}

// Makes a call of lab.h for the rank l.
static int64_t serve(struct client *c, struct lab *l, int what,
                     struct part *parts, int n)
{
    if (!l)
        refuse("a call of lab.h in a function that has no rank");
    switch (what) {
    case CALL_SEND:
    case CALL_RECV:
        return begin(c, l, what == CALL_SEND, parts, n);
    case CALL_WAIT:
        return await(c, l, parts, n);
    case CALL_ANY:
        return recv_any(l, parts, n);
    case CALL_NOW:
        return now(l, parts, n);
    case CALL_COMPUTE:
        return compute(l, parts, n);
    case CALL_ALLOC:
        return alloc(l, parts, n);
    case CALL_MISSING:
        return missing(l, parts, n);
    case CALL_CHANGED:
        return changed(l);
    default:
        refuse("a call that lab.h does not have");
    }
}

static struct client *client_of(const struct lab *l, int *number)
{
    int i = l ? l->rank + l->thread * (l->workers + l->servers) : ALONE;
    CHECK(i < RANKS && (!l || i < ALONE));
    struct client *c = &all.clients[i];
    *number = i;
    int32_t order = i;
    if (!c->started &&
        send(all.control, &order, sizeof order, MSG_NOSIGNAL) < 0)
        die("the process of the file has ended");
    c->started = true;
    return c;
}

static void free_parts(struct client *c)
{
    message_free(c->parts, c->n_parts);
    c->n_parts = 0;
}

static void serve_next(struct client *c, struct lab *l, const struct message *m,
                       ask_back *back, void *ctx)
{
    if (message_parts(&c->wire, m, c->parts))
        refuse(fail_message());
    c->n_parts = m->parts;
    int n = (int)m->parts;
    if (m->what >= CALL_BACK && !back)
        refuse("a call that this lab does not have");
    int64_t result = m->what >= CALL_BACK
                         ? back(ctx, l, m->what - CALL_BACK, c->parts, n)
                         : serve(c, l, m->what, c->parts, n);
    message_done(&c->wire, result, c->parts, n); // ask() sees if it has ended
    free_parts(c);
}

int64_t ask(struct lab *l, int what, const struct part *parts, int n,
            ask_back *back, void *ctx)
{
    int number;
    struct client *c = client_of(l, &number);
    struct call_place place = {.fresh = c->fresh};
    if (l)
        place = (struct call_place){l->rank,    l->workers,    l->servers,
                                    l->thread,  c->fresh,      0,
                                    l->alpha_s, l->bytes_per_s};
    struct part with[16] = {{&place, sizeof place, PART_IN}};
    CHECK(n < 16);
    for (int i = 0; i < n; i++)
        with[i + 1] = parts[i];
    free_parts(c); // of a call that a killed rank has left by a jump
    c->fresh = false;
    struct message m = {.kind = MESSAGE_DONE};
    if (message_call(&c->wire, what, with, n + 1) || message_next(&c->wire, &m))
        end_like(number);
    while (m.kind == MESSAGE_CALL) {
        serve_next(c, l, &m, back, ctx);
        if (message_next(&c->wire, &m))
            end_like(number);
    }
    if (message_results(&c->wire, &m, with, n + 1))
        refuse(fail_message());
    return m.result;
}

void ask_reset(char fault[256])
{
    for (int i = 0; i < RANKS; i++) {
        struct client *c = &all.clients[i];
        for (int s = 0; s < CALL_SLOTS && c->started && !c->fresh; s++)
            free_slot(&c->slots[s]);
        c->fresh = true;
    }
    all.over = true;
    memcpy(fault, all.fault, sizeof all.fault);
    all.fault[0] = '\0';
}

static void run_program(const char *program, int control, size_t stack)
{
    const size_t numbers[4] = {(size_t)control, FIRST, RANKS, stack};
    char text[4][24], *words[6] = {(char *)program};
    for (int i = 0; i < 4; i++) {
        snprintf(text[i], sizeof text[i], "%zu", numbers[i]);
        words[i + 1] = text[i];
    }
    execv(program, words);
    die("%s does not start", program);
}

// Of this process and those of the ranks only one runs at any time. On one
// processor they wake each other ten times as fast as on two.
static void stay_here(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof one, &one))
        log_line("this program runs on several processors, and slowly");
}

// A shell may allow fewer descriptors than two for each rank and a copy of one.
static void allow_descriptors(void)
{
    struct rlimit l;
    rlim_t most = FIRST + RANKS;
    if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur >= most)
        return;
    l.rlim_cur = l.rlim_max < most ? l.rlim_max : most;
    (void)!setrlimit(RLIMIT_NOFILE, &l); // if it fails, ask_open() says so
}

void ask_open(const char *program, size_t stack)
{
    int pair[2], theirs[RANKS];
    stay_here();
    allow_descriptors();
    all.clients = calloc(RANKS, sizeof *all.clients);
    if (!all.clients ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        die("no memory or sockets for %d ranks", RANKS);
    all.control = pair[0];
    int control = pair[1];
    for (int i = 0; i < RANKS; i++) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
            die("no sockets for %d ranks", RANKS);
        all.clients[i].wire.fd = pair[0];
        all.clients[i].fresh = true;
        theirs[i] = pair[1];
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        die("no process for the file");
    if (pid == 0) {
        // Copies above all descriptors of the grader, in a row.
        if (theirs[RANKS - 1] >= FIRST - 1 || dup2(control, FIRST - 1) < 0)
            die("no descriptor for the program");
        for (int i = 0; i < RANKS; i++)
            if (dup2(theirs[i], FIRST + i) < 0)
                die("no descriptor for rank %d", i);
        for (int fd = 3; fd < 3 * FIRST; fd++)
            if (fd < FIRST - 1 || fd >= FIRST + RANKS)
                close(fd);
        run_program(program, FIRST - 1, stack);
    }
    close(control);
    for (int i = 0; i < RANKS; i++)
        close(theirs[i]);
}

void ask_close(void)
{
    close(all.control);
    for (int i = 0; i < RANKS; i++)
        close(all.clients[i].wire.fd);
    free(all.clients);
    free(all.sent);
}
