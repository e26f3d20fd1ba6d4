// story.h - describes one exchange on a virtual cluster, message by message.
//
// All numbers of rank r are 2^r, so a sum shows which ranks' numbers are in it:
// 13 = 1 + 4 + 8 is the sum of ranks 0, 2 and 3. The contents of each message
// are read from its bytes, and the contents of every rank follow from message
// to message. At the end they must equal what the ranks really have. So the
// story is true.

#pragma once

#include "horovod_ring/plan.h"
#include "sync/law.h"
#include "virtual/virtual.h"

enum { STORY_RANKS = 32, STORY_VECTORS = 2, STORY_CELLS = 64 };

// A vector that all workers have.
struct story_vector {
    const char *name; // "gradients"
    size_t n;
    bool updates; // a rank may change its copy between messages
    // By rank: its n elements before and after the exchange, and their address.
    // NULL: the rank has no such vector.
    float *first[STORY_RANKS], *last[STORY_RANKS];
    const char *at[STORY_RANKS];
    bool shown[STORY_RANKS]; // a row is drawn for it
    // Where cells begin. A cell is a range that no message divides.
    size_t cuts[STORY_CELLS];
    int ncells;
};

struct story_place { // part of a vector
    int vector;      // its number; -1: no vector
    size_t off, n;
};

struct story_message {
    const struct virtual_message *is; // is_free: between a worker and the
                                      // server beside it
    struct story_place place;
    int first, ncells;            // cells that it covers
    unsigned holds[STORY_CELLS];  // by cell: bit r: rank r's numbers are in it
    unsigned before[STORY_CELLS]; // the same of the receiver's cells, just
                                  // before the message arrives
};

struct story_state { // from time s on a cell of a rank holds this sum
    double s;
    int rank, vector, cell;
    unsigned holds;
};

struct story {
    // The question and how it was run.
    char title[160], note[512];
    int workers, servers; // servers are the ranks after the workers
    struct link link;
    const char *other; // what messages without a vector have, in words
    // Some messages are copies, so their address does not tell which part of
    // the vector they are. place() finds it by the envelope
    // (message_virtual.h). NULL: addresses always tell.
    struct story_place (*place)(const struct story *s, const void *envelope,
                                const struct virtual_message *m);
    const void *ctx; // for place()
    struct story_vector vectors[STORY_VECTORS];
    int nvectors;
    struct virtual_result *v;
    // The law: bytes by direction and rank, and seconds of the exchange.
    uint64_t law[2][STORY_RANKS];
    double law_s; // 0: none
    // The results of story_follow().
    struct story_message *messages;
    size_t n_messages;
    struct story_state *states;
    size_t n_states;
};

// To be called before and after the exchange: they copy the n elements at `at`,
// which are vector number k of a rank. 0, or -1 after fail().
int story_before(struct story *s, int k, int rank, const float *at);
int story_after(struct story *s, int k, int rank, const float *at);

// Runs `body` on all ranks; `hosts` as in struct virtual_setup. 0, or -1 after
// fail() with a deadlock or the first rank's error.
int story_run(struct story *s, int hosts, virtual_main *body, void *arg);

// Follows the messages and fills in messages and states. 0, or -1 after fail(),
// if the contents of messages and ranks disagree.
int story_follow(struct story *s);
void story_close(struct story *s);
