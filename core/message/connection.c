// connection.c - opens and closes ZeroMQ sockets, with the options that keep a
// job from hanging.
//
// Heartbeats are ZeroMQ's own (ZMTP PING), sent by its I/O threads. So a worker
// that computes for a long time counts as alive, and a host that lost power
// does not.
//
// Connections use cubic congestion control, as the ring's do: BBR, a common
// default, halves the rate of loopback and virtual links. ZeroMQ has no option
// for it. But its monitor reports the descriptors of its connections, and of
// its listener, from which accepted connections inherit the setting.

#include "message/connection.h"

#include "base/base.h"
#include "message/auth.h"
#include "message/host.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <zmq.h>

enum {
    LINGER_MS = 300,        // for the last messages of a server that closes
    QUEUE = 64,             // messages of one peer that wait to be read; with
                            // few, ZeroMQ 4.3.4 asserts when a peer is lost
    BUFFER = 1 << 20,       // of the kernel, each way: room for some slices
    MAX_MESSAGE = 65 << 20, // above the largest slice; larger ones are hostile
    STRANGER_MS = 10000,    // a connection that says nothing takes a descriptor
    TRIES = 5               // of a handshake
};

static int set_int(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value);
}

// most_ms: how long the other end may take to say who it is.
static int set_common(void *socket, double timeout_s, int most_ms)
{
    int ms = (int)(timeout_s * 1000) + 1, beat = ms / 4;
    int handshake = ms < 1000 ? 1000 : ms > most_ms ? most_ms : ms;
    int64_t most = MAX_MESSAGE;
    if (beat < 50)
        beat = 50;
    if (beat > 5000)
        beat = 5000;
    mem_keep();
    if (set_int(socket, ZMQ_SNDBUF, BUFFER) ||
        set_int(socket, ZMQ_RCVBUF, BUFFER) ||
        set_int(socket, ZMQ_HEARTBEAT_IVL, beat) ||
        set_int(socket, ZMQ_HEARTBEAT_TIMEOUT, ms) ||
        // credits, and not ZeroMQ, limit the messages that we send
        set_int(socket, ZMQ_SNDHWM, 0) || set_int(socket, ZMQ_RCVHWM, QUEUE) ||
        set_int(socket, ZMQ_LINGER, LINGER_MS) ||
        set_int(socket, ZMQ_HANDSHAKE_IVL, handshake) ||
        zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &most, sizeof most))
        return fail("zmq: %s", zmq_strerror(zmq_errno()));
    return 0;
}

// A PAIR socket that receives these events of `socket` from ZeroMQ's monitor;
// NULL after fail().
static void *watch(void *context, void *socket, int events)
{
    static atomic_uint count; // names must differ within a process
    char name[64];
    if (text_into(name, sizeof name, "inproc://connection-%u",
                  atomic_fetch_add(&count, 1)))
        return NULL;
    void *pair = zmq_socket(context, ZMQ_PAIR);
    if (pair && !zmq_socket_monitor(socket, name, events) &&
        !set_int(pair, ZMQ_LINGER, 0) && !zmq_connect(pair, name))
        return pair;
    fail("zmq: monitor: %s", zmq_strerror(zmq_errno()));
    if (pair)
        zmq_close(pair);
    return NULL;
}

// The next event, or 0 if there is none. *value becomes its descriptor or
// error.
static int next_event(void *events, int *value)
{
    uint8_t frame[6];
    char peer[MESSAGE_ENDPOINT];
    uint16_t event;
    int32_t number;
    if (zmq_recv(events, frame, sizeof frame, ZMQ_DONTWAIT) < 0)
        return 0;
    (void)zmq_recv(events, peer, sizeof peer, 0);
    memcpy(&event, frame, sizeof event);
    memcpy(&number, frame + sizeof event, sizeof number);
    *value = number;
    return event;
}

// A failure does no harm: an ipc socket has no congestion control, and a kernel
// may not know cubic.
static void use_cubic(int fd)
{
    (void)!setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
}

int connection_open(struct connection *l, void *context, const char *endpoint,
                    const char *curve, double timeout_s)
{
    *l = (struct connection){0};
    if (text_into(l->endpoint, sizeof l->endpoint, "%s", endpoint))
        return -1;
    l->socket = zmq_socket(context, ZMQ_DEALER);
    if (!l->socket)
        return fail("zmq: no socket: %s", zmq_strerror(zmq_errno()));
    // a server that is busy or stopped may take as long as anyone waits for it
    if (set_common(l->socket, timeout_s, INT_MAX) ||
        // a send only queues; it would wait only if the peer is gone
        set_int(l->socket, ZMQ_SNDTIMEO, 0) ||
        // if the goodbye is lost, the server takes this worker for dead
        set_int(l->socket, ZMQ_LINGER, (int)(timeout_s * 1000) + 1) ||
        auth_join(l->socket, endpoint, curve))
        return -1;
    l->events = watch(context, l->socket,
                      ZMQ_EVENT_CONNECTED | ZMQ_EVENT_DISCONNECTED |
                          ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
                          ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                          ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                          ZMQ_EVENT_HANDSHAKE_FAILED_AUTH);
    if (!l->events)
        return -1;
    if (zmq_connect(l->socket, endpoint))
        return fail("cannot connect to %s: %s; try: tcp://host:port", endpoint,
                    zmq_strerror(zmq_errno()));
    return 0;
}

// Reads the events since the last call. Returns the event that ended the
// connection, or 0. A handshake that ends without a reason is tried again a few
// times, by ZeroMQ: the other end, or this one, may have been stopped for so
// long that the connection was given up.
static int next_bad_event(struct connection *l)
{
    for (;;) {
        int value, event = next_event(l->events, &value);
        if (event == 0)
            return 0;
        if (event == ZMQ_EVENT_CONNECTED)
            use_cubic(value);
        if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
            l->connected = true;
        if (event == ZMQ_EVENT_DISCONNECTED && l->connected)
            l->lost = true;
        bool again =
            event == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL && ++l->tries < TRIES;
        if (l->lost ||
            (!again && (event & (ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                                 ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                                 ZMQ_EVENT_HANDSHAKE_FAILED_AUTH))))
            return event;
    }
}

int connection_check(struct connection *l)
{
    int event = next_bad_event(l);
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
        return fail("server %s refused our key; try: the secret of its job "
                    "(LOCKSTEP_SECRET), or curve= with the keys that it was "
                    "given",
                    l->endpoint);
    if (l->lost)
        return fail("server %s is gone: it closed the connection", l->endpoint);
    if (event)
        return fail("server %s: no handshake; try: the same curve= on both "
                    "sides, or the same LOCKSTEP_SECRET",
                    l->endpoint);
    return 0;
}

int connection_not_sent(struct connection *l)
{
    int error = zmq_errno();
    return connection_check(l)
               ? -1
               : fail("server %s: %s", l->endpoint, zmq_strerror(error));
}

bool connection_is_up(struct connection *l)
{
    if (l->events && !l->lost)
        (void)next_bad_event(l);
    return l->connected && !l->lost;
}

void connection_close(struct connection *l)
{
    if (l->socket) {
        if (!connection_is_up(l)) // no peer can receive what waits
            (void)set_int(l->socket, ZMQ_LINGER, 0);
        zmq_socket_monitor(l->socket, NULL, 0);
        zmq_close(l->socket);
    }
    if (l->events)
        zmq_close(l->events);
    l->socket = l->events = NULL;
}

void *connection_listen(void *context, const char *endpoint, const char *curve,
                        double timeout_s, char bound[MESSAGE_ENDPOINT],
                        struct auth **auth)
{
    *auth = NULL;
    char numbers[MESSAGE_ENDPOINT];
    size_t size = MESSAGE_ENDPOINT;
    int listener;
    if (host_numbers(endpoint, numbers))
        return NULL;
    void *events = NULL, *socket = zmq_socket(context, ZMQ_ROUTER);
    if (!socket) {
        fail("zmq: no socket: %s", zmq_strerror(zmq_errno()));
        return NULL;
    }
    if (set_common(socket, timeout_s, STRANGER_MS) ||
        auth_serve(auth, context, socket, numbers, curve) ||
        !(events = watch(context, socket, ZMQ_EVENT_LISTENING)))
        goto close_socket;
    if (set_int(socket, ZMQ_ROUTER_MANDATORY, 1) ||
        set_int(socket, ZMQ_BACKLOG, SOMAXCONN) || zmq_bind(socket, numbers) ||
        zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, bound, &size)) {
        int error = zmq_errno();
        fail("cannot listen on %s: %s (errno %d); try: %s", endpoint,
             zmq_strerror(error), error,
             error == EADDRINUSE ? "another port, or port 0 for any"
                                 : "tcp://ADDRESS:PORT of this host");
        goto close_socket;
    }
    if (next_event(events, &listener))
        use_cubic(listener);
    zmq_socket_monitor(socket, NULL, 0);
    zmq_close(events);
    return socket;
close_socket:
    if (events)
        zmq_close(events);
    set_int(socket, ZMQ_LINGER, 0);
    zmq_close(socket);
    return NULL;
}
