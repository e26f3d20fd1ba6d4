// test_emulated_cuda.c - tests the emulation itself: it must find the faults of
// kernels that are wrong on purpose (faults.cu).

#include "tests/emulated_cuda/faults.h"

#include "base/base.h"
#include "base/half.h"
#include "device/device.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

static struct device *gpu;
static cudaStream_t stream;
static int *out; // FAULT_THREADS, on the device

// The number of threads that got the right neighbour's number.
static int right_neighbours(const char *order, bool up, bool barrier)
{
    int back[FAULT_THREADS], right = 0;
    setenv("EMULATED_CUDA_ORDER", order, 1);
    fault_neighbours(stream, out, up, barrier);
    device_copy(gpu, back, out, sizeof back);
    for (int t = 0; t < FAULT_THREADS; t++)
        right += back[t] == (t + (up ? 1 : FAULT_THREADS - 1)) % FAULT_THREADS;
    return right;
}

static void a_missing_barrier_shows(void **state)
{
    (void)state;
    for (int up = 0; up < 2; up++) {
        assert_int_equal(right_neighbours("forward", up, true), FAULT_THREADS);
        assert_int_equal(right_neighbours("backward", up, true), FAULT_THREADS);
        int forward = right_neighbours("forward", up, false);
        int backward = right_neighbours("backward", up, false);
        assert_true(forward <= 1 || backward <= 1);
    }
}

// The number of threads that got the right one of the copied numbers.
static int right_copies(const char *order, bool wait, bool barrier)
{
    float back[FAULT_THREADS], in[4 * FAULT_THREADS];
    float *from = device_alloc(gpu, 4 * FAULT_THREADS, sizeof *from);
    int right = 0;
    assert_non_null(from);
    for (int i = 0; i < 4 * FAULT_THREADS; i++)
        in[i] = (float)(1 + i);
    device_copy(gpu, from, in, sizeof in);
    setenv("EMULATED_CUDA_ORDER", order, 1);
    fault_copies(stream, (float *)out, from, wait, barrier);
    device_copy(gpu, back, out, sizeof back);
    for (int t = 0; t < FAULT_THREADS; t++) {
        float want = t + 1 < FAULT_THREADS ? in[4 * (t + 1)] : 0;
        right += back[t] == want;
    }
    device_free(gpu, from);
    return right;
}

static void copies_are_asynchronous(void **state)
{
    (void)state;
    assert_int_equal(right_copies("forward", true, true), FAULT_THREADS);
    assert_int_equal(right_copies("backward", true, true), FAULT_THREADS);
    assert_int_equal(right_copies("forward", false, true), 0);
    assert_int_equal(right_copies("backward", false, true), 0);
    int forward = right_copies("forward", true, false);
    int backward = right_copies("backward", true, false);
    assert_true(forward <= 1 || backward <= 1);
}

// Whether what() ends the process that calls it, which is a child of this one.
static bool kills(void (*what)(void))
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        what();
        device_finish(gpu);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static void half_warp(void)
{
    fault_half_warp(stream, out);
}

static void two_places(void)
{
    fault_two_places(stream, out);
}

static void far_outside(void)
{
    fault_outside(stream, out, 128); // behind the last page
}

static void just_inside(void)
{
    fault_outside(stream, out, FAULT_THREADS - 1);
}

static void too_much_shared(void)
{
    fault_shared(stream, out, 48 << 10);
}

static void enough_shared(void)
{
    fault_shared(stream, out, (48 << 10) - 128);
}

static void left_copies(void)
{
    fault_left_copies(stream, (float *)out);
}

static void host_reads(void)
{
    volatile int x = out[0];
    (void)x;
}

static void faults_end_a_program(void **state)
{
    (void)state;
    assert_true(kills(half_warp));
    assert_true(kills(two_places));
    assert_true(kills(too_much_shared));
    assert_false(kills(enough_shared));
    assert_true(kills(far_outside));
    assert_false(kills(just_inside));
    assert_true(kills(host_reads));
    assert_true(kills(left_copies));
}

static void work_is_late(void **state)
{
    (void)state;
    struct device_event done = {0};
    int back[FAULT_THREADS] = {-1};
    assert_int_equal(device_event_open(gpu, &done), 0);
    fault_neighbours(stream, out, true, true);
    device_copy_on(gpu, DEVICE_COMPUTE, back, out, sizeof back);
    device_record(gpu, &done, DEVICE_COMPUTE);
    assert_int_equal(back[0], -1);
    assert_false(device_reached(gpu, &done));
    device_wait(gpu, &done);
    assert_int_equal(back[0], 1);
    device_event_close(gpu, &done);
}

static void a_wrong_launch_is_reported(void **state)
{
    (void)state;
    fault_shared(stream, out, 49 << 10);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
}

int main(void)
{
    if (device_open(&gpu, "cuda"))
        die("%s", fail_message());
    stream = device_handle(gpu, DEVICE_COMPUTE);
    out = device_alloc(gpu, FAULT_THREADS, sizeof *out);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_barrier_shows),
        cmocka_unit_test(copies_are_asynchronous),
        cmocka_unit_test(faults_end_a_program),
        cmocka_unit_test(work_is_late),
        cmocka_unit_test(a_wrong_launch_is_reported),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    device_free(gpu, out);
    device_close(&gpu);
    return failed;
}
