// observe.c - records all telemetry of one worker, except its rows.

#include "train/observe.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "config/backends.h"
#include "device/busy.h"
#include "telemetry/activity.h"
#include "telemetry/align.h"
#include "telemetry/sampler.h"
#include "telemetry/span.h"
#include "telemetry/steps.h"
#include "telemetry/tfevents.h"
#include "telemetry/times.h"
#include "telemetry/trace.h"
#include "telemetry/trace_parts.h"
#include "train/trainer.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

enum {
    RECORDS = 1 << 15,
    KERNELS = 1 << 18,
    ROUNDS = 9,
    PATH = CONFIG_PATH + 64
};

int observe_open(struct trainer *t)
{
    struct observe *o = &t->observe;
    bool off = !*t->run.out || t->run.trace == TRACE_OFF;
    if (spans_open(&o->spans, off ? 0 : RECORDS))
        return -1;
    o->lane = spans_compute(o->spans);
    return 0;
}

// What each worker tells the others so that all find their clocks' offsets.
struct clock_report {
    uint64_t host; // processes of the same host share a clock
    uint64_t began_ns;
    double before_s; // seconds that earlier parts of the run took
    struct align_round rounds[ROUNDS];
};

static int find_zero(struct trainer *t)
{
    struct observe *o = &t->observe;
    struct clock_report mine = {.host = align_host(),
                                .began_ns = now_ns(),
                                .before_s = t->time_before};
    struct clock_report *all =
        mem_alloc((size_t)t->cluster->world, sizeof *all);
    int rc = all ? 0 : -1;
    for (int i = 0; !rc && i < ROUNDS; i++) {
        mine.rounds[i].entered_ns = now_ns();
        rc = cluster_barrier(t->cluster);
        mine.rounds[i].left_ns = now_ns();
    }
    if (!rc)
        rc = cluster_allgather(t->cluster, &mine, all, sizeof mine);
    struct align a = {0};
    bool late = t->sync->late; // then all[0] is from the job's start
    bool same = !rc && mine.host && mine.host == all[0].host;
    // elastic: worker 0 is dead, or its barriers were long ago
    bool alone = !rc && (!all[0].began_ns || (late && !same));
    const struct clock_report *first = alone ? &mine : all;
    if (!rc && !same && !alone)
        rc = align_clocks(mine.rounds, first->rounds, ROUNDS, &a);
    if (!rc) {
        if (!late)
            t->time_before = first->before_s;
        o->zero_ns = first->began_ns + (uint64_t)a.offset_ns -
                     (uint64_t)(first->before_s * 1e9);
        spans_set_zero(o->spans, o->zero_ns);
        if (late && same)
            t->time_before = (double)(now_ns() - o->zero_ns) * 1e-9;
        if (a.error_ns)
            log_line("clock: %lld us ahead of worker 0's, to within %lld us",
                     (long long)a.offset_ns / 1000,
                     (long long)a.error_ns / 1000);
    }
    mem_free(all);
    return rc;
}

static int start_sampler(struct trainer *t)
{
    char path[PATH], who[16];
    unsigned char gpu[DEVICE_ID];
    device_identity(t->dev, gpu);
    snprintf(who, sizeof who, "%d", t->cluster->rank);
    if (text_into(path, sizeof path, "%s/util.%s.csv", t->run.out, who))
        return -1;
    struct sampler_config config = {
        .path = path,
        .who = who,
        .spans = t->run.trace == TRACE_OFF ? NULL : t->observe.spans,
        .cores = t->run.threads,
        .per_s = t->run.samples,
        .zero_ns = t->observe.zero_ns,
        .gpu = device_is_host(t->dev) ? NULL : gpu,
    };
    return sampler_open(&t->observe.sampler, &config);
}

// Record how long each queue of the GPU was busy in the steps that the GPU has
// completed, usually all but the latest.
static void put_busy(struct trainer *t)
{
    struct observe *o = &t->observe;
    struct busy_step s;
    while (busy_take(t->dev, &s)) {
        const struct {
            const char *metric;
            double *sum;
            uint64_t ns;
        } rows[] = {
            {"gpu_compute_share", &o->gpu.compute, s.at[DEVICE_COMPUTE]},
            {"gpu_comm_share", &o->gpu.comm, s.at[DEVICE_COMM]},
            {"gpu_down_share", &o->gpu.down, s.at[DEVICE_DOWN]},
            {"gpu_up_share", &o->gpu.up, s.at[DEVICE_UP]},
        };
        for (int i = 0; s.ns && i < DEVICE_QUEUES; i++) {
            sampler_put(o->sampler, s.ended_ns, rows[i].metric,
                        (double)rows[i].ns / (double)s.ns);
            *rows[i].sum += (double)rows[i].ns * 1e-9;
        }
    }
}

// Drops what an earlier part of the run recorded of steps that are now
// repeated. A worker that joins a running job drops nothing: the others are
// writing.
static int cut_earlier(const struct trainer *t)
{
    bool is_new = !t->step && !*t->run.resume;
    if (is_new || t->sync->late || t->cluster->rank)
        return 0;
    return trace_cut(t->run.out, t->time_before) ||
                   parts_cut_csv(t->run.out, "util", t->time_before)
               ? -1
               : 0;
}

int observe_begin(struct trainer *t)
{
    if (!device_is_host(t->dev) && busy_open(t->dev))
        return -1;
    t->observe.first_step = t->step;
    if (cut_earlier(t) || find_zero(t) ||
        sync_clock(t->sync, t->observe.zero_ns) ||
        (t->run.samples > 0 && start_sampler(t)) ||
        (t->run.kernels && activity_open(&t->observe.activity, KERNELS)))
        return -1;
    if (t->restarts)
        span_count(t->observe.lane, COUNTER_RESTARTS, t->restarts);
    if (t->run.tensorboard && t->cluster->rank == 0)
        return tfevents_open(&t->observe.events, t->run.out);
    return 0;
}

int observe_step(struct trainer *t, const struct step_row *row)
{
    struct tfevents *e = t->observe.events;
    span_count(t->observe.lane, COUNTER_LOSS, row->loss);
    if (row->lag)
        span_count(t->observe.lane, COUNTER_LAG, row->lag);
    put_busy(t);
    if (!e)
        return 0;
    double seconds = (double)row->step_us * 1e-6;
    double tokens = (double)row->tokens / row->step;
    if (tfevents_scalar(e, "loss/train", row->step, row->loss) ||
        tfevents_scalar(e, "lr", row->step, row->lr) ||
        tfevents_scalar(e, "grad_norm", row->step, row->grad_norm) ||
        tfevents_scalar(e, "tokens_per_s", row->step, tokens / seconds))
        return -1;
    return isnan(row->val_loss)
               ? 0
               : tfevents_scalar(e, "loss/val", row->step, row->val_loss);
}

static int write_traces(struct trainer *t)
{
    char path[PATH], folder[PATH], place[MESH_TEXT], name[128];
    int rank = t->cluster->rank;
    struct trace_head head = {.pid = rank, .name = name};
    snprintf(name, sizeof name, "rank %d%s (%s)", rank,
             mesh_place(&t->run.mesh, rank, place), t->backend->name);
    if (t->observe.activity) {
        uint64_t dropped =
            activity_end(t->observe.activity, &head.activity, &head.nactivity);
        if (dropped)
            log_line("kernels=1: %zu kernels and copies are in the trace, "
                     "%llu after them are not; try: fewer steps",
                     head.nactivity, (unsigned long long)dropped);
    }
    if (text_into(path, sizeof path, "%s/trace.%d.json", t->run.out, rank) ||
        trace_write(t->observe.spans, path, &head))
        return -1;
    if (t->run.trace != TRACE_HTA)
        return 0;
    if (text_into(folder, sizeof folder, "%s/hta", t->run.out) ||
        text_into(path, sizeof path, "%s/hta/rank-%d.json", t->run.out, rank))
        return -1;
    if (mkdir(folder, 0777) && errno != EEXIST)
        return fail("%s: %s", folder, strerror(errno));
    head.hta = true;
    return trace_write(t->observe.spans, path, &head);
}

static int write_times(struct trainer *t)
{
    struct times times;
    char who[16];
    snprintf(who, sizeof who, "%d", t->cluster->rank);
    if (times_of(t->observe.spans, &times))
        return -1;
    times.gpu = t->observe.gpu;
    times.steps = t->step - t->observe.first_step;
    return times_write(&times, t->run.out, who, t->observe.first_step > 0);
}

int observe_end(struct trainer *t)
{
    struct observe *o = &t->observe;
    device_finish(t->dev);
    put_busy(t); // the last step's
    busy_close(t->dev);
    int rc = sampler_close(&o->sampler) | tfevents_close(&o->events);
    if (!rc && t->run.trace != TRACE_OFF)
        rc = write_traces(t) || write_times(t);
    activity_close(&o->activity);
    spans_close(&o->spans);
    o->lane = NULL;
    return rc ? -1 : 0;
}

int observe_merge(const char *out)
{
    return trace_merge(out, false) || parts_merge_csv(out, "util", false) ||
                   parts_renew_csv(out, "breakdown")
               ? -1
               : 0;
}

void observe_close(struct trainer *t)
{
    struct observe *o = &t->observe;
    if (o->spans && o->zero_ns && t->run.trace != TRACE_OFF && write_traces(t))
        log_line("%s", fail_message());
    activity_close(&o->activity);
    sampler_close(&o->sampler);
    tfevents_close(&o->events);
    spans_close(&o->spans);
}
