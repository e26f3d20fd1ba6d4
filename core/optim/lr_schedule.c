// lr_schedule.c - computes a step's learning rate (a linear rise, then a
// constant, cosine or linear schedule), and adapts the loss scale.

#include "optim/lr_schedule.h"

#include "base/base.h"

#include <math.h>

float schedule_lr(const struct schedule *s, int step)
{
    CHECK(step >= 0);
    if (step < s->warmup)
        return s->lr * (float)(step + 1) / (float)s->warmup;
    if (s->kind == SCHEDULE_CONSTANT)
        return s->lr;
    if (step >= s->steps)
        return s->min_lr;
    double done = (double)(step - s->warmup) / (s->steps - s->warmup);
    double left = s->kind == SCHEDULE_LINEAR
                      ? 1 - done
                      : 0.5 * (1 + cos(3.141592653589793 * done));
    return (float)(s->min_lr + ((double)s->lr - s->min_lr) * left);
}

void loss_scale_update(struct loss_scale *s, bool overflow)
{
    if (!s->window)
        return;
    if (overflow) {
        s->scale = fmaxf(s->scale / 2, 1);
        s->good = 0;
    } else if (++s->good == s->window) {
        s->scale = fminf(s->scale * 2, 0x1p24f);
        s->good = 0;
    }
}
