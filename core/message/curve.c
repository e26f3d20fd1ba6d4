// curve.c - key files, and the doorkeeper (ZAP, rfc.zeromq.org/spec/27).

#include "message/curve.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

enum { Z85 = 40, RAW = 32 };

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

static int read_key(const char *dir, const char *name, char key[Z85 + 1])
{
    char path[PATH_MAX];
    uint8_t raw[RAW];
    if (text_into(path, sizeof path, "%s/%s", dir, name))
        return -1;
    FILE *f = fopen(path, "re");
    if (!f)
        return fail("%s: %s; try: lockstep keys %s", path, strerror(errno),
                    dir);
    size_t n = fread(key, 1, Z85, f);
    fclose(f);
    key[n] = '\0';
    if (n != Z85 || !zmq_z85_decode(raw, key))
        return fail("%s: not a key of %d Z85 characters; try: lockstep keys",
                    path, Z85);
    explicit_bzero(raw, sizeof raw);
    return 0;
}

static int set_key(void *socket, int option, const char *key)
{
    if (zmq_setsockopt(socket, option, key, Z85 + 1))
        return fail("curve: %s; try: a ZeroMQ that was built with CURVE",
                    zmq_strerror(zmq_errno()));
    return 0;
}

// Whoever listens; its public key follows from the secret one.
int curve_serve(void *socket, const char *dir)
{
    char secret[Z85 + 1];
    int on = 1;
    if (!*dir)
        return 0;
    if (read_key(dir, "server.secret", secret))
        return -1;
    int rc = set_key(socket, ZMQ_CURVE_SECRETKEY, secret);
    explicit_bzero(secret, sizeof secret);
    if (!rc && (zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &on, sizeof on) ||
                zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, "lockstep", 8)))
        rc = fail("curve: %s", zmq_strerror(zmq_errno()));
    return rc;
}

int curve_join(void *socket, const char *dir)
{
    char server[Z85 + 1], public[Z85 + 1], secret[Z85 + 1];
    if (!*dir)
        return 0;
    if (read_key(dir, "server.public", server) ||
        read_key(dir, "worker.public", public) ||
        read_key(dir, "worker.secret", secret))
        return -1;
    int rc = set_key(socket, ZMQ_CURVE_SERVERKEY, server) ||
                     set_key(socket, ZMQ_CURVE_PUBLICKEY, public) ||
                     set_key(socket, ZMQ_CURVE_SECRETKEY, secret)
                 ? -1
                 : 0;
    explicit_bzero(secret, sizeof secret);
    return rc;
}

// ---- the doorkeeper

// A question has seven frames: version, request id, domain, address, identity,
// mechanism, and for CURVE the key of who knocks.
enum { VERSION, REQUEST, DOMAIN, ADDRESS, IDENTITY, MECHANISM, KEY, FRAMES };
enum { FRAME = 256 };

struct curve_guard {
    void *questions; // ZMQ_REP, to which ZeroMQ itself sends
    uint8_t worker[RAW];
    pthread_t thread;
    bool running;
    _Atomic bool stop;
};

struct frame {
    size_t n;
    char data[FRAME];
};

// One question into frame[]; how many frames it had.
static int receive(void *socket, struct frame frame[FRAMES])
{
    int count = 0, more = 1;
    size_t size = sizeof more;
    while (more) {
        struct frame extra, *f = count < FRAMES ? &frame[count] : &extra;
        int n = zmq_recv(socket, f->data, FRAME, 0);
        if (n < 0)
            return -1;
        f->n = n < FRAME ? (size_t)n : FRAME;
        count++;
        if (zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size))
            return -1;
    }
    return count;
}

static void answer(struct curve_guard *g, struct frame *f, bool welcome)
{
    const char *code = welcome ? "200" : "400";
    const char *text = welcome ? "OK" : "unknown key";
    const char *user = welcome ? "worker" : "";
    zmq_send(g->questions, f[VERSION].data, f[VERSION].n, ZMQ_SNDMORE);
    zmq_send(g->questions, f[REQUEST].data, f[REQUEST].n, ZMQ_SNDMORE);
    zmq_send(g->questions, code, 3, ZMQ_SNDMORE);
    zmq_send(g->questions, text, strlen(text), ZMQ_SNDMORE);
    zmq_send(g->questions, user, strlen(user), ZMQ_SNDMORE);
    zmq_send(g->questions, "", 0, 0);
}

static void *keep_door(void *arg)
{
    struct curve_guard *g = arg;
    struct frame f[FRAMES];
    while (!g->stop) {
        memset(f, 0, sizeof f);
        int n = receive(g->questions, f);
        if (n < 0)
            continue; // its time limit: look whether to stop
        bool welcome = n == FRAMES && f[KEY].n == RAW &&
                       !memcmp(f[MECHANISM].data, "CURVE", 5) &&
                       !memcmp(f[KEY].data, g->worker, RAW);
        if (!welcome)
            log_line("curve: turned away a stranger at %.*s", (int)f[ADDRESS].n,
                     f[ADDRESS].data);
        answer(g, f, welcome);
    }
    return NULL;
}

int curve_guard_open(struct curve_guard **out, void *context, const char *dir)
{
    char key[Z85 + 1];
    int wait_ms = 100, linger = 0;
    if (read_key(dir, "worker.public", key))
        return -1;
    struct curve_guard *g = mem_alloc(1, sizeof *g);
    if (!g)
        return -1;
    CHECK(zmq_z85_decode(g->worker, key) != NULL);
    g->questions = zmq_socket(context, ZMQ_REP);
    if (!g->questions ||
        zmq_setsockopt(g->questions, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms) ||
        zmq_setsockopt(g->questions, ZMQ_LINGER, &linger, sizeof linger) ||
        zmq_bind(g->questions, "inproc://zeromq.zap.01")) {
        fail("curve: the doorkeeper: %s", zmq_strerror(zmq_errno()));
        curve_guard_close(&g);
        return -1;
    }
    g->running = pthread_create(&g->thread, NULL, keep_door, g) == 0;
    if (!g->running) {
        fail("curve: no thread for the doorkeeper");
        curve_guard_close(&g);
        return -1;
    }
    *out = g;
    return 0;
}

void curve_guard_close(struct curve_guard **g)
{
    if (!*g)
        return;
    (*g)->stop = true;
    if ((*g)->running)
        pthread_join((*g)->thread, NULL);
    if ((*g)->questions)
        zmq_close((*g)->questions);
    mem_free(*g);
    *g = NULL;
}
