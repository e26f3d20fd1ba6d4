// ps_servers.c - forked servers that send their endpoint through a pipe.

#include "tests/ps_servers.h"

#include "base/base.h"
#include "ps_server/server.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void serve(const struct server_config *config, int fd)
{
    struct server *server;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    log_set_rank(100 + config->index);
    if (server_open(&server, config))
        die("%s", fail_message());
    if (write(fd, server->endpoint->address, MESSAGE_ENDPOINT) !=
        MESSAGE_ENDPOINT)
        die("pipe");
    close(fd);
    int rc = server_run(server);
    if (rc)
        log_line("server ends: %s", fail_message());
    server_close(&server);
    _exit(rc ? 1 : 0);
}

static int start_one(struct ps_servers *s, const struct server_config *config)
{
    int fd[2];
    char endpoint[MESSAGE_ENDPOINT];
    if (pipe(fd))
        return fail("no pipe");
    pid_t pid = fork();
    if (pid == 0) {
        close(fd[0]);
        serve(config, fd[1]);
    }
    close(fd[1]);
    s->pids[s->n++] = pid;
    size_t got = 0;
    for (ssize_t k; got < MESSAGE_ENDPOINT; got += (size_t)k) {
        k = read(fd[0], endpoint + got, MESSAGE_ENDPOINT - got);
        if (k <= 0)
            break;
    }
    close(fd[0]);
    if (got != MESSAGE_ENDPOINT)
        return fail("a server did not start");
    size_t at = strlen(s->endpoints);
    return text_into(s->endpoints + at, sizeof s->endpoints - at, "%s%s",
                     at ? "," : "", endpoint);
}

int ps_servers_start(struct ps_servers *s, int n, int threads, double timeout_s,
                     const char *curve)
{
    *s = (struct ps_servers){0};
    for (int i = 0; i < n; i++) {
        struct server_config config = {
            .transport = &message_zmq,
            .bind = "tcp://127.0.0.1:0",
            .curve = curve,
            .index = i,
            .servers = n,
            .threads = threads,
            .timeout_s = timeout_s,
        };
        if (start_one(s, &config))
            return -1;
    }
    return 0;
}

int ps_servers_stop(struct ps_servers *s)
{
    int good = 0;
    for (int i = 0; i < s->n; i++) {
        int status = -1, waited = 0;
        while (waitpid(s->pids[i], &status, WNOHANG) == 0 && waited++ < 30000)
            usleep(1000);
        if (waited > 30000) {
            kill(s->pids[i], SIGKILL);
            waitpid(s->pids[i], &status, 0);
        }
        good += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    s->n = 0;
    return good;
}
