// save.c - writes a checkpoint: a folder that is complete or not there.
//
// Worker 0 makes the folder .next-STEP, with an empty file for the optimiser's
// state. (In an elastic job the servers have that state, and the lowest worker
// that is alive does what is said of worker 0 here. Two workers may take
// themselves for it for a while, so they take turns.) Every worker that has a
// part of this state writes its ranges of the file. Then worker 0 writes the
// other files, fsyncs, renames the folder to checkpoint-STEP, writes its name
// to the file `latest`, and removes the oldest checkpoints. A kill at any
// moment leaves at worst a folder with a name that begins with a dot. The next
// save removes it.
//
// Workers at the same step wait for one another after each of these parts,
// however long it takes (cluster_work()). Otherwise those that have nothing to
// write would miss worker 0 in the next step.
//
// save_async=1 is allowed only if worker 0 has all of the state. Worker 0
// copies the state, and a thread writes the copy while steps go on
// (snapshot.h). The cost is the copy's memory, and the time of copying instead
// of the time of writing.

#include "train/run_state.h"

#include "base/base.h"
#include "base/file.h"
#include "cluster/cluster.h"
#include "config/backends.h"
#include "data/data.h"
#include "model/checkpoint.h"
#include "model/part.h"
#include "train/folder.h"
#include "train/place.h"
#include "train/snapshot.h"
#include "train/whole.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH = STATE_PATH };

// Everything that a checkpoint needs except the vectors. A writing thread keeps
// it while the steps go on.
struct saving {
    struct model_config config, part; // the model; this worker's part of it
    struct state_files files;
    char out[CONFIG_PATH], next[PATH], name[64];
    int nslots, keep;
    char (*text)[SYNC_SLOT_NAME]; // the names of all slots, by number
    const char **slots;
    bool by_ranges; // workers write the parameters in ranges, too
    bool elastic;
    double timeout_s;
    int turn;     // folder_turn() + 1; 0: none
    cJSON *state; // content of state.json, without the hashes
    char *symbols;
};

// A copy of the vectors to save; vector 0 is the parameters.
struct saver {
    struct snapshot *copy;
    struct saving saving;
};

// ---- what a checkpoint says

static cJSON *state_json(const struct trainer *t)
{
    struct data_info info;
    data_info(t->data, &info);
    uint64_t step_windows =
        (uint64_t)t->replicas * (uint64_t)t->run.accum * (uint64_t)t->run.batch;
    // the position in the data, in units that do not depend on batch and world
    uint64_t epoch = t->position / info.steps_per_epoch;
    uint64_t window = t->position % info.steps_per_epoch * step_windows;
    cJSON *j = cJSON_CreateObject();
    cJSON_AddNumberToObject(j, "version", 1);
    cJSON_AddNumberToObject(j, "step", t->step);
    cJSON_AddNumberToObject(j, "updates", t->updates);
    cJSON_AddNumberToObject(j, "tokens", (double)t->tokens);
    cJSON_AddNumberToObject(j, "epoch", (double)epoch);
    cJSON_AddNumberToObject(j, "windows_of_epoch", (double)window);
    cJSON_AddNumberToObject(j, "loss_scale", (double)t->scale.scale);
    cJSON_AddNumberToObject(j, "steps_since_loss_scale_changed", t->scale.good);
    if (t->step > 0)
        cJSON_AddNumberToObject(j, "learning_rate",
                                (double)schedule_lr(&t->schedule, t->step - 1));
    cJSON_AddNumberToObject(j, "layers", t->whole.layers);
    cJSON_AddNumberToObject(j, "heads", t->whole.heads);
    cJSON_AddNumberToObject(j, "channels", t->whole.channels);
    cJSON_AddNumberToObject(j, "context", t->whole.context);
    cJSON_AddNumberToObject(j, "vocab_size", t->whole.vocab);
    char hash[STATE_HASH];
    state_data_hash(t, hash);
    cJSON_AddStringToObject(j, "data_hash_xxh3", hash);
    cJSON_AddStringToObject(j, "backend", t->backend->name);
    cJSON_AddNumberToObject(j, "world", t->cluster->world);
    return j;
}

static void drop(struct saving *s)
{
    cJSON_Delete(s->state);
    free(s->symbols);
    mem_free(s->text);
    mem_free(s->slots);
    *s = (struct saving){.state = NULL};
}

static int name_slots(struct saving *s, const struct sync *sync)
{
    size_t n = (size_t)s->nslots;
    s->text = mem_alloc(n + 1, sizeof *s->text);
    s->slots = mem_alloc(n + 1, sizeof *s->slots);
    for (size_t i = 0; s->text && s->slots && i < n; i++) {
        sync_slot_name(sync, (int)i, s->text[i]);
        s->slots[i] = s->text[i];
    }
    return s->text && s->slots ? 0 : -1;
}

static bool is_part(const struct trainer *t)
{
    return !part_is_whole(&t->config);
}

static bool is_writer(const struct trainer *t)
{
    return t->cluster->rank == t->sync->saver;
}

static int describe(struct saving *s, const struct trainer *t)
{
    *s = (struct saving){.config = t->whole,
                         .part = t->config,
                         .nslots = sync_slots(t->sync),
                         .keep = t->run.keep,
                         .by_ranges = t->share.lends_params || is_part(t),
                         .elastic = t->settings.elastic,
                         .timeout_s = t->run.timeout};
    snprintf(s->name, sizeof s->name, "checkpoint-%d", t->step);
    if (text_into(s->out, sizeof s->out, "%s", t->run.out) ||
        text_into(s->next, sizeof s->next, "%s/.next-%d", s->out, t->step) ||
        state_files(&s->files, s->next))
        return -1;
    if (!is_writer(t))
        return 0;
    s->state = state_json(t);
    s->symbols = data_symbols_save(t->data);
    return s->symbols ? name_slots(s, t->sync) : -1;
}

// ---- worker 0's files

// Makes an empty folder with the files into which workers write their ranges.
static int begin_folder(struct saving *s)
{
    if (s->elastic)
        s->turn = folder_turn(s->out, s->timeout_s) + 1;
    if (s->elastic && !s->turn)
        return -1;
    if (folder_make(s->next) ||
        (s->by_ranges && checkpoint_make(s->files.model, &s->config, 0, NULL)))
        return -1;
    return s->nslots ? checkpoint_make(s->files.slots, &s->config, s->nslots,
                                       s->slots)
                     : 0;
}

// Writes symbols.txt, then state.json with the hashes of all files.
static int write_state(const struct saving *s)
{
    char *text = NULL;
    if (folder_write(s->next, "symbols.txt", s->symbols) ||
        whole_seal(s->state, s->next))
        return -1;
    if (!(text = cJSON_Print(s->state)))
        return fail("memory: none left for state.json");
    int rc = folder_write(s->next, "state.json", text);
    free(text);
    return rc;
}

// Writes all files that are still missing, fsyncs all, and gives the folder its
// name. params: the whole model's, or NULL if workers have written them in
// ranges.
static int end_folder(const struct saving *s, const float *params)
{
    char config[PATH + 32];
    const char *model = s->files.model;
    return text_into(config, sizeof config, "%s/config.json", s->next) ||
                   checkpoint_write_config(config, &s->config) ||
                   (s->by_ranges
                        ? checkpoint_sync(model)
                        : checkpoint_write(model, &s->config, params)) ||
                   (s->nslots && checkpoint_sync(s->files.slots)) ||
                   write_state(s) ||
                   folder_finish(s->next, s->out, s->name, s->keep)
               ? -1
               : 0;
}

// Ends a save. If it failed, removes its folder, which may be another worker's
// if it failed before this worker's turn.
static void end_save(struct saving *s, int rc)
{
    if (rc && (s->turn || !s->elastic))
        file_remove_folder(s->next);
    if (s->turn)
        close(s->turn - 1);
    s->turn = 0;
}

// ---- saving without a copy

// A range of this worker's vector, which is written to its place in the file.
// The file holds the vector of the whole model.
struct piece {
    const struct saving *s;
    struct checkpoint_writer file;
    int slot;
    size_t off;
    const float *v;
};

static int write_piece(void *ctx, size_t off, size_t n, size_t at)
{
    const struct piece *p = ctx;
    int slot = p->slot == SYNC_PARAMS ? 0 : p->slot;
    return checkpoint_write_range(&p->file, &p->s->config, slot, at,
                                  p->v + (off - p->off), n);
}

// If several parts have the same elements, only one part writes them. A slice's
// rows and columns are many small ranges, so the file is opened once for all of
// them.
static int write_range(void *ctx, int slot, size_t off, float *v, size_t n)
{
    const struct saving *s = ctx;
    struct piece p = {.s = s, .slot = slot, .off = off, .v = v};
    if (checkpoint_writer_open(&p.file, slot == SYNC_PARAMS ? s->files.model
                                                            : s->files.slots))
        return -1;
    int rc = part_counted_ranges(&s->part, off, n, write_piece, &p);
    return checkpoint_writer_close(&p.file) ? -1 : rc;
}

// Writes a part's parameters, on the first worker that has this part.
static int write_part(struct trainer *t, struct saving *s)
{
    size_t n = model_nparams(&t->config);
    if (t->members->rank)
        return 0;
    return write_range(s, SYNC_PARAMS, 0, (float *)place_read(t, t->params), n);
}

// ---- parts of a save

struct save {
    struct trainer *t;
    struct saving s;
};

// Does a part of a save, and waits until all workers have done theirs. With
// parameter servers workers may save at different times. Then each does its
// part alone, and those that need it for their next step wait for it. With
// verify= the workers meet, too, and who meets others does not know that one
// of them saves. So all save together.
static int together(struct save *save, int (*part)(void *ctx))
{
    const struct sync_settings *set = &save->t->settings;
    bool own_pace = set->consistency.kind != CONSISTENCY_BSP ||
                    (set->backup && !save->t->run.verify) || set->elastic ||
                    set->mistake.steps;
    return own_pace ? sync_work(save->t->sync, part, save)
                    : cluster_work(save->t->cluster, part, save);
}

static int settle(void *ctx)
{
    struct save *save = ctx;
    return state_settle(save->t, true) || describe(&save->s, save->t) ? -1 : 0;
}

static int make_folder(void *ctx)
{
    struct save *save = ctx;
    return is_writer(save->t) ? begin_folder(&save->s) : 0;
}

static int write_ranges(void *ctx)
{
    struct save *save = ctx;
    struct trainer *t = save->t;
    return sync_save(t->sync, write_range, &save->s) ||
                   (is_part(t) && write_part(t, &save->s))
               ? -1
               : 0;
}

static int write_rest(void *ctx)
{
    struct save *save = ctx;
    struct trainer *t = save->t;
    if (!is_writer(t))
        return 0;
    return end_folder(&save->s,
                      save->s.by_ranges ? NULL : place_read(t, t->params));
}

static int save_now(struct save *save)
{
    int rc = together(save, make_folder) || together(save, write_ranges) ||
                     together(save, write_rest)
                 ? -1
                 : 0;
    end_save(&save->s, is_writer(save->t) ? rc : 0);
    return rc;
}

// ---- saving from a copy

// Runs in the writing thread: writes the whole folder from the copy.
static int write_copy(void *ctx)
{
    struct saver *saver = ctx;
    struct saving *s = &saver->saving;
    size_t n = model_nparams(&s->config);
    struct checkpoint_writer file;
    int rc = begin_folder(s);
    for (int i = 0; !rc && i < s->nslots; i++) {
        rc = checkpoint_writer_open(&file, s->files.slots);
        if (rc)
            break;
        rc = checkpoint_write_range(&file, &s->config, i, 0,
                                    snapshot_vector(saver->copy, 1 + i), n);
        if (checkpoint_writer_close(&file))
            rc = -1;
    }
    if (!rc)
        rc = end_folder(s, snapshot_vector(saver->copy, 0));
    end_save(s, rc);
    return rc;
}

static int copy_range(void *ctx, int slot, size_t off, float *v, size_t n)
{
    struct saver *saver = ctx;
    CHECK(slot >= 0 && slot < saver->saving.nslots);
    memcpy(snapshot_vector(saver->copy, 1 + slot) + off, v, n * sizeof *v);
    return 0;
}

static int open_saver(struct saver **saver, const struct saving *s)
{
    if (!*saver)
        *saver = mem_alloc(1, sizeof **saver);
    if (!*saver)
        return -1;
    return (*saver)->copy ? 0
                          : snapshot_open(&(*saver)->copy, 1 + s->nslots,
                                          model_nparams(&s->config));
}

static int save_later(struct save *save)
{
    struct trainer *t = save->t;
    if (is_writer(t)) {
        if (open_saver(&t->saver, &save->s))
            return -1;
        t->saver->saving = save->s;
        save->s = (struct saving){.state = NULL}; // the thread owns it now
    }
    struct saver *saver = t->saver;
    if (sync_save(t->sync, copy_range, saver))
        return -1;
    if (!is_writer(t))
        return 0;
    memcpy(snapshot_vector(saver->copy, 0), place_read(t, t->params),
           model_nparams(&t->config) * sizeof(float));
    return snapshot_start(saver->copy, write_copy, saver);
}

int state_save(struct trainer *t)
{
    struct save save = {.t = t};
    bool last = t->step == t->run.steps;
    bool later = t->run.save_async && !last;
    int rc = together(&save, settle) || sync_whole(t->sync) ? -1 : 0;
    if (!rc)
        rc = later ? save_later(&save) : save_now(&save);
    drop(&save.s);
    if (!rc && is_writer(t) && !later)
        t->saved = t->step;
    return rc;
}

// Each worker says whether it has saved the last step. A worker that is lost
// says nothing.
int state_save_last(struct trainer *t)
{
    enum { LOST, ALIVE, SAVED };
    size_t world = (size_t)t->cluster->world;
    if (!t->settings.elastic || !t->run.save)
        return 0;
    char *all = mem_alloc(world, 1);
    int rc = all ? 0 : -1;
    for (bool saved = false; !rc && !saved;) {
        char mine = t->saved == t->step ? SAVED : ALIVE;
        rc = cluster_allgather(t->cluster, &mine, all, 1);
        saved = !rc && memchr(all, SAVED, world);
        for (t->sync->saver = 0; !rc && all[t->sync->saver] == LOST;)
            t->sync->saver++;
        if (!rc && !saved && is_writer(t))
            rc = state_save(t);
    }
    mem_free(all);
    return rc;
}

int state_settle(struct trainer *t, bool wait)
{
    struct saver *saver = t->saver;
    if (!saver)
        return 0;
    int settled = snapshot_settle(saver->copy, wait);
    if (wait)
        drop(&saver->saving);
    return settled;
}

void state_close(struct trainer *t)
{
    if (!t->saver)
        return;
    snapshot_close(&t->saver->copy);
    drop(&t->saver->saving);
    mem_free(t->saver);
    t->saver = NULL;
}
