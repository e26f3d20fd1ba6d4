// passes.c - a pass over a chunk: its tokens go to the device, the transformer
// computes, the loss comes back.
//
//     host     queue forward, head | backward, bucket by bucket | wait: loss
//     GPU      ......... forward ......... head * ....... backward ........
//                                               loss to the host
//
// The host waits for the loss alone, which a GPU knows before it begins
// backward. All of backward is in the queue by then, so the GPU is not idle
// while the host waits.

#include "model/state.h"
#include "telemetry/span.h"

int pass_forward(struct model *m, const struct model_step *s,
                 const struct model_pass *p)
{
    int B = m->job.batch, T = m->job.tokens, before = m->ops->begin(m);
    state_begin_pass(m, p, (size_t)B * T);
    if (is_first(m))
        m->ops->tokens(m, s->x, (size_t)B * T);
    int rc = forward(m, p, B, T, s);
    m->ops->end(m, before);
    return rc;
}

// The head's part of backward. It reads ln_f's output, which forward left in
// m->norm. If another slot's forward has overwritten it, computes it again.
static int begin_backward(struct model *m, const struct model_step *s, int slot)
{
    size_t rows = (size_t)m->job.batch * m->job.tokens;
    if (block_take(m, 0, true))
        return -1; // the head writes wte's gradient first
    span_begin(s->lane, SPAN_FORWARD, -1);
    m->ops->targets(m, s->y, rows);
    if (m->normed != slot)
        norm_again(m);
    m->normed = -1;
    int rc = head(m, rows, s);
    span_end(s->lane);
    return rc;
}

// *loss = the mean of `rows` rows; of divided sequences this worker's share of
// the mean of all. Returns 0, or -1 after fail().
static int read_loss(struct model *m, size_t rows, float *loss)
{
    if (m->ops->read_loss(m, loss))
        return -1;
    if (m->job.pieces)
        *loss *= (float)rows / (float)whole_rows(m, rows);
    return 0;
}

int pass_backward(struct model *m, const struct model_step *s,
                  const struct model_pass *p, float *loss)
{
    size_t rows = (size_t)m->job.batch * m->job.tokens;
    int before = m->ops->begin(m);
    state_begin_pass(m, p, rows);
    if (is_first(m) && m->ops->group) // while a GPU computes forward
        m->ops->group(m, s->x, rows);
    int rc = is_last(m) ? begin_backward(m, s, p->slot) : 0;
    if (!rc)
        rc = backward(m, s);
    if (!rc && is_last(m))
        rc = read_loss(m, rows, loss);
    m->ops->end(m, before);
    return rc;
}

// Gives back the blocks that forward leaves taken for backward. Here no
// backward follows.
static int give_ends(struct model *m)
{
    int last = model_nblocks(&m->job.config) - 1;
    return block_give(m, 0) || block_give(m, last) ? -1 : 0;
}

int pass_eval(struct model *m, const struct model_pass *p, const int32_t *x,
              const int32_t *y, int batch, float *loss)
{
    int T = m->job.tokens, before = m->ops->begin(m);
    size_t rows = (size_t)batch * T;
    state_begin_pass(m, p, rows);
    if (is_first(m))
        m->ops->tokens(m, x, rows);
    int rc = forward(m, p, batch, T, NULL);
    if (!rc && is_last(m)) {
        m->ops->targets(m, y, rows);
        rc = head(m, rows, NULL) || read_loss(m, rows, loss) ? -1 : 0;
    }
    m->ops->end(m, before);
    return rc ? rc : give_ends(m);
}

int pass_logits(struct model *m, const int32_t *x, int n, float *logits)
{
    const struct model_pass whole = {.slot = 0};
    int before = m->ops->begin(m);
    m->ops->tokens(m, x, (size_t)n);
    int rc = forward(m, &whole, 1, n, NULL);
    if (!rc) {
        head_logits(m, (size_t)n - 1, 1, true);
        rc = m->ops->fetch(m, logits, m->logits,
                           (size_t)m->job.config.vocab * sizeof *logits);
    }
    m->ops->end(m, before);
    return rc ? rc : give_ends(m);
}
