// step_questions.h - the questions "step" and "best" (questions.h).

#pragma once

#include "config/config.h"
#include "model/model.h"
#include "sync/link.h"

#include <cjson/cJSON.h>

struct forecasts {
    struct run run; // of the last question "run"
    struct model_config model;
    struct links links; // of the last question "link"
};

// Answer the n words of a question. 0, or -1 after fail().
int step_answer(struct forecasts *f, int n, char **words, cJSON *out);
int step_answer_best(struct forecasts *f, int n, char **words, cJSON *out);
