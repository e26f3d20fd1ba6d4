// simulation_table.h - what all kinds of `lockstep simulate` share: some keys
// of their command lines, and the table of simulated times beside the law's.

#ifndef LOCKSTEP_SIMULATION_TABLE_H
#define LOCKSTEP_SIMULATION_TABLE_H

#include "config/keys.h"
#include "lockstep/list.h"
#include "lockstep/simulation.h"

// The values of SIMULATION_KEYS. This must be the first member of the struct
// with all settings of a command line.
struct simulation_words {
    int network, payload;
    double alpha_us, timeout_s;
    char workers[CONFIG_PATH], link[CONFIG_PATH], out[CONFIG_PATH];
};

extern const char *const simulation_networks[];

// Rows that each kind's table of keys contains.
// clang-format off
#define SIMULATION_AT(member) offsetof(struct simulation_words, member), false
#define SIMULATION_KEYS(group) \
    {group, "workers", "2,4,8,16", KEY_TEXT, SIMULATION_AT(workers), \
     .unit = "N,N..", .help = "numbers of workers, 2..4096 each"}, \
    {group, "link", "25gbit", KEY_TEXT, SIMULATION_AT(link), \
     .unit = "RATE|FILE", \
     .help = "of every worker: 25gbit, 3MB/s of payload, or a file that " \
             "lockstep bench link wrote"}, \
    {group, "alpha_us", "25", KEY_NUMBER, SIMULATION_AT(alpha_us), .min = 0, \
     .max = 1e6, .unit = "us", \
     .help = "latency of a message, with link=RATE"}, \
    {group, "network", "ideal", KEY_CHOICE, SIMULATION_AT(network), \
     .words = simulation_networks, \
     .help = "ideal: as the law assumes; smpi: SimGrid's default model"}, \
    {group, "payload", "0", KEY_INT, SIMULATION_AT(payload), .min = 0, \
     .max = 1, .help = "send real numbers, and check the sums"}, \
    {group, "timeout", "600", KEY_NUMBER, SIMULATION_AT(timeout_s), .min = 1, \
     .max = 1e6, .unit = "s", .help = "the longest time of each simulation"}, \
    {group, "out", "runs/simulate", KEY_TEXT, SIMULATION_AT(out), \
     .unit = "FOLDER", \
     .help = "the folder of the table and the simulator's files"}
// clang-format on

// Sets *s and *workers from the values *w; s->n must be set. *s points into *w.
// 0, or -1 after fail().
int simulation_read(const struct simulation_words *w, struct simulation *s,
                    struct list *workers);

struct simulation_table {
    FILE *f;
    char path[CONFIG_PATH];
};

// Opens the file FOLDER/NAME, and prints the heads of the table. `columns` are
// the comma-separated heads of the columns that a row's `names` fill. 0, or -1
// after fail().
int simulation_table_open(struct simulation_table *t,
                          const struct simulation *s, const char *name,
                          const char *columns);

// Runs a simulation, and writes a row with its seconds and the law's,
// `seconds`. `names` are comma-separated. 0, or -1 after fail().
int simulation_table_row(const struct simulation_table *t,
                         const struct simulation *s, const char *names,
                         double seconds);

// Returns the seconds that a law predicts for s->n elements on s->link.
double simulation_law(const struct simulation *s, const struct law *law);

// Closes the file. Returns rc, or -1 after fail() if rc is 0 but the file
// cannot be written.
int simulation_table_close(struct simulation_table *t, int rc);

#endif
