// activity.c - reads CUPTI's records, with the layout of CUDA 11 to 13.
//
//     CUPTI's thread   asks for a buffer .. returns it full: we copy records
//     activity_end()   flushes: CUPTI returns the last buffer in this thread
//
// Types and numbers are those of cupti_activity.h. Only the beginning of a
// record is read, which is the same in all its versions. CUPTI's clock has
// another zero than ours, and runs at the same rate.

#include "telemetry/activity.h"

#include "base/base.h"
#include "base/library.h"

#include <ctype.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { KIND_MEMCPY = 1, KIND_MEMSET = 2, KIND_KERNEL = 10, FLUSH_FORCED = 1 };
enum { BUFFER = 1 << 20, ALIGNED = 8, NAMES = 1024 };

struct kernel { // CUpti_ActivityKernel4 and later
    uint32_t kind, configuration[3];
    uint64_t begin, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3], shared[2];
    uint32_t local[2], correlation;
    int64_t grid_id;
    const char *name;
};

struct copy { // CUpti_ActivityMemcpy, CUpti_ActivityMemset
    uint32_t kind;
    uint8_t way, rest[3];
    uint64_t bytes, begin, end;
    uint32_t device, context, stream;
};

_Static_assert(offsetof(struct kernel, stream) == 48, "as CUPTI has it");
_Static_assert(offsetof(struct kernel, name) == 104, "as CUPTI has it");
_Static_assert(offsetof(struct copy, stream) == 40, "as CUPTI has it");

typedef void wanted_fn(uint8_t **buffer, size_t *bytes, size_t *records);
typedef void full_fn(void *context, uint32_t stream, uint8_t *buffer,
                     size_t bytes, size_t used);

struct activity {
    void *library;
    int (*callbacks)(wanted_fn *wanted, full_fn *full);
    int (*enable)(uint32_t kind);
    int (*disable)(uint32_t kind);
    int (*flush)(uint32_t flag);
    int (*next)(uint8_t *buffer, size_t used, void **record);
    int (*clock)(uint64_t *ns);
    uint64_t ahead_ns; // our clock minus CUPTI's, modulo 2^64
    pthread_mutex_t lock;
    struct activity_record *at;
    size_t n, most;
    uint64_t dropped;
    struct {
        const char *full; // CUPTI's
        char shown[ACTIVITY_NAME];
    } names[NAMES];
    size_t nnames;
    bool running;
};

// Global, since CUPTI's callbacks have no argument for us.
static struct activity *recording;

static const uint32_t kinds[] = {KIND_KERNEL, KIND_MEMCPY, KIND_MEMSET};
enum { KINDS = sizeof kinds / sizeof *kinds };

// ---- names

// In _Z16attention_kernelI9math_.. the name is the 16 characters after the
// number.
void activity_name(char out[ACTIVITY_NAME], const char *name)
{
    size_t n = strlen(name);
    if (!strncmp(name, "_Z", 2) && isdigit((unsigned char)name[2])) {
        char *rest;
        unsigned long length = strtoul(name + 2, &rest, 10);
        if (length <= strlen(rest)) {
            name = rest;
            n = length;
        }
    }
    n = n < ACTIVITY_NAME ? n : ACTIVITY_NAME - 1;
    for (size_t i = 0; i < n; i++) {
        bool plain = name[i] >= ' ' && name[i] <= '~';
        out[i] = plain && !strchr("\"\\", name[i]) ? name[i] : '?';
    }
    out[n] = '\0';
}

static const char *shown(struct activity *a, const char *full)
{
    size_t i = 0;
    if (!full)
        return "kernel";
    while (i < a->nnames && a->names[i].full != full)
        i++;
    if (i == NAMES)
        return "another kernel";
    if (i == a->nnames) {
        a->names[a->nnames++].full = full;
        activity_name(a->names[i].shown, full);
    }
    return a->names[i].shown;
}

// ---- the callbacks of CUPTI

static void wanted(uint8_t **buffer, size_t *bytes, size_t *records)
{
    *buffer = aligned_alloc(ALIGNED, BUFFER);
    *bytes = *buffer ? BUFFER : 0;
    *records = 0; // as many as fit
}

static const char *copy_name(const struct copy *c)
{
    static const char *const ways[] = {"copy", "copy up", "copy down"};
    return c->kind == KIND_MEMSET ? "set memory"
           : c->way <= 2          ? ways[c->way]
                                  : "copy";
}

static void take(struct activity *a, const void *record)
{
    uint32_t kind = *(const uint32_t *)record;
    struct activity_record r;
    if (kind == KIND_KERNEL) {
        const struct kernel *k = record;
        r = (struct activity_record){k->begin, k->end, 0, k->stream,
                                     shown(a, k->name)};
    } else if (kind == KIND_MEMCPY || kind == KIND_MEMSET) {
        const struct copy *c = record;
        r = (struct activity_record){c->begin, c->end, c->bytes, c->stream,
                                     copy_name(c)};
    } else {
        return;
    }
    r.begin_ns += a->ahead_ns;
    r.end_ns += a->ahead_ns;
    if (a->n < a->most)
        a->at[a->n++] = r;
    else
        a->dropped++;
}

static void full(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                 size_t used)
{
    struct activity *a = recording;
    void *record = NULL;
    (void)context;
    (void)stream;
    (void)bytes;
    if (!a) { // the recording has ended
        free(buffer);
        return;
    }
    pthread_mutex_lock(&a->lock);
    while (used && a->next(buffer, used, &record) == 0)
        take(a, record);
    pthread_mutex_unlock(&a->lock);
    free(buffer);
}

// ---- a recording

static void *find_library(void)
{
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12",
                                        "libcupti.so"};
    void *library = NULL;
    for (int i = 0; i < 3 && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    return library;
}

static int start(struct activity *a)
{
    uint64_t theirs = 0;
    a->library = find_library();
    if (!a->library ||
        library_find(a->library, "cuptiActivityRegisterCallbacks",
                     &a->callbacks) ||
        library_find(a->library, "cuptiActivityEnable", &a->enable) ||
        library_find(a->library, "cuptiActivityDisable", &a->disable) ||
        library_find(a->library, "cuptiActivityFlushAll", &a->flush) ||
        library_find(a->library, "cuptiActivityGetNextRecord", &a->next) ||
        library_find(a->library, "cuptiGetTimestamp", &a->clock))
        return fail("kernels=1: no libcupti.so, which records a GPU's kernels; "
                    "try: LD_LIBRARY_PATH, with extras/CUPTI/lib64 of CUDA");
    int rc = a->callbacks(wanted, full);
    for (int i = 0; i < KINDS && !rc; i++)
        rc = a->enable(kinds[i]);
    if (!rc)
        rc = a->clock(&theirs);
    a->ahead_ns = now_ns() - theirs;
    a->running = true;
    return rc ? fail("kernels=1: CUPTI fails with %d; try: without a profiler",
                     rc)
              : 0;
}

int activity_open(struct activity **out, size_t most)
{
    CHECK(!recording);
    struct activity *a = mem_alloc(1, sizeof *a);
    if (!a)
        return -1;
    *out = recording = a;
    pthread_mutex_init(&a->lock, NULL);
    a->most = most;
    a->at = mem_alloc(most, sizeof *a->at);
    if (a->at && !start(a))
        return 0;
    activity_close(out);
    return -1;
}

static int by_stream(const void *x, const void *y)
{
    const struct activity_record *a = x, *b = y;
    if (a->stream != b->stream)
        return a->stream < b->stream ? -1 : 1;
    return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

static void stop(struct activity *a)
{
    if (!a->running)
        return;
    for (int i = 0; i < KINDS; i++)
        a->disable(kinds[i]);
    a->flush(FLUSH_FORCED);
    a->running = false;
}

uint64_t activity_end(struct activity *a, const struct activity_record **at,
                      size_t *n)
{
    stop(a);
    qsort(a->at, a->n, sizeof *a->at, by_stream);
    *at = a->at;
    *n = a->n;
    return a->dropped;
}

void activity_close(struct activity **out)
{
    struct activity *a = *out;
    if (!a)
        return;
    stop(a);
    recording = NULL;
    pthread_mutex_destroy(&a->lock);
    mem_free(a->at);
    mem_free(a);
    *out = NULL;
}
