// curve.c - makes key files, and reads them.

#include "message/curve.h"

#include "base/base.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

enum { Z85 = 40, FILES = 4 };

static const char *const names[FILES] = {"server.public", "server.secret",
                                         "worker.public", "worker.secret"};

static int write_file(const char *path, const char *key)
{
    char line[Z85 + 2];
    if (text_into(line, sizeof line, "%s\n", key))
        return -1;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail("%s: %s%s", path, strerror(errno),
                    errno == EEXIST ? "; try: another folder"
                                    : file_remedy(errno));
    errno = ENOSPC; // if a part is written
    bool written = write(fd, line, Z85 + 1) == Z85 + 1 && fsync(fd) == 0;
    int error = errno;
    close(fd);
    explicit_bzero(line, sizeof line);
    if (!written)
        unlink(path);
    return written ? 0 : fail("%s: %s", path, strerror(error));
}

int curve_make(const char *dir)
{
    char paths[FILES][PATH_MAX], keys[FILES][Z85 + 1];
    bool is_new = mkdir(dir, 0700) == 0;
    if (!is_new && errno != EEXIST)
        return fail("%s: %s%s", dir, strerror(errno), file_remedy(errno));
    int made = 0, rc = 0;
    for (int k = 0; !rc && k < FILES; k += 2)
        rc = zmq_curve_keypair(keys[k], keys[k + 1])
                 ? fail("curve: %s; try: a ZeroMQ that was built with CURVE",
                        zmq_strerror(zmq_errno()))
                 : 0;
    for (int k = 0; !rc && k < FILES; k++) {
        rc = text_into(paths[k], PATH_MAX, "%s/%s", dir, names[k]) ||
                     write_file(paths[k], keys[k])
                 ? -1
                 : 0;
        made += !rc;
    }
    while (rc && made > 0)
        unlink(paths[--made]);
    if (rc && is_new)
        rmdir(dir);
    explicit_bzero(keys, sizeof keys);
    return rc;
}

static int read_key(const char *dir, const char *name, uint8_t raw[SECRET_KEY])
{
    char path[PATH_MAX], key[Z85 + 1];
    if (text_into(path, sizeof path, "%s/%s", dir, name))
        return -1;
    FILE *f = file_open(path);
    if (!f)
        return fail("%s; try: lockstep keys %s", fail_message(), dir);
    size_t n = fread(key, 1, Z85, f);
    fclose(f);
    key[n] = '\0';
    bool good = n == Z85 && zmq_z85_decode(raw, key);
    explicit_bzero(key, sizeof key);
    return good ? 0
                : fail("%s: not a key of %d Z85 characters; try: lockstep keys",
                       path, Z85);
}

int curve_server_keys(const char *dir, struct curve_keys *k)
{
    return read_key(dir, "server.secret", k->server_secret) ||
                   read_key(dir, "worker.public", k->worker_public)
               ? -1
               : 0;
}

int curve_worker_keys(const char *dir, struct curve_keys *k)
{
    return read_key(dir, "server.public", k->server_public) ||
                   read_key(dir, "worker.public", k->worker_public) ||
                   read_key(dir, "worker.secret", k->worker_secret)
               ? -1
               : 0;
}
