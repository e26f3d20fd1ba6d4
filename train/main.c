// main.c - trainer: one worker of a job.
//
//     trainer key=value ...                     one worker, alone
//     mpirun -n 4 trainer sync=ring ...         four, that MPI starts
//     trainer sync=dps servers=.. rank=2 ...    one of several, started by hand
//
// `lockstep train` starts as many as workers= says, and watches them.

#include "base/base.h"
#include "base/version.h"
#include "cluster/cluster.h"
#include "train/trainer.h"
#include "train/verify.h"

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

int main(int argc, char **argv)
{
    int status;
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
    int rc = trainer_open(&t, argc - 1, argv + 1);
    signal(SIGXFSZ, SIG_IGN); // a write fails instead, and names the file
    if (rc || trainer_run(&t, argc, argv)) {
        // Exit at once, not through trainer_close(): the supervisor must see
        // this failure before the failures that it causes in other processes.
        log_error("%s", fail_message());
        fflush(NULL);
        _exit(1);
    }
    trainer_close(&t);
    return 0;
}
