// onednn_2.c - oneDNN 2: descriptors of memory and of operations are structs.

#include "model/cpu/onednn.h"

static void describe(dnnl_memory_desc_t *d, const struct onednn_matrix *m)
{
    dnnl_dims_t dims, strides;
    int n = onednn_shape(m, dims, strides);
    if (m->packed)
        DNNL(dnnl_memory_desc_init_by_tag(d, n, dims, m->type,
                                          dnnl_format_tag_any));
    else
        DNNL(dnnl_memory_desc_init_by_strides(d, n, dims, m->type, strides));
}

// The first kernel that may be used; NULL if the library has none.
static dnnl_primitive_desc_t choose(const dnnl_matmul_desc_t *matmul,
                                    const_dnnl_primitive_attr_t attr,
                                    dnnl_engine_t engine,
                                    bool (*takes)(const char *name))
{
    dnnl_primitive_desc_iterator_t i;
    if (dnnl_primitive_desc_iterator_create(&i, matmul, attr, engine, NULL))
        return NULL;
    for (;;) {
        const char *name = "";
        dnnl_primitive_desc_t d = dnnl_primitive_desc_iterator_fetch(i);
        CHECK(d);
        DNNL(dnnl_primitive_desc_query(d, dnnl_query_impl_info_str, 0, &name));
        if (!takes || takes(name)) {
            dnnl_primitive_desc_iterator_destroy(i);
            return d;
        }
        dnnl_primitive_desc_destroy(d);
        DNNL(dnnl_primitive_desc_iterator_next(i));
    }
}

dnnl_primitive_desc_t onednn_describe(const struct onednn_matmul *m,
                                      dnnl_engine_t engine)
{
    const struct onednn_matrix row = {
        1, 1, m->out.columns, false, m->bias_type, false};
    dnnl_memory_desc_t a, b, bias, out;
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t post;
    dnnl_matmul_desc_t matmul;
    describe(&a, &m->a);
    describe(&b, &m->b);
    describe(&out, &m->out);
    if (m->bias)
        describe(&bias, &row);
    DNNL(dnnl_primitive_attr_create(&attr));
    DNNL(dnnl_post_ops_create(&post));
    if (m->add)
        DNNL(dnnl_post_ops_append_sum(post, 1));
    DNNL(dnnl_primitive_attr_set_post_ops(attr, post));
    DNNL(dnnl_matmul_desc_init(&matmul, &a, &b, m->bias ? &bias : NULL, &out));
    dnnl_primitive_desc_t desc = choose(&matmul, attr, engine, m->takes);
    dnnl_post_ops_destroy(post);
    dnnl_primitive_attr_destroy(attr);
    return desc;
}

size_t onednn_bytes(const dnnl_exec_arg_t *arg)
{
    const dnnl_memory_desc_t *d;
    DNNL(dnnl_memory_get_memory_desc(arg->memory, &d));
    return dnnl_memory_desc_get_size(d);
}
