// sampler.c - one thread, which sleeps on a condition variable with a time
// limit, so that sampler_close() does not wait for the next sample.

#include "telemetry/sampler.h"

#include "base/base.h"
#include "base/file.h"
#include "telemetry/nvml.h"
#include "telemetry/shares.h"
#include "telemetry/span.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

struct look { // counters at one moment
    uint64_t now_ns, cpu_ns;
    uint64_t spent[SPAN_KINDS];
    long switches;
};

struct sampler {
    struct sampler_config config;
    char path[1024], who[32];
    FILE *file;
    struct nvml *nvml; // NULL: none
    struct look last;
    struct shares shares;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop, taken;
};

static void look(const struct sampler *s, struct look *l)
{
    struct rusage usage;
    *l = (struct look){.now_ns = now_ns(), .cpu_ns = cpu_process_ns()};
    if (spans_nlanes(s->config.spans))
        span_totals(spans_at(s->config.spans, 0), l->spent);
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        l->switches = usage.ru_nivcsw;
}

static double seconds(const struct sampler *s, uint64_t at_ns)
{
    uint64_t zero =
        s->config.zero_ns ? s->config.zero_ns : spans_zero(s->config.spans);
    return (double)(int64_t)(at_ns - zero) * 1e-9;
}

// Writes a row with one call, so that rows of several threads do not mix.
static void put(struct sampler *s, double t, const char *metric, double value)
{
    if (!isnan(value))
        fprintf(s->file, "%.3f,%s,%s,%.6g\n", t, s->who, metric, value);
}

static void put_gpu(struct sampler *s, double t)
{
    double values[NVML_METRICS];
    if (!s->nvml)
        return;
    nvml_read(s->nvml, values);
    for (int i = 0; i < NVML_METRICS; i++)
        put(s, t, nvml_names[i], values[i]);
}

// Shares of the compute lane's time, which is the sum of the lane's totals.
static void put_shares(struct sampler *s, double t, const struct look *l)
{
    double share[SPAN_KINDS];
    shares_take(&s->shares, l->spent, share);
    if (s->config.server) {
        put(s, t, "compute_share", share[SPAN_ADD] + share[SPAN_UPDATE]);
        put(s, t, "wait_share", share[SPAN_OTHER]);
        return;
    }
    put(s, t, "compute_share",
        share[SPAN_FORWARD] + share[SPAN_BACKWARD] + share[SPAN_COMPRESS] +
            share[SPAN_UPDATE] + share[SPAN_SLOWED]);
    if (share[SPAN_SLOWED] > 0)
        put(s, t, "slowed_share", share[SPAN_SLOWED]);
    if (share[SPAN_EVALUATE] > 0)
        put(s, t, "evaluate_share", share[SPAN_EVALUATE]);
    put(s, t, "wait_share",
        share[SPAN_READY] + share[SPAN_GATHER] + share[SPAN_BUBBLE] +
            share[SPAN_JOIN] + share[SPAN_WAIT] + share[SPAN_SEND] +
            share[SPAN_RECEIVE] + share[SPAN_ADD]);
    put(s, t, "data_share", share[SPAN_DATA]);
}

static void take_sample(struct sampler *s)
{
    struct look l, *last = &s->last;
    look(s, &l);
    double wall = (double)(l.now_ns - last->now_ns);
    double t = seconds(s, l.now_ns);
    // the last period may be too short for a sample
    if (wall <= 0 || (s->taken && wall < 0.5e9 / s->config.per_s))
        return;
    if (!s->config.zero_ns && !spans_zero(s->config.spans)) {
        *last = l;
        shares_begin(&s->shares, l.spent);
        return;
    }
    if (s->config.spans)
        put_shares(s, t, &l);
    put(s, t, "cpu_share",
        (double)(l.cpu_ns - last->cpu_ns) / wall / s->config.cores);
    put(s, t, "resident_bytes", (double)mem_now());
    put(s, t, "involuntary_switches_per_s",
        (double)(l.switches - last->switches) / wall * 1e9);
    put_gpu(s, t);
    *last = l;
    s->taken = true;
}

static void add_ns(struct timespec *t, double ns)
{
    t->tv_nsec += (long)ns % 1000000000;
    t->tv_sec += (time_t)(ns / 1e9) + t->tv_nsec / 1000000000;
    t->tv_nsec %= 1000000000;
}

static void *sample(void *arg)
{
    struct sampler *s = arg;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        add_ns(&next, 1e9 / s->config.per_s);
        while (!s->stop &&
               pthread_cond_timedwait(&s->wake, &s->lock, &next) != ETIMEDOUT)
            ;
        take_sample(s);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

// The thread takes no signals: they are for the main thread.
static int start_thread(struct sampler *s)
{
    sigset_t all, before;
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_init(&s->lock, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int e = pthread_create(&s->thread, NULL, sample, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return e ? fail("sampler: no thread: %s", strerror(e)) : 0;
}

int sampler_open(struct sampler **out, const struct sampler_config *config)
{
    struct sampler *s = mem_alloc(1, sizeof *s);
    if (!s)
        return -1;
    s->config = *config;
    CHECK(config->per_s > 0 && config->cores > 0);
    if (text_into(s->path, sizeof s->path, "%s", config->path) ||
        text_into(s->who, sizeof s->who, "%s", config->who))
        goto free_sampler;
    s->file = file_create(s->path);
    if (!s->file)
        goto free_sampler;
    fputs("t_s,rank,metric,value\n", s->file);
    if (config->gpu)
        s->nvml = nvml_open(config->gpu);
    look(s, &s->last);
    shares_begin(&s->shares, s->last.spent);
    if (start_thread(s))
        goto close_file;
    *out = s;
    return 0;
close_file:
    nvml_close(&s->nvml);
    fclose(s->file);
free_sampler:
    mem_free(s);
    return -1;
}

void sampler_put(struct sampler *s, uint64_t at_ns, const char *metric,
                 double value)
{
    if (s)
        put(s, seconds(s, at_ns), metric, value);
}

int sampler_close(struct sampler **out)
{
    struct sampler *s = *out;
    if (!s)
        return 0;
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    nvml_close(&s->nvml);
    int rc = file_close(s->file, s->path);
    mem_free(s);
    *out = NULL;
    return rc;
}
