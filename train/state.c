// state.c - save and resume: folders that are whole or not there.
//
// Save: worker 0 makes .next-STEP; every worker that has a part of the
// optimiser's state writes its ranges of the file there; then worker 0 writes
// the other files, fsyncs, renames to checkpoint-STEP, moves `latest` and
// removes the oldest. A kill at any moment leaves at worst a folder whose name
// begins with a dot, which the next save removes.

#include "train/state.h"

#include "base/base.h"
#include "base/file.h"
#include "cluster/cluster.h"
#include "data/data.h"
#include "device/device.h"
#include "model/checkpoint.h"
#include "train/folder.h"
#include "train/place.h"
#include "train/whole.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH = CONFIG_PATH + 128 };

// Where the data stands, in terms that hold for any batch and world.
static void data_place(const struct trainer *t, uint64_t *epoch,
                       uint64_t *window)
{
    struct data_info info;
    data_info(t->data, &info);
    uint64_t step_windows =
        (uint64_t)t->replicas * (uint64_t)t->run.accum * (uint64_t)t->run.batch;
    *epoch = t->position / info.steps_per_epoch;
    *window = t->position % info.steps_per_epoch * step_windows;
}

static void seek_place(struct trainer *t, uint64_t epoch, uint64_t window)
{
    struct data_info info;
    data_info(t->data, &info);
    uint64_t step_windows =
        (uint64_t)t->replicas * (uint64_t)t->run.accum * (uint64_t)t->run.batch;
    if (window % step_windows)
        log_line("resume: the batch changed; %llu sequences are seen again",
                 (unsigned long long)(window % step_windows));
    t->position = epoch * info.steps_per_epoch + window / step_windows;
}

enum { DATA_HASH = 17 };

static void data_hash(const struct trainer *t, char hash[DATA_HASH])
{
    struct data_info info;
    data_info(t->data, &info);
    snprintf(hash, DATA_HASH, "%016llx", (unsigned long long)info.hash);
}

// Of the files that lie in `folder`, all that belong to the checkpoint.
static char *state_text(const struct trainer *t, const char *folder)
{
    uint64_t epoch, window;
    data_place(t, &epoch, &window);
    cJSON *j = cJSON_CreateObject();
    cJSON_AddNumberToObject(j, "version", 1);
    cJSON_AddNumberToObject(j, "step", t->step);
    cJSON_AddNumberToObject(j, "updates", t->updates);
    cJSON_AddNumberToObject(j, "epoch", (double)epoch);
    cJSON_AddNumberToObject(j, "windows_of_epoch", (double)window);
    cJSON_AddNumberToObject(j, "loss_scale", (double)t->scale.scale);
    cJSON_AddNumberToObject(j, "steps_since_loss_scale_changed", t->scale.good);
    cJSON_AddNumberToObject(j, "layers", t->config.layers);
    cJSON_AddNumberToObject(j, "heads", t->config.heads);
    cJSON_AddNumberToObject(j, "channels", t->config.channels);
    cJSON_AddNumberToObject(j, "context", t->config.context);
    cJSON_AddNumberToObject(j, "vocab_size", t->config.vocab);
    char hash[DATA_HASH];
    data_hash(t, hash);
    cJSON_AddStringToObject(j, "data_hash_xxh3", hash);
    cJSON_AddStringToObject(j, "backend", t->name);
    cJSON_AddNumberToObject(j, "world", t->cluster->world);
    char *text = NULL;
    if (!whole_seal(j, folder) && !(text = cJSON_Print(j)))
        fail("memory: none left for state.json");
    cJSON_Delete(j);
    return text;
}

static int write_state(const struct trainer *t, const char *folder)
{
    char *symbols = data_symbols_save(t->data), *state = NULL;
    int rc = symbols ? folder_write(folder, "symbols.txt", symbols) : -1;
    if (!rc)
        state = state_text(t, folder);
    rc = state ? folder_write(folder, "state.json", state) : -1;
    free(state);
    free(symbols);
    return rc;
}

// The names of all slots, by number.
struct slot_names {
    char (*text)[SYNC_SLOT_NAME];
    const char **at;
};

static int open_names(struct slot_names *s, const struct sync *sync)
{
    size_t n = (size_t)sync_slots(sync);
    s->text = mem_alloc(n + 1, sizeof *s->text);
    s->at = mem_alloc(n + 1, sizeof *s->at);
    for (size_t i = 0; s->text && s->at && i < n; i++) {
        sync_slot_name(sync, (int)i, s->text[i]);
        s->at[i] = s->text[i];
    }
    return s->text && s->at ? 0 : -1;
}

static void close_names(struct slot_names *s)
{
    mem_free(s->text);
    mem_free(s->at);
}

// The files of a checkpoint that workers write ranges into.
struct files {
    char model[PATH + 32], slots[PATH + 32];
};

static int name_files(struct files *f, const char *folder)
{
    return text_into(f->model, sizeof f->model, "%s/model.safetensors",
                     folder) ||
                   text_into(f->slots, sizeof f->slots,
                             "%s/optimizer.safetensors", folder)
               ? -1
               : 0;
}

// Worker 0: an empty folder, in it the files that workers write ranges into.
static int begin_folder(const struct trainer *t, const char *folder,
                        const struct files *files)
{
    struct slot_names names;
    int n = sync_slots(t->sync);
    if (folder_make(folder) ||
        (t->share.lends_params &&
         checkpoint_make(files->model, &t->config, 0, NULL)))
        return -1;
    if (n == 0)
        return 0;
    int rc = open_names(&names, t->sync);
    if (!rc)
        rc = checkpoint_make(files->slots, &t->config, n, names.at);
    close_names(&names);
    return rc;
}

static int write_model(const struct trainer *t, const char *path)
{
    if (t->share.lends_params)
        return checkpoint_sync(path); // all have written their ranges
    const float *params = place_read(t, t->params);
    return params ? checkpoint_write(path, &t->config, params) : -1;
}

static int write_all(const struct trainer *t, const char *folder,
                     const struct files *files)
{
    char config[PATH + 32];
    if (text_into(config, sizeof config, "%s/config.json", folder) ||
        checkpoint_write_config(config, &t->config) ||
        write_model(t, files->model))
        return -1;
    if (sync_slots(t->sync) && checkpoint_sync(files->slots))
        return -1;
    return write_state(t, folder);
}

static int end_folder(const struct trainer *t, const char *next,
                      const struct files *files)
{
    char path[PATH], name[64];
    const char *out = t->run.out;
    snprintf(name, sizeof name, "checkpoint-%d", t->step);
    if (text_into(path, sizeof path, "%s/%s", out, name) ||
        write_all(t, next, files) || folder_replace(next, path))
        return -1;
    return folder_write(out, "latest", name) || folder_prune(out, t->run.keep)
               ? -1
               : 0;
}

// A visit's context, to write.
struct writing {
    const struct trainer *t;
    struct files files;
};

static int write_range(void *ctx, int slot, size_t off, float *v, size_t n)
{
    const struct writing *w = ctx;
    bool params = slot == SYNC_PARAMS;
    return checkpoint_write_range(params ? w->files.model : w->files.slots,
                                  &w->t->config, params ? 0 : slot, off, v, n);
}

// A visit's context, to read: a file of slots, or of parameters.
struct range_file {
    const struct trainer *t;
    const char *path;
    int slot; // that the reader was opened for
    char name[SYNC_SLOT_NAME];
    const char *names[1];
    struct checkpoint *reader;
};

// A reader of one slot, or of the parameters: 0, SYNC_ABSENT, or -1 after
// fail().
static int open_slot(struct range_file *f, int slot)
{
    const struct trainer *t = f->t;
    bool params = slot == SYNC_PARAMS;
    checkpoint_close(&f->reader);
    f->slot = slot;
    f->names[0] = f->name;
    if (!params)
        sync_slot_name(t->sync, slot, f->name);
    if (slot >= optim_slots(&t->optim)) {
        int has = checkpoint_has_slot(f->path, f->name);
        if (has <= 0)
            return has ? -1 : SYNC_ABSENT;
    }
    return checkpoint_open(&f->reader, f->path, &t->config, !params, f->names);
}

static int read_range(void *ctx, int slot, size_t off, float *v, size_t n)
{
    struct range_file *f = ctx;
    bool open = f->reader && f->slot == slot;
    int rc = open ? 0 : open_slot(f, slot);
    return rc ? rc : checkpoint_read_range(f->reader, 0, off, v, n);
}

int state_save(struct trainer *t)
{
    bool writer = t->cluster->rank == 0;
    char next[PATH];
    struct writing w = {.t = t};
    if (text_into(next, sizeof next, "%s/.next-%d", t->run.out, t->step) ||
        name_files(&w.files, next) || sync_whole(t->sync))
        return -1;
    int rc = writer ? begin_folder(t, next, &w.files) : 0;
    rc = sync_save(t->sync, rc, write_range, &w);
    if (!rc && writer)
        rc = end_folder(t, next, &w.files);
    if (rc && writer)
        file_remove_folder(next);
    return rc;
}

// The newest checkpoint of a run below step `below` that is whole: 1; 0: there
// is none. Says which are passed over. -1 after fail().
static int find_whole(const char *run, int below, char *folder, size_t size)
{
    for (int step; (step = folder_newest(run, below)) >= 0; below = step) {
        if (text_into(folder, size, "%s/checkpoint-%d", run, step))
            return -1;
        if (!whole_check(folder))
            return 1;
        log_line("%s; looking for an older checkpoint", fail_message());
    }
    folder[0] = '\0';
    return 0;
}

// fail() with what is wrong, and with an older checkpoint that may serve.
static int fail_damaged(const char *folder)
{
    char why[512], older[PATH], run[PATH];
    int step;
    const char *name = strrchr(folder, '/');
    snprintf(why, sizeof why, "%s", fail_message());
    if (name && sscanf(name, "/checkpoint-%9d", &step) == 1 &&
        !text_into(run, sizeof run, "%.*s", (int)(name - folder), folder) &&
        find_whole(run, step, older, sizeof older) > 0)
        return fail("%s; try: resume=%s, which is whole", why, older);
    return fail("%s; try: another checkpoint", why);
}

static int find_named(const char *of, char *folder, size_t size)
{
    if (access(of, F_OK))
        return fail("resume=%s: %s; try: the folder of a run or of a "
                    "checkpoint, or resume=auto",
                    of, strerror(errno));
    if (text_into(folder, size, "%s/state.json", of))
        return -1;
    if (access(folder, F_OK))
        return fail("resume=%s: holds no checkpoint; try: a run that was told "
                    "save=, one of its checkpoints, or resume=auto",
                    of);
    return text_into(folder, size, "%s", of) ||
                   (whole_check(of) && fail_damaged(of))
               ? -1
               : 0;
}

// What resume= names, as this worker sees it.
static int find(const struct run *run, char *folder, size_t size)
{
    folder[0] = '\0';
    if (!*run->resume)
        return 0;
    bool newest = !strcmp(run->resume, "auto");
    const char *of = newest ? run->out : run->resume;
    if (folder_newest(of, INT_MAX) < 0) // a checkpoint has none in it
        return newest ? 0 : find_named(of, folder, size);
    int found = find_whole(of, INT_MAX, folder, size);
    if (found == 0)
        return fail("resume=%s: every checkpoint in %s is damaged; try: "
                    "another out= to begin anew",
                    run->resume, of);
    return found < 0 ? -1 : 0;
}

// Worker 0 looks, so that all take the same, where a file may be damaged or the
// file system slow to show it.
int state_find(const struct trainer *t, char *folder, size_t size)
{
    struct {
        bool found;
        char text[CONFIG_PATH + 64]; // the folder, or why there is none
    } answer = {.found = true};
    if (t->cluster->rank == 0 &&
        find(&t->run, answer.text, sizeof answer.text)) {
        answer.found = false;
        snprintf(answer.text, sizeof answer.text, "%s", fail_message());
    }
    if (cluster_bcast(t->cluster, &answer, sizeof answer))
        return -1;
    return answer.found ? text_into(folder, size, "%s", answer.text)
                        : fail("%s", answer.text);
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
    const struct model_config *c = &t->config;
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
            return fail("%s: was trained with %s=%.0f, this run has %d", folder,
                        fields[i].key, have, fields[i].want);
    }
    return 0;
}

static int read_state(struct trainer *t, const cJSON *j, const char *folder)
{
    double version = 0, step = 0, updates = 0, epoch = 0, window = 0;
    double scale = 0, good = 0;
    if (get_number(j, folder, "version", &version) ||
        get_number(j, folder, "step", &step) ||
        get_number(j, folder, "updates", &updates) ||
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
    char hash[DATA_HASH];
    data_hash(t, hash);
    const cJSON *old = cJSON_GetObjectItemCaseSensitive(j, "data_hash_xxh3");
    if (t->cluster->rank == 0 && cJSON_IsString(old) &&
        strcmp(old->valuestring, hash))
        log_line("resume: the data is not what %s was trained on (hash %s, "
                 "now %s)",
                 folder, old->valuestring, hash);
    t->step = (int)step;
    t->updates = (int)updates;
    if (t->scaling) {
        t->scale.scale = (float)scale;
        t->scale.good = (int)good;
    }
    seek_place(t, (uint64_t)epoch, (uint64_t)window);
    return 0;
}

// Where parameters are in shards: this worker's ranges.
static int load_params(struct trainer *t, const char *path)
{
    struct range_file file = {.t = t, .path = path};
    int rc = sync_ranges(t->sync, SYNC_PARAMS, read_range, &file);
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
    if (t->share.lends_params)
        return random ? sync_ranges(t->sync, SYNC_PARAMS, draw_range, t)
                      : load_params(t, init);
    if (!random)
        return checkpoint_read(init, &t->config, t->host);
    model_init(&t->config, (uint64_t)t->run.seed, t->host);
    return 0;
}

int state_load(struct trainer *t, const char *folder)
{
    struct files files;
    char *text = folder_read(folder, "state.json");
    if (!text)
        return -1;
    cJSON *j = cJSON_Parse(text);
    int rc =
        j ? read_state(t, j, folder) : fail("%s/state.json: not JSON", folder);
    cJSON_Delete(j);
    mem_free(text);
    if (rc || name_files(&files, folder))
        return -1;
    if (t->cluster->rank == 0)
        log_line("resuming from %s, step %d", folder, t->step);
    if (t->share.lends_params)
        return load_params(t, files.model);
    return t->cluster->rank ? 0
                            : checkpoint_read(files.model, &t->config, t->host);
}

int state_load_slots(struct trainer *t, const char *folder)
{
    struct files files;
    struct range_file file = {.t = t, .path = files.slots};
    if (sync_slots(t->sync) == 0)
        return 0;
    if (name_files(&files, folder))
        return -1;
    int rc = sync_load(t->sync, read_range, &file);
    checkpoint_close(&file.reader);
    return rc;
}
