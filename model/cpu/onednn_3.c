// onednn_3.c - oneDNN 3: descriptors of memory are created and destroyed, and
// the descriptor of a primitive can itself move on to the next kernel.

#include "model/cpu/onednn.h"

static dnnl_memory_desc_t describe(const struct onednn_matrix *m)
{
    dnnl_memory_desc_t d;
    dnnl_dims_t dims, strides;
    int n = onednn_shape(m, dims, strides);
    if (m->packed)
        DNNL(dnnl_memory_desc_create_with_tag(&d, n, dims, m->type,
                                              dnnl_format_tag_any));
    else
        DNNL(dnnl_memory_desc_create_with_strides(&d, n, dims, m->type,
                                                  strides));
    return d;
}

// Moves d to the first kernel that may be used.
static void choose(dnnl_primitive_desc_t d, bool (*takes)(const char *name))
{
    for (;;) {
        const char *name = "";
        DNNL(dnnl_primitive_desc_query(d, dnnl_query_impl_info_str, 0, &name));
        if (!takes || takes(name))
            return;
        DNNL(dnnl_primitive_desc_next_impl(d));
    }
}

dnnl_primitive_desc_t onednn_describe(const struct onednn_matmul *m,
                                      dnnl_engine_t engine)
{
    const struct onednn_matrix row = {
        1, 1, m->out.columns, false, m->bias_type, false};
    dnnl_memory_desc_t a = describe(&m->a), b = describe(&m->b);
    dnnl_memory_desc_t out = describe(&m->out);
    dnnl_memory_desc_t bias = m->bias ? describe(&row) : NULL;
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t post;
    dnnl_primitive_desc_t desc = NULL;
    DNNL(dnnl_primitive_attr_create(&attr));
    DNNL(dnnl_post_ops_create(&post));
    if (m->add)
        DNNL(dnnl_post_ops_append_sum(post, 1, 0, dnnl_data_type_undef));
    DNNL(dnnl_primitive_attr_set_post_ops(attr, post));
    if (dnnl_matmul_primitive_desc_create(&desc, engine, a, b, bias, out, attr))
        desc = NULL;
    else
        choose(desc, m->takes);
    dnnl_post_ops_destroy(post);
    dnnl_primitive_attr_destroy(attr);
    if (bias)
        dnnl_memory_desc_destroy(bias);
    dnnl_memory_desc_destroy(out);
    dnnl_memory_desc_destroy(b);
    dnnl_memory_desc_destroy(a);
    return desc;
}

size_t onednn_bytes(const dnnl_exec_arg_t *arg)
{
    const_dnnl_memory_desc_t d;
    DNNL(dnnl_memory_get_memory_desc(arg->memory, &d));
    return dnnl_memory_desc_get_size(d);
}
