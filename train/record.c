// record.c - writes run.json and steps.csv during the loop, summary.json after
// it.

#include "train/record.h"

#include "base/base.h"
#include "base/file.h"
#include "base/version.h"
#include "cluster/cluster.h"
#include "config/backends.h"
#include "config/keys.h"
#include "config/value.h"
#include "data/data.h"
#include "device/device.h"
#include "telemetry/align.h"
#include "telemetry/manifest.h"
#include "telemetry/nvml.h"
#include "telemetry/steps.h"
#include "train/about.h"
#include "train/folder.h"
#include "train/run_state.h"
#include "train/sequences.h"
#include "train/slices.h"
#include "train/stages.h"
#include "train/summary.h"

#include <dnnl.h>
#include <errno.h>
#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

enum { PATH = CONFIG_PATH + 64 };

static int make_out(const char *out)
{
    if (file_make_folder(out) < 0)
        return fail("out=%s: cannot be created: %s", out, fail_message());
    if (access(out, W_OK | X_OK))
        return fail("out=%s: %s", out, strerror(errno));
    return 0;
}

// If a launcher started this job, the launcher holds the lock on OUT.
static int take_lock(struct trainer *t)
{
    if (t->launched || t->cluster->rank)
        return 0;
    t->lock = folder_lock(t->run.out) + 1;
    return t->lock ? 0 : -1;
}

// ---- which process each worker is, and where it runs

struct identity { // sent as bytes: no pointers, and padding is zero
    char host[64];
    int64_t pid, has_gpu;
    uint64_t machine; // 0: not known
    cpu_set_t cores;  // that the process may use
    unsigned char gpu[DEVICE_ID];
};

// Collects the identities of all workers, by rank. All workers call it. The
// caller frees the result with mem_free(). NULL after fail().
static struct identity *gather_identities(const struct trainer *t)
{
    struct identity mine = {.pid = getpid(),
                            .has_gpu = !device_is_host(t->dev),
                            .machine = align_host()};
    struct identity *all = mem_alloc((size_t)t->cluster->world, sizeof *all);
    if (!all)
        return NULL;
    if (gethostname(mine.host, sizeof mine.host - 1))
        strcpy(mine.host, "unknown");
    if (sched_getaffinity(0, sizeof mine.cores, &mine.cores))
        CPU_ZERO(&mine.cores);
    if (mine.has_gpu)
        device_identity(t->dev, mine.gpu);
    if (cluster_allgather(t->cluster, &mine, all, sizeof mine)) {
        mem_free(all);
        return NULL;
    }
    return all;
}

// The lowest rank of which there is an identity: an elastic job may have lost
// others.
static int first_rank(const struct identity *all)
{
    int rank = 0;
    while (!all[rank].pid)
        rank++;
    return rank;
}

// Whether no two workers of one machine may use the same core.
static bool own_cores(const struct identity *all, int world)
{
    for (int a = 0; a < world; a++)
        for (int b = 0; b < a; b++) {
            cpu_set_t both;
            CPU_AND(&both, &all[a].cores, &all[b].cores);
            if (all[a].machine == all[b].machine && CPU_COUNT(&both))
                return false;
        }
    return true;
}

static void add_workers(struct manifest *m, const struct identity *all,
                        int world)
{
    char rank[32], uuid[NVML_UUID_TEXT], text[192];
    manifest_begin(m, "workers");
    for (int r = 0; r < world; r++) {
        const struct identity *s = &all[r];
        nvml_uuid_text(uuid, s->gpu);
        snprintf(rank, sizeof rank, "rank %d", r);
        snprintf(text, sizeof text, "host %.63s, pid %lld%s%s", s->host,
                 (long long)s->pid, s->has_gpu ? ", " : "",
                 s->has_gpu ? uuid : "");
        manifest_text(m, rank, text);
    }
    manifest_end(m);
    manifest_bool(m, "own_cores", own_cores(all, world));
}

// ---- run.json

// Whether a later argument sets the same key: the last one wins.
static bool is_overruled(int argc, char *const *argv, int i)
{
    const char *equals = strchr(argv[i], '=');
    if (!i || !equals)
        return false;
    size_t key = (size_t)(equals - argv[i]) + 1;
    while (++i < argc)
        if (!strncmp(argv[i], equals + 1 - key, key))
            return true;
    return false;
}

static void add_about(struct manifest *m, const struct trainer *t)
{
    struct run effective = t->run;
    const struct key *k = key_find(&run_keys, "transport");
    const char *transport = t->sync->transport;
    effective.settings = t->settings;
    if (transport && t->settings.transport == TRANSPORT_AUTO &&
        value_known(transport, k->words))
        CHECK(key_set(k, &effective.settings, transport) == 0);
    about_write(m, &(struct about){.asked = &t->asked,
                                   .effective = &effective,
                                   .model = &t->whole,
                                   .world = t->cluster->world,
                                   .transport = transport,
                                   .joins = slices_transport(t)});
}

static void add_command(struct manifest *m, int argc, char *const *argv)
{
    char line[4096] = "";
    size_t at = 0;
    for (int i = 0; i < argc && at < sizeof line; i++)
        if (!is_overruled(argc, argv, i))
            at += (size_t)snprintf(line + at, sizeof line - at, "%s%s",
                                   i ? " " : "", argv[i]);
    manifest_text(m, "command", line);
}

static void add_data(struct manifest *m, const struct trainer *t)
{
    struct data_info info;
    data_info(t->data, &info);
    manifest_begin(m, "data");
    manifest_text(m, "source", info.source);
    manifest_hash(m, "hash_xxh3", info.hash);
    manifest_number(m, "train_tokens", (double)info.train_tokens);
    manifest_number(m, "val_tokens", (double)info.val_tokens);
    manifest_number(m, "steps_per_epoch", (double)info.steps_per_epoch);
    manifest_end(m);
}

static void add_model(struct manifest *m, const struct trainer *t)
{
    const struct model_config *c = &t->whole;
    manifest_begin(m, "model");
    manifest_number(m, "layers", c->layers);
    manifest_number(m, "heads", c->heads);
    manifest_number(m, "channels", c->channels);
    manifest_number(m, "context", c->context);
    manifest_number(m, "vocab_size", c->vocab);
    manifest_number(m, "parameters", (double)model_nparams(c));
    manifest_number(m, "buckets", t->sync->job.nbuckets);
    manifest_number(m, "predicted_memory_bytes",
                    (double)(memory_sum(&t->memory) + t->memory.mapped));
    manifest_end(m);
}

// Adds the versions of the libraries that this process has loaded.
static void add_versions(struct manifest *m)
{
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "", text[64];
    int length, major, minor, patch;
    const dnnl_version_t *dnnl = dnnl_version();
    manifest_begin(m, "versions");
    manifest_text(m, "compiler", __VERSION__);
    if (!confstr(_CS_GNU_LIBC_VERSION, text, sizeof text) || !*text)
        snprintf(text, sizeof text, "unknown");
    manifest_text(m, "libc", text);
    zmq_version(&major, &minor, &patch);
    snprintf(text, sizeof text, "%d.%d.%d", major, minor, patch);
    manifest_text(m, "libzmq", text);
    snprintf(text, sizeof text, "%d.%d.%d", dnnl->major, dnnl->minor,
             dnnl->patch);
    manifest_text(m, "onednn", text);
    if (MPI_Get_library_version(mpi, &length) == MPI_SUCCESS)
        mpi[strcspn(mpi, ",")] = '\0';
    manifest_text(m, "mpi", mpi);
    manifest_end(m);
}

// Adds the carriers of exchanges within a replica; "transport" is that of the
// backend.
static void add_transports(struct manifest *m, const struct trainer *t)
{
    const char *const names[][2] = {
        {"stages", stages_transport(t)},
        {"slices", slices_transport(t)},
        {"keys", sequences_transport(t, false)},
        {"heads", sequences_transport(t, true)},
    };
    manifest_begin(m, "transport_of");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i][1])
            manifest_text(m, names[i][0], names[i][1]);
    manifest_end(m);
}

static int write_run(const struct trainer *t, const struct identity *all,
                     int argc, char *const *argv)
{
    char path[PATH], when[32], program[64];
    time_t now = time(NULL);
    struct tm tm;
    struct manifest *m = manifest_open();
    if (!m || text_into(path, sizeof path, "%s/run.json", t->run.out))
        return -1;
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    snprintf(program, sizeof program, "lockstep %s", version_number);
    manifest_text(m, "program", program);
    manifest_text(m, "revision", version_revision);
    manifest_text(m, "started", when);
    add_command(m, argc, argv);
    manifest_text(m, "backend", t->backend->name);
    const char *transport = t->sync->transport;
    manifest_text(m, "transport", transport ? transport : "none");
    add_transports(m, t);
    manifest_number(m, "world", t->cluster->world);
    manifest_number(m, "threads", t->run.threads);
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    manifest_bool(m, "oversubscribed",
                  !*t->run.hosts && t->cluster->world * t->run.threads > cores);
    manifest_number(m, "resumed_from_step", t->step);
    add_model(m, t);
    add_data(m, t);
    add_about(m, t);
    manifest_machine(m);
    add_versions(m);
    add_workers(m, all, t->cluster->world);
    if (about_inputs(m, &t->run)) {
        manifest_close(&m, NULL);
        return -1;
    }
    return manifest_close(&m, path);
}

// Removes the summary.json of an earlier part of this run, which now continues.
static int remove_summary(const struct trainer *t)
{
    char path[PATH];
    if (text_into(path, sizeof path, "%s/summary.json", t->run.out))
        return -1;
    return unlink(path) && errno != ENOENT
               ? fail("%s: %s", path, strerror(errno))
               : 0;
}

// A scheduler that starts the command of a cancelled job again makes a restart,
// as the launcher does, and so does who starts a lost worker of an elastic job
// again. Looks before worker 0 writes into the folder.
static void count_restart(struct trainer *t)
{
    const char *out = t->run.out;
    bool again = !strcmp(t->run.resume, "auto") &&
                 folder_has(out, "run.json") &&
                 !folder_has(out, "summary.json");
    if (!t->restarts && (again || t->sync->late))
        t->restarts = 1;
}

int record_begin(struct trainer *t, const char *folder, int argc,
                 char *const *argv)
{
    int own = t->cluster->rank, first = 0;
    if (!*t->run.out)
        return 0;
    count_restart(t);
    // if the run was started again, the one in out= is its own
    bool is_new = own == first && !t->sync->late && !t->restarts;
    if (make_out(t->run.out) || take_lock(t) ||
        (is_new && config_check_out(&t->run)) ||
        steps_open(&t->rows, t->run.out, t->backend->name, t->cluster->rank,
                   t->cluster->world, t->step, t->sync->late, t->restarts,
                   &t->time_before) ||
        observe_begin(t) || (own == first && state_rewind(t, folder)))
        return -1;
    struct identity *all = gather_identities(t);
    int rc = all ? 0 : -1;
    if (all)
        first = first_rank(all);
    if (all && own == first && own > 0) // worker 0 was lost
        rc = state_rewind(t, folder);
    if (!rc && own == first &&
        !(t->sync->late && folder_has(t->run.out, "run.json")))
        rc = remove_summary(t) || write_run(t, all, argc, argv) ? -1 : 0;
    mem_free(all);
    return rc;
}

// ---- a row of steps.csv

struct so_far record_so_far(const struct trainer *t)
{
    struct so_far now = {
        .moved = {[MESH_DP] = t->sync->stats,
                  [MESH_PP] = stages_moved(t),
                  [MESH_TP] = slices_moved(t),
                  [MESH_CP] = sequences_moved(t, MESH_CP),
                  [MESH_UP] = sequences_moved(t, MESH_UP)},
        .bubble_ns = t->bubble_ns,
    };
    span_totals(t->observe.lane, now.spent);
    return now;
}

static void put_bytes(struct trainer *t, const struct so_far *before,
                      struct so_far *now, struct step_row *row)
{
    struct group_stats *moved = now->moved; // in this step
    for (int a = 0; a < MESH_AXES; a++) {
        group_stats_less(&moved[a], &before->moved[a]);
        t->axis_out[a] += moved[a].bytes_out;
    }
    group_stats_add(&t->moved, &moved[MESH_DP]);
    row->bytes_out = moved[MESH_DP].bytes_out;
    row->bytes_in = moved[MESH_DP].bytes_in;
    row->head_out = moved[MESH_DP].head_out;
    row->head_in = moved[MESH_DP].head_in;
    row->stage_out = moved[MESH_PP].bytes_out;
    row->stage_in = moved[MESH_PP].bytes_in;
    row->slice_out = moved[MESH_TP].bytes_out;
    row->slice_in = moved[MESH_TP].bytes_in;
    row->piece_out = moved[MESH_CP].bytes_out + moved[MESH_UP].bytes_out;
    row->piece_in = moved[MESH_CP].bytes_in + moved[MESH_UP].bytes_in;
}

// Each moment of the step is in one kind of span, or in none. But the wait for
// the norm of all stages is in two columns: it is a part of the update.
static void put_times(const struct so_far *before, const struct so_far *now,
                      struct step_row *row)
{
    uint64_t us[SPAN_KINDS], all_ns = 0;
    for (int k = 0; k < SPAN_KINDS; k++) {
        uint64_t ns = now->spent[k] - before->spent[k];
        us[k] = ns / 1000;
        all_ns += ns;
    }
    row->step_us = all_ns / 1000;
    row->data_us = us[SPAN_DATA];
    row->compute_us = us[SPAN_FORWARD] + us[SPAN_BACKWARD] + us[SPAN_SLOWED];
    row->ready_us = us[SPAN_READY] + us[SPAN_GATHER];
    row->sync_us = us[SPAN_WAIT] + us[SPAN_COMPRESS] + us[SPAN_UPDATE];
    row->bubble_us =
        us[SPAN_BUBBLE] + (now->bubble_ns - before->bubble_ns) / 1000;
    row->join_us = us[SPAN_JOIN];
}

void record_step(struct trainer *t, const struct so_far *before,
                 const struct sync_in *in, const struct sync_out *out,
                 struct step_row *row)
{
    struct so_far now = record_so_far(t);
    row->step = t->step;
    row->tokens = t->tokens;
    row->loss = t->loss;
    row->lr = (double)in->lr;
    row->grad_norm = (double)out->grad_norm;
    row->own_norm = out->own_norm;
    row->skipped = out->skipped;
    row->dropped = out->dropped;
    row->lag = out->lag;
    put_bytes(t, before, &now, row);
    put_times(before, &now, row);
}

int record_end(struct trainer *t)
{
    if (!*t->run.out)
        return cluster_barrier(t->cluster);
    if (steps_close(&t->rows) || observe_end(t) || summary_write(t))
        return -1;
    if (t->lock)
        folder_unlock(t->lock - 1, t->run.out);
    t->lock = 0;
    return 0;
}
