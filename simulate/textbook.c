// textbook.c - runs the textbooks' collectives on simulated ranks.
//
// A rank makes its moves (textbook/schedule.h) round by round. A send ends when
// the receiver has everything. So a rank sends one message at a time and
// receives one at a time: this is the model behind the textbooks' laws.

#include "simulate/exchange.h"
#include "textbook/schedule.h"

#include "base/base.h"
#include "device/vector.h"
#include "message/carry.h"

struct vectors {
    float *own;
    float *landing; // receive buffer of numbers to add; only with payload
};

static void post(const struct move *m, const struct vectors *v, bool payload,
                 MPI_Request *r)
{
    size_t bytes = m->span.n * sizeof(float);
    float *to = m->adds && payload ? v->landing : v->own;
    if (m->sends)
        carry_send(v->own + m->span.off, bytes, m->peer, r);
    else
        carry_receive(to + m->span.off, bytes, m->peer, r);
}

static void run(const struct schedule *s, int rank, bool payload,
                const struct vectors *v)
{
    struct move m[2];
    MPI_Request r[2];
    for (int k = 0, n; (n = schedule_next(s, rank, k, m)) > 0; k += n) {
        for (int i = 0; i < n; i++)
            post(&m[i], v, payload, &r[i]);
        MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
        if (m[0].adds && payload)
            vector_add(v->own + m[0].span.off, v->landing + m[0].span.off,
                       DTYPE_F32, m[0].span.n);
    }
}

static float expected(const struct schedule *s, size_t i)
{
    float sum = 0, own = 0;
    for (int r = 0; r < s->world; r++) {
        struct group_chunk c = group_chunk(s->n, 1, s->world, r);
        sum += gradient_value(r, i);
        if (i >= c.off && i < c.off + c.n)
            own = gradient_value(r, i);
    }
    return s->op == SCHEDULE_REDUCE   ? sum
           : s->op == SCHEDULE_GATHER ? own
                                      : gradient_value(0, i);
}

static int check(const struct schedule *s, int rank, const float *v)
{
    struct group_chunk c = schedule_result(s, rank);
    for (size_t i = c.off; i < c.off + c.n; i++)
        if (v[i] != expected(s, i))
            return fail("rank %d: element %zu is %g; want %g", rank, i,
                        (double)v[i], (double)expected(s, i));
    return 0;
}

int exchange_textbook(const struct exchange *e, double *seconds)
{
    const struct schedule s = {.op = (enum schedule_op)e->op,
                               .algorithm =
                                   (enum schedule_algorithm)e->algorithm,
                               .world = e->world,
                               .n = e->n,
                               .piece = e->piece};
    struct vectors v = {0};
    int rc = -1;
    contents_open(e, e->n * sizeof(float));
    v.own = e->payload ? gradient_open(e) : carry_buffer(e->n * sizeof(float));
    v.landing = e->payload ? mem_alloc(e->n, sizeof(float)) : NULL;
    if (!v.own || (e->payload && !v.landing))
        goto close_vectors;
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    run(&s, e->rank, e->payload, &v);
    *seconds = MPI_Wtime() - began;
    rc = e->payload ? check(&s, e->rank, v.own) : 0;
close_vectors:
    if (e->payload)
        gradient_close(e, v.own);
    else
        carry_free(v.own);
    mem_free(v.landing);
    return rc;
}
