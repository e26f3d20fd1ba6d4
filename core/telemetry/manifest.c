// manifest.c - writes run.json and summary.json with cJSON.

#include "telemetry/manifest.h"

#include "base/base.h"
#include "base/file.h"
#include "base/processor.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { DEPTH = 8 };

struct manifest {
    cJSON *at[DEPTH]; // at[0] is the root, at[depth] the innermost open
    int depth;
    bool lost; // memory for a value was missing
};

struct manifest *manifest_open(void)
{
    struct manifest *m = mem_alloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->at[0] = cJSON_CreateObject();
    if (!m->at[0]) {
        fail("memory: none left for a JSON object");
        mem_free(m);
        return NULL;
    }
    return m;
}

void manifest_text(struct manifest *m, const char *key, const char *value)
{
    m->lost |= !cJSON_AddStringToObject(m->at[m->depth], key, value);
}

void manifest_hash(struct manifest *m, const char *key, uint64_t hash)
{
    char text[32];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    manifest_text(m, key, text);
}

void manifest_number(struct manifest *m, const char *key, double value)
{
    cJSON *at = m->at[m->depth];
    m->lost |= isfinite(value) ? !cJSON_AddNumberToObject(at, key, value)
                               : !cJSON_AddNullToObject(at, key);
}

void manifest_bool(struct manifest *m, const char *key, bool value)
{
    m->lost |= !cJSON_AddBoolToObject(m->at[m->depth], key, value);
}

void manifest_begin(struct manifest *m, const char *key)
{
    CHECK(m->depth + 1 < DEPTH);
    cJSON *inner = cJSON_AddObjectToObject(m->at[m->depth], key);
    m->lost |= !inner;
    m->at[++m->depth] = inner; // cJSON adds nothing to NULL
}

void manifest_end(struct manifest *m)
{
    CHECK(m->depth > 0);
    m->depth--;
}

void manifest_texts(struct manifest *m, const char *key, int n,
                    const char *const *texts)
{
    cJSON *list = cJSON_CreateStringArray(texts, n);
    if (cJSON_AddItemToObject(m->at[m->depth], key, list))
        return;
    cJSON_Delete(list);
    m->lost = true;
}

static bool decides_speed(const char *variable)
{
    const char *prefixes[] = {"OMP_",      "GOMP_",   "DNNL_",     "ONEDNN_",
                              "MODEL_",    "VECTOR_", "OMPI_MCA_", "NCCL_",
                              "OPENBLAS_", "MALLOC_"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (!strncmp(variable, prefixes[i], strlen(prefixes[i])))
            return true;
    return false;
}

static void add_environment(struct manifest *m)
{
    manifest_begin(m, "environment");
    for (char **e = environ; *e; e++) {
        char name[128];
        const char *equals = strchr(*e, '=');
        if (!equals || (size_t)(equals - *e) >= sizeof name ||
            !decides_speed(*e))
            continue;
        memcpy(name, *e, (size_t)(equals - *e));
        name[equals - *e] = '\0';
        manifest_text(m, name, equals + 1);
    }
    manifest_end(m);
}

void manifest_machine(struct manifest *m)
{
    struct utsname u;
    char cpu[256];
    cpu_set_t set;
    manifest_begin(m, "machine");
    if (uname(&u) == 0) {
        manifest_text(m, "host", u.nodename);
        manifest_text(m, "kernel", u.release);
        manifest_text(m, "architecture", u.machine);
    }
    processor_name(cpu, sizeof cpu, "/proc/cpuinfo");
    manifest_text(m, "processor", cpu);
    manifest_number(m, "cores", (double)sysconf(_SC_NPROCESSORS_ONLN));
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        manifest_number(m, "cores_of_this_process", CPU_COUNT(&set));
    manifest_number(m, "memory_bytes",
                    (double)sysconf(_SC_PHYS_PAGES) *
                        (double)sysconf(_SC_PAGESIZE));
    manifest_end(m);
    add_environment(m);
}

int manifest_close(struct manifest **m, const char *path)
{
    if (!*m)
        return 0;
    int rc = 0;
    if (path) {
        char *text = cJSON_Print((*m)->at[0]);
        rc = text && !(*m)->lost ? file_replace_text(path, text)
                                 : fail("memory: none left to print %s", path);
        free(text);
    }
    cJSON_Delete((*m)->at[0]);
    mem_free(*m);
    *m = NULL;
    return rc;
}

int manifest_print(struct manifest **m, FILE *f)
{
    char *text = cJSON_PrintUnformatted((*m)->at[0]);
    int rc = text && !(*m)->lost && fprintf(f, "%s\n", text) > 0
                 ? 0
                 : fail("a line of JSON cannot be written");
    free(text);
    return manifest_close(m, NULL) || rc ? -1 : 0;
}
