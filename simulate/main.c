// main.c - `simulate_job`: one exchange on all simulated ranks.
//
//     smpirun .. simulate_job sync=ring n=124475904 slice_kb=256
//     smpirun .. simulate_job sync=ring n=.. train layers=.. squeeze=topk
//     smpirun .. simulate_job op=0 algorithm=1 n=1250000   textbook/schedule.h
//     smpirun .. simulate_job mesh=dp2,pp2 ..              simulate/mesh_step.c
//
// Behind the word "train" are settings of train, for compressed gradients.
// Prints one line "@seconds=S". S is simulated time from a common start until
// the last worker has finished. `lockstep simulate` starts this program.

#include "simulate/exchange.h"
#include "textbook/schedule.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/config.h"
#include "config/keys.h"

#include <limits.h>
#include <string.h>

#define AT(member) offsetof(struct exchange, member), false

static const struct key rows[] = {
    {NULL, "sync", NULL, KEY_CHOICE, AT(backend), .words = backend_names},
    {NULL, "workers", "2", KEY_INT, AT(world), .min = 2, .max = 1 << 16},
    {NULL, "n", "1", KEY_INT64, AT(n), .min = 1, .max = INT_MAX},
    {NULL, "slice_kb", "0", KEY_INT, AT(slice_kb), .min = 0, .max = 1 << 20},
    {NULL, "payload", "0", KEY_INT, AT(payload), .min = 0, .max = 1},
    {NULL, "worker_updates", "0", KEY_INT, AT(worker_updates), .min = 0,
     .max = 1},
    {NULL, "op", "-1", KEY_INT, AT(op), .min = -1, .max = SCHEDULE_OPS - 1},
    {NULL, "algorithm", "0", KEY_INT, AT(algorithm), .min = 0,
     .max = SCHEDULE_ALGORITHMS - 1},
    {NULL, "piece", "1", KEY_INT64, AT(piece), .min = 1, .max = INT_MAX},
    {NULL, "bucket_mb", "0", KEY_NUMBER, AT(bucket_mb), .min = 0, .max = 1e6},
};

static const struct key_table keys = {rows, sizeof rows / sizeof *rows,
                                      "simulate/main.c"};

static int (*const exchanges[])(const struct exchange *e, double *seconds) = {
    [TRAFFIC_RING] = exchange_ring,
    [TRAFFIC_LIBRARY] = exchange_allreduce,
    [TRAFFIC_SERVERS] = exchange_servers,
    [TRAFFIC_OWNER] = exchange_owner,
};

// Sets what the words behind the first one say.
static int read_train(int nwords, char **words, struct run *r)
{
    config_defaults(r);
    for (int i = 1; i < nwords; i++) {
        char *value = words[i], *key = strsep(&value, "=");
        if (!value || config_set(r, key, value))
            return -1;
    }
    return 0;
}

static int run(int nwords, char **words, double *seconds)
{
    struct exchange e = {0};
    struct run train;
    int ranks, own = 0;
    if (nwords && !strncmp(words[0], "mesh=", 5))
        return simulate_mesh(nwords, words, seconds);
    while (own < nwords && strcmp(words[own], "train"))
        own++;
    key_defaults(&keys, &e);
    if (key_words(&keys, &e, own, words) ||
        read_train(nwords - own, words + own, &train))
        return -1;
    e.run = own < nwords ? &train : NULL;
    MPI_Comm_rank(MPI_COMM_WORLD, &e.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    e.servers = ranks - e.world;
    e.bucket = (size_t)(e.bucket_mb * 1024 * 1024 / sizeof(float));
    e.bucket = e.bucket ? e.bucket : e.n;
    if (e.op >= 0)
        return exchange_textbook(&e, seconds);
    const struct backend *b = backend_at(e.backend);
    if (!backend_is_simulated(b))
        return fail("sync=%s: nothing to simulate", b->name);
    return e.run && !b->servers ? exchange_squeezed(&e, seconds)
                                : exchanges[b->traffic](&e, seconds);
}

int main(int argc, char **argv)
{
    double mine = 0, last;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (run(argc - 1, argv + 1, &mine))
        die("%s", fail_message());
    MPI_Reduce(&mine, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("@seconds=%.9g\n", last);
    MPI_Finalize();
    return 0;
}
