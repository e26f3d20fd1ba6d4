// lab.h - the interface for a lab's file: a rank sends messages to other ranks,
// and receives them.
//
// The calls run on a virtual cluster: all ranks are in one process, and the
// clock is a model (core/virtual/virtual.h has its rules). Labs 4, 6, 13, 14
// and 15 also train GPT-2 on real workers (labs/grade 4 --train). A message of
// `bytes` bytes occupies the sender's link out and the receiver's link in for
// bytes / bytes_per_s seconds, and arrives alpha_s seconds later. Computing
// takes no time. So a result is the same on every machine, however busy.
//
// A call returns 0, or -1 if it failed. Then pass -1 on: `return -1;`.

#ifndef LABS_LAB_H
#define LABS_LAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lab_ops; // the implementation of the calls: labs/ops.h

struct lab {
    int rank;             // this rank's number, from 0
    int workers, servers; // ranks 0 .. workers-1 are workers, then servers
    int thread;           // of this rank: 0; in lab 5 also 1
    double alpha_s;       // latency of a message, in seconds
    double bytes_per_s;   // of each rank's link, each way
    const struct lab_ops *ops;
    void *state;
};

enum { LAB_REQUESTS = 256 }; // the most requests of one lab_wait()

// A request: a message under way. lab_isend() and lab_irecv() fill it; after
// lab_wait() it is finished.
struct lab_req {
    void *op;
    int err; // after lab_wait(): 0, or -1 if this message failed
};

// Sends, or receives, exactly `bytes` bytes. Returns when p may be changed
// after a send, or read after a receive. A send waits until the receiver has
// called, too, unless the test buffers messages. If ranks have two threads, a
// thread exchanges messages only with threads of its own number.
int lab_send(struct lab *l, int to, const void *p, size_t bytes);
int lab_recv(struct lab *l, int from, void *p, size_t bytes);

// Begins to send, or to receive, and returns at once. Until lab_wait() has
// returned for r, do not change what is sent (you may read it), and do not
// touch what is received: it holds NaN.
int lab_isend(struct lab *l, int to, const void *p, size_t bytes,
              struct lab_req *r);
int lab_irecv(struct lab *l, int from, void *p, size_t bytes,
              struct lab_req *r);

// Waits for all n messages r[0] .. r[n-1]. Returns -1 if one of them failed:
// its r[i].err is -1.
int lab_wait(struct lab *l, struct lab_req *r, int n);

// Receives at most `most` bytes from the rank that sent first. *n gets this
// rank and the number of bytes.
struct lab_note {
    int from;
    size_t bytes;
};
int lab_recv_any(struct lab *l, struct lab_note *n, void *p, size_t most);

double lab_now(const struct lab *l);             // seconds since the start
void lab_compute(struct lab *l, double seconds); // adds computing time

// Allocates n objects of `size` bytes, filled with NaN. The bytes are counted.
// The memory is freed after your function has returned. Returns NULL if there
// is none, but not for n = 0.
void *lab_alloc(struct lab *l, size_t n, size_t size);

// Call this after a call has failed: it notes which rank did not respond, and
// what you expected from it. Returns -1.
int lab_missing(struct lab *l, int rank, const char *why);

#endif
