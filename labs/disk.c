// disk.c - a disk as the list of all its changes.
//
// crash_after() computes a state after a loss of power: on an empty disk it
// does all changes again, except those that are lost.

#include "labs/crash.h"

#include <stdlib.h>
#include <string.h>

enum { FILES = 256, OPEN = 16, NAMES = 64 };

// The last three change nothing: they are in the list for crash_show().
enum kind { CREATE, WRITE, RENAME, REMOVE, EXCHANGE, SYNC, SYNC_NAMES, MARK };

struct change {
    enum kind kind;
    bool synced;
    int file;             // CREATE, WRITE; RENAME, EXCHANGE: that of `name`
    int other;            // EXCHANGE: the file of `old`
    char name[DISK_NAME]; // CREATE, REMOVE, EXCHANGE; RENAME: the new one; MARK
    char old[DISK_NAME];  // RENAME, EXCHANGE
    size_t off, bytes;    // WRITE
    char *data;
};

struct disk {
    struct change *changes;
    int n, capacity;
    struct {
        char *data;
        size_t bytes;
    } files[FILES];
    int n_files;
    struct {
        char name[DISK_NAME];
        int file;
    } names[NAMES];
    int n_names;
    struct {
        bool used, writes;
        int file;
        size_t at; // the next byte to read
    } open[OPEN];
    long calls_left; // until the process is killed; 0: never
    bool half;       // a write that is killed writes half of its bytes
    jmp_buf *leave;  // where control goes when the process is killed
    int syncs_left;  // until a sync fails; 0: none does
    size_t space;    // bytes that can still be written; SIZE_MAX: any number
};

struct disk *crash_new(void)
{
    struct disk *d = calloc(1, sizeof *d);
    if (d)
        d->space = SIZE_MAX;
    return d;
}

void crash_free(struct disk **d)
{
    for (int i = 0; *d && i < (*d)->n; i++)
        free((*d)->changes[i].data);
    for (int i = 0; *d && i < (*d)->n_files; i++)
        free((*d)->files[i].data);
    if (*d)
        free((*d)->changes);
    free(*d);
    *d = NULL;
}

void crash_at(struct disk *d, long call, bool half, jmp_buf *leave)
{
    d->calls_left = call;
    d->half = half;
    d->leave = leave;
}

void crash_set_space(struct disk *d, size_t bytes)
{
    d->space = bytes;
}

void crash_fail_sync(struct disk *d, int number)
{
    d->syncs_left = number;
}

void crash_sync_names(struct disk *d, const char *prefix)
{
    for (int i = 0; i < d->n; i++)
        if (d->changes[i].kind != WRITE &&
            strncmp(d->changes[i].name, prefix, strlen(prefix)) == 0)
            d->changes[i].synced = true;
}

int crash_pending(const struct disk *d)
{
    int pending = 0;
    for (int i = 0; i < d->n; i++)
        pending += !d->changes[i].synced;
    return pending;
}

size_t crash_stored(const struct disk *d)
{
    size_t sum = 0;
    for (int i = 0; i < d->n_names; i++)
        sum += d->files[d->names[i].file].bytes;
    return sum;
}

static int find(const struct disk *d, const char *name)
{
    int i = 0;
    while (i < d->n_names && strcmp(d->names[i].name, name) != 0)
        i++;
    return i < d->n_names ? i : -1;
}

static void forget(struct disk *d, const char *name)
{
    int i = find(d, name);
    if (i >= 0)
        d->names[i] = d->names[--d->n_names];
}

static int set_name(struct disk *d, const char *name, int file)
{
    int i = find(d, name);
    if (i < 0 && d->n_names == NAMES)
        return -1;
    i = i < 0 ? d->n_names++ : i;
    memset(d->names[i].name, 0, DISK_NAME);
    memcpy(d->names[i].name, name, strlen(name));
    d->names[i].file = file;
    return 0;
}

static int put(struct disk *d, const struct change *c, size_t bytes)
{
    size_t end = c->off + bytes, now = d->files[c->file].bytes;
    char *data = d->files[c->file].data;
    if (end > now) {
        data = realloc(data, end);
        if (!data)
            return -1;
        memset(data + now, 0, end - now); // a hole where a write was lost
        d->files[c->file].data = data;
        d->files[c->file].bytes = end;
    }
    if (bytes)
        memcpy(data + c->off, c->data, bytes);
    return 0;
}

// Does a change: all of it, or the first `bytes` bytes of a write.
static int apply(struct disk *d, const struct change *c, size_t bytes)
{
    if (c->kind >= SYNC)
        return 0;
    if (c->kind == REMOVE || c->kind == RENAME)
        forget(d, c->kind == REMOVE ? c->name : c->old);
    if (c->kind == WRITE)
        return put(d, c, bytes);
    if (c->kind == EXCHANGE && set_name(d, c->old, c->other))
        return -1;
    return c->kind == REMOVE ? 0 : set_name(d, c->name, c->file);
}

// Notes a change and does it. Takes c.data, also if it fails.
static int change(struct disk *d, struct change c)
{
    if (d->n == d->capacity) {
        int capacity = d->capacity ? 2 * d->capacity : 64;
        void *more = realloc(d->changes, (size_t)capacity * sizeof *d->changes);
        if (!more) {
            free(c.data);
            return -1;
        }
        d->changes = more;
        d->capacity = capacity;
    }
    d->changes[d->n++] = c;
    return apply(d, &c, c.bytes);
}

static int note(struct disk *d, enum kind kind, int file, const char *text)
{
    struct change c = {.kind = kind, .synced = true, .file = file};
    snprintf(c.name, sizeof c.name, "%s", text);
    return change(d, c);
}

void crash_mark(struct disk *d, const char *text)
{
    (void)note(d, MARK, 0, text); // without memory the log lacks a line
}

struct disk *crash_after(const struct disk *d,
                         bool (*is_lost)(const void *ctx, int i),
                         const void *ctx, bool torn)
{
    struct disk *after = crash_new();
    int pending = crash_pending(d), last = -1;
    bool whole = after;
    for (int i = d->n - 1, k = pending; i >= 0 && torn && last < 0; i--)
        if (!d->changes[i].synced && !(is_lost && is_lost(ctx, --k)) &&
            d->changes[i].kind == WRITE)
            last = i;
    if (whole)
        after->n_files = d->n_files;
    for (int i = 0, k = 0; whole && i < d->n; i++) {
        const struct change *c = &d->changes[i];
        if (!c->synced && is_lost && is_lost(ctx, k++))
            continue;
        whole = apply(after, c, i == last ? c->bytes / 2 : c->bytes) == 0;
    }
    if (!whole)
        crash_free(&after);
    return after;
}

// Begins every call of disk.h. Jumps away if the process is killed in this
// call.
static void enter(struct disk *d)
{
    if (d->calls_left > 0 && --d->calls_left == 0)
        longjmp(*d->leave, 1);
}

static bool is_name(const char *name)
{
    return name[0] && strlen(name) < DISK_NAME;
}

static int descriptor(struct disk *d, int file, bool writes)
{
    for (int i = 0; i < OPEN; i++)
        if (!d->open[i].used) {
            d->open[i].used = true;
            d->open[i].writes = writes;
            d->open[i].file = file;
            d->open[i].at = 0;
            return i;
        }
    return -1;
}

int disk_create(struct disk *d, const char *name)
{
    struct change c = {.kind = CREATE, .file = d->n_files};
    enter(d);
    if (!is_name(name) || d->n_files == FILES)
        return -1;
    memcpy(c.name, name, strlen(name));
    d->n_files++;
    return change(d, c) ? -1 : descriptor(d, c.file, true);
}

int disk_open(struct disk *d, const char *name)
{
    enter(d);
    int i = find(d, name);
    return i < 0 ? -1 : descriptor(d, d->names[i].file, false);
}

static bool is_open(const struct disk *d, int file)
{
    return file >= 0 && file < OPEN && d->open[file].used;
}

long disk_write(struct disk *d, int file, const void *p, size_t bytes)
{
    if (d->calls_left == 1 && d->half && is_open(d, file)) {
        d->calls_left = 0;
        disk_write(d, file, p, bytes / 2);
        d->calls_left = 1;
    }
    enter(d);
    if (!is_open(d, file) || !d->open[file].writes)
        return -1;
    struct change c = {.kind = WRITE,
                       .file = d->open[file].file,
                       .off = d->files[d->open[file].file].bytes,
                       .bytes = bytes < d->space ? bytes : d->space};
    if (c.bytes == 0)
        return bytes ? -1 : 0;
    c.data = malloc(c.bytes);
    if (!c.data)
        return -1;
    memcpy(c.data, p, c.bytes);
    if (d->space != SIZE_MAX)
        d->space -= c.bytes;
    return change(d, c) ? -1 : (long)c.bytes;
}

long disk_read(struct disk *d, int file, void *p, size_t bytes)
{
    enter(d);
    if (!is_open(d, file))
        return -1;
    size_t at = d->open[file].at, end = d->files[d->open[file].file].bytes;
    size_t n = end - at < bytes ? end - at : bytes;
    if (n)
        memcpy(p, d->files[d->open[file].file].data + at, n);
    d->open[file].at += n;
    return (long)n;
}

static bool sync_fails(struct disk *d)
{
    return d->syncs_left > 0 && --d->syncs_left == 0;
}

int disk_sync(struct disk *d, int file)
{
    enter(d);
    if (!is_open(d, file) || sync_fails(d))
        return -1;
    for (int i = 0; i < d->n; i++)
        if (d->changes[i].kind == WRITE &&
            d->changes[i].file == d->open[file].file)
            d->changes[i].synced = true;
    return note(d, SYNC, d->open[file].file, "");
}

int disk_close(struct disk *d, int file)
{
    enter(d);
    if (!is_open(d, file))
        return -1;
    d->open[file].used = false;
    return 0;
}

int disk_rename(struct disk *d, const char *from, const char *to)
{
    struct change c = {.kind = RENAME};
    enter(d);
    int i = find(d, from);
    if (i < 0 || !is_name(to))
        return -1;
    c.file = d->names[i].file;
    memcpy(c.old, from, strlen(from));
    memcpy(c.name, to, strlen(to));
    return change(d, c);
}

int crash_exchange(struct disk *d, const char *a, const char *b)
{
    struct change c = {.kind = EXCHANGE};
    int i = find(d, a), k = find(d, b);
    if (i < 0 || k < 0)
        return -1;
    c.file = d->names[i].file;
    c.other = d->names[k].file;
    memcpy(c.name, b, strlen(b));
    memcpy(c.old, a, strlen(a));
    return change(d, c);
}

int disk_remove(struct disk *d, const char *name)
{
    struct change c = {.kind = REMOVE};
    enter(d);
    if (find(d, name) < 0)
        return -1;
    memcpy(c.name, name, strlen(name));
    return change(d, c);
}

int disk_sync_folder(struct disk *d)
{
    enter(d);
    if (sync_fails(d))
        return -1;
    crash_sync_names(d, "");
    return note(d, SYNC_NAMES, 0, "");
}

// Writes one line of the log: the call, then what became of it.
static void show_change(FILE *f, const struct change *c, const char *fate)
{
    char call[3 * DISK_NAME];
    switch (c->kind) {
    case CREATE:
        snprintf(call, sizeof call, "create %s: file %d", c->name, c->file);
        break;
    case WRITE:
        snprintf(call, sizeof call, "write %zu bytes to file %d", c->bytes,
                 c->file);
        break;
    case RENAME:
        snprintf(call, sizeof call, "rename %s to %s", c->old, c->name);
        break;
    case EXCHANGE:
        snprintf(call, sizeof call, "exchange %s and %s", c->old, c->name);
        break;
    case REMOVE:
        snprintf(call, sizeof call, "remove %s", c->name);
        break;
    case SYNC:
        snprintf(call, sizeof call, "sync file %d", c->file);
        break;
    case SYNC_NAMES:
        snprintf(call, sizeof call, "sync the folder");
        break;
    case MARK:
        fprintf(f, "%s\n", c->name);
        return;
    }
    fprintf(f, "    %-50s %s\n", call, c->kind < SYNC ? fate : "");
}

void crash_show(const struct disk *d, const struct disk *after,
                bool (*is_lost)(const void *ctx, int i), const void *ctx,
                bool torn, FILE *f)
{
    int last = -1;
    for (int i = 0, k = 0; i < d->n; i++)
        if (!d->changes[i].synced && !(is_lost && is_lost(ctx, k++)) &&
            d->changes[i].kind == WRITE)
            last = i;
    for (int i = 0, k = 0; i < d->n; i++) {
        const struct change *c = &d->changes[i];
        bool lost = !c->synced && is_lost && is_lost(ctx, k++);
        show_change(f, c,
                    c->synced           ? "[####] synced"
                    : lost              ? "[    ] LOST"
                    : torn && i == last ? "[##  ] half of it LOST"
                                        : "[####] not synced, but kept");
    }
    fprintf(f, "\nThe next process finds:\n");
    for (int i = 0; i < after->n_names; i++)
        fprintf(f, "    %-50s file %d, %zu bytes\n", after->names[i].name,
                after->names[i].file, after->files[after->names[i].file].bytes);
    if (after->n_names == 0)
        fprintf(f, "    no file\n");
}

int disk_list(struct disk *d, int i, char name[DISK_NAME])
{
    enter(d);
    if (i < 0 || i >= d->n_names)
        return -1;
    memcpy(name, d->names[i].name, DISK_NAME);
    return 0;
}
