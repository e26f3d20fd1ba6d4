// curve.h - ZeroMQ CURVE: both ends prove who they are, and encrypt.
//
//     DIR/server.public  server.secret     what servers and the hub prove to be
//     DIR/worker.public  worker.secret     what workers prove to be
//
// One Z85 line of 40 characters a file, as ZeroMQ's own tools write them. Give
// servers all but worker.secret, workers all but server.secret.

#ifndef MESSAGE_CURVE_H
#define MESSAGE_CURVE_H

// Make both pairs in dir, which is created; files readable by their owner only.
// 0, or -1 after fail(); keys that are there already are not replaced.
int curve_make(const char *dir);

// Before bind: this socket is a server whose identity is dir's; "" for none.
int curve_serve(void *socket, const char *dir);

// Before connect: this socket is a worker that insists on dir's server.
int curve_join(void *socket, const char *dir);

// The doorkeeper of all servers in a ZeroMQ context: a thread that admits
// whoever holds dir's worker key, and says who was turned away.
struct curve_guard;
int curve_guard_open(struct curve_guard **g, void *zmq_context,
                     const char *dir);
void curve_guard_close(struct curve_guard **g);

#endif
