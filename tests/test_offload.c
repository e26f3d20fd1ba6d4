// test_offload.c - an optimiser's state in a file has the bits of one in
// memory; the file leaves nothing behind; a disk that is full, or fails later,
// is one error.

#include "optim/offload.h"
#include "optim/rule.h"

#include "base/base.h"
#include "device/device.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/test.h"

enum { MOST = 300000, STEPS = 4 };

static char folder[] = "/tmp/test_offload-XXXXXX";

// Stands in for the C library's: writes that may be made until the disk fails.
static int writes_left = -1;

ssize_t pwrite(int fd, const void *data, size_t n, off_t off)
{
    if (writes_left == 0) {
        errno = ENOSPC;
        return -1;
    }
    writes_left -= writes_left > 0;
    return syscall(SYS_pwrite64, fd, data, n, off);
}

static bool full;

int posix_fallocate(int fd, off_t off, off_t n)
{
    return full ? ENOSPC : fallocate(fd, 0, off, n) ? errno : 0;
}

static int files_in_folder(void)
{
    int n = -2; // . and ..
    DIR *d = opendir(folder);
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

// Updates p[0..n) STEPS times, then writes slot 0 and slot 1 to `state`.
static void train(const struct optim_config *c, size_t n, const char *in_folder,
                  float *p, float *state)
{
    static float g[MOST];
    struct device *d = NULL;
    struct rule r;
    float norm;
    assert_int_equal(device_open(&d, "cpu"), 0);
    assert_int_equal(rule_open(&r, d, c, n, in_folder), 0);
    assert_int_equal(files_in_folder(), 0);
    for (size_t i = 0; i < n; i++)
        p[i] = (float)sin(0.37 * (double)i);
    for (int step = 1; step <= STEPS; step++) {
        const struct rule_in in = {.step = step,
                                   .lr = 0.02f,
                                   .scale = 0.5f,
                                   .clip = 1};
        for (size_t i = 0; i < n; i++)
            g[i] = (float)cos(0.11 * (double)i + 1.7 * step);
        assert_int_equal(rule_step(&r, p, g, &in, &norm), 0);
    }
    for (int i = 0; i < optim_slots(c); i++)
        for (size_t at = 0, len; at < n; at += len) {
            float *own[OPTIM_MAX_SLOTS];
            len = n - at < 7777 ? n - at : 7777; // as a reader may ask
            assert_int_equal(offload_take(r.file, r.slots, at, false, &len,
                                          own),
                             0);
            memcpy(state + (size_t)i * n + at, own[i], len * sizeof *state);
        }
    rule_close(&r);
    device_close(&d);
    assert_int_equal(files_in_folder(), 0);
}

static const struct optim_config adamw = {.kind = OPTIM_ADAMW,
                                          .beta1 = 0.9f,
                                          .beta2 = 0.95f,
                                          .eps = 1e-8f,
                                          .weight_decay = 0.1f,
                                          .ndecay = 1,
                                          .decay = {{.off = 5, .n = 9000}}};
static const struct optim_config momentum = {.kind = OPTIM_SGD,
                                             .momentum = 0.9f};

// One piece, two, three (all stay in memory), four, and many.
static const size_t sizes[] = {1, 4096, 4097, 8192, 12288, 16384, 16385, MOST};

static void a_file_has_the_bits_of_memory(void **state)
{
    (void)state;
    static float p[2][MOST], s[2][2 * MOST];
    for (int rule = 0; rule < 2; rule++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            const struct optim_config *c = rule ? &momentum : &adamw;
            size_t n = sizes[k], slots = (size_t)optim_slots(c);
            train(c, n, NULL, p[0], s[0]);
            train(c, n, folder, p[1], s[1]);
            assert_memory_equal(p[0], p[1], n * sizeof *p[0]);
            assert_memory_equal(s[0], s[1], slots * n * sizeof *s[0]);
        }
}

// What was written at any place is read there later, in any order.
static void pieces_are_found_in_any_order(void **state)
{
    (void)state;
    struct offload *o = offload_open(folder, 2, MOST);
    static float want[2][MOST];
    float *own[OPTIM_MAX_SLOTS];
    unsigned seed = 1;
    assert_non_null(o);
    for (int k = 0; k < 3000; k++) {
        size_t at = (size_t)rand_r(&seed) % MOST, n = MOST - at;
        bool changes = rand_r(&seed) % 2;
        assert_int_equal(offload_take(o, NULL, at, changes, &n, own), 0);
        assert_true(n > 0 && n <= MOST - at);
        for (int i = 0; i < 2; i++) {
            assert_memory_equal(own[i], want[i] + at, n * sizeof(float));
            if (changes)
                want[i][at] = own[i][0] = (float)(k + i);
        }
    }
    offload_close(&o);
    assert_null(o);
}

static void a_full_disk_is_an_error_at_the_start(void **state)
{
    (void)state;
    full = true;
    assert_null(offload_open(folder, 2, MOST));
    full = false;
    assert_non_null(strstr(fail_message(), "of state in /tmp/test_offload-"));
    assert_non_null(strstr(fail_message(), "No space left on device"));
    assert_int_equal(files_in_folder(), 0);
    assert_null(offload_open("/proc/nowhere", 2, MOST));
    assert_non_null(strstr(fail_message(), "/proc/nowhere"));
}

// The thread writes behind, so a later call finds the error, and so do all
// calls after it.
static void a_disk_that_fails_later_is_an_error(void **state)
{
    (void)state;
    struct offload *o = offload_open(folder, 2, MOST);
    float *own[OPTIM_MAX_SLOTS];
    int rc = 0;
    size_t piece = MOST;
    assert_non_null(o);
    assert_int_equal(offload_take(o, NULL, 0, true, &piece, own), 0);
    writes_left = 3;
    for (int pass = 0; !rc && pass < 2; pass++)
        for (size_t at = 0; !rc && at < MOST; at += piece) {
            size_t n = MOST - at;
            rc = offload_take(o, NULL, at, true, &n, own);
        }
    assert_int_equal(rc, -1);
    assert_non_null(strstr(fail_message(), "offload=disk: cannot write "));
    assert_non_null(strstr(fail_message(), "No space left on device"));
    writes_left = -1;
    size_t n = 1;
    assert_int_equal(offload_take(o, NULL, 0, false, &n, own) ||
                         offload_take(o, NULL, MOST / 2, false, &n, own),
                     1);
    offload_close(&o);
}

static int make(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int clean(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_has_the_bits_of_memory),
        cmocka_unit_test(pieces_are_found_in_any_order),
        cmocka_unit_test(a_full_disk_is_an_error_at_the_start),
        cmocka_unit_test(a_disk_that_fails_later_is_an_error),
    };
    return cmocka_run_group_tests(tests, make, clean);
}
