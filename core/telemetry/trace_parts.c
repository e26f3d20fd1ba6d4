// trace_parts.c - merges many small files into one, which replaces the old one.

#include "telemetry/trace_parts.h"

#include "base/base.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH = 1200, LINE = 1024 };

// Whether `file` is a worker's part, such as NAME.3.SUFFIX, or, if p->servers
// is set, a server's part, such as NAME.s0.SUFFIX.
static bool is_part(const struct parts *p, const char *file)
{
    size_t name = strlen(p->name), suffix = strlen(p->suffix), n = strlen(file);
    if (n <= name + suffix + 2 || strncmp(file, p->name, name) ||
        file[name] != '.' || file[n - suffix - 1] != '.' ||
        strcmp(file + n - suffix, p->suffix))
        return false;
    char first = file[name + 1];
    return (first >= '0' && first <= '9') || (p->servers && first == 's');
}

static int copy_file(struct parts *p, const char *path)
{
    char line[LINE];
    if (access(path, F_OK))
        return errno == ENOENT ? 0 : fail("%s: %s", path, strerror(errno));
    FILE *f = file_open_here(path);
    if (!f)
        return -1;
    while (file_line(line, sizeof line, f))
        p->copy(p, line);
    int rc = ferror(f) ? fail("%s: %s", path, strerror(errno)) : 0;
    fclose(f);
    return rc;
}

static int write_whole(struct parts *p, const char *out, const char *whole,
                       struct dirent **files, int n)
{
    char path[PATH];
    p->to = file_next(whole);
    if (!p->to)
        return -1;
    fputs(p->before, p->to);
    int rc = p->replace ? 0 : copy_file(p, whole);
    for (int i = 0; !rc && i < n; i++) {
        if (is_part(p, files[i]->d_name))
            rc = text_into(path, sizeof path, "%s/%s", out, files[i]->d_name) ||
                 copy_file(p, path);
    }
    fputs(p->after, p->to);
    return file_finish(p->to, whole, rc);
}

int parts_merge(struct parts *p, const char *out)
{
    struct dirent **files;
    char whole[PATH], path[PATH];
    if (text_into(whole, sizeof whole, "%s/%s.%s", out, p->name, p->suffix))
        return -1;
    int n = scandir(out, &files, NULL, versionsort), found = 0, rc = 0;
    if (n < 0)
        return fail("%s: %s", out, strerror(errno));
    for (int i = 0; i < n; i++)
        found += is_part(p, files[i]->d_name);
    if (found || (isfinite(p->until_s) && access(whole, F_OK) == 0))
        rc = write_whole(p, out, whole, files, n);
    for (int i = 0; i < n; i++) {
        if (found && !rc && is_part(p, files[i]->d_name) &&
            !text_into(path, sizeof path, "%s/%s", out, files[i]->d_name))
            unlink(path);
        free(files[i]);
    }
    free(files);
    return rc;
}

// Copies a row that is whole. A process that was killed may leave a part of its
// last row.
static void copy_row(struct parts *p, char *line)
{
    if (!strchr(line, '\n'))
        return;
    bool header = line[0] >= 'a' && line[0] <= 'z' && strstr(line, "rank");
    bool late = !header && strtod(line, NULL) > p->until_s;
    if ((p->lines++ == 0 || !header) && !late)
        fputs(line, p->to);
}

static int merge_csv(struct parts p, const char *out, const char *name)
{
    p.name = name;
    p.suffix = "csv";
    p.before = p.after = "";
    p.copy = copy_row;
    return parts_merge(&p, out);
}

int parts_merge_csv(const char *out, const char *name, bool servers)
{
    return merge_csv((struct parts){.servers = servers, .until_s = INFINITY},
                     out, name);
}

int parts_cut_csv(const char *out, const char *name, double until_s)
{
    return merge_csv((struct parts){.until_s = until_s}, out, name);
}

int parts_renew_csv(const char *out, const char *name)
{
    return merge_csv((struct parts){.replace = true, .until_s = INFINITY}, out,
                     name);
}

int parts_drop_csv(const char *out, const char *name, int world)
{
    char path[PATH];
    for (int r = 0; r < world; r++) {
        if (text_into(path, sizeof path, "%s/%s.%d.csv", out, name, r))
            return -1;
        if (unlink(path) && errno != ENOENT)
            return fail("%s: %s", path, strerror(errno));
    }
    return 0;
}
