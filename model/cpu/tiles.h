// tiles.h - matrix products on AMX's tiles, or on tiles in plain C.
//
// A tile is a register of up to 16 rows of up to 64 bytes; there are eight.
// Three of them make a product: c (16, 16) of floats, a (16, 32) of bf16, and
// b, (32, 16) of bf16, stored by pairs of rows, so that a row of the tile holds
// 16 pairs (VNNI):
//
//     b's tile, row r:   B[2r][0] B[2r+1][0]   B[2r][1] B[2r+1][1]   ...
//
// TDPBF16PS adds 32 products to each number of c. It sums the products of even
// k and those of odd k separately, each from zero by fused multiply-adds in
// order. Then it adds the odd sum to the even one, and the result to c. It
// rounds to nearest even, reads denormal numbers as zero, and writes zero
// instead of denormal results (Intel's Software Developer's Manual, volume 2,
// TDPBF16PS).
//
// The tiles' shapes are a configuration of 64 bytes. Its only format so far,
// palette 1, is struct tile_shapes. The operations are the processor's
// instructions, or with TILES_PLAIN loops that compute the same, from the file
// of that name: tests use them on machines without AMX. Attention was only
// tested with those, because no machine at hand has AMX.

#pragma once

#include <stddef.h>
#include <stdint.h>

enum { TILES = 8, TILE_ROWS = 16, TILE_BYTES = 64, TILE_PALETTE = 1 };

// What LDTILECFG reads.
struct tile_shapes {
    uint8_t palette, start_row;
    uint8_t zero[14];
    uint16_t bytes[16]; // of a row, by tile
    uint8_t rows[16];
};

_Static_assert(sizeof(struct tile_shapes) == 64, "LDTILECFG reads 64 bytes");

#if defined(TILES_PLAIN)
#include TILES_PLAIN
#else

// The operations are macros, since an instruction names its tiles by number.
// They are in assembly because the loads of the compiler's intrinsics do not
// say that they read memory (GCC 12). The compiler might move earlier stores
// behind such loads.

// Empty, because the tiles are registers of the processor.
struct tiles {
    char none;
};

static inline void tile_config(struct tiles *x, const struct tile_shapes *s)
{
    (void)x;
    __asm__ volatile("ldtilecfg %0" ::"m"(*s) : "memory");
}

// After this, the kernel need not save the tiles when it switches threads.
static inline void tile_release(struct tiles *x)
{
    (void)x;
    __asm__ volatile("tilerelease" ::: "memory");
}

#define tile_zero(x, t) tile_do(x, "tilezero %%tmm" #t ::)
#define tile_dot(x, c, a, b)                                                   \
    tile_do(x, "tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::)
#define tile_load(x, t, from, stride)                                          \
    tile_do(x, "tileloadd (%0,%1,1), %%tmm" #t ::"r"(from), "r"(stride)        \
            : "memory")
#define tile_store(x, t, to, stride)                                           \
    tile_do(x, "tilestored %%tmm" #t ", (%0,%1,1)" ::"r"(to), "r"(stride)      \
            : "memory")

#define tile_do(x, ...)                                                        \
    do {                                                                       \
        (void)(x);                                                             \
        __asm__ volatile(__VA_ARGS__);                                         \
    } while (0)

#endif

// A block of c is tiles 0 to 3. Tiles 4 and 5 hold rows of a, 6 and 7 columns
// of b. All tiles have their full size.
enum { TILE_BLOCK = 2 * TILE_ROWS };

static inline void tiles_begin(struct tiles *x)
{
    struct tile_shapes shapes = {.palette = TILE_PALETTE};
    for (int i = 0; i < TILES; i++) {
        shapes.bytes[i] = TILE_BYTES;
        shapes.rows[i] = TILE_ROWS;
    }
    tile_config(x, &shapes);
}

static inline void tiles_end(struct tiles *x)
{
    tile_release(x);
}

// c (M, N) = (or +=) a (M, K) b, where b is (K / 2, N) pairs. M, N and K are
// multiples of TILE_BLOCK. The rows of a are lda numbers apart, those of c ldc
// numbers, and those of b ldb pairs.
static void tiles_product(struct tiles *x, float *c, size_t ldc,
                          const uint16_t *a, size_t lda, const uint16_t *b,
                          size_t ldb, int M, int N, int K, int add)
{
    const size_t row_c = ldc * 4, row_a = lda * 2, row_b = ldb * 4;
    for (int i = 0; i < M; i += TILE_BLOCK)
        for (int j = 0; j < N; j += TILE_BLOCK) {
            float *upper = c + i * ldc + j, *lower = upper + TILE_ROWS * ldc;
            if (add) {
                tile_load(x, 0, upper, row_c);
                tile_load(x, 1, upper + TILE_ROWS, row_c);
                tile_load(x, 2, lower, row_c);
                tile_load(x, 3, lower + TILE_ROWS, row_c);
            } else {
                tile_zero(x, 0);
                tile_zero(x, 1);
                tile_zero(x, 2);
                tile_zero(x, 3);
            }
            for (int k = 0; k < K; k += TILE_BLOCK) {
                const uint16_t *left = a + i * lda + k;
                const uint16_t *right = b + (k / 2 * ldb + j) * 2;
                tile_load(x, 4, left, row_a);
                tile_load(x, 5, left + TILE_ROWS * lda, row_a);
                tile_load(x, 6, right, row_b);
                tile_load(x, 7, right + 2 * TILE_ROWS, row_b);
                tile_dot(x, 0, 4, 6);
                tile_dot(x, 1, 4, 7);
                tile_dot(x, 2, 5, 6);
                tile_dot(x, 3, 5, 7);
            }
            tile_store(x, 0, upper, row_c);
            tile_store(x, 1, upper + TILE_ROWS, row_c);
            tile_store(x, 2, lower, row_c);
            tile_store(x, 3, lower + TILE_ROWS, row_c);
        }
}
