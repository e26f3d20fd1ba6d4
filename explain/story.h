// story.h - one exchange on a virtual cluster, message by message.
//
// Rank r's numbers are 2^r, so that a sum says itself whose numbers are in it:
// 13 = 1 + 4 + 8 is the sum of ranks 0, 2 and 3. What each message held is read
// out of its bytes, and who holds what is followed from message to message. At
// the end it must be what the ranks have; so what is told has happened.

#ifndef EXPLAIN_STORY_H
#define EXPLAIN_STORY_H

#include "horovod_ring/plan.h"
#include "sync/law.h"
#include "virtual/virtual.h"

enum { STORY_RANKS = 32, STORY_VECTORS = 2, STORY_CELLS = 64 };

// A vector that all workers have.
struct story_vector {
    const char *name; // "gradients"
    size_t n;
    bool updates; // a rank changes its own between messages
    // By rank; NULL: it has none. Copies of n elements, and where they were.
    float *first[STORY_RANKS], *last[STORY_RANKS];
    const char *at[STORY_RANKS];
    bool shown[STORY_RANKS]; // a row is drawn for it
    // Where cells begin: between these marks all is treated alike.
    size_t cuts[STORY_CELLS];
    int ncells;
};

struct story_place { // part of a vector
    int vector;      // -1: of none
    size_t off, n;
};

struct story_message {
    size_t number; // in the result
    int from, to;
    struct story_place place;
    size_t bytes;
    bool is_free; // between a worker and the server beside it
    double begin_s, arrived_s;
    int first, ncells;            // cells that it covers
    unsigned holds[STORY_CELLS];  // by cell: bit r is set where rank r is in it
    unsigned before[STORY_CELLS]; // what the receiver held when it came
};

struct story_state { // from this moment on a rank's cell holds this
    double s;
    int rank, vector, cell;
    unsigned holds;
};

struct story {
    // The question and how it was run.
    char title[160], note[512];
    int workers, servers; // servers are the ranks behind the workers
    struct link link;
    const char *other; // what messages of no vector are
    // By the envelope of a message: the bytes that it announces, and the place
    // of a message whose address does not tell. NULL: addresses always tell.
    size_t (*announced)(const void *envelope);
    struct story_place (*place)(const struct story *s, const void *envelope,
                                const struct virtual_message *m);
    const void *ctx; // of place()
    struct story_vector vectors[STORY_VECTORS];
    int nvectors;
    struct virtual_result *v;
    // What the law says: bytes by direction and rank, and seconds.
    uint64_t law[2][STORY_RANKS];
    double law_s; // 0: none
    // What story_follow() finds.
    struct story_message *messages;
    size_t n_messages;
    struct story_state *states;
    size_t n_states;
};

// A rank has vector number k at `at`; remember what is in it before and after.
int story_before(struct story *s, int k, int rank, const float *at);
int story_after(struct story *s, int k, int rank, const float *at);

// Run `body` on all ranks; `hosts` as in struct virtual_setup. 0, or -1 after
// fail() with a deadlock or the first rank's error.
int story_run(struct story *s, int hosts, virtual_main *body, void *arg);

// Follow the messages. 0, or -1 after fail(), where what they held is not what
// the ranks have.
int story_follow(struct story *s);
void story_close(struct story *s);

// "worker 2", "server 0"
const char *story_rank(const struct story *s, int rank, char name[32]);

// A message in words.
void story_words(const struct story *s, const struct story_message *m,
                 char text[512]);

#endif
