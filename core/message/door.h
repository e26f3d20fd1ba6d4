// door.h - who may connect to a ZeroMQ socket of ours.
//
//     curve=DIR        CURVE with that folder's keys: proves and encrypts
//     a secret         the job's (base/secret.h). Where others can listen in it
//                      gives the keys of CURVE; within this host a password
//                      (PLAIN), which costs nothing once it was said
//     neither          within this host the user's secret, which hosts need not
//                      have in common; other hosts are not listened to
//
// A stranger ends in the handshake: what it sends is never queued. Both ends
// choose by the address of the server alone.

#ifndef MESSAGE_DOOR_H
#define MESSAGE_DOOR_H

struct door;

// Before bind: this socket of the context listens at `endpoint`. *door, which
// the caller closes after the socket, is its doorkeeper, or NULL where none is
// needed. 0, or -1 after fail().
int door_serve(struct door **door, void *context, void *socket,
               const char *endpoint, const char *curve);
void door_close(struct door **door);

// Before connect: this socket of a worker goes to the server at `endpoint`.
int door_join(void *socket, const char *endpoint, const char *curve);

#endif
