// verify.c - proves what can be proved of a checkpoint: its files are those
// that were written, its numbers are possible, and its weights give the loss
// that the run recorded.

#include "train/verify.h"

#include "base/base.h"
#include "model/safetensors.h"
#include "telemetry/manifest.h"
#include "train/run_state.h"
#include "train/whole.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 16, MOST_WORDS = 64 };

// One worker evaluates, whatever trained. The user's words may follow.
static const char *const alone[] = {
    "sync=local",   "workers=1",  "mesh=",     "hosts=",         "net=",
    "straggler=",   "profile=",   "kernels=0", "tensorboard=0",  "epochs=0",
    "accum=1",      "steps=1e9",  "out=",      "trace=off",      "save=0",
    "save_async=0", "restarts=0", "verify=0",  "global_batch=0", "mistake=none",
};
enum { ALONE = sizeof alone / sizeof *alone };

// AdamW's second moments are means of squares.
static bool is_square(const char *name)
{
    static const char slot[] = "exp_avg_sq";
    return !strncmp(name, slot, sizeof slot - 1);
}

static int check_tensor(const struct safetensors *s, const char *path,
                        const struct safetensors_tensor *tensor, float *piece)
{
    for (size_t at = 0; at < tensor->n; at += PIECE) {
        size_t n = tensor->n - at < PIECE ? tensor->n - at : PIECE;
        if (safetensors_read(s, tensor, at, n, piece))
            return -1;
        for (size_t i = 0; is_square(tensor->name) && i < n; i++)
            if (piece[i] < 0)
                return fail("%s: %s is %g at element %zu, and cannot be "
                            "negative",
                            path, tensor->name, (double)piece[i], at + i);
    }
    return 0;
}

// All numbers of a file are finite, and second moments are not negative.
static int check_numbers(const char *path)
{
    struct safetensors *s = NULL;
    if (access(path, F_OK))
        return 0;
    float *piece = mem_alloc(PIECE, sizeof *piece);
    int rc = piece ? safetensors_open(&s, path) : -1;
    for (int i = 0; !rc && i < safetensors_count(s); i++)
        rc = check_tensor(s, path, safetensors_at(s, i), piece);
    safetensors_close(&s);
    mem_free(piece);
    return rc;
}

static int check_files(const char *folder)
{
    struct state_files files;
    return whole_check(folder, true) || state_files(&files, folder) ||
                   check_numbers(files.model) || check_numbers(files.slots)
               ? -1
               : 0;
}

static int open_alone(struct trainer *t, const char *folder, int nwords,
                      char *const *words)
{
    char resume[CONFIG_PATH], *all[ALONE + MOST_WORDS + 1];
    int n = 0;
    if (nwords > MOST_WORDS)
        return fail("verify: more than %d words", MOST_WORDS);
    if (text_into(resume, sizeof resume, "resume=%s", folder))
        return -1;
    for (int i = 0; i < ALONE; i++)
        all[n++] = (char *)(uintptr_t)alone[i]; // it does not change them
    for (int i = 0; i < nwords; i++)
        all[n++] = words[i];
    all[n++] = resume;
    return trainer_open(t, n, all);
}

int verify_checkpoint(struct trainer *t, const char *folder, int nwords,
                      char *const *words)
{
    char wrong[1024] = "", unknown[1024] = "", hash[STATE_HASH] = "";
    double loss = NAN;
    if (check_files(folder))
        snprintf(wrong, sizeof wrong, "%s", fail_message());
    else if (open_alone(t, folder, nwords, words))
        snprintf(unknown, sizeof unknown, "%s", fail_message());
    else if (trainer_evaluate(t, &loss))
        snprintf(wrong, sizeof wrong, "%s", fail_message());
    else
        state_data_hash(t, hash);
    struct manifest *m = manifest_open();
    if (!m)
        return -1;
    manifest_text(m, "wrong", wrong);
    manifest_text(m, "unknown", unknown);
    manifest_number(m, "val_loss", loss);
    manifest_text(m, "data_hash_xxh3", hash);
    return manifest_print(&m, stdout);
}
