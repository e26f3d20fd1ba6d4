// local.c - one worker, nobody to agree with: the oracle of all backends.
//
// What every other backend must equal: to the bit on small integers, within
// rounding in training.

#include "sync/local.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "sync/update.h"

struct local {
    struct update update;
};

static int local_open(struct sync *s)
{
    struct local *l = s->state;
    if (s->job.cluster->world != 1)
        return fail("local: is for one worker, there are %d; try: sync=ring",
                    s->job.cluster->world);
    return update_open(&l->update, &s->job);
}

static int local_bcast(struct sync *s)
{
    (void)s;
    return 0;
}

static int local_step(struct sync *s, const struct sync_in *in,
                      struct sync_out *out)
{
    struct local *l = s->state;
    return update_step(&l->update, &s->job, in, 1, out);
}

static int local_get_state(struct sync *s, float *const *slots)
{
    const struct local *l = s->state;
    return update_get(&l->update, &s->job, slots);
}

static int local_set_state(struct sync *s, const float *const *slots)
{
    struct local *l = s->state;
    return update_set(&l->update, &s->job, slots, NULL, NULL);
}

static void local_close(struct sync *s)
{
    struct local *l = s->state;
    update_close(&l->update, &s->job);
}

const struct sync_ops sync_local = {
    .name = "local",
    .help = "one worker: the oracle",
    .on_device = true,
    .state_size = sizeof(struct local),
    .open = local_open,
    .bcast = local_bcast,
    .step = local_step,
    .get_state = local_get_state,
    .set_state = local_set_state,
    .close = local_close,
};
