// whole.c - puts the hashes of a checkpoint's files into state.json, and checks
// them.

#include "train/whole.h"

#include "base/base.h"
#include "base/file.h"
#include "train/folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 2048, HEX = 17, PIECE = 1 << 16 };

#define OPTIMIZER "optimizer.safetensors"
static const char *const files[] = {"model.safetensors", "config.json",
                                    OPTIMIZER, "symbols.txt"};
enum { FILES = sizeof files / sizeof *files };

static int hash_file(const char *folder, const char *name, char hex[HEX])
{
    char path[PATH];
    uint64_t hash = 0;
    if (text_into(path, sizeof path, "%s/%s", folder, name))
        return -1;
    FILE *f = file_open(path);
    char *piece = f ? mem_alloc(PIECE, 1) : NULL;
    int rc = piece ? 0 : -1;
    for (size_t n = PIECE; !rc && n == PIECE;) {
        n = fread(piece, 1, PIECE, f);
        hash = hash_more(hash, piece, n);
        if (ferror(f))
            rc = fail("%s: %s", path, strerror(errno));
    }
    mem_free(piece);
    if (f)
        fclose(f);
    snprintf(hex, HEX, "%016llx", (unsigned long long)hash);
    return rc;
}

// The hash of *state, which does not contain its own hash yet.
static int hash_state(const cJSON *state, char hex[HEX])
{
    char *text = cJSON_PrintUnformatted(state);
    if (!text)
        return fail("memory: none left for state.json");
    snprintf(hex, HEX, "%016llx",
             (unsigned long long)hash_bytes(text, strlen(text)));
    free(text);
    return 0;
}

int whole_seal(cJSON *state, const char *folder)
{
    char hex[HEX];
    cJSON *hashes = cJSON_AddObjectToObject(state, "files");
    for (int i = 0; i < FILES; i++) {
        if (!folder_has(folder, files[i]))
            continue;
        if (hash_file(folder, files[i], hex))
            return -1;
        cJSON_AddStringToObject(hashes, files[i], hex);
    }
    if (hash_state(state, hex))
        return -1;
    cJSON_AddStringToObject(state, "hash_xxh3", hex);
    return 0;
}

static int check_files(const cJSON *hashes, const char *folder, bool optimizer)
{
    const cJSON *one;
    if (hashes && !cJSON_IsObject(hashes))
        return fail("%s/state.json: damaged: its hashes have no names", folder);
    cJSON_ArrayForEach(one, hashes)
    {
        char hex[HEX];
        const char *name = one->string, *want = cJSON_GetStringValue(one);
        bool ours = false;
        for (int i = 0; i < FILES; i++)
            ours |= !strcmp(name, files[i]);
        if (!ours || !want)
            return fail("%s/state.json: damaged: a hash of %.60s", folder,
                        name);
        if (!optimizer && !strcmp(name, OPTIMIZER))
            continue;
        if (hash_file(folder, name, hex))
            return -1;
        if (strcmp(hex, want))
            return fail("%s/%s: damaged: its hash is %s, it was written with "
                        "%s",
                        folder, name, hex, want);
    }
    return 0;
}

static int check(cJSON *state, const char *folder, bool optimizer)
{
    char hex[HEX] = "";
    cJSON *own = cJSON_DetachItemFromObjectCaseSensitive(state, "hash_xxh3");
    const cJSON *hashes = cJSON_GetObjectItemCaseSensitive(state, "files");
    const char *want = cJSON_GetStringValue(own);
    int rc = 0;
    if (own || hashes) {
        rc = hash_state(state, hex);
        if (!rc && (!want || strcmp(hex, want)))
            rc = fail("%s/state.json: damaged: its hash is %s, it was written "
                      "with %s",
                      folder, hex, want ? want : "none");
    }
    cJSON_Delete(own);
    return rc || check_files(hashes, folder, optimizer) ? -1 : 0;
}

int whole_check(const char *folder, bool optimizer)
{
    char *text = folder_read(folder, "state.json");
    if (!text)
        return -1;
    cJSON *state = cJSON_Parse(text);
    int rc = state ? check(state, folder, optimizer)
                   : fail("%s/state.json: damaged: not JSON", folder);
    cJSON_Delete(state);
    mem_free(text);
    return rc;
}

int whole_check_file(const char *path)
{
    char folder[PATH];
    const char *slash = strrchr(path, '/');
    if (text_into(folder, sizeof folder, "%.*s",
                  slash ? (int)(slash - path) : 1, slash ? path : "."))
        return -1;
    return folder_has(folder, "state.json") ? whole_check(folder, false) : 0;
}
