// mesh_table.c - prints the fastest ways to use a number of workers.

#include "lockstep/mesh_table.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/keys.h"
#include "lockstep/budget.h"
#include "lockstep/sizes.h"

#include <math.h>
#include <string.h>

// ---- words and numbers

// Writes a number with four digits, but never as a power of ten.
static const char *number(char text[32], double v)
{
    snprintf(text, 32, v < 999.95 ? "%.4g" : "%.0f", v);
    return text;
}

static const char *wire_name(const struct mesh_case *c)
{
    static const char *const names[] = {
        [DTYPE_F32] = "fp32", [DTYPE_F16] = "fp16", [DTYPE_BF16] = "bf16"};
    return names[c->wire];
}

// ---- the table

static void print_head(const struct mesh_table *t)
{
    printf("%-18s %-12s %4s %5s %5s %8s %9s %8s %6s %6s %9s %8s %8s %8s %8s",
           "mesh", "sync", "wire", "batch", "accum", "step s", "compute s",
           "link s", "bubble", "error", "memory MB", "dp MB", "pp MB", "tp MB",
           "tokens/s");
    budget_head(t->budget);
    printf("\n");
}

static void print_row(const struct mesh_table *t, const struct mesh_answer *a)
{
    const struct mesh_question *q = t->question;
    const struct mesh_case *c = &a->way;
    const struct mesh_step *s = &a->step;
    char mesh[CONFIG_PATH], sync[64], text[6][32];
    double tokens = (double)q->global_batch * q->job.model.context;
    double rate = tokens / s->seconds;
    mesh_show(&c->mesh, mesh);
    if (c->sequence)
        strcat(mesh, "+seq");
    snprintf(sync, sizeof sync, "%s", c->backend->name);
    if (c->backend->shards)
        snprintf(sync, sizeof sync, "%s shard=%d", c->backend->name, c->shard);
    printf("%-18s %-12s %4s %5d %5d %8s %9s %8s %5.1f%% %5.1f%% %9.0f %8s %8s "
           "%8s %8.0f",
           mesh, sync, wire_name(c), c->batch, c->plan.micro,
           number(text[0], s->seconds), number(text[1], s->compute_s),
           number(text[2], a->link_s), 100 * s->bubble,
           50 * (a->most_s - a->least_s) / s->seconds,
           (double)memory_sum(&s->memory) * 1e-6,
           number(text[3], s->bytes[MESH_DP] * 1e-6),
           number(text[4], s->bytes[MESH_PP] * 1e-6),
           number(text[5], s->bytes[MESH_TP] * 1e-6), rate);
    budget_row(t->budget, rate, q->job.hosts * q->job.slots);
    printf("\n");
}

// ---- which way

// Prints the settings of train for a way.
static void print_words(const struct mesh_answer *a)
{
    const struct mesh_case *c = &a->way;
    char mesh[CONFIG_PATH];
    mesh_show(&c->mesh, mesh);
    printf("mesh=%s sync=%s", mesh, c->backend->name);
    if (c->backend->shards)
        printf(" shard=%d", c->shard);
    if (c->wire != DTYPE_F32)
        printf(" wire=%s", wire_name(c));
    printf(" batch=%d accum=%d", c->batch, c->plan.micro);
    if (c->sequence)
        printf(" tp_sequence=1");
    if (c->plan.ahead)
        printf(" ahead=%d", c->plan.ahead);
    if (c->plan.chunks > 1)
        printf(" chunks=%d", c->plan.chunks);
    for (int s = 0; c->layers[0] && s < c->plan.stages * c->plan.chunks; s++)
        printf("%s%d", s ? "," : " stages=", c->layers[s]);
    printf("\n");
}

// Prints which rows take the same time, to the digits of the table.
static void print_ties(const struct mesh_answers *a)
{
    for (int i = 0, end; i < a->n; i = end) {
        double t = mesh_seconds(a->best[i].step.seconds);
        for (end = i + 1;
             end < a->n && mesh_seconds(a->best[end].step.seconds) == t; end++)
            ;
        if (end - i > 1)
            printf("Rows %d %s %d tie at %.4g s: first the one that sends "
                   "fewer bytes, then the simpler one.\n",
                   i + 1, end - i > 2 ? "to" : "and", end, t);
    }
}

// Prints which rows may be as fast as the first one.
static void print_close(const struct mesh_answers *a)
{
    int rows[MESH_BEST], n = 0;
    for (int i = 1; i < a->n; i++)
        if (a->best[i].least_s <= a->best[0].most_s)
            rows[n++] = i + 1;
    for (int k = 0; k < n; k++)
        printf("%s %d",
               k       ? ","
               : n > 1 ? "As fast as the first, within the error: rows"
                       : "As fast as the first, within the error: row",
               rows[k]);
    printf(n ? "\n" : "");
}

// Prints what a wire of 16 bits brings, if the fastest way has one.
static void print_plain(const struct mesh_answers *a)
{
    const struct mesh_answer *first = &a->best[0], *plain = &a->plain;
    if (first->way.wire == DTYPE_F32 || plain->step.seconds == 0)
        return;
    printf("wire=%s rounds the gradients. The fastest with wire=fp32 takes "
           "%.4g s: ",
           wire_name(&first->way), plain->step.seconds);
    print_words(plain);
}

// Prints the memory and the times of each stage.
static void print_stages(const struct mesh_answer *a)
{
    char head[32], text[2][32];
    printf("\n");
    sizes_print_head("stage");
    printf(" %11s %11s\n", "forward ms", "backward ms");
    for (int s = 0; s < a->way.plan.stages; s++) {
        snprintf(head, sizeof head, "%d", s);
        sizes_print_row(head, &a->step.of_stage[s]);
        printf(" %11s %11s\n", number(text[0], a->step.forward[s] * 1e3),
               number(text[1], a->step.backward[s] * 1e3));
    }
}

static void print_legend(const struct mesh_table *t)
{
    printf("\ncompute s      mean time in which a worker computes\n"
           "link s         what messages add to the step: computing does not "
           "hide it\n"
           "bubble         share of the stages' time in which they wait for "
           "each other and for\n               messages between them\n"
           "error          of the step, in both directions, because the links' "
           "figures are\n               uncertain\n"
           "memory MB      of the worker that needs most\n"
           "+seq           with tp_sequence=1: slices divide the tokens, too\n"
           "dp, pp, tp MB  sent by the busiest worker in a step, along "
           "each axis\n");
    if (t->gpu)
        printf(SIZES_GPU);
}

void mesh_table(const struct mesh_table *t, const struct mesh_answers *a)
{
    print_head(t);
    for (int i = 0; i < a->n; i++)
        print_row(t, &a->best[i]);
    printf("\n%d of %d ways fit. The fastest: ", a->tried - a->too_large,
           a->tried);
    print_words(&a->best[0]);
    print_plain(a);
    print_ties(a);
    print_close(a);
    print_stages(&a->best[0]);
    print_legend(t);
}
