// recorded.c - reads what run.json and summary.json say about a run.

#include "lockstep/recorded.h"

#include "base/base.h"
#include "base/file.h"
#include "config/backends.h"
#include "config/config.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

enum { MOST_WORKERS = 4096 };

cJSON *recorded_json(const char *dir, const char *name)
{
    char path[CONFIG_PATH];
    if (text_into(path, sizeof path, "%s/%s", dir, name))
        return NULL;
    char *text = file_read(path, 1 << 22);
    if (!text)
        return NULL;
    cJSON *j = cJSON_ParseWithOpts(text, NULL, true);
    if (!j)
        fail("%s: not JSON", path);
    mem_free(text);
    return j;
}

double recorded_number(const cJSON *object, const char *key)
{
    const cJSON *j = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(j) ? j->valuedouble : NAN;
}

const cJSON *recorded_settings(const cJSON *run)
{
    const cJSON *set = cJSON_GetObjectItemCaseSensitive(run, "effective");
    return set ? set : cJSON_GetObjectItemCaseSensitive(run, "settings");
}

static void read_text(const cJSON *object, const char *key, char *to,
                      size_t size)
{
    const cJSON *j = cJSON_GetObjectItemCaseSensitive(object, key);
    if (cJSON_IsNumber(j))
        snprintf(to, size, "%d", j->valueint);
    else
        snprintf(to, size, "%s", cJSON_IsString(j) ? j->valuestring : "");
    text_visible(to);
}

static int read_run(struct recorded *r, const cJSON *run)
{
    const cJSON *set = recorded_settings(run);
    double world = recorded_number(run, "world");
    read_text(run, "backend", r->backend, sizeof r->backend);
    read_text(run, "transport", r->transport, sizeof r->transport);
    read_text(set, "consistency", r->consistency, sizeof r->consistency);
    read_text(set, "shard", r->shard, sizeof r->shard);
    if (!strcmp(r->consistency, "bsp"))
        r->consistency[0] = '\0';
    r->row = backend_find(r->backend);
    r->oversubscribed =
        cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(run, "oversubscribed"));
    r->law_bytes_tx =
        recorded_number(cJSON_GetObjectItemCaseSensitive(run, "law"),
                        "bytes_tx");
    if (!(world >= 1 && world <= MOST_WORKERS))
        return fail("run.json: %g workers; must be 1 .. %d", world,
                    MOST_WORKERS);
    r->world = (int)world;
    return 0;
}

int recorded_read(struct recorded *r, const char *dir)
{
    *r = (struct recorded){0};
    cJSON *run = recorded_json(dir, "run.json");
    cJSON *summary = run ? recorded_json(dir, "summary.json") : NULL;
    int rc = summary ? read_run(r, run) : -1;
    if (!rc)
        r->bytes_tx = recorded_number(summary, "bytes_tx") /
                      recorded_number(summary, "steps") / r->world;
    cJSON_Delete(run);
    cJSON_Delete(summary);
    return rc;
}
