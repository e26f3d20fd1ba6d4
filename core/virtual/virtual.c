// virtual.c - a run: starts a thread for each rank, ends them, and returns the
// result.

#include "virtual/virtual.h"

#include "base/base.h"
#include "virtual/baton.h"
#include "virtual/turns.h"

#include <stdlib.h>
#include <string.h>

// Withdraws the requests that a rank did not await. If its function returned 0,
// that is an error.
static void drop_requests(struct virtual_rank *r,
                          struct virtual_rank_result *result)
{
    int left = 0;
    for (; r->requests; left++) {
        struct request *q = r->requests;
        r->requests = q->next;
        network_drop(r->cluster->network, &q->op, false, r->now);
        free(q);
    }
    if (!left || result->end != VIRTUAL_RETURNED || result->value)
        return;
    result->value = -1;
    snprintf(result->error, sizeof result->error,
             "rank %d returned before %d of its messages were complete; try: "
             "wait for every request",
             r->id, left);
}

// A rank is a thread. Functions called deep inside it find their rank only
// here.
static _Thread_local struct virtual_rank *self;

struct virtual_rank *virtual_self(void)
{
    return self;
}

static void run_rank(void *ctx, int i)
{
    struct cluster *c = ctx;
    struct virtual_rank *r = &c->ranks[i];
    struct virtual_rank_result *result = &c->result->rank[i];
    self = r;
    if (!setjmp(r->leave)) {
        result->value = c->body(r, c->arg);
        if (result->end == VIRTUAL_RUNNING)
            result->end = VIRTUAL_RETURNED;
        if (result->value && !result->error[0])
            snprintf(result->error, sizeof result->error, "%.250s",
                     fail_message());
    }
    drop_requests(r, result);
    virtual_release(r);
    r->over = true;
    result->ended_s = r->now;
    baton_leave(c->baton, turns_next(c));
}

static struct virtual_result *result_open(int ranks)
{
    struct virtual_result *v = calloc(1, sizeof *v);
    if (!v || !(v->rank = calloc((size_t)ranks, sizeof *v->rank))) {
        fail("virtual: no memory for the result of %d ranks", ranks);
        free(v);
        return NULL;
    }
    v->ranks = ranks;
    return v;
}

void virtual_close(struct virtual_result **v)
{
    if (*v) {
        for (size_t i = 0; i < (*v)->n_messages; i++)
            free((*v)->messages[i].data);
        free((*v)->rank);
        free((*v)->messages);
    }
    free(*v);
    *v = NULL;
}

static int check_setup(const struct virtual_setup *s)
{
    if (s->ranks < 1)
        return fail("virtual: %d ranks; try: at least 1", s->ranks);
    if (s->hosts < 0)
        return fail("virtual: %d hosts; try: 0 for one a rank", s->hosts);
    if (!(s->alpha_s >= 0) || !(s->bytes_per_s > 0))
        return fail("virtual: links of %g s and %g bytes/s; try: a latency of "
                    "at least 0 and more than 0 bytes/s",
                    s->alpha_s, s->bytes_per_s);
    return 0;
}

// Runs all ranks from start to end. 0, or -1 after fail().
static int run(struct cluster *c)
{
    int n = c->setup->ranks;
    c->ranks = calloc((size_t)n, sizeof *c->ranks);
    if (!c->ranks)
        return fail("virtual: no memory for %d ranks", n);
    for (int i = 0; i < n; i++) {
        c->ranks[i].cluster = c;
        c->ranks[i].id = i;
    }
    c->network = network_open(c->setup, c->result);
    c->baton = c->network ? baton_open(n, run_rank, c) : NULL;
    if (!c->baton)
        return -1;
    baton_pass(c->baton, n, turns_next(c));
    baton_close(&c->baton);
    for (int i = 0; i < n; i++)
        c->result->seconds =
            fmax(c->result->seconds, c->result->rank[i].ended_s);
    return c->broken[0] ? fail("%s", c->broken) : 0;
}

struct virtual_result *virtual_run(const struct virtual_setup *setup,
                                   virtual_main *body, void *arg)
{
    if (check_setup(setup))
        return NULL;
    struct virtual_result *result = result_open(setup->ranks);
    if (!result)
        return NULL;
    struct cluster c = {.setup = setup,
                        .body = body,
                        .arg = arg,
                        .result = result};
    if (run(&c))
        virtual_close(&result);
    network_close(&c.network);
    free(c.ranks);
    return result;
}
