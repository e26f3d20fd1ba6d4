// share.c - finds files that were installed with this program, by the program's
// own path.

#include "base/share.h"

#include "base/base.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define LIBEXEC "/libexec/lockstep"

// The folder of this program.
static int own_folder(char out[PATH_MAX])
{
    ssize_t got = readlink("/proc/self/exe", out, PATH_MAX - 1);
    if (got < 0)
        return fail("/proc/self/exe: %s", strerror(errno));
    out[got] = '\0';
    *strrchr(out, '/') = '\0';
    return 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

int share_path(char *out, size_t size, const char *name)
{
    char own[PATH_MAX], folder[PATH_MAX];
    if (own_folder(own) ||
        text_into(folder, sizeof folder, "%s/..%s/share/lockstep", own,
                  ends_with(own, LIBEXEC) ? "/.." : ""))
        return -1;
    return text_into(out, size, "%s/%s",
                     access(folder, F_OK) ? LOCKSTEP_SOURCE : folder, name);
}

int share_program(char *out, size_t size, const char *name)
{
    char own[PATH_MAX];
    if (own_folder(own) || text_into(out, size, "%s/%s", own, name))
        return -1;
    if (access(out, X_OK) == 0)
        return 0;
    int err = errno;
    char there[PATH_MAX];
    if (text_into(there, sizeof there, "%s/..%s/%s", own, LIBEXEC, name))
        return -1;
    if (access(there, X_OK) == 0)
        return text_into(out, size, "%s", there);
    return fail("%s: %s; try: build it, cmake --build --preset release", out,
                strerror(err));
}
