// message.h - messages of a head and data, between servers and their workers.
//
//     server   listens; says who a message is from, and answers that address
//     worker   connects to servers 0, 1, ..; the n-th is the address n
//
// Messages between two ends arrive whole and in order; sending never waits.
// ZeroMQ is one transport, MPI point-to-point another. One thread at a time
// uses an endpoint; endpoint_wake() alone may be called by any.

#ifndef MESSAGE_MESSAGE_H
#define MESSAGE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MESSAGE_ID = 64, MESSAGE_ENDPOINT = 256 };

struct message_peer { // an address, as the transport has it
    size_t n;
    uint8_t id[MESSAGE_ID];
};

struct endpoint {
    const struct message_ops *ops;
    char address[MESSAGE_ENDPOINT]; // of a server: where it is reached
    void *state;
};

// A message that has come. Its data may be read as numbers of 4 bytes.
struct message {
    struct endpoint *endpoint;
    struct message *next; // of whoever has it
    struct message_peer from;
    int server;       // a worker's: from which; -1: a server's
    const void *head; // NULL: not a message of a head and data
    size_t head_bytes;
    void *data;
    size_t bytes;
};

struct endpoint_config {
    const char *bind;  // a server's endpoint; NULL: a worker
    const char *curve; // folder of keys; "" for none
    double timeout_s;
};

// Data that is sent from where it lies: sent(data, hint) says, perhaps in
// another thread, that it is needed no more.
struct payload {
    const void *at;
    size_t bytes;
    void (*sent)(void *data, void *hint); // NULL: copy it first
    void *hint;
};

struct message_ops {
    const char *name; // transport=NAME
    bool notices;     // sending tells whether the receiver is gone
    size_t state_size;
    int (*open)(struct endpoint *m, const struct endpoint_config *c);
    int (*connect)(struct endpoint *m, const char *endpoint);
    int (*send)(struct endpoint *m, const struct message_peer *to,
                const void *head, size_t head_bytes,
                const struct payload *data);
    struct message *(*receive)(struct endpoint *m);
    void (*drop)(struct message *p);
    void (*wait)(struct endpoint *m, int ms);
    void (*wake)(struct endpoint *m);
    int (*check)(struct endpoint *m);
    bool (*is_up)(struct endpoint *m, int server);
    void (*close)(struct endpoint *m); // must accept zeroed state
};

extern const struct message_ops message_zmq, message_mpi;

// 0, or -1 after fail().
int endpoint_open(struct endpoint **m, const struct message_ops *ops,
                  const struct endpoint_config *c);

// Says what is left to say: a worker while its server is there, for timeout_s
// at most; a server for a third of a second. All messages are back.
void endpoint_close(struct endpoint **m);

// The worker's next server; returns before it answers. 0, or -1 after fail().
int endpoint_connect(struct endpoint *m, const char *endpoint);

// The address of a worker's n-th server.
struct message_peer message_server(int n);
bool message_same_peer(const struct message_peer *a,
                       const struct message_peer *b);

// 0; 1: the receiver is gone; -1 after fail(). Takes the data in any case.
int endpoint_send(struct endpoint *m, const struct message_peer *to,
                  const void *head, size_t head_bytes,
                  const struct payload *data);

// For data that stays where it is until the answer comes.
void message_lent(void *data, void *hint);

// The next message, which the caller hands back with message_drop(); NULL: none
// is here now. Call it until it says so, then wait.
struct message *endpoint_receive(struct endpoint *m);
void message_drop(struct message *p); // takes NULL

// Until there is news, endpoint_wake(), or the time is over.
void endpoint_wait(struct endpoint *m, int ms);
void endpoint_wake(struct endpoint *m);

// A worker's: -1 after fail() that names a server which is gone or refused us.
int endpoint_check(struct endpoint *m);
bool endpoint_is_up(struct endpoint *m, int server); // has been, and still is

#endif
