// std_streams.c - standard input, output and error of a program.

#include "base/base.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void end_output(void)
{
    if (!file_flush(stdout))
        return;
    if (errno == EPIPE) { // the program ignores the signal, or a parent did
        signal(SIGPIPE, SIG_DFL);
        raise(SIGPIPE);
    }
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
