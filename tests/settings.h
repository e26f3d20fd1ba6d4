// settings.h - reads the settings of a backend from "key=value,key=value".

#pragma once

#include "base/base.h"
#include "config/backends.h"
#include "config/config.h"
#include "sync/derive.h"

#include <string.h>

// Returns the length of the key at `text`, or 0 if there is no key with "=".
static inline size_t settings_key(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return n > 0 && text[n] == '=' ? n : 0;
}

// Sets all settings of backend `sync` to their defaults, then those in `text`.
// If a key occurs twice, the last one wins. Then derives settings for `world`
// workers and n parameters. A comma ends a value only if a key follows, so a
// value may be a list. Returns 0, or -1 after fail().
static inline int settings_text(struct sync_settings *s, const char *text,
                                const char *sync, int world, size_t n)
{
    const struct backend *row = backend_find(sync);
    settings_defaults(s);
    while (*text) {
        char key[CONFIG_WORD], value[CONFIG_PATH];
        size_t len = settings_key(text);
        const char *at = text + len + 1, *end = at;
        if (len == 0)
            return fail("settings: no key=value at '%s'", text);
        while (*end && !(*end == ',' && settings_key(end + 1)))
            end++;
        snprintf(key, sizeof key, "%.*s", (int)len, text);
        snprintf(value, sizeof value, "%.*s", (int)(end - at), at);
        if (settings_set(s, key, value))
            return -1;
        text = *end ? end + 1 : end;
    }
    if (row)
        sync_derive(s, row, world, n);
    return row ? 0 : -1;
}
