// json.c - reads the settings of a run from its run.json.

#include "config/config.h"

#include "base/base.h"
#include "config/keys.h"
#include "config/value.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <string.h>

// Settings of earlier versions that this one has no more. With `value` the
// setting is called now_key=now_value today; with any other value nothing is
// lost without it. inject= was never taken from a run.json, and the launcher
// chooses how workers meet.
static const struct {
    const char *key, *value, *now_key, *now_value;
} old_settings[] = {
    {.key = "inject_rank"},
    {.key = "first_bucket_mb"},
    {.key = "fusion_mb"},
    {.key = "cluster"},
    {"carrier", "library", "transport", "library"},
    {"symbols", "chars", "vocab", "chars"},
    {"tf32", "1", "precision", "tf32"},
    {"mistake_two_updates", "1", "mistake", "two_updates"},
    {"mistake_local_clip", "1", "mistake", "local_clip"},
    {"mistake_same_seed", "1", "mistake", "same_seed"},
    {.key = "outer_rule"},
};

static const char *text_of(const cJSON *settings, const char *key)
{
    return cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(settings, key));
}

// The rule `average` ignored outer_lr and outer_momentum, tf32 was for fp32.
static bool had_no_effect(const cJSON *settings, const char *key)
{
    const char *rule = text_of(settings, "outer_rule");
    const char *format = text_of(settings, "precision");
    if (!strncmp(key, "outer_", 6))
        return rule && !strcmp(rule, "average");
    return !strcmp(key, "tf32") && format && strcmp(format, "fp32") != 0;
}

// What a setting of an earlier version is called today: returns the key and
// sets *value, perhaps to `text`; NULL if nothing is lost without it.
static const char *today(const char *key, const char **value,
                         char text[CONFIG_PATH])
{
    bool own_steps = !strcmp(key, "mistake_own_steps");
    if (!**value && (own_steps || !strcmp(key, "vocab")))
        return NULL;
    if (own_steps) {
        snprintf(text, CONFIG_PATH, "own_steps:%.99s", *value);
        *value = text;
        return "mistake";
    }
    for (size_t i = 0; i < sizeof old_settings / sizeof *old_settings; i++) {
        const char *only = old_settings[i].value;
        if (strcmp(key, old_settings[i].key))
            continue;
        if (!only || strcmp(*value, only))
            return NULL;
        *value = old_settings[i].now_value;
        return old_settings[i].now_key;
    }
    return key;
}

static int set_inherited(struct run *r, const char *key, const char *value)
{
    const struct key *k = key_renamed(&run_keys, key);
    if (!k)
        k = key_must_find(&run_keys, key, value);
    if (!k)
        return -1;
    if (!key_repeats(k, value))
        return 0;
    if (config_set(r, k->name, value))
        return -1;
    r->inherited[k - run_keys.rows] = true;
    return 0;
}

static int take(struct run *r, const cJSON *settings, const cJSON *item)
{
    char number[32], text[CONFIG_PATH];
    const char *key = item->string, *value = cJSON_GetStringValue(item);
    if (cJSON_IsNumber(item))
        value = value_text(number, item->valuedouble);
    if (!value)
        return fail("%s: neither text nor a number", key);
    if (had_no_effect(settings, key))
        return 0;
    key = today(key, &value, text);
    return key ? set_inherited(r, key, value) : 0;
}

// The defaults of outer_lr and outer_momentum were those of the rule nesterov.
static int take_rule(struct run *r, const cJSON *settings)
{
    const char *rule = text_of(settings, "outer_rule");
    if (!rule || strcmp(rule, "nesterov") != 0)
        return 0;
    return set_inherited(r, "outer_lr", "0.7") ||
                   set_inherited(r, "outer_momentum", "0.9")
               ? -1
               : 0;
}

static bool has_hosts(const cJSON *settings)
{
    const char *hosts = text_of(settings, "hosts");
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
    rc = rc ? -1 : take_rule(r, asked);
    for (item = rc ? NULL : asked->child; item && !rc; item = item->next) {
        char why[512];
        if (!take(r, asked, item))
            continue;
        snprintf(why, sizeof why, "%s", fail_message());
        rc = fail("%s: %s", name, why);
    }
    cJSON_Delete(json);
    return rc;
}
