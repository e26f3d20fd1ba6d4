// isa.c - which of the compiled kernels this processor can run.

#include "model/kernels.h"

#include "base/base.h"
#include "model/cpu/amx.h"

#include <stdlib.h>
#include <string.h>

enum { FORMATS = 3 };

// In the order of enum dtype.
#define TABLES(isa)                                                            \
    extern const struct kernels kernels_##isa##_fp32, kernels_##isa##_fp16,    \
        kernels_##isa##_bf16;                                                  \
    static const struct kernels *const isa[FORMATS] = {&kernels_##isa##_fp32,  \
                                                       &kernels_##isa##_fp16,  \
                                                       &kernels_##isa##_bf16}

TABLES(baseline);
#ifdef MODEL_X86
TABLES(v3);
TABLES(v4);
TABLES(v4bf);

extern const struct kernels kernels_amx_bf16;

static const struct kernels *const amx[FORMATS] = {[DTYPE_BF16] =
                                                       &kernels_amx_bf16};
#endif

static bool always(void)
{
    return true;
}

#ifdef MODEL_X86
static bool has_v3(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2");
}

static bool has_v4(void)
{
    return has_v3() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") &&
           __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

static bool has_v4bf(void)
{
    return has_v4() && __builtin_cpu_supports("avx512bf16");
}

static bool has_amx(void)
{
    return has_v4bf() && amx_usable();
}
#endif

static const struct {
    const char *name;
    bool (*runs)(void);
    const struct kernels *const *tables;
} sets[] = {
    {"baseline", always, baseline},
#ifdef MODEL_X86
    {"v3", has_v3, v3},
    {"v4", has_v4, v4},
    {"v4bf", has_v4bf, v4bf},
    {"amx", has_amx, amx},
#endif
};

enum { SETS = sizeof sets / sizeof *sets };

const char *const *kernels_isas(void)
{
#ifdef MODEL_X86
    static const char *const names[] = {"baseline", "v3",  "v4",
                                        "v4bf",     "amx", NULL};
#else
    static const char *const names[] = {"baseline", NULL};
#endif
    return names;
}

const struct kernels *kernels_named(enum dtype format, const char *isa)
{
    for (int i = 0; i < SETS; i++)
        if (strcmp(sets[i].name, isa) == 0 && sets[i].runs())
            return sets[i].tables[format];
    return NULL;
}

const struct kernels *kernels_find(enum dtype format)
{
    const char *forced = getenv("MODEL_ISA");
    if (forced && *forced) {
        const struct kernels *k = kernels_named(format, forced);
        if (!k)
            fail("model: this machine cannot run MODEL_ISA=%s; try: baseline",
                 forced);
        return k;
    }
    for (int i = SETS - 1; i > 0; i--)
        if (sets[i].tables[format] && sets[i].runs())
            return sets[i].tables[format];
    return sets[0].tables[format];
}
