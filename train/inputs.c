// inputs.c - hashes what a run reads.

#include "train/inputs.h"

#include "base/base.h"
#include "config/config.h"
#include "data/data.h"
#include "data/token_file.h"
#include "telemetry/manifest.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

void inputs_data(const struct run *r, struct data_config *out)
{
    *out = (struct data_config){
        .path = r->data,
        .vocab = r->vocab,
        .val_fraction = r->val_fraction,
        .val_unused = !r->eval,
        .batch = 1,
        .tokens = 1,
        .accum = 1,
        .world = 1,
        .seed = (uint64_t)r->seed,
        .order = (enum data_order)r->order,
        .same_draw = r->settings.mistake.kind == MISTAKE_SAME_SEED,
        .max_bytes = 4u << 20,
    };
}

static int add_file(struct manifest *m, const char *key, const char *path)
{
    struct file f;
    if (file_map(&f, key, path))
        return -1;
    manifest_hash(m, key, hash_bytes(f.at, f.bytes));
    file_unmap(&f);
    return 0;
}

int inputs_write(struct manifest *m, const struct run *r)
{
    const char *lab = r->settings.lab;
    // a run that goes on does not read it again
    bool init = strcmp(r->init, "random") && !access(r->init, F_OK);
    manifest_begin(m, "inputs");
    int rc = init ? add_file(m, "init_file", r->init) : 0;
    if (!rc && *lab)
        rc = add_file(m, "lab_file", lab);
    manifest_end(m);
    return rc;
}

int inputs_write_data(struct manifest *m, const struct run *r)
{
    struct data_config c;
    struct data_info info;
    struct data *d;
    inputs_data(r, &c);
    if (data_open(&d, &c))
        return -1;
    data_info(d, &info);
    manifest_begin(m, "data");
    manifest_hash(m, "hash_xxh3", info.hash);
    manifest_end(m);
    data_close(&d);
    return 0;
}
