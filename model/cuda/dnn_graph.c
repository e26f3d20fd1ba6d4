// dnn_graph.c - creates descriptors, sets their attributes and finalizes them.
// An operation refers to its tensors, and the graph to its operations.

#include "model/cuda/dnn_graph.h"

#include "base/base.h"

#include <stdio.h>

enum { ALIGNMENT = 16, ENGINES = 8 };

void dnn_graph_open(struct dnn_graph *g, const struct dnn *dnn,
                    const char *name, int64_t first_virtual)
{
    *g = (struct dnn_graph){.dnn = dnn, .next_id = first_virtual};
    snprintf(g->name, sizeof g->name, "%s", name);
}

void dnn_graph_close(struct dnn_graph *g)
{
    while (g->nmade > 0)
        g->dnn->BackendDestroyDescriptor(g->made[--g->nmade]);
    *g = (struct dnn_graph){0};
}

// ---- descriptors

static void say(struct dnn_graph *g, const char *what, int status)
{
    char text[192];
    if (g->failed)
        return;
    snprintf(text, sizeof text, "%s: %s", g->name, what);
    dnn_fail(g->dnn, text, status);
    g->failed = true;
}

static void *make(struct dnn_graph *g, enum dnn_descriptor type)
{
    void *made = NULL;
    CHECK(g->nmade < DNN_MOST_MADE);
    int status =
        g->failed ? 0 : g->dnn->BackendCreateDescriptor((int)type, &made);
    if (status)
        say(g, "no descriptor", status);
    if (g->failed)
        return NULL;
    g->made[g->nmade++] = made;
    return made;
}

static void set(struct dnn_graph *g, void *made, enum dnn_attribute name,
                enum dnn_type type, int64_t n, const void *values)
{
    char what[32];
    int status = g->failed ? 0
                           : g->dnn->BackendSetAttribute(made, (int)name,
                                                         (int)type, n, values);
    snprintf(what, sizeof what, "attribute %d", (int)name);
    if (status)
        say(g, what, status);
}

static void set_descriptor(struct dnn_graph *g, void *made,
                           enum dnn_attribute name, void *value)
{
    set(g, made, name, DNN_TYPE_DESCRIPTOR, 1, &value);
}

static void *finalize(struct dnn_graph *g, void *made, const char *what)
{
    int status = g->failed ? 0 : g->dnn->BackendFinalize(made);
    if (status)
        say(g, what, status);
    return g->failed ? NULL : made;
}

// ---- tensors

enum kind { REAL, VIRTUAL, VALUE };

static void *tensor(struct dnn_graph *g, int64_t id, enum dnn_data type,
                    const int64_t *dim, const int64_t *stride, enum kind kind)
{
    const int64_t alignment = ALIGNMENT;
    const int32_t data = (int32_t)type;
    const bool is_virtual = kind == VIRTUAL, by_value = kind == VALUE;
    void *t = make(g, DNN_TENSOR);
    set(g, t, DNN_TENSOR_DATA, DNN_TYPE_DATA, 1, &data);
    set(g, t, DNN_TENSOR_DIMENSIONS, DNN_TYPE_INT64, DNN_RANK, dim);
    set(g, t, DNN_TENSOR_STRIDES, DNN_TYPE_INT64, DNN_RANK, stride);
    set(g, t, DNN_TENSOR_ID, DNN_TYPE_INT64, 1, &id);
    set(g, t, DNN_TENSOR_ALIGNMENT, DNN_TYPE_INT64, 1, &alignment);
    set(g, t, DNN_TENSOR_VIRTUAL, DNN_TYPE_BOOL, 1, &is_virtual);
    set(g, t, DNN_TENSOR_BY_VALUE, DNN_TYPE_BOOL, 1, &by_value);
    return finalize(g, t, "tensor");
}

void *dnn_tensor(struct dnn_graph *g, int64_t id, enum dnn_data type,
                 const int64_t dim[DNN_RANK], const int64_t stride[DNN_RANK])
{
    return tensor(g, id, type, dim, stride, REAL);
}

void *dnn_value(struct dnn_graph *g, int64_t id)
{
    static const int64_t one[DNN_RANK] = {1, 1, 1, 1};
    return tensor(g, id, DNN_FLOAT, one, one, VALUE);
}

void *dnn_virtual_strided(struct dnn_graph *g, enum dnn_data type,
                          const int64_t dim[DNN_RANK],
                          const int64_t stride[DNN_RANK])
{
    return tensor(g, g->next_id++, type, dim, stride, VIRTUAL);
}

void *dnn_virtual(struct dnn_graph *g, enum dnn_data type,
                  const int64_t dim[DNN_RANK])
{
    int64_t stride[DNN_RANK] = {0, 0, 0, 1};
    for (int i = DNN_RANK - 2; i >= 0; i--)
        stride[i] = stride[i + 1] * dim[i + 1];
    return dnn_virtual_strided(g, type, dim, stride);
}

// ---- operations

static void add_op(struct dnn_graph *g, void *op, const char *what)
{
    CHECK(g->nops < DNN_MOST_OPS);
    if (finalize(g, op, what))
        g->ops[g->nops++] = op;
}

void dnn_matmul(struct dnn_graph *g, void *a, void *b, void *c)
{
    const int32_t compute = DNN_FLOAT;
    void *how = make(g, DNN_MATMUL);
    set(g, how, DNN_MATMUL_COMPUTE, DNN_TYPE_DATA, 1, &compute);
    finalize(g, how, "product");
    void *op = make(g, DNN_OP_MATMUL);
    set_descriptor(g, op, DNN_OP_MATMUL_A, a);
    set_descriptor(g, op, DNN_OP_MATMUL_B, b);
    set_descriptor(g, op, DNN_OP_MATMUL_C, c);
    set_descriptor(g, op, DNN_OP_MATMUL_DESC, how);
    add_op(g, op, "product");
}

// An element-wise operation. `axis` is -1 if it has none.
static void point(struct dnn_graph *g, enum dnn_pointwise mode,
                  enum dnn_data compute, int64_t axis, void *x, void *b,
                  void *t, void *y)
{
    const int32_t which = (int32_t)mode, math = (int32_t)compute;
    void *how = make(g, DNN_POINTWISE);
    set(g, how, DNN_POINTWISE_MODE, DNN_TYPE_POINTWISE, 1, &which);
    set(g, how, DNN_POINTWISE_MATH, DNN_TYPE_DATA, 1, &math);
    if (axis >= 0)
        set(g, how, DNN_POINTWISE_AXIS, DNN_TYPE_INT64, 1, &axis);
    finalize(g, how, "pointwise");
    void *op = make(g, DNN_OP_POINTWISE);
    set_descriptor(g, op, DNN_OP_POINTWISE_DESC, how);
    set_descriptor(g, op, DNN_OP_POINTWISE_X, x);
    if (b)
        set_descriptor(g, op, DNN_OP_POINTWISE_B, b);
    if (t)
        set_descriptor(g, op, DNN_OP_POINTWISE_T, t);
    set_descriptor(g, op, DNN_OP_POINTWISE_Y, y);
    add_op(g, op, "pointwise");
}

void dnn_pointwise(struct dnn_graph *g, enum dnn_pointwise mode, void *x,
                   void *b, void *y)
{
    point(g, mode, DNN_FLOAT, -1, x, b, NULL, y);
}

void dnn_index(struct dnn_graph *g, void *x, int64_t axis, void *y)
{
    point(g, DNN_INDEX, DNN_FLOAT, axis, x, NULL, NULL, y);
}

void dnn_not_less(struct dnn_graph *g, void *x, void *b, void *y)
{
    point(g, DNN_GE, DNN_BOOLEAN, -1, x, b, NULL, y);
}

void dnn_select(struct dnn_graph *g, void *keep, void *x, void *other, void *y)
{
    point(g, DNN_SELECT, DNN_FLOAT, -1, x, other, keep, y);
}

void dnn_reduce(struct dnn_graph *g, enum dnn_reduction mode, void *x, void *y)
{
    const int32_t compute = DNN_FLOAT, which = (int32_t)mode;
    void *how = make(g, DNN_REDUCTION);
    set(g, how, DNN_REDUCTION_COMPUTE, DNN_TYPE_DATA, 1, &compute);
    set(g, how, DNN_REDUCTION_OPERATOR, DNN_TYPE_REDUCTION, 1, &which);
    finalize(g, how, "reduction");
    void *op = make(g, DNN_OP_REDUCTION);
    set_descriptor(g, op, DNN_OP_REDUCTION_X, x);
    set_descriptor(g, op, DNN_OP_REDUCTION_Y, y);
    set_descriptor(g, op, DNN_OP_REDUCTION_DESC, how);
    add_op(g, op, "reduction");
}

void dnn_reshape(struct dnn_graph *g, void *x, void *y)
{
    void *op = make(g, DNN_OP_RESHAPE);
    set_descriptor(g, op, DNN_OP_RESHAPE_X, x);
    set_descriptor(g, op, DNN_OP_RESHAPE_Y, y);
    add_op(g, op, "reshape");
}

// ---- the plan

// *differs = whether cuDNN's notes say that runs of this engine may differ.
// Returns 0, or a cudnnStatus_t.
static int may_differ(const struct dnn_graph *g, void *config, bool *differs)
{
    const struct dnn *dnn = g->dnn;
    void *engine = NULL;
    int32_t notes[DNN_NOTES];
    int64_t n = 0;
    int status = dnn->BackendCreateDescriptor(DNN_ENGINE, &engine);
    if (status)
        return status;
    status = dnn->BackendGetAttribute(config, DNN_CONFIG_ENGINE,
                                      DNN_TYPE_DESCRIPTOR, 1, &n, &engine);
    if (!status)
        status = dnn->BackendGetAttribute(engine, DNN_ENGINE_NOTES,
                                          DNN_TYPE_NOTE, DNN_NOTES, &n, notes);
    *differs = false;
    for (int64_t i = 0; !status && i < n; i++)
        *differs = *differs || notes[i] == DNN_NOTE_NONDETERMINISTIC;
    dnn->BackendDestroyDescriptor(engine);
    return status;
}

static int finalize_plan(struct dnn_graph *g, void *plan, void *config)
{
    const struct dnn *dnn = g->dnn;
    int64_t bytes = 0, n = 0;
    int status =
        dnn->device
            ? dnn->BackendSetAttribute(plan, DNN_PLAN_DEVICE,
                                       DNN_TYPE_DESCRIPTOR, 1, &dnn->device)
            : dnn->BackendSetAttribute(plan, DNN_PLAN_HANDLE, DNN_TYPE_HANDLE,
                                       1, &dnn->handle);
    if (!status)
        status = dnn->BackendSetAttribute(plan, DNN_PLAN_CONFIG,
                                          DNN_TYPE_DESCRIPTOR, 1, &config);
    if (!status)
        status = dnn->BackendFinalize(plan);
    if (!status)
        status = dnn->BackendGetAttribute(plan, DNN_PLAN_WORKSPACE,
                                          DNN_TYPE_INT64, 1, &n, &bytes);
    g->workspace = (size_t)bytes;
    return status;
}

// What find_plan() has met.
struct tried {
    int differ; // engines left out, since their runs may differ
    bool error; // fail() has the first error's status and cuDNN's reason
};

// True if there is an error. cuDNN keeps the reason only until its next call.
static bool error(const struct dnn_graph *g, struct tried *tried, int status)
{
    char what[192];
    if (status && !tried->error) {
        snprintf(what, sizeof what, "%s: no plan", g->name);
        dnn_fail(g->dnn, what, status);
    }
    tried->error = tried->error || status;
    return status;
}

// Returns a plan for the first engine that works, of those that the heuristics
// offer in this mode, or NULL.
static void *find_plan(struct dnn_graph *g, void *graph, int32_t mode,
                       struct tried *tried)
{
    const struct dnn *dnn = g->dnn;
    void *configs[ENGINES] = {NULL};
    int64_t n = 0;
    void *heuristics = make(g, DNN_HEURISTICS);
    set_descriptor(g, heuristics, DNN_HEURISTICS_GRAPH, graph);
    set(g, heuristics, DNN_HEURISTICS_MODE, DNN_TYPE_HEURISTICS, 1, &mode);
    if (dnn->device)
        set_descriptor(g, heuristics, DNN_HEURISTICS_DEVICE, dnn->device);
    if (g->failed || error(g, tried, dnn->BackendFinalize(heuristics)))
        return NULL;
    for (int i = 0; i < ENGINES; i++)
        configs[i] = make(g, DNN_ENGINE_CONFIG);
    if (g->failed ||
        error(g, tried,
              dnn->BackendGetAttribute(heuristics, DNN_HEURISTICS_RESULTS,
                                       DNN_TYPE_DESCRIPTOR, ENGINES, &n,
                                       configs)))
        return NULL;
    for (int64_t i = 0; i < n && i < ENGINES; i++) {
        bool differs = false;
        if (error(g, tried, may_differ(g, configs[i], &differs)))
            continue;
        tried->differ += differs;
        void *plan = differs ? NULL : make(g, DNN_PLAN);
        if (plan && !error(g, tried, finalize_plan(g, plan, configs[i])))
            return plan;
    }
    return NULL;
}

int dnn_graph_plan(struct dnn_graph *g)
{
    char what[96] = "no engine for this GPU and shape";
    struct tried tried = {0};
    void *graph = make(g, DNN_OP_GRAPH);
    if (!g->dnn->device)
        set(g, graph, DNN_GRAPH_HANDLE, DNN_TYPE_HANDLE, 1, &g->dnn->handle);
    set(g, graph, DNN_GRAPH_OPS, DNN_TYPE_DESCRIPTOR, g->nops, g->ops);
    finalize(g, graph, "operation graph");
    g->plan = find_plan(g, graph, DNN_MODE_A, &tried);
    const int differ = tried.differ; // the other mode may offer them again
    if (!g->plan)
        g->plan = find_plan(g, graph, DNN_MODE_FALLBACK, &tried);
    if (!g->plan && !tried.error) {
        if (tried.differ)
            snprintf(what, sizeof what,
                     "all engines (%d) may differ between runs",
                     differ ? differ : tried.differ);
        say(g, what, 0);
    }
    g->failed = g->failed || !g->plan;
    return g->failed ? -1 : 0;
}

int dnn_graph_run(const struct dnn_graph *g, int n, const int64_t *ids,
                  void *const *pointers, void *workspace)
{
    const struct dnn *dnn = g->dnn;
    void *pack = NULL;
    int status = dnn->BackendCreateDescriptor(DNN_PACK, &pack);
    if (status)
        return status;
    status =
        dnn->BackendSetAttribute(pack, DNN_PACK_IDS, DNN_TYPE_INT64, n, ids);
    if (!status)
        status = dnn->BackendSetAttribute(pack, DNN_PACK_POINTERS,
                                          DNN_TYPE_POINTER, n, pointers);
    if (!status)
        status = dnn->BackendSetAttribute(pack, DNN_PACK_WORKSPACE,
                                          DNN_TYPE_POINTER, 1, &workspace);
    if (!status)
        status = dnn->BackendFinalize(pack);
    if (!status)
        status = dnn->BackendExecute(dnn->handle, g->plan, pack);
    dnn->BackendDestroyDescriptor(pack);
    return status;
}
