// test_manifest.c - reads the JSON of a manifest with cJSON, and lets memory
// end at each of its allocations.

#include "telemetry/manifest.h"

#include "base/base.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/test.h"

static void fill(struct manifest *m)
{
    static const char *const words[] = {"a", "b"};
    setenv("OMP_TEST_VARIABLE", "7", 1);
    manifest_text(m, "text", "a \"quoted\"\nline");
    manifest_begin(m, "inner");
    manifest_number(m, "pi", 3.25);
    manifest_number(m, "nothing", NAN);
    manifest_bool(m, "yes", true);
    manifest_texts(m, "words", 2, words);
    manifest_end(m);
    manifest_machine(m);
}

static void a_manifest_is_json(void **state)
{
    (void)state;
    char path[] = "/tmp/lockstep-manifest-XXXXXX", text[65536] = "";
    close(mkstemp(path));
    struct manifest *m = manifest_open();
    fill(m);
    assert_int_equal(manifest_close(&m, path), 0);
    assert_null(m);

    FILE *f = fopen(path, "r");
    assert_true(fread(text, 1, sizeof text - 1, f) > 0);
    fclose(f);
    remove(path);
    cJSON *j = cJSON_Parse(text);
    assert_non_null(j);
    assert_string_equal(cJSON_GetObjectItem(j, "text")->valuestring,
                        "a \"quoted\"\nline");
    cJSON *inner = cJSON_GetObjectItem(j, "inner");
    assert_true(cJSON_GetObjectItem(inner, "pi")->valuedouble == 3.25);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(inner, "nothing")));
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(inner, "yes")));
    cJSON *env = cJSON_GetObjectItem(j, "environment");
    assert_string_equal(
        cJSON_GetObjectItem(env, "OMP_TEST_VARIABLE")->valuestring, "7");
    cJSON *machine = cJSON_GetObjectItem(j, "machine");
    assert_true(cJSON_GetObjectItem(machine, "cores")->valuedouble >= 1);
    cJSON_Delete(j);

    m = manifest_open();
    assert_int_equal(manifest_close(&m, "/dev/null/run.json"), -1);
}

static int left; // allocations

static void *allocate(size_t bytes)
{
    return left-- > 0 ? malloc(bytes) : NULL;
}

// Without memory for a value there is an error, and no file that lacks it.
static void memory_that_ends_is_said(void **state)
{
    (void)state;
    cJSON_Hooks hooks = {.malloc_fn = allocate, .free_fn = free};
    char path[] = "/tmp/lockstep-manifest-XXXXXX";
    close(mkstemp(path));
    remove(path);
    cJSON_InitHooks(&hooks);
    int rc = -1;
    for (int n = 0; rc; n++) {
        left = n;
        struct manifest *m = manifest_open();
        if (m)
            fill(m);
        rc = m ? manifest_close(&m, path) : -1;
        assert_int_equal(rc, left < 0 ? -1 : 0);
        assert_int_equal(access(path, F_OK), rc);
        assert_true(!rc || strstr(fail_message(), "memory: none left"));
    }
    cJSON_InitHooks(NULL);
    remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manifest_is_json),
        cmocka_unit_test(memory_that_ends_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
