// pair.c - starts pair_perf, which is in the folder of this program, under
// mpirun.

#include "bench/pair.h"

#include "base/base.h"
#include "base/process.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double most_s = 3600;

void pair_print(int rounds)
{
    char here[512], command[1024];
    ssize_t n = readlink("/proc/self/exe", here, sizeof here - 1);
    int cores = omp_get_num_procs();
    if (cores < 2) {
        printf("w   two workers: not measured, this process has %d core\n",
               cores);
        return;
    }
    here[n < 0 ? 0 : n] = '\0';
    char *slash = strrchr(here, '/');
    if (!slash)
        die("/proc/self/exe: does not say where this program is");
    *slash = '\0';
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    if (text_into(command, sizeof command,
                  "mpirun -n 2 --oversubscribe --bind-to none '%s/pair_perf' "
                  "rounds=%d",
                  here, rounds))
        die("%s", fail_message());
    fflush(stdout);
    if (process_shell(&(struct process){0}, command, most_s) != 0)
        printf("w   two workers: not measured, this command failed: %s\n",
               command);
}
