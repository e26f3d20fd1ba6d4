// fuzz_ini.c - any bytes as an INI file: taken or refused, never a crash, and
// what was taken reads back as the same options.

#include "config/ini.h"

#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run r;
    config_defaults(&r);
    if (config_ini(&r, "fuzz.ini", (const char *)data, size))
        return 0;
    struct opts *o;
    CHECK(opts_open(&o, r.sync_opts) == 0);
    opts_close(&o);
    (void)config_check(&r);
    return 0;
}
