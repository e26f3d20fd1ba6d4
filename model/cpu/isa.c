// isa.c - which of the compiled kernels this processor can run. Attention may
// use tiles if CPUID, the kernel's permission and a trial allow it.

#include "model/kernels.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

#ifdef MODEL_X86
#include "model/cpu/tiles.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { FORMATS = 3 };

// In the order of enum dtype.
#define TABLES(isa)                                                            \
    extern const struct kernels kernels_##isa##_fp32, kernels_##isa##_fp16,    \
        kernels_##isa##_bf16;                                                  \
    static const struct kernels *const isa[FORMATS] = {&kernels_##isa##_fp32,  \
                                                       &kernels_##isa##_fp16,  \
                                                       &kernels_##isa##_bf16}

TABLES(baseline);

static bool always(void)
{
    return true;
}

#ifdef MODEL_X86
TABLES(v3);
TABLES(v4);
TABLES(v4bf);

extern const struct kernels kernels_amx_bf16;

static const struct kernels *const amx[FORMATS] = {[DTYPE_BF16] =
                                                       &kernels_amx_bf16};

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

// Whether the processor has tiles, and the system saves their state (bits 17
// and 18 of XCR0).
static bool has_tiles(void)
{
    enum { OSXSAVE = 1 << 27, AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };
    enum { NEED = AMX_BF16 | AMX_TILE, STATE = 3 << 17 };
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE) ||
        !__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & NEED) != NEED)
        return false;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & STATE) == STATE;
}

// Tiles are 8 KiB of state for each thread, so a process must ask Linux for
// permission to use them: arch_prctl(ARCH_REQ_XCOMP_PERM, tile data), Linux
// 5.16.
static bool is_granted(void)
{
    enum { REQUEST = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

// Whether a product on tiles equals that of plain loops. Its small whole
// numbers are exact in any order. It fails if the tiles' layout is not the one
// in tiles.h.
static bool is_right(void)
{
    enum { N = TILE_BLOCK };
    static const int most = 7;
    struct tiles x;
    uint16_t a[N][N], pairs[N / 2][N][2];
    float b[N][N], c[N][N];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = bf16_from_float((float)((i * 5 + j * 3) % most - 3));
            b[i][j] = (float)((i * 2 + j * 11) % most - 2);
            pairs[i / 2][j][i % 2] = bf16_from_float(b[i][j]);
        }
    tiles_begin(&x);
    tiles_product(&x, &c[0][0], N, &a[0][0], N, &pairs[0][0][0], N, N, N, N, 0);
    tiles_end(&x);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            float want = 0;
            for (int k = 0; k < N; k++)
                want += bf16_to_float(a[i][k]) * b[k][j];
            if (c[i][j] != want) {
                log_line("model: AMX tiles compute %g instead of %g at "
                         "(%d, %d): attention will not use them",
                         (double)c[i][j], (double)want, i, j);
                return false;
            }
        }
    return true;
}

static bool has_amx(void)
{
    return has_v4bf() && has_tiles() && is_granted() && is_right();
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

const char *kernels_isa(int i)
{
    return i < SETS ? sets[i].name : NULL;
}

const struct kernels *kernels_named(enum dtype format, const char *isa)
{
    for (int i = 0; i < SETS; i++)
        if (strcmp(sets[i].name, isa) == 0 && sets[i].tables[format] &&
            sets[i].runs())
            return sets[i].tables[format];
    return NULL;
}

const struct kernels *kernels_find(enum dtype format)
{
    const char *forced = getenv("MODEL_ISA");
    const struct kernels *k = NULL;
    if (forced && *forced) {
        k = kernels_named(format, forced);
        if (!k)
            fail("model: this machine cannot run MODEL_ISA=%s; try: baseline",
                 forced);
        return k;
    }
    for (int i = SETS - 1; !k; i--) // the baseline always runs
        k = kernels_named(format, sets[i].name);
    return k;
}
