// test_snapshot.c - a copy is written while its source changes, and a caller
// that waits gets the writer's error.

#include "train/snapshot.h"

#include "base/base.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/test.h"

enum { N = 100000, VECTORS = 3 };

struct writing {
    struct snapshot *s;
    const char *path;
    atomic_bool hold; // the writer begins when this is false
    int written;
};

static int write_file(void *ctx)
{
    struct writing *w = ctx;
    while (atomic_load(&w->hold))
        usleep(1000);
    FILE *f = fopen(w->path, "wb");
    if (!f)
        return fail("%s: %s", w->path, strerror(errno));
    for (int i = 0; i < VECTORS; i++)
        fwrite(snapshot_vector(w->s, i), sizeof(float), N, f);
    w->written++;
    return fclose(f) ? fail("%s: %s", w->path, strerror(errno)) : 0;
}

static void assert_holds(const char *path, float first)
{
    static float v[VECTORS * N];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(v, sizeof *v, VECTORS * N, f), VECTORS * N);
    fclose(f);
    for (int i = 0; i < VECTORS * N; i++)
        assert_true(v[i] == first + (float)(i % N));
}

static void fill(struct snapshot *s, float *source, float first)
{
    for (int i = 0; i < N; i++)
        source[i] = first + (float)i;
    for (int i = 0; i < VECTORS; i++)
        memcpy(snapshot_vector(s, i), source, N * sizeof *source);
}

// In each round, a step changes the source while the copy is written.
static void the_copy_is_written(void **state)
{
    (void)state;
    static float source[N];
    char path[] = "/tmp/lockstep_snapshot_XXXXXX";
    struct writing w = {.path = path};
    close(mkstemp(path));
    assert_int_equal(snapshot_open(&w.s, VECTORS, N), 0);
    for (int round = 0; round < 20; round++) {
        fill(w.s, source, (float)round);
        atomic_store(&w.hold, true);
        assert_int_equal(snapshot_start(w.s, write_file, &w), 0);
        assert_int_equal(snapshot_settle(w.s, false), 0); // still at work
        atomic_store(&w.hold, false);
        for (int i = 0; i < N; i++)
            source[i] = -1;
        assert_int_equal(snapshot_settle(w.s, true), 0);
        assert_int_equal(w.written, round + 1);
        assert_holds(path, (float)round);
    }
    snapshot_close(&w.s);
    assert_null(w.s);
    snapshot_close(&w.s);
    unlink(path);
}

// A caller gets the writer's error once, also if it only polls.
static void an_error_is_reported_once(void **state)
{
    (void)state;
    struct writing w = {.path = "/no/such/folder/file"};
    assert_int_equal(snapshot_settle(NULL, true), 0);
    assert_int_equal(snapshot_open(&w.s, VECTORS, N), 0);
    assert_int_equal(snapshot_settle(w.s, true), 0);
    for (int wait = 0; wait < 2; wait++) {
        int rc = 0;
        assert_int_equal(snapshot_start(w.s, write_file, &w), 0);
        fail("of this thread");
        while (!rc) // if this hangs, ctest's time limit ends it
            rc = snapshot_settle(w.s, wait);
        assert_int_equal(rc, -1);
        assert_string_equal(fail_message(),
                            "/no/such/folder/file: No such file or directory");
        assert_int_equal(snapshot_settle(w.s, true), 0);
    }
    assert_int_equal(snapshot_start(w.s, write_file, &w), 0);
    snapshot_close(&w.s); // waits, and says nothing
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_copy_is_written),
        cmocka_unit_test(an_error_is_reported_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
