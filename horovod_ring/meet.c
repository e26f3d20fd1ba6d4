// meet.c - members of a group find each other over TCP.
//
//     caller                                acceptor
//     hello: rank, a nonce        ->
//                                 <-        a nonce, proof of both nonces
//     proof of both nonces        ->
//                                 <-        welcome
//
// Proofs are keyed hashes (base/secret.h). Their keys are the acceptor's key,
// which travels through the cluster only, and the job's secret, if it has one.
// New nonces make a recorded session worthless. All of this happens once, when
// a connection opens: it adds nothing to later messages.
//
// One loop serves all connections of a member, because members call each other
// at the same time. A connection that comes in has an entry of a few hundred
// bytes in a list of fixed length. It is dropped if its handshake takes longer
// than a quarter of the time that was left until the deadline when it came in.
// When the list is full, an entry that chance chooses is dropped, and that
// caller calls again.
//
// So strangers who call without pause cannot keep a member out: few calls are
// accepted in a turn of the loop, so that most entries live until the handshake
// has ended; and a call that nobody accepts is repeated every second, while the
// kernel would wait twice as long each time.

#include "horovod_ring/meet.h"

#include "horovod_ring/tcp.h"

#include "base/base.h"
#include "base/secret.h"
#include "cluster/cluster.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { VERSION = 2, NONCE = 32, INCOMING = 64, TURN = 16, LINES = 20 };

static const uint64_t call_again_ns = 1000000000;

struct hello {
    char magic[8]; // "lockring"
    uint32_t version;
    int32_t rank;
    uint8_t nonce[NONCE];
};

struct answer {
    uint8_t nonce[NONCE], proof[SECRET_PROOF];
};

struct place { // the address where a member listens; published
    struct sockaddr_in address;
    uint8_t key[SECRET_KEY];
    char host[64];
};

// A connection whose handshake is under way: one that we call, or one that
// comes in.
struct handshake {
    int fd;         // -1: none
    uint64_t until; // when a connection that comes in is dropped, and a call
                    // that is not accepted is repeated, in ns
    enum { BEGUN, GREETED, PROVEN } phase;
    struct hello hello;
    struct answer answer;
    uint8_t proof[SECRET_PROOF];
    uint8_t welcome;
    size_t got; // bytes received of the next message
};

struct connector {
    struct cluster *c;
    const char *name;
    enum streams_who who;
    int *called, *accepted;
    struct place *all;
    uint8_t secret[SECRET_KEY]; // zero if the job has none
    int listener, refused, nincoming, capacity;
    struct handshake *out; // by rank
    struct handshake *incoming;
    struct pollfd *polls;
    uint64_t deadline;
};

// Whether member `from` connects to member `to`; the same on all members.
static bool calls(const struct connector *m, int from, int to)
{
    return m->who == STREAMS_RING ? to == (from + 1) % m->c->world : to < from;
}

// ---- proofs

enum side_of { CALLS, ACCEPTS };

struct statement { // what a side proves to have seen; the same on both ends
    uint8_t key[SECRET_KEY]; // of the proofs between any caller and `to`
    uint8_t text[2 * NONCE + 16];
};

static struct statement statement(const struct connector *m, enum side_of by,
                                  int to, const struct handshake *g)
{
    struct statement s;
    const int32_t head[4] = {VERSION, (int32_t)by, g->hello.rank, to};
    secret_derive(m->secret, "TCP", m->all[to].key, SECRET_KEY, s.key);
    memcpy(s.text, head, sizeof head);
    memcpy(s.text + sizeof head, g->hello.nonce, NONCE);
    memcpy(s.text + sizeof head + NONCE, g->answer.nonce, NONCE);
    return s;
}

// Writes the proof of side `by`: g->proof or g->answer.proof.
static void prove(const struct connector *m, enum side_of by, int to,
                  struct handshake *g)
{
    struct statement s = statement(m, by, to, g);
    secret_prove(s.key, s.text, sizeof s.text,
                 by == CALLS ? g->proof : g->answer.proof);
}

static bool proves(const struct connector *m, enum side_of by, int to,
                   const struct handshake *g)
{
    struct statement s = statement(m, by, to, g);
    return secret_proves(s.key, s.text, sizeof s.text,
                         by == CALLS ? g->proof : g->answer.proof);
}

// ---- small messages

// Sends a whole message or nothing. A new socket always has space for it.
static bool send_whole(int fd, const void *p, size_t bytes)
{
    return send(fd, p, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes;
}

// Receives a part of a message. Returns 1 if the message is complete, 0 if not
// yet, -1 if the connection is closed.
static int receive_part(struct handshake *g, void *p, size_t bytes)
{
    ssize_t n = recv(g->fd, (char *)p + g->got, bytes - g->got, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return -1;
    g->got += (size_t)n;
    if (g->got < bytes)
        return 0;
    g->got = 0;
    return 1;
}

static void drop(struct handshake *g)
{
    if (g->fd >= 0)
        close(g->fd);
    *g = (struct handshake){.fd = -1};
}

// ---- connections that this member calls

// The rank in the whole job, by which error messages name a member.
static int job_rank(const struct connector *m, int member)
{
    return cluster_job_rank(m->c->ranks, member);
}

static int fail_call(const struct connector *m, int to, const char *why)
{
    return fail("%s: rank %d on %s: %s", m->name, job_rank(m, to),
                m->all[to].host, why);
}

static int begin_call(struct connector *m, int to)
{
    struct handshake *g = &m->out[to];
    drop(g);
    g->until = now_ns() + call_again_ns;
    g->fd = tcp_begin(&m->all[to].address);
    return g->fd < 0 ? fail_call(m, to, fail_message()) : 0;
}

static int greet(struct connector *m, int to)
{
    struct handshake *g = &m->out[to];
    if (tcp_connected(g->fd, &m->all[to].address))
        return fail_call(m, to, fail_message());
    g->hello = (struct hello){.version = VERSION, .rank = m->c->rank};
    memcpy(g->hello.magic, "lockring", sizeof g->hello.magic);
    secret_random(g->hello.nonce, NONCE);
    g->phase = GREETED;
    return send_whole(g->fd, &g->hello, sizeof g->hello) ? 0
                                                         : begin_call(m, to);
}

static int answer(struct connector *m, int to)
{
    struct handshake *g = &m->out[to];
    if (!proves(m, ACCEPTS, to, g))
        return fail_call(m, to, "belongs to another job");
    prove(m, CALLS, to, g);
    g->phase = PROVEN;
    return send_whole(g->fd, g->proof, sizeof g->proof) ? 0 : begin_call(m, to);
}

// Handles an answer. If the acceptor has dropped this connection, because its
// list was full, calls again.
static int continue_call(struct connector *m, int to)
{
    struct handshake *g = &m->out[to];
    if (g->phase == BEGUN)
        return greet(m, to);
    bool proven = g->phase == PROVEN;
    int heard = proven ? receive_part(g, &g->welcome, 1)
                       : receive_part(g, &g->answer, sizeof g->answer);
    if (heard == 0)
        return 0;
    if (heard < 0)
        return begin_call(m, to);
    if (!proven)
        return answer(m, to);
    m->called[to] = g->fd;
    g->fd = -1;
    return 0;
}

// ---- connections that come in

static void refuse(struct connector *m, struct handshake *g)
{
    if (++m->refused <= LINES)
        log_line("%s: refused an unauthenticated peer%s", m->name,
                 m->refused == LINES ? " (further ones are not logged)" : "");
    drop(g);
}

static bool is_expected(const struct connector *m, const struct hello *h)
{
    int r = h->rank, own = m->c->rank;
    return !memcmp(h->magic, "lockring", sizeof h->magic) &&
           h->version == VERSION && r >= 0 && r < m->c->world && r != own &&
           calls(m, r, own) && m->accepted[r] < 0;
}

static void take_hello(struct connector *m, struct handshake *g)
{
    if (!is_expected(m, &g->hello)) {
        refuse(m, g);
        return;
    }
    secret_random(g->answer.nonce, NONCE);
    prove(m, ACCEPTS, m->c->rank, g);
    g->phase = GREETED;
    if (!send_whole(g->fd, &g->answer, sizeof g->answer))
        refuse(m, g);
}

static void take_proof(struct connector *m, struct handshake *g)
{
    g->welcome = 1;
    if (!is_expected(m, &g->hello) || !proves(m, CALLS, m->c->rank, g) ||
        !send_whole(g->fd, &g->welcome, 1)) {
        refuse(m, g);
        return;
    }
    m->accepted[g->hello.rank] = g->fd;
    g->fd = -1;
}

static void continue_accept(struct connector *m, struct handshake *g)
{
    bool greeted = g->phase == GREETED;
    int heard = greeted ? receive_part(g, g->proof, sizeof g->proof)
                        : receive_part(g, &g->hello, sizeof g->hello);
    if (heard < 0)
        refuse(m, g);
    else if (heard > 0)
        (greeted ? take_proof : take_hello)(m, g);
}

// Drops connections that are closed, or whose time is over.
static void drop_finished(struct connector *m, uint64_t now)
{
    int n = 0;
    for (int i = 0; i < m->nincoming; i++) {
        if (m->incoming[i].fd >= 0 && now >= m->incoming[i].until)
            refuse(m, &m->incoming[i]);
        if (m->incoming[i].fd >= 0)
            m->incoming[n++] = m->incoming[i];
    }
    m->nincoming = n;
}

// Makes space in the list.
static void drop_one(struct connector *m, uint64_t now)
{
    uint32_t chance;
    secret_random(&chance, sizeof chance);
    refuse(m, &m->incoming[chance % (uint32_t)m->nincoming]);
    drop_finished(m, now);
}

// Accepts connections that are waiting, but not all of a flood.
static int accept_some(struct connector *m)
{
    for (int i = 0; i < TURN; i++) {
        uint64_t now = now_ns();
        uint64_t left = now < m->deadline ? m->deadline - now : 0;
        int fd = tcp_accept(m->listener);
        if (fd == TCP_NONE)
            return 0;
        if (fd == TCP_FULL ? m->nincoming == 0 : fd < 0)
            return fail("%s: %s", m->name, fail_message());
        if (fd < 0 || m->nincoming == m->capacity)
            drop_one(m, now);
        if (fd >= 0)
            m->incoming[m->nincoming++] =
                (struct handshake){.fd = fd, .until = now + left / 4};
    }
    return 0;
}

// ---- the loop

// Returns the first member that is not connected yet, or -1 if there is none.
// If `called`, it looks at the members that we call, else at those that call
// us.
static int missing(const struct connector *m, bool called)
{
    int own = m->c->rank, world = m->c->world;
    for (int i = 1; i < world; i++) {
        int r = (own + i) % world; // spread the calls over the members
        if (called ? calls(m, own, r) && m->called[r] < 0
                   : calls(m, r, own) && m->accepted[r] < 0)
            return r;
    }
    return -1;
}

static int fail_late(const struct connector *m)
{
    int to = missing(m, true), from = missing(m, false);
    if (to >= 0)
        return fail("%s: rank %d on %s: no answer within %g s", m->name,
                    job_rank(m, to), m->all[to].host, m->c->timeout_s);
    return fail("%s: rank %d did not connect within %g s", m->name,
                job_rank(m, from), m->c->timeout_s);
}

// Waits for events of the listener and of all connections, and handles them.
static int poll_step(struct connector *m)
{
    int world = m->c->world, incoming = m->nincoming;
    struct pollfd *out = m->polls + 1, *in = out + world;
    m->polls[0] = (struct pollfd){.fd = m->listener, .events = POLLIN};
    for (int r = 0; r < world; r++)
        out[r] = (struct pollfd){
            .fd = m->out[r].fd,
            .events = m->out[r].phase == BEGUN ? POLLOUT : POLLIN,
        };
    for (int i = 0; i < incoming; i++)
        in[i] = (struct pollfd){.fd = m->incoming[i].fd, .events = POLLIN};
    if (poll(m->polls, (nfds_t)(1 + world + incoming), 100) < 0 &&
        errno != EINTR)
        return fail("%s: poll: %s", m->name, strerror(errno));
    uint64_t now = now_ns();
    for (int r = 0; r < world; r++) {
        const struct handshake *g = &m->out[r];
        bool again = g->fd >= 0 && g->phase == BEGUN && now >= g->until;
        if (out[r].fd >= 0 && out[r].revents ? continue_call(m, r)
            : again                          ? begin_call(m, r)
                                             : 0)
            return -1;
    }
    for (int i = 0; i < incoming; i++)
        if (in[i].revents)
            continue_accept(m, &m->incoming[i]);
    drop_finished(m, now_ns());
    return m->polls[0].revents ? accept_some(m) : 0;
}

static int meet_all(struct connector *m)
{
    int own = m->c->rank, world = m->c->world;
    m->deadline = now_ns() + (uint64_t)(m->c->timeout_s * 1e9);
    for (int i = 1; i < world; i++) {
        int r = (own + i) % world;
        if (calls(m, own, r) && begin_call(m, r))
            return -1;
    }
    while (missing(m, true) >= 0 || missing(m, false) >= 0) {
        if (now_ns() >= m->deadline)
            return fail_late(m);
        if (poll_step(m))
            return -1;
    }
    return 0;
}

// ---- addresses

// Fails if members on several hosts listen on loopback.
static int check_hosts(const char *name, int world, const struct place *all)
{
    for (int r = 1; r < world; r++)
        if (strcmp(all[r].host, all[0].host) &&
            ntohl(all[r].address.sin_addr.s_addr) == INADDR_LOOPBACK)
            return fail("%s: workers run on %s and %s but listen on loopback; "
                        "try: iface=NAME or iface=10.0.0.0/24",
                        name, all[0].host, all[r].host);
    return 0;
}

static int publish(struct connector *m, const struct sockaddr_in *address)
{
    struct place mine = {.address = *address};
    socklen_t len = sizeof mine.address;
    if (getsockname(m->listener, (struct sockaddr *)&mine.address, &len))
        return fail("%s: getsockname: %s", m->name, strerror(errno));
    secret_random(mine.key, sizeof mine.key);
    gethostname(mine.host, sizeof mine.host - 1);
    if (cluster_allgather(m->c, &mine, m->all, sizeof mine))
        return -1;
    return check_hosts(m->name, m->c->world, m->all);
}

static int allocate(struct connector *m)
{
    size_t world = (size_t)m->c->world;
    m->capacity = m->c->world + INCOMING;
    m->all = mem_alloc(world, sizeof *m->all);
    m->out = mem_alloc(world, sizeof *m->out);
    m->incoming = mem_alloc((size_t)m->capacity, sizeof *m->incoming);
    m->polls = mem_alloc(1 + world + (size_t)m->capacity, sizeof *m->polls);
    for (size_t r = 0; m->out && r < world; r++)
        m->out[r].fd = -1;
    return m->all && m->out && m->incoming && m->polls ? 0 : -1;
}

static void close_all(struct connector *m)
{
    for (int r = 0; m->out && r < m->c->world; r++)
        drop(&m->out[r]);
    for (int i = 0; i < m->nincoming; i++)
        drop(&m->incoming[i]);
    if (m->listener >= 0)
        close(m->listener);
    mem_free(m->all);
    mem_free(m->out);
    mem_free(m->incoming);
    mem_free(m->polls);
    explicit_bzero(m->secret, sizeof m->secret);
}

int meet(struct cluster *c, const char *name, const char *iface,
         enum streams_who who, int *called, int *accepted)
{
    struct sockaddr_in address;
    struct connector m = {.c = c,
                          .name = name,
                          .who = who,
                          .called = called,
                          .accepted = accepted,
                          .listener = -1};
    for (int r = 0; r < c->world; r++)
        called[r] = accepted[r] = -1;
    int rc = -1;
    if (!allocate(&m) && secret_read(m.secret) >= 0 &&
        !tcp_address(&address, iface) &&
        (m.listener = tcp_listen(&address)) >= 0 && !publish(&m, &address))
        rc = meet_all(&m);
    close_all(&m);
    return rc;
}
