// bsp.h - the present round, which bsp.c and bsp_members.c share.

#pragma once

#include "ps_server/gather.h"
#include "ps_server/server.h"

struct bsp {
    struct gather *rows;
    int *rank_of;      // of a place in the order; -1: not known yet
    int *order_of;     // the place of a rank; -1: not in this round
    int need;          // workers in the round
    int claims;        // places assigned so far (backup)
    int complete;      // rows whose sum is complete
    int stepped;       // workers whose STEP has arrived
    bool active;       // a message of this round has arrived
    bool waiting;      // for COMMIT
    uint32_t epoch;    // how often a round was restarted (elastic)
    uint64_t heard_ns; // when the last message of this round came
};

static inline struct bsp *bsp_of(const struct server *s)
{
    return s->state;
}

// The head of a message about the present round.
struct ps_head bsp_answer(const struct server *s, enum ps_kind kind);

// Begins round s->round, with the present members.
void bsp_begin(struct server *s);

// Whether a message was sent before the round was restarted.
bool bsp_outdated(const struct server *s, const struct ps_head *h);

// Ends the job if so many workers have left that a round has too few.
void bsp_check_left(struct server *s);

// The functions of policy_bsp for members. bsp_claim, bsp_drop and bsp_join
// handle a message of that kind from `rank`. bsp_lost: the worker is dead;
// bsp_left: it has said BYE; bsp_welcome: it has come to a running job.
// bsp_tick checks the deadlines of a round.
int bsp_claim(struct server *s, int rank, const struct ps_head *h);
void bsp_lost(struct server *s, int rank);
void bsp_left(struct server *s, int rank);
int bsp_drop(struct server *s, int rank, const struct ps_head *h);
void bsp_welcome(struct server *s, int rank, struct ps_head *h);
int bsp_join(struct server *s, int rank, const struct ps_head *h);
void bsp_tick(struct server *s);
