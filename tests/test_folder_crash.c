// test_folder_crash.c - the trainer's checkpoints after a kill and a loss of
// power: every call of a save, then every call of the next save or prune, then
// any loss of unsynced changes.
//
// The functions of train/folder.c run in a real folder, and their calls of the
// system are noted (noted_calls.h).

#include "tests/noted_calls.h"
#include "train/folder.h"

#include "base/base.h"
#include "base/file.h"
#include "base/rng.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test.h"

enum { RANDOM = 8, NEVER = 1 << 20 };

// ---- saving

static int turn; // of the save: a step may be saved again

static void text_of(int n, int its_turn, char text[64])
{
    snprintf(text, 64, "{\"step\": %d, \"turn\": %d}", n, its_turn);
}

// What train/save.c does: one small file takes the place of all files.
static int save(int n, int keep)
{
    char next[128], name[64], text[64];
    text_of(n, turn, text);
    snprintf(name, sizeof name, "checkpoint-%d", n);
    snprintf(next, sizeof next, "%s/.next-%d", noted.root, n);
    return folder_make(next) || folder_write(next, "state.json", text) ||
                   folder_finish(next, noted.root, name, keep)
               ? -1
               : 0;
}

// Removes all that is in the root, also files in its folders.
static void clear_root(void)
{
    struct disk *was = noted.disk;
    noted.disk = NULL;
    DIR *d = opendir(noted.root);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", noted.root, e->d_name);
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && unlink(path))
            assert_int_equal(file_remove_folder(path), 0);
    }
    closedir(d);
    noted.disk = was;
}

// Makes a new disk with checkpoints 1 and 2.
static void begin(void)
{
    clear_root();
    crash_free(&noted.disk);
    noted.disk = crash_new();
    assert_non_null(noted.disk);
    memset(noted.files, 0, sizeof noted.files);
    noted.left = NEVER;
    noted.folders = turn = 0;
    assert_int_equal(save(1, 2), 0);
    assert_int_equal(save(2, 2), 0);
}

// Kills the process in its call number `call`. Returns whether it came so far.
static bool kill_save(int n, int keep, long call)
{
    noted.left = call;
    save(n, keep);
    bool killed = noted.left == 0;
    noted.left = NEVER;
    return killed;
}

static bool kill_prune(long call)
{
    noted.left = call;
    folder_prune(noted.root, 1);
    bool killed = noted.left == 0;
    noted.left = NEVER;
    return killed;
}

// ---- what the next process finds

static void write_real(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

// The path of a folder of the disk, or false if it has no name.
static bool folder_path(struct disk *d, int folder, char path[PATH_MAX])
{
    char key[DISK_NAME], text[128];
    int number;
    snprintf(path, PATH_MAX, "%s", noted.root);
    for (int i = 0; folder > 0 && disk_list(d, i, key) == 0; i++)
        if (noted_read(d, key, text) &&
            sscanf(text, "folder %d", &number) == 1 && number == folder) {
            snprintf(path, PATH_MAX, "%s/%s", noted.root, strchr(key, '/') + 1);
            return true;
        }
    return folder == 0;
}

// Makes the root hold what the disk holds: first its folders.
static void make_real(struct disk *d)
{
    char key[DISK_NAME], text[128], path[PATH_MAX];
    int number;
    clear_root();
    for (int files_too = 0; files_too < 2; files_too++)
        for (int i = 0; disk_list(d, i, key) == 0; i++) {
            assert_true(noted_read(d, key, text));
            bool is_folder = sscanf(text, "folder %d", &number) == 1;
            if (is_folder == files_too || !folder_path(d, atoi(key), path))
                continue;
            size_t n = strlen(path);
            snprintf(path + n, sizeof path - n, "/%s", strchr(key, '/') + 1);
            if (is_folder)
                assert_int_equal(mkdir(path, 0700), 0);
            else
                write_real(path, text);
        }
}

// The checkpoint is whole, and of this turn or a later one.
static void assert_whole(int n, int first)
{
    char path[128], ought[64];
    bool found = false;
    snprintf(path, sizeof path, "%s/checkpoint-%d", noted.root, n);
    char *text = folder_read(path, "state.json");
    assert_non_null(text);
    for (int its_turn = first; its_turn <= turn; its_turn++) {
        text_of(n, its_turn, ought);
        found = found || strcmp(text, ought) == 0;
    }
    assert_true(found);
    mem_free(text);
}

// At least one checkpoint is there, not older than `least`, and all are whole.
// After a save the one that `latest` names is there, too. saved: the newest one
// is that of this turn.
static void assert_sound(struct disk *after, int least, bool named, bool saved)
{
    struct disk *was = noted.disk;
    assert_non_null(after);
    noted.disk = NULL;
    make_real(after);
    int newest = folder_newest(noted.root, INT_MAX),
        latest = folder_latest(noted.root);
    assert_true(newest >= least);
    for (int n = newest; n >= 0; n = folder_newest(noted.root, n))
        assert_whole(n, 0);
    if (named && latest >= 0)
        assert_whole(latest, 0);
    if (saved)
        assert_whole(newest, turn);
    noted.disk = was;
}

struct loss {
    uint64_t key;
    bool by_mask;
};

static bool is_lost(const void *ctx, int i)
{
    const struct loss *l = ctx;
    return l->by_mask ? l->key >> i & 1 : rng_u64(l->key, (uint64_t)i) & 1;
}

// Tries what a loss of power can leave: of up to four pending changes all
// subsets, of more some.
static void lose_power(int least, bool named, bool saved)
{
    int pending = crash_pending(noted.disk);
    bool by_mask = pending <= 4;
    uint64_t states = by_mask ? (uint64_t)1 << pending : RANDOM;
    for (uint64_t i = 0; i < states; i++) {
        struct loss loss = {i, by_mask};
        struct disk *after = crash_after(noted.disk, is_lost, &loss, i % 2);
        assert_sound(after, least, named, saved);
        crash_free(&after);
    }
}

// ---- tests

static void a_save_is_whole_or_absent(void **state)
{
    (void)state;
    bool killed = true;
    for (long call = 1; killed; call++) {
        begin();
        killed = kill_save(3, 2, call);
        lose_power(killed ? 2 : 3, true, false);
    }
}

static void a_step_that_is_saved_again_is_the_old_one_or_the_new(void **state)
{
    (void)state;
    bool killed = true;
    for (long call = 1; killed; call++) {
        begin();
        turn = 1;
        killed = kill_save(2, 2, call);
        lose_power(2, true, !killed);
    }
}

static void a_save_after_a_killed_one_keeps_a_checkpoint(void **state)
{
    (void)state;
    bool killed = true;
    for (long call = 1; killed; call++) {
        bool again = true;
        for (long then = 1; again; then++) {
            begin();
            killed = kill_save(3, 2, call);
            again = kill_save(4, 1, then);
            lose_power(again ? 2 : 4, true, false);
        }
    }
}

static void a_prune_after_a_killed_save_keeps_a_checkpoint(void **state)
{
    (void)state;
    bool killed = true;
    for (long call = 1; killed; call++) {
        bool again = true;
        for (long then = 1; again; then++) {
            begin();
            killed = kill_save(3, 2, call);
            again = kill_prune(then);
            lose_power(killed ? 2 : 3, false, false);
        }
    }
}

static int make_root(void **state)
{
    (void)state;
    // In memory, where there is such a folder: some 100000 files are made.
    const char *above = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
    snprintf(noted.root, sizeof noted.root, "%s/lockstep-crash-XXXXXX", above);
    return mkdtemp(noted.root) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    crash_free(&noted.disk);
    clear_root();
    return rmdir(noted.root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_save_is_whole_or_absent),
        cmocka_unit_test(a_step_that_is_saved_again_is_the_old_one_or_the_new),
        cmocka_unit_test(a_save_after_a_killed_one_keeps_a_checkpoint),
        cmocka_unit_test(a_prune_after_a_killed_save_keeps_a_checkpoint),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
