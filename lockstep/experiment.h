// experiment.h - reads an experiment. Its cells are all combinations of the
// values of a matrix and of named cells; all have the base settings.
//
//     [experiment]
//     title = ..        question = ..     expect = ..
//     figures = throughput loss_step      names of plots/NAME.gp, or none
//     repeat = 3                          runs of each cell
//     baseline = single                   the cell to compare others with
//     target_loss = 2.5                   report the seconds to this loss;
//                                         auto: the least loss all reach
//     [base]                              settings of every cell
//     model = micro
//     [matrix]                            every combination of these
//     batch = 8, 16
//     size = workers=1 batch=16, workers=2 batch=8     several keys at once
//     size = batch=2 (steps=160), batch=4 (steps=80)   the cells' names omit
//                                                      what is in ()
//     [cell ring+fp16]                    the matrix runs with each of these
//                                         cells; each has at least one key
//     sync = ring
//     wire = fp16
//     [cell torch DDP]                    another program trains this cell:
//     peer = ddp                          tests/oracle/gpt2_torch_ddp.py,
//     sync = ring                         by the Python that peer_python= names
//
// Words of the command line replace settings of [base], lists of [matrix], and
// repeat, figures, baseline, target_loss and peer_python.
//
// baseline= names a cell, or a part of the names of several cells. With
// baseline=single, "ring batch=8" is compared with "single batch=8", and "ring
// batch=16" with "single batch=16".

#ifndef LOCKSTEP_EXPERIMENT_H
#define LOCKSTEP_EXPERIMENT_H

#include <stdbool.h>

enum {
    EXP_TEXT = 1024,
    EXP_NAME = 128,
    EXP_WORD = 256,
    EXP_WORDS = 48,
    EXP_AXES = 8,
    EXP_VALUES = 32,
    EXP_CELLS = 512,
    EXP_REPEATS = 1000,
};

struct word_list {
    int n;
    char at[EXP_WORDS][EXP_WORD]; // "key=value"
};

struct axis {
    char key[64];
    int n;
    char values[EXP_VALUES][EXP_WORD]; // "batch=2" of "batch=2 (steps=160)"
    char hidden[EXP_VALUES][EXP_WORD]; // "steps=160"
};

struct named_cell {
    char name[64];
    bool peer;
    struct word_list words;
};

struct cell {
    char name[EXP_NAME]; // "ring+fp16 batch=8"; its folder has _ for blanks
    struct word_list words;
    bool peer;    // another program trains it
    int baseline; // the cell that it is compared with; -1: none
};

struct experiment {
    char name[64]; // of the file, without .ini
    char title[EXP_TEXT], question[EXP_TEXT], expect[EXP_TEXT];
    char figures[EXP_TEXT], baseline[EXP_TEXT], peer_python[EXP_TEXT];
    double target;    // loss; 0: auto
    int repeat, keys; // keys: the number of key=value lines in the file
    struct word_list base;
    int naxes, nnamed, ncells;
    struct axis axes[EXP_AXES];
    struct named_cell named[EXP_VALUES];
    struct cell cells[EXP_CELLS];
};

// Reads `path`, applies the words of the command line and makes all cells. The
// caller closes *e. 0, or -1 after fail() with the wrong line or cell.
int experiment_open(struct experiment **e, const char *path, int nwords,
                    char *const *words);
void experiment_close(struct experiment **e);

// Replaces by _ each character that is not allowed in a CSV cell, a folder's
// name or a word of a shell.
void experiment_clean(char *name);

// ---- baseline.c: sets the baseline of each cell. 0, or -1 after fail() if
// baseline= names no cell.
int experiment_baselines(struct experiment *e);

#endif
