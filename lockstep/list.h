// list.h - comma-separated words of a question: workers=2,4,8 sync=ring,dps.

#ifndef LOCKSTEP_LIST_H
#define LOCKSTEP_LIST_H

enum { LIST_MOST = 32, LIST_WORKERS = 4096, LIST_BACKENDS = 4 };

struct list {
    int n, at[LIST_MOST];
};

// The backends that have a law, NULL-terminated.
extern const char *const list_backend_names[LIST_BACKENDS + 1];

// Numbers of workers, 2 .. LIST_WORKERS each; backends, as indices of the
// names. 0, or -1 after fail().
int list_workers(struct list *l, const char *text);
int list_backends(struct list *l, const char *text);

#endif
