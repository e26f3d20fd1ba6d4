// rendezvous.c - the rendezvous server as a state machine. Each worker sends it
// a piece, and it answers with all pieces.
//
// There is one exchange at a time: a worker sends its piece of exchange k only
// after the answer to exchange k-1. So the server needs one buffer of `world`
// pieces.

#include "cluster/rendezvous.h"

#include "base/base.h"

#include <endian.h>
#include <string.h>

enum { MAGIC = 0x4248534c, VERSION = 2 }; // "LSHB"
enum { REMEMBERED = 32 << 20 }; // bytes of past exchanges, for replay()
// Error replies to bad messages. The senders may never read them. So there are
// at most this many, and later at most one a tick.
enum { MAX_REFUSALS = 4096 };

static const uint64_t SAY_NS = 5000000000; // from one log line to the next

struct member {
    struct message_peer peer;
    bool known; // has sent a message
    bool lost;  // has died, in an elastic job
    bool left;  // has said goodbye
    bool given; // has given its piece of the present exchange
    uint64_t heard_ns;
};

struct past {
    size_t bytes; // of one piece
    uint8_t *all;
};

struct rendezvous {
    rendezvous_send *send;
    void *ctx;
    bool elastic, begun, trains;
    int refusals;
    int world; // 0 before the first message
    struct member *members;
    uint64_t exchange; // number of the present one
    size_t bytes;      // of one of its pieces
    uint8_t *all;      // world pieces; NULL before the first of an exchange
    uint64_t began_ns, said_ns, told_ns, timeout_ns;
    struct past *past; // of exchanges before this one
    size_t past_capacity, past_bytes;
};

// ---- messages

// A head as it travels, little-endian.
struct wire {
    uint32_t magic, version_kind, rank, world, timeout_ms, unused;
    uint64_t exchange, bytes;
};
_Static_assert(sizeof(struct wire) == RENDEZVOUS_HEAD, "no padding");

void rendezvous_head_put(uint8_t out[RENDEZVOUS_HEAD],
                         const struct rendezvous_head *h)
{
    const struct wire w = {
        .magic = htole32(MAGIC),
        .version_kind = htole32(VERSION << 16 | h->kind),
        .rank = htole32(h->rank),
        .world = htole32(h->world),
        .timeout_ms = htole32(h->timeout_ms),
        .exchange = htole64(h->exchange),
        .bytes = htole64(h->bytes),
    };
    memcpy(out, &w, sizeof w);
}

bool rendezvous_is_head(const void *frame, size_t n)
{
    const uint32_t magic = htole32(MAGIC);
    return n >= sizeof magic && !memcmp(frame, &magic, sizeof magic);
}

int rendezvous_head_get(struct rendezvous_head *h, const void *frame, size_t n)
{
    struct wire w;
    if (n != RENDEZVOUS_HEAD || !rendezvous_is_head(frame, n))
        return fail("rendezvous: not a message of ours (%zu bytes)", n);
    memcpy(&w, frame, sizeof w);
    uint32_t kind = le32toh(w.version_kind);
    if (kind >> 16 != VERSION)
        return fail(
            "rendezvous: the other side has version %u of the protocol, this "
            "side %d; try: the same build everywhere",
            kind >> 16, VERSION);
    struct rendezvous_head m = {
        .kind = kind & 0xffff,
        .rank = le32toh(w.rank),
        .world = le32toh(w.world),
        .timeout_ms = le32toh(w.timeout_ms),
        .exchange = le64toh(w.exchange),
        .bytes = le64toh(w.bytes),
    };
    if (m.kind < RENDEZVOUS_GIVE || m.kind >= RENDEZVOUS_KINDS || m.world < 1 ||
        m.world > RENDEZVOUS_MAX_WORLD || m.rank >= m.world ||
        m.timeout_ms == 0 || m.timeout_ms > 100000000 ||
        m.bytes > (uint64_t)RENDEZVOUS_MAX_BYTES * m.world)
        return fail(
            "rendezvous: a message with impossible numbers: kind %u, rank %u "
            "of %u, %llu bytes",
            m.kind, m.rank, m.world, (unsigned long long)m.bytes);
    *h = m;
    return 0;
}

// Returns whether the receiver is known to be gone.
static bool reply(struct rendezvous *h, const struct message_peer *to,
                  enum rendezvous_kind kind, uint64_t exchange,
                  const void *data, size_t bytes)
{
    uint8_t head[RENDEZVOUS_HEAD];
    struct rendezvous_head m = {
        .kind = (uint32_t)kind,
        .world = h->world ? (uint32_t)h->world : 1,
        .timeout_ms = 1,
        .exchange = exchange,
        .bytes = bytes,
    };
    rendezvous_head_put(head, &m);
    return h->send(h->ctx, to, head, data, bytes);
}

static void reply_error(struct rendezvous *h, const struct message_peer *to,
                        const char *text)
{
    reply(h, to, RENDEZVOUS_ERROR, h->exchange, text, strlen(text));
}

// ---- exchanges

int rendezvous_open(struct rendezvous **out, rendezvous_send *send, void *ctx)
{
    struct rendezvous *h = mem_alloc(1, sizeof *h);
    if (!h)
        return -1;
    h->send = send;
    h->ctx = ctx;
    *out = h;
    return 0;
}

void rendezvous_close(struct rendezvous **h)
{
    if (!*h)
        return;
    for (uint64_t k = 0; k < (*h)->exchange && k < (*h)->past_capacity; k++)
        mem_free((*h)->past[k].all);
    mem_free((*h)->past);
    mem_free((*h)->all);
    mem_free((*h)->members);
    mem_free(*h);
    *h = NULL;
}

void rendezvous_set_elastic(struct rendezvous *h, bool elastic)
{
    h->elastic = elastic;
}

void rendezvous_begun(struct rendezvous *h)
{
    h->begun = true;
}

// Keeps the pieces of the finished exchange, up to REMEMBERED bytes in all. It
// does so in every job, since the server learns only after the first exchanges
// whether a job is elastic.
static void remember(struct rendezvous *h)
{
    size_t bytes = h->bytes * (size_t)h->world;
    if (h->exchange >= h->past_capacity) {
        size_t capacity = h->past_capacity ? 2 * h->past_capacity : 64;
        struct past *more = mem_alloc(capacity, sizeof *more);
        CHECK(more != NULL);
        if (h->past_capacity)
            memcpy(more, h->past, h->past_capacity * sizeof *more);
        mem_free(h->past);
        h->past = more;
        h->past_capacity = capacity;
    }
    bool keep = h->past_bytes + bytes <= REMEMBERED;
    h->past[h->exchange] = (struct past){h->bytes, keep ? h->all : NULL};
    if (keep)
        h->past_bytes += bytes;
    else
        mem_free(h->all);
    h->all = NULL;
}

static void finish(struct rendezvous *h)
{
    for (int r = 0; r < h->world; r++) {
        struct member *m = &h->members[r];
        if (m->given)
            reply(h, &m->peer, RENDEZVOUS_ALL, h->exchange, h->all,
                  h->bytes * (size_t)h->world);
        m->given = false;
    }
    remember(h);
    h->exchange++;
}

// Whether the present exchange waits for the piece of a rank.
static bool is_missing(const struct rendezvous *h, int r)
{
    const struct member *m = &h->members[r];
    return !m->given && (!m->lost || (r == 0 && !h->begun));
}

static void finish_if_all(struct rendezvous *h)
{
    for (int r = 0; r < h->world; r++)
        if (is_missing(h, r))
            return;
    if (h->all)
        finish(h);
}

static int begin(struct rendezvous *h, size_t bytes)
{
    h->bytes = bytes;
    h->all = mem_alloc((size_t)h->world, bytes ? bytes : 1);
    h->began_ns = h->said_ns = h->told_ns = now_ns();
    return h->all ? 0 : -1;
}

// Answers with a past exchange: the worker came back, or never got the answer.
static int replay(struct rendezvous *h, const struct message_peer *to,
                  const struct rendezvous_head *m)
{
    const struct past *p = &h->past[m->exchange];
    if (!p->all)
        return fail(
            "rendezvous: exchange %llu is over and forgotten, rank %u came "
            "too late",
            (unsigned long long)m->exchange, m->rank);
    if (p->bytes != m->bytes)
        return fail("rendezvous: rank %u gives %llu bytes, the others gave %zu",
                    m->rank, (unsigned long long)m->bytes, p->bytes);
    reply(h, to, RENDEZVOUS_ALL, m->exchange, p->all,
          p->bytes * (size_t)h->world);
    return 0;
}

// Whether a worker has died before the workers met, so that another process may
// have its rank. Only a message shows that a peer is gone; WAIT does no harm to
// one that lives. A stranger with the secret cannot ask for more than some.
static bool is_replaced(struct rendezvous *h, const struct member *who)
{
    return h->exchange == 0 && h->refusals < MAX_REFUSALS &&
           reply(h, &who->peer, RENDEZVOUS_WAIT, h->exchange, "", 0);
}

static int give(struct rendezvous *h, const struct message_peer *from,
                const struct rendezvous_head *m, const void *data, size_t bytes)
{
    struct member *who = &h->members[m->rank];
    bool same = who->known && message_same_peer(&who->peer, from);
    if (who->known && !same && !h->elastic && !is_replaced(h, who))
        return fail(
            "rendezvous: there are two workers of rank %u; try: a rank= of "
            "its own for each",
            m->rank);
    if (!same) // it came again before its death was noticed
        who->given = false;
    who->peer = *from;
    who->known = true;
    if (m->exchange < h->exchange)
        return replay(h, from, m);
    who->lost = who->left = false;
    if (m->exchange > h->exchange || who->given || bytes > RENDEZVOUS_MAX_BYTES)
        return fail("rendezvous: rank %u gives %zu bytes of exchange %llu, the "
                    "present one is %llu",
                    m->rank, bytes, (unsigned long long)m->exchange,
                    (unsigned long long)h->exchange);
    if (!h->all && begin(h, bytes))
        return -1;
    if (bytes != h->bytes)
        return fail(
            "rendezvous: rank %u gives %zu bytes, the others %zu; try: the "
            "same build everywhere",
            m->rank, bytes, h->bytes);
    memcpy(h->all + m->rank * h->bytes, data, bytes);
    who->given = true;
    finish_if_all(h);
    return 0;
}

static int take(struct rendezvous *h, const struct message_peer *from,
                const void *head, size_t head_bytes, const void *data,
                size_t bytes)
{
    struct rendezvous_head m = {0};
    if (rendezvous_head_get(&m, head, head_bytes))
        return -1;
    if (m.bytes != bytes)
        return fail("rendezvous: rank %u sent %zu bytes but announced %llu",
                    m.rank, bytes, (unsigned long long)m.bytes);
    if (!h->world) {
        h->members = mem_alloc(m.world, sizeof *h->members);
        if (!h->members)
            return -1;
        h->world = (int)m.world;
    }
    if (m.world != (uint32_t)h->world)
        return fail("rendezvous: rank %u has world=%u, the others %d", m.rank,
                    m.world, h->world);
    h->timeout_ns = (uint64_t)m.timeout_ms * 1000000u;
    if (m.kind == RENDEZVOUS_GIVE)
        return give(h, from, &m, data, bytes);
    if (m.kind != RENDEZVOUS_BYE)
        return fail("rendezvous: rank %u sent kind %u", m.rank, m.kind);
    h->members[m.rank].left = true;
    reply(h, from, RENDEZVOUS_BYE, m.exchange, "", 0);
    if (h->elastic)
        rendezvous_lost(h, (int)m.rank);
    return 0;
}

int rendezvous_receive(struct rendezvous *h, const struct message_peer *from,
                       const void *head, size_t head_bytes, const void *data,
                       size_t bytes)
{
    if (!take(h, from, head, head_bytes, data, bytes))
        return 0;
    if (h->refusals < MAX_REFUSALS) { // see MAX_REFUSALS
        h->refusals++;
        reply_error(h, from, fail_message());
    }
    return -1;
}

// Writes "rank 1, rank 3": the ranks that have not given their piece. Returns
// how many there are.
static int list_missing(const struct rendezvous *h, char *out, size_t size)
{
    int missing = 0;
    size_t at = 0;
    out[0] = '\0';
    for (int r = 0; r < h->world; r++) {
        const struct member *m = &h->members[r];
        if (!is_missing(h, r))
            continue;
        missing++;
        int n = snprintf(out + at, size - at, "%srank %d%s", at ? ", " : "", r,
                         m->left ? " (left)" : "");
        if (n > 0 && (size_t)n < size - at)
            at += (size_t)n;
    }
    return missing;
}

void rendezvous_abort(struct rendezvous *h, const char *why)
{
    for (int r = 0; r < h->world; r++) {
        if (h->members[r].given)
            reply_error(h, &h->members[r].peer, why);
        h->members[r].given = false;
    }
    mem_free(h->all);
    h->all = NULL;
}

void rendezvous_heard(struct rendezvous *h, int rank)
{
    if (rank < h->world)
        h->members[rank].heard_ns = now_ns();
}

void rendezvous_back(struct rendezvous *h, int rank)
{
    h->trains = true;
    if (rank < h->world)
        h->members[rank].lost = false;
}

// Since when nothing has been heard of the ranks that are missing.
static uint64_t silent_since(const struct rendezvous *h)
{
    uint64_t since = h->began_ns;
    for (int r = 0; r < h->world; r++) {
        const struct member *m = &h->members[r];
        if (is_missing(h, r) && m->heard_ns > since)
            since = m->heard_ns;
    }
    return since;
}

// Tells those that have given their piece to wait on.
static void tell_to_wait(struct rendezvous *h, uint64_t now)
{
    if (now - h->told_ns < h->timeout_ns / 4)
        return;
    h->told_ns = now;
    for (int r = 0; r < h->world; r++)
        if (h->members[r].given)
            reply(h, &h->members[r].peer, RENDEZVOUS_WAIT, h->exchange, "", 0);
}

// An elastic job that has begun goes on without those that are silent. They
// may come later: to a process that was stopped, the kernel sends again only
// after a wait that doubles. Before the first gradient worker 0 may still load
// the rest of the state, or rewind the folder. Returns whether it does.
static bool leave_out_silent(struct rendezvous *h)
{
    if (!h->elastic || !h->begun || (is_missing(h, 0) && !h->trains))
        return false;
    for (int r = 0; r < h->world; r++)
        h->members[r].lost |= !h->members[r].given;
    finish_if_all(h);
    return true;
}

void rendezvous_tick(struct rendezvous *h)
{
    h->refusals -= h->refusals > 0;
    if (!h->all)
        return;
    char who[256], why[384];
    uint64_t now = now_ns(), since = silent_since(h), waited = now - since;
    int missing = list_missing(h, who, sizeof who);
    double seconds = (double)waited * 1e-9, most = (double)h->timeout_ns * 1e-9;
    // a little early, so that this message comes before the workers' own error
    if (waited >= h->timeout_ns / 10 * 9) {
        snprintf(why, sizeof why,
                 "%d of %d workers did not come within %.3g s: %s", missing,
                 h->world, most, who);
        if (leave_out_silent(h))
            log_line("%s; going on without", why);
        else
            rendezvous_abort(h, why);
        return;
    }
    if (since > h->began_ns)
        tell_to_wait(h, now);
    if (waited >= SAY_NS && now - h->said_ns >= SAY_NS) {
        log_line("waiting for %d of %d workers (%s), %.0f s of %.3g s", missing,
                 h->world, who, seconds, most);
        h->said_ns = now;
    }
}

void rendezvous_lost(struct rendezvous *h, int rank)
{
    if (rank >= h->world)
        return;
    char why[64];
    struct member *m = &h->members[rank];
    if (h->elastic) {
        m->lost = true;
        m->given = false;
        finish_if_all(h);
    } else if (h->all && !m->given) {
        snprintf(why, sizeof why, "rank %d is gone", rank);
        rendezvous_abort(h, why);
    }
}
