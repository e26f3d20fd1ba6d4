// answers.h - words of questions and numbers of answers (questions.h).

#pragma once

#include "train/memory_plan.h"

#include <cjson/cJSON.h>
#include <stddef.h>

// A row of a table of words that are not those of train.
#define ANSWERS_ROW(words, member, usual, kind)                                \
    .name = #member, .value = usual, .type = kind,                             \
    .off = offsetof(struct words, member)

// Add numbers to an answer, to the last bit of a double.
cJSON *answers_number(double v);
void answers_add(cJSON *out, const char *name, double v);
void answers_list(cJSON *out, const char *name, const double *v, int n);
void answers_counts(cJSON *out, const char *name, const int *v, int n);

// Adds the parts of a memory, in bytes.
void answers_memory(cJSON *out, const char *name, const struct memory *m);
