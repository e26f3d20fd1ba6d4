// test_disk.c - the emulated disk on which the checkpoint lab is graded: what
// is left on it after a kill, and after a loss of power.

#include "labs/crash.h"

#include <stdio.h>

#include "tests/test.h"

// The content of a file, at most 15 bytes; "-" if there is no file of this
// name.
static const char *content(struct disk *d, const char *name)
{
    static char text[16];
    int file = disk_open(d, name);
    if (file < 0)
        return "-";
    long n = disk_read(d, file, text, sizeof text - 1);
    assert_true(n >= 0);
    text[n] = '\0';
    assert_int_equal(disk_close(d, file), 0);
    return text;
}

static void put(struct disk *d, const char *name, const char *text, bool sync)
{
    int file = disk_create(d, name);
    assert_true(file >= 0);
    assert_int_equal(disk_write(d, file, text, strlen(text)), strlen(text));
    if (sync)
        assert_int_equal(disk_sync(d, file), 0);
    assert_int_equal(disk_close(d, file), 0);
}

static bool by_mask(const void *ctx, int i)
{
    return *(const unsigned *)ctx >> i & 1;
}

// Checks the content of a file after a loss of power. Of the pending changes,
// those whose bit in `mask` is set are lost.
static void assert_after(struct disk *d, unsigned mask, bool torn,
                         const char *name, const char *text)
{
    struct disk *after = crash_after(d, by_mask, &mask, torn);
    assert_non_null(after);
    assert_int_equal(crash_pending(after), 0);
    assert_string_equal(content(after, name), text);
    crash_free(&after);
}

static void names_and_bytes_are_kept(void **state)
{
    (void)state;
    char name[DISK_NAME];
    struct disk *d = crash_new();
    put(d, "a", "one", false);
    put(d, "b", "two", false);
    assert_string_equal(content(d, "a"), "one");
    assert_int_equal(disk_rename(d, "b", "a"), 0);
    assert_string_equal(content(d, "a"), "two");
    assert_string_equal(content(d, "b"), "-");
    assert_int_equal(disk_list(d, 0, name), 0);
    assert_string_equal(name, "a");
    assert_int_equal(disk_list(d, 1, name), -1);
    assert_int_equal(crash_stored(d), 3);
    put(d, "a", "", false);
    assert_string_equal(content(d, "a"), "");
    assert_int_equal(disk_remove(d, "a"), 0);
    assert_int_equal(disk_remove(d, "a"), -1);
    assert_int_equal(disk_rename(d, "a", "b"), -1);
    assert_int_equal(disk_open(d, "a"), -1);
    assert_int_equal(disk_create(d, ""), -1);
    assert_int_equal(disk_write(d, 3, "x", 1), -1);
    assert_int_equal(disk_sync(d, -1), -1);
    crash_free(&d);
    crash_free(&d);
}

static void a_loss_of_power_takes_what_is_not_synced(void **state)
{
    (void)state;
    struct disk *d = crash_new();
    put(d, "a", "text", false); // pending: its name, its bytes
    assert_int_equal(crash_pending(d), 2);
    assert_after(d, 0, false, "a", "text");
    assert_after(d, 1, false, "a", "-");
    assert_after(d, 2, false, "a", "");
    assert_after(d, 0, true, "a", "te");
    put(d, "a", "text", true);
    assert_int_equal(disk_sync_folder(d), 0);
    // the next two lines leave three changes pending: the bytes of the first a,
    // the name of next, the rename
    put(d, "next", "newer", true);
    assert_int_equal(disk_rename(d, "next", "a"), 0);
    assert_int_equal(crash_pending(d), 3);
    assert_after(d, 7, false, "a", "text");
    assert_after(d, 1, false, "a", "newer");
    assert_after(d, 3, false, "a", "newer"); // renamed, though next is lost
    assert_after(d, 5, false, "a", "text");
    assert_after(d, 5, false, "next", "newer");
    assert_int_equal(disk_sync_folder(d), 0);
    assert_after(d, 7, true, "a", "newer");
    assert_after(d, 7, true, "next", "-");
    crash_free(&d);
}

static void lost_bytes_leave_a_hole(void **state)
{
    (void)state;
    struct disk *d = crash_new();
    int file = disk_create(d, "a");
    disk_write(d, file, "12", 2);
    disk_write(d, file, "34", 2);
    unsigned first = 2;
    struct disk *after = crash_after(d, by_mask, &first, false);
    char is[4];
    int there = disk_open(after, "a");
    assert_int_equal(disk_read(after, there, is, 4), 4);
    assert_memory_equal(is,
                        "\0\0"
                        "34",
                        4);
    crash_free(&after);
    crash_free(&d);
}

static void a_kill_ends_a_call(void **state)
{
    (void)state;
    static const char *const left[] = {"-", "", "te", "text"};
    // killed in create, in write, in the middle of write, and in close
    for (int i = 0; i < 4; i++) {
        struct disk *d = crash_new();
        jmp_buf leave;
        volatile bool returned = false;
        crash_at(d, i == 0 ? 1 : i < 3 ? 2 : 3, i == 2, &leave);
        if (!setjmp(leave)) {
            put(d, "a", "text", false);
            returned = true;
        }
        assert_false(returned);
        struct disk *after = crash_after(d, NULL, NULL, false);
        assert_string_equal(content(after, "a"), left[i]);
        crash_free(&after);
        crash_free(&d);
    }
}

static void a_full_disk_writes_less(void **state)
{
    (void)state;
    struct disk *d = crash_new();
    int file = disk_create(d, "a");
    crash_set_space(d, 3);
    assert_int_equal(disk_write(d, file, "text", 4), 3);
    assert_int_equal(disk_write(d, file, "t", 1), -1);
    assert_int_equal(disk_write(d, file, "", 0), 0);
    crash_set_space(d, SIZE_MAX);
    assert_int_equal(disk_write(d, file, "t", 1), 1);
    assert_int_equal(disk_close(d, file), 0);
    assert_string_equal(content(d, "a"), "text");
    crash_free(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_bytes_are_kept),
        cmocka_unit_test(a_loss_of_power_takes_what_is_not_synced),
        cmocka_unit_test(lost_bytes_leave_a_hole),
        cmocka_unit_test(a_kill_ends_a_call),
        cmocka_unit_test(a_full_disk_writes_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
