// simulation_table.h - what all questions to the simulator share: words, and a
// table of the answers beside the law.

#ifndef LOCKSTEP_SIMULATION_TABLE_H
#define LOCKSTEP_SIMULATION_TABLE_H

#include "config/keys.h"
#include "lockstep/list.h"
#include "lockstep/simulation.h"

// The first member of a question: what SIMULATION_KEYS fill.
struct simulation_words {
    int network, payload;
    double alpha_us, timeout_s;
    char workers[CONFIG_PATH], link[CONFIG_PATH], out[CONFIG_PATH];
};

extern const char *const simulation_networks[];

#define SIMULATION_AT(member) offsetof(struct simulation_words, member), false

// Rows of a question's table of keys.
#define SIMULATION_KEYS(group)                                                 \
    {group,                                                                    \
     "workers",                                                                \
     "2,4,8,16",                                                               \
     KEY_TEXT,                                                                 \
     SIMULATION_AT(workers),                                                   \
     .unit = "N,N..",                                                          \
     .help = "how many, 2..4096 each"},                                        \
        {group,                                                                \
         "link",                                                               \
         "25gbit",                                                             \
         KEY_TEXT,                                                             \
         SIMULATION_AT(link),                                                  \
         .unit = "RATE|FILE",                                                  \
         .help =                                                               \
             "of every worker: 25gbit, or 3MB/s of payload; or a fitted one"}, \
        {group,                                                                \
         "alpha_us",                                                           \
         "25",                                                                 \
         KEY_NUMBER,                                                           \
         SIMULATION_AT(alpha_us),                                              \
         .min = 0,                                                             \
         .max = 1e6,                                                           \
         .unit = "us",                                                         \
         .help = "latency of a message, with link=RATE"},                      \
        {group,                                                                \
         "network",                                                            \
         "ideal",                                                              \
         KEY_CHOICE,                                                           \
         SIMULATION_AT(network),                                               \
         .words = simulation_networks,                                         \
         .help = "links as the law has them, or SimGrid's default"},           \
        {group,                                                                \
         "payload",                                                            \
         "0",                                                                  \
         KEY_INT,                                                              \
         SIMULATION_AT(payload),                                               \
         .min = 0,                                                             \
         .max = 1,                                                             \
         .help = "real numbers travel and are looked at"},                     \
        {group,                                                                \
         "timeout",                                                            \
         "600",                                                                \
         KEY_NUMBER,                                                           \
         SIMULATION_AT(timeout_s),                                             \
         .min = 1,                                                             \
         .max = 1e6,                                                           \
         .unit = "s",                                                          \
         .help = "of each simulation"},                                        \
    {                                                                          \
        group, "out", "runs/simulate", KEY_TEXT, SIMULATION_AT(out),           \
            .unit = "FOLDER",                                                  \
            .help = "for the table and the simulator's files"                  \
    }

// What the words say of a simulation of s->n elements, and of workers. w
// outlives s. 0, or -1 after fail().
int simulation_read(const struct simulation_words *w, struct simulation *s,
                    struct list *workers);

struct simulation_table {
    FILE *f;
    char path[CONFIG_PATH];
};

// FOLDER/NAME, and the heads of the table that is printed. `columns`: the names
// of what a row's `names` are. 0, or -1 after fail().
int simulation_table_open(struct simulation_table *t,
                          const struct simulation *s, const char *name,
                          const char *columns);

// Simulate, and write the answer beside the law's seconds: commas separate
// `names`. 0, or -1 after fail().
int simulation_table_row(const struct simulation_table *t,
                         const struct simulation *s, const char *names,
                         double seconds);

// A law's seconds for all elements of a simulation.
double simulation_law(const struct simulation *s, const struct law *law);

// rc, or -1 after fail() where it is 0 and the file cannot be written.
int simulation_table_close(struct simulation_table *t, int rc);

#endif
