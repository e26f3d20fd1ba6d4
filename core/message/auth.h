// auth.h - decides which processes may connect to a ZeroMQ socket of ours.
//
//     curve=DIR     CURVE with the keys of that folder: proves and encrypts
//     a secret      the job's secret (base/secret.h). On a network, keys of
//                   CURVE are derived from it. Within this host it is a
//                   password (PLAIN), which costs nothing after the handshake
//     neither       within this host the secret of the user, which may differ
//                   from host to host. A server does not listen to other hosts
//
// A process without the key fails in the handshake, so its messages are never
// queued. If both ends have the same settings, they choose the same mechanism,
// since the choice depends only on the settings and the server's address.

#pragma once

struct auth;

// To be called before zmq_bind(): `socket` of `context` will listen at
// `endpoint`. `curve` is a folder of keys or "". *auth becomes the
// authenticator of the socket, a thread, or NULL if any peer may connect. The
// caller closes it after the socket. 0, or -1 after fail().
int auth_serve(struct auth **auth, void *context, void *socket,
               const char *endpoint, const char *curve);
void auth_close(struct auth **auth);

// To be called before zmq_connect(): `socket` of a worker will connect to the
// server at `endpoint`. 0, or -1 after fail().
int auth_join(void *socket, const char *endpoint, const char *curve);
