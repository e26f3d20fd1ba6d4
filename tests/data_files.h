// data_files.h - shared by the tests of data: a folder of files that they make,
// and data opened on these files. Include it last.

#pragma once

#include "base/base.h"
#include "data/data.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/test.h"

// Like cmocka's fail_msg(), which calls cmocka's fail() instead of ours.
#define wrong(...)                                                             \
    (print_error(__VA_ARGS__), print_error("\n"), _fail(__FILE__, __LINE__))

enum { T = 8, TOKENS = 4001, MAGIC = 20240520 };

static char folder[] = "/tmp/lockstep_data_XXXXXX";
static char paths[16][64];

// Makes a file in the tests' folder. Returns its path, which stays valid until
// 16 further calls.
static inline const char *put(const char *name, const void *bytes, size_t n)
{
    static int next;
    char *path = paths[next++ % 16];
    snprintf(path, 64, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
    return path;
}

// Makes a file of tokens 0, 1, 2, .. So a window's first token identifies it.
static inline const char *put_counting(const char *name, size_t n)
{
    uint16_t *token = malloc(n * sizeof *token);
    for (size_t i = 0; i < n; i++)
        token[i] = (uint16_t)i;
    const char *path = put(name, token, n * sizeof *token);
    free(token);
    return path;
}

static inline const char *put_shard(const char *name, int32_t magic,
                                    int32_t version, int32_t says, size_t n)
{
    size_t bytes = 1024 + 2 * n;
    char *file = calloc(bytes, 1);
    int32_t header[] = {magic, version, says};
    memcpy(file, header, sizeof header);
    for (size_t i = 0; i < n; i++)
        file[1024 + 2 * i] = (char)(i % 100);
    const char *path = put(name, file, bytes);
    free(file);
    return path;
}

static inline struct data_config config(const char *path)
{
    return (struct data_config){
        .path = path,
        .vocab = "bytes",
        .batch = 2,
        .tokens = T,
        .accum = 1,
        .world = 1,
        .seed = 5,
        .max_bytes = 1 << 20,
    };
}

static inline struct data *opened(const struct data_config *c)
{
    struct data *d = NULL;
    if (data_open(&d, c))
        wrong("%s", fail_message());
    return d;
}

static inline struct data_info info_of(const struct data *d)
{
    struct data_info info;
    data_info(d, &info);
    return info;
}

static inline int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}
