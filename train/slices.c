// slices.c - sums over the slices of a model. The slices of a stage are a group
// of their own.
//
// The group has no thread: forward and backward wait for each join anyway, so
// the calling thread moves the data.

#include "train/slices.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "config/mesh.h"
#include "device/device.h"
#include "homework/real_lab.h"
#include "horovod_ring/carriers.h"
#include "model/kernels.h"
#include "model/part.h"
#include "sync/law_mesh.h"
#include "sync/student.h"
#include "sync/sync.h"
#include "telemetry/span.h"
#include "train/exchange.h"
#include "train/sequences.h"
#include "train/shape.h"
#include "train/trainer.h"

#include <stdio.h>
#include <string.h>

struct slices {
    struct model_slices job;
    struct group *group;
    void *host; // for a GPU: pinned, as large as the largest exchange; NULL if
                // nothing goes through it
    struct exchange_numbers numbers;
    size_t *lengths; // of the chunks of a vector of rows, by slice
    void *file;      // sync=lab: the student's, whose function joins; else NULL
    int (*student)(struct lab *l, float *v, size_t n);
    struct real *real; // what it is called with
    int joins;         // since the last norm; numbers their spans
    bool aligns;       // replicas add in a different order on each slice
};

// Whether the slices have different lengths: 1, 0, or -1 after fail().
static int are_uneven(const struct model_config *whole, int slices)
{
    struct model_config first, last; // the largest and the smallest
    if (part_slice(whole, slices, 0, &first) ||
        part_slice(whole, slices, slices - 1, &last))
        return -1;
    return model_nparams(&first) != model_nparams(&last);
}

int slices_plan(struct trainer *t)
{
    const struct mesh *m = &t->run.mesh;
    int slices = mesh_size(m, MESH_TP);
    if (slices == 1)
        return 0;
    int uneven = are_uneven(&t->config, slices);
    t->slices = uneven < 0 ? NULL : mem_alloc(1, sizeof *t->slices);
    if (t->slices)
        t->slices->aligns = uneven;
    return t->slices
               ? part_slice(&t->config, slices,
                            mesh_at(m, t->cluster->rank, MESH_TP), &t->config)
               : -1;
}

const struct model_slices *slices_job(const struct trainer *t)
{
    return t->slices ? &t->slices->job : NULL;
}

// ---- exchanges

static int exchange(struct trainer *t, enum group_verb verb,
                    struct group_vector v)
{
    struct slices *s = t->slices;
    const struct group_op op = {.verb = verb, .vector = v};
    return exchange_make(t, s->group, &op, &s->host, s->joins++);
}

// A join by the student's lab_exchange().
static int let_student(struct trainer *t, float *v, size_t n)
{
    struct slices *s = t->slices;
    size_t bytes = n * sizeof *v;
    float *at = s->host ? s->host : v;
    exchange_down(t, at, v, bytes);
    span_begin(t->observe.lane, SPAN_JOIN, s->joins++);
    fail("no reason was given"); // the function may return -1 without one
    int rc = s->student(real_lab(s->real), at, n)
                 ? fail("join: lab_exchange() failed: %s", fail_message())
                 : real_finish(s->real);
    sync_waited(t->sync, span_end(t->observe.lane));
    exchange_up(t, v, at, bytes);
    return rc;
}

static int join(void *ctx, float *v, size_t n)
{
    struct trainer *t = ctx;
    struct group_vector sum = group_floats(v, n);
    sum.wire = (enum dtype)t->run.tp_wire;
    return t->slices->student ? let_student(t, v, n)
                              : exchange(t, GROUP_ALL_REDUCE, sum);
}

static int gather(void *ctx, float *v, size_t each)
{
    struct trainer *t = ctx;
    size_t n = each * (size_t)t->slices->group->size;
    return exchange(t, GROUP_ALL_GATHER, group_floats(v, n));
}

// A vector (rows, C) whose chunks are the rows of each slice (part_rows()).
static struct group_vector rows_of(struct trainer *t, void *v, size_t rows,
                                   enum dtype type)
{
    struct slices *s = t->slices;
    size_t C = (size_t)t->config.channels;
    for (int c = 0; c < s->group->size; c++)
        s->lengths[c] = group_chunk(rows, 1, s->group->size, c).n * C;
    struct group_vector all = group_plain(v, rows * C, type);
    all.lengths = s->lengths;
    return all;
}

static int scatter_rows(void *ctx, float *v, size_t rows)
{
    struct trainer *t = ctx;
    struct group_vector sum = rows_of(t, v, rows, DTYPE_F32);
    sum.wire = (enum dtype)t->run.tp_wire;
    return exchange(t, GROUP_REDUCE_SCATTER, sum);
}

static int gather_rows(void *ctx, void *v, size_t rows)
{
    struct trainer *t = ctx;
    return exchange(t, GROUP_ALL_GATHER,
                    rows_of(t, v, rows, config_format(&t->run)));
}

int slices_sum(struct trainer *t, double *squares)
{
    if (!t->slices)
        return 0;
    t->slices->joins = 0;
    return exchange_sum(t, t->slices->group, &t->slices->numbers, squares, -1);
}

// ---- tensors that are whole on every slice

static size_t batch_rows(const struct trainer *t)
{
    return (size_t)t->run.batch * (size_t)sequences_tokens(t);
}

static size_t sum_n(const struct trainer *t)
{
    return batch_rows(t) * (size_t)t->config.channels;
}

// Treats the elements that slices do not divide as one vector. Copies elements
// [from, from + n) of it from `sum` (in) or to `sum`. Returns how many elements
// the whole vector has.
static size_t copy_undivided(struct trainer *t, float *sum, size_t from,
                             size_t n, bool in)
{
    size_t at = 0;
    for (int i = 0; i < model_ntensors(&t->config); i++) {
        struct tensor whole;
        model_tensor(&t->config, i, &whole);
        if (part_divides(&t->config, i))
            continue;
        size_t first = from > at ? from : at, end = at + whole.n;
        end = end < from + n ? end : from + n;
        if (first < end) {
            float *params = t->params + whole.off + (first - at);
            float *part = sum + (first - from);
            device_copy_on(t->dev, DEVICE_COMPUTE, in ? params : part,
                           in ? part : params, (end - first) * sizeof *sum);
        }
        at += whole.n;
    }
    return at;
}

// Slice 0's elements [from, from + n) of that vector become those of all, by a
// sum with zeros in the buffer of the joins.
static int align(struct trainer *t, size_t from, size_t n)
{
    float *sum = model_sum(t->model);
    float *zeros = t->slices->host ? t->slices->host : sum;
    if (t->row->rank == 0) {
        copy_undivided(t, sum, from, n, false);
    } else {
        device_finish(t->dev); // it may still copy from there
        memset(zeros, 0, n * sizeof *sum);
        exchange_up(t, sum, zeros, n * sizeof *sum);
    }
    if (exchange(t, GROUP_ALL_REDUCE, group_floats(sum, n)))
        return -1;
    copy_undivided(t, sum, from, n, true);
    return 0;
}

int slices_align(struct trainer *t)
{
    struct slices *s = t->slices;
    if (!s || !s->aligns)
        return 0;
    size_t most = sum_n(t), all = copy_undivided(t, NULL, 0, 0, false);
    for (size_t from = 0; from < all; from += most)
        if (align(t, from, all - from < most ? all - from : most))
            return fail("%s (step %d)", fail_message(), t->step + 1);
    if (model_copy(t->model)) // it has the values before
        model_copy(t->model)->fresh = false;
    return 0;
}

// Decides whether slices_align() has work. Slices of equal length need none,
// and neither does a sum of two fp32 numbers, which has the same bits in either
// order. With more than two replicas, or with numbers rounded on their way, the
// order matters. Fails if it matters and the backend has shards. (The launcher
// has found this before, unless the vocabulary is that of the data.)
static int check_order(struct trainer *t)
{
    t->slices->aligns =
        t->slices->aligns &&
        law_mesh_order_matters(t->members->world,
                               (int)dtype_bytes(t->run.settings.wire));
    return shape_check_slices(&t->run, &t->whole);
}

// ---- open and close

size_t slices_rows(const struct trainer *t)
{
    return t->run.tp_sequence ? (size_t)part_rows(&t->config, batch_rows(t)).n
                              : batch_rows(t);
}

size_t slices_bytes(const struct trainer *t)
{
    return t->slices ? sum_n(t) * shape_join_bytes(&t->run) : 0;
}

int slices_buffer(struct trainer *t)
{
    struct slices *s = t->slices;
    if (!s)
        return 0;
    s->job = (struct model_slices){.join = join,
                                   .gather = gather,
                                   .ctx = t,
                                   .sequence = t->run.tp_sequence > 0,
                                   .keeps = t->run.tp_sequence == 2,
                                   .scatter_rows = scatter_rows,
                                   .gather_rows = gather_rows};
    if (!device_is_host(t->dev)) // the model has its own
        return 0;
    s->job.sum = device_alloc_shared(t->dev, sum_n(t), sizeof *s->job.sum);
    return s->job.sum ? 0 : -1;
}

// How a worker computes. All slices must compute in the same way, or the
// tensors that are whole on every slice would drift apart.
struct means { // sent as bytes: no padding
    int threads;
    char isa[16];
};

static int check_means(struct trainer *t)
{
    struct means mine = {.threads = t->run.threads};
    const struct kernels *k = kernels_find(config_format(&t->run));
    if (!k)
        return -1;
    snprintf(mine.isa, sizeof mine.isa, "%s", k->isa);
    struct cluster *c = t->row;
    struct means *all = mem_alloc((size_t)c->world, sizeof *all);
    int rc = all ? cluster_allgather(c, &mine, all, sizeof mine) : -1;
    for (int s = 1; !rc && s < c->world; s++)
        if (memcmp(&all[s], &all[0], sizeof mine))
            rc =
                fail("slices (tp): rank %d computes with %d threads and %s, "
                     "rank %d with %d and %s, so that their results would "
                     "differ; try: threads=1, or MODEL_ISA=baseline for all",
                     cluster_job_rank(c->ranks, s), all[s].threads, all[s].isa,
                     cluster_job_rank(c->ranks, 0), all[0].threads, all[0].isa);
    mem_free(all);
    return rc;
}

static int load_student(struct slices *s, const char *path)
{
    s->file = student_open(path, "lab_exchange", &s->student);
    if (!s->file)
        return -1;
    s->real = real_open(s->group);
    return s->real ? 0 : -1;
}

static int open_host(struct trainer *t)
{
    size_t sums = sum_n(t), parts = model_gathered(t->model);
    t->slices->host =
        device_host_alloc(t->dev, sums > parts ? sums : parts, sizeof(float));
    return t->slices->host ? 0 : -1;
}

int slices_open(struct trainer *t)
{
    struct slices *s = t->slices;
    if (!s)
        return 0;
    const char *lab = t->run.settings.lab;
    struct group_job job = {
        .name = "slices",
        .cluster = t->row,
        .dev = t->dev,
        .grain = 1, // of gather()
        .largest = t->run.tp_wire == DTYPE_F32 ? 0 : sum_n(t),
        .depth = *lab ? LAB_REQUESTS : 2,
        .pairs = *lab,
        .iface = t->run.settings.iface,
    };
    s->lengths = mem_alloc((size_t)t->row->world, sizeof *s->lengths);
    if (!s->lengths || check_means(t) || check_order(t))
        return -1;
    const struct group_ops *carrier = exchange_carrier(t, &job, !*lab);
    s->group = carrier ? group_open(carrier, &job) : NULL;
    if (!s->group || exchange_numbers_open(t, s->group, &s->numbers) ||
        (*lab && load_student(s, lab)))
        return -1;
    if (s->job.sum)
        return group_share(s->group, s->job.sum, sum_n(t) * sizeof *s->job.sum);
    return carrier->on_device && !s->aligns ? 0 : open_host(t);
}

const char *slices_transport(const struct trainer *t)
{
    return t->slices ? t->slices->group->ops->name : NULL;
}

int slices_sharing(const struct trainer *t)
{
    const struct group *g = t->slices ? t->slices->group : NULL;
    return g && g->ops == &ring_shm ? g->size : 0;
}

void slices_close(struct trainer *t)
{
    struct slices *s = t->slices;
    if (!s)
        return;
    group_close(&s->group);
    real_close(&s->real);
    student_close(&s->file);
    mem_free(s->lengths);
    exchange_numbers_close(t, &s->numbers);
    if (s->job.sum)
        device_free(t->dev, s->job.sum);
    if (s->host)
        device_host_free(t->dev, s->host);
    mem_free(s);
    t->slices = NULL;
}

struct group_stats slices_moved(const struct trainer *t)
{
    return t->slices ? t->slices->group->stats : (struct group_stats){0};
}
