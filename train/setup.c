// setup.c - makes a worker that is ready for its first step.
//
// It finds everything that is wrong with the settings, the data or the machine
// before it writes a file or computes a gradient.

#include "train/trainer.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "cluster/rendezvous.h"
#include "cluster/split.h"
#include "config/backends.h"
#include "config/mesh.h"
#include "data/data.h"
#include "device/device.h"
#include "horovod_ring/tcp.h"
#include "sync/derive.h"
#include "train/about.h"
#include "train/lend.h"
#include "train/parts.h"
#include "train/place.h"
#include "train/run_law.h"
#include "train/run_state.h"
#include "train/sequences.h"
#include "train/shape.h"
#include "train/slices.h"
#include "train/stages.h"
#include "train/ways.h"

#include <math.h>
#include <netinet/in.h>
#include <omp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Seconds that the launcher may take to start the other workers on a busy
// machine.
static const double start_s = 30;

// If servers are named but no rendezvous=, workers meet at server 0.
static int default_rendezvous(struct run *r)
{
    const char *servers = r->settings.servers.endpoints;
    if (*r->rendezvous || !*servers)
        return 0;
    return text_into(r->rendezvous, sizeof r->rendezvous, "%.*s",
                     (int)strcspn(servers, ","), servers);
}

// Takes rank and world from the environment (cluster_named()) if a launcher
// started processes that Open MPI cannot join. Without this, each process would
// train a model of its own.
static int take_place(struct run *r, const struct backend *row)
{
    struct cluster_place p;
    if (r->world)
        return 0;
    if (row->launch == LAUNCH_ALONE && cluster_several(&p))
        return fail("%s started %d trainers, but sync=%s trains one worker; "
                    "try: sync=ring",
                    p.launcher, p.world, row->name);
    if (!cluster_named(&p))
        return 0;
    r->rank = p.rank;
    r->world = p.world;
    if (*r->rendezvous || *r->settings.servers.endpoints)
        return 0;
    if (cluster_rendezvous(r->rendezvous))
        return -1;
    return *r->rendezvous
               ? 0
               : fail("%s started %d trainers, and Open MPI cannot join "
                      "them; try: mpirun (in Slurm srun --mpi=pmix), or "
                      "rendezvous=tcp://HOST:PORT, where rank 0 will listen",
                      p.launcher, p.world);
}

// If no server serves the rendezvous, rank 0 does. The launcher, which lets it
// choose the port, reads the endpoint and tells it to the other workers.
static int serve_rendezvous(struct trainer *t, const struct cluster_ops *ops)
{
    struct run *r = &t->run;
    if (ops != &cluster_zmq || r->rank > 0 ||
        t->backend->launch == LAUNCH_SERVERS || !*r->rendezvous)
        return 0;
    if (rendezvous_start(&t->rendezvous, r->rendezvous, r->curve) ||
        text_into(r->rendezvous, sizeof r->rendezvous, "%s",
                  rendezvous_endpoint(t->rendezvous)))
        return -1;
    if (t->launched) {
        printf("@endpoint %s\n", r->rendezvous);
        fflush(stdout);
    }
    return 0;
}

// Finds this rank's groups: the ranks with the same part of the model
// (members), the stages of its replica (line), the slices of its stage (row),
// the workers that divide its sequences (sharers, and its group of them). These
// ranks differ in one coordinate of the mesh only, members in dp, cp and up.
static int find_axes(struct trainer *t)
{
    const struct mesh *m = &t->run.mesh;
    struct cluster *all = t->cluster;
    int stages = mesh_size(m, MESH_PP), slices = mesh_size(m, MESH_TP);
    int pieces = mesh_pieces(m), up = mesh_size(m, MESH_UP);
    int dp = mesh_at(m, all->rank, MESH_DP);
    int pp = mesh_at(m, all->rank, MESH_PP);
    int tp = mesh_at(m, all->rank, MESH_TP);
    int piece = mesh_piece(m, all->rank), reader = dp * pieces + piece;
    int part = (dp * stages + pp) * slices + tp;
    t->members = all;
    if (stages * slices > 1 &&
        cluster_split(&t->members, all, pp * slices + tp))
        return -1;
    if ((stages > 1 && cluster_split(&t->line, all, reader * slices + tp)) ||
        (slices > 1 && cluster_split(&t->row, all, reader * stages + pp)) ||
        (pieces > 1 &&
         cluster_split(&t->sharers, all, part * up + piece % up)) ||
        (up > 1 && cluster_split(&t->group, all, part * pieces + piece / up)))
        return -1;
    t->replica = pieces > 1 ? dp : t->members->rank;
    t->replicas = t->members->world / pieces;
    return 0;
}

static int meet(struct trainer *t)
{
    struct run *r = &t->run;
    const struct backend *row = t->backend = backend_find(r->sync);
    if (take_place(r, row) || default_rendezvous(r))
        return -1;
    struct cluster_config config = {
        .rank = r->rank < 0 ? 0 : r->rank,
        .world = r->world ? r->world : 1,
        .rendezvous = r->rendezvous,
        .curve = r->curve,
        .timeout_s = r->timeout,
        .start_s = t->launched ? start_s : 0,
    };
    // a single worker of servers that comes back asks them where it was
    bool serves = row->launch == LAUNCH_SERVERS && *r->rendezvous &&
                  strncmp(r->rendezvous, "mpi:", 4);
    bool alone = config.world == 1 && !serves;
    const struct cluster_ops *ops = control_plane_find(row, alone);
    if (serve_rendezvous(t, ops) || cluster_open(&t->cluster, ops, &config))
        return -1;
    if (r->workers > 1 && !r->world && t->cluster->world == 1)
        return fail("workers=%d, but this trainer was started alone; try: "
                    "lockstep train, or mpirun -n %d trainer",
                    r->workers, r->workers);
    if (t->cluster->world > 1)
        log_set_rank(t->cluster->rank);
    return config_check_world(r, t->cluster->world) || find_axes(t) ? -1 : 0;
}

// Opens the data. Worker 0 of a backend that scatters batches reads those of
// all ranks.
static int open_data(struct trainer *t)
{
    const struct run *r = &t->run;
    t->scatters = t->backend->traffic == TRAFFIC_OWNER;
    bool all = t->scatters && t->replica == 0;
    struct data_config config;
    about_data_config(r, &config);
    config.batch = all ? r->batch * t->replicas : r->batch;
    config.tokens = t->whole.context;
    config.accum = r->accum;
    config.rank = t->replica;
    config.world = all ? 1 : t->replicas;
    return data_open(&t->data, &config);
}

// If no setting gives the vocabulary, the data does.
static int settle_vocab(struct trainer *t)
{
    struct data_info info;
    data_info(t->data, &info);
    if (t->whole.vocab == 0)
        t->whole.vocab = info.vocab_size < 2 ? 2 : (int)info.vocab_size;
    if ((size_t)t->whole.vocab < info.vocab_size)
        return fail("%s: has token %zu, out of the vocabulary of %d; try: "
                    "vocab_size=%zu",
                    info.source, info.vocab_size - 1, t->whole.vocab,
                    info.vocab_size);
    return model_check(&t->whole);
}

// Whether the model has to ask for a block before it uses it. On a GPU the
// whole vectors have arrived when the step ends.
static bool asks_for_blocks(const struct trainer *t)
{
    return t->share.lends_grads ||
           (t->share.late_params && device_is_host(t->dev));
}

struct model_job trainer_model_job(const struct trainer *t)
{
    struct model_job job = {
        .config = t->config,
        .precision = config_format(&t->run),
        .batch = t->run.batch,
        .tokens = sequences_tokens(t),
        .threads = t->run.threads,
        .train = true,
        .params = t->params,
        .grads = t->grads,
        .lent_weights = t->share.lends_params,
        .lent_grads = t->share.lends_grads,
        .lender = asks_for_blocks(t) ? &t->lender : NULL,
        .seed = (uint64_t)t->run.seed + (uint64_t)t->replica,
        .dev = t->dev,
        .tf32 = t->run.precision == PRECISION_TF32,
        .spared = t->members->world > 1 ? t->settings.ctas : 0,
        .tune = t->run.tune,
        .cudnn = t->run.attention == ATTENTION_CUDNN,
        .recompute = t->run.recompute,
        .slices = slices_job(t),
        .pieces = sequences_job(t),
    };
    shape_stage(&t->plan, t->stage, &job);
    return job;
}

// Chooses the number of threads: the cores that this process may use, divided
// by the number of workers unless each was given cores of its own.
static void choose_threads(struct trainer *t)
{
    cpu_set_t set;
    int cores = omp_get_num_procs();
    if (!t->run.threads) {
        bool shared = sched_getaffinity(0, sizeof set, &set) == 0 &&
                      CPU_COUNT(&set) > 1 && !*t->run.hosts;
        int threads = shared ? cores / t->cluster->world : cores;
        t->run.threads = threads > 0 ? threads : 1;
    }
    omp_set_num_threads(t->run.threads);
}

// Predicts this worker's memory from what is known by now.
static void predict_memory(struct trainer *t)
{
    struct model_job model = trainer_model_job(t);
    struct memory_job job = {
        .model = &model,
        .settings = &t->settings,
        .backend = t->backend,
        .slots = optim_slots(&t->optim),
        .rank = t->members->rank,
        .world = t->members->world,
        .transport = t->sync ? t->sync->transport : NULL,
        .saves = t->run.save > 0 || *t->run.resume,
        .apart = *t->run.hosts || *t->run.net,
        .copies =
            t->run.save_async && t->run.save > 0 && t->run.save < t->run.steps,
    };
    memory_worker(&job, &t->memory);
    t->memory.buffers += stages_tied(t) * sizeof(float) + slices_bytes(t) +
                         sequences_bytes(t, &model);
    t->memory.mapped += memory_shared(stages_sharing(t) + slices_sharing(t) +
                                      sequences_sharing(t));
}

static int check_memory(struct trainer *t)
{
    predict_memory(t);
    size_t workers = *t->run.hosts ? 1 : (size_t)t->cluster->world;
    size_t available = mem_available(), sum = memory_sum(&t->memory);
    char need[32], have[32];
    if (available && sum > available / workers)
        return fail("memory: a worker needs %s for this model, and %zu "
                    "worker%s share %s; try: a smaller batch, context or "
                    "model, accum=%s%s, or lockstep fit",
                    mem_text(need, sum), workers, workers > 1 ? "s" : "",
                    mem_text(have, available),
                    t->run.recompute ? "" : ", recompute=1",
                    t->run.save_async ? ", save_async=0" : "");
    return 0;
}

static int choose_rule(struct trainer *t)
{
    const struct run *r = &t->run;
    struct optim_config *o = &t->optim;
    *o = (struct optim_config){
        .kind = (uint32_t)r->optimizer,
        .beta1 = (float)r->beta1,
        .beta2 = (float)r->beta2,
        .eps = (float)r->eps,
        .weight_decay = (float)r->weight_decay,
        .momentum = config_moves_momentum(r) ? 0 : (float)r->momentum,
    };
    if (shape_decay(&t->config, o))
        return -1;
    double factor = config_lr_factor((enum lr_scale)r->lr_scale,
                                     (double)t->replicas * r->accum * r->batch,
                                     r->base_batch);
    t->schedule = (struct schedule){
        .kind = (enum schedule_kind)r->schedule,
        .lr = (float)(factor * r->lr),
        .min_lr = (float)(factor * r->min_lr),
        .warmup = r->warmup,
        .steps = r->steps,
    };
    // PyTorch's GradScaler begins and grows in the same way
    t->scaling = r->precision == PRECISION_FP16 || r->loss_scale > 0;
    t->scale = (struct loss_scale){.scale = 1};
    if (r->loss_scale > 0)
        t->scale.scale = (float)r->loss_scale;
    else if (t->scaling)
        t->scale = (struct loss_scale){.scale = 65536, .window = 2000};
    return 0;
}

static int open_model(struct trainer *t)
{
    struct model_job job = trainer_model_job(t);
    size_t batch = (size_t)t->run.batch * (size_t)t->config.context;
    if (t->scatters && t->replica == 0)
        batch *= (size_t)t->replicas;
    if (job.slots > 1)
        batch *= (size_t)job.slots;
    t->x = mem_alloc(batch, sizeof *t->x);
    t->y = mem_alloc(batch, sizeof *t->y);
    if (place_vectors(t) || slices_buffer(t) || !t->x || !t->y)
        return -1;
    job = trainer_model_job(t); // now with the vectors
    return model_open(&t->model, &job);
}

static int open_sequences(struct trainer *t)
{
    struct model_job job = trainer_model_job(t);
    return sequences_open(t, &job);
}

// Derives the backend's settings, and what this worker holds of the vectors.
static int derive_settings(struct trainer *t)
{
    t->settings = t->run.settings;
    if (t->settings.squeeze == SQUEEZE_DEMO)
        t->run.clip = 0; // it updates by signs
    t->lender = lend_blocks(t);
    sync_derive(&t->settings, t->backend, t->members->world,
                model_nparams(&t->config));
    t->buckets = mem_alloc(TRAIN_MAX_BUCKETS, sizeof *t->buckets);
    if (!t->buckets)
        return -1;
    t->share = sync_share(&t->settings, t->backend, t->members->world,
                          model_nparams(&t->config), model_work(&t->config));
    return 0;
}

float trainer_grad_scale(const struct trainer *t)
{
    return 1 / ((float)t->replicas * (float)t->run.accum * t->scale.scale);
}

static int open_sync(struct trainer *t)
{
    const struct sync_settings *set = &t->settings;
    const struct straggler *slow = &t->run.straggler;
    bool slows = slow->factor > 0 && slow->rank == t->cluster->rank;
    struct sockaddr_in address;
    const char *iface = t->run.settings.iface;
    if (*iface && tcp_address(&address, iface))
        return -1;
    const struct way *way = way_find(t->backend);
    int count = shape_buckets(&t->config, set, t->buckets, TRAIN_MAX_BUCKETS);
    if (count < 0)
        return -1;
    struct sync_job job = {
        .backend = t->backend,
        .carriers = way->carriers,
        .cluster = t->members,
        .dev = t->dev,
        .params = t->params,
        .grads = t->grads,
        .n = model_nparams(&t->config),
        .format = trainer_model_job(t).precision,
        .copy = model_copy(t->model),
        .awaits = asks_for_blocks(t),
        .buckets = t->buckets,
        .nbuckets = count,
        .optim = &t->optim,
        .settings = set,
        .spans = t->observe.spans,
        .slowdown = slows ? slow->factor : 1,
        .folder = set->offload ? t->run.out : NULL,
        .parts = t->parts,
        .servers_apart = !run_law_beside(&t->run, t->members->world),
        .restarted = t->restarts > 0,
        .seed = (uint64_t)t->run.seed,
        .velocity_decay =
            config_moves_momentum(&t->run) ? (float)t->run.momentum : 0,
        .grad_scale = trainer_grad_scale(t),
    };
    t->sync = sync_open(strategy_find(way, set), &job);
    if (!t->sync)
        return -1;
    predict_memory(t); // again, now with the transport
    return 0;
}

// All workers must have the same settings, data and model.
static int check_same(struct trainer *t)
{
    struct config_lines all = {.n = 0};
    struct data_info info;
    data_info(t->data, &info);
    config_add_run(&all, &t->run);
    config_line(&all, "hash of the data=%016llx",
                (unsigned long long)info.hash);
    return cluster_check_same(t->cluster, all.text);
}

// Reads the user's settings, and those of a run that is resumed. A launcher has
// already added the latter; its own settings follow "--".
static int read_words(struct trainer *t, int nwords, char *const *words)
{
    int n = 0;
    while (n < nwords && strcmp(words[n], "--"))
        n++;
    bool launched = t->launched = n < nwords;
    const char *restarts = getenv("LOCKSTEP_RESTARTS");
    t->restarts = restarts ? atoi(restarts) : 0;
    config_defaults(&t->asked);
    if ((launched ? config_parse : config_read)(&t->asked, n, words))
        return -1;
    t->run = t->asked;
    return launched ? config_parse(&t->run, nwords - n - 1, words + n + 1)
                    : config_say_changes(&t->asked);
}

int trainer_open(struct trainer *t, int nwords, char *const *words)
{
    struct run *r = &t->run;
    if (read_words(t, nwords, words) || config_check(r) ||
        shape_model(r, &t->whole) || meet(t) ||
        config_settle_batch(r, t->replicas) || shape_pipeline(r, &t->plan) ||
        open_data(t) || settle_vocab(t) || stages_plan(t) || slices_plan(t) ||
        sequences_plan(t))
        return -1;
    if (r->epochs > 0) {
        struct data_info info;
        data_info(t->data, &info);
        double steps = ceil(r->epochs * (double)info.steps_per_epoch);
        if (steps > 1e9)
            return fail("epochs=%g: %.0f steps are more than 1e9", r->epochs,
                        steps);
        r->steps = (int)steps;
    }
    choose_threads(t);
    if (choose_rule(t) || derive_settings(t) || place_open(t) ||
        check_memory(t) || open_model(t) || check_same(t) || observe_open(t) ||
        stages_open(t) || slices_open(t) || open_sequences(t) ||
        parts_open(t) || open_sync(t))
        return -1;
    return 0;
}

void trainer_close(struct trainer *t)
{
    observe_close(t);
    state_close(t);
    sync_close(&t->sync);
    parts_close(t);
    stages_close(t);
    mem_free(t->buckets);
    model_close(&t->model);
    slices_close(t);
    sequences_close(t);
    mem_free(t->x);
    mem_free(t->y);
    place_close(t);
    data_close(&t->data);
    cluster_close(&t->line);
    cluster_close(&t->row);
    cluster_close(&t->sharers);
    cluster_close(&t->group);
    if (t->members != t->cluster)
        cluster_close(&t->members);
    cluster_close(&t->cluster);
    rendezvous_stop(&t->rendezvous);
}
