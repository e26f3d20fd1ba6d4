// client.h - a worker's connection to all servers.
//
// The trainer's thread asks for one task at a time and runs its poll steps
// itself until it is done: send what is ready and what credits allow, wait,
// take in what has come. A round begins earlier, while backward still runs,
// with the first bucket; what can be sent is sent at once, and while the
// trainer computes on, a thread runs the poll steps in its place. It starts
// with the first bucket that is not the last. One of them at a time is `inside`
// a poll step, and has the endpoint.

#ifndef PS_WORKER_CLIENT_H
#define PS_WORKER_CLIENT_H

#include "message/message.h"
#include "ps_wire/buffer.h"
#include "ps_wire/job.h"
#include "ps_wire/shard.h"
#include "ps_wire/wire.h"
#include "sync/sync.h"
#include "telemetry/align.h"

#include <pthread.h>
#include <stdbool.h>

struct span_lane;

enum { CLIENT_CLOCKS = 9 }; // questions that find how far clocks are apart

enum task {
    TASK_NONE,
    TASK_HELLO, // until every server welcomes us
    TASK_SET,   // our vector into the servers
    TASK_PULL,  // the servers' vector into ours
    TASK_CLOCK, // tell the servers where time zero lies on their clocks
    TASK_ROUND, // gradients out; parameters, or sums, in
};

// One server, as seen from here.
struct remote {
    char endpoint[MESSAGE_ENDPOINT];
    struct message_peer address;
    struct shard shard;
    int rows;
    bool beside;        // on this worker's host: bytes cross no link
    int next;           // row to be sent next
    int credit;         // rows that may be sent before a credit comes
    int acked;          // rows of a SET taken in
    int got;            // rows received
    bool welcome, told; // its WELCOME is in; STEP (or PULL) is out
    bool settled;       // RESULT is in
    bool normed;        // NORM is in
    uint64_t earliest;  // the first round that it can count us in
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
    struct ps_job job; // as every server is told, but for its index
    float *params, *grads;
    double timeout_s;
    struct endpoint *endpoint;
    struct buffers *half; // slices in a 16-bit wire
    int nremotes;
    struct remote *remotes;

    pthread_mutex_t lock; // of all that follows
    pthread_cond_t changed;
    pthread_t thread;
    bool running;
    bool inside;  // the thread is in a poll step
    bool waiting; // the trainer waits for a task: poll steps are its own
    bool failed, stop;
    char why[512];
    enum task task, current; // asked for; begun
    size_t ready;            // gradients from here to the end are complete
    bool stepping;           // and the numbers of the step are known
    struct ps_step step;
    enum ps_what what;      // TASK_SET, TASK_PULL
    float *vector;          // of TASK_SET, TASK_PULL
    uint64_t sets, version; // TASK_PULL: at least
    uint64_t zero_ns;       // TASK_CLOCK
    uint64_t round;         // the next, or the one under way
    bool late;              // the group ran already when we came
    struct group_stats stats;
    struct ps_result result; // of the last round
    bool dropped;            // the last round did without us
    uint64_t missed;         // and so did so many rounds after it

    uint64_t heard_ns;
    struct span_lane *lane; // what the poll steps do; NULL: not recorded
    bool claimed, admitted; // backup
    uint32_t order;
    uint64_t join; // the round that we asked to join
};

// Connect, and agree on the job: until all servers and all other workers are
// there. `endpoints`: comma-separated, in the servers' order. 0, or -1 after
// fail(); client_close() follows either way.
int client_open(struct client *c, const struct ps_job *job,
                const struct message_ops *transport, const char *endpoints,
                const struct sync_job *sync);
void client_close(struct client *c);

// Gradients from element `off` on are complete.
int client_ready(struct client *c, size_t off);

// Run a round to its end. 0, or -1 after fail(); then c->result, c->dropped.
int client_round(struct client *c, const struct ps_step *step);

// Whole vectors of n elements to and from the servers.
int client_set(struct client *c, enum ps_what what, const float *vector);
int client_pull(struct client *c, enum ps_what what, float *vector,
                uint64_t sets, uint64_t version);

// Tell all servers that traces count from zero_ns of our clock.
int client_clock(struct client *c, uint64_t zero_ns);

// Totals so far.
void client_stats(struct client *c, struct group_stats *stats);

// ---- client_send.c

// Send; rank, index and bytes are filled in. Row payload is counted apart from
// heads. 0, or -1 after fail().
int client_send(struct client *c, struct remote *r, struct ps_head h,
                const void *data, size_t bytes);

// A row of the vector or gradient, without copying it where the format allows.
int client_send_row(struct client *c, struct remote *r, struct ps_head h,
                    const float *from, enum dtype wire);

// ---- task.c: begin the current task, send what can be sent, take one message
// in; whether the task is complete.

void task_begin(struct client *c);
int task_send(struct client *c);
int task_receive(struct client *c, struct remote *r, const struct ps_head *h,
                 const void *data);
bool task_done(const struct client *c);

#endif
