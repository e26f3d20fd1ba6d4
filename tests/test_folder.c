// test_folder.c - checkpoint folders: each is whole or absent, and the newest
// are kept.

#include "train/folder.h"
#include "train/whole.h"

#include "base/base.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

static char dir[64];

static int make_dir(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/lockstep-folder-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

static char *under(const char *name)
{
    static char path[4][256];
    static int k;
    char *p = path[k++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", dir, name);
    return p;
}

static void save(int n, const char *text)
{
    char name[64];
    snprintf(name, sizeof name, "checkpoint-%d", n);
    assert_int_equal(folder_make(under(".next-0")), 0);
    assert_int_equal(folder_write(under(".next-0"), "state.json", text), 0);
    assert_int_equal(folder_replace(under(".next-0"), under(name)), 0);
}

static void assert_text(const char *folder, const char *want)
{
    char *text = folder_read(under(folder), "state.json");
    assert_non_null(text);
    assert_string_equal(text, want);
    mem_free(text);
}

static void the_newest_are_kept(void **state)
{
    (void)state;
    assert_int_equal(folder_newest(dir, INT_MAX), -1);
    int steps[] = {100, 20, 300, 3};
    for (int i = 0; i < 4; i++)
        save(steps[i], "x");
    assert_int_equal(folder_newest(dir, INT_MAX), 300);
    assert_int_equal(folder_prune(dir, 0), 0);
    assert_int_equal(access(under("checkpoint-3"), F_OK), 0);
    assert_int_equal(folder_make(under(".next-7")), 0);
    assert_int_equal(folder_prune(dir, 2), 0);
    assert_int_equal(access(under("checkpoint-300"), F_OK), 0);
    assert_int_equal(access(under("checkpoint-100"), F_OK), 0);
    assert_int_equal(access(under("checkpoint-20"), F_OK), -1);
    assert_int_equal(access(under("checkpoint-3"), F_OK), -1);
    assert_int_equal(access(under(".next-7"), F_OK), -1);
    assert_int_equal(mkdir(under("checkpoint-9x"), 0777), 0);
    assert_int_equal(folder_newest(dir, INT_MAX), 300);
}

// A worker that is behind ends its save after another worker's later one.
static void latest_does_not_go_back(void **state)
{
    (void)state;
    for (int n = 13; n >= 12; n--) {
        char name[64];
        snprintf(name, sizeof name, "checkpoint-%d", n);
        assert_int_equal(folder_make(under(".next-0")), 0);
        assert_int_equal(folder_finish(under(".next-0"), dir, name, 0), 0);
        assert_int_equal(folder_latest(dir), 13);
    }
    assert_int_equal(access(under("checkpoint-12"), F_OK), 0);
}

// What a reader holds stays until a later prune.
static void held_folders_stay(void **state)
{
    (void)state;
    save(1, "x");
    save(2, "x");
    save(3, "x");
    int held = folder_hold(under("checkpoint-1"));
    assert_true(held >= 0);
    assert_int_equal(folder_prune(dir, 1), 0);
    assert_text("checkpoint-1", "x");
    assert_int_equal(access(under("checkpoint-2"), F_OK), -1);
    close(held);
    assert_int_equal(folder_prune(dir, 1), 0);
    assert_int_equal(access(under("checkpoint-1"), F_OK), -1);
    assert_int_equal(folder_hold(under("checkpoint-1")), -1);
}

static void a_folder_is_replaced_as_a_whole(void **state)
{
    (void)state;
    save(5, "old");
    assert_text("checkpoint-5", "old");
    save(5, "new");
    assert_text("checkpoint-5", "new");
}

// The writer is killed at a random moment, again and again. checkpoint-5 is
// never missing and never incomplete.
static void a_killed_writer_leaves_a_whole_folder(void **state)
{
    (void)state;
    save(5, "0");
    for (int round = 0; round < 20; round++) {
        pid_t child = fork();
        if (child == 0)
            for (int i = 0;; i++)
                save(5, i % 2 ? "0" : "1");
        usleep(1000 * (unsigned)(1 + round * 7 % 23));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        char *text = folder_read(under("checkpoint-5"), "state.json");
        assert_non_null(text);
        assert_true(!strcmp(text, "0") || !strcmp(text, "1"));
        mem_free(text);
        assert_int_equal(folder_prune(dir, 1), 0);
        assert_int_equal(folder_newest(dir, INT_MAX), 5);
    }
}

// A forged state.json can have a right hash of itself. Wrong values in the
// place of the files' hashes are reported as damage, and do not crash the
// reader.
static void forged_hashes_are_damage(void **state)
{
    (void)state;
    static const char *const forged[] = {"[\"model.safetensors\"]", "[[]]",
                                         "\"none\"", "{\"../x\": \"0\"}",
                                         "{\"config.json\": [1]}"};
    for (size_t i = 0; i < sizeof forged / sizeof *forged; i++) {
        char text[128], hash[17];
        snprintf(text, sizeof text, "{\"files\":%s}", forged[i]);
        cJSON *j = cJSON_Parse(text);
        char *plain = cJSON_PrintUnformatted(j);
        snprintf(hash, sizeof hash, "%016llx",
                 (unsigned long long)hash_bytes(plain, strlen(plain)));
        cJSON_AddStringToObject(j, "hash_xxh3", hash);
        char *whole = cJSON_PrintUnformatted(j);
        assert_int_equal(folder_write(dir, "state.json", whole), 0);
        assert_int_equal(whole_check(dir, true), -1);
        assert_non_null(strstr(fail_message(), "damaged"));
        free(whole);
        free(plain);
        cJSON_Delete(j);
    }
}

static void bad_paths_are_refused(void **state)
{
    (void)state;
    assert_int_equal(folder_write("/dev/null", "a", "b"), -1);
    assert_non_null(strstr(fail_message(), "/dev/null"));
    assert_null(folder_read(dir, "absent"));
    assert_int_equal(folder_make("/dev/null/x"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_newest_are_kept, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(latest_does_not_go_back, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(held_folders_stay, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(a_folder_is_replaced_as_a_whole,
                                        make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(a_killed_writer_leaves_a_whole_folder,
                                        make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(forged_hashes_are_damage, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(bad_paths_are_refused, make_dir,
                                        remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
