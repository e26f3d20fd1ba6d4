// test_activity.c - records the kernels of a GPU with CUPTI, and writes them to
// traces. CTest puts our own libcupti.so.13 (fake_cupti.c) first in the library
// path.

#include "telemetry/activity.h"

#include "base/base.h"
#include "telemetry/span.h"
#include "telemetry/trace.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/test.h"

enum { COPY = 1, KERNEL = 10, MANY = 20000 };

static void (*ran)(uint32_t kind, const char *name, uint64_t begin_ns,
                   uint64_t end_ns, uint32_t stream, uint64_t bytes);

static void records_are_sorted_by_stream_and_time(void **state)
{
    (void)state;
    static const char mangled[] = "_Z16attention_kernelI9math_bf16Li64EEvPT_";
    const struct activity_record *at;
    struct activity *a = NULL;
    size_t n;
    uint64_t now = now_ns();
    ran(KERNEL, "before", now, now + 1, 7, 0);
    assert_int_equal(activity_open(&a, 10), 0);
    ran(KERNEL, "ncclDevKernel", now + 500, now + 900, 13, 0);
    ran(KERNEL, mangled, now + 300, now + 400, 7, 0);
    ran(COPY, NULL, now + 100, now + 200, 7, 4096);
    assert_int_equal(activity_end(a, &at, &n), 0);
    ran(KERNEL, "after", now, now + 1, 7, 0);
    assert_int_equal(n, 3);
    assert_string_equal(at[0].name, "copy down");
    assert_string_equal(at[1].name, "attention_kernel");
    assert_string_equal(at[2].name, "ncclDevKernel");
    assert_true(at[0].bytes == 4096 && at[0].stream == 7);
    assert_true(at[1].bytes == 0 && at[1].stream == 7 && at[2].stream == 13);
    // the fake's clock is a second behind ours; reading both takes some time
    for (int i = 0; i < 3; i++) {
        static const uint64_t begins[] = {100, 300, 500};
        int64_t off = (int64_t)(at[i].begin_ns - now - begins[i]);
        assert_true(off >= 0 && off < 500000000);
    }
    assert_int_equal(at[2].end_ns - at[2].begin_ns, 400);
    activity_close(&a);
    assert_null(a);
}

// Adds more kernels than one of CUPTI's buffers holds, and five more than the
// recording holds.
static void dropped_records_are_counted(void **state)
{
    (void)state;
    const struct activity_record *at;
    struct activity *a = NULL;
    size_t n;
    assert_int_equal(activity_open(&a, MANY - 5), 0);
    for (uint64_t i = 0; i < MANY; i++)
        ran(KERNEL, "k", i, i + 1, 7, 0);
    assert_int_equal(activity_end(a, &at, &n), 5);
    assert_int_equal(n, MANY - 5);
    for (size_t i = 1; i < n; i++)
        assert_int_equal(at[i].begin_ns - at[i - 1].begin_ns, 1);
    activity_close(&a);
}

static void kernel_names_are_valid_in_json(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"_Z5helloIfEvv", "hello"},
        {"_Z99short", "_Z99short"},
        {"_ZN7cutlass6KernelE", "_ZN7cutlass6KernelE"},
        {"say \"x\\n\"\n", "say ?x?n??"},
        {"", ""},
    };
    char out[ACTIVITY_NAME], longest[300];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        activity_name(out, names[i][0]);
        assert_string_equal(out, names[i][1]);
    }
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    activity_name(out, longest);
    assert_int_equal(strlen(out), ACTIVITY_NAME - 1);
}

static void a_failed_open_names_the_cause(void **state)
{
    (void)state;
    struct activity *a = NULL;
    setenv("FAKE_CUPTI", "busy", 1);
    assert_int_equal(activity_open(&a, 10), -1);
    assert_null(a);
    assert_non_null(strstr(fail_message(), "CUPTI fails with 39; try:"));
    unsetenv("FAKE_CUPTI");
    assert_int_equal(activity_open(&a, 10), 0); // the next open works
    activity_close(&a);
}

static int lines_with(const char *path, const char *word)
{
    char line[512];
    int n = 0;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        n += strstr(line, word) != NULL;
    fclose(f);
    return n;
}

// trace.json has a thread for each stream of the GPU. The trace for HTA
// contains the recorded kernels instead of spans.
static void traces_contain_the_recorded_kernels(void **state)
{
    (void)state;
    char path[] = "/tmp/lockstep-activity-XXXXXX";
    struct spans *s = NULL;
    struct activity *a = NULL;
    assert_int_equal(spans_open(&s, 64), 0);
    spans_set_zero(s, now_ns());
    span_begin(spans_compute(s), SPAN_FORWARD, 0);
    span_end(spans_compute(s));
    assert_int_equal(activity_open(&a, 10), 0);
    uint64_t now = now_ns();
    ran(KERNEL, "early", 1, 1000001, 7, 0); // this clock counts from boot
    ran(KERNEL, "norm", now + 1000, now + 3500, 7, 0);
    ran(KERNEL, "sum", now + 2000, now + 4000, 9, 0);
    ran(COPY, NULL, now + 5000, now + 6000, 9, 64);
    struct trace_head head = {.name = "rank 0"};
    activity_end(a, &head.activity, &head.nactivity);
    assert_int_equal(head.nactivity, 4);
    close(mkstemp(path));
    assert_int_equal(trace_write(s, path, &head), 0);
    assert_int_equal(lines_with(path, "\"cat\": \"kernel\""), 2);
    assert_int_equal(lines_with(path, "\"dur\": 2.500"), 1);
    assert_int_equal(lines_with(path, "\"cat\": \"gpu_memcpy\""), 1);
    assert_int_equal(lines_with(path, "\"bytes\": 64"), 1);
    assert_int_equal(lines_with(path, "GPU stream 7"), 1);
    assert_int_equal(lines_with(path, "GPU stream 9"), 1);
    assert_int_equal(lines_with(path, "early"), 0);
    assert_int_equal(lines_with(path, "\"name\": \"forward\""), 1);
    head.hta = true;
    assert_int_equal(trace_write(s, path, &head), 0);
    assert_int_equal(lines_with(path, "\"cat\": \"kernel\""), 2);
    assert_int_equal(lines_with(path, "cudaLaunchKernel"), 3);
    assert_int_equal(lines_with(path, "\"stream\": 9"), 2);
    assert_int_equal(lines_with(path, "forward"), 0);
    unlink(path);
    activity_close(&a);
    spans_close(&s);
}

int main(void)
{
    void *library = dlopen("libcupti.so.13", RTLD_NOW);
    *(void **)&ran = library ? dlsym(library, "fake_cupti_ran") : NULL;
    if (!ran) {
        print_message("skipped: the fake libcupti.so.13 is not first in "
                      "LD_LIBRARY_PATH; try: ctest -R activity\n");
        return TEST_SKIPPED;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_sorted_by_stream_and_time),
        cmocka_unit_test(dropped_records_are_counted),
        cmocka_unit_test(kernel_names_are_valid_in_json),
        cmocka_unit_test(a_failed_open_names_the_cause),
        cmocka_unit_test(traces_contain_the_recorded_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
