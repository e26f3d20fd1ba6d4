// experiment.h - an experiment: base settings, times a matrix, times named
// cells.
//
//     [experiment]
//     title = ..        question = ..     expect = ..
//     figures = throughput loss_step      names in plots/; none
//     repeat = 3
//     baseline = single                   what the others are compared with
//     target_loss = 2.5                   seconds to it; auto: what all reach
//     [base]                              settings of every cell
//     model = micro
//     [matrix]                            every combination of these
//     batch = 8, 16
//     size = workers=1 batch=16, workers=2 batch=8     several keys at once
//     size = batch=2 (steps=160), batch=4 (steps=80)   not named in (): cells
//                                                      are batch=2, batch=4
//     [cell ring+fp16]                    and of these (a key at least in each)
//     sync = ring
//     wire = fp16
//     [cell torch DDP]                    another program trains this cell:
//     peer = ddp                          tests/oracle/gpt2_torch_ddp.py,
//     sync = ring                         by the Python that peer_python= names
//
// Words given on the command line replace those of [base], lists of [matrix],
// and repeat, figures, baseline, target_loss and peer_python.
//
// baseline= names a cell, or what its name has in common with some: "single"
// is single batch=8 for ring batch=8, and single batch=16 for ring batch=16.

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
    char values[EXP_VALUES][EXP_WORD]; // of "batch=2 (steps=160)": batch=2
    char hidden[EXP_VALUES][EXP_WORD]; // and steps=160
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
    int repeat, keys; // keys: lines of the file
    struct word_list base;
    int naxes, nnamed, ncells;
    struct axis axes[EXP_AXES];
    struct named_cell named[EXP_VALUES];
    struct cell cells[EXP_CELLS];
};

// Read `path`, apply the command line's words, expand. 0, or -1 after fail()
// that names the line, or the cell whose settings are wrong.
int experiment_open(struct experiment **e, const char *path, int nwords,
                    char *const *words);
void experiment_close(struct experiment **e);

// Replace by _ what may not stand in a column of CSV, a folder's name or a
// shell's word.
void experiment_clean(char *name);

// ---- baseline.c: find each cell's baseline. -1 after fail() where baseline=
// names none.
int experiment_baselines(struct experiment *e);

#endif
