// study.h - makes and reads the folder of an experiment, with the files of its
// runs so far.
//
//     DIR/NAME.ini  command.txt          the experiment, the command's words
//     DIR/cells/CELL/rK/                 repeat K of a cell; summary.json is
//                                        there when the run is done
//     DIR/runs.csv table.csv ..          tables (table.c)
//     DIR/figures/NAME.svg .png          drawn by plots/NAME.gp
//     DIR/report.html
//
// The folder of a single run is also a study, of one cell.

#ifndef LOCKSTEP_STUDY_H
#define LOCKSTEP_STUDY_H

#include "config/config.h"
#include "lockstep/experiment.h"
#include "lockstep/result.h"

#include <stdio.h>

struct study {
    char out[CONFIG_PATH];
    char ini[CONFIG_PATH];  // path of the INI file; "" for a single run
    char words[EXP_TEXT];   // of the command line, each with a blank before it
    struct experiment *exp; // a single run has one cell and no settings
    struct result *runs;    // finished runs, by cell, then by repeat
    int *cell_of;           // of each run, an index into exp->cells
    int nruns;
    double target; // loss whose seconds and tokens are compared; NaN: none
};

// Begins or continues an experiment: reads the INI file, makes the folder
// `out`, and saves INI file and words there. The caller closes *s. 0, or -1
// after fail().
int study_begin(struct study **s, const char *ini, const char *out, int nwords,
                char *const *words);

// Opens the folder of an experiment or of a single run, and reads its results.
// The caller closes *s. 0, or -1 after fail().
int study_open(struct study **s, const char *dir);
void study_close(struct study **s);

// join.c: makes `out` a study of n finished runs. Each run becomes a cell with
// one repeat. 0, or -1 after fail().
int study_join(int n, char *const *dirs, const char *out);

// Writes the folder of repeat k (from 1) of a cell. 0, or -1 after fail().
int study_folder(const struct study *s, int cell, int k,
                 char path[CONFIG_PATH]);

// Returns whether repeat k of a cell is finished.
bool study_done(const struct study *s, int cell, int k);

// Open and close a file in the study's folder. NULL or -1 after fail().
FILE *study_file(const struct study *s, const char *name);
int study_file_end(const struct study *s, FILE *f, const char *name);

// Reads the results of all finished runs again. 0, or -1 after fail().
int study_results(struct study *s);

// ---- measure.c: sets the target loss, and the metrics that compare runs.
void study_measure(struct study *s);

// Returns the range of a metric over the repeats of a cell; *n is the number of
// finished repeats. For a speed-up it is the range of study_ratio().
struct range study_range(const struct study *s, int cell, enum metric m,
                         int *n);

// Returns whether some cell has more than one finished run.
bool study_repeats(const struct study *s);

// Returns the first finished run of a cell; NULL if there is none.
const struct result *study_first(const struct study *s, int cell);

// Returns a metric of `cell` divided by that of `base`. The median is the ratio
// of the medians. Least and most are those of the ratios of runs with the same
// repeat number, which ran in one round.
struct range study_ratio(const struct study *s, int cell, int base,
                         enum metric m);

// Returns a worker's utilisation, the median of the cell's repeats.
double study_util(const struct study *s, int cell, int worker);

// Returns the share of time of a worker's GPU in collectives, the median of the
// cell's repeats; NaN if it has no GPU.
double study_comm(const struct study *s, int cell, int worker);

// Returns the run of a cell's repeat k; NULL if it is not finished.
const struct result *study_run(const struct study *s, int cell, int k);

// ---- table.c: writes runs.csv, table.csv, shares.csv, memory.csv, verbs.csv,
// workers.csv and curves.csv, and calls study_sweep() and study_text(). 0, or
// -1 after fail().
int study_tables(const struct study *s);

// ---- sweep.c: writes sweep.csv if the experiment has a matrix; else removes
// an old one. 0, or -1 after fail().
int study_sweep(const struct study *s);

// ---- table_text.c: writes table.txt. 0, or -1 after fail().
int study_text(const struct study *s);

// ---- figure.c: draws the experiment's figures. A figure that cannot be drawn
// is logged and left out. Returns how many were drawn, or -1 after fail().
int study_figures(const struct study *s);

// ---- finish.c: reads the results, writes tables, figures and report, and
// prints table.txt and the answer. 0, or -1 after fail().
int study_finish(struct study *s);

// ---- compare.c: checks whether all runs trained the same thing. Writes the
// verdict in words to `text`. Returns the number of differences.
int study_compare(const struct study *s, char *text, size_t size);

// ---- fair.c: finds the cells that may be compared with each other.

// Lists the settings by which a and b are different trainings: "lr (0.001,
// 0.002), ..". Returns how many there are; 0: the same training.
int fair_difference(const struct result *a, const struct result *b, char *text,
                    size_t size);

// Returns whether all runs train the same model on the same text.
bool fair_one_task(const struct study *s);

// Writes sentences, one a line, that say which cells may be compared, and by
// which metrics.
void study_fair(const struct study *s, char *text, size_t size);

// ---- answer.c: writes the answer in sentences, one a line, computed from the
// results; then warnings, if any.
void study_answer(const struct study *s, char *text, size_t size);

// ---- report.c: writes DIR/report.html. 0, or -1 after fail().
int study_report(const struct study *s);

#endif
