// parts.c - lists the elements of this part that the gradient norm counts in
// another part, and adds the squares of all parts.

#include "train/parts.h"

#include "base/base.h"
#include "model/part.h"
#include "train/slices.h"
#include "train/stages.h"
#include "train/trainer.h"

static int sum_squares(void *ctx, double *squares)
{
    struct trainer *t = ctx;
    return slices_sum(t, squares) || stages_sum(t, squares) ? -1 : 0;
}

// Lists the tensors that other parts count. Adjacent tensors become one range.
static int list_elsewhere(const struct model_config *c, struct optim_range *out)
{
    int n = 0;
    for (int i = 0; i < model_ntensors(c); i++) {
        struct tensor t;
        model_tensor(c, i, &t);
        if (t.n == 0 || part_counts(c, i))
            continue;
        if (n && out[n - 1].off + out[n - 1].n == t.off)
            out[n - 1].n += t.n;
        else
            out[n++] = (struct optim_range){.off = t.off, .n = t.n};
    }
    return n;
}

int parts_open(struct trainer *t)
{
    size_t most = (size_t)model_ntensors(&t->config);
    if (part_is_whole(&t->config))
        return 0;
    struct norm_parts *p = t->parts = mem_alloc(1, sizeof *p);
    struct optim_range *elsewhere = mem_alloc(most, sizeof *elsewhere);
    if (!p || !elsewhere) {
        mem_free(elsewhere);
        return -1;
    }
    *p = (struct norm_parts){.elsewhere = elsewhere,
                             .count = list_elsewhere(&t->config, elsewhere),
                             .sum = sum_squares,
                             .ctx = t};
    return 0;
}

void parts_close(struct trainer *t)
{
    if (t->parts)
        mem_free(t->parts->elsewhere);
    mem_free(t->parts);
    t->parts = NULL;
}
