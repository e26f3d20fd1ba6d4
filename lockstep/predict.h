// predict.h - a question of `lockstep predict`: a model, workers, their links
// and their speed.
//
// It has two forms. Either it compares backends on several numbers of workers,
// each on a host of its own (predict_ways.c). Or it looks for the best mesh of
// workers on hosts with several each (mesh_search.h). In both forms a step is
// one of mesh_case.h: N workers without a mesh are dpN.

#ifndef LOCKSTEP_PREDICT_H
#define LOCKSTEP_PREDICT_H

#include "lockstep/budget.h"
#include "lockstep/list.h"
#include "lockstep/mesh_search.h"
#include "sync/link.h"

struct question {
    // The values of the command line.
    char workers_asked[CONFIG_PATH], sync_asked[CONFIG_PATH];
    char memory[CONFIG_PATH], link[CONFIG_PATH], inner[CONFIG_PATH];
    char device[CONFIG_PATH];
    int hosts, slots;
    double alpha_us, compute_ms;
    struct budget budget;
    // Derived from them.
    struct run run;
    const char *computing; // where the times of computing come from
    struct mesh_question search;
    // Of the form that compares backends.
    struct list workers, sync;
    struct links links;
    // Of the form with a mesh.
    const char *inside;  // the link within a host, and where it is from if
    const char *assumed; // nobody gave it; else NULL
};

static inline bool predict_on_gpu(const struct question *q)
{
    return strcmp(q->device, "cpu") != 0;
}

// Predicts and prints a table of backends for each number of workers. 0, or -1
// after fail().
int predict_ways(const struct question *q);

#endif
