// test_folder_crash.c - the trainer's checkpoints after a kill and a loss of
// power: every call of a save, then every call of the next save or prune, then
// any loss of unsynced changes.
//
// The functions of train/folder.c run in a real folder. Their calls of the
// system are also noted on the disk of lab 9 (labs/crash.h), where a folder is
// a file that holds its number, and the names in it begin with this number. A
// killed process makes no more changes: its calls fail.

#include "labs/crash.h"
#include "train/folder.h"

#include "base/base.h"
#include "base/file.h"
#include "base/rng.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/test.h"

enum { FDS = 1024, RANDOM = 8, NEVER = 1 << 20 };

static struct disk *disk; // NULL: calls are not noted
static char root[64];
static long left; // calls until the process is killed
static int folders;
static int files[FDS]; // descriptor of the disk and 1, by real descriptor

// The linker sends every call of NAME to __wrap_NAME, and __real_NAME to NAME.
int __real_mkdir(const char *path, mode_t mode);
int __real_openat(int at, const char *path, int flags, ...);
ssize_t __real_write(int fd, const void *p, size_t bytes);
int __real_fsync(int fd);
int __real_close(int fd);
int __real_rename(const char *from, const char *to);
int __real_renameat(int a, const char *from, int b, const char *to);
long __real_syscall(long number, ...);
int __real_unlink(const char *path);
int __real_unlinkat(int at, const char *path, int flags);
int __real_rmdir(const char *path);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_openat(int at, const char *name, int flags, mode_t mode);
ssize_t __wrap_write(int fd, const void *p, size_t bytes);
int __wrap_fsync(int fd);
int __wrap_close(int fd);
int __wrap_rename(const char *from, const char *to);
int __wrap_renameat(int a, const char *from, int b, const char *to);
long __wrap_syscall(long number, long a, long b, long c, long d, long e);
int __wrap_unlink(const char *path);
int __wrap_unlinkat(int at, const char *path, int flags);
int __wrap_rmdir(const char *path);

// ---- the folders of the disk

// Reads a small file of a disk. Returns false if there is none.
static bool read_disk(struct disk *d, const char *key, char text[128])
{
    int file = disk_open(d, key);
    if (file < 0)
        return false;
    long n = disk_read(d, file, text, 127);
    assert_true(n >= 0);
    text[n] = '\0';
    assert_int_equal(disk_close(d, file), 0);
    return true;
}

// The name on the disk of a path below the root: "FOLDER/NAME".
static void key_of(const char *path, char key[DISK_NAME])
{
    char text[128];
    int folder = 0;
    assert_memory_equal(path, root, strlen(root));
    path += strlen(root) + 1;
    for (const char *slash; (slash = strchr(path, '/')); path = slash + 1) {
        snprintf(key, DISK_NAME, "%d/%.*s", folder, (int)(slash - path), path);
        assert_true(read_disk(disk, key, text));
        assert_int_equal(sscanf(text, "folder %d", &folder), 1);
    }
    snprintf(key, DISK_NAME, "%d/%s", folder, path);
}

static void path_of(int fd, const char *name, char path[PATH_MAX])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, PATH_MAX - 64);
    assert_true(n > 0);
    snprintf(path + n, (size_t)(PATH_MAX - n), "%s%s", name ? "/" : "",
             name ? name : "");
}

// Counts a call that changes the disk. Returns false if the process is dead.
static bool is_alive(void)
{
    left -= disk && left > 0;
    errno = EIO;
    return !disk || left > 0;
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    char key[DISK_NAME], text[32];
    if (!is_alive())
        return -1;
    if (disk) {
        key_of(path, key);
        snprintf(text, sizeof text, "folder %d", ++folders);
        int file = disk_create(disk, key);
        assert_true(file >= 0);
        disk_write(disk, file, text, strlen(text));
        disk_sync(disk, file);
        disk_close(disk, file);
    }
    return __real_mkdir(path, mode);
}

int __wrap_openat(int at, const char *name, int flags, mode_t mode)
{
    char path[PATH_MAX], key[DISK_NAME];
    if (!is_alive())
        return -1;
    int fd = __real_openat(at, name, flags, mode);
    if (disk && fd >= 0 && flags & O_CREAT) {
        path_of(at, name, path);
        key_of(path, key);
        assert_true(fd < FDS);
        files[fd] = 1 + disk_create(disk, key);
        assert_true(files[fd] > 0);
    }
    return fd;
}

ssize_t __wrap_write(int fd, const void *p, size_t bytes)
{
    if (fd >= FDS || !disk || !files[fd])
        return __real_write(fd, p, bytes);
    if (!is_alive())
        return -1;
    assert_int_equal(disk_write(disk, files[fd] - 1, p, bytes), bytes);
    return __real_write(fd, p, bytes);
}

// It is not called: the disk decides what survives.
int __wrap_fsync(int fd)
{
    char path[PATH_MAX], key[DISK_NAME], text[128];
    int folder = 0;
    if (!disk)
        return 0;
    if (!is_alive())
        return -1;
    if (files[fd])
        return disk_sync(disk, files[fd] - 1);
    path_of(fd, NULL, path);
    if (strcmp(path, root) != 0) {
        key_of(path, key);
        assert_true(read_disk(disk, key, text));
        assert_int_equal(sscanf(text, "folder %d", &folder), 1);
    }
    snprintf(key, sizeof key, "%d/", folder);
    crash_sync_names(disk, key);
    return 0;
}

int __wrap_close(int fd)
{
    if (fd >= 0 && fd < FDS && disk && files[fd]) {
        disk_close(disk, files[fd] - 1);
        files[fd] = 0;
    }
    return __real_close(fd);
}

int __wrap_rename(const char *from, const char *to)
{
    char old[DISK_NAME], new[DISK_NAME];
    if (!is_alive())
        return -1;
    if (disk) {
        key_of(from, old);
        key_of(to, new);
        assert_int_equal(disk_rename(disk, old, new), 0);
    }
    return __real_rename(from, to);
}

int __wrap_renameat(int a, const char *from, int b, const char *to)
{
    char old[PATH_MAX], new[PATH_MAX];
    path_of(a, from, old);
    path_of(b, to, new);
    return __wrap_rename(old, new);
}

// The exchange of two names has no function in older C libraries.
long __wrap_syscall(long number, long a, long b, long c, long d, long e)
{
    char one[DISK_NAME], other[DISK_NAME];
    if (number != SYS_renameat2)
        return __real_syscall(number, a, b, c, d, e);
    if (!is_alive())
        return -1;
    if (disk) {
        key_of((const char *)b, one);
        key_of((const char *)d, other);
        assert_int_equal(crash_exchange(disk, one, other), 0);
    }
    return __real_syscall(number, a, b, c, d, e);
}

int __wrap_unlink(const char *path)
{
    char key[DISK_NAME];
    if (!is_alive())
        return -1;
    if (disk) {
        key_of(path, key);
        disk_remove(disk, key);
    }
    return __real_unlink(path);
}

int __wrap_unlinkat(int at, const char *name, int flags)
{
    char path[PATH_MAX];
    assert_int_equal(flags, 0);
    path_of(at, name, path);
    return __wrap_unlink(path);
}

int __wrap_rmdir(const char *path)
{
    char key[DISK_NAME];
    if (!is_alive())
        return -1;
    if (disk) {
        key_of(path, key);
        disk_remove(disk, key);
    }
    return __real_rmdir(path);
}

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
    snprintf(next, sizeof next, "%s/.next-%d", root, n);
    return folder_make(next) || folder_write(next, "state.json", text) ||
                   folder_finish(next, root, name, keep)
               ? -1
               : 0;
}

// Removes all that is in the root, also files in its folders.
static void clear_root(void)
{
    struct disk *was = disk;
    disk = NULL;
    DIR *d = opendir(root);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", root, e->d_name);
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && unlink(path))
            assert_int_equal(file_remove_folder(path), 0);
    }
    closedir(d);
    disk = was;
}

// Makes a new disk with checkpoints 1 and 2.
static void begin(void)
{
    clear_root();
    crash_free(&disk);
    disk = crash_new();
    assert_non_null(disk);
    memset(files, 0, sizeof files);
    left = NEVER;
    folders = turn = 0;
    assert_int_equal(save(1, 2), 0);
    assert_int_equal(save(2, 2), 0);
}

// Kills the process in its call number `call`. Returns whether it came so far.
static bool kill_save(int n, int keep, long call)
{
    left = call;
    save(n, keep);
    bool killed = left == 0;
    left = NEVER;
    return killed;
}

static bool kill_prune(long call)
{
    left = call;
    folder_prune(root, 1);
    bool killed = left == 0;
    left = NEVER;
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
    snprintf(path, PATH_MAX, "%s", root);
    for (int i = 0; folder > 0 && disk_list(d, i, key) == 0; i++)
        if (read_disk(d, key, text) &&
            sscanf(text, "folder %d", &number) == 1 && number == folder) {
            snprintf(path, PATH_MAX, "%s/%s", root, strchr(key, '/') + 1);
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
            assert_true(read_disk(d, key, text));
            bool is_folder = sscanf(text, "folder %d", &number) == 1;
            if (is_folder == files_too || !folder_path(d, atoi(key), path))
                continue;
            size_t n = strlen(path);
            snprintf(path + n, sizeof path - n, "/%s", strchr(key, '/') + 1);
            if (is_folder)
                assert_int_equal(__real_mkdir(path, 0700), 0);
            else
                write_real(path, text);
        }
}

// The checkpoint is whole, and of this turn or a later one.
static void assert_whole(int n, int first)
{
    char path[128], ought[64];
    bool found = false;
    snprintf(path, sizeof path, "%s/checkpoint-%d", root, n);
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
    struct disk *was = disk;
    assert_non_null(after);
    disk = NULL;
    make_real(after);
    int newest = folder_newest(root, INT_MAX), latest = folder_latest(root);
    assert_true(newest >= least);
    for (int n = newest; n >= 0; n = folder_newest(root, n))
        assert_whole(n, 0);
    if (named && latest >= 0)
        assert_whole(latest, 0);
    if (saved)
        assert_whole(newest, turn);
    disk = was;
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
    int pending = crash_pending(disk);
    bool by_mask = pending <= 4;
    uint64_t states = by_mask ? (uint64_t)1 << pending : RANDOM;
    for (uint64_t i = 0; i < states; i++) {
        struct loss loss = {i, by_mask};
        struct disk *after = crash_after(disk, is_lost, &loss, i % 2);
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
    snprintf(root, sizeof root, "%s/lockstep-crash-XXXXXX", above);
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    crash_free(&disk);
    clear_root();
    return rmdir(root);
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
