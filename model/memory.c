// memory.c - the layout of all memory that a step needs: a block of tensors in
// the device's memory, and one of tables in the host's.
//
// A token of training costs, in numbers of the format (C = channels):
//
//     L * 10 C   kept by the layers, + C for the residual stream at the end
//     L C + 9 C  instead of L * 10 C, with recompute
//     11 C       scratch: norm, branch, dres (C each), GELU's output, dwide (4C
//                each); + C with dropout; - 4C with recompute, where GELU
//                works in place
//
// Slices divide 8 C of a layer's 10 C, and the scratch of 4C. Sums over slices
// are computed in a vector of the trainer (of a GPU's model: its own), which in
// fp32 is also branch. Slices that divide the rows, too, divide all of a
// layer's 10 C, and branch and dres; they always have the C for dropout, into
// which rows are gathered.
//
// A stage of a pipeline has the first line once for each activation slot, C
// numbers for each input, and a dres for each edge.
//
// Of divided sequences (pieces.c) scratch has 4 C numbers of keys and values
// and 8 C of their gradients, in fp32, for each token of this worker (ring); or
// 2 C of each for each token of all workers (gather).
//
// Where products compute GELU (a GPU), each layer keeps its output: 14 C
// and, with recompute, 13 C instead of 10 C and 9 C. Then scratch is 7 C.
//
// The statistics of LayerNorm and softmax are L * (4 + NH) + 3 numbers of fp32
// a token. There are also some rows of logits, attention's scratch for each
// thread, and the weights: fp32 masters, gradients, a 16-bit copy in bf16 and
// fp16. A block that is lent is in the lender's memory.

#include "model/pieces.h"
#include "model/state.h"

// all[i] = piece. `all` is NULL if memory is only counted.
static void set_place(void **all, int i, void *piece)
{
    if (all)
        all[i] = piece;
}

static void layout_tables(struct model *m, struct arena *a)
{
    const struct model_job *job = &m->job;
    int L = job->config.layers, slots = at_least_one(job->slots);
    m->off = arena_alloc(a, model_ntensors(&job->config) + 1, sizeof *m->off);
    m->places = arena_alloc(a, model_nblocks(&job->config), sizeof *m->places);
    m->all_layers = arena_alloc(a, (size_t)slots * L, sizeof *m->all_layers);
    m->ends = arena_alloc(a, slots, sizeof *m->ends);
    m->inputs = arena_alloc(a, job->inputs, sizeof *m->inputs);
    m->edges = arena_alloc(a, at_least_one(job->edges), sizeof *m->edges);
    if (job->pieces)
        m->lengths =
            arena_alloc(a, 2 * (size_t)job->pieces->n, sizeof *m->lengths);
}

static void alloc_layer(const struct model *m, struct arena *a, struct layer *l,
                        size_t size)
{
    const struct model_job *job = &m->job;
    size_t own = m->own_rows.n, C = job->config.channels;
    size_t D = C / job->config.heads, scores = layers_scores(job);
    l->in = arena_alloc(a, own * C, size);
    l->qkv = arena_alloc(a, scores * D, 3 * size);
    if (job->pieces && job->pieces->up > 1)
        l->heads = arena_alloc(a, scores * D, size);
    l->lse = arena_floats(a, scores);
    l->att = arena_alloc(a, m->rows * m->width, size);
    l->mid = arena_alloc(a, own * C, size);
    l->pre = arena_alloc(a, m->rows * m->inner, size);
    if (m->ops->fused)
        l->gelu = arena_alloc(a, m->rows * m->inner, size);
    else if (!l->gelu)
        l->gelu = l->pre;
    if (job->train && job->slices && job->slices->keeps) {
        l->norm1 = arena_alloc(a, m->rows * C, size);
        l->norm2 = arena_alloc(a, m->rows * C, size);
    }
    l->mean1 = arena_floats(a, own);
    l->rstd1 = arena_floats(a, own);
    l->mean2 = arena_floats(a, own);
    l->rstd2 = arena_floats(a, own);
}

// The number of layers of the largest chunk.
static int largest_chunk(const struct model_config *c)
{
    int most = 0, from, to;
    for (int k = 0; k < part_chunks(c); k++) {
        part_chunk(c, k, &from, &to);
        most = to - from > most ? to - from : most;
    }
    return most;
}

// Lays out an activation slot: its layers, and the residual stream after the
// last one, which it returns. A slot holds one chunk at a time, so all chunks
// share its memory. With recompute each layer has only its `in`, and all layers
// of all slots share the rest. Without training all layers share everything.
// Shared memory is laid out with slot 0, into *shared.
static void *layout_slot(const struct model *m, struct arena *a, int slot,
                         struct layer *shared, size_t size)
{
    const struct model_job *job = &m->job;
    const struct model_config *g = &job->config;
    size_t n = m->own_rows.n * (size_t)g->channels;
    struct layer l = *shared;
    for (int k = 0; k < largest_chunk(g); k++) { // layer k of each chunk
        if ((slot == 0 && k == 0) || (job->train && !job->recompute))
            alloc_layer(m, a, &l, size);
        else if (job->train)
            l.in = arena_alloc(a, n, size);
        if (!job->train)
            l.mid = l.in; // norm() adds in place
        for (int i = 0, from, to; m->all_layers && i < part_chunks(g); i++) {
            part_chunk(g, i, &from, &to);
            if (from + k < to)
                m->all_layers[slot * g->layers + from + k] = l;
        }
    }
    *shared = l;
    return job->train ? arena_alloc(a, n, size) : l.in;
}

// The layers of all slots, and the buffers between stages.
static void layout_slots(const struct model *m, struct arena *a, size_t size)
{
    const struct model_job *job = &m->job;
    size_t n = m->own_rows.n * (size_t)job->config.channels;
    struct layer shared = {.in = NULL};
    if (!m->ops->fused && !(job->train && job->recompute))
        shared.gelu = arena_alloc(a, m->rows * m->inner, size);
    for (int i = 0; i < at_least_one(job->slots); i++)
        set_place(m->ends, i, layout_slot(m, a, i, &shared, size));
    for (int i = 0; i < job->inputs; i++)
        set_place(m->inputs, i, arena_alloc(a, n, size));
    for (int i = 0; job->train && i < at_least_one(job->edges); i++)
        set_place(m->edges, i, arena_alloc(a, n, size));
}

static void layout_scratch(struct model *m, struct arena *a, size_t size)
{
    const struct model_job *job = &m->job;
    size_t rows = m->rows, n = rows * job->config.channels;
    size_t wide = rows * m->inner, qkv = rows * 3 * m->width;
    size_t own = m->own_rows.n * (size_t)job->config.channels;
    bool fp32 = job->precision == DTYPE_F32, divides = divides_rows(m);
    m->mean = arena_floats(a, m->own_rows.n);
    m->rstd = arena_floats(a, m->own_rows.n);
    m->losses = arena_floats(a, rows);
    m->mean_loss = arena_floats(a, 1);
    m->norm = arena_alloc(a, n, size);
    bool aside = job->slices && m->ops->fused; // a GPU
    m->sum = aside ? arena_floats(a, n) : job->slices ? job->slices->sum : NULL;
    m->branch = job->slices && fp32 ? m->sum : arena_alloc(a, own, size);
    m->datt = divides ? m->sum : m->branch;
    if (job->train) {
        bool masks = divides || job->config.dropout > 0;
        m->dwide = arena_alloc(a, wide > qkv ? wide : qkv, size);
        m->dbranch = masks ? arena_alloc(a, n, size) : NULL;
    }
    pieces_layout(m, a);
    m->ops->layout(m, a, rows);
    if (job->slices)
        m->parts = arena_alloc(a, (size_t)job->config.part.slices * m->slice,
                               sizeof *m->parts);
    if (divides && job->train)
        m->dnorms = arena_floats(a, (size_t)job->config.part.slices * 2 *
                                        job->config.channels);
}

float *model_sum(const struct model *m)
{
    return m->sum;
}

size_t model_gathered(const struct model *m)
{
    size_t loss = m->slice * sizeof *m->parts / sizeof(float);
    size_t norm = m->dnorms ? 2 * (size_t)m->job.config.channels : 0;
    return (size_t)m->job.config.part.slices * (loss > norm ? loss : norm);
}

static void layout(struct model *m, struct arena *tables, struct arena *tensors)
{
    const struct model_job *job = &m->job;
    size_t size = dtype_bytes(job->precision);
    struct part_share words = part_words(&job->config);
    m->nparams = model_nparams(&job->config);
    m->width =
        job->config.channels / job->config.heads * part_heads(&job->config).n;
    m->inner = part_inner(&job->config).n;
    m->words = (struct words){words.first, words.n};
    m->batch = job->batch;
    m->tokens = job->tokens;
    m->rows = (size_t)job->batch * job->tokens;
    m->own_rows = layers_rows(job, m->rows);
    bool copied = job->precision != DTYPE_F32 && !job->lent_weights;
    bool aside = job->precision == DTYPE_F16 && job->train && !job->lent_grads;
    layout_tables(m, tables);
    m->weights = copied ? arena_alloc(tensors, m->nparams, size) : job->params;
    m->grads = aside ? arena_floats(tensors, m->nparams) : job->grads;
    layout_slots(m, tensors, size);
    layout_scratch(m, tensors, size);
}

void state_bytes(struct model *m, size_t *tables, size_t *tensors)
{
    struct arena a = {.line = m->ops->line}, b = a;
    layout(m, &a, &b);
    *tables = a.used;
    *tensors = b.used;
}

// Sets the addresses of the blocks that are not lent.
static void place_blocks(struct model *m)
{
    size_t size = dtype_bytes(m->job.precision);
    for (int b = 0; b < model_nblocks(&m->job.config); b++) {
        size_t off = m->off[block_first(b)];
        if (m->weights)
            m->places[b].weights = (char *)m->weights + off * size;
        if (m->grads)
            m->places[b].grads = m->grads + off;
    }
}

void state_place(struct model *m)
{
    struct arena tables = {.block = m->tables, .line = m->ops->line};
    struct arena tensors = {.block = m->block, .line = m->ops->line};
    int n = model_ntensors(&m->job.config);
    layout(m, &tables, &tensors);
    for (int i = 0; i < n; i++) {
        struct tensor t;
        model_tensor(&m->job.config, i, &t);
        m->off[i] = t.off;
    }
    m->off[n] = m->nparams;
    place_blocks(m);
    m->copy.at = m->weights;
    m->normed = -1;
}
