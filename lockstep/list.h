// list.h - comma-separated words of a question: workers=2,4,8 sync=ring,dps.

#ifndef LOCKSTEP_LIST_H
#define LOCKSTEP_LIST_H

enum { LIST_MOST = 32, LIST_WORKERS = 4096, LIST_TEXT = 1024 };

struct list {
    int n, at[LIST_MOST];
};

// Numbers of workers, 2 .. LIST_WORKERS each; backends of several workers, as
// backend_at() counts them. 0, or -1 after fail().
int list_workers(struct list *l, const char *text);
int list_backends(struct list *l, const char *text);

// All of them, as list_backends() reads them.
const char *list_all_backends(char text[LIST_TEXT]);

#endif
