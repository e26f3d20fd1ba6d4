// test_squeeze_reruns.c - exchanges of compressed gradients have the same bits
// when they run again. (A program of its own, since each case starts many
// processes.)

#include "tests/squeeze_ways.h"

#include "tests/test.h"

static void reruns_have_the_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < WAYS; i++)
        if (i < SUMS - SHARDS || i >= SUMS) // test_zero_squeeze.c has those
            case_reruns(ways[i]);
    case_reruns(&power_lossy);
    case_reruns(&lossy_sps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reruns_have_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
