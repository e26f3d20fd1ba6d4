// message.c - a message is a head, the sizes of its parts, and their bytes.

#include "labs/message.h"

#include "base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

// The most bytes of a message: some vectors of 2^24 + 3 numbers.
static const uint64_t most_bytes = (uint64_t)1 << 29;

struct size {
    uint64_t bytes, way;
};

static int put(int fd, const void *p, size_t bytes)
{
    for (const char *at = p; bytes > 0;) {
        ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        at += n;
        bytes -= (size_t)n;
    }
    return 0;
}

// Receives up to `most` bytes, at least one. Returns their number; 0: the other
// side has ended.
static size_t receive(int fd, void *p, size_t most)
{
    ssize_t n;
    do
        n = recv(fd, p, most, 0);
    while (n < 0 && errno == EINTR);
    return n < 0 ? 0 : (size_t)n;
}

static int get(struct wire *w, void *p, size_t bytes)
{
    for (char *at = p; bytes > 0;) {
        size_t n = w->end - w->at;
        bool direct = n == 0 && bytes >= sizeof w->bytes;
        if (n == 0 && !direct) {
            w->at = 0;
            n = w->end = receive(w->fd, w->bytes, sizeof w->bytes);
        }
        n = direct ? receive(w->fd, at, bytes) : n < bytes ? n : bytes;
        if (n == 0)
            return -1;
        if (!direct) {
            memcpy(at, w->bytes + w->at, n);
            w->at += n;
        }
        at += n;
        bytes -= n;
    }
    return 0;
}

// Sends a message with the parts of this way. Small ones leave in one piece.
static int put_message(struct wire *w, const struct message *m,
                       const struct part *parts, unsigned way)
{
    char small[4096];
    struct size sizes[MESSAGE_PARTS];
    size_t n = m->parts, at = sizeof *m + n * sizeof *sizes, all = at;
    for (size_t i = 0; i < n; i++) {
        sizes[i] = (struct size){parts[i].bytes, parts[i].way};
        all += parts[i].way & way ? parts[i].bytes : 0;
    }
    bool is_small = all <= sizeof small;
    if (is_small) {
        memcpy(small, m, sizeof *m);
        memcpy(small + sizeof *m, sizes, n * sizeof *sizes);
    } else if (put(w->fd, m, sizeof *m) ||
               put(w->fd, sizes, n * sizeof *sizes)) {
        return -1;
    }
    for (size_t i = 0; i < n; i++) {
        if (!(parts[i].way & way) || !parts[i].bytes)
            continue;
        if (is_small)
            memcpy(small + at, parts[i].p, parts[i].bytes);
        else if (put(w->fd, parts[i].p, parts[i].bytes))
            return -1;
        at += parts[i].bytes;
    }
    return is_small ? put(w->fd, small, at) : 0;
}

int message_call(struct wire *w, int what, const struct part *parts, int n)
{
    CHECK(n >= 0 && n <= MESSAGE_PARTS);
    struct message m = {MESSAGE_CALL, what, 0, (uint64_t)n};
    return put_message(w, &m, parts, PART_IN);
}

int message_done(struct wire *w, int64_t result, const struct part *parts,
                 int n)
{
    struct message m = {MESSAGE_DONE, 0, result, (uint64_t)n};
    return put_message(w, &m, parts, PART_OUT);
}

int message_next(struct wire *w, struct message *m)
{
    return get(w, m, sizeof *m);
}

void message_free(struct part *parts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(parts[i].p);
}

static int get_sizes(struct wire *w, const struct message *m,
                     struct size *sizes)
{
    if (m->parts > MESSAGE_PARTS)
        return fail("a message of %llu parts", (unsigned long long)m->parts);
    if (get(w, sizes, m->parts * sizeof *sizes))
        return fail("a message ended early");
    return 0;
}

int message_parts(struct wire *w, const struct message *m, struct part *parts)
{
    struct size sizes[MESSAGE_PARTS];
    if (m->kind != MESSAGE_CALL || get_sizes(w, m, sizes))
        return fail("a message that is no call");
    uint64_t left = most_bytes;
    for (size_t i = 0; i < m->parts; i++) {
        bool allowed = sizes[i].bytes <= left && sizes[i].way <= PART_BOTH;
        left -= allowed ? sizes[i].bytes : 0;
        parts[i] = (struct part){.bytes = (size_t)sizes[i].bytes,
                                 .way = (unsigned)sizes[i].way};
        parts[i].p = allowed ? malloc(parts[i].bytes) : NULL;
        bool whole = parts[i].p || (allowed && !parts[i].bytes);
        if (whole && parts[i].p)
            memset(parts[i].p, 0xff, parts[i].bytes);
        if (whole && parts[i].way & PART_IN)
            whole = !get(w, parts[i].p, parts[i].bytes);
        if (whole)
            continue;
        message_free(parts, i + 1);
        return fail("a message with a part of %llu bytes",
                    (unsigned long long)sizes[i].bytes);
    }
    return 0;
}

int message_results(struct wire *w, const struct message *m,
                    const struct part *parts, int n)
{
    struct size sizes[MESSAGE_PARTS];
    if (m->kind != MESSAGE_DONE || m->parts != (uint64_t)n ||
        get_sizes(w, m, sizes))
        return fail("a message that is no answer");
    for (int i = 0; i < n; i++) {
        if (sizes[i].bytes != parts[i].bytes || sizes[i].way != parts[i].way)
            return fail("an answer with other parts");
        if (parts[i].way & PART_OUT && get(w, parts[i].p, parts[i].bytes))
            return fail("an answer that ended early");
    }
    return 0;
}
