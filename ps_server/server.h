// server.h - a parameter server: owns a shard, adds, updates, answers.
//
// It listens at an endpoint (message/message.h); workers have many pushes
// under way before the first answer. One thread runs everything here; the
// carrier moves the bytes meanwhile, and a pool of threads adds and
// updates (thread_pool.h).

#ifndef PS_SERVER_SERVER_H
#define PS_SERVER_SERVER_H

#include "cluster/rendezvous.h"
#include "message/message.h"
#include "ps_server/store.h"
#include "ps_wire/job.h"
#include "ps_wire/wire.h"

#include <stdatomic.h>
#include <stdbool.h>

struct span_lane;
struct spans;
struct thread_pool;

struct server_config {
    const struct message_ops *transport;
    const char *bind;   // ZeroMQ's: tcp://host:port, port 0 for any
    const char *curve;  // folder of keys; "" for none
    int index;          // which server; -1: the workers say
    int servers, world; // expected of the workers; 0: what they say
    int threads;
    double timeout_s;
    struct spans *spans; // what it does; NULL: not recorded
};

// A vector that a worker asked for and that is not there yet.
struct pull {
    bool waiting;
    enum ps_what what;
    uint64_t sets, version; // at least
};

struct peer {
    struct message_peer id; // where replies go
    bool known;             // has said HELLO
    bool alive;             // known and neither lost nor gone
    bool left;              // said BYE
    bool closed;            // its connection is; what it said before may wait
    uint64_t from;          // bsp: the first round it is counted in
    struct pull pull;
    struct ps_step step; // its last STEP
    bool stepped;        // bsp: STEP of this round is in
    // ssp and asp
    uint64_t pushed, clock; // pushes taken in; of them answered
    bool pushing;           // rows of the next push are under way
    int given;              // of its rows
    int owed;               // rows to be answered
    uint32_t lag;
    uint64_t since_ns;  // it waits for others since
    uint8_t *row_state; // of each row: given, owed
};

struct server;

// How pushes become updates: whole rounds (bsp.c), or each by itself (async.c).
// Functions return 0, or -1 after fail(): the peer broke the rules.
struct policy {
    int (*open)(struct server *s);
    void (*close)(struct server *s);
    void (*begin)(struct server *s);                 // all are here
    uint64_t (*welcome)(struct server *s, int rank); // one more, later: the
                                                     // round under way
    int (*push)(struct server *s, int rank, const struct ps_head *h,
                struct message **p); // may take it
    int (*step)(struct server *s, int rank, const struct ps_head *h);
    int (*commit)(struct server *s, int rank, const struct ps_head *h);
    int (*claim)(struct server *s, int rank, const struct ps_head *h);
    int (*drop)(struct server *s, int rank, const struct ps_head *h);
    int (*join)(struct server *s, int rank, const struct ps_head *h);
    void (*lost)(struct server *s, int rank); // elastic: go on without it
    void (*left)(struct server *s, int rank);
    void (*tick)(struct server *s);
};

extern const struct policy policy_bsp, policy_async;

struct server {
    struct server_config config;
    struct endpoint *endpoint;
    struct rendezvous *rendezvous;
    struct thread_pool *threads;
    struct span_lane *lane;

    bool described; // by the first HELLO; what follows is set
    struct ps_job job;
    struct store *store;
    struct peer *peers; // job.world
    const struct policy *policy;
    void *state; // of the policy

    bool running;   // all workers have come
    uint64_t round; // bsp: the one under way, from 1
    bool done;      // all have left
    bool failed;
    char why[512];
    atomic_bool stop;

    uint64_t heard_ns; // anything from anybody; when it was opened
    uint64_t said_ns, pinged_ns, hello_ns;
    uint64_t served_out, served_in; // payload, but of the worker beside us
    uint64_t spread_max;            // ssp, asp: largest difference of clocks
    uint64_t dropped;               // late gradients (backup)
    int strangers;                  // messages refused
    int refusals;                   // answers to them, less one a tick
};

// Listen. 0, or -1 after fail().
int server_open(struct server **s, const struct server_config *config);

// Serve one job: until all workers have left (0), or it is over (-1 after
// fail()).
int server_run(struct server *s);

// From another thread or a signal: end server_run() soon, with 0.
void server_stop(struct server *s);
void server_close(struct server **s);

// ---- server_send.c

// To one worker; a worker that is gone is noticed elsewhere. Rank and bytes of
// the head are filled in here.
void server_send(struct server *s, int rank, struct ps_head head,
                 const void *data, size_t bytes);

// The same with the first `bytes` of a buffer, which the message shares.
void server_send_buffer(struct server *s, int rank, struct ps_head head,
                        struct buffer *b, size_t bytes);

// False when the receiver's connection is known to be gone.
bool server_ping(struct server *s, int rank);
void server_error(struct server *s, const struct message_peer *to,
                  const char *text);

// The job is over for everybody, because of message why.
void server_fail(struct server *s, const char *why);

// A worker is gone: the end of the job, or of its membership (elastic).
void server_lost(struct server *s, int rank, const char *why);

// Whether this worker's server and it are one host, whose bytes between the
// two cross no link.
bool server_beside(const struct server *s, int rank);

// The time after which a wait for others is over, a little before the workers
// would give up themselves, since the server knows for whom they wait.
uint64_t server_patience_ns(const struct server *s);

// ---- vectors.c: SET and PULL

int vectors_set(struct server *s, int rank, const struct ps_head *h,
                const void *data);
int vectors_pull(struct server *s, int rank, const struct ps_head *h);
void vectors_serve(struct server *s); // those who waited, where it is there

#endif
