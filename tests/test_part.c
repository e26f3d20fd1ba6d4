// test_part.c - parts of a job (cluster_split()): their ranks, their exchanges,
// and the one carrier that all of them use.

#include "base/base.h"
#include "cluster/split.h"
#include "group/group.h"
#include "tests/forked.h"
#include "tests/test.h"

#include <string.h>

enum { WORLD = 6 };

static void run(world_body *body)
{
    assert_int_equal(forked_run(NULL, WORLD, 0, body, NULL, NULL), 0);
}

// Makes two parts, the even and the odd ranks, and splits each into single
// ranks.
static int check_ranks(struct cluster *c, const void *arg, uint64_t *result)
{
    struct cluster *part, *single;
    int rank = c->rank;
    (void)arg, (void)result;
    if (cluster_split(&part, c, rank % 2) || cluster_split(&single, part, rank))
        return -1;
    CHECK(part->world == WORLD / 2 && part->rank == rank / 2);
    for (int m = 0; m < part->world; m++)
        CHECK(cluster_job_rank(part->ranks, m) == 2 * m + rank % 2);
    CHECK(single->world == 1 && single->rank == 0);
    CHECK(cluster_whole(c) == c && cluster_whole(part) == c);
    CHECK(cluster_whole(single) == c);
    cluster_close(&single);
    cluster_close(&part);
    return 0;
}

static void parts_number_their_ranks(void **state)
{
    (void)state;
    run(check_ranks);
}

// At the same time the even ranks exchange 3 bytes each, and the odd ranks
// 1000.
static int check_exchange(struct cluster *c, const void *arg, uint64_t *result)
{
    struct cluster *part;
    size_t bytes = c->rank % 2 ? 1000 : 3;
    char in[1000], out[1000 * WORLD / 2];
    (void)arg, (void)result;
    if (cluster_split(&part, c, c->rank % 2))
        return -1;
    memset(in, 'a' + c->rank, bytes);
    if (cluster_allgather(part, in, out, bytes))
        return -1;
    for (int m = 0; m < part->world; m++)
        for (size_t i = 0; i < bytes; i++)
            CHECK(out[(size_t)m * bytes + i] == 'a' + 2 * m + c->rank % 2);
    cluster_close(&part);
    return 0;
}

static void parts_exchange_independently(void **state)
{
    (void)state;
    run(check_exchange);
}

// A carrier that only ranks 0 and 1 of the job can use, as if only they shared
// a host.
static int only_first(const struct group_job *job, char why[128])
{
    struct cluster *c = job->cluster;
    int last = cluster_job_rank(c->ranks, c->world - 1);
    if (cluster_barrier(c))
        return -1;
    if (last > 1)
        snprintf(why, 128, "rank %d is elsewhere", last);
    return last <= 1;
}

static int check_carrier(struct cluster *c, const void *arg, uint64_t *result)
{
    static const struct group_ops ops = {.is_supported = only_first};
    struct cluster *part;
    char why[128] = "";
    (void)arg, (void)result;
    if (cluster_split(&part, c, c->rank / 2))
        return -1;
    struct group_job job = {.name = "part", .cluster = part};
    int can = group_is_supported(&ops, &job, why);
    if (can || strcmp(why, "rank 3 is elsewhere"))
        return fail("supported: %d, since '%s'", can, why);
    cluster_close(&part);
    return 0;
}

static void all_parts_use_one_carrier(void **state)
{
    (void)state;
    run(check_carrier);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_number_their_ranks),
        cmocka_unit_test(parts_exchange_independently),
        cmocka_unit_test(all_parts_use_one_carrier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
