// test_mesh.c - ranks and coordinates of meshes of up to three axes.

#include "base/base.h"
#include "config/config.h"
#include "config/mesh.h"
#include "tests/test.h"

#include <string.h>

static struct mesh read(const char *text)
{
    struct mesh m;
    char shown[CONFIG_PATH];
    assert_int_equal(mesh_read(&m, "mesh", text), 0);
    mesh_show(&m, shown);
    assert_string_equal(shown, text);
    return m;
}

// The coordinates of ranks 0, 1, .. count like the digits of a number: the last
// axis of the text changes fastest.
static void check_order(const char *text)
{
    struct mesh m = read(text);
    int digit[MESH_AXES] = {0}, ranks = mesh_ranks(&m);
    for (int rank = 0; rank < ranks; rank++) {
        for (int i = 0; i < m.n; i++)
            assert_int_equal(mesh_at(&m, rank, m.axis[i]), digit[i]);
        for (int i = m.n - 1; i >= 0 && ++digit[i] == m.size[i]; i--)
            digit[i] = 0;
    }
    for (int i = 0; i < m.n; i++)
        assert_int_equal(digit[i], 0); // the count has wrapped around
}

static void the_last_axis_counts_fastest(void **state)
{
    (void)state;
    static const char *const orders[][3] = {
        {"dp", "pp", "tp"}, {"dp", "tp", "pp"}, {"pp", "dp", "tp"},
        {"pp", "tp", "dp"}, {"tp", "dp", "pp"}, {"tp", "pp", "dp"},
        {"dp", "cp", "tp"}, {"cp", "pp", "dp"}};
    char text[64];
    for (size_t k = 0; k < sizeof orders / sizeof *orders; k++)
        for (int size = 0; size < 64; size++) {
            int n[3] = {1 + size % 4, 1 + size / 4 % 4, 1 + size / 16};
            size_t used = 0;
            for (int axes = 0; axes < 3; axes++) {
                used +=
                    (size_t)snprintf(text + used, sizeof text - used, "%s%s%d",
                                     axes ? "," : "", orders[k][axes], n[axes]);
                check_order(text);
            }
        }
}

static void messages_name_the_coordinates(void **state)
{
    (void)state;
    char place[MESH_TEXT];
    struct mesh m = read("dp2,pp2,tp2"), none = {.n = 0};
    assert_int_equal(mesh_ranks(&m), 8);
    assert_string_equal(mesh_place(&m, 5, place), " (dp 1, pp 0, tp 1)");
    m = read("tp2,dp3");
    assert_string_equal(mesh_place(&m, 4, place), " (tp 1, dp 1)");
    assert_int_equal(mesh_size(&m, MESH_DP), 3);
    assert_int_equal(mesh_size(&m, MESH_PP), 1);
    assert_int_equal(mesh_at(&m, 4, MESH_PP), 0);
    assert_string_equal(mesh_place(&none, 3, place), "");
    assert_int_equal(mesh_ranks(&none), 1);
    char said[MESH_SENTENCE];
    assert_string_equal(
        mesh_say(&m, "ring: nothing from rank 5, says rank 0: rank 9", said),
        "ring: nothing from rank 5 (tp 1, dp 2), says rank 0 (tp 0, dp 0): "
        "rank 9");
    assert_string_equal(mesh_say(&none, "rank 0 closed", said),
                        "rank 0 closed");
}

static void bad_meshes_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "dp",      "4",        "dp0",  "dp-1",         "dp2dp2",
        "dp2,dp2", "dp2,",     ",dp2", "dp2 tp2",      "dp4097",
        "ep2",     "dp2,,tp2", "DP2",  "dp99999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct mesh m = {.n = 7};
        assert_int_equal(mesh_read(&m, "mesh", bad[i]), -1);
        assert_non_null(strstr(fail_message(), "try: dp4, tp2 or dp2,pp2"));
        assert_int_equal(m.n, 7);
    }
    struct mesh m;
    assert_int_equal(mesh_read(&m, "mesh", "dp4096,tp2"), -1);
    assert_non_null(strstr(fail_message(), "more than 4096 ranks"));
    assert_int_equal(mesh_read(&m, "mesh", "dp4096,tp4096,pp4096"), -1);
}

// The mesh gives the number of workers. If workers= is given, both must agree.
static void the_mesh_gives_the_number_of_workers(void **state)
{
    (void)state;
    static const struct {
        const char *words[3], *expect;
    } cases[] = {
        {{"sync=ring", "mesh=dp4"}, NULL},
        {{"sync=ring", "mesh=dp4", "workers=4"}, NULL},
        {{"sync=ring", "mesh=dp4,pp1,tp1", "workers=4"}, NULL},
        {{"sync=ring", "mesh=dp4", "workers=2"},
         "mesh=dp4 has 4 ranks, workers=2; try: workers=4"},
        {{"sync=ring", "mesh=dp2,pp2"}, NULL},
        {{"sync=ring", "mesh=tp4"}, NULL},
        {{"mesh=pp4"}, NULL}, // no replicas: sync= has nothing to decide
        {{"mesh=pp2,tp2", "accum=2"}, NULL},
        {{"mesh=dp2,pp2"}, "sync=local has no stages"},
        {{"mesh=pp4", "mesh=", "workers=4"}, "try: sync="},
        {{"sync=local", "mesh=pp4"}, "sync=local has no stages"},
        {{"sync=dps", "mesh=tp2"}, "sync=dps has no slices (tp)"},
        {{"sync=zero", "mesh=tp2", "shard=3"},
         "shard=3 exchanges gradients after every"},
        {{"sync=dps", "mesh=pp2"}, "sync=dps has no stages"},
        {{"sync=local", "mesh=pp2"}, "sync=local has no stages"},
        {{"sync=zero", "mesh=pp2", "shard=2"},
         "shard=2 exchanges gradients after every"},
        {{"mesh=cp4"}, NULL},
        {{"mesh=cp2,up2"}, NULL},
        {{"mesh=up2,cp2", "attention_over=ring"}, NULL},
        {{"mesh=up4"},
         "mesh=up4: up4 without cp; try: mesh=cp4 attention_over=heads"},
        {{"mesh=cp2,up2", "attention_over=heads"}, "try: ring, or cp4 without"},
        {{"sync=zero", "mesh=dp2,cp2", "attention_over=ring"}, NULL},
        {{"sync=outer", "mesh=dp2,cp2"}, "sync=outer has no divided sequences"},
        {{"sync=ring", "mesh=dp4", "attention_over=ring"},
         "attention_over=ring is for sequences that workers divide; try"},
        {{"sync=ring", "mesh=cp2,up2", "device=cuda"}, NULL},
        {{"sync=ring", "mesh=pp4", "device=cuda"}, NULL},
        {{"sync=ring", "mesh=pp2,tp2", "device=cuda"}, NULL},
        {{"sync=ring", "mesh=dp2", "chunks=2"}, "chunks=2 is for the stages"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static struct run r;
        char words[3][32], *at[3];
        int n = 0;
        for (; n < 3 && cases[i].words[n]; n++)
            strcpy(at[n] = words[n], cases[i].words[n]);
        config_defaults(&r);
        assert_int_equal(config_parse(&r, n, at), 0);
        assert_int_equal(config_check(&r), cases[i].expect ? -1 : 0);
        if (cases[i].expect)
            assert_non_null(strstr(fail_message(), cases[i].expect));
        else
            assert_int_equal(r.workers, 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_axis_counts_fastest),
        cmocka_unit_test(messages_name_the_coordinates),
        cmocka_unit_test(bad_meshes_are_refused),
        cmocka_unit_test(the_mesh_gives_the_number_of_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
