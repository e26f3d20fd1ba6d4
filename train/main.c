// main.c - trainer: one worker of a job.
//
//     trainer key=value ...                     one worker, alone
//     mpirun -n 4 trainer sync=ring ...         four, that MPI starts
//     trainer sync=dps servers=.. rank=2 ...    one of several, started by hand
//
// `lockstep train` starts as many as workers= says, and watches them. `trainer
// verify` recomputes what a run recorded.

#include "base/base.h"
#include "base/version.h"
#include "cluster/cluster.h"
#include "model/safetensors.h"
#include "telemetry/manifest.h"
#include "train/run_state.h"
#include "train/trainer.h"
#include "train/whole.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// By default OpenMP's threads spin for milliseconds before they sleep. On a
// shared core this takes time from the threads that they wait for. Spinning for
// about 50 us costs nothing. libgomp reads the environment when it is loaded,
// so we set it and execute this program again, unless the user or the launcher
// has set it.
static void wait_politely(char **argv)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT") || n < 0 ||
        setenv("GOMP_SPINCOUNT", "1000", 0))
        return;
    path[n] = '\0';
    execv(path, argv); // if this fails, we continue without it
}

static const char usage[] =
    "trainer [FILE.ini] key=value ... - one worker of a job\n"
    "\n"
    "  trainer steps=200                          one worker, alone\n"
    "  mpirun -n 4 trainer sync=ring              four, which MPI starts\n"
    "  trainer sync=dps servers=.. world=4 rank=2 one of four, by hand\n"
    "\n"
    "lockstep train starts all of them, and servers. trainer --help lists "
    "every setting.\n";

// Prints help or the version if the arguments ask for it, and returns true;
// then *status is the exit status. A bare `trainer` prints its usage too:
// otherwise it would start a thousand steps, probably by accident.
static bool explains(int argc, char **argv, int *status)
{
    int rank, world;
    struct cluster_place place;
    *status = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            printf("%s\n", usage);
            config_help(stdout);
            return true;
        }
        if (!strcmp(argv[i], "--version")) {
            *status = version_print("trainer");
            return true;
        }
    }
    if (argc > 1 || cluster_launched(&rank, &world) || cluster_named(&place))
        return false;
    fputs(usage, stderr);
    *status = 2;
    return true;
}

// ---- trainer verify FOLDER [key=value] .., for `lockstep verify`
//
// Proves what can be proved of a checkpoint: its files are those that were
// written, its numbers are possible, and its weights give the loss that the run
// recorded. Prints one line of JSON:
//
//     "wrong"       what is wrong with it, "" if nothing is
//     "unknown"     why its loss was not computed, "" if it was
//     "val_loss"    the validation loss of its weights
//     "data_hash_xxh3"    of the data on which that was computed
//
// The words follow the settings of the checkpoint's run. eval=0: no loss.

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
    if (nwords > MOST_WORDS)
        return fail("verify: more than %d words", MOST_WORDS);
    if (text_into(resume, sizeof resume, "resume=%s", folder))
        return -1;
    memcpy(all, alone, sizeof alone); // trainer_open() does not change them
    memcpy(all + ALONE, words, (size_t)nwords * sizeof *words);
    all[ALONE + nwords] = resume;
    return trainer_open(t, ALONE + nwords + 1, all);
}

// Returns 0 if the line was printed, whatever it says, or -1 after fail().
static int verify_checkpoint(struct trainer *t, const char *folder, int nwords,
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

// ---- the program

int main(int argc, char **argv)
{
    int status;
    streams_begin();
    if (explains(argc, argv, &status))
        return status;
    wait_politely(argv);
    log_for_launcher();
    static struct trainer t;
    if (argc > 2 && !strcmp(argv[1], "verify")) {
        if (verify_checkpoint(&t, argv[2], argc - 3, argv + 3))
            die("%s", fail_message());
        trainer_close(&t);
        return 0;
    }
    signal(SIGXFSZ, SIG_IGN); // a write fails instead, and names the file
    if (trainer_open(&t, argc - 1, argv + 1) || trainer_run(&t, argc, argv)) {
        // Exit at once, not through trainer_close(): the supervisor must see
        // this failure before the failures that it causes in other processes.
        log_error("%s", fail_message());
        fflush(NULL);
        _exit(1);
    }
    trainer_close(&t);
    return 0;
}
