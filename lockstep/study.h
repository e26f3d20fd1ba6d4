// study.h - an experiment, and the files of its runs so far, in a folder.
//
//     DIR/NAME.ini  command.txt          the experiment, the command's words
//     DIR/cells/CELL/rK/                 a run's folder; done: summary.json
//     DIR/runs.csv table.csv ..          tables (table.c)
//     DIR/figures/NAME.svg .png          drawn by plots/NAME.gp
//     DIR/report.html
//
// The folder of a single run is a study of one cell, too.

#ifndef LOCKSTEP_STUDY_H
#define LOCKSTEP_STUDY_H

#include "config/config.h"
#include "lockstep/experiment.h"
#include "lockstep/result.h"

#include <stdio.h>

struct study {
    char out[CONFIG_PATH];
    char ini[CONFIG_PATH];  // as given; "" for a single run
    char words[EXP_TEXT];   // of the command line, blank-separated
    struct experiment *exp; // a single run has one cell and no settings
    struct result *runs;    // finished ones, by cell, then repeat
    int *cell_of;           // of each run, an index into exp->cells
    int nruns;
    double target; // loss whose seconds and tokens are compared; NaN: none
};

// Begins or goes on: reads the INI, makes the folder, and saves INI and words
// there. 0, or -1 after fail().
int study_begin(struct study **s, const char *ini, const char *out, int nwords,
                char *const *words);

// Opens a folder that study_begin() made, or a single run's.
int study_open(struct study **s, const char *dir);
void study_close(struct study **s);

// join.c: make `out` a study of n finished runs, one repeat each. 0, or -1
// after fail().
int study_join(int n, char *const *dirs, const char *out);

// Folder of repeat k (from 1) of a cell.
int study_folder(const struct study *s, int cell, int k,
                 char path[CONFIG_PATH]);
bool study_done(const struct study *s, int cell, int k);

// Begin and end a file in the study's folder. NULL or -1 after fail().
FILE *study_file(const struct study *s, const char *name);
int study_file_end(const struct study *s, FILE *f, const char *name);

// Read the results of all finished runs.
int study_results(struct study *s);

// ---- measure.c: the target loss, and each run compared with its baseline.
void study_measure(struct study *s);

// The range of a metric over the repeats of a cell; n of them are finished. For
// a speed-up it is that of study_ratio().
struct range study_range(const struct study *s, int cell, enum metric m,
                         int *n);

// Whether some cell has finished more than once.
bool study_repeats(const struct study *s);

// The first finished run of a cell; NULL if there is none.
const struct result *study_first(const struct study *s, int cell);

// A metric of `cell` divided by that of `base`: median by median. Least and
// most are over pairs of repeats. The repeats of a pair ran in one round.
struct range study_ratio(const struct study *s, int cell, int base,
                         enum metric m);

// The median over a cell's repeats of a worker's utilisation.
double study_util(const struct study *s, int cell, int worker);

// The same for its GPU's time in collectives; NaN if it has no GPU.
double study_comm(const struct study *s, int cell, int worker);

// The run of a cell's repeat k; NULL if it is not finished.
const struct result *study_run(const struct study *s, int cell, int k);

// ---- table.c: runs.csv, table.csv, shares.csv, memory.csv, workers.csv,
// curves.csv and table.txt. 0, or -1 after fail().
int study_tables(const struct study *s);

// ---- sweep.c: sweep.csv, where the experiment has a matrix.
int study_sweep(const struct study *s);

// ---- table_text.c: table.txt.
int study_text(const struct study *s);

// ---- figure.c: draws the experiment's figures. A figure that cannot be drawn
// is logged and left out. Returns how many were drawn, or -1 after fail().
int study_figures(const struct study *s);

// ---- finish.c: results, tables, figures and report, and the table on the
// terminal. 0, or -1 after fail().
int study_finish(struct study *s);

// ---- compare.c: whether all runs trained the same. Writes the verdict in
// words to `text`. Returns the number of differences.
int study_compare(const struct study *s, char *text, size_t size);

// ---- fair.c: the cells that may be compared with each other.

// The settings that make a and b different trainings: "lr (0.001, 0.002), ..".
// Returns how many they are; 0: it is the same training.
int fair_difference(const struct result *a, const struct result *b, char *text,
                    size_t size);

// Whether all runs train the same model on the same text.
bool fair_one_task(const struct study *s);

// Says in sentences, one a line, which cells may be compared, and by which
// measures.
void study_fair(const struct study *s, char *text, size_t size);

// ---- answer.c: the answer in sentences, one a line, computed from the tables;
// then warnings, if any.
void study_answer(const struct study *s, char *text, size_t size);

// ---- report.c: DIR/report.html. 0, or -1 after fail().
int study_report(const struct study *s);

#endif
