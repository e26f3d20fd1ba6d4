// cudnn.cpp - cuDNN's backend interface as its header describes it: descriptors
// with attributes, operation graphs, heuristics, plans. It is not NVIDIA's.
//
// A graph is computed operation by operation, in fp32, whatever it is; virtual
// tensors round to their type. Every attribute is checked: that its descriptor
// has it, its type and count, that no finalized descriptor changes, and that
// required ones are there; of operations, the shapes. A real one knows far
// fewer graphs: test_cudnn_plans asks it, where there is one.
//
// The heuristics name three engines: one that notes that runs may differ, one
// whose plan is refused, and one that works. EMULATED_CUDNN=old is of version
// 9.7.1 and =broken of 9.10.0; =greedy needs too much workspace; =stray is for
// CUDA 99, which has no cuBLASLt; =unsupported refuses all plans; =differs has
// the first engine alone; =fails refuses to run a plan.

#include "model/cuda/dnn.h"
#include "tests/emulated_cuda/address.h"
#include "tests/emulated_cuda/block.h"
#include "tests/emulated_cuda/cudnn_operations.h"
#include "tests/emulated_cuda/runtime.h"

#include <stdlib.h>

enum { BAD_PARAM = 2000, UNSUPPORTED = 3000, FAILED = 5000 };
enum { DIFFERS, REFUSED, WORKS, ENGINES }; // in the heuristics' order
enum { ALIGNED = 16 };
static const int64_t GREEDY = INT64_C(1) << 50; // bytes that no GPU has

static struct descriptor handle = {-1, true, 0, {}};
static void *stream;
static bool has_stream; // a real one takes the default stream without one
static thread_local std::string reason;

static bool mode_is(const char *mode)
{
    const char *set = getenv("EMULATED_CUDNN");
    return set && !strcmp(set, mode);
}

static int refuse(int status, const std::string &why)
{
    reason = why;
    return status;
}

// ---- what attributes there are

static const struct attribute {
    int descriptor, name, type;
    int64_t least, most;
    bool required;
} attributes[] = {
    {DNN_POINTWISE, DNN_POINTWISE_MODE, DNN_TYPE_POINTWISE, 1, 1, true},
    {DNN_POINTWISE, DNN_POINTWISE_MATH, DNN_TYPE_DATA, 1, 1, true},
    {DNN_POINTWISE, DNN_POINTWISE_AXIS, DNN_TYPE_INT64, 1, 1, false},
    {DNN_HEURISTICS, DNN_HEURISTICS_GRAPH, DNN_TYPE_DESCRIPTOR, 1, 1, true},
    {DNN_HEURISTICS, DNN_HEURISTICS_MODE, DNN_TYPE_HEURISTICS, 1, 1, true},
    {DNN_PLAN, DNN_PLAN_HANDLE, DNN_TYPE_HANDLE, 1, 1, true},
    {DNN_PLAN, DNN_PLAN_CONFIG, DNN_TYPE_DESCRIPTOR, 1, 1, true},
    {DNN_OP_POINTWISE, DNN_OP_POINTWISE_DESC, DNN_TYPE_DESCRIPTOR, 1, 1, true},
    {DNN_OP_POINTWISE, DNN_OP_POINTWISE_X, DNN_TYPE_DESCRIPTOR, 1, 1, true},
    {DNN_OP_POINTWISE, DNN_OP_POINTWISE_B, DNN_TYPE_DESCRIPTOR, 1, 1, false},
    {DNN_OP_POINTWISE, DNN_OP_POINTWISE_T, DNN_TYPE_DESCRIPTOR, 1, 1, false},
    {DNN_OP_POINTWISE, DNN_OP_POINTWISE_Y, DNN_TYPE_DESCRIPTOR, 1, 1, true},
    {DNN_OP_GRAPH, DNN_GRAPH_HANDLE, DNN_TYPE_HANDLE, 1, 1, true},
    {DNN_OP_GRAPH, DNN_GRAPH_OPS, DNN_TYPE_DESCRIPTOR, 1, 1000, true},
    {DNN_PACK, DNN_PACK_IDS, DNN_TYPE_INT64, 0, 1000, true},
    {DNN_PACK, DNN_PACK_POINTERS, DNN_TYPE_POINTER, 0, 1000, true},
    {DNN_PACK, DNN_PACK_WORKSPACE, DNN_TYPE_POINTER, 1, 1, true},
    {DNN_TENSOR, DNN_TENSOR_ID, DNN_TYPE_INT64, 1, 1, true},
    {DNN_TENSOR, DNN_TENSOR_DATA, DNN_TYPE_DATA, 1, 1, true},
    {DNN_TENSOR, DNN_TENSOR_ALIGNMENT, DNN_TYPE_INT64, 1, 1, true},
    {DNN_TENSOR, DNN_TENSOR_DIMENSIONS, DNN_TYPE_INT64, 4, 4, true},
    {DNN_TENSOR, DNN_TENSOR_STRIDES, DNN_TYPE_INT64, 4, 4, true},
    {DNN_TENSOR, DNN_TENSOR_VIRTUAL, DNN_TYPE_BOOL, 1, 1, false},
    {DNN_TENSOR, DNN_TENSOR_BY_VALUE, DNN_TYPE_BOOL, 1, 1, false},
    {DNN_MATMUL, DNN_MATMUL_COMPUTE, DNN_TYPE_DATA, 1, 1, true},
    {DNN_OP_MATMUL, DNN_OP_MATMUL_A, DNN_TYPE_DESCRIPTOR, 1, 1, true},
    {DNN_OP_MATMUL, DNN_OP_MATMUL_B, DNN_TYPE_DESCRIPTOR, 1, 1, true},
    {DNN_OP_MATMUL, DNN_OP_MATMUL_C, DNN_TYPE_DESCRIPTOR, 1, 1, true},
    {DNN_OP_MATMUL, DNN_OP_MATMUL_DESC, DNN_TYPE_DESCRIPTOR, 1, 1, true},
    {DNN_REDUCTION, DNN_REDUCTION_OPERATOR, DNN_TYPE_REDUCTION, 1, 1, true},
    {DNN_REDUCTION, DNN_REDUCTION_COMPUTE, DNN_TYPE_DATA, 1, 1, true},
    {DNN_OP_REDUCTION, DNN_OP_REDUCTION_X, DNN_TYPE_DESCRIPTOR, 1, 1, true},
    {DNN_OP_REDUCTION, DNN_OP_REDUCTION_Y, DNN_TYPE_DESCRIPTOR, 1, 1, true},
    {DNN_OP_REDUCTION, DNN_OP_REDUCTION_DESC, DNN_TYPE_DESCRIPTOR, 1, 1, true},
    {DNN_OP_RESHAPE, DNN_OP_RESHAPE_X, DNN_TYPE_DESCRIPTOR, 1, 1, true},
    {DNN_OP_RESHAPE, DNN_OP_RESHAPE_Y, DNN_TYPE_DESCRIPTOR, 1, 1, true},
};

static size_t size_of_type(int type)
{
    switch (type) {
    case DNN_TYPE_BOOL:
        return 1;
    case DNN_TYPE_INT64:
    case DNN_TYPE_HANDLE:
    case DNN_TYPE_POINTER:
    case DNN_TYPE_DESCRIPTOR:
        return 8;
    default: // the enums
        return 4;
    }
}

static const attribute *find_attribute(int descriptor, int name)
{
    for (const attribute &a : attributes)
        if (a.descriptor == descriptor && a.name == name)
            return &a;
    return nullptr;
}

// ---- checks of a descriptor that is finalized

static std::string named(const descriptor *d, const char *what)
{
    return std::string(what) + " of descriptor " + std::to_string(d->type);
}

static int check_tensor(const descriptor *d)
{
    tensor t = tensor_of(d);
    int64_t size = t.type == DNN_BFLOAT16 || t.type == DNN_HALF ? 2 : 4;
    for (int i = 0; i < 4; i++)
        if (t.dim[i] < 1 || t.stride[i] < 1)
            return refuse(BAD_PARAM, "a tensor's dimension or stride");
    if (get<int64_t>(d, DNN_TENSOR_ALIGNMENT) % size)
        return refuse(BAD_PARAM, "a tensor's alignment");
    if (t.is_virtual && t.by_value)
        return refuse(BAD_PARAM, "a virtual tensor with a value");
    return 0;
}

// Exactly one operation makes each virtual tensor.
static int check_graph(const descriptor *d)
{
    std::map<int64_t, int> made, read;
    int64_t n = d->set.at(DNN_GRAPH_OPS).n;
    for (int64_t i = 0; i < n; i++) {
        operation o = operation_of(member(d, DNN_GRAPH_OPS, i));
        made[o.out.id]++;
        for (const tensor &t : o.in)
            if (t.is_virtual)
                read[t.id]++;
    }
    for (auto &m : made)
        if (m.second != 1)
            return refuse(BAD_PARAM, "a tensor that two operations make");
    for (auto &r : read)
        if (!made.count(r.first))
            return refuse(BAD_PARAM, "a virtual tensor that nothing makes");
    return 0;
}

static int check_pack(const descriptor *d)
{
    const value &ids = d->set.at(DNN_PACK_IDS);
    std::map<int64_t, int> seen;
    if (ids.n != d->set.at(DNN_PACK_POINTERS).n)
        return refuse(BAD_PARAM, "pointers of other tensors");
    for (int64_t i = 0; i < ids.n; i++)
        if (seen[get<int64_t>(d, DNN_PACK_IDS, i)]++)
            return refuse(BAD_PARAM, "two pointers of one tensor");
    return 0;
}

static int check(const descriptor *d)
{
    for (const attribute &a : attributes)
        if (a.descriptor == d->type && a.required && !d->set.count(a.name))
            return refuse(BAD_PARAM, named(d, "a required attribute"));
    for (auto &s : d->set)
        if (find_attribute(d->type, s.first)->type == DNN_TYPE_DESCRIPTOR)
            for (int64_t i = 0; i < s.second.n; i++)
                if (!member(d, s.first, i)->finalized)
                    return refuse(BAD_PARAM, named(d, "an unfinished member"));
    switch (d->type) {
    case DNN_TENSOR:
        return check_tensor(d);
    case DNN_OP_MATMUL:
    case DNN_OP_POINTWISE:
    case DNN_OP_REDUCTION:
    case DNN_OP_RESHAPE: {
        std::string what = operation_wrong(operation_of(d));
        return what.empty() ? 0 : refuse(BAD_PARAM, what);
    }
    case DNN_OP_GRAPH:
        return check_graph(d);
    case DNN_PACK:
        return check_pack(d);
    case DNN_PLAN:
        return member(d, DNN_PLAN_CONFIG)->engine != WORKS ||
                       mode_is("unsupported")
                   ? refuse(UNSUPPORTED, "no kernel of this engine")
                   : 0;
    default:
        return 0;
    }
}

// ---- running a plan

// The bytes of workspace that a plan needs: more for a graph of more
// operations, as backward's.
static size_t workspace_of(const descriptor *plan)
{
    const descriptor *config = member(plan, DNN_PLAN_CONFIG);
    const descriptor *graph = member(config, DNN_HEURISTICS_GRAPH);
    return 1024 * (size_t)graph->set.at(DNN_GRAPH_OPS).n;
}

struct work {
    std::vector<operation> ops;
    std::map<int64_t, void *> pointers;
    std::map<int64_t, float> values; // by value: read when it is asked for
    char *workspace;
    size_t bytes; // of the workspace
};

static numbers input(const work &w, const tensor &t,
                     std::map<int64_t, numbers> *known)
{
    auto it = known->find(t.id);
    if (it != known->end())
        return it->second;
    if (t.by_value)
        return {w.values.at(t.id)};
    return tensor_read(t, w.pointers.at(t.id));
}

static void run(const work &w)
{
    std::map<int64_t, numbers> known;
    std::vector<bool> done(w.ops.size());
    if (w.bytes > emulated::allocated(w.workspace))
        emulated::stop("cuDNN: the workspace is too small");
    memset(w.workspace, 0xff, w.bytes);
    std::map<int64_t, bool> made;
    for (const operation &o : w.ops)
        made[o.out.id] = true;
    for (size_t left = w.ops.size(); left > 0;)
        for (size_t i = 0; i < w.ops.size(); i++) {
            const operation &o = w.ops[i];
            bool ready = !done[i];
            for (const tensor &t : o.in)
                ready = ready && (!made.count(t.id) || known.count(t.id));
            if (!ready)
                continue;
            std::vector<numbers> in;
            for (const tensor &t : o.in)
                in.push_back(input(w, t, &known));
            known[o.out.id] = operation_compute(o, in);
            if (!o.out.is_virtual)
                tensor_write(o.out, w.pointers.at(o.out.id), known[o.out.id]);
            done[i] = true, left--;
        }
}

// The work of a plan with the pack's pointers. False if one is missing or not
// aligned.
static bool gather(const descriptor *plan, const descriptor *pack, work *w)
{
    const descriptor *config = member(plan, DNN_PLAN_CONFIG);
    const descriptor *graph = member(config, DNN_HEURISTICS_GRAPH);
    std::map<int64_t, void *> given;
    for (int64_t i = 0; i < pack->set.at(DNN_PACK_IDS).n; i++)
        given[get<int64_t>(pack, DNN_PACK_IDS, i)] =
            get<void *>(pack, DNN_PACK_POINTERS, i);
    w->workspace = get<char *>(pack, DNN_PACK_WORKSPACE);
    w->bytes = workspace_of(plan);
    for (int64_t i = 0; i < graph->set.at(DNN_GRAPH_OPS).n; i++) {
        operation o = operation_of(member(graph, DNN_GRAPH_OPS, i));
        std::vector<tensor> all = o.in;
        all.push_back(o.out);
        for (const tensor &t : all) {
            if (t.is_virtual)
                continue;
            void *p = given.count(t.id) ? given[t.id] : nullptr;
            if (!p || (!t.by_value && (uintptr_t)p % ALIGNED))
                return false;
            w->pointers[t.id] = p;
            if (t.by_value)
                w->values[t.id] = *(const float *)p;
        }
        w->ops.push_back(o);
    }
    return w->workspace != nullptr;
}

// ---- the interface

extern "C" {

size_t cudnnGetVersion(void)
{
    return mode_is("old") ? 90701 : mode_is("broken") ? 91000 : 92800;
}

size_t cudnnGetCudartVersion(void)
{
    return mode_is("stray") ? 99000 : 13000;
}

const char *cudnnGetErrorString(int status)
{
    return status == 0             ? "success"
           : status == BAD_PARAM   ? "bad parameter"
           : status == UNSUPPORTED ? "not supported"
                                   : "execution failed";
}

void cudnnGetLastErrorString(char *text, size_t bytes)
{
    snprintf(text, bytes, "%s", reason.c_str());
}

int cudnnCreate(void **made)
{
    *made = &handle;
    has_stream = false;
    return 0;
}

int cudnnDestroy(void *of)
{
    return of == &handle ? 0 : BAD_PARAM;
}

int cudnnSetStream(void *of, void *to)
{
    stream = to;
    has_stream = true;
    return of == &handle ? 0 : BAD_PARAM;
}

int cudnnBackendCreateDescriptor(int type, void **made)
{
    *made = new descriptor{type, false, 0, {}};
    return 0;
}

int cudnnBackendDestroyDescriptor(void *made)
{
    delete (descriptor *)made;
    return 0;
}

int cudnnBackendSetAttribute(void *made, int name, int type, int64_t n,
                             const void *values)
{
    descriptor *d = (descriptor *)made;
    const attribute *a = find_attribute(d->type, name);
    if (d->finalized)
        return refuse(BAD_PARAM, named(d, "finalized: an attribute"));
    if (!a || a->type != type || n < a->least || n > a->most || !values)
        return refuse(BAD_PARAM, named(d, "name, type or count"));
    const unsigned char *from = (const unsigned char *)values;
    size_t bytes = (size_t)n * size_of_type(type);
    d->set[name] = {std::vector<unsigned char>(from, from + bytes), n};
    return 0;
}

int cudnnBackendFinalize(void *made)
{
    descriptor *d = (descriptor *)made;
    int status = check(d);
    d->finalized = status == 0;
    return status;
}

int cudnnBackendGetAttribute(void *made, int name, int type, int64_t most,
                             int64_t *n, void *values)
{
    descriptor *d = (descriptor *)made, **into = (descriptor **)values;
    if (!d->finalized)
        return refuse(BAD_PARAM, named(d, "not finalized: an attribute"));
    if (name == DNN_HEURISTICS_RESULTS && type == DNN_TYPE_DESCRIPTOR) {
        bool known = get<int>(d, DNN_HEURISTICS_MODE) == DNN_MODE_A;
        *n = !known ? 0 : mode_is("differs") ? 1 : ENGINES;
        for (int64_t i = 0; i < *n && i < most; i++) {
            into[i]->set[DNN_HEURISTICS_GRAPH] =
                d->set.at(DNN_HEURISTICS_GRAPH);
            into[i]->engine = (int)i;
            into[i]->finalized = true;
        }
        return 0;
    }
    if (name == DNN_CONFIG_ENGINE && type == DNN_TYPE_DESCRIPTOR && most == 1) {
        into[0]->engine = d->engine;
        into[0]->finalized = true;
        return 0;
    }
    if (name == DNN_ENGINE_NOTES && type == DNN_TYPE_NOTE && most > 0) {
        *n = d->engine == DIFFERS;
        *(int32_t *)values = DNN_NOTE_NONDETERMINISTIC;
        return 0;
    }
    if (name == DNN_PLAN_WORKSPACE && type == DNN_TYPE_INT64 && most == 1) {
        *(int64_t *)values =
            mode_is("greedy") ? GREEDY : (int64_t)workspace_of(d);
        return 0;
    }
    return refuse(BAD_PARAM, named(d, "an unknown attribute"));
}

int cudnnBackendExecute(void *of, void *plan, void *pack)
{
    const descriptor *p = (descriptor *)plan, *v = (descriptor *)pack;
    work w;
    if (of != &handle || !p->finalized || !v->finalized)
        return refuse(BAD_PARAM, "a handle, a plan or a pack");
    if (!has_stream)
        return refuse(BAD_PARAM, "no stream");
    if (mode_is("fails"))
        return refuse(FAILED, "as the test asked");
    if (!gather(p, v, &w))
        return refuse(BAD_PARAM, "a pointer is missing or not aligned");
    emulated::enqueue(stream, [w] { run(w); });
    return 0;
}

} // extern "C"
