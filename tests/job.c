// job.c - runs our programs as a user would, and reads the files that they
// write.

#include "tests/job.h"

#include "base/base.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT = 1 << 20, PATH = 512, ENVIRON = 1 << 17 };

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

// Whether a job of this test started the process: its environment names our
// folder. A zombie has none.
static bool is_ours(pid_t pid)
{
    static char text[ENVIRON];
    char path[64], mark[128];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    size_t size = (size_t)snprintf(mark, sizeof mark, "LOCKSTEP_JOB=%s", dir);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    return memmem(text, n, mark, size + 1) != NULL;
}

// Calls fn(pid) for each process of our jobs. Returns how many there are.
static int for_each_process(void (*fn)(pid_t pid))
{
    int count = 0;
    DIR *d = opendir("/proc");
    CHECK(d);
    for (struct dirent *e; (e = readdir(d));) {
        pid_t pid = atoi(e->d_name);
        if (pid <= 0 || !is_ours(pid))
            continue;
        fn(pid);
        count++;
    }
    closedir(d);
    return count;
}

static void kill_process(pid_t pid)
{
    kill(pid, SIGKILL);
}

static void name_process(pid_t pid)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *f = fopen(path, "re");
    if (f && fgets(line, sizeof line, f))
        log_line("process %d still runs: %s", (int)pid, line);
    if (f)
        fclose(f);
}

static void ignore_process(pid_t pid)
{
    (void)pid;
}

int job_processes(int deadline)
{
    uint64_t last = now_ns() + (uint64_t)deadline * 1000000000u;
    while (for_each_process(ignore_process) > 0 && now_ns() < last)
        usleep(5000);
    return for_each_process(name_process);
}

int job_cleanup(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    if (!*dir)
        return 0;
    for_each_process(kill_process);
    return system(command);
}

static pid_t start(const char *command, const char *log)
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid)
        return pid;
    setpgid(0, 0);
    setenv("LOCKSTEP_JOB", job_dir(), 1);        // is_ours() looks for it
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1); // Open MPI leaks by design
    if (chdir(job_dir()) || !freopen(log, "w", stdout) ||
        dup2(STDOUT_FILENO, STDERR_FILENO) < 0)
        _exit(126);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

// Waits until the process ends or the deadline passes. Checks every 5 ms.
static int wait_for(pid_t pid, int deadline)
{
    uint64_t end = now_ns() + (uint64_t)deadline * 1000000000u;
    int status;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (now_ns() > end) {
            for_each_process(kill_process);
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

int job_text(void **state)
{
    (void)state;
    char path[PATH];
    snprintf(path, sizeof path, "%s/text.txt", job_dir());
    FILE *f = fopen(path, "w");
    CHECK(f);
    for (int i = 0; i < 3000; i++)
        fprintf(f, "int a%d = %d + b;\n", i * 7 % 40, i % 13);
    return fclose(f);
}

void job_run(struct job *j, int deadline, const char *fmt, ...)
{
    char command[4096], log[PATH];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(command, sizeof command, fmt, ap);
    va_end(ap);
    snprintf(log, sizeof log, "%s/output.txt", job_dir());
    j->status = wait_for(start(command, log), deadline);
    j->out = read_file(log);
    CHECK(j->out);
}

double job_summary(const char *name, const char *key)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s/summary.json", job_dir(), name);
    char *text = read_file(path);
    cJSON *j = text ? cJSON_Parse(text) : NULL;
    const cJSON *n = j;
    char part[PATH];
    for (size_t k; *key; key += k + (key[k] == '.')) {
        k = strcspn(key, ".");
        snprintf(part, sizeof part, "%.*s", (int)k, key);
        n = cJSON_GetObjectItem(n, part);
    }
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
