// message.h - messages of a head and data, between servers and their workers.
//
//     server   listens; a message has its sender's address, for the answer
//     worker   connects to servers 0, 1, ..; server n has the address n
//
// Messages between two endpoints arrive whole and in order. Sending never
// waits. ZeroMQ is one transport, MPI point-to-point another. Only one thread
// at a time may use an endpoint, but any thread may call endpoint_wake().

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MESSAGE_ID = 64, MESSAGE_ENDPOINT = 256 };

struct message_peer { // an address, in the transport's form
    size_t n;
    uint8_t id[MESSAGE_ID];
};

struct endpoint {
    const struct message_ops *ops;
    char address[MESSAGE_ENDPOINT]; // a server's: workers connect to it
    void *state;
};

// A received message. Its data are aligned for numbers of 4 bytes.
struct message {
    struct endpoint *endpoint;
    struct message *next; // for lists of the message's present owner
    struct message_peer from;
    int server;       // at a worker: the server that sent it; at a server: -1
    const void *head; // NULL: it does not consist of a head and data
    size_t head_bytes;
    void *data;
    size_t bytes;
};

struct endpoint_config {
    const char *bind;  // a server: the endpoint to listen at; a worker: NULL
    int servers;       // a worker: how many it will connect to
    const char *curve; // folder of keys; "" for none
    double timeout_s;  // a silent peer counts as gone after that time
};

// Data to be sent without a copy. sent(data, hint) is called when the data are
// no longer needed, perhaps in another thread.
struct payload {
    const void *at;
    size_t bytes;
    void (*sent)(void *data, void *hint); // NULL: the data are copied
    void *hint;
};

struct message_ops {
    const char *name; // transport=NAME
    bool notices;     // endpoint_send() can tell that the receiver is gone
    size_t state_size;
    int (*open)(struct endpoint *m, const struct endpoint_config *c);
    int (*connect)(struct endpoint *m, const char *endpoint);
    int (*send)(struct endpoint *m, const struct message_peer *to,
                const void *head, size_t head_bytes,
                const struct payload *data);
    struct message *(*receive)(struct endpoint *m);
    void (*drop)(struct message *p);
    void (*wait)(struct endpoint *m, int ms);
    // Optional: one thread needs no wake(), and a transport that ends the job
    // when a server is lost needs neither check() nor is_up().
    void (*wake)(struct endpoint *m);
    int (*check)(struct endpoint *m);
    bool (*is_up)(struct endpoint *m, int server);
    void (*close)(struct endpoint *m); // must accept zeroed state
};

extern const struct message_ops message_zmq, message_mpi;

// Opens an endpoint; endpoint_close() closes it. 0, or -1 after fail().
int endpoint_open(struct endpoint **m, const struct message_ops *ops,
                  const struct endpoint_config *c);

// Sends the messages that still wait, then closes the endpoint. With ZeroMQ, a
// worker tries to send for at most timeout_s, while it is connected, and a
// server for 0.3 s. With MPI, both try for at most 1 s. The caller must have
// dropped all messages that it received. Takes NULL.
void endpoint_close(struct endpoint **m);

// Connects a worker to its next server, and does not wait for the server's
// answer. 0, or -1 after fail().
int endpoint_connect(struct endpoint *m, const char *endpoint);

// The address of a worker's server n; whether two addresses are equal.
struct message_peer message_server(int n);
bool message_same_peer(const struct message_peer *a,
                       const struct message_peer *b);

// Sends a message. 0, or 1 if the receiver is gone, or -1 after fail(). In all
// three cases data->sent is called, now or later.
int endpoint_send(struct endpoint *m, const struct message_peer *to,
                  const void *head, size_t head_bytes,
                  const struct payload *data);

// A `sent` that does nothing, for data that stay in place until the answer
// arrives.
void message_lent(void *data, void *hint);

// The next message, or NULL if none has arrived. The caller returns it with
// message_drop(). Call it until it returns NULL, then call endpoint_wait().
struct message *endpoint_receive(struct endpoint *m);
void message_drop(struct message *p); // takes NULL

// Messages in order. message_take() returns NULL if there is none.
struct message_queue {
    struct message *first, *last;
};
void message_put(struct message_queue *q, struct message *p);
struct message *message_take(struct message_queue *q);

// Waits until something arrives, endpoint_wake() is called, or `ms`
// milliseconds pass.
void endpoint_wait(struct endpoint *m, int ms);
void endpoint_wake(struct endpoint *m);

// For a worker. Check: 0, or -1 after fail() with the name of a server that is
// gone or refused us. Up: whether the server is connected.
int endpoint_check(struct endpoint *m);
bool endpoint_is_up(struct endpoint *m, int server);
