// fuzz_ini.c - reads any bytes as an INI file. They may be accepted or refused,
// but must not crash the reader. Accepted settings, written as text and read
// again, must be the same.

#include "base/base.h"
#include "config/keys.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run r, back;
    config_defaults(&r);
    config_defaults(&back);
    if (config_ini(&r, "fuzz.ini", (const char *)data, size))
        return 0;
    for (int i = 0; i < run_keys.n; i++) {
        const struct key *k = &run_keys.rows[i];
        char buf[CONFIG_PATH], again[CONFIG_PATH];
        const char *value = key_show(k, key_base(k, &r), buf);
        CHECK(key_set(k, key_base(k, &back), value) == 0);
        CHECK(!strcmp(key_show(k, key_base(k, &back), again), value));
    }
    (void)config_check(&r);
    return 0;
}
