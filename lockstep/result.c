// result.c - reads run.json, summary.json, breakdown.csv and the other files of
// a run as numbers.

#include "lockstep/result.h"

#include "base/base.h"
#include "base/file.h"
#include "base/median.h"
#include "config/backends.h"
#include "config/config.h"
#include "config/keys.h"
#include "config/mesh.h"
#include "config/value.h"
#include "lockstep/csv.h"
#include "lockstep/result_law.h"
#include "lockstep/result_stages.h"
#include "lockstep/samples.h"
#include "telemetry/steps.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const metric_names[METRICS] = {
    "tokens_per_s",
    "step_s",
    "seconds",
    "train_loss_nats",
    "val_loss_nats",
    "utilisation_total",
    "utilisation_mean",
    "cpu_share_mean",
    "exposed_s_per_step",
    "wait_s_per_step",
    "bytes_tx_per_worker_step",
    "law_bytes_tx",
    "bytes_rx_per_server_step",
    "law_exchange_s",
    "lag_mean",
    "peak_memory_bytes",
    "restarts",
    "steps_lost",
    "seconds_lost",
    "server_peak_memory_bytes",
    "best_val_loss_nats",
    "tokens",
    "processor_taken_share",
    "involuntary_switches_per_s",
    "gpu_util_share",
    "gpu_peak_memory_bytes",
    "gpu_power_w",
    "bubble_share",
    "law_bubble_share",
    "timetable_bubble_share",
    "timetable_step_s",
    "speedup",
    "seconds_to_target",
    "tokens_to_target",
};

enum {
    KIND_FORWARD = 1,
    KIND_BACKWARD,
    KIND_EXPOSED,
    KIND_UPDATE,
    KIND_WAIT,
    KIND_CHECKPOINT,
    KIND_EVALUATE,
    KIND_SLOWED,
    KIND_OTHER,
    KIND_GPU_COMPUTE,
    KIND_GPU_IDLE,
    KIND_GPU_COMM
};

const char *const kind_names[RESULT_KINDS] = {
    "data",        "forward",    "backward", "exposed", "update",
    "wait",        "checkpoint", "evaluate", "slowed",  "other",
    "gpu_compute", "gpu_idle",   "gpu_comm",
};

const char *const part_names[RESULT_PARTS] = {
    "parameters",  "gradients", "optimizer", "buffers",
    "activations", "process",   "mapped",
};

const char *result_verb(int v)
{
    return v == RESULT_PUSH ? "push" : group_verb_name((enum group_verb)v);
}

static int join(char path[CONFIG_PATH], const char *dir, const char *name)
{
    return text_into(path, CONFIG_PATH, "%s/%s", dir, name);
}

static cJSON *read_json(const char *dir, const char *name)
{
    char path[CONFIG_PATH];
    if (join(path, dir, name))
        return NULL;
    char *text = file_read(path, 1 << 22);
    if (!text)
        return NULL;
    cJSON *j = cJSON_Parse(text);
    if (!j)
        fail("%s: not JSON", path);
    mem_free(text);
    return j;
}

// Returns the number at OUTER.KEY, or at KEY if `outer` is NULL; NaN if it is
// not there.
static double number(const cJSON *j, const char *outer, const char *key)
{
    if (outer)
        j = cJSON_GetObjectItemCaseSensitive(j, outer);
    j = cJSON_GetObjectItemCaseSensitive(j, key);
    return cJSON_IsNumber(j) ? j->valuedouble : NAN;
}

static void text(const cJSON *j, const char *outer, const char *key, char *to,
                 size_t size)
{
    if (outer)
        j = cJSON_GetObjectItemCaseSensitive(j, outer);
    j = cJSON_GetObjectItemCaseSensitive(j, key);
    snprintf(to, size, "%s", cJSON_IsString(j) ? j->valuestring : "");
    text_visible(to);
}

// Counts the servers of a run: its servers= is a list of endpoints or a number.
// Returns `otherwise` if it has no servers=.
static int count_servers(const cJSON *j, int otherwise)
{
    const cJSON *settings = result_settings(j);
    const cJSON *e = cJSON_GetObjectItemCaseSensitive(settings, "servers");
    if (!cJSON_IsString(e))
        return cJSON_IsNumber(e) ? e->valueint : otherwise;
    int count = 1;
    for (const char *p = e->valuestring; *p; p++)
        count += *p == ',';
    return count;
}

static double lr_factor(const struct result *r)
{
    const struct key *k = key_find(&run_keys, "lr_scale");
    char scale[32], base[32];
    result_setting(r, k->name, scale, sizeof scale);
    result_setting(r, "base_batch", base, sizeof base);
    if (!value_known(scale, k->words))
        return NAN;
    return config_lr_factor((enum lr_scale)value_word(k->name, scale, k->words),
                            r->global_batch, strtod(base, NULL));
}

// Lists the settings that turn on a mistake: "mistake_two_updates=1".
static void list_mistakes(struct result *r)
{
    char value[CONFIG_PATH];
    size_t at = 0;
    for (int i = 0; i < run_keys.n; i++) {
        const struct key *k = &run_keys.rows[i];
        if (!key_is_mistake(k))
            continue;
        result_setting(r, k->name, value, sizeof value);
        if (strcmp(value, key_default(k)) && at < sizeof r->mistakes)
            at += (size_t)snprintf(r->mistakes + at, sizeof r->mistakes - at,
                                   "%s%s=%s", at ? " " : "", k->name, value);
    }
}

// Returns the size of an axis of the run's mesh; 1 without a mesh.
static int count_members(const cJSON *set, enum mesh_axis axis)
{
    struct mesh m = {.n = 0};
    char mesh[64];
    text(set, NULL, "mesh", mesh, sizeof mesh);
    return *mesh && !mesh_read(&m, "mesh", mesh) ? mesh_size(&m, axis) : 1;
}

static int read_run(struct result *r, const cJSON *j)
{
    char update[16];
    const cJSON *set = result_settings(j);
    double tokens = number(j, "model", "context");
    r->settings = cJSON_Duplicate(set, true);
    text(j, NULL, "backend", r->backend, sizeof r->backend);
    text(j, "data", "hash_xxh3", r->hash, sizeof r->hash);
    text(set, NULL, "precision", r->precision, sizeof r->precision);
    text(set, NULL, "wire", r->wire, sizeof r->wire);
    text(set, NULL, "net", r->net, sizeof r->net);
    for (char *p = r->net; *p; p++)
        *p = *p == ',' ? ' ' : *p; // it becomes a cell of a CSV file
    text(set, NULL, "consistency", r->consistency, sizeof r->consistency);
    if (!strcmp(r->consistency, "bsp"))
        r->consistency[0] = '\0';
    text(j, NULL, "transport", r->transport, sizeof r->transport);
    text(set, NULL, "algorithm", r->algorithm, sizeof r->algorithm);
    text(set, NULL, "pace", r->pace, sizeof r->pace);
    r->world = (int)number(j, NULL, "world");
    r->stages = count_members(set, MESH_PP);
    int parts = r->stages * count_members(set, MESH_TP);
    r->steps = (int)number(set, NULL, "steps");
    r->global_batch = (int)(number(set, NULL, "batch") *
                            number(set, NULL, "accum") * r->world / parts);
    r->lr_factor = lr_factor(r);
    list_mistakes(r);
    r->oversubscribed =
        cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(j, "oversubscribed"));
    if (!*r->wire)
        strcpy(r->wire, "fp32");
    r->row = backend_find(r->backend);
    if (r->row && r->row->servers)
        r->servers = r->row->servers > 0 ? 1 : count_servers(j, r->world);
    text(set, NULL, "update", update, sizeof update);
    r->held = (r->row && r->row->traffic == TRAFFIC_OWNER) ||
              !strcmp(update, "server") ||
              (!*update && (!strcmp(r->wire, "fp32") || *r->consistency));
    if (r->world < 1 || r->world > RESULT_WORKERS)
        return fail("run.json: %d workers; a report can have 1 .. %d", r->world,
                    RESULT_WORKERS);
    if (!(tokens > 0))
        return fail("run.json: context is %g; must be above 0", tokens);
    result_law(r, j);
    r->value[METRIC_TOKENS_PER_S] = tokens * r->global_batch;
    return 0;
}

// Reads the memory of worker 0, or of the rank with the highest peak in a mesh.
static void read_memory(struct result *r, const cJSON *summary)
{
    const cJSON *ranks = cJSON_GetObjectItemCaseSensitive(summary, "ranks");
    const cJSON *most = summary, *rank;
    cJSON_ArrayForEach(rank, ranks)
    {
        if (most == summary || number(rank, NULL, "peak_memory_bytes") >
                                   number(most, NULL, "peak_memory_bytes"))
            most = rank;
    }
    r->value[METRIC_MEMORY] = number(most, NULL, "peak_memory_bytes");
    for (int k = 0; k < RESULT_PARTS; k++) {
        char key[32];
        snprintf(key, sizeof key, "%s_bytes", part_names[k]);
        r->part[k] = number(most, "predicted_memory", key);
    }
}

// Computes the times from steps.csv instead of reading them from summary.json:
// so they mean the same for runs of older builds.
static int read_summary(struct result *r, const cJSON *j, const char *dir)
{
    struct steps_summary s;
    if (steps_summarise(dir, result_round(r), &s))
        return -1;
    r->value[METRIC_STEP_S] = s.median_step_s;
    r->value[METRIC_TOKENS_PER_S] /= s.median_step_s;
    r->value[METRIC_SECONDS] = s.seconds;
    r->value[METRIC_RESTARTS] = s.restarts;
    r->value[METRIC_STEPS_LOST] = s.lost;
    r->value[METRIC_SECONDS_LOST] = s.seconds_lost;
    r->value[METRIC_TRAIN_LOSS] = number(j, NULL, "final_train_loss");
    r->value[METRIC_VAL_LOSS] = number(j, NULL, "final_val_loss");
    r->value[METRIC_BEST_VAL_LOSS] = s.best_val_loss;
    r->value[METRIC_TOKENS] = (double)s.tokens;
    read_memory(r, j);
    for (int v = 0; v < RESULT_VERBS; v++)
        r->sent[v] = number(j, "bytes_tx_per_worker_step", result_verb(v));
    r->value[METRIC_BYTES_TX] =
        number(j, NULL, "bytes_tx") / number(j, NULL, "steps") / r->world;
    if (r->servers && !result_beside(r))
        r->value[METRIC_BYTES_SERVER] =
            r->value[METRIC_BYTES_TX] * r->world / r->servers;
    return 0;
}

static int find_kind(const char *name)
{
    for (int k = 0; k < RESULT_KINDS; k++)
        if (!strcmp(kind_names[k], name))
            return k;
    return -1;
}

struct spent { // the breakdown of one worker
    double s[RESULT_KINDS];
};

static void read_spent(struct spent *spent, const struct result *r,
                       const struct csv *c)
{
    int rank = csv_column(c, "rank"), kind = csv_column(c, "kind");
    int seconds = csv_column(c, "seconds");
    for (int i = 0; i < c->nrows; i++) {
        const char *who = csv_text(c, i, rank), *what = csv_text(c, i, kind);
        int w = atoi(who), k = find_kind(what);
        if (!isdigit((unsigned char)*who) || w >= r->world)
            continue;
        if (k >= 0)
            spent[w].s[k] += csv_number(c, i, seconds);
    }
}

// Returns whether a kind is part of a step's time. Evaluation and checkpoints
// are not, and a GPU works at the same time as the host.
static bool is_of_step(int kind)
{
    return kind != KIND_CHECKPOINT && kind != KIND_EVALUATE &&
           kind < KIND_GPU_COMPUTE;
}

// Returns the seconds of all steps of a worker; NaN if they were not measured.
static double step_seconds(const double s[RESULT_KINDS])
{
    double all = 0;
    for (int k = 0; k < RESULT_KINDS; k++)
        all += is_of_step(k) ? s[k] : 0;
    return all > 0 ? all : NAN;
}

// Adds a worker's shares to the mean shares, and returns its utilisation. A
// worker with a GPU is busy while its GPU is.
static double add_worker(struct result *r, const double s[RESULT_KINDS])
{
    double all = step_seconds(s), gpu = s[KIND_GPU_COMPUTE];
    double host =
        s[KIND_FORWARD] + s[KIND_BACKWARD] + s[KIND_UPDATE] + s[KIND_SLOWED];
    if (isnan(all))
        return NAN;
    if (gpu > 0) {
        r->share[KIND_GPU_COMPUTE] += gpu / all / r->world;
        r->share[KIND_GPU_IDLE] += fmax(0, 1 - gpu / all) / r->world;
        r->share[KIND_GPU_COMM] += s[KIND_GPU_COMM] / all / r->world;
        return gpu / all;
    }
    for (int k = 0; k < RESULT_KINDS; k++)
        r->share[k] += is_of_step(k) ? s[k] / all / r->world : 0;
    return host / all;
}

// Sets the metrics of the breakdown. Seconds are shares of the median step, so
// that they can be compared with it: means over all steps would include rare
// long steps, which do not change the median.
static void add_spent(struct result *r, const struct spent *spent)
{
    double total = 0, exposed = 0, wait = 0;
    for (int w = 0; w < r->world; w++) {
        const double *s = spent[w].s;
        double all = step_seconds(s);
        r->util[w] = add_worker(r, s);
        r->comm[w] = s[KIND_GPU_COMPUTE] > 0 ? s[KIND_GPU_COMM] / all : NAN;
        total += r->util[w];
        exposed += s[KIND_EXPOSED] / all / r->world;
        wait += s[KIND_WAIT] / all / r->world;
    }
    r->value[METRIC_UTIL_TOTAL] = total;
    r->value[METRIC_UTIL_MEAN] = total / r->world;
    r->value[METRIC_EXPOSED_S] = exposed * r->value[METRIC_STEP_S];
    r->value[METRIC_WAIT_S] = wait * r->value[METRIC_STEP_S];
}

static int read_breakdown(struct result *r, const char *dir)
{
    char path[CONFIG_PATH];
    struct csv c;
    if (join(path, dir, "breakdown.csv") || csv_open(&c, path))
        return 0; // trace=off does not measure it
    struct spent *spent = mem_alloc((size_t)r->world, sizeof *spent);
    r->util = mem_alloc((size_t)r->world, sizeof *r->util);
    r->comm = mem_alloc((size_t)r->world, sizeof *r->comm);
    int rc = spent && r->util && r->comm ? 0 : -1;
    if (!rc) {
        read_spent(spent, r, &c);
        add_spent(r, spent);
    }
    mem_free(spent);
    csv_close(&c);
    return rc;
}

// Returns the mean lag of all steps of all workers.
static double mean_lag(const char *dir)
{
    char path[CONFIG_PATH];
    struct csv c;
    double sum = 0;
    if (join(path, dir, "steps.csv") || csv_open(&c, path))
        return NAN;
    int col = csv_column(&c, "lag"), n = c.nrows;
    for (int i = 0; i < n; i++)
        sum += csv_number(&c, i, col);
    csv_close(&c);
    return n ? sum / n : NAN;
}

// Reads util.csv. The peak of memory becomes the larger one of two: the peak of
// the samples, which miss short peaks, and the peak that read_memory() found,
// which without a mesh is that of worker 0 only.
static void read_samples(struct result *r, const char *dir)
{
    struct samples s;
    samples_read(&s, dir);
    r->value[METRIC_CPU_MEAN] = s.cpu_share;
    r->value[METRIC_MEMORY] = fmax(r->value[METRIC_MEMORY], s.worker_bytes);
    r->value[METRIC_SERVER_MEMORY] = s.server_bytes;
    r->value[METRIC_TAKEN] = s.taken_share;
    r->value[METRIC_SWITCHES] = s.switches_per_s;
    r->value[METRIC_GPU_UTIL] = s.gpu_util;
    r->value[METRIC_GPU_MEMORY] = s.gpu_bytes;
    r->value[METRIC_GPU_POWER] = s.gpu_power_w;
}

int result_read(struct result *r, const char *dir)
{
    for (int m = 0; m < METRICS; m++)
        r->value[m] = NAN;
    cJSON *run = read_json(dir, "run.json");
    cJSON *summary = run ? read_json(dir, "summary.json") : NULL;
    int rc = summary ? read_run(r, run) : -1;
    if (!rc) {
        rc = read_summary(r, summary, dir) || read_breakdown(r, dir) ||
                     curve_read(&r->curve, dir)
                 ? -1
                 : 0;
        read_samples(r, dir);
        r->value[METRIC_LAG] = mean_lag(dir);
        result_stages(r, dir);
    }
    cJSON_Delete(run);
    cJSON_Delete(summary);
    return rc;
}

void result_free(struct result *r)
{
    mem_free(r->util);
    mem_free(r->comm);
    r->util = r->comm = NULL;
    curve_free(&r->curve);
    cJSON_Delete(r->settings);
    r->settings = NULL;
}

struct range range_of(double *v, int n)
{
    int k = 0;
    for (int i = 0; i < n; i++)
        if (!isnan(v[i]))
            v[k++] = v[i];
    if (!k)
        return (struct range){NAN, NAN, NAN};
    double middle = median(v, k); // and v is in order
    return (struct range){middle, v[0], v[k - 1]};
}
