// mail.h - messages without contents: who, what, which row, how many bytes.
//
// A letter takes its way through the simulated network as soon as it is sent,
// whether or not anybody waits for it, as through a socket with room enough:
// all that a process has sent shares its link. Heads alone have a box of their
// own, so that they do not queue behind rows from others.

#ifndef SIMULATE_MAIL_H
#define SIMULATE_MAIL_H

#include <stddef.h>

enum { MAIL_BOXES = 2 };

struct letter {
    struct letter *self; // the receiver's
    int from, kind, row;
};

struct sent; // a letter that is under way

struct mail {
    int rank;
    struct letter *next[MAIL_BOXES]; // of each box: the one that is waited for
    void *waits[MAIL_BOXES];
    struct sent *first, *last;
};

// Every rank opens before the first letter is sent.
void mail_open(struct mail *m, int rank);

// Waits until all that was sent has come in.
void mail_close(struct mail *m);

// 0, or -1 after fail(). `bytes` are those of head and data.
int mail_send(struct mail *m, int to, int kind, int row, size_t bytes);

// The next letter, once one has come in.
struct letter mail_take(struct mail *m);

#endif
