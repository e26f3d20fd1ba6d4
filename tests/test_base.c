// test_base.c - errors, memory, random numbers, hashes, sizes as text, files.

#include "base/base.h"
#include "base/file.h"
#include "base/median.h"
#include "base/processor.h"
#include "base/rng.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

static void *other_thread(void *arg)
{
    (void)arg;
    fail("a message of the other thread");
    return NULL;
}

static void each_thread_has_its_own_message(void **state)
{
    (void)state;
    assert_int_equal(fail("got %d of %d", 3, 4), -1);
    assert_string_equal(fail_message(), "got 3 of 4");
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, other_thread, NULL), 0);
    pthread_join(t, NULL);
    assert_string_equal(fail_message(), "got 3 of 4");
    fail("outer: %s", fail_message());
    assert_string_equal(fail_message(), "outer: got 3 of 4");
    fail("a.csv: %s", strerror(ENOSPC));
    fail("outer: %s", fail_message());
    assert_string_equal(fail_message(),
                        "outer: a.csv: No space left on device; try: df, or "
                        "out= on another disk");
    fail("zmq: no socket: %s", strerror(EMFILE));
    assert_non_null(strstr(fail_message(), " files; try: ulimit -n 4096"));
}

static void memory_is_aligned_and_zeroed(void **state)
{
    (void)state;
    for (size_t n = 0; n < 20u << 20; n = n * 3 + 5) {
        char *p = mem_alloc(n, 1);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 64, 0);
        for (size_t i = 0; i < n; i += 97)
            assert_int_equal(p[i], 0);
        memset(p, 7, n);
        mem_free(p);
    }
    assert_null(mem_alloc(SIZE_MAX / 2, 3));
    assert_non_null(strstr(fail_message(), "memory"));
    assert_null(mem_alloc(1, (size_t)1 << 60));
    mem_free(NULL);
    assert_true(mem_available() > 0);
    assert_true(mem_peak() > 10u << 20);
}

static size_t resident(void)
{
    size_t pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*u %zu", &pages), 1);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

// Large blocks leave no gaps between small ones that stay.
static void large_blocks_return_to_the_system(void **state)
{
    (void)state;
    enum { BLOCKS = 32, BYTES = 3 << 20 };
    void *large[BLOCKS], *small[BLOCKS];
    size_t before = resident();
    mem_keep();
    for (int i = 0; i < BLOCKS; i++) {
        large[i] = mem_alloc(BYTES, 1);
        small[i] = mem_alloc(64, 1);
        assert_non_null(large[i]);
        memset(large[i], 1, BYTES);
    }
    for (int i = 0; i < BLOCKS; i++)
        mem_free(large[i]);
    assert_true(resident() < before + BLOCKS * BYTES / 4);
    for (int i = 0; i < BLOCKS; i++)
        mem_free(small[i]);
}

// The peak is that of the program since exec(), not of the program before it.
static void peak_after_exec(void **state)
{
    (void)state;
    enum { LARGE = 256 << 20 };
    int ends[2], status;
    char text[32] = "";
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char *p = mem_alloc(LARGE, 1);
        if (p)
            memset(p, 1, LARGE);
        dup2(ends[1], STDOUT_FILENO);
        execl("/proc/self/exe", "test_base", "peak", (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_in_range(strtoull(text, NULL, 10), 1 << 20, LARGE - 1);
}

static void random_numbers_have_their_distribution(void **state)
{
    (void)state;
    double sum = 0, squares = 0;
    const int n = 100000;
    for (int i = 0; i < n; i++) {
        double x = rng_normal(42, (uint64_t)i);
        sum += x;
        squares += x * x;
        assert_true(rng_below(42, (uint64_t)i, 7) < 7);
    }
    assert_true(sum / n < 0.02 && sum / n > -0.02);
    assert_true(squares / n < 1.03 && squares / n > 0.97);
    assert_true(rng_u64(1, 5) == rng_u64(1, 5));
    assert_true(rng_key(1, 2) != rng_key(2, 1));
    // SplitMix64 from seed 0: published first output
    assert_true(rng_u64(0, 0) == 0xe220a8397b1dcdafu);
}

static void hashes_depend_on_every_byte(void **state)
{
    (void)state;
    uint64_t a = hash_bytes("abc", 3);
    assert_true(a == hash_bytes("abc", 3));
    assert_true(a != hash_bytes("abd", 3));
    assert_true(hash_more(a, "x", 1) != hash_more(a + 1, "x", 1));
}

static void sizes_are_printed_with_units(void **state)
{
    (void)state;
    char text[32];
    assert_string_equal(mem_text(text, 0), "0 bytes");
    assert_string_equal(mem_text(text, 1536), "1.5 KiB");
    assert_string_equal(mem_text(text, (size_t)3 << 30), "3.0 GiB");
    char small[4];
    assert_int_equal(text_into(small, sizeof small, "abc"), 0);
    assert_int_equal(text_into(small, sizeof small, "abcd"), -1);
}

// Two folders are to be made, but making the first is forbidden. The error
// names this cause, not "no such file" for the second.
static void a_forbidden_folder_names_the_cause(void **state)
{
    (void)state;
    char dir[] = "/tmp/lockstep-base-XXXXXX", path[64];
    int status = 1;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chmod(dir, 0555), 0);
    snprintf(path, sizeof path, "%s/a/b", dir);
    pid_t pid = fork();
    if (pid == 0) { // root may write anywhere
        bool told = (geteuid() || !setuid(65534)) &&
                    file_make_folder(path) == -1 &&
                    strstr(fail_message(), strerror(EACCES));
        _exit(!told);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    rmdir(dir);
}

static void files_are_replaced_and_locked(void **state)
{
    (void)state;
    char dir[] = "/tmp/lockstep-base-XXXXXX", path[64], text[8] = "";
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/a/b", dir);
    assert_int_equal(file_make_folder(path), 1);
    assert_int_equal(file_make_folder(path), 0);
    snprintf(path, sizeof path, "%s/a/b/c", dir);
    assert_int_equal(file_replace_text(path, "old"), 0);
    assert_int_equal(file_replace_text(path, "new"), 0);
    FILE *f = fopen(path, "r");
    assert_int_equal(fread(text, 1, sizeof text, f), 3);
    fclose(f);
    assert_string_equal(text, "new");
    assert_int_equal(file_make_folder(path), -1); // a file has that name
    snprintf(path, sizeof path, "%s/absent/c", dir);
    assert_int_equal(file_replace_text(path, "x"), -1);
    assert_non_null(strstr(fail_message(), "absent"));
    snprintf(path, sizeof path, "%s/lock", dir);
    int lock = file_lock(path);
    assert_true(lock >= 0);
    assert_int_equal(file_lock(path), FILE_LOCKED);
    file_unlock(lock, path);
    assert_int_equal(access(path, F_OK), -1);
    lock = file_lock(path);
    assert_true(lock >= 0);
    file_unlock(lock, path);
    assert_null(file_read("/dev/zero", 100));
    assert_non_null(strstr(fail_message(), "not a regular file"));
    snprintf(path, sizeof path, "%s/fifo", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_null(file_read(path, 100));
    snprintf(path, sizeof path, "%s/new.tmp", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(path, sizeof path, "%s/new", dir);
    assert_int_equal(file_replace_text(path, "x"), 0);
    snprintf(path, sizeof path, "rm -r %s", dir);
    assert_int_equal(system(path), 0);
}

// What cannot be written to its end does not stay.
static void half_a_file_is_removed(void **state)
{
    (void)state;
    char path[] = "/tmp/lockstep-base-XXXXXX", next[sizeof path + 5];
    close(mkstemp(path));
    snprintf(next, sizeof next, "%s.next", path);
    FILE *f = file_next(path), *full = fopen("/dev/full", "w");
    assert_non_null(f);
    assert_int_equal(access(next, F_OK), 0);
    fputs("x", full);
    assert_int_equal(file_finish(full, path, 0), -1);
    assert_int_equal(access(next, F_OK), -1);
    assert_int_equal(access(path, F_OK), 0);
    fclose(f);
    unlink(path);
}

// A stream forgets why a write failed, and the error names it all the same.
static void a_full_disk_is_named_at_the_end(void **state)
{
    (void)state;
    FILE *full = fopen("/dev/full", "w");
    setbuf(full, NULL);
    fputs("lost", full);
    assert_int_equal(file_close(full, "trace"), -1);
    assert_string_equal(fail_message(), "trace: No space left on device; try: "
                                        "df, or out= on another disk");
}

// Nothing is written or removed through a link, and nothing waits for a FIFO.
static void links_and_fifos_are_refused(void **state)
{
    (void)state;
    char dir[] = "/tmp/lockstep-base-XXXXXX", victim[64], path[64], text[8];
    assert_non_null(mkdtemp(dir));
    snprintf(victim, sizeof victim, "%s/outside", dir);
    assert_int_equal(mkdir(victim, 0700), 0);
    snprintf(victim, sizeof victim, "%s/outside/victim", dir);
    assert_int_equal(file_replace_text(victim, "whole"), 0);
    snprintf(path, sizeof path, "%s/link", dir);
    assert_int_equal(symlink("outside/victim", path), 0);
    for (int kind = 0; kind < 2; kind++) {
        assert_null(file_create(path));
        assert_null(file_append(path));
        assert_int_equal(file_lock(path), -1);
        assert_non_null(strstr(fail_message(), kind ? "not a regular file"
                                                    : "a symbolic link"));
        assert_int_equal(unlink(path), 0);
        assert_int_equal(mkfifo(path, 0600), 0);
    }
    assert_null(file_next(path));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_int_equal(file_can_replace(path), -1);
    assert_non_null(strstr(fail_message(), "not a regular file"));
    snprintf(path, sizeof path, "%s/absent", dir); // a link to nothing
    assert_int_equal(symlink("outside/new", path), 0);
    assert_null(file_create(path));
    assert_int_equal(file_lock(path), -1);
    snprintf(path, sizeof path, "%s/folder", dir);
    assert_int_equal(symlink("outside", path), 0);
    assert_int_equal(file_remove_folder(path), 0);
    assert_int_equal(access(path, F_OK), -1);
    FILE *f = file_append(victim);
    assert_non_null(f);
    fputs("+", f);
    rewind(f);
    assert_int_equal(fread(text, 1, sizeof text, f), 6);
    fclose(f);
    f = file_create(victim);
    assert_non_null(f);
    assert_int_equal(fread(text, 1, sizeof text, f), 0);
    fclose(f);
    snprintf(path, sizeof path, "rm -r %s", dir);
    assert_int_equal(system(path), 0);
}

static void medians(void **state)
{
    (void)state;
    double v[] = {3, -1, 10, 2};
    assert_true(median(v, 1) == 3);
    assert_true(median(v, 3) == 3);
    assert_true(v[0] == -1 && v[2] == 10);
    assert_true(median(v, 4) == 2.5);
    assert_true(v[0] == -1 && v[3] == 10);
}

// The first lines of real files, and of a core that has no name yet.
static void processors_have_names(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"processor\t: 0\nmodel name\t: AMD EPYC 9J14\ncores\t: 1\n",
         "AMD EPYC 9J14"},
        {"processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\n"
         "CPU variant\t: 0x0\nCPU part\t: 0xd4f\n",
         "ARM Neoverse V2 (Grace, Graviton4)"},
        {"CPU implementer\t: 0x61\nCPU part\t: 0xd4f\n", "ARM 0x61 0xd4f"},
        {"nothing of this kind\n", ""},
    };
    char path[] = "/tmp/lockstep-cpuinfo-XXXXXX", name[64];
    close(mkstemp(path));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FILE *f = fopen(path, "w");
        fputs(cases[i][0], f);
        fclose(f);
        processor_name(name, sizeof name, path);
        assert_string_equal(name, cases[i][1]);
    }
    remove(path);
    processor_name(name, sizeof name, path);
    assert_string_equal(name, "");
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "peak"))
        return printf("%zu\n", mem_peak()) < 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_thread_has_its_own_message),
        cmocka_unit_test(memory_is_aligned_and_zeroed),
        cmocka_unit_test(large_blocks_return_to_the_system),
        cmocka_unit_test(peak_after_exec),
        cmocka_unit_test(random_numbers_have_their_distribution),
        cmocka_unit_test(hashes_depend_on_every_byte),
        cmocka_unit_test(sizes_are_printed_with_units),
        cmocka_unit_test(a_forbidden_folder_names_the_cause),
        cmocka_unit_test(files_are_replaced_and_locked),
        cmocka_unit_test(half_a_file_is_removed),
        cmocka_unit_test(a_full_disk_is_named_at_the_end),
        cmocka_unit_test(links_and_fifos_are_refused),
        cmocka_unit_test(medians),
        cmocka_unit_test(processors_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
