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

enum { Z85 = 40 };

static int write_file(const char *dir, const char *name, const char *key)
{
    char path[PATH_MAX], line[Z85 + 2];
    if (text_into(path, sizeof path, "%s/%s", dir, name) ||
        text_into(line, sizeof line, "%s\n", key))
        return -1;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail("%s: %s%s", path, strerror(errno),
                    errno == EEXIST ? "; try: another folder" : "");
    bool written = write(fd, line, Z85 + 1) == Z85 + 1 && fsync(fd) == 0;
    int error = errno;
    close(fd);
    explicit_bzero(line, sizeof line);
    return written ? 0 : fail("%s: %s", path, strerror(error));
}

static int make_pair(const char *dir, const char *public_name,
                     const char *secret_name)
{
    char public[Z85 + 1], secret[Z85 + 1];
    if (zmq_curve_keypair(public, secret))
        return fail("curve: %s; try: a ZeroMQ that was built with CURVE",
                    zmq_strerror(zmq_errno()));
    int rc = write_file(dir, public_name, public) ||
                     write_file(dir, secret_name, secret)
                 ? -1
                 : 0;
    explicit_bzero(secret, sizeof secret);
    return rc;
}

int curve_make(const char *dir)
{
    if (mkdir(dir, 0700) && errno != EEXIST)
        return fail("%s: %s", dir, strerror(errno));
    if (make_pair(dir, "server.public", "server.secret") ||
        make_pair(dir, "worker.public", "worker.secret"))
        return -1;
    return 0;
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
