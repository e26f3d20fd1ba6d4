// virtual.h - a cluster in one process: ranks that send each other messages,
// and a clock that nobody waits for.
//
// Every rank is a function of its own (virtual_main). Exactly one of them runs
// at any moment, and which one runs next depends only on the clock, the
// messages and the seed. So two runs are the same to the last byte, on any
// machine, under any load. Time is a model:
//
// - A rank runs until a call must wait. The rank with the least time goes next;
//   the seed decides among equals. What a rank computes is free;
//   virtual_compute() adds time.
// - Each rank has one link out and one link in. A transfer begins once both
//   sides are ready and both links are free. It holds both links for bytes/B
//   seconds and has arrived alpha seconds later.
// - The sender is ready when it has called. So is the receiver, but a message
//   of at most `eager` bytes does not wait for it: such bytes wait in its
//   memory.
// - Ranks on one host share its links: they are threads of one worker. Between
//   them a message takes no time, waits for nobody, and is not counted.
// - Messages between two ranks keep their order. A receive names its source, or
//   takes what was there first (the seed decides among equals).
//
// Hence, to rounding: ring all-reduce 2(w-1)(a + S/wB); binomial tree of 2^k
// ranks k(a + S/B); a server that holds its answer 2a + 2nS/B; a chain of n
// ranks that passes m pieces on, one at a time, (n-2+m)(a + S/mB). The
// alpha-beta model: Hockney, "The communication challenge for MPP", 1994.

#ifndef VIRTUAL_VIRTUAL_H
#define VIRTUAL_VIRTUAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct virtual_rank; // one of the ranks: what its calls are given

// A rank that dies: its call number `call` (from 1) never returns, and its
// links close. The others notice at once where the death is `closed`, as when a
// process dies; else only by their deadline, as when a host goes silent.
struct virtual_kill {
    int rank;
    long call; // 0: nobody dies
    bool closed;
};

struct virtual_setup {
    int ranks;          // at least 1
    int hosts;          // 0: one a rank; else rank r is on host r % hosts
    double alpha_s;     // latency of a message
    double bytes_per_s; // of each rank's link, each way; > 0
    size_t eager;       // a message up to so long waits for no receiver
    double deadline_s;  // a call that takes longer returns -1; 0: no deadline
    uint64_t seed;      // decides among equals
    const double *slow; // by rank: factor on virtual_compute(); NULL: all 1
    struct virtual_kill kill;
    bool keep;    // log what each message held, and those that are free, too
    bool returns; // the calls of a rank that was killed, or is stuck, return -1
                  // from then on; else such a call never returns
};

// A request: a message under way. Filled by virtual_isend() and
// virtual_irecv(), emptied by virtual_wait().
struct virtual_req {
    void *op;
    int err; // after virtual_wait(): 0, or -1 where this one failed
};

// The calls of a rank. Each returns 0, or -1 after fail(). A receive buffer
// holds NaN from the call until the message is complete.

// Begin to send, or to receive, exactly `bytes` bytes. p must stay as it is, or
// stay unread, until virtual_wait() has returned.
int virtual_isend(struct virtual_rank *r, int to, const void *p, size_t bytes,
                  struct virtual_req *req);
int virtual_irecv(struct virtual_rank *r, int from, void *p, size_t bytes,
                  struct virtual_req *req);

// Wait until all n requests are complete. They are over afterwards, whatever it
// returns.
int virtual_wait(struct virtual_rank *r, struct virtual_req *req, int n);

// Receive at most `most` bytes from whoever sent first: *from and *bytes say
// who and how many.
int virtual_recv_any(struct virtual_rank *r, int *from, size_t *bytes, void *p,
                     size_t most);

// The same without waiting: whether a request is complete; and give one up.
bool virtual_is_done(const struct virtual_rank *r,
                     const struct virtual_req *req);
void virtual_cancel(struct virtual_rank *r, struct virtual_req *req);

// Wait until one of n requests is complete, at most `seconds`: 1, or 0 where
// that time is over first. All stay under way. A deadlock names the first.
int virtual_wait_any(struct virtual_rank *r, const struct virtual_req *const *q,
                     int n, double seconds);

// Messages of one stream never meet those of another. The calls above use
// stream 0; this makes a further one, with the same number on all ranks that
// call it equally often. VIRTUAL_ENVELOPE | stream is a stream of envelopes,
// which say what messages come: they take no time, wait for nobody and are not
// counted.
enum { VIRTUAL_ENVELOPE = 1 << 30 };
int virtual_stream(struct virtual_rank *r);
int virtual_isend_on(struct virtual_rank *r, int stream, int to, const void *p,
                     size_t bytes, struct virtual_req *req);
int virtual_irecv_on(struct virtual_rank *r, int stream, int from, void *p,
                     size_t bytes, struct virtual_req *req);

double virtual_now(const struct virtual_rank *r); // seconds since the start
void virtual_compute(struct virtual_rank *r, double seconds);

// Memory for n objects of `size` bytes, all NaN, and counted. It lives until
// virtual_release(), which frees all that this rank was given, or the run's
// end.
void *virtual_alloc(struct virtual_rank *r, size_t n, size_t size);
void virtual_release(struct virtual_rank *r);

int virtual_id(const struct virtual_rank *r);
int virtual_ranks(const struct virtual_rank *r);

// The rank that the calling thread is; NULL: none.
struct virtual_rank *virtual_self(void);

enum virtual_end {
    VIRTUAL_RUNNING,
    VIRTUAL_RETURNED,
    VIRTUAL_KILLED,
    VIRTUAL_STUCK,
};

struct virtual_rank_result {
    enum virtual_end end;
    int value;      // what the rank's function returned
    double ended_s; // its time then
    long calls;     // how many calls it made
    uint64_t bytes_out, bytes_in, messages_out, messages_in;
    size_t alloc_peak; // most bytes of virtual_alloc() at one time
    size_t eager_peak; // most bytes that waited in its memory for a receive
    char error[256];   // its first error; "" where there was none
};

struct virtual_message {
    int from, to;
    size_t bytes;
    double begin_s, end_s; // holds both links
    double arrived_s;
    const void *at;            // where the sender had it
    bool is_free, is_envelope; // it took no time; it is an envelope
    void *data;                // what it held; NULL: nobody asked to keep it
};

struct virtual_result {
    int ranks;
    double seconds;     // when the last rank returned
    char deadlock[512]; // who waits for whom; "" where all went on
    struct virtual_rank_result *rank;
    struct virtual_message *messages; // by begin_s
    size_t n_messages;
};

typedef int virtual_main(struct virtual_rank *r, void *arg);

// Run `body` on all ranks until every one has returned, was killed or is stuck.
// The result, or NULL after fail() where there are no threads or no memory.
struct virtual_result *virtual_run(const struct virtual_setup *setup,
                                   virtual_main *body, void *arg);
void virtual_close(struct virtual_result **v); // takes NULL

// What a trace says beside the messages themselves; members may be NULL.
struct virtual_telling {
    const char *(*rank)(const void *ctx, int rank, char name[32]);
    // Further members of message i's "args": `, "name": value` each.
    void (*message)(const void *ctx, FILE *f, size_t i);
    const void *ctx;
};

// Write the messages as Trace Event JSON: one process a rank, with a row for
// what leaves it and one for what comes in. `telling` may be NULL. 0, or -1
// after fail().
int virtual_trace(const struct virtual_result *v,
                  const struct virtual_telling *telling, FILE *f);

#ifdef __cplusplus
}
#endif

#endif
