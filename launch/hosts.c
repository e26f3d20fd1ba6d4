// hosts.c - reads a hostfile, and builds the command that starts a program on
// one of its hosts.

#include "launch/hosts.h"

#include "base/base.h"
#include "base/file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 1024 };

// ---- the file

static bool is_loopback(const struct host *h)
{
    return strncmp(h->address, "127.", 4) == 0;
}

int hosts_look_up(struct host *h)
{
    const struct addrinfo want = {.ai_family = AF_INET,
                                  .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    int err = getaddrinfo(h->name, NULL, &want, &found);
    if (err)
        return fail("hosts: %s: %s; try: its address instead of the name",
                    h->name, gai_strerror(err));
    const struct sockaddr_in *a = (const void *)found->ai_addr;
    inet_ntop(AF_INET, &a->sin_addr, h->address, sizeof h->address);
    freeaddrinfo(found);
    return 0;
}

static int read_line(struct host *h, char *line)
{
    char *rest, *name = strtok_r(line, " \t\r\n", &rest);
    *h = (struct host){.slots = 1};
    if (text_into(h->name, sizeof h->name, "%s", name))
        return -1;
    for (char *w; (w = strtok_r(NULL, " \t\r\n", &rest));) {
        if (strncmp(w, "max", 3) == 0)
            continue; // max-slots= is an upper limit; nothing needs it
        char *end = w;
        long n = strncmp(w, "slots=", 6) ? 0 : strtol(w + 6, &end, 10);
        if (n < 1 || n > 4096 || *end)
            return fail("hosts: %s: %s: must be slots=N, 1 .. 4096", name, w);
        h->slots = (int)n;
    }
    return 0;
}

int hosts_check_loopback(const struct hosts *h)
{
    const struct host *own = NULL, *far = NULL;
    for (int i = 0; i < h->n; i++) {
        if (is_loopback(&h->at[i]))
            own = &h->at[i];
        else if (*h->at[i].address)
            far = &h->at[i];
    }
    return own && far ? fail("hosts: %s is %s, which the other hosts cannot "
                             "reach; try: its address on the network",
                             own->name, own->address)
                      : 0;
}

// If the host is in the list already, adds its slots and returns true. A PBS
// file names a host once for each of its slots.
static bool add_slots(struct hosts *h, const struct host *one)
{
    for (int i = 0; i < h->n; i++)
        if (!strcmp(h->at[i].name, one->name)) {
            h->at[i].slots += one->slots;
            return true;
        }
    return false;
}

static FILE *open_file(const char *path)
{
    FILE *f = file_open(path);
    if (!f)
        fail("hosts=%s; try: a file of lines NAME slots=N", fail_message());
    return f;
}

int hosts_check(const char *path)
{
    FILE *f = open_file(path);
    return f ? fclose(f) : -1;
}

int hosts_parse(struct hosts *h, const char *path)
{
    char line[LINE];
    FILE *f = open_file(path);
    if (!f)
        return -1;
    int err = 0;
    *h = (struct hosts){0};
    while (!err && file_line(line, sizeof line, f)) {
        line[strcspn(line, "#")] = '\0';
        if (!line[strspn(line, " \t\r\n")])
            continue;
        struct host one;
        err = read_line(&one, line);
        if (!err && !add_slots(h, &one)) {
            if (h->n == HOSTS_MOST)
                err = fail("hosts=%s: more than %d hosts", path, HOSTS_MOST);
            else
                h->at[h->n++] = one;
        }
    }
    fclose(f);
    if (!err && h->n == 0)
        err = fail("hosts=%s: names no host; try: lines NAME slots=N", path);
    return err ? -1 : 0;
}

int hosts_read(struct hosts *h, const char *path)
{
    int err = hosts_parse(h, path);
    for (int i = 0; !err && i < h->n; i++)
        err = hosts_look_up(&h->at[i]);
    return err ? -1 : hosts_check_loopback(h);
}

int hosts_of_job(struct run *r)
{
    const char *path = getenv("PBS_NODEFILE");
    if (!path || !*path || r->hosts[0] || r->net[0] || r->workers < 2)
        return 0;
    struct hosts *h = mem_alloc(1, sizeof *h);
    int rc = h ? hosts_read(h, path) : -1;
    if (!rc && h->n > 1) {
        log_line("using the %d hosts of this PBS job; hosts= chooses others",
                 h->n);
        rc = config_set(r, "hosts", path);
    }
    mem_free(h);
    return rc;
}

// ---- slots

// Returns the index of a rank's host.
static int host_of(const struct hosts *h, int rank)
{
    int slots = 0, i = 0;
    for (int k = 0; k < h->n; k++)
        slots += h->at[k].slots;
    for (rank %= slots; rank >= h->at[i].slots; i++)
        rank -= h->at[i].slots;
    return i;
}

struct slot hosts_slot(const struct hosts *h, int rank, int world)
{
    int own = host_of(h, rank);
    struct slot s = {.host = &h->at[own]};
    for (int r = 0; r < world; r++) {
        bool here = host_of(h, r) == own;
        s.count += here;
        s.index += here && r < rank;
    }
    return s;
}

// ---- the words

// Appends a word, quoted for a shell: 'it'\''s'.
static int quote(char *line, size_t size, const char *word)
{
    size_t at = strlen(line);
    if (text_into(line + at, size - at, "%s'", at ? " " : ""))
        return -1;
    for (; *word; word++) {
        at = strlen(line);
        if (text_into(line + at, size - at, *word == '\'' ? "'\\''" : "%c",
                      *word))
            return -1;
    }
    at = strlen(line);
    return text_into(line + at, size - at, "'");
}

static int add_environment(struct argv *a, const struct slot *slot)
{
    static const char *const names[] = {"LOCKSTEP_PROGRESS",
                                        "LOCKSTEP_RESTARTS", "OMP_WAIT_POLICY",
                                        "GOMP_SPINCOUNT", NULL};
    int err = argv_add(a, "env") ||
              argv_add(a, "LOCKSTEP_SLOT=%d", slot->index) ||
              argv_add(a, "LOCKSTEP_SLOTS=%d", slot->count);
    for (int i = 0; !err && names[i]; i++) {
        const char *value = getenv(names[i]);
        err = value && argv_add(a, "%s=%s", names[i], value);
    }
    return err ? -1 : 0;
}

static bool is_here(const struct host *h)
{
    char own[HOSTS_NAME] = "";
    gethostname(own, sizeof own - 1);
    return strcmp(h->name, "localhost") == 0 || strcmp(h->name, own) == 0;
}

static int add_shell(struct argv *out, const struct host *h)
{
    const char *agent = getenv("LOCKSTEP_RSH");
    if (!agent)
        agent = "ssh -o BatchMode=yes -o ConnectTimeout=10";
    if (is_here(h))
        return argv_add_text(out, "sh -c");
    return argv_add_text(out, agent) || argv_add(out, "%s", h->name) ? -1 : 0;
}

// Appends to *out the command that runs *program, in this folder, on a host.
static int add_far(struct argv *out, const struct host *host,
                   const struct argv *program)
{
    char folder[CONFIG_PATH], line[ARGV_TEXT] = "cd";
    if (!getcwd(folder, sizeof folder))
        return fail("this folder's path: %s", strerror(errno));
    int err =
        quote(line, sizeof line, folder) ||
        text_into(line + strlen(line), sizeof line - strlen(line), " && exec");
    for (int i = 0; !err && i < program->n; i++)
        err = quote(line, sizeof line, program->at[i]);
    return err || add_shell(out, host) || argv_add(out, "%s", line) ? -1 : 0;
}

// Appends to *out the command that runs `lockstep COMMAND words ..` at a slot.
static int add_lockstep(struct argv *out, const struct slot *slot,
                        const char *command, int n, char *const *words)
{
    struct argv *program = mem_alloc(1, sizeof *program);
    int err = !program || add_environment(program, slot) ||
              argv_add_program(program, "lockstep") ||
              argv_add(program, "%s", command) ||
              argv_add_all(program, n, words) ||
              add_far(out, slot->host, program);
    mem_free(program);
    return err ? -1 : 0;
}

int hosts_wrap(struct argv *out, const struct slot *slot,
               const struct argv *program)
{
    return add_lockstep(out, slot, "watchdog", program->n, program->at);
}

int hosts_reach(struct argv *out, const struct host *host, const char *command)
{
    const struct slot slot = {.host = host, .count = 1};
    return add_lockstep(out, &slot, command, 0, NULL);
}
