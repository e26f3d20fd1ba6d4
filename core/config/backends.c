// backends.c - the table of backends.def as plain data, and its rows by name.

#include "config/backends.h"

#include "config/value.h"

#include <string.h>

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

// OF_ANY: keys that the trainer and sync/sync.c read for every backend. OF_ALL:
// these, and the keys of gradients' buckets. "outer" has no such keys, since
// its gradients do not travel.
#define OF_ANY "staging", "inject", "mistake"
#define OF_ALL OF_ANY, "overlap", "bucket", "bucket_mb", "own_norm"

// Keys for the backends where sync/sync.c itself updates the parameters.
#define OF_UPDATED OF_ALL, "offload"

// Keys of gradients that are compressed (squeeze/). OF_ADDED: of messages that
// are only decoded and added.
#define OF_ADDED                                                               \
    "squeeze", "density", "levels", "feedback", "momentum_correction",         \
        "squeeze_after"
#define OF_SQUEEZED OF_ADDED, "scope", "squeeze_rank", "freeze"

#define OF_SERVERS                                                             \
    OF_ALL, OF_ADDED, "wire", "slice_kb", "servers", "server_threads",         \
        "consistency", "backup", "update", "elastic", "priority", "transport", \
        "iface", "freeze"

enum {
    TCP = 1 << TRANSPORT_TCP,
    SHM = 1 << TRANSPORT_SHM,
    ZMQ = 1 << TRANSPORT_ZMQ,
    MPI = 1 << TRANSPORT_MPI,
    LIBRARY = 1 << TRANSPORT_LIBRARY,
};

static const struct backend rows[] = {
#define BACKEND(word, strategy, carriers, ...) {.name = word, __VA_ARGS__},
#include "config/backends.def"
};

const char *const backend_names[] = {
#define BACKEND(word, ...) word,
#include "config/backends.def"
    NULL,
};

enum { ROWS = sizeof rows / sizeof *rows };

const struct backend *backend_at(int i)
{
    return i < ROWS ? &rows[i] : NULL;
}

const struct backend *backend_find(const char *name)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

const struct backend *backend_of_parts(void)
{
    const struct backend *b = rows;
    while (!b->parts || !b->transports)
        b++;
    return b;
}

bool backend_has_law(const struct backend *b)
{
    return b->traffic != TRAFFIC_NONE && b->traffic != TRAFFIC_OWN;
}

bool backend_is_simulated(const struct backend *b)
{
    return backend_has_law(b) && b->traffic != TRAFFIC_ROUNDS;
}

bool backend_reads(const struct backend *b, const char *key)
{
    return value_known(key, b->keys);
}

bool backend_needs_mpi(const struct backend *b, const struct sync_settings *s)
{
    return b->launch == LAUNCH_MPIRUN || s->transport == TRANSPORT_MPI ||
           s->transport == TRANSPORT_LIBRARY;
}

bool backend_takes(const struct backend *b, const char *key,
                   const struct sync_settings *s)
{
    // shards of gradients and parameters are vectors in host memory
    bool lends = backend_reads(b, "shard") && s->shard >= SHARD_GRADS;
    if (!backend_reads(b, key))
        return false;
    if (!strcmp(key, "staging"))
        return s->staging != STAGING_ALWAYS || !lends;
    return strcmp(key, "transport") || s->transport == TRANSPORT_AUTO ||
           b->transports & 1u << (unsigned)s->transport;
}
