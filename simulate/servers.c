// servers.c - a round of the parameter servers: their messages, in their order.
//
// The product's client and server talk through ZeroMQ, which cannot run inside
// a simulation, so this is their pattern and not their code: slices by
// ps_wire's shard.c, kinds and sizes of messages by wire.h, credits and
// the window too, adding in rank order as ps_server/bsp.c does.
//
//     worker                        server
//     STEP, PUSH row 0, 1 ..  ->    adds each in rank order
//                             <-    CREDIT                   row by row
//                             <-    NORM                     several servers
//     COMMIT                  ->
//                             <-    RESULT, SLICE ..         new parameters
//
// With worker_updates a row's sum is answered as soon as it is complete, and
// RESULT comes at the end. What leaves at once for the same peer is one letter:
// STEP and the first row, RESULT and all new parameters.

#include "simulate/job.h"
#include "simulate/mail.h"

#include "base/base.h"
#include "ps_wire/shard.h"
#include "ps_wire/wire.h"

#include <mpi.h>

enum {
    ALL = 1 << 24,  // as a row: all of the shard
    SLICE_KB = 256, // of ps_worker/worker.c
};

struct remote { // a server, as a worker sees it
    struct shard shard;
    int rows, next, credit;
};

struct worker {
    const struct exchange *e;
    struct mail mail;
    struct remote *remotes;
    int norms, results;
    size_t elements; // that came back
};

struct server {
    const struct exchange *e;
    struct mail mail;
    struct shard shard;
    int rows, complete, commits;
    int *added;          // of each row
    unsigned char *here; // rows * workers
    bool finished;
};

static int post(struct mail *m, int peer, enum ps_kind kind, int row,
                size_t data)
{
    return mail_send(m, peer, kind, row, PS_HEAD + data);
}

static size_t row_bytes(const struct shard *s, int row)
{
    return shard_slice(s, row).n * sizeof(float);
}

static int make_shard(const struct exchange *e, int index, struct shard *s,
                      int *rows)
{
    size_t servers = (size_t)e->servers;
    size_t most = (e->n + servers - 1) / servers;
    size_t slice = (size_t)(e->slice_kb ? e->slice_kb : SLICE_KB) * 1024 / 4;
    if (shard_make(s, e->n, slice < most ? slice : most, e->servers, index))
        return -1;
    *rows = shard_rows(s);
    return 0;
}

// ---- a worker

static int push(struct worker *w, int index)
{
    struct remote *r = &w->remotes[index];
    int row = r->next;
    if (row == r->rows || r->credit == 0)
        return 0;
    r->next++;
    r->credit--;
    size_t step = row == 0 ? PS_HEAD + PS_STEP_BYTES : 0;
    return post(&w->mail, w->e->world + index, PS_PUSH, row,
                step + row_bytes(&r->shard, row));
}

// The k-th server that a worker turns to: the one beside it last, so that not
// all begin with the same.
static int turn(const struct worker *w, int k)
{
    return (w->e->rank + 1 + k) % w->e->servers;
}

static int begin(struct worker *w)
{
    int servers = w->e->servers;
    for (int k = 0; k < servers * ps_window(w->e->world); k++)
        if (push(w, turn(w, k % servers)))
            return -1;
    return 0;
}

static int hear(struct worker *w, const struct letter *l)
{
    int index = l->from - w->e->world;
    struct remote *r = &w->remotes[index];
    switch (l->kind) {
    case PS_CREDIT:
        r->credit++;
        return push(w, index);
    case PS_NORM:
        if (++w->norms < w->e->servers)
            return 0;
        for (int k = 0; k < w->e->servers; k++)
            if (post(&w->mail, w->e->world + turn(w, k), PS_COMMIT, 0, 0))
                return -1;
        return 0;
    case PS_RESULT:
        w->results++;
        return 0;
    default: // SLICE
        w->elements += l->row == ALL ? shard_elements(&r->shard)
                                     : shard_slice(&r->shard, l->row).n;
        w->results += l->row == ALL;
        return 0;
    }
}

static int work(struct worker *w)
{
    struct letter l;
    if (begin(w))
        return -1;
    while (w->elements < w->e->n || w->results < w->e->servers)
        if (l = mail_take(&w->mail), hear(w, &l))
            return -1;
    return 0;
}

static int worker(const struct exchange *e, double *seconds)
{
    struct worker w = {.e = e};
    int rc = -1;
    w.remotes = mem_alloc((size_t)e->servers, sizeof *w.remotes);
    mail_open(&w.mail, e->rank);
    if (!w.remotes)
        return -1;
    for (int i = 0; i < e->servers; i++) {
        struct remote *r = &w.remotes[i];
        if (make_shard(e, i, &r->shard, &r->rows))
            goto free_all;
        r->credit = ps_window(e->world);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    rc = work(&w);
    *seconds = MPI_Wtime() - began;
    mail_close(&w.mail);
free_all:
    mem_free(w.remotes);
    return rc;
}

// ---- a server

static int to_all(struct server *s, enum ps_kind kind, int row, size_t data)
{
    int first = s->e->rank - s->e->world + 1; // beside us last
    for (int k = 0; k < s->e->world; k++)
        if (post(&s->mail, (first + k) % s->e->world, kind, row, data))
            return -1;
    return 0;
}

static int answer(struct server *s)
{
    size_t bytes = shard_elements(&s->shard) * sizeof(float);
    size_t heads = (size_t)s->rows * PS_HEAD;
    s->finished = true;
    if (s->e->worker_updates)
        return to_all(s, PS_RESULT, 0, PS_RESULT_BYTES);
    return to_all(s, PS_SLICE, ALL, PS_RESULT_BYTES + heads + bytes);
}

static int complete(struct server *s)
{
    if (s->e->servers == 1 || s->e->worker_updates)
        return answer(s);
    return to_all(s, PS_NORM, 0, ((size_t)s->e->world + 7) / 8);
}

static int take_slice(struct server *s, int row, int rank)
{
    unsigned char *here = s->here + (size_t)row * (size_t)s->e->world;
    int *added = &s->added[row];
    here[rank] = 1;
    while (*added < s->e->world && here[*added])
        if (post(&s->mail, (*added)++, PS_CREDIT, row, 0))
            return -1;
    if (*added < s->e->world)
        return 0;
    if (s->e->worker_updates &&
        to_all(s, PS_SLICE, row, row_bytes(&s->shard, row)))
        return -1;
    return ++s->complete == s->rows ? complete(s) : 0;
}

static int serve_one(struct server *s, const struct letter *l)
{
    switch (l->kind) {
    case PS_PUSH:
        return take_slice(s, l->row, l->from);
    default: // COMMIT: the first one is believed
        return s->commits++ == 0 ? answer(s) : 0;
    }
}

static int serve(struct server *s)
{
    struct letter l;
    bool commits = s->e->servers > 1 && !s->e->worker_updates;
    while (!s->finished || (commits && s->commits < s->e->world))
        if (l = mail_take(&s->mail), serve_one(s, &l))
            return -1;
    return 0;
}

static int server(const struct exchange *e)
{
    struct server s = {.e = e};
    int rc = -1;
    mail_open(&s.mail, e->rank);
    if (make_shard(e, e->rank - e->world, &s.shard, &s.rows))
        goto free_all;
    s.added = mem_alloc((size_t)s.rows + 1, sizeof *s.added);
    s.here = mem_alloc((size_t)s.rows + 1, (size_t)e->world);
    if (!s.added || !s.here)
        goto free_all;
    MPI_Barrier(MPI_COMM_WORLD);
    rc = serve(&s);
    mail_close(&s.mail);
free_all:
    mem_free(s.here);
    mem_free(s.added);
    return rc;
}

int exchange_servers(const struct exchange *e, double *seconds)
{
    if (e->servers < 1 || e->n < (size_t)e->servers)
        return fail("%zu elements for %d servers", e->n, e->servers);
    int rc = e->rank < e->world ? worker(e, seconds) : server(e);
    MPI_Barrier(MPI_COMM_WORLD); // or letters to others would be lost
    return rc;
}
