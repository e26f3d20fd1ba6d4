// onednn.c - a matmul of oneDNN with its arguments: the code for all versions.

#include "model/cpu/onednn.h"

int onednn_open(const struct onednn_matmul *m, dnnl_engine_t engine,
                dnnl_primitive_t *primitive, dnnl_exec_arg_t args[ONEDNN_ARGS])
{
    static const struct {
        int name;
        dnnl_query_t what;
        int i;
    } rows[ONEDNN_ARGS] = {
        {DNNL_ARG_SRC, dnnl_query_src_md, 0},
        {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, 0},
        {DNNL_ARG_DST, dnnl_query_dst_md, 0},
        {DNNL_ARG_BIAS, dnnl_query_weights_md, 1},
    };
    int n = m->bias ? ONEDNN_ARGS : ONEDNN_ARGS - 1;
    dnnl_primitive_desc_t desc = onednn_describe(m, engine);
    if (!desc)
        return 0;
    DNNL(dnnl_primitive_create(primitive, desc));
    for (int i = 0; i < n; i++) {
        args[i].arg = rows[i].name;
        DNNL(dnnl_memory_create(&args[i].memory,
                                dnnl_primitive_desc_query_md(desc, rows[i].what,
                                                             rows[i].i),
                                engine, m->memory));
    }
    dnnl_primitive_desc_destroy(desc);
    return n;
}
