// mail.h - messages of a head and data, between servers and their workers.
//
//     server   listens; says who a message is from, and answers that address
//     worker   connects to servers 0, 1, ..; the n-th is the address n
//
// Messages between two ends arrive whole and in order; sending never waits.
// ZeroMQ is one carrier, MPI point-to-point another. One thread at a time uses
// an end; mail_wake() alone may be called by any.

#ifndef CLUSTER_MAIL_H
#define CLUSTER_MAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MAIL_ID = 64, MAIL_ENDPOINT = 256 };

struct mail_peer { // an address, as the carrier has it
    size_t n;
    uint8_t id[MAIL_ID];
};

struct mail { // one end
    const struct mail_ops *ops;
    char endpoint[MAIL_ENDPOINT]; // of a server: where it is reached
    void *state;
};

// A message that has come. Its data may be read as numbers of 4 bytes.
struct parcel {
    struct mail *mail;
    struct parcel *next; // of whoever has it
    struct mail_peer from;
    int server;       // a worker's: from which; -1: a server's
    const void *head; // NULL: not a message of a head and data
    size_t head_bytes;
    void *data;
    size_t bytes;
};

struct mail_config {
    const char *bind;  // a server's endpoint; NULL: a worker
    const char *curve; // folder of keys; "" for none
    double timeout_s;
};

// Data that is sent from where it lies: sent(data, hint) says, perhaps in
// another thread, that it is needed no more.
struct mail_data {
    const void *at;
    size_t bytes;
    void (*sent)(void *data, void *hint); // NULL: copy it first
    void *hint;
};

struct mail_ops {
    const char *name; // transport=NAME
    bool notices;     // sending tells whether the receiver is gone
    size_t state_size;
    int (*open)(struct mail *m, const struct mail_config *c);
    int (*connect)(struct mail *m, const char *endpoint);
    int (*send)(struct mail *m, const struct mail_peer *to, const void *head,
                size_t head_bytes, const struct mail_data *data);
    struct parcel *(*receive)(struct mail *m);
    void (*drop)(struct parcel *p);
    void (*wait)(struct mail *m, int ms);
    void (*wake)(struct mail *m);
    int (*check)(struct mail *m);
    bool (*is_up)(struct mail *m, int server);
    void (*close)(struct mail *m); // must accept zeroed state
};

extern const struct mail_ops mail_zmq, mail_mpi;

// 0, or -1 after fail().
int mail_open(struct mail **m, const struct mail_ops *ops,
              const struct mail_config *c);

// Says what is left to say, for a second at most. All parcels are back.
void mail_close(struct mail **m);

// The worker's next server; returns before it answers. 0, or -1 after fail().
int mail_connect(struct mail *m, const char *endpoint);

// The address of a worker's n-th server.
struct mail_peer mail_server(int n);
bool mail_same(const struct mail_peer *a, const struct mail_peer *b);

// 0; 1: the receiver is gone; -1 after fail(). Takes the data in any case.
int mail_send(struct mail *m, const struct mail_peer *to, const void *head,
              size_t head_bytes, const struct mail_data *data);

// For data that stays where it is until the answer comes.
void mail_lent(void *data, void *hint);

// The next message, which the caller hands back with mail_drop(); NULL: none is
// here now. Call it until it says so, then wait.
struct parcel *mail_receive(struct mail *m);
void mail_drop(struct parcel *p); // takes NULL

// Until there is news, mail_wake(), or the time is over.
void mail_wait(struct mail *m, int ms);
void mail_wake(struct mail *m);

// A worker's: -1 after fail() that names a server which is gone or refused us.
int mail_check(struct mail *m);
bool mail_is_up(struct mail *m, int server); // has been, and still is

#ifdef __cplusplus
}
#endif

#endif
