// json.c - reads the settings of a run from its run.json.

#include "config/json.h"

#include "base/base.h"
#include "config/keys.h"
#include "config/value.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <string.h>

// Whether an earlier version had this setting and this one ignores it: inject=
// was never taken from a run.json, and buckets have one size now.
static bool is_gone(const char *name)
{
    static const char *const names[] = {"inject_rank", "first_bucket_mb",
                                        "fusion_mb"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

static int take(struct run *r, const cJSON *item)
{
    char number[32];
    const char *value = cJSON_GetStringValue(item);
    // Of earlier versions. carrier=library is transport=library; else it was
    // the default.
    bool carrier = !strcmp(item->string, "carrier");
    if (is_gone(item->string) ||
        (carrier && (!value || strcmp(value, "library") != 0)))
        return 0;
    const struct key *k = carrier ? key_find(&run_keys, "transport")
                                  : key_renamed(&run_keys, item->string);
    if (!k)
        k = key_must_find(&run_keys, item->string);
    if (!k)
        return -1;
    if (cJSON_IsNumber(item))
        value = value_text(number, item->valuedouble);
    if (!value)
        return fail("%s: neither text nor a number", item->string);
    if (!key_repeats(k, value))
        return 0;
    if (config_set(r, k->name, value))
        return -1;
    r->inherited[k - run_keys.rows] = true;
    return 0;
}

static bool has_hosts(const cJSON *settings)
{
    const char *hosts = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(settings, "hosts"));
    return hosts && *hosts;
}

// Parses a text that is one JSON value, with nothing behind it. Returns NULL if
// it is not.
static cJSON *parse(const char *text, size_t n)
{
    const char *end = text;
    cJSON *json = cJSON_ParseWithLengthOpts(text, n, &end, false);
    while (json && end < text + n && isspace((unsigned char)*end))
        end++;
    if (json && end == text + n)
        return json;
    cJSON_Delete(json);
    return NULL;
}

int config_json(struct run *r, const char *name, const char *text, size_t n)
{
    cJSON *json = parse(text, n);
    const cJSON *asked = cJSON_GetObjectItemCaseSensitive(json, "asked");
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(json, "effective");
    const cJSON *item;
    int rc = 0;
    if (!asked)
        asked = cJSON_GetObjectItemCaseSensitive(json, "settings");
    r->had_hosts = has_hosts(asked) || has_hosts(all);
    if (!cJSON_IsObject(asked))
        rc = fail("%s: not the run.json of a run", name);
    for (item = rc ? NULL : asked->child; item && !rc; item = item->next) {
        char why[512];
        if (!take(r, item))
            continue;
        snprintf(why, sizeof why, "%s", fail_message());
        rc = fail("%s: %s", name, why);
    }
    cJSON_Delete(json);
    return rc;
}
