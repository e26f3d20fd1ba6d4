// answers.c - numbers of answers.

#include "forecast/answers.h"

#include <stdio.h>

// cJSON itself prints fewer digits than a double has.
cJSON *answers_number(double v)
{
    char text[40];
    snprintf(text, sizeof text, "%.17g", v);
    return cJSON_CreateRaw(text);
}

void answers_add(cJSON *out, const char *name, double v)
{
    cJSON_AddItemToObject(out, name, answers_number(v));
}

void answers_list(cJSON *out, const char *name, const double *v, int n)
{
    cJSON *list = cJSON_AddArrayToObject(out, name);
    for (int i = 0; i < n; i++)
        cJSON_AddItemToArray(list, answers_number(v[i]));
}

void answers_counts(cJSON *out, const char *name, const int *v, int n)
{
    cJSON_AddItemToObject(out, name, cJSON_CreateIntArray(v, n));
}

void answers_memory(cJSON *out, const char *name, const struct memory *m)
{
    const double parts[] = {(double)m->params,      (double)m->grads,
                            (double)m->optimizer,   (double)m->buffers,
                            (double)m->activations, (double)m->process};
    answers_list(out, name, parts, sizeof parts / sizeof *parts);
}
