// recorded.c - reads the JSON files of a run.

#include "lockstep/recorded.h"

#include "base/base.h"
#include "base/file.h"
#include "config/config.h"

#include <cjson/cJSON.h>
#include <math.h>

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
