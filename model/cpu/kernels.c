// kernels.c - all operations as one unit, compiled once for each storage format
// (REAL_FORMAT) and instruction set (the compiler's -march, KERNELS_ISA). In
// bf16 attention may use tiles (KERNELS_TILES).
//
// The build names the table: KERNELS_TABLE=kernels_v4_bf16, for example.

#include "model/kernels.h"

#include "model/cpu/lanes.h"
#include "model/cpu/mask.h"
#include "model/cpu/real.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "model/cpu/vector_ops.c"

#include "model/cpu/embed.c"
#include "model/cpu/gelu.c"
#include "model/cpu/loss.c"
#include "model/cpu/norm.c"

#include "model/cpu/attention_rows.c"
#include "model/cpu/tile.c"

#include "model/cpu/attention_block.c"
#if defined(KERNELS_TILES)
#include "model/cpu/tiles.h"

#include "model/cpu/attention_tiles.c"
#else
#include "model/cpu/attention.c"
#endif

extern const struct kernels KERNELS_TABLE;

const struct kernels KERNELS_TABLE = {
    .isa = KERNELS_ISA,
    .format = REAL_FORMAT == REAL_FP32   ? DTYPE_F32
              : REAL_FORMAT == REAL_BF16 ? DTYPE_BF16
                                         : DTYPE_F16,
    .embed = embed,
    .embed_backward = embed_backward,
    .embed_words = embed_words,
    .embed_places = embed_places,
    .norm = norm,
    .norm_backward = norm_backward,
    .gelu = gelu,
    .gelu_backward = gelu_backward,
    .attention = attention,
    .attention_backward = attention_backward,
    .attention_block = attention_block,
    .attention_block_backward = attention_block_backward,
    .loss = loss,
    .loss_parts = loss_parts,
    .loss_joined = loss_joined,
    .mean = mean_of,
    .sum_rows = sum_rows,
    .mask_rows = mask_rows,
    .fill_rows = fill_rows,
    .cast_up = cast_up,
    .cast_down = cast_down,
    .zero = zero,
    .settle = settle,
    .add_parts = add_gathered,
    .transpose = transpose,
    .copy_columns = copy_columns,
};
