// virtual.h - a cluster in one process: ranks that send each other messages,
// and a simulated clock, so that waiting takes no real time.
//
// Every rank runs a function (virtual_main) in its own thread. Exactly one rank
// runs at any moment, and which one runs next depends only on the clock, the
// messages and the seed. So two runs are the same to the last byte, on any
// machine, under any load. The model of time:
//
// - A rank runs until a call must wait. The rank with the earliest time runs
//   next; the seed decides among equals. Computing takes no time, but
//   virtual_compute() adds time.
// - Each rank has one link out and one link in. A transfer begins once both
//   sides are ready and both links are free. It holds both links for bytes/B
//   seconds and has arrived alpha seconds later.
// - A sender or receiver is ready when it has made its call. But a message of
//   at most `eager` bytes does not wait for the receiver's call: it moves, and
//   waits in the receiver's memory.
// - Ranks on one host share its links: they are threads of one worker. A
//   message between them takes no time, does not wait, and is not counted.
// - Messages between two ranks keep their order. A receive names its source, or
//   takes the message that arrived first (the seed decides among equals).
//
// So, apart from rounding, the times are:
//
//     ring all-reduce of w ranks               2(w-1)(a + S/wB)
//     binomial tree of 2^k ranks               k(a + S/B)
//     server that answers n clients            2a + 2nS/B
//     chain of n ranks, m pieces in turn       (n-2+m)(a + S/mB)
//
// The server answers when all n messages have arrived. The alpha-beta model:
// Hockney, "The communication challenge for MPP", 1994.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct virtual_rank; // one of the ranks: an argument of all its calls

// A rank that dies: it ends in its call number `call` (from 1). With `closed`
// its links close at the same time, and the other ranks notice at once, as when
// a process dies. Else they notice only by their deadline, as when a host stops
// answering.
struct virtual_kill {
    int rank;
    long call; // 0: no rank dies
    bool closed;
};

struct virtual_setup {
    int ranks;          // at least 1
    int hosts;          // 0: one for each rank; else rank r: host r % hosts
    double alpha_s;     // latency of a message
    double bytes_per_s; // of each rank's link, each way; > 0
    size_t eager;       // messages of up to so many bytes wait for no receiver
    double deadline_s;  // a call that takes longer returns -1; 0: no deadline
    uint64_t seed;      // decides among equals
    const double *slow; // by rank: factor on virtual_compute(); NULL: all 1
    struct virtual_kill kill;
    bool keep;    // also log messages that take no time, and all contents
    bool returns; // calls of a rank that was killed or is stuck return -1;
                  // without `returns` such a call never returns
};

// A request: a send or receive under way. virtual_isend() and virtual_irecv()
// fill it, virtual_wait() empties it.
struct virtual_req {
    void *op;
    int err; // after virtual_wait(): 0, or -1 if this request failed
};

// The calls of a rank. Each returns 0, or -1 after fail(). A receive buffer
// holds NaN from the call until the message is complete.

// Begins to send, or to receive, exactly `bytes` bytes. Until virtual_wait()
// has returned, do not change p after a send, and do not read p after a
// receive.
int virtual_isend(struct virtual_rank *r, int to, const void *p, size_t bytes,
                  struct virtual_req *req);
int virtual_irecv(struct virtual_rank *r, int from, void *p, size_t bytes,
                  struct virtual_req *req);

// Waits until all n requests are complete or have failed. Afterwards all of
// them are empty.
int virtual_wait(struct virtual_rank *r, struct virtual_req *req, int n);

// Receives at most `most` bytes from the rank whose message arrives first.
// *from becomes that rank, and *bytes the number of bytes.
int virtual_recv_any(struct virtual_rank *r, int *from, size_t *bytes, void *p,
                     size_t most);

// virtual_is_done() says whether a request is complete, virtual_cancel()
// cancels a request. Neither waits.
bool virtual_is_done(const struct virtual_rank *r,
                     const struct virtual_req *req);
void virtual_cancel(struct virtual_rank *r, struct virtual_req *req);

// Waits until one of n requests is complete, for at most `seconds`. Returns 1
// if one is complete, 0 if the time has passed, -1 after fail(). All requests
// stay under way. The message about a deadlock names the first one.
int virtual_wait_any(struct virtual_rank *r, const struct virtual_req *const *q,
                     int n, double seconds);

// A receive of one stream never gets a message of another. The calls above use
// stream 0. virtual_stream() makes a new stream: its number is the same on all
// ranks that have called it equally often. VIRTUAL_ENVELOPE | stream is a
// stream of envelopes, which announce the next messages. Envelopes take no
// time, do not wait for a receiver, and are not counted.
enum { VIRTUAL_ENVELOPE = 1 << 30 };
int virtual_stream(struct virtual_rank *r);
int virtual_isend_on(struct virtual_rank *r, int stream, int to, const void *p,
                     size_t bytes, struct virtual_req *req);
int virtual_irecv_on(struct virtual_rank *r, int stream, int from, void *p,
                     size_t bytes, struct virtual_req *req);

double virtual_now(const struct virtual_rank *r); // seconds since the start

// Adds `seconds` of computing to this rank's time, times its factor in `slow`.
void virtual_compute(struct virtual_rank *r, double seconds);

// Memory for n objects of `size` bytes, filled with NaN, and counted. It is
// freed at the end of the run, or by virtual_release(), which frees all memory
// of this rank. NULL after fail().
void *virtual_alloc(struct virtual_rank *r, size_t n, size_t size);
void virtual_release(struct virtual_rank *r);

// This rank's number, from 0; the number of ranks.
int virtual_id(const struct virtual_rank *r);
int virtual_ranks(const struct virtual_rank *r);

// The rank of the calling thread; NULL if it is none.
struct virtual_rank *virtual_self(void);

enum virtual_end {
    VIRTUAL_RUNNING,
    VIRTUAL_RETURNED,
    VIRTUAL_KILLED,
    VIRTUAL_STUCK,
};

struct virtual_rank_result {
    enum virtual_end end;
    int value;      // the result of the rank's function
    double ended_s; // the rank's time when it ended
    long calls;     // how many calls it made
    uint64_t bytes_out, bytes_in;
    size_t alloc_peak; // most bytes of virtual_alloc() at one time
    char error[256];   // its first error; "" if there was none
};

struct virtual_message {
    int from, to;
    size_t bytes;
    double begin_s, end_s; // when it holds both links
    double arrived_s;
    const void *at;            // its address at the sender
    bool is_free, is_envelope; // it takes no time; it is an envelope
    void *data;                // its contents; NULL without `keep`
};

struct virtual_result {
    int ranks;
    double seconds;     // the time when the last rank ended
    char deadlock[512]; // describes the deadlock; "": there was none
    struct virtual_rank_result *rank;
    struct virtual_message *messages; // by begin_s
    size_t n_messages;
};

typedef int virtual_main(struct virtual_rank *r, void *arg);

// Runs `body` on all ranks until every rank has returned, was killed or is
// stuck. Returns the result, which virtual_close() frees, or NULL after fail()
// if threads or memory are short.
struct virtual_result *virtual_run(const struct virtual_setup *setup,
                                   virtual_main *body, void *arg);
void virtual_close(struct virtual_result **v); // takes NULL

// What a caller can add to a trace. Members may be NULL.
struct virtual_telling {
    // The name of a rank, which it may write to `name`.
    const char *(*rank)(const void *ctx, int rank, char name[32]);
    // Writes further members of "args" of message i, each as `, "name": value`.
    void (*message)(const void *ctx, FILE *f, size_t i);
    const void *ctx;
};

// Writes the messages as Trace Event JSON. Each rank is a process with two
// rows: messages that it sends, and messages that it receives. `telling` may be
// NULL. 0, or -1 after fail().
int virtual_trace(const struct virtual_result *v,
                  const struct virtual_telling *telling, FILE *f);

#ifdef __cplusplus
}
#endif
