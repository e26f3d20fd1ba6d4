// auth.c - chooses a mechanism and keys, and answers ZeroMQ's questions about
// new connections (ZAP, rfc.zeromq.org/spec/27).

#include "message/auth.h"

#include "base/base.h"
#include "base/secret.h"
#include "message/curve.h"
#include "message/host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

// LINES: how many refused connections are logged. PASSWORD: the length of the
// password, in characters.
enum { LINES = 20, PASSWORD = 2 * SECRET_KEY };

// How a process proves that it belongs to the job.
struct proof {
    enum { PROOF_NONE, PROOF_PASSWORD, PROOF_KEY } kind;
    struct curve_keys keys;
    char password[PASSWORD + 1];
};

// Whether only processes of this host can reach the endpoint. (Emulated hosts
// are on this host.) It compares addresses: a server may listen at a name while
// a worker is given the address, or the other way round.
static bool is_private(const char *endpoint)
{
    static const char *const here[] = {"tcp://[::1]:", "ipc://", "inproc://"};
    char name[MESSAGE_ENDPOINT];
    for (size_t i = 0; i < sizeof here / sizeof *here; i++)
        if (!strncmp(endpoint, here[i], strlen(here[i])))
            return true;
    if (getenv("LOCKSTEP_EMULATED"))
        return true;
    return !host_of(endpoint, name) &&
           ntohl(host_address(name)) >> 24 == IN_LOOPBACKNET;
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
    *p = (struct proof){.kind = PROOF_KEY};
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
    p->kind = !has ? PROOF_NONE : private ? PROOF_PASSWORD : PROOF_KEY;
    if (p->kind == PROOF_KEY)
        keys_of(secret, &p->keys);
    if (p->kind == PROOF_PASSWORD)
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
    int rc = 0;
    if (p->kind == PROOF_PASSWORD)
        rc = set(socket, ZMQ_PLAIN_USERNAME, "worker", 6) ||
             set(socket, ZMQ_PLAIN_PASSWORD, p->password, PASSWORD);
    else if (p->kind != PROOF_NONE)
        rc = set(socket, ZMQ_CURVE_SERVERKEY, k->server_public, SECRET_KEY) ||
             set(socket, ZMQ_CURVE_PUBLICKEY, k->worker_public, SECRET_KEY) ||
             set(socket, ZMQ_CURVE_SECRETKEY, k->worker_secret, SECRET_KEY);
    return rc ? -1 : 0;
}

int auth_join(void *socket, const char *endpoint, const char *curve)
{
    struct proof p;
    int rc = choose(&p, endpoint, curve, false) || show(socket, &p) ? -1 : 0;
    explicit_bzero(&p, sizeof p);
    return rc;
}

// ---- a server's side

// A question has these frames. After the mechanism comes the key of the peer
// (KEY), or its name and password (KEY, SECOND).
enum { VERSION, REQUEST, DOMAIN, ADDRESS, IDENTITY, MECHANISM, KEY, SECOND };
enum { FRAMES = SECOND + 1, FRAME = 256 };

struct auth {
    void *questions; // ZMQ_REP: ZeroMQ sends a question for each peer
    struct proof proof;
    pthread_t thread;
    bool running;
    int refused; // peers
    int stop;    // an eventfd: readable when the thread is to end
};

struct frame {
    size_t n;
    char data[FRAME];
};

// Waits for a question. Returns false when the thread is to end.
static bool await_question(const struct auth *a)
{
    zmq_pollitem_t items[] = {{a->questions, 0, ZMQ_POLLIN, 0},
                              {NULL, a->stop, ZMQ_POLLIN, 0}};
    zmq_poll(items, 2, -1);
    return !items[1].revents;
}

// Receives one question into frame[]. Returns how many frames it had; -1: there
// is none.
static int receive(void *socket, struct frame frame[FRAMES])
{
    int count = 0, more = 1;
    size_t size = sizeof more;
    while (more) {
        struct frame extra, *f = count < FRAMES ? &frame[count] : &extra;
        int n = zmq_recv(socket, f->data, FRAME, ZMQ_DONTWAIT);
        if (n < 0)
            return -1;
        f->n = n < FRAME ? (size_t)n : FRAME;
        count++;
        if (zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size))
            return -1;
    }
    return count;
}

static bool is_allowed(const struct auth *a, const struct frame *f, int n)
{
    const struct frame *how = &f[MECHANISM];
    if (a->proof.kind == PROOF_KEY)
        return n == KEY + 1 && how->n == 5 && !memcmp(how->data, "CURVE", 5) &&
               f[KEY].n == SECRET_KEY &&
               secret_same(f[KEY].data, a->proof.keys.worker_public,
                           SECRET_KEY);
    return n == SECOND + 1 && how->n == 5 && !memcmp(how->data, "PLAIN", 5) &&
           f[SECOND].n == PASSWORD &&
           secret_same(f[SECOND].data, a->proof.password, PASSWORD);
}

static void answer(struct auth *a, struct frame *f, bool allowed)
{
    const char *code = allowed ? "200" : "400";
    const char *text = allowed ? "OK" : "unknown key";
    const char *user = allowed ? "worker" : "";
    zmq_send(a->questions, f[VERSION].data, f[VERSION].n, ZMQ_SNDMORE);
    zmq_send(a->questions, f[REQUEST].data, f[REQUEST].n, ZMQ_SNDMORE);
    zmq_send(a->questions, code, 3, ZMQ_SNDMORE);
    zmq_send(a->questions, text, strlen(text), ZMQ_SNDMORE);
    zmq_send(a->questions, user, strlen(user), ZMQ_SNDMORE);
    zmq_send(a->questions, "", 0, 0);
}

static void *answer_all(void *arg)
{
    struct auth *a = arg;
    struct frame f[FRAMES];
    while (await_question(a)) {
        memset(f, 0, sizeof f);
        int n = receive(a->questions, f);
        if (n < 0)
            continue;
        bool allowed = is_allowed(a, f, n);
        if (!allowed && ++a->refused <= LINES)
            log_line("refused a connection from %.*s: unknown key%s",
                     (int)f[ADDRESS].n, f[ADDRESS].data,
                     a->refused == LINES ? " (further ones are not logged)"
                                         : "");
        answer(a, f, allowed);
    }
    explicit_bzero(f, sizeof f);
    return NULL;
}

static int begin(struct auth *a, void *context)
{
    int linger = 0;
    a->stop = eventfd(0, EFD_CLOEXEC);
    if (a->stop < 0)
        return fail("zmq: authentication: %s", strerror(errno));
    a->questions = zmq_socket(context, ZMQ_REP);
    if (!a->questions ||
        zmq_setsockopt(a->questions, ZMQ_LINGER, &linger, sizeof linger) ||
        zmq_bind(a->questions, "inproc://zeromq.zap.01"))
        return fail("zmq: authentication: %s", zmq_strerror(zmq_errno()));
    a->running = pthread_create(&a->thread, NULL, answer_all, a) == 0;
    return a->running ? 0
                      : fail("zmq: cannot start the thread of authentication");
}

static int set_server(void *socket, const struct proof *p)
{
    int on = 1;
    bool key = p->kind == PROOF_KEY;
    if (set(socket, key ? ZMQ_CURVE_SERVER : ZMQ_PLAIN_SERVER, &on,
            sizeof on) ||
        set(socket, ZMQ_ZAP_DOMAIN, "lockstep", 8))
        return -1;
    return key ? set(socket, ZMQ_CURVE_SECRETKEY, p->keys.server_secret,
                     SECRET_KEY)
               : 0;
}

int auth_serve(struct auth **auth, void *context, void *socket,
               const char *endpoint, const char *curve)
{
    *auth = NULL;
    struct auth *a = mem_alloc(1, sizeof *a);
    if (!a)
        return -1;
    a->stop = -1;
    int rc = choose(&a->proof, endpoint, curve, true);
    if (!rc && a->proof.kind != PROOF_NONE)
        rc = set_server(socket, &a->proof) || begin(a, context) ? -1 : 0;
    if (rc || a->proof.kind == PROOF_NONE)
        auth_close(&a);
    *auth = a;
    return rc;
}

void auth_close(struct auth **auth)
{
    struct auth *a = *auth;
    if (!a)
        return;
    if (a->running) {
        CHECK(!eventfd_write(a->stop, 1));
        pthread_join(a->thread, NULL);
    }
    if (a->stop >= 0)
        close(a->stop);
    if (a->questions)
        zmq_close(a->questions);
    explicit_bzero(&a->proof, sizeof a->proof);
    mem_free(a);
    *auth = NULL;
}
