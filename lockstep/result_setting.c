// result_setting.c - finds the settings of a finished run.

#include "lockstep/result.h"

#include "base/base.h"
#include "config/config.h"
#include "config/keys.h"

#include <cjson/cJSON.h>
#include <stdio.h>

const cJSON *result_settings(const cJSON *run)
{
    const cJSON *set = cJSON_GetObjectItemCaseSensitive(run, "effective");
    return set ? set : cJSON_GetObjectItemCaseSensitive(run, "settings");
}

void result_setting(const struct result *r, const char *key, char *to,
                    size_t size)
{
    const cJSON *e = cJSON_GetObjectItemCaseSensitive(r->settings, key);
    const struct key *k = key_find(&run_keys, key);
    if (cJSON_IsNumber(e))
        snprintf(to, size, "%.10g", e->valuedouble);
    else
        snprintf(to, size, "%s",
                 cJSON_IsString(e) ? e->valuestring
                 : k               ? key_default(k)
                                   : "");
    text_visible(to);
}
