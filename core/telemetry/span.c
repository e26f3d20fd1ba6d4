// span.c - keeps each lane as a ring of records with one writer, and running
// totals.
//
// The writer never waits. A reader of the totals reads a sequence number before
// and after, and tries again if the writer changed it in between. A reader of
// the ring copies a slot, and leaves the copy out if the writer has come around
// to that slot meanwhile.

#include "telemetry/span.h"

#include "base/base.h"
#include "telemetry/range.h"

#include <stdatomic.h>
#include <string.h>

enum { WORDS = sizeof(struct span_record) / sizeof(uint64_t) };

_Static_assert(sizeof(struct span_record) == WORDS * sizeof(uint64_t),
               "records are copied in words");

struct slot {
    _Atomic uint64_t words[WORDS]; // of a struct span_record
};

struct open_span {
    uint64_t begin_ns;
    int32_t index;
    enum span_kind kind;
};

struct span_lane {
    char name[SPAN_NAME];
    struct slot *ring;
    size_t size; // a power of two
    _Atomic uint64_t head;
    struct open_span stack[SPAN_DEPTH];
    int depth;        // of open spans; those beyond SPAN_DEPTH are not recorded
    uint64_t carried; // bytes of the next span to be recorded

    _Atomic uint64_t sequence;          // odd while the writer changes these:
    _Atomic uint64_t spent[SPAN_KINDS]; // ns in each kind, before `since`
    _Atomic uint64_t since;             // when the present kind began
    _Atomic uint64_t now;               // the present kind
};

struct spans {
    size_t records;
    _Atomic int nlanes;
    _Atomic uint64_t zero_ns, began_ns;
    uint64_t before[SPAN_KINDS]; // totals of the first lane at began_ns
    struct span_lane lanes[SPAN_LANES];
};

int spans_open(struct spans **out, size_t records)
{
    struct spans *s = mem_alloc(1, sizeof *s);
    if (!s)
        return -1;
    for (s->records = records ? 32 : 0; s->records < records; s->records *= 2)
        ;
    if (!spans_lane(s, "compute")) {
        mem_free(s);
        return -1;
    }
    *out = s;
    return 0;
}

void spans_close(struct spans **s)
{
    if (!*s)
        return;
    for (int i = 0; i < (*s)->nlanes; i++)
        mem_free((*s)->lanes[i].ring);
    mem_free(*s);
    *s = NULL;
}

struct span_lane *spans_lane(struct spans *s, const char *name)
{
    if (!s || s->nlanes == SPAN_LANES || (s->nlanes && !s->records))
        return NULL;
    struct span_lane *l = &s->lanes[s->nlanes];
    if (s->records && !(l->ring = mem_alloc(s->records, sizeof *l->ring)))
        return NULL;
    l->size = s->records;
    snprintf(l->name, sizeof l->name, "%s", name);
    atomic_store(&l->since, now_ns());
    atomic_store_explicit(&s->nlanes, s->nlanes + 1, memory_order_release);
    return l;
}

struct span_lane *spans_compute(struct spans *s)
{
    return s ? &s->lanes[0] : NULL;
}

// Only the lane's writer changes these values, so it may read them without
// ordering.
static uint64_t mine(const _Atomic uint64_t *v)
{
    return atomic_load_explicit(v, memory_order_relaxed);
}

static void put(_Atomic uint64_t *v, uint64_t x)
{
    atomic_store_explicit(v, x, memory_order_release);
}

// A reader that sees what put() wrote also sees everything before it.
static uint64_t get(const _Atomic uint64_t *v)
{
    return atomic_load_explicit(v, memory_order_acquire);
}

// The odd number is put before what changes, the even one after it.
// span_totals() gets them in the opposite order, so what it gets in between is
// from one change.
//
// Sets the lane's kind to `kind` from time `at` on. The time before `at` counts
// for the lane's previous kind, except `moved` ns, which count for `to`.
static void change(struct span_lane *l, uint64_t at, enum span_kind kind,
                   enum span_kind to, uint64_t moved)
{
    uint64_t before = mine(&l->now);
    put(&l->sequence, mine(&l->sequence) + 1);
    put(&l->spent[before],
        mine(&l->spent[before]) + at - mine(&l->since) - moved);
    put(&l->spent[to], mine(&l->spent[to]) + moved);
    put(&l->now, kind);
    put(&l->since, at);
    put(&l->sequence, mine(&l->sequence) + 1);
}

// span_each() gets the head first, so that the record is whole, and once more
// after the words: if one of them is a later record's, so is this head.
static void push(struct span_lane *l, const struct span_record *r)
{
    uint64_t head = mine(&l->head), words[WORDS];
    if (!l->size)
        return;
    struct slot *slot = &l->ring[head & (l->size - 1)];
    memcpy(words, r, sizeof words);
    for (int i = 0; i < WORDS; i++)
        put(&slot->words[i], words[i]);
    put(&l->head, head + 1);
}

static enum span_kind innermost(const struct span_lane *l)
{
    return l->depth ? l->stack[l->depth - 1].kind : SPAN_OTHER;
}

void span_carries(struct span_lane *l, uint64_t bytes)
{
    if (l)
        l->carried = bytes;
}

// Records a span of the present depth.
static void push_span(struct span_lane *l, enum span_kind kind, int index,
                      uint64_t begin_ns, uint64_t end_ns)
{
    struct span_record r = {.begin_ns = begin_ns,
                            .end_ns = end_ns,
                            .value = (double)l->carried,
                            .index = index,
                            .depth = (uint16_t)l->depth,
                            .kind = (uint8_t)kind};
    l->carried = 0;
    push(l, &r);
}

void span_begin(struct span_lane *l, enum span_kind kind, int index)
{
    if (!l || l->depth++ >= SPAN_DEPTH)
        return;
    uint64_t now = now_ns();
    l->stack[l->depth - 1] = (struct open_span){now, index, kind};
    change(l, now, kind, kind, 0);
    range_begin((int)kind, span_kind_name(kind), index);
}

uint64_t span_end(struct span_lane *l)
{
    if (!l)
        return 0;
    CHECK(l->depth > 0);
    if (l->depth-- > SPAN_DEPTH)
        return 0;
    range_end();
    const struct open_span *o = &l->stack[l->depth];
    uint64_t now = now_ns();
    change(l, now, innermost(l), innermost(l), 0);
    push_span(l, o->kind, o->index, o->begin_ns, now);
    return now - o->begin_ns;
}

void span_add(struct span_lane *l, enum span_kind kind, int index,
              uint64_t begin_ns, uint64_t end_ns)
{
    if (!l || l->depth >= SPAN_DEPTH)
        return;
    CHECK(begin_ns <= end_ns);
    uint64_t now = now_ns();
    change(l, now > end_ns ? now : end_ns, innermost(l), kind,
           end_ns - begin_ns);
    push_span(l, kind, index, begin_ns, end_ns);
}

void span_count(struct span_lane *l, enum span_counter counter, double value)
{
    if (!l)
        return;
    uint64_t now = now_ns();
    struct span_record r = {.begin_ns = now,
                            .end_ns = now,
                            .value = value,
                            .index = -1,
                            .is_counter = true,
                            .kind = (uint8_t)counter};
    push(l, &r);
}

const char *span_kind_name(enum span_kind kind)
{
    static const char *const names[SPAN_KINDS] = {
        "other",    "step",   "data",    "forward", "backward", "ready",
        "wait",     "send",   "receive", "add",     "update",   "checkpoint",
        "evaluate", "slowed", "gather",  "bubble",  "join",     "compress"};
    return names[kind];
}

const char *span_counter_name(enum span_counter counter)
{
    static const char *const names[SPAN_COUNTERS] = {"loss", "lag", "bytes",
                                                     "restarts"};
    return names[counter];
}

int spans_nlanes(const struct spans *s)
{
    return s ? atomic_load_explicit(&s->nlanes, memory_order_acquire) : 0;
}

const struct span_lane *spans_at(const struct spans *s, int lane)
{
    return &s->lanes[lane];
}

const char *span_lane_name(const struct span_lane *l)
{
    return l->name;
}

void span_totals(const struct span_lane *l, uint64_t out[SPAN_KINDS])
{
    uint64_t before;
    do {
        before = get(&l->sequence);
        for (int k = 0; k < SPAN_KINDS; k++)
            out[k] = get(&l->spent[k]);
        uint64_t kind = get(&l->now), since = get(&l->since), now = now_ns();
        out[kind] += now > since ? now - since : 0;
    } while (before % 2 || before != get(&l->sequence));
}

size_t span_most(const struct span_lane *l)
{
    return l->size;
}

uint64_t span_each(const struct span_lane *l, span_visit *fn, void *ctx)
{
    uint64_t head = get(&l->head), kept = l->size - 1;
    uint64_t first = head > kept ? head - kept : 0;
    for (uint64_t i = first; i < head; i++) {
        const struct slot *slot = &l->ring[i & (l->size - 1)];
        uint64_t words[WORDS];
        struct span_record r;
        for (int k = 0; k < WORDS; k++)
            words[k] = get(&slot->words[k]);
        memcpy(&r, words, sizeof r);
        if (get(&l->head) - i <= kept)
            fn(ctx, &r);
        else if (i == first)
            first++;
    }
    return first;
}

void spans_set_zero(struct spans *s, uint64_t zero_ns)
{
    if (!s)
        return;
    span_totals(&s->lanes[0], s->before);
    atomic_store(&s->began_ns, now_ns());
    atomic_store(&s->zero_ns, zero_ns);
}

uint64_t spans_zero(const struct spans *s)
{
    return s ? atomic_load(&s->zero_ns) : 0;
}

uint64_t spans_began(const struct spans *s)
{
    return s ? atomic_load(&s->began_ns) : 0;
}

void spans_since_began(const struct spans *s, uint64_t out[SPAN_KINDS])
{
    span_totals(&s->lanes[0], out);
    for (int k = 0; k < SPAN_KINDS; k++)
        out[k] -= s->before[k];
}
