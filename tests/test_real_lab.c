// test_real_lab.c - labs on real workers: messages of any number of bytes.

#include "homework/real_lab.h"
#include "horovod_ring/carriers.h"
#include "tests/forked.h"

#include "base/base.h"

#include <string.h>

#include "tests/test.h"

static const size_t lengths[] = {1, 2, 3, 7, 255, 4097, 0};

enum { LENGTHS = 7, LONGEST = 4097 };

static unsigned char byte_of(int rank, size_t i)
{
    return (unsigned char)(i * 7 + (size_t)rank * 31);
}

static int check_bytes(const unsigned char *got, size_t n, int from)
{
    for (size_t i = 0; i <= LONGEST; i++)
        if (got[i] != (i < n ? byte_of(from, i) : 0xff))
            return fail("byte %zu of a message of %zu from rank %d is wrong", i,
                        n, from);
    return 0;
}

// Each rank sends to its right and receives from its left.
static int pass_on(struct lab *l)
{
    unsigned char mine[LONGEST], got[LONGEST + 1];
    int right = (l->rank + 1) % l->workers;
    int left = (l->rank + l->workers - 1) % l->workers;
    for (size_t i = 0; i < LONGEST; i++)
        mine[i] = byte_of(l->rank, i);
    for (int i = 0; i < LENGTHS; i++) {
        struct lab_req r[2];
        memset(got, 0xff, sizeof got);
        if (lab_isend(l, right, mine, lengths[i], &r[0]) ||
            lab_irecv(l, left, got, lengths[i], &r[1]) || lab_wait(l, r, 2) ||
            check_bytes(got, lengths[i], left))
            return -1;
    }
    return 0;
}

static int member(struct cluster *c, const void *arg, uint64_t *result)
{
    const struct group_job job = {.name = "lab",
                                  .cluster = c,
                                  .depth = LAB_REQUESTS,
                                  .pairs = true};
    struct group *g = group_open(arg, &job);
    struct real *r = g ? real_open(g) : NULL;
    int rc = r && !pass_on(real_lab(r)) ? real_finish(r) : -1;
    group_close(&g);
    real_close(&r);
    *result = 0;
    return rc;
}

static void messages_have_any_number_of_bytes(void **state)
{
    (void)state;
    for (int world = 2; world <= 3; world++) {
        assert_int_equal(forked_run(NULL, world, 0, member, &ring_tcp, NULL),
                         0);
        assert_int_equal(forked_run(NULL, world, 0, member, &ring_shm, NULL),
                         0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_have_any_number_of_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
