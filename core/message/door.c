// door.c - mechanisms, keys, and the doorkeeper (ZAP, rfc.zeromq.org/spec/27).

#include "message/door.h"

#include "base/base.h"
#include "base/secret.h"
#include "message/curve.h"
#include "message/message.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum { LINES = 20, PASSWORD = 2 * SECRET_KEY }; // about strangers

// How a process proves that it belongs to the job.
struct proof {
    enum { NOBODY_ASKS, ASKS_PASSWORD, ASKS_KEY } kind;
    struct curve_keys keys;
    char password[PASSWORD + 1];
};

// The address of a host, or of an interface that a server listens at; 0: none.
static in_addr_t address_of(const char *name)
{
    const struct addrinfo want = {.ai_family = AF_INET,
                                  .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    struct ifaddrs *all = NULL;
    in_addr_t address = 0;
    if (getifaddrs(&all))
        all = NULL;
    for (const struct ifaddrs *i = all; i && !address; i = i->ifa_next) {
        const struct sockaddr_in *a = (const void *)i->ifa_addr;
        if (a && a->sin_family == AF_INET && !strcmp(i->ifa_name, name))
            address = a->sin_addr.s_addr;
    }
    if (all)
        freeifaddrs(all);
    if (!address && !getaddrinfo(name, NULL, &want, &found)) {
        address = ((const struct sockaddr_in *)(const void *)found->ai_addr)
                      ->sin_addr.s_addr;
        freeaddrinfo(found);
    }
    return address;
}

// Whether only processes of this host can reach the endpoint. (Emulated hosts
// are on this host.) Only the address counts: a server may listen at a name
// while a worker gets the address, or the other way round.
static bool is_private(const char *endpoint)
{
    static const char *const here[] = {"tcp://[::1]:", "ipc://", "inproc://"};
    char name[MESSAGE_ENDPOINT];
    const char *port = strrchr(endpoint, ':');
    for (size_t i = 0; i < sizeof here / sizeof *here; i++)
        if (!strncmp(endpoint, here[i], strlen(here[i])))
            return true;
    if (getenv("LOCKSTEP_EMULATED"))
        return true;
    return !strncmp(endpoint, "tcp://", 6) && port >= endpoint + 6 &&
           !text_into(name, sizeof name, "%.*s", (int)(port - endpoint - 6),
                      endpoint + 6) &&
           ntohl(address_of(name)) >> 24 == IN_LOOPBACKNET;
}

static void keys_of(const uint8_t secret[SECRET_KEY], struct curve_keys *k)
{
    secret_derive(secret, "CURVE server", NULL, 0, k->server_secret);
    secret_derive(secret, "CURVE worker", NULL, 0, k->worker_secret);
    secret_public(k->server_secret, k->server_public);
    secret_public(k->worker_secret, k->worker_public);
}

static void password_of(const uint8_t secret[SECRET_KEY],
                        char out[PASSWORD + 1])
{
    uint8_t key[SECRET_KEY];
    secret_derive(secret, "PLAIN", NULL, 0, key);
    for (int i = 0; i < SECRET_KEY; i++)
        snprintf(out + 2 * i, 3, "%02x", key[i]);
    explicit_bzero(key, sizeof key);
}

static int choose(struct proof *p, const char *endpoint, const char *curve,
                  bool server)
{
    uint8_t secret[SECRET_KEY];
    *p = (struct proof){.kind = ASKS_KEY};
    if (*curve)
        return server ? curve_server_keys(curve, &p->keys)
                      : curve_worker_keys(curve, &p->keys);
    bool private = is_private(endpoint);
    int has = secret_read(secret);
    if (!has && private)
        has = secret_of_user(secret);
    if (has < 0)
        return -1;
    if (!has && !private && server)
        return fail("%s is open to other hosts, and the job has no secret; "
                    "try: LOCKSTEP_SECRET_FILE=FILE on all sides, or curve=DIR "
                    "of lockstep keys",
                    endpoint);
    p->kind = !has ? NOBODY_ASKS : private ? ASKS_PASSWORD : ASKS_KEY;
    if (p->kind == ASKS_KEY)
        keys_of(secret, &p->keys);
    if (p->kind == ASKS_PASSWORD)
        password_of(secret, p->password);
    explicit_bzero(secret, sizeof secret);
    return 0;
}

// ---- a worker's side

static int set(void *socket, int option, const void *value, size_t bytes)
{
    return zmq_setsockopt(socket, option, value, bytes)
               ? fail("zmq: a key: %s; try: a ZeroMQ that was built with CURVE",
                      zmq_strerror(zmq_errno()))
               : 0;
}

static int show(void *socket, const struct proof *p)
{
    const struct curve_keys *k = &p->keys;
    if (p->kind == NOBODY_ASKS)
        return 0;
    if (p->kind == ASKS_PASSWORD)
        return set(socket, ZMQ_PLAIN_USERNAME, "worker", 6) ||
                       set(socket, ZMQ_PLAIN_PASSWORD, p->password, PASSWORD)
                   ? -1
                   : 0;
    return set(socket, ZMQ_CURVE_SERVERKEY, k->server_public, SECRET_KEY) ||
                   set(socket, ZMQ_CURVE_PUBLICKEY, k->worker_public,
                       SECRET_KEY) ||
                   set(socket, ZMQ_CURVE_SECRETKEY, k->worker_secret,
                       SECRET_KEY)
               ? -1
               : 0;
}

int door_join(void *socket, const char *endpoint, const char *curve)
{
    struct proof p;
    int rc = choose(&p, endpoint, curve, false) || show(socket, &p) ? -1 : 0;
    explicit_bzero(&p, sizeof p);
    return rc;
}

// ---- the doorkeeper

// A question has these frames. Behind the mechanism comes the stranger's key,
// or its name and password.
enum { VERSION, REQUEST, DOMAIN, ADDRESS, IDENTITY, MECHANISM, KEY, WORD };
enum { FRAMES = WORD + 1, FRAME = 256 };

struct door {
    void *questions; // ZMQ_REP; ZeroMQ itself sends to it
    struct proof proof;
    pthread_t thread;
    bool running;
    int strangers;
    _Atomic bool stop;
};

struct frame {
    size_t n;
    char data[FRAME];
};

// Receives one question into frame[]. Returns how many frames it had.
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

static bool is_welcome(const struct door *d, const struct frame *f, int n)
{
    const struct frame *how = &f[MECHANISM];
    if (d->proof.kind == ASKS_KEY)
        return n == KEY + 1 && how->n == 5 && !memcmp(how->data, "CURVE", 5) &&
               f[KEY].n == SECRET_KEY &&
               secret_same(f[KEY].data, d->proof.keys.worker_public,
                           SECRET_KEY);
    return n == WORD + 1 && how->n == 5 && !memcmp(how->data, "PLAIN", 5) &&
           f[WORD].n == PASSWORD &&
           secret_same(f[WORD].data, d->proof.password, PASSWORD);
}

static void answer(struct door *d, struct frame *f, bool welcome)
{
    const char *code = welcome ? "200" : "400";
    const char *text = welcome ? "OK" : "unknown key";
    const char *user = welcome ? "worker" : "";
    zmq_send(d->questions, f[VERSION].data, f[VERSION].n, ZMQ_SNDMORE);
    zmq_send(d->questions, f[REQUEST].data, f[REQUEST].n, ZMQ_SNDMORE);
    zmq_send(d->questions, code, 3, ZMQ_SNDMORE);
    zmq_send(d->questions, text, strlen(text), ZMQ_SNDMORE);
    zmq_send(d->questions, user, strlen(user), ZMQ_SNDMORE);
    zmq_send(d->questions, "", 0, 0);
}

static void *keep(void *arg)
{
    struct door *d = arg;
    struct frame f[FRAMES];
    while (!d->stop) {
        memset(f, 0, sizeof f);
        int n = receive(d->questions, f);
        if (n < 0)
            continue; // time limit: look whether to stop
        bool welcome = is_welcome(d, f, n);
        if (!welcome && ++d->strangers <= LINES)
            log_line("turned away a stranger at %.*s%s", (int)f[ADDRESS].n,
                     f[ADDRESS].data,
                     d->strangers == LINES ? " (no more lines of these)" : "");
        answer(d, f, welcome);
    }
    explicit_bzero(f, sizeof f);
    return NULL;
}

static int begin(struct door *d, void *context)
{
    int wait_ms = 100, linger = 0;
    d->questions = zmq_socket(context, ZMQ_REP);
    if (!d->questions ||
        zmq_setsockopt(d->questions, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms) ||
        zmq_setsockopt(d->questions, ZMQ_LINGER, &linger, sizeof linger) ||
        zmq_bind(d->questions, "inproc://zeromq.zap.01"))
        return fail("zmq: the doorkeeper: %s", zmq_strerror(zmq_errno()));
    d->running = pthread_create(&d->thread, NULL, keep, d) == 0;
    return d->running ? 0 : fail("zmq: no thread for the doorkeeper");
}

static int set_server(void *socket, const struct proof *p)
{
    int on = 1;
    bool key = p->kind == ASKS_KEY;
    if (set(socket, key ? ZMQ_CURVE_SERVER : ZMQ_PLAIN_SERVER, &on,
            sizeof on) ||
        set(socket, ZMQ_ZAP_DOMAIN, "lockstep", 8))
        return -1;
    return key ? set(socket, ZMQ_CURVE_SECRETKEY, p->keys.server_secret,
                     SECRET_KEY)
               : 0;
}

int door_serve(struct door **door, void *context, void *socket,
               const char *endpoint, const char *curve)
{
    *door = NULL;
    struct door *d = mem_alloc(1, sizeof *d);
    if (!d)
        return -1;
    int rc = choose(&d->proof, endpoint, curve, true);
    if (!rc && d->proof.kind != NOBODY_ASKS)
        rc = set_server(socket, &d->proof) || begin(d, context) ? -1 : 0;
    if (rc || d->proof.kind == NOBODY_ASKS)
        door_close(&d);
    *door = d;
    return rc;
}

void door_close(struct door **door)
{
    struct door *d = *door;
    if (!d)
        return;
    d->stop = true;
    if (d->running)
        pthread_join(d->thread, NULL);
    if (d->questions)
        zmq_close(d->questions);
    explicit_bzero(&d->proof, sizeof d->proof);
    mem_free(d);
    *door = NULL;
}
