// main.c - trainer: one worker of a job.
//
//     trainer key=value ...                     one worker, alone
//     mpirun -n 4 trainer sync=ring ...         four, that MPI starts
//     trainer sync=dps servers=.. rank=2 ...    one of several, by hand
//
// `lockstep train` starts as many as workers= says and watches them.

#include "base/base.h"
#include "train/trainer.h"

#include <unistd.h>

int main(int argc, char **argv)
{
    static struct trainer t;
    if (trainer_open(&t, argc - 1, argv + 1) || trainer_run(&t, argc, argv)) {
        // At once, not through trainer_close(): whoever watches must see this
        // end before those that it causes.
        log_line("trainer: %s", fail_message());
        fflush(NULL);
        _exit(1);
    }
    trainer_close(&t);
    return 0;
}
