// vectors.c - whole vectors: the initial parameters from worker 0 to all
// workers, and the optimiser's state from and to checkpoints.

#include "ps_server/answers.h"
#include "ps_server/server.h"

#include "base/base.h"

// Whether a server keeps this vector.
static bool is_kept(const struct server *s, enum ps_what what)
{
    return what < PS_RESIDUAL || (what == PS_RESIDUAL && s->answers &&
                                  answers_residual(s->answers, 0));
}

int vectors_set(struct server *s, int rank, const struct ps_head *h,
                const void *data)
{
    if (!is_kept(s, h->what) || h->row >= (uint32_t)s->store->nrows)
        return fail("SET of row %u of vector %d; there are %d rows", h->row,
                    (int)h->what, s->store->nrows);
    size_t want = s->store->rows[h->row].at.n * sizeof(float);
    if (rank != 0 || h->dtype != DTYPE_F32 || h->bytes != want)
        return fail("SET of row %u: %llu bytes instead of %zu, or not from "
                    "rank 0",
                    h->row, (unsigned long long)h->bytes, want);
    float *residual = h->what == PS_RESIDUAL
                          ? answers_residual(s->answers, (int)h->row)
                          : NULL;
    if (store_set(s->store, h->what, (int)h->row, data, residual))
        return -1;
    if (s->store->sets[PS_PARAMS])
        rendezvous_begun(s->rendezvous);
    struct ps_head credit = {.kind = PS_CREDIT, .row = h->row};
    server_send(s, rank, credit, NULL, 0);
    vectors_serve(s);
    return 0;
}

static bool is_there(const struct server *s, const struct pull *p)
{
    return s->store->sets[p->what] >= p->sets &&
           (s->job.consistency != CONSISTENCY_BSP || s->round > p->version);
}

static void serve(struct server *s, int rank)
{
    struct pull *p = &s->peers[rank].pull;
    p->waiting = false;
    for (int r = 0; r < s->store->nrows; r++) {
        const float *residual =
            p->what == PS_RESIDUAL ? answers_residual(s->answers, r) : NULL;
        struct buffer *b = store_get(s->store, p->what, r, residual);
        if (!b) {
            server_fail(s, "%s", fail_message());
            return;
        }
        struct ps_head h = {
            .kind = PS_SLICE,
            .what = p->what,
            .row = (uint32_t)r,
            .version = s->store->rows[r].version,
            .value = (double)s->used,
        };
        server_send_buffer(s, rank, h, b,
                           s->store->rows[r].at.n * sizeof(float));
        buffer_unref(b);
    }
}

int vectors_pull(struct server *s, int rank, const struct ps_head *h)
{
    struct pull *p = &s->peers[rank].pull;
    if (p->waiting || !is_kept(s, h->what))
        return fail("PULL of vector %d, %s", (int)h->what,
                    p->waiting ? "while another is under way"
                               : "which no server keeps");
    for (int r = 0; h->what == PS_RESIDUAL && r < s->store->nrows; r++)
        answers_keep(s->answers, r, h->value);
    *p = (struct pull){true, h->what, h->round, h->version};
    if (is_there(s, p))
        serve(s, rank);
    return 0;
}

void vectors_serve(struct server *s)
{
    for (int r = 0; r < s->job.world; r++)
        if (s->peers[r].alive && s->peers[r].pull.waiting &&
            is_there(s, &s->peers[r].pull))
            serve(s, r);
}
