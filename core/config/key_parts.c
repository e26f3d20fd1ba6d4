// key_parts.c - reads values of several parts from text, and shows them.

#include "config/key_parts.h"

#include "base/base.h"
#include "config/config.h"
#include "config/value.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

// ---- straggler=RANK:FACTOR

int straggler_read(void *at, const char *key, const char *value)
{
    struct straggler s = {0};
    int used = 0;
    sscanf(value, "%9d:%n", &s.rank, &used);
    if (*value && (!used || value_real(value + used, &s.factor) || s.rank < 0 ||
                   s.rank >= 4096 || !(s.factor >= 1) || s.factor > 1000))
        return fail("%s=%s: want RANK:FACTOR, the factor 1 .. 1000, as in 1:2",
                    key, value);
    *(struct straggler *)at = s;
    return 0;
}

void straggler_show(const void *at, char text[CONFIG_PATH])
{
    const struct straggler *s = at;
    char factor[32];
    text[0] = '\0';
    if (s->factor > 0)
        snprintf(text, CONFIG_PATH, "%d:%s", s->rank,
                 value_text(factor, s->factor));
}

// ---- pace=F,B

int pace_read(void *at, const char *key, const char *value)
{
    struct pace p = {.given = *value != '\0'};
    char forward[32] = "";
    int used = 0;
    sscanf(value, "%31[^,],%n", forward, &used);
    if (p.given && (!used || value_real(forward, &p.forward_ms) ||
                    value_real(value + used, &p.backward_ms) ||
                    !(p.forward_ms >= 0 && p.forward_ms <= 1e6) ||
                    !(p.backward_ms >= 0 && p.backward_ms <= 1e6)))
        return fail("%s=%s: want ms of a forward and of a backward, 0 .. 1e6, "
                    "as in 26,51",
                    key, value);
    *(struct pace *)at = p;
    return 0;
}

void pace_show(const void *at, char text[CONFIG_PATH])
{
    const struct pace *p = at;
    char forward[32], backward[32];
    text[0] = '\0';
    if (p->given)
        snprintf(text, CONFIG_PATH, "%s,%s", value_text(forward, p->forward_ms),
                 value_text(backward, p->backward_ms));
}

// ---- mistake=WORD, mistake=own_steps:RANK:STEPS

static const struct {
    const char *word, *says;
} mistakes[MISTAKES] = {
    [MISTAKE_NONE] = {"none", ""},
    [MISTAKE_TWO_UPDATES] = {"two_updates",
                             "each step updates twice with one gradient"},
    [MISTAKE_LOCAL_CLIP] = {"local_clip",
                            "each worker clips its own gradient before the "
                            "sum, and the mean is not clipped"},
    [MISTAKE_SAME_SEED] = {"same_seed",
                           "all workers draw the same batches, as with one "
                           "seed and no sampler that knows the rank"},
    [MISTAKE_OWN_STEPS] = {"own_steps", "one worker takes only so many steps, "
                                        "the others take all"},
};

const char *mistake_says(const struct sync_mistake *m)
{
    return mistakes[m->kind].says;
}

int mistake_read(void *at, const char *key, const char *value)
{
    struct sync_mistake m = {0};
    char word[16] = "";
    int used = 0, i = 0;
    bool numbers = sscanf(value, "%15[a-z_]%n:%4d:%9d%n", word, &used, &m.rank,
                          &m.steps, &used) == 3;
    while (i < MISTAKES && strcmp(mistakes[i].word, *value ? word : "none"))
        i++;
    if (i == MISTAKES)
        return fail("%s=%s: no such mistake; try: two_updates, local_clip, "
                    "same_seed, own_steps:1:40",
                    key, value);
    m.kind = (unsigned)i;
    if (value[used] || numbers != (m.kind == MISTAKE_OWN_STEPS) || m.rank < 0 ||
        m.rank >= 4096 || (numbers && m.steps < 1))
        return fail("%s=%s: want a word, or own_steps:RANK:STEPS; try: "
                    "%s=own_steps:1:40",
                    key, value, key);
    *(struct sync_mistake *)at = m;
    return 0;
}

void mistake_show(const void *at, char text[CONFIG_PATH])
{
    const struct sync_mistake *m = at;
    if (m->kind == MISTAKE_OWN_STEPS)
        snprintf(text, CONFIG_PATH, "own_steps:%d:%d", m->rank, m->steps);
    else
        strcpy(text, mistakes[m->kind].word);
}

// ---- profile=FROM:COUNT

int profile_read(void *at, const char *key, const char *value)
{
    const long long most = 1000000000;
    long long from = 0, count = 0;
    int used = 0;
    bool read = sscanf(value, "%18lld:%18lld%n", &from, &count, &used) == 2;
    if (*value && (!read || value[used] || from < 1 || count < 1 ||
                   from > most || count > most))
        return fail("%s=%s: want FROM:COUNT, as in 20:5", key, value);
    *(struct profile *)at = (struct profile){(int)from, (int)count};
    return 0;
}

void profile_show(const void *at, char text[CONFIG_PATH])
{
    const struct profile *p = at;
    text[0] = '\0';
    if (p->count > 0)
        snprintf(text, CONFIG_PATH, "%d:%d", p->from, p->count);
}

// ---- consistency=bsp, asp or ssp:K

int consistency_read(void *at, const char *key, const char *value)
{
    struct sync_consistency *c = at;
    bool ssp = strncmp(value, "ssp:", 4) == 0;
    size_t digits = ssp ? strspn(value + 4, "0123456789") : 0;
    if (digits > 0 && digits <= 6 && value[4 + digits] == '\0')
        *c = (struct sync_consistency){CONSISTENCY_SSP, atoi(value + 4)};
    else if (strcmp(value, "bsp") == 0)
        *c = (struct sync_consistency){.kind = CONSISTENCY_BSP};
    else if (strcmp(value, "asp") == 0)
        *c = (struct sync_consistency){.kind = CONSISTENCY_ASP};
    else
        return fail("%s=%s: want bsp, asp or ssp:K, as in ssp:3", key, value);
    return 0;
}

void consistency_show(const void *at, char text[CONFIG_PATH])
{
    const struct sync_consistency *c = at;
    if (c->kind == CONSISTENCY_SSP)
        snprintf(text, CONFIG_PATH, "ssp:%d", c->bound);
    else
        strcpy(text, c->kind == CONSISTENCY_BSP ? "bsp" : "asp");
}

// ---- servers=COUNT or ENDPOINT,ENDPOINT..

int endpoints_check(const char *key, const char *list, int *count)
{
    static const char tcp[] = "tcp://";
    *count = 0;
    for (const char *p = list, *end; p; p = *end ? end + 1 : NULL, ++*count) {
        char one[CONFIG_PATH];
        end = p + strcspn(p, ",");
        snprintf(one, sizeof one, "%.*s", (int)(end - p), p);
        if (!strstr(one, "://"))
            return fail("%s=%s: not an endpoint; try: %s=tcp://host:port", key,
                        list, key);
        const char *port = strrchr(one, ':') + 1;
        if (strncmp(one, tcp, sizeof tcp - 1) != 0 || strcmp(port, "*") == 0)
            continue;
        int64_t number;
        if (value_whole(port, &number) || number < 0 || number > UINT16_MAX)
            return fail("%s=%s: \"%s\" is not a port; try: %s=tcp://host:port "
                        "with a port of 1 .. 65535",
                        key, list, port, key);
    }
    return 0;
}

int servers_read(void *at, const char *key, const char *value)
{
    struct sync_servers *s = at;
    int64_t count = 0;
    if (strstr(value, "://")) {
        int endpoints;
        if (endpoints_check(key, value, &endpoints))
            return -1;
        s->count = endpoints;
        memcpy(s->endpoints, value, strlen(value) + 1);
        return 0;
    }
    if (value[0] && (value_whole(value, &count) || count < 1 || count > 4096))
        return fail("%s=%s: want 1 .. 4096 servers, or their endpoints, as in "
                    "tcp://host:port,tcp://host:port",
                    key, value);
    *s = (struct sync_servers){.count = (int)count};
    return 0;
}

void servers_show(const void *at, char text[CONFIG_PATH])
{
    const struct sync_servers *s = at;
    text[0] = '\0';
    if (s->endpoints[0])
        strcpy(text, s->endpoints);
    else if (s->count)
        snprintf(text, CONFIG_PATH, "%d", s->count);
}

// ---- inject=KIND:STEP[:MS][@RANK]

static const char *const faults[] = {
    [FAULT_NONE] = "",     [FAULT_DELAY] = "delay", [FAULT_FAIL] = "fail",
    [FAULT_KILL] = "kill", [FAULT_NAN] = "nan",     [FAULT_INF] = "inf",
};

int fault_read(void *at, const char *key, const char *value)
{
    enum { RANKS = 4096 };
    char kind[16] = "";
    unsigned long long step = 0;
    int ms = 0, rank = 0, used = 0, i = FAULT_NONE;
    if (value[0] == '\0') {
        *(struct sync_fault *)at = (struct sync_fault){0};
        return 0;
    }
    int got =
        sscanf(value, "%15[a-z]:%llu%n:%d%n", kind, &step, &used, &ms, &used);
    const char *end = value + used, *digits = end + 1;
    bool at_rank = *end == '@' && isdigit((unsigned char)*digits);
    if (at_rank && sscanf(digits, "%4d%n", &rank, &used) == 1)
        end = digits + used;
    while (i <= FAULT_INF && strcmp(faults[i], kind) != 0)
        i++;
    if (i > FAULT_INF)
        return fail("%s=%s: no such fault; try: delay, fail, kill, nan, inf",
                    key, value);
    if (got != (i == FAULT_DELAY ? 3 : 2) || *end || step == 0 || ms < 0 ||
        rank >= RANKS)
        return fail("%s=%s: want delay:STEP:MS, or KIND:STEP with fail, kill, "
                    "nan or inf, and perhaps @RANK; try: %s=kill:10@1",
                    key, value, key);
    *(struct sync_fault *)at = (struct sync_fault){.kind = (unsigned)i,
                                                   .at = step,
                                                   .ms = ms,
                                                   .rank = rank};
    return 0;
}

void fault_show(const void *at, char text[CONFIG_PATH])
{
    const struct sync_fault *f = at;
    char ms[16] = "", rank[16] = "";
    if (f->kind == FAULT_DELAY)
        snprintf(ms, sizeof ms, ":%d", f->ms);
    if (f->rank)
        snprintf(rank, sizeof rank, "@%d", f->rank);
    text[0] = '\0';
    if (f->kind != FAULT_NONE)
        snprintf(text, CONFIG_PATH, "%s:%llu%s%s", faults[f->kind],
                 (unsigned long long)f->at, ms, rank);
}

// ---- stages=N,N..

int stages_read(void *at, const char *key, const char *value)
{
    struct stage_layers s = {.n = 0};
    const char *p = value;
    while (*p) {
        char *end;
        long layers = strtol(p, &end, 10);
        bool more = *end == ',' && end[1];
        if (end == p || layers < 1 || layers > 1000 || s.n == STAGES_PARTS ||
            (*end && !more))
            return fail("%s=%s: want the layers of each stage, as in 7,5", key,
                        value);
        s.layers[s.n++] = (int)layers;
        p = end + more;
    }
    *(struct stage_layers *)at = s;
    return 0;
}

void stages_show(const void *at, char text[CONFIG_PATH])
{
    const struct stage_layers *s = at;
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < s->n; i++)
        used += (size_t)snprintf(text + used, CONFIG_PATH - used, "%s%d",
                                 i ? "," : "", s->layers[i]);
}
