// amx.c - whether attention may use this processor's tiles: by CPUID, the
// kernel's permission and a trial.
//
// Tiles are 8 KiB of state for each thread, so a process must ask Linux for
// permission to use them. The trial multiplies small whole numbers, whose
// products and sums are exact in any order. It fails if the tiles' layout is
// not the one in tiles.h.

#include "model/cpu/amx.h"

#include "model/cpu/tiles.h"

#include "base/base.h"
#include "base/half.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

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

// arch_prctl(ARCH_REQ_XCOMP_PERM, tile data); Linux 5.16.
static bool is_granted(void)
{
    enum { REQUEST = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

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

bool amx_usable(void)
{
    return has_tiles() && is_granted() && is_right();
}
