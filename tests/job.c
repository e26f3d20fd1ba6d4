// job.c - run our programs as a user would, and read what they left.

#include "tests/job.h"

#include "base/base.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT = 1 << 20, PATH = 512 };

static char dir[64];

const char *job_dir(void)
{
    if (!*dir) {
        strcpy(dir, "/tmp/lockstep-job-XXXXXX");
        CHECK(mkdtemp(dir));
        char path[4096];
        const char *old = getenv("PATH");
        CHECK(!text_into(path, sizeof path, "%s:%s", LOCKSTEP_BIN,
                         old ? old : ""));
        setenv("PATH", path, 1);
    }
    return dir;
}

int job_cleanup(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return *dir ? system(command) : 0;
}

static pid_t start(const char *command, const char *log)
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid)
        return pid;
    setpgid(0, 0);
    setenv("LOCKSTEP_JOB", job_dir(), 1);        // by which strays are known
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1); // Open MPI leaks by design
    if (chdir(job_dir()) || !freopen(log, "w", stdout) ||
        dup2(STDOUT_FILENO, STDERR_FILENO) < 0)
        _exit(126);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

// Wait until the process ends or the deadline passes, looking every 5 ms.
static int wait_for(pid_t pid, int deadline)
{
    uint64_t end = now_ns() + (uint64_t)deadline * 1000000000u;
    int status;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (now_ns() > end) {
            kill(-pid, SIGKILL);
            waitpid(pid, &status, 0);
            return 124;
        }
        usleep(5000);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static char *read_file(const char *path)
{
    static char text[OUTPUT];
    FILE *f = fopen(path, "r");
    if (!f)
        return NULL;
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

void job_run(struct job *j, int deadline, const char *fmt, ...)
{
    char command[4096], log[PATH];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(command, sizeof command, fmt, ap);
    va_end(ap);
    snprintf(log, sizeof log, "%s/output.txt", job_dir());
    uint64_t began = now_ns();
    j->status = wait_for(start(command, log), deadline);
    j->seconds = (double)(now_ns() - began) * 1e-9;
    j->out = read_file(log);
    CHECK(j->out);
}

double job_summary(const char *name, const char *key)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s/summary.json", job_dir(), name);
    char *text = read_file(path);
    cJSON *j = text ? cJSON_Parse(text) : NULL;
    const cJSON *n = cJSON_GetObjectItem(j, key);
    double value = cJSON_IsNumber(n) ? n->valuedouble : NAN;
    cJSON_Delete(j);
    return value;
}

// The k-th field of a CSV line, or NULL.
static const char *field(const char *line, int k)
{
    for (; k > 0 && line; k--) {
        line = strchr(line, ',');
        line = line ? line + 1 : NULL;
    }
    return line;
}

static int column_index(const char *header, const char *name)
{
    size_t n = strlen(name);
    for (int k = 0;; k++) {
        const char *f = field(header, k);
        if (!f)
            return -1;
        if (!strncmp(f, name, n) && strchr(",\n", f[n]))
            return k;
    }
}

int job_column(const char *run, const char *name, int rank, double *out,
               int max)
{
    char path[PATH], line[1024];
    snprintf(path, sizeof path, "%s/%s/steps.csv", job_dir(), run);
    FILE *f = fopen(path, "r");
    if (!f)
        return 0;
    int count = 0, k = -1;
    if (fgets(line, sizeof line, f))
        k = column_index(line, name);
    while (k >= 0 && count < max && fgets(line, sizeof line, f)) {
        const char *of = field(line, 2), *value = field(line, k);
        if (of && value && atoi(of) == rank)
            out[count++] =
                *value == ',' || *value == '\n' ? NAN : strtod(value, NULL);
    }
    fclose(f);
    return count;
}

bool job_has(const char *path)
{
    char full[PATH];
    snprintf(full, sizeof full, "%s/%s", job_dir(), path);
    return access(full, F_OK) == 0;
}
