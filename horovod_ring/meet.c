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
    const struct streams *p; // whose links are to be connected
    int *fd;                 // by link: 1 + its socket; 0: none yet
    struct place *all;
    uint8_t secret[SECRET_KEY]; // zero if the job has none
    int listener, refused, nincoming, capacity;
    struct handshake *out; // by link
    struct handshake *incoming;
    struct pollfd *polls;
    uint64_t deadline;
};

static int member_at(const struct connector *m, int link)
{
    return m->p->links[link].member;
}

// Whether a link, one that this member calls or one that it accepts, is not
// connected yet.
static bool is_missing(const struct connector *m, int link, bool calls)
{
    return !m->fd[link] && m->p->links[link].calls == calls &&
           member_at(m, link) != m->c->rank;
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

static int fail_call(const struct connector *m, int link, const char *why)
{
    int to = member_at(m, link);
    return fail("%s: rank %d on %s: %s", m->p->name, streams_rank(m->p, to),
                m->all[to].host, why);
}

static int begin_call(struct connector *m, int link)
{
    struct handshake *g = &m->out[link];
    drop(g);
    g->until = now_ns() + call_again_ns;
    g->fd = tcp_begin(&m->all[member_at(m, link)].address);
    return g->fd < 0 ? fail_call(m, link, fail_message()) : 0;
}

static int greet(struct connector *m, int link)
{
    struct handshake *g = &m->out[link];
    if (tcp_connected(g->fd, &m->all[member_at(m, link)].address))
        return fail_call(m, link, fail_message());
    g->hello = (struct hello){.version = VERSION, .rank = m->c->rank};
    memcpy(g->hello.magic, "lockring", sizeof g->hello.magic);
    secret_random(g->hello.nonce, NONCE);
    g->phase = GREETED;
    return send_whole(g->fd, &g->hello, sizeof g->hello) ? 0
                                                         : begin_call(m, link);
}

static int answer(struct connector *m, int link)
{
    struct handshake *g = &m->out[link];
    if (!proves(m, ACCEPTS, member_at(m, link), g))
        return fail_call(m, link, "belongs to another job");
    prove(m, CALLS, member_at(m, link), g);
    g->phase = PROVEN;
    return send_whole(g->fd, g->proof, sizeof g->proof) ? 0
                                                        : begin_call(m, link);
}

// Handles an answer. If the acceptor has dropped this connection, because its
// list was full, calls again.
static int continue_call(struct connector *m, int link)
{
    struct handshake *g = &m->out[link];
    if (g->phase == BEGUN)
        return greet(m, link);
    bool proven = g->phase == PROVEN;
    int heard = proven ? receive_part(g, &g->welcome, 1)
                       : receive_part(g, &g->answer, sizeof g->answer);
    if (heard == 0)
        return 0;
    if (heard < 0)
        return begin_call(m, link);
    if (!proven)
        return answer(m, link);
    m->fd[link] = 1 + g->fd;
    g->fd = -1;
    return 0;
}

// ---- connections that come in

static void refuse(struct connector *m, struct handshake *g)
{
    if (++m->refused <= LINES)
        log_line("%s: refused an unauthenticated peer%s", m->p->name,
                 m->refused == LINES ? " (further ones are not logged)" : "");
    drop(g);
}

// The link that the sender of a hello may open; -1: none.
static int link_of(const struct connector *m, const struct hello *h)
{
    if (memcmp(h->magic, "lockring", sizeof h->magic) || h->version != VERSION)
        return -1;
    for (int k = 0; k < m->p->n; k++)
        if (is_missing(m, k, false) && member_at(m, k) == h->rank)
            return k;
    return -1;
}

static void take_hello(struct connector *m, struct handshake *g)
{
    if (link_of(m, &g->hello) < 0) {
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
    int link = link_of(m, &g->hello);
    g->welcome = 1;
    if (link < 0 || !proves(m, CALLS, m->c->rank, g) ||
        !send_whole(g->fd, &g->welcome, 1)) {
        refuse(m, g);
        return;
    }
    m->fd[link] = 1 + g->fd;
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
            return fail("%s: %s", m->p->name, fail_message());
        if (fd < 0 || m->nincoming == m->capacity)
            drop_one(m, now);
        if (fd >= 0)
            m->incoming[m->nincoming++] =
                (struct handshake){.fd = fd, .until = now + left / 4};
    }
    return 0;
}

// ---- the loop

// Returns the first link that is not connected yet, or -1 if there is none, of
// the links that we call, or of those that we accept.
static int missing(const struct connector *m, bool calls)
{
    for (int i = 1; i <= m->p->n; i++) {
        int k = (m->c->rank + i) % m->p->n; // spread calls over the members
        if (is_missing(m, k, calls))
            return k;
    }
    return -1;
}

static int fail_late(const struct connector *m)
{
    int out = missing(m, true), in = missing(m, false);
    char why[64];
    snprintf(why, sizeof why, "no answer within %g s", m->c->timeout_s);
    if (out >= 0)
        return fail_call(m, out, why);
    return fail("%s: rank %d did not connect within %g s", m->p->name,
                streams_rank(m->p, member_at(m, in)), m->c->timeout_s);
}

// Waits for events of the listener and of all connections, and handles them.
static int poll_step(struct connector *m)
{
    int links = m->p->n, incoming = m->nincoming;
    struct pollfd *out = m->polls + 1, *in = out + links;
    m->polls[0] = (struct pollfd){.fd = m->listener, .events = POLLIN};
    for (int k = 0; k < links; k++)
        out[k] = (struct pollfd){
            .fd = m->out[k].fd,
            .events = m->out[k].phase == BEGUN ? POLLOUT : POLLIN,
        };
    for (int i = 0; i < incoming; i++)
        in[i] = (struct pollfd){.fd = m->incoming[i].fd, .events = POLLIN};
    if (poll(m->polls, (nfds_t)(1 + links + incoming), 100) < 0 &&
        errno != EINTR)
        return fail("%s: poll: %s", m->p->name, strerror(errno));
    uint64_t now = now_ns();
    for (int k = 0; k < links; k++) {
        const struct handshake *g = &m->out[k];
        bool again = g->fd >= 0 && g->phase == BEGUN && now >= g->until;
        if (out[k].fd >= 0 && out[k].revents ? continue_call(m, k)
            : again                          ? begin_call(m, k)
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
    m->deadline = now_ns() + (uint64_t)(m->c->timeout_s * 1e9);
    for (int i = 1; i <= m->p->n; i++) {
        int k = (m->c->rank + i) % m->p->n;
        if (is_missing(m, k, true) && begin_call(m, k))
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
        return fail("%s: getsockname: %s", m->p->name, strerror(errno));
    secret_random(mine.key, sizeof mine.key);
    gethostname(mine.host, sizeof mine.host - 1);
    if (cluster_allgather(m->c, &mine, m->all, sizeof mine))
        return -1;
    return check_hosts(m->p->name, m->c->world, m->all);
}

static int allocate(struct connector *m)
{
    size_t world = (size_t)m->c->world, links = (size_t)m->p->n;
    m->capacity = m->c->world + INCOMING;
    m->all = mem_alloc(world, sizeof *m->all);
    m->out = mem_alloc(links, sizeof *m->out);
    m->incoming = mem_alloc((size_t)m->capacity, sizeof *m->incoming);
    m->polls = mem_alloc(1 + links + (size_t)m->capacity, sizeof *m->polls);
    for (size_t k = 0; m->out && k < links; k++)
        m->out[k].fd = -1;
    return m->all && m->out && m->incoming && m->polls ? 0 : -1;
}

static void close_all(struct connector *m)
{
    for (int k = 0; m->out && k < m->p->n; k++)
        drop(&m->out[k]);
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

int meet(const struct streams *p, struct cluster *c, const char *iface, int *fd)
{
    struct sockaddr_in address;
    struct connector m = {.c = c, .p = p, .fd = fd, .listener = -1};
    int rc = -1;
    if (!allocate(&m) && secret_read(m.secret) >= 0 &&
        !tcp_address(&address, iface) &&
        (m.listener = tcp_listen(&address)) >= 0 && !publish(&m, &address))
        rc = meet_all(&m);
    close_all(&m);
    return rc;
}
