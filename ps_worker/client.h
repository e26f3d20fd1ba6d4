// client.h - a worker's connection to all servers.
//
// The trainer's thread runs one task at a time, in poll steps, until it is
// done: a poll step sends what is ready and what credits allow, waits, and
// handles the messages that have come.
//
// A round begins earlier, with the first bucket, while backward still runs.
// What can be sent is sent at once. While the trainer goes on computing, a
// second thread runs the poll steps in its place. Only one of the two threads
// at a time runs a poll step and uses the endpoint; while `inside` is true, it
// is the second thread. Between tasks that thread looks every second at what
// servers have sent, and tells them if the trainer is busy for long.

#pragma once

#include "message/message.h"
#include "ps_wire/buffer.h"
#include "ps_wire/job.h"
#include "ps_wire/shard.h"
#include "ps_wire/wire.h"
#include "squeeze/residuals.h"
#include "sync/sync.h"
#include "telemetry/align.h"

#include <pthread.h>
#include <stdbool.h>

struct span_lane;
struct squeeze_ops;

enum { CLIENT_CLOCKS = 9 }; // round trips to measure the clocks' offset

enum task {
    TASK_NONE,
    TASK_HELLO, // until every server has sent WELCOME
    TASK_SET,   // our vector to the servers
    TASK_PULL,  // the servers' vector to us
    TASK_CLOCK, // tell the servers the zero of time on their clocks
    TASK_ROUND, // send gradients; receive parameters, or sums
};

// What the client knows of one server.
struct remote {
    char endpoint[MESSAGE_ENDPOINT];
    struct message_peer address;
    struct shard shard;
    int rows;
    bool beside;        // on this worker's host: bytes cross no link
    int next;           // row to be sent next
    int credit;         // rows that may be sent before a credit comes
    int acked;          // rows of a SET that the server has taken in
    int got;            // rows received
    bool welcome, told; // WELCOME has come; STEP (or PULL) is sent
    bool settled;       // RESULT has come
    bool normed;        // NORM has come
    bool late;          // its job was running when we came
    uint64_t earliest;  // the first round in which we can take part
    uint64_t updates;   // late, asp, ssp: our updates before it
    uint32_t epoch;
    double squares;
    uint8_t members[PS_MAX_WORLD / 8];
    uint64_t *version; // of each row, as last received
    uint64_t served_out, served_in;
    int clocks; // answers to TASK_CLOCK
    bool same_clock;
    struct align_round asked[CLIENT_CLOCKS], answered[CLIENT_CLOCKS];
};

struct client {
    struct ps_job job; // sent to every server, with that server's index
    float *params, *grads;
    struct endpoint *endpoint;
    struct buffers
        *half; // slices cast to a 16-bit wire; with squeeze=: messages
    const struct squeeze_ops *squeeze; // NULL: gradients travel whole
    struct residuals residuals;        // what our messages lack
    void *scratch;                     // of squeeze->encode()
    bool squeezes;                     // in this round
    uint64_t run_step, updates;        // as a PUSH says (ps_wire/wire.h)
    int nremotes;
    struct remote *remotes;

    pthread_mutex_t lock; // protects the following members
    pthread_cond_t changed;
    pthread_t thread;
    bool running;
    bool inside;  // the thread is in a poll step
    bool waiting; // the trainer waits for a task and runs its poll steps
    bool failed, stop;
    char why[512];
    enum task task, current; // the task asked for; the task begun
    size_t ready;            // gradients from here to the end are complete
    bool stepping;           // `step` is known
    struct ps_step step;
    enum ps_what what;      // TASK_SET, TASK_PULL
    float *vector;          // of TASK_SET, TASK_PULL
    uint64_t sets, version; // TASK_PULL: wait for at least these
    uint64_t zero_ns;       // TASK_CLOCK
    uint64_t round;         // the one under way, or the next
    bool late;              // the group was running when we joined
    struct group_stats stats;
    struct ps_result result; // of the last round
    int lowest;              // the lowest rank alive, as server 0 said then
    bool dropped;            // the last round did not use our gradient
    uint64_t missed;         // further rounds that ended without us
    uint64_t used; // gradients in all updates of the servers, as last heard

    uint64_t heard_ns;
    bool busy;              // the trainer is in client_work()
    uint64_t busy_ns;       // when the servers were told so
    struct span_lane *lane; // records the poll steps; may be NULL
    bool claimed, admitted; // backup
    uint32_t order;
    uint64_t join;           // the round that we have asked to join
    uint64_t joined_updates; // late, asp, ssp: our updates before `round`
};

// Connects to all servers and compares the job. Returns when all servers and
// all other workers have come. `endpoints` are separated by commas, in the
// servers' order. Returns 0, or -1 after fail(); the caller calls
// client_close() in both cases.
int client_open(struct client *c, const struct ps_job *job,
                const struct message_ops *transport, const char *endpoints,
                const struct sync_job *sync);
void client_close(struct client *c);

// Gradients from element `off` on are complete: begin to send them. Returns 0,
// or -1 after fail().
int client_ready(struct client *c, size_t off);

// Run a round to its end. Returns 0, and sets c->result and c->dropped, or -1
// after fail().
int client_round(struct client *c, const struct ps_step *step);

// Send a whole vector of n elements to the servers, or receive one from them.
// client_pull() waits until worker 0 has set the vector at least `sets` times
// and, under bsp, round `version` has ended. Both return 0, or -1 after fail().
int client_set(struct client *c, enum ps_what what, const float *vector);
int client_pull(struct client *c, enum ps_what what, float *vector,
                uint64_t sets, uint64_t version);

// Tell all servers that traces count from zero_ns of our clock. Returns 0, or
// -1 after fail().
int client_clock(struct client *c, uint64_t zero_ns);

// Do work(ctx), which may take longer than the deadline. Meanwhile the servers
// hear that this worker lives, and no worker misses it. Returns work's result.
int client_work(struct client *c, int (*work)(void *ctx), void *ctx);

// *stats: totals since client_open().
void client_stats(struct client *c, struct group_stats *stats);

// ---- client_send.c

// Sends one message; rank and bytes of the head are filled in. `data` counts as
// head, not as payload. Returns 0, or -1 after fail().
int client_send(struct client *c, struct remote *r, struct ps_head h,
                const void *data, size_t bytes);

// Sends row h.row of the vector `from`, cast to `wire`; fp32 is not copied.
// Returns 0, or -1 after fail().
int client_send_row(struct client *c, struct remote *r, struct ps_head h,
                    const float *from, enum dtype wire);

// Sends row h.row of the gradients as a compressed message. Returns 0, or -1
// after fail().
int client_send_message(struct client *c, struct remote *r, struct ps_head h);

// ---- task.c

// task_begin resets the state of all servers for the current task. task_send
// sends what can be sent now. task_receive handles one message of server r; its
// data have h->bytes bytes. Both return 0, or -1 after fail(). task_done:
// whether all servers have done their part.
void task_begin(struct client *c);
int task_send(struct client *c);
int task_receive(struct client *c, struct remote *r, const struct ps_head *h,
                 const void *data);
bool task_done(const struct client *c);
