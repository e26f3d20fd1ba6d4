// std_streams.c - standard input, output and error of a program.

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void end_output(void)
{
    errno = EIO;
    if (ferror(stdout))
        putchar('\n'); // an earlier write's cause is lost, so ask again
    if (!fflush(stdout) && !ferror(stdout))
        return;
    log_error("stdout: %s", strerror(errno));
    _exit(1);
}

void streams_begin(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            die("/dev/null: %s", strerror(errno));
    CHECK(!atexit(end_output));
}
