// rule.c - finds a device's way to update, and holds the optimiser's state.

#include "optim/rule.h"

#include "base/base.h"
#include "device/device.h"
#include "optim/offload.h"

#include <math.h>
#include <string.h>

static const struct rule_ops *const table[] = {
    &rule_cpu,
#if defined(LOCKSTEP_CUDA)
    &rule_cuda,
#endif
};

enum { RULES = sizeof table / sizeof *table };

static const struct rule_ops *find(const struct device *d)
{
    for (int i = 0; i < RULES; i++)
        if (!strcmp(table[i]->device, d->ops->name))
            return table[i];
    return &rule_cpu;
}

int rule_open(struct rule *r, struct device *d, const struct optim_config *c,
              size_t n, const char *folder)
{
    *r = (struct rule){.ops = find(d), .dev = d, .config = c, .n = n};
    if (folder) {
        r->file = offload_open(folder, optim_slots(c), n);
        if (!r->file)
            return -1;
    }
    for (int i = 0; !folder && i < optim_slots(c); i++) {
        r->slots[i] = device_alloc(d, n, sizeof(float));
        if (!r->slots[i])
            return -1;
    }
    return r->ops->open(r);
}

void rule_close(struct rule *r)
{
    if (!r->ops)
        return;
    r->ops->close(r);
    offload_close(&r->file);
    for (int i = 0; i < OPTIM_MAX_SLOTS; i++)
        device_free(r->dev, r->slots[i]);
    *r = (struct rule){0};
}

bool rule_runs_ahead(const struct rule *r)
{
    return r->ops && r->ops->ahead;
}

int rule_step(struct rule *r, float *params, const float *grads,
              const struct rule_in *in, float *norm)
{
    CHECK(in->step >= 1);
    CHECK(!in->settle || r->ops->ahead);
    CHECK(!in->frozen || r->ops == &rule_cpu);
    if (r->ops->step(r, params, grads, in, norm))
        return -1;
    if (in->copy && isfinite(*norm))
        in->copy->fresh = true;
    return 0;
}
