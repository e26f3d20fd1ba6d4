// list.h - reads the lists of predict and fit: workers=2,4,8 sync=ring,dps.

#ifndef LOCKSTEP_LIST_H
#define LOCKSTEP_LIST_H

enum { LIST_MOST = 32, LIST_WORKERS = 4096, LIST_TEXT = 1024 };

struct list {
    int n, at[LIST_MOST];
};

// Read numbers of workers, each 2 .. LIST_WORKERS, or names of backends of
// several workers, which become indices of backend_at(). 0, or -1 after fail().
int list_workers(struct list *l, const char *text);
int list_backends(struct list *l, const char *text);

// Writes the names of all backends that list_backends() accepts, separated by
// commas; or of those that can be simulated. Returns `text`.
const char *list_all_backends(char text[LIST_TEXT]);
const char *list_simulated_backends(char text[LIST_TEXT]);

#endif
