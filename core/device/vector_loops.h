// vector_loops.h - the loops of vector.c over vectors of LANES floats.
//
// Each instruction set's file includes it once, after it has defined LANES,
// load(), store(), VECTOR_OPS and VECTOR_NAME. The compiler's operators add and
// multiply vectors. The number format is the same in every iteration, so the
// compiler moves its choice out of the loop.

static void loop_cast(void *dst, enum dtype to, const void *src,
                      enum dtype from, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store(dst, to, i, load(src, from, i));
    for (; i < n; i++)
        vector_store_one(dst, to, i, vector_load_one(src, from, i));
}

static void loop_cast_scaled(void *dst, enum dtype to, const float *src,
                             float scale, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store(dst, to, i, load(src, DTYPE_F32, i) * scale);
    for (; i < n; i++)
        vector_store_one(dst, to, i, src[i] * scale);
}

static void loop_add(float *dst, const void *src, enum dtype from, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store(dst, DTYPE_F32, i, load(dst, DTYPE_F32, i) + load(src, from, i));
    for (; i < n; i++)
        dst[i] += vector_load_one(src, from, i);
}

static void loop_sum(float *const *dst, int d, const float *const *src, int k,
                     size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        __typeof__(load(dst, DTYPE_F32, i)) sum = load(src[0], DTYPE_F32, i);
        for (int j = 1; j < k; j++)
            sum += load(src[j], DTYPE_F32, i);
        for (int j = 0; j < d; j++)
            store(dst[j], DTYPE_F32, i, sum);
    }
    for (; i < n; i++) {
        float sum = src[0][i];
        for (int j = 1; j < k; j++)
            sum += src[j][i];
        for (int j = 0; j < d; j++)
            dst[j][i] = sum;
    }
}

static void loop_add_into_wire(void *wire, enum dtype type, const float *acc,
                               size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store(wire, type, i, load(acc, DTYPE_F32, i) + load(wire, type, i));
    for (; i < n; i++)
        vector_store_one(wire, type, i,
                         acc[i] + vector_load_one(wire, type, i));
}

const struct vector_ops VECTOR_OPS = {
    .name = VECTOR_NAME,
    .cast = loop_cast,
    .cast_scaled = loop_cast_scaled,
    .add = loop_add,
    .sum = loop_sum,
    .add_into_wire = loop_add_into_wire,
};
