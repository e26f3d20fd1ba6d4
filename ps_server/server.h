// server.h - a parameter server: owns a shard, adds, updates, answers.
//
// It listens at an endpoint (message/message.h). Workers have many pushes under
// way before the first answer comes. One thread runs everything here. Meanwhile
// the transport moves the bytes, and a pool of threads adds and updates
// (thread_pool.h).

#pragma once

#include "cluster/rendezvous.h"
#include "message/message.h"
#include "ps_server/store.h"
#include "ps_wire/job.h"
#include "ps_wire/wire.h"

#include <stdatomic.h>
#include <stdbool.h>

struct answers;
struct span_lane;
struct spans;
struct thread_pool;

struct server_config {
    const struct message_ops *transport;
    const char *bind;   // ZeroMQ's address: tcp://host:port, port 0 for any
    const char *curve;  // folder of keys; "" for none
    int index;          // number of this server; -1: the workers say
    int servers, world; // expected numbers; 0: the workers say
    int threads;
    bool elastic; // a worker that dies before it has said so may come again
    double timeout_s;
    struct spans *spans; // records what the server does; may be NULL
};

// A request for a vector that is not there yet.
struct pull {
    bool waiting;
    enum ps_what what;
    // Answer once the vector has been set `sets` times and, under bsp, round
    // `version` has ended.
    uint64_t sets, version;
};

struct peer {
    struct message_peer id; // where replies go
    bool alive;             // has said HELLO, is not lost, and has not said BYE
    bool left;              // said BYE
    bool closed;            // its connection closed; messages may still wait
    uint64_t busy_ns;       // when it last said that it is busy
    uint64_t from;          // bsp: the first round it is counted in
    struct pull pull;
    struct ps_step step; // its last STEP
    bool stepped;        // bsp: its STEP of this round has arrived
    // ssp and asp
    uint64_t pushed, clock; // pushes received; how many of them are answered
    bool pushing;           // some rows of the next push are still to come
    int given;              // rows of that push received so far
    int owed;               // rows to answer
    uint32_t lag;
    uint64_t since_ns;  // since when it waits for other workers
    uint8_t *row_state; // by row: flags GIVEN and OWED of async.c
};

struct server;

// How pushes become updates: in rounds of all workers (bsp.c), or each push by
// itself (async.c). push, step, .. handle a message of that kind from `rank`
// (ps_wire/wire.h). Functions return 0, or -1 after fail() if the peer broke
// the rules.
struct policy {
    int (*open)(struct server *s);
    void (*close)(struct server *s);
    void (*begin)(struct server *s); // all workers have come; may be NULL
    // A worker has come to a job that runs, or has just begun. Fills in the
    // first round in which it may take part, and the epoch.
    void (*welcome)(struct server *s, int rank, struct ps_head *h);
    int (*push)(struct server *s, int rank, const struct ps_head *h,
                struct message **p); // may take the message: then *p = NULL
    int (*step)(struct server *s, int rank, const struct ps_head *h);
    int (*commit)(struct server *s, int rank, const struct ps_head *h);
    int (*claim)(struct server *s, int rank, const struct ps_head *h);
    int (*drop)(struct server *s, int rank, const struct ps_head *h);
    int (*join)(struct server *s, int rank, const struct ps_head *h);
    void (*lost)(struct server *s, int rank); // elastic: continue without it
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

    bool described; // by the first HELLO, which sets the following members
    struct ps_job job;
    struct store *store;
    struct answers *answers; // with squeeze=; else NULL
    struct peer *peers;      // job.world
    const struct policy *policy;
    void *state; // of the policy

    bool running;   // all workers have come
    bool begun;     // and the first gradient
    uint64_t round; // bsp: the one under way, from 1
    bool done;      // the last step is done, and no worker is alive
    bool failed;
    char why[512];
    atomic_bool stop; // announces nothing else

    uint64_t heard_ns;        // of the last message, or of the start
    uint64_t row_ns, told_ns; // of the last row that came; of tell_to_wait()
    uint64_t said_ns, pinged_ns, hello_ns;
    // Payload to and from all workers, except one that is beside this server.
    uint64_t served_out, served_in;
    uint64_t used; // gradients in all updates so far
    int refused;   // messages of unknown peers
    int refusals;  // answers to those, minus one for each tick
};

// Start to listen. Copies *config; what it points to must outlive the server.
// Returns 0, or -1 after fail().
int server_open(struct server **s, const struct server_config *config);

// Serve one job. Returns 0 when all workers have left, or -1 after fail() when
// the job has failed.
int server_run(struct server *s);

// From another thread or a signal: end server_run() soon, with 0.
void server_stop(struct server *s);
void server_close(struct server **s);

// ---- server_send.c

// Sends to one worker. If that worker is gone, this call does not notice. It
// fills in rank and bytes of the head.
void server_send(struct server *s, int rank, struct ps_head head,
                 const void *data, size_t bytes);

// The same with the first `bytes` of a buffer, which the message shares.
void server_send_buffer(struct server *s, int rank, struct ps_head head,
                        struct buffer *b, size_t bytes);

// Sends RESULT to a worker, with what this server has moved so far.
void server_send_result(struct server *s, int rank, struct ps_head head,
                        struct ps_result result);

// False when the receiver's connection is known to be gone.
bool server_ping(struct server *s, int rank);
void server_error(struct server *s, const struct message_peer *to,
                  const char *text);

// Ends the job for all workers, with this message.
void server_fail(struct server *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

// Appends "rank R" to a list of workers, who[size], as far as it fits.
void server_list(char *who, size_t size, int rank);

// Whether a worker is alive.
bool server_anyone(const struct server *s);

// The job is done when no worker is alive and one has said BYE. If another was
// lost, before that or after it, nothing is left for that one to do.
void server_check_done(struct server *s);

// A worker is gone: end the job, or (elastic) continue without it.
void server_lost(struct server *s, int rank, const char *why);

// Whether this worker and this server are on one host, so that their bytes
// cross no link.
bool server_beside(const struct server *s, int rank);

// How long to wait for others, in ns: a little less than the workers wait,
// since the server knows which worker is late.
uint64_t server_patience_ns(const struct server *s);

// Whether a worker has said that it is busy, so that no deadline counts for it.
bool server_is_busy(const struct server *s, int rank);

// ---- vectors.c

// Handle SET (data: one row, fp32) and PULL. Both return 0, or -1 after fail()
// if the message breaks the rules.
int vectors_set(struct server *s, int rank, const struct ps_head *h,
                const void *data);
int vectors_pull(struct server *s, int rank, const struct ps_head *h);
void vectors_serve(struct server *s); // answers pulls that can be answered now
