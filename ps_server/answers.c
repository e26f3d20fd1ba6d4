// answers.c - the sums of rows, and what the answers lack.

#include "ps_server/answers.h"

#include "base/base.h"
#include "ps_server/store.h"
#include "squeeze/squeeze.h"

#include <string.h>

struct answer {
    float *kept;    // of the last update; NULL: the answers lack nothing
    float *sum;     // of this step: the sum, then what its answer lacks
    double updates; // as the last message said
    uint64_t step;  // of the run
};

struct answers {
    const struct ps_job *job;
    const struct store *store;
    const struct squeeze_ops *ops;
    struct buffers *pool; // of an answer each
    struct answer *rows;
    float *sums, *residuals; // of the shard
    void *scratch;
};

// Messages without a sum of their own are answered by their union, or whole.
static size_t largest_answer(const struct answers *a, size_t n)
{
    size_t whole = n * sizeof(float);
    size_t message = a->ops->bytes(&a->job->squeeze, n);
    return a->ops->twice && message > whole ? message : whole;
}

int answers_open(struct answers **out, const struct ps_job *job,
                 const struct store *store)
{
    struct answers *a = *out = mem_alloc(1, sizeof *a);
    size_t n = shard_elements(&store->shard), slice = job->slice;
    if (!a)
        return -1;
    a->job = job;
    a->store = store;
    a->ops = squeeze_find(job->squeeze.squeeze);
    bool lacks = a->ops->twice && job->squeeze.feedback;
    a->rows = mem_alloc((size_t)store->nrows + 1, sizeof *a->rows);
    a->sums = mem_alloc(n, sizeof *a->sums);
    a->residuals = mem_alloc(lacks ? n : 1, sizeof *a->residuals);
    a->scratch = mem_alloc(a->ops->scratch ? a->ops->scratch(slice) : 1, 1);
    if (!a->rows || !a->sums || !a->residuals || !a->scratch ||
        buffers_open(&a->pool, largest_answer(a, slice)))
        return -1;
    for (int r = 0; r < store->nrows; r++) {
        size_t at = store->rows[r].at.local;
        a->rows[r].sum = a->sums + at;
        a->rows[r].kept = lacks ? a->residuals + at : NULL;
    }
    return 0;
}

void answers_close(struct answers **answers)
{
    struct answers *a = *answers;
    if (!a)
        return;
    buffers_close(&a->pool);
    mem_free(a->rows);
    mem_free(a->sums);
    mem_free(a->residuals);
    mem_free(a->scratch);
    mem_free(a);
    *answers = NULL;
}

size_t answers_message(const struct answers *a, int row)
{
    return a->ops->bytes(&a->job->squeeze, a->store->rows[row].at.n);
}

// Swaps the two vectors of the row: the old residual is not needed again.
void answers_keep(struct answers *a, int row, double updates)
{
    struct answer *r = &a->rows[row];
    float *kept = r->kept;
    if (kept && updates > r->updates) {
        r->kept = r->sum;
        r->sum = kept;
    }
    r->updates = updates;
}

void answers_begin(struct answers *a, int row, uint64_t step)
{
    struct answer *r = &a->rows[row];
    size_t bytes = a->store->rows[row].at.n * sizeof *r->sum;
    r->step = step;
    if (r->kept)
        memcpy(r->sum, r->kept, bytes);
    else
        memset(r->sum, 0, bytes);
}

int answers_add(struct answers *a, int row, const void *message)
{
    return a->ops->add(&a->job->squeeze, message, a->store->rows[row].at.n,
                       a->rows[row].sum);
}

struct buffer *answers_take(struct answers *a, int row, enum ps_what *what,
                            size_t *bytes)
{
    const struct answer *r = &a->rows[row];
    const struct slice *at = &a->store->rows[row].at;
    struct buffer *b = buffer_get(a->pool);
    if (!b)
        return NULL;
    *what = PS_SQUEEZED;
    if (a->ops->twice) {
        uint64_t key =
            squeeze_stream(a->job->seed, r->step, a->job->index, true, at->off);
        a->ops->encode(&a->job->squeeze, key, r->sum, at->n, b->data,
                       a->scratch);
        *bytes = a->ops->bytes(&a->job->squeeze, at->n);
        return b;
    }
    *bytes = squeeze_put_union(r->sum, at->n, b->data);
    if (*bytes)
        return b;
    *what = PS_GRADS;
    *bytes = at->n * sizeof(float);
    memcpy(b->data, r->sum, *bytes);
    return b;
}

float *answers_residual(const struct answers *a, int row)
{
    return a->rows[row].kept;
}
