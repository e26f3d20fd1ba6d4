// tiles_amx.h - the operations of tiles.h as the processor's instructions.
//
// These are macros, since an instruction names its tiles by number. They are in
// assembly because the loads of the compiler's intrinsics do not say that they
// read memory (GCC 12). The compiler might move earlier stores behind such
// loads.

#pragma once

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
