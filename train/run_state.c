// run_state.c - resume: finds an undamaged checkpoint and begins from it.

#include "train/run_state.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "data/data.h"
#include "device/device.h"
#include "model/checkpoint.h"
#include "model/part.h"
#include "train/folder.h"
#include "train/whole.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH = STATE_PATH };

// Where a run continues.
struct place {
    int step, updates, good; // good: steps since the loss scale changed
    float scale;
    float lr; // learning rate of the last step; 0: not known
    uint64_t position, tokens;
};

// The position in the data, in steps of this run.
static uint64_t position(const struct trainer *t, uint64_t epoch,
                         uint64_t window)
{
    struct data_info info;
    data_info(t->data, &info);
    uint64_t step_windows =
        (uint64_t)t->replicas * (uint64_t)t->run.accum * (uint64_t)t->run.batch;
    if (window % step_windows)
        log_line("resume: the batch changed; %llu sequences are read again",
                 (unsigned long long)(window % step_windows));
    return epoch * info.steps_per_epoch + window / step_windows;
}

void state_data_hash(const struct trainer *t, char hash[STATE_HASH])
{
    struct data_info info;
    data_info(t->data, &info);
    snprintf(hash, STATE_HASH, "%016llx", (unsigned long long)info.hash);
}

int state_files(struct state_files *f, const char *folder)
{
    return text_into(f->model, sizeof f->model, "%s/model.safetensors",
                     folder) ||
                   text_into(f->slots, sizeof f->slots,
                             "%s/optimizer.safetensors", folder)
               ? -1
               : 0;
}

// Context of the functions that read a file of slots or a file of parameters.
struct range_file {
    const struct trainer *t;
    const char *path;
    int slot; // the reader was opened for this one
    char name[SYNC_SLOT_NAME];
    const char *names[1];
    struct checkpoint *reader;
};

// Opens a reader of one slot, or of the parameters. Returns 0, or SYNC_ABSENT
// if the file does not have the slot, or -1 after fail().
static int open_slot(struct range_file *f, int slot)
{
    const struct trainer *t = f->t;
    bool params = slot == SYNC_PARAMS;
    checkpoint_close(&f->reader);
    f->slot = slot;
    f->names[0] = f->name;
    if (!params)
        sync_slot_name(t->sync, slot, f->name);
    // with momentum_correction=1 and squeeze=demo the workers had the momentum
    if (slot >= optim_slots(&t->optim) ||
        (!params && checkpoint_has_slot(f->path, "residual_of_worker_0") > 0)) {
        int has = checkpoint_has_slot(f->path, f->name);
        if (has <= 0)
            return has ? -1 : SYNC_ABSENT;
    }
    int rc = checkpoint_open(&f->reader, f->path, &t->whole, !params, f->names);
    return rc && !params ? config_fail_state(&t->run) : rc;
}

// A range of this worker's vector. The file has the whole model's vector.
struct piece {
    const struct checkpoint *reader;
    size_t off;
    float *v;
};

static int read_piece(void *ctx, size_t off, size_t n, size_t at)
{
    const struct piece *p = ctx;
    return checkpoint_read_range(p->reader, 0, at, p->v + (off - p->off), n);
}

// Fills a range of a slot of the optimiser that the file does not have.
static int begin_anew(const struct range_file *f, float *v, size_t n)
{
    int freeze = f->t->settings.freeze;
    if (freeze && f->t->step >= freeze)
        return fail("%s has no %s, and with freeze=%d AdamW has ended in step "
                    "%d; try: a larger freeze=",
                    f->path, f->name, freeze, freeze);
    memset(v, 0, n * sizeof *v);
    return 0;
}

static int read_range(void *ctx, int slot, size_t off, float *v, size_t n)
{
    struct range_file *f = ctx;
    bool open = f->reader && f->slot == slot;
    int rc = open ? 0 : open_slot(f, slot);
    if (rc == SYNC_ABSENT && slot < optim_slots(&f->t->optim))
        return begin_anew(f, v, n);
    struct piece p = {f->reader, off, v};
    return rc ? rc : part_ranges(&f->t->config, off, n, read_piece, &p);
}

// Finds a run's newest undamaged checkpoint of a step before `below`. Returns
// 1, or 0 if there is none, or -1 after fail(). Logs each damaged checkpoint
// that it finds, unless a running job has removed it meanwhile. *held: see
// folder_hold().
static int find_whole(const char *run, int below, char folder[STATE_FOLDER],
                      int *held)
{
    for (int step; (step = folder_newest(run, below)) >= 0; below = step) {
        if (text_into(folder, STATE_FOLDER, "%s/checkpoint-%d", run, step))
            return -1;
        *held = folder_hold(folder);
        if (!whole_check(folder, true))
            return 1;
        if (*held >= 0)
            close(*held);
        *held = -1;
        if (!access(folder, F_OK))
            log_line("%s; looking for an older checkpoint", fail_message());
    }
    folder[0] = '\0';
    return 0;
}

// Does the same, but begins with the checkpoint that the file `latest` names:
// later ones are no part of the run's history. It tries again if a running job
// has saved meanwhile, and may have removed the checkpoints that it looked at.
static int find_latest(const char *run, char folder[STATE_FOLDER], int *held)
{
    int found, latest;
    do {
        latest = folder_latest(run);
        bool known = folder_newest(run, latest + 1) >= 0;
        found = find_whole(run, known ? latest + 1 : INT_MAX, folder, held);
    } while (found == 0 && latest != folder_latest(run));
    return found;
}

// Fails with the damage, and names an older checkpoint to try.
static int fail_damaged(const char *folder)
{
    char why[512], older[STATE_FOLDER], run[PATH];
    int step, held = -1;
    const char *name = strrchr(folder, '/');
    snprintf(why, sizeof why, "%s", fail_message());
    bool found =
        name && sscanf(name, "/checkpoint-%9d", &step) == 1 &&
        !text_into(run, sizeof run, "%.*s", (int)(name - folder), folder) &&
        find_whole(run, step, older, &held) > 0;
    if (held >= 0)
        close(held);
    if (found)
        return fail("%s; try: resume=%s, which is undamaged", why, older);
    return fail("%s; try: another checkpoint", why);
}

static int find_named(const char *of, char folder[STATE_FOLDER], int *held)
{
    *held = folder_hold(of);
    if (access(of, F_OK))
        return fail("resume=%s: %s; try: the folder of a run or of a "
                    "checkpoint, or resume=auto",
                    of, strerror(errno));
    if (!folder_has(of, "state.json"))
        return fail("resume=%s: holds no checkpoint; try: a run with "
                    "save=, one of its checkpoints, or resume=auto",
                    of);
    return text_into(folder, STATE_FOLDER, "%s", of) ||
                   (whole_check(of, true) && fail_damaged(of))
               ? -1
               : 0;
}

// The checkpoint that resume= names, as this worker sees the file system.
static int find(const struct run *run, char folder[STATE_FOLDER], int *held)
{
    folder[0] = '\0';
    if (!*run->resume)
        return 0;
    bool newest = !strcmp(run->resume, "auto");
    const char *of = newest ? run->out : run->resume;
    if (folder_newest(of, INT_MAX) < 0) // `of` may be a checkpoint itself
        return newest ? 0 : find_named(of, folder, held);
    int found = find_latest(of, folder, held);
    if (found == 0)
        return fail("resume=%s: every checkpoint in %s is damaged; try: "
                    "another out= to start a new run",
                    run->resume, of);
    return found < 0 ? -1 : 0;
}

// A number of state.json in [0, 2^53).
static int get_real(const cJSON *j, const char *folder, const char *key,
                    double *out)
{
    const cJSON *n = cJSON_GetObjectItemCaseSensitive(j, key);
    if (!cJSON_IsNumber(n) || !(n->valuedouble >= 0) ||
        n->valuedouble >= 0x1p53)
        return fail("%s/state.json: \"%s\" is missing or not a number", folder,
                    key);
    *out = n->valuedouble;
    return 0;
}

static int get_number(const cJSON *j, const char *folder, const char *key,
                      double *out)
{
    double x = 0;
    if (get_real(j, folder, key, &x))
        return -1;
    if (x != floor(x))
        return fail("%s/state.json: \"%s\" is not a whole number", folder, key);
    *out = x;
    return 0;
}

static int same_model(const struct trainer *t, const cJSON *j,
                      const char *folder)
{
    const struct model_config *c = &t->whole;
    const struct {
        const char *key;
        int want;
    } fields[] = {
        {"layers", c->layers},     {"heads", c->heads},
        {"channels", c->channels}, {"context", c->context},
        {"vocab_size", c->vocab},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        double have = 0;
        if (get_number(j, folder, fields[i].key, &have))
            return -1;
        if (have != fields[i].want)
            return fail("%s: was trained with %s=%.0f, this run has %d; try: "
                        "%s=%.0f",
                        folder, fields[i].key, have, fields[i].want,
                        fields[i].key, have);
    }
    return 0;
}

// The tokens trained on so far. An older version did not write them: they are
// taken to be those of steps as large as the present ones.
static int get_tokens(const struct trainer *t, const cJSON *j,
                      const char *folder, double *tokens)
{
    double step = 0;
    if (cJSON_GetObjectItemCaseSensitive(j, "tokens"))
        return get_number(j, folder, "tokens", tokens);
    if (get_number(j, folder, "step", &step))
        return -1;
    *tokens =
        step * t->replicas * t->run.accum * t->run.batch * t->whole.context;
    return 0;
}

// The learning rate of the last step. An older version did not write it.
static int get_lr(const cJSON *j, const char *folder, double *lr)
{
    bool has = cJSON_GetObjectItemCaseSensitive(j, "learning_rate");
    *lr = 0;
    return has ? get_real(j, folder, "learning_rate", lr) : 0;
}

// Says so if this run's schedule would have had another learning rate in the
// last step: if steps=, for example, has stretched it.
static void say_schedule(const struct trainer *t, const struct place *p)
{
    float last = p->step ? schedule_lr(&t->schedule, p->step - 1) : 0;
    if (p->lr > 0 && p->lr != last)
        log_line("resume: the schedule has changed: the learning rate was %g "
                 "in step %d, and will be %g in step %d",
                 (double)p->lr, p->step,
                 (double)schedule_lr(&t->schedule, p->step), p->step + 1);
}

static int read_numbers(const struct trainer *t, const cJSON *j,
                        const char *folder, struct place *out)
{
    double version = 0, step = 0, updates = 0, epoch = 0, window = 0;
    double scale = 0, good = 0, tokens = 0, lr = 0;
    if (get_number(j, folder, "version", &version) ||
        get_number(j, folder, "step", &step) ||
        get_number(j, folder, "updates", &updates) ||
        get_tokens(t, j, folder, &tokens) || get_lr(j, folder, &lr) ||
        get_number(j, folder, "epoch", &epoch) ||
        get_number(j, folder, "windows_of_epoch", &window) ||
        get_real(j, folder, "loss_scale", &scale) ||
        get_number(j, folder, "steps_since_loss_scale_changed", &good) ||
        same_model(t, j, folder))
        return -1;
    if (version != 1 || step > 1e9 || updates > step || scale < 1)
        return fail("%s/state.json: version %.0f, step %.0f, %.0f updates, "
                    "loss scale %g: not a state that this program wrote",
                    folder, version, step, updates, scale);
    *out = (struct place){
        .step = (int)step,
        .updates = (int)updates,
        .good = (int)good,
        .scale = (float)scale,
        .lr = (float)lr,
        .position = position(t, (uint64_t)epoch, (uint64_t)window),
        .tokens = (uint64_t)tokens,
    };
    return 0;
}

// Reads the numbers of state.json.
static int read_state(const struct trainer *t, const char *folder,
                      struct place *out)
{
    char hash[STATE_HASH], *text = folder_read(folder, "state.json");
    if (!text)
        return -1;
    cJSON *j = cJSON_Parse(text);
    int rc = j ? read_numbers(t, j, folder, out)
               : fail("%s/state.json: not JSON", folder);
    const cJSON *old = cJSON_GetObjectItemCaseSensitive(j, "data_hash_xxh3");
    state_data_hash(t, hash);
    if (!rc && cJSON_IsString(old) && strcmp(old->valuestring, hash))
        log_line("resume: the data is not what %s was trained on (hash %s, "
                 "now %s)",
                 folder, old->valuestring, hash);
    if (!rc)
        say_schedule(t, out);
    cJSON_Delete(j);
    mem_free(text);
    return rc;
}

// Whether the checkpoint `folder`, of this step, is one of OUT.
static bool is_own(const struct trainer *t, const char *folder, int step)
{
    char own[PATH];
    struct stat a, b;
    return !text_into(own, sizeof own, "%s/checkpoint-%d", t->run.out, step) &&
           !stat(folder, &a) && !stat(own, &b) && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

// It is an error to go on in another folder after the last step: the run there
// would have no row and no checkpoint.
static int check_steps(const struct trainer *t, const char *folder, int step)
{
    if (step != t->run.steps || !*t->run.out || is_own(t, folder, step))
        return 0;
    return fail("resume: %s is of step %d of %d, so nothing is left to do; "
                "try: a larger steps=",
                folder, step, t->run.steps);
}

// What worker 0 tells the others of the checkpoint.
struct answer {
    bool found;
    struct place place;
    char text[STATE_FOLDER]; // the folder, or why there is none
};

// Only worker 0 looks for the checkpoint, and tells the others. So all workers
// take the same one, even if a file is damaged, or if a slow file system does
// not show it to every worker yet. A worker that joins a running job is told
// what worker 0 found when the job began.
int state_find(struct trainer *t, char folder[STATE_FOLDER], int *held)
{
    struct answer a = {.found = true};
    *held = -1;
    if (t->cluster->rank == 0 && !t->sync->late &&
        (find(&t->run, a.text, held) ||
         (*a.text && (read_state(t, a.text, &a.place) ||
                      check_steps(t, a.text, a.place.step))))) {
        a.found = false;
        snprintf(a.text, sizeof a.text, "%s", fail_message());
    }
    if (cluster_bcast(t->cluster, &a, sizeof a))
        return -1;
    if (!a.found)
        return fail("%s", a.text);
    t->step = a.place.step;
    t->updates = a.place.updates;
    t->position = a.place.position;
    t->tokens = a.place.tokens;
    if (*a.text && t->scale.window) { // else loss_scale= is constant
        t->scale.scale = a.place.scale;
        t->scale.good = a.place.good;
    }
    memcpy(folder, a.text, STATE_FOLDER);
    return 0;
}

// Loads this worker's ranges of the parameters. Used if no worker has all of
// them.
static int load_params(struct trainer *t, const char *path)
{
    struct range_file file = {.t = t, .path = path};
    size_t n = model_nparams(&t->config);
    int rc = t->share.lends_params
                 ? sync_ranges(t->sync, SYNC_PARAMS, read_range, &file)
                 : read_range(&file, SYNC_PARAMS, 0, t->host, n);
    checkpoint_close(&file.reader);
    return rc;
}

static int draw_range(void *ctx, int what, size_t off, float *v, size_t n)
{
    const struct trainer *t = ctx;
    (void)what;
    model_init_range(&t->config, (uint64_t)t->run.seed, off, n, v);
    return 0;
}

int state_first(struct trainer *t)
{
    const char *init = t->run.init;
    bool random = !strcmp(init, "random");
    if (!random && t->cluster->rank == 0 && whole_check_file(init))
        return fail("init=%s: %s", init, fail_message());
    if (t->share.lends_params)
        return random ? sync_ranges(t->sync, SYNC_PARAMS, draw_range, t)
                      : load_params(t, init);
    if (!random)
        return part_is_whole(&t->config)
                   ? checkpoint_read(init, &t->whole, t->host)
                   : load_params(t, init);
    model_init(&t->config, (uint64_t)t->run.seed, t->host);
    return 0;
}

int state_load(struct trainer *t, const char *folder)
{
    struct state_files files;
    if (state_files(&files, folder))
        return -1;
    if (t->cluster->rank == 0)
        log_line("resuming from %s, step %d", folder, t->step);
    if (t->share.lends_params || !part_is_whole(&t->config))
        return load_params(t, files.model);
    return t->cluster->rank ? 0
                            : checkpoint_read(files.model, &t->whole, t->host);
}

int state_rewind(const struct trainer *t, const char *folder)
{
    const char *out = t->run.out;
    int keep = t->run.save ? t->run.keep : 0;
    if (t->sync->late)
        return 0;
    return folder_rewind(out, is_own(t, folder, t->step) ? t->step : -1) ||
                   folder_prune(out, keep) // what a killed save left
               ? -1
               : 0;
}

int state_load_slots(struct trainer *t, const char *folder)
{
    struct state_files files;
    struct range_file file = {.t = t, .path = files.slots};
    if (sync_slots(t->sync) == 0)
        return 0;
    if (state_files(&files, folder))
        return -1;
    int rc = sync_load(t->sync, read_range, &file);
    checkpoint_close(&file.reader);
    return rc;
}
