// peers.h - who is here, who is still to come, and who is gone.

#ifndef PS_SERVER_PEERS_H
#define PS_SERVER_PEERS_H

#include "ps_server/server.h"

// The rank that speaks from this address, probably `likely`; -1: nobody we
// know.
int peers_find(const struct server *s, const struct message_peer *from,
               int likely);

// HELLO: admit a worker; the first one describes the job. -1 after fail().
int peers_hello(struct server *s, const struct message_peer *from,
                const void *data, size_t bytes);

// BYE. The job is done when nobody is left.
void peers_goodbye(struct server *s, int rank);

// Call often: notices who is gone, and ends waits that take too long.
// `drained`: no message was waiting just now.
void peers_tick(struct server *s, bool drained);

#endif
