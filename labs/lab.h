// lab.h - what a lab's file is written against: a rank among others, and how it
// sends and receives.
//
// The calls run on a virtual cluster: all ranks live in one process, and the
// clock is a model (core/virtual/virtual.h has its rules). Labs 4 and 6 also
// train GPT-2 on real workers (labs/grade 4 --train). A message of `bytes`
// bytes holds the sender's link out and the receiver's link in for
// bytes / bytes_per_s seconds, and arrives alpha_s seconds later. What you
// compute is free. So a result is the same on every machine, however busy.
//
// A call returns 0, or -1 where it failed. Pass -1 on: `return -1;`.

#ifndef LABS_LAB_H
#define LABS_LAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lab_ops; // how a machine carries the calls out: labs/ops.h

struct lab {
    int rank;             // mine, from 0
    int workers, servers; // ranks 0 .. workers-1 work, the others serve
    int thread;           // of this rank: 0; 1 is its second one (lab 5)
    double alpha_s;       // latency of a message, in seconds
    double bytes_per_s;   // of each rank's link, each way
    const struct lab_ops *ops;
    void *state;
};

enum { LAB_REQUESTS = 256 }; // most that one lab_wait() takes

// A message under way: filled by lab_isend() and lab_irecv(), over after
// lab_wait().
struct lab_req {
    void *op;
    int err; // after lab_wait(): 0, or -1 where this message failed
};

// Send, or receive, exactly `bytes` bytes. Returns when p may be changed, or
// read. A long message waits until the receiver has called, too. Where ranks
// have two threads, thread 1 sends to and receives from threads 1 of the
// others, and never threads 0.
int lab_send(struct lab *l, int to, const void *p, size_t bytes);
int lab_recv(struct lab *l, int from, void *p, size_t bytes);

// Begin to send, or to receive, and return at once. Leave p alone until
// lab_wait() has returned for r: a receive buffer is NaN until then.
int lab_isend(struct lab *l, int to, const void *p, size_t bytes,
              struct lab_req *r);
int lab_irecv(struct lab *l, int from, void *p, size_t bytes,
              struct lab_req *r);

// Wait for all n messages r[0] .. r[n-1]. -1 where one of them failed: its
// r[i].err is -1.
int lab_wait(struct lab *l, struct lab_req *r, int n);

// Receive at most `most` bytes from whoever was ready first.
struct lab_note {
    int from;
    size_t bytes;
};
int lab_recv_any(struct lab *l, struct lab_note *n, void *p, size_t most);

double lab_now(const struct lab *l);             // seconds since the start
void lab_compute(struct lab *l, double seconds); // work so long

// Memory for n objects of `size` bytes. It holds NaN, is counted, and is freed
// for you when your function has returned. NULL where there is none.
void *lab_alloc(struct lab *l, size_t n, size_t size);

// A call failed: say which rank you waited for, and what for. Returns -1.
int lab_missing(struct lab *l, int rank, const char *why);

#endif
