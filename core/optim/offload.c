// offload.c - reads pieces of the optimiser's state ahead, and writes them
// behind.
//
// One thread serves the requests in their order. So a piece that is asked for
// after it was given to be written has what was written. The file bypasses the
// system's page cache (O_DIRECT). Where it cannot, each piece is pushed out of
// the cache at once: otherwise the cache would fill a cgroup's limit.

#include "optim/offload.h"

#include "base/base.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BUFFERS = 3,
    REQUESTS = 8,     // at most two for each buffer wait
    PAGE = 4096,      // O_DIRECT's alignment
    PIECES = 16,      // of a small state
    SMALLEST = 4096,  // elements of a piece
    LARGEST = 1 << 20 // 4 MiB of each slot
};

struct request {
    int buffer;
    size_t piece;
    bool write;
};

struct buffer {
    float *at; // the slots, one after the other
    bool holds, changed;
    size_t piece;
    uint64_t ready; // the last request of this buffer
};

struct offload {
    char path[2048];
    int fd;
    int slots;
    size_t pieces, length; // elements of a slot's piece
    void *memory;
    struct buffer buffers[BUFFERS];
    int current; // the buffer that was taken last; -1: none
    bool threaded;
    pthread_t thread;
    pthread_mutex_t lock; // of what follows
    pthread_cond_t change;
    struct request requests[REQUESTS];
    uint64_t asked, done; // requests
    int error;            // errno of a request; 0: none
    bool error_in_write, ends;
};

static size_t piece_length(size_t n)
{
    size_t share = (n + PIECES - 1) / PIECES;
    size_t whole = (share + SMALLEST - 1) / SMALLEST * SMALLEST;
    return whole < SMALLEST ? SMALLEST : whole > LARGEST ? LARGEST : whole;
}

static size_t piece_bytes(int slots, size_t length)
{
    return (size_t)slots * length * sizeof(float);
}

size_t offload_memory(int slots, size_t n)
{
    return BUFFERS * piece_bytes(slots, piece_length(n));
}

// ---- the thread

// Takes a range that was read or written out of the page cache.
static int drop_cached(int fd, off_t off, off_t bytes, bool write)
{
    const unsigned all = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                         SYNC_FILE_RANGE_WAIT_AFTER;
    if (write && sync_file_range(fd, off, bytes, all))
        return errno;
    posix_fadvise(fd, off, bytes, POSIX_FADV_DONTNEED);
    return 0;
}

// Returns 0 or an errno.
static int serve(const struct offload *o, const struct request *r)
{
    size_t bytes = piece_bytes(o->slots, o->length), at = 0;
    off_t off = (off_t)(r->piece * bytes);
    char *data = (char *)o->buffers[r->buffer].at;
    int flags = fcntl(o->fd, F_GETFL);
    while (at < bytes) {
        ssize_t got =
            r->write ? pwrite(o->fd, data + at, bytes - at, off + (off_t)at)
                     : pread(o->fd, data + at, bytes - at, off + (off_t)at);
        if (got > 0)
            at += (size_t)got;
        else if (got == 0)
            return EIO;
        else if (errno == EINVAL && flags & O_DIRECT)
            fcntl(o->fd, F_SETFL, flags &= ~O_DIRECT);
        else if (errno != EINTR)
            return errno;
    }
    return flags & O_DIRECT ? 0
                            : drop_cached(o->fd, off, (off_t)bytes, r->write);
}

static void *serve_all(void *ctx)
{
    struct offload *o = ctx;
    pthread_mutex_lock(&o->lock);
    while (!o->ends) {
        if (o->done == o->asked) {
            pthread_cond_wait(&o->change, &o->lock);
            continue;
        }
        struct request r = o->requests[o->done % REQUESTS];
        bool failed = o->error;
        pthread_mutex_unlock(&o->lock);
        int error = failed ? 0 : serve(o, &r);
        pthread_mutex_lock(&o->lock);
        if (error) {
            o->error = error;
            o->error_in_write = r.write;
        }
        o->done++;
        pthread_cond_broadcast(&o->change);
    }
    pthread_mutex_unlock(&o->lock);
    return NULL;
}

// ---- open and close

// Makes a file without a name, and takes its disk space, so that a full disk
// ends the job before it has trained.
static int make_file(struct offload *o, const char *folder)
{
    off_t bytes = (off_t)(o->pieces * piece_bytes(o->slots, o->length));
    char text[32];
    if (file_make_folder(folder) < 0 ||
        text_into(o->path, sizeof o->path, "%s/offload-XXXXXX", folder))
        return -1;
    o->fd = mkostemp(o->path, O_CLOEXEC);
    if (o->fd < 0)
        return fail("offload=disk: %s: %s", o->path, strerror(errno));
    unlink(o->path);
    int rc = posix_fallocate(o->fd, 0, bytes);
    if (rc == EOPNOTSUPP || rc == EINVAL)
        rc = ftruncate(o->fd, bytes) ? errno : 0;
    if (rc)
        return fail("offload=disk: %s of state in %s: %s",
                    mem_text(text, (size_t)bytes), folder, strerror(rc));
    fcntl(o->fd, F_SETFL, fcntl(o->fd, F_GETFL) | O_DIRECT); // it may refuse
    return 0;
}

static int make_buffers(struct offload *o)
{
    size_t bytes = piece_bytes(o->slots, o->length);
    o->memory = mem_alloc(BUFFERS * bytes + PAGE, 1);
    if (!o->memory)
        return -1;
    char *first = (char *)(((uintptr_t)o->memory + PAGE - 1) / PAGE * PAGE);
    for (size_t i = 0; i < BUFFERS; i++)
        o->buffers[i].at = (float *)(first + i * bytes);
    return 0;
}

struct offload *offload_open(const char *folder, int slots, size_t n)
{
    struct offload *o = mem_alloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->fd = o->current = -1;
    o->slots = slots;
    o->length = piece_length(n);
    o->pieces = (n + o->length - 1) / o->length;
    CHECK(!pthread_mutex_init(&o->lock, NULL) &&
          !pthread_cond_init(&o->change, NULL));
    bool ready = !make_file(o, folder) && !make_buffers(o);
    o->threaded = ready && !pthread_create(&o->thread, NULL, serve_all, o);
    if (ready && !o->threaded)
        fail("offload=disk: no thread");
    if (!o->threaded)
        offload_close(&o);
    return o;
}

void offload_close(struct offload **out)
{
    struct offload *o = *out;
    if (!o)
        return;
    pthread_mutex_lock(&o->lock);
    o->ends = true;
    pthread_cond_broadcast(&o->change);
    pthread_mutex_unlock(&o->lock);
    if (o->threaded)
        pthread_join(o->thread, NULL);
    if (o->fd >= 0)
        close(o->fd);
    pthread_cond_destroy(&o->change);
    pthread_mutex_destroy(&o->lock);
    mem_free(o->memory);
    mem_free(o);
    *out = NULL;
}

// ---- take

static void request(struct offload *o, int buffer, bool write)
{
    struct buffer *b = &o->buffers[buffer];
    pthread_mutex_lock(&o->lock);
    CHECK(o->asked - o->done < REQUESTS);
    o->requests[o->asked++ % REQUESTS] =
        (struct request){buffer, b->piece, write};
    b->ready = o->asked;
    pthread_cond_broadcast(&o->change);
    pthread_mutex_unlock(&o->lock);
}

// Waits until a buffer's piece is there and no longer written. 0, or -1 after
// fail().
static int await(struct offload *o, const struct buffer *b)
{
    pthread_mutex_lock(&o->lock);
    while (o->done < b->ready && !o->error)
        pthread_cond_wait(&o->change, &o->lock);
    int error = o->error;
    pthread_mutex_unlock(&o->lock);
    return error ? fail("offload=disk: cannot %s %s: %s",
                        o->error_in_write ? "write" : "read", o->path,
                        strerror(error))
                 : 0;
}

// Returns the buffer that has the piece, or will have it. It is none of those
// that are kept.
static int find(struct offload *o, size_t piece, int keep, int keep_too)
{
    int at = 0;
    for (int i = 0; i < BUFFERS; i++)
        if (o->buffers[i].holds && o->buffers[i].piece == piece)
            return i;
    while (at == keep || at == keep_too)
        at++;
    o->buffers[at].holds = true;
    o->buffers[at].piece = piece;
    request(o, at, false);
    return at;
}

// The piece that is likely to be taken after this one: a caller that walks back
// goes on to do so, and one that has reached an end begins at the other.
static size_t next_piece(const struct offload *o, size_t piece)
{
    bool back = o->current >= 0 && o->buffers[o->current].piece == piece + 1;
    return (piece + (back ? o->pieces - 1 : 1)) % o->pieces;
}

// Makes the piece current, asks for the next, and has the one that was current
// before written.
static int turn_to(struct offload *o, size_t piece)
{
    int before = o->current;
    size_t next = next_piece(o, piece);
    o->current = find(o, piece, before, -1);
    find(o, next, before, o->current);
    if (before >= 0 && o->buffers[before].changed) {
        o->buffers[before].changed = false;
        request(o, before, true);
    }
    return await(o, &o->buffers[o->current]);
}

int offload_take(struct offload *o, float *const *slots, size_t at,
                 bool changes, size_t *n, float **own)
{
    if (!o) {
        optim_slots_at(slots, at, own);
        return 0;
    }
    size_t piece = at / o->length, in = at % o->length;
    bool here = o->current >= 0 && o->buffers[o->current].piece == piece;
    if (!here && turn_to(o, piece))
        return -1;
    struct buffer *b = &o->buffers[o->current];
    b->changed |= changes;
    for (int i = 0; i < OPTIM_MAX_SLOTS; i++)
        own[i] = i < o->slots ? b->at + (size_t)i * o->length + in : NULL;
    *n = *n < o->length - in ? *n : o->length - in;
    return 0;
}
