// curve.h - ZeroMQ CURVE: both ends prove who they are, and encrypt.
//
//     DIR/server.public  server.secret     what servers prove to be, and the
//                                          rendezvous server
//     DIR/worker.public  worker.secret     what workers prove to be
//
// One Z85 line of 40 characters a file, as ZeroMQ's own tools write them. Give
// servers all but worker.secret, workers all but server.secret.

#ifndef MESSAGE_CURVE_H
#define MESSAGE_CURVE_H

#include <stdint.h>

// Make both pairs in dir, which is created; files readable by their owner only.
// 0, or -1 after fail(); keys that are there already are not replaced.
int curve_make(const char *dir);

// What a server needs of them, and what a worker; the others are zero. 0, or -1
// after fail().
enum { CURVE_KEY = 32 };
struct curve_keys {
    uint8_t server_public[CURVE_KEY], server_secret[CURVE_KEY];
    uint8_t worker_public[CURVE_KEY], worker_secret[CURVE_KEY];
};
int curve_server_keys(const char *dir, struct curve_keys *k);
int curve_worker_keys(const char *dir, struct curve_keys *k);

#endif
