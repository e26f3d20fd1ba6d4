// backends.c - the table of the ways of agreeing.

#include "config/backends.h"

#include "base/base.h"
#include "config/keys.h"
#include "config/value.h"

#include <string.h>

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

// What the trainer and the door of all backends read (train/, sync/sync.c).
#define OF_ALL                                                                 \
    "overlap", "staging", "bucket_mb", "first_bucket_mb", "inject",            \
        "inject_rank"

#define OF_SERVERS                                                             \
    OF_ALL, "wire", "slice_kb", "servers", "server_threads", "consistency",    \
        "backup", "update", "elastic", "priority", "transport", "iface"

enum {
    TCP = 1 << TRANSPORT_TCP,
    SHM = 1 << TRANSPORT_SHM,
    ZMQ = 1 << TRANSPORT_ZMQ,
    MPI = 1 << TRANSPORT_MPI,
};

static const struct backend rows[] = {
    {.name = "local", .keys = KEYS(OF_ALL)},
    {.name = "sps",
     .keys = KEYS(OF_SERVERS),
     .transports = ZMQ | MPI,
     .servers = true,
     .one_server = true},
    {.name = "dps",
     .keys = KEYS(OF_SERVERS),
     .transports = ZMQ | MPI,
     .servers = true},
    {.name = "allreduce", .keys = KEYS(OF_ALL, "wire", "algorithm")},
    {.name = "ring",
     .keys =
         KEYS(OF_ALL, "wire", "fusion_mb", "slice_kb", "transport", "iface"),
     .transports = TCP | SHM},
};

enum { ROWS = sizeof rows / sizeof *rows };

const struct backend *backend_row(const char *name)
{
    char names[256] = "";
    for (int i = 0; i < ROWS; i++) {
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
        strcat(strcat(names, " "), rows[i].name);
    }
    fail("sync=%s: no such backend; try:%s", name, names);
    return NULL;
}

bool backend_reads(const struct backend *b, const char *key)
{
    return value_known(key, b->keys);
}

static bool takes_transport(const struct backend *b,
                            const struct sync_settings *s)
{
    return s->transport == TRANSPORT_AUTO ||
           b->transports & 1u << (unsigned)s->transport;
}

bool backend_takes(const struct backend *b, const char *key,
                   const struct sync_settings *s)
{
    return backend_reads(b, key) &&
           (strcmp(key, "transport") || takes_transport(b, s));
}

static int check_transport(const struct backend *b, const struct run *r)
{
    const struct key *k = key_find(&run_keys, "transport");
    char list[64] = "auto";
    if (takes_transport(b, &r->settings))
        return 0;
    for (int i = 1; k->words[i]; i++)
        if (b->transports & 1u << i)
            strcat(strcat(list, ", "), k->words[i]);
    return fail("transport=%s: not one of %s; try: transport=auto",
                k->words[r->settings.transport], list);
}

// Rules of the servers: ps_server/.
int settings_check(const struct sync_settings *s)
{
    bool bsp = s->consistency.kind == CONSISTENCY_BSP;
    bool worker = s->update == UPDATER_WORKER;
    if (worker && !bsp)
        return fail("update=worker adds whole rounds; try: update=server, or "
                    "consistency=bsp");
    if (worker && (s->backup || s->elastic))
        return fail("update=worker: only servers keep the state that backup= "
                    "and elastic= need; try: update=server");
    if (s->backup && (s->elastic || !bsp))
        return fail("backup=%d requires consistency=bsp and elastic=0; try: "
                    "leave one of them out",
                    s->backup);
    if (s->elastic && s->transport == TRANSPORT_MPI) // a death ends the job
        return fail("elastic=1 does not go with transport=mpi; try: "
                    "transport=zmq");
    return 0;
}

int backend_check(const struct backend *b, const struct run *r)
{
    char buf[CONFIG_PATH];
    for (int i = 0; i < run_keys.n; i++) {
        const struct key *k = &run_keys.rows[i];
        if (k->backend && r->asked[i] && !backend_reads(b, k->name))
            return fail("%s=%s: %s has no such setting; try: leave it out",
                        k->name, key_show(k, &r->settings, buf), b->name);
    }
    if (check_transport(b, r))
        return -1;
    return b->servers ? settings_check(&r->settings) : 0;
}
