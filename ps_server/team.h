// team.h - the threads of a server: one piece of work, cut in parts, at a time.
//
// What a part is does not depend on how many threads there are, so neither do
// the bits.

#ifndef PS_SERVER_TEAM_H
#define PS_SERVER_TEAM_H

#include <stddef.h>

struct team;

// `threads` >= 1, the caller's counted. 0, or -1 after fail().
int team_open(struct team **t, int threads);
void team_close(struct team **t);

// fn(ctx, part) for all parts in [0, parts), and return when all are done.
typedef void team_part(void *ctx, size_t part);
void team_run(struct team *t, team_part *fn, void *ctx, size_t parts);

#endif
