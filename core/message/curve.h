// curve.h - keys of ZeroMQ's CURVE: both ends prove who they are, and encrypt.
//
//     DIR/server.public  server.secret     of servers and rendezvous servers
//     DIR/worker.public  worker.secret     of workers
//
// Each file has one line of 40 Z85 characters, as ZeroMQ's own tools write
// them. Servers read server.secret and worker.public. Workers read all files
// but server.secret.

#pragma once

#include "base/secret.h"

// Makes both pairs of keys in the folder `dir`, and the folder if it is
// missing. Only the owner can read the files. 0, or -1 after fail(): existing
// keys are not replaced, and nothing that was made stays.
int curve_make(const char *dir);

// Read the keys that a server needs, or a worker; the other members of *k stay
// as they are. 0, or -1 after fail().
struct curve_keys {
    uint8_t server_public[SECRET_KEY], server_secret[SECRET_KEY];
    uint8_t worker_public[SECRET_KEY], worker_secret[SECRET_KEY];
};
int curve_server_keys(const char *dir, struct curve_keys *k);
int curve_worker_keys(const char *dir, struct curve_keys *k);
