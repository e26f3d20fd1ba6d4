// door.h - who may connect to a ZeroMQ socket of ours.
//
//     curve=DIR        CURVE with that folder's keys: proves and encrypts
//     a secret         the job's (base/secret.h). If others can listen in, the
//                      keys of CURVE come from it. Within this host it is a
//                      password (PLAIN): that costs nothing after the handshake
//     neither          within this host the user's secret, which may be another
//                      on each host; other hosts cannot send anything
//
// A stranger fails in the handshake, so its messages are never queued. Both
// ends choose by the server's address, and by nothing else.

#ifndef MESSAGE_DOOR_H
#define MESSAGE_DOOR_H

struct door;

// Call it before bind: this socket of the context will listen at `endpoint`.
// *door is its doorkeeper, or NULL if it needs none; the caller closes *door
// after the socket. 0, or -1 after fail().
int door_serve(struct door **door, void *context, void *socket,
               const char *endpoint, const char *curve);
void door_close(struct door **door);

// Call it before connect: this socket of a worker will connect to the server at
// `endpoint`.
int door_join(void *socket, const char *endpoint, const char *curve);

#endif
