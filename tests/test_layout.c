// test_layout.c - the parameter counts of presets, the tiling of the flat
// vector, the statistics of the initial weights, and what model_check()
// refuses.

#include "model/model.h"

#include "base/base.h"

#include <math.h>
#include <stdlib.h>

#include "tests/test.h"

static struct model_config preset(const char *name)
{
    struct model_config c;
    assert_int_equal(model_preset(name, &c), 0);
    return c;
}

static void released_models_have_their_parameter_counts(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t n;
    } known[] = {{"gpt2", 124439808},
                 {"gpt2-medium", 354823168},
                 {"gpt2-large", 774030080},
                 {"gpt2-xl", 1557611200}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct model_config c = preset(known[i].name);
        assert_int_equal(model_check(&c), 0);
        assert_int_equal(model_nparams(&c), known[i].n);
    }
    struct model_config slides = preset("slides");
    assert_int_equal(model_nparams(&slides) / 1000000, 105);
    assert_int_equal(slides.vocab, 26679);
}

static void every_named_preset_exists(void **state)
{
    (void)state;
    int count = 0;
    for (; model_preset_name(count); count++) {
        struct model_config c = preset(model_preset_name(count));
        if (c.vocab == 0)
            c.vocab = 65; // set by the data
        assert_int_equal(model_check(&c), 0);
    }
    assert_int_equal(count, 8);
    struct model_config c = {.layers = 77};
    assert_int_equal(model_preset("gtp2", &c), -1);
    assert_non_null(strstr(fail_message(), "\"gtp2\""));
    for (int i = 0; i < count; i++) // the remedy names them all
        assert_non_null(strstr(fail_message(), model_preset_name(i)));
    assert_int_equal(c.layers, 77);
}

static void tensors_tile_the_vector(void **state)
{
    (void)state;
    struct model_config c = {3, 2, 8, 5, 11, 0, {0}};
    size_t at = 0;
    int decaying = 0, residual = 0;
    for (int i = 0; i < model_ntensors(&c); i++) {
        struct tensor t;
        model_tensor(&c, i, &t);
        assert_int_equal(t.off, at);
        assert_int_equal(t.n, t.shape[0] * (t.ndim == 2 ? t.shape[1] : 1));
        assert_int_equal(t.decay, t.ndim == 2);
        decaying += t.decay;
        residual += t.residual;
        at += t.n;
    }
    assert_int_equal(at, model_nparams(&c));
    assert_int_equal(model_ntensors(&c), 2 + 12 * 3 + 2);
    assert_int_equal(decaying, 2 + 4 * 3);
    assert_int_equal(residual, 2 * 3);
}

static void names_and_shapes_are_hugging_faces(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int ndim;
        size_t rows, columns;
    } layer[MODEL_PER_LAYER] = {
        {"h.1.ln_1.weight", 1, 8, 0},
        {"h.1.ln_1.bias", 1, 8, 0},
        {"h.1.attn.c_attn.weight", 2, 8, 24},
        {"h.1.attn.c_attn.bias", 1, 24, 0},
        {"h.1.attn.c_proj.weight", 2, 8, 8},
        {"h.1.attn.c_proj.bias", 1, 8, 0},
        {"h.1.ln_2.weight", 1, 8, 0},
        {"h.1.ln_2.bias", 1, 8, 0},
        {"h.1.mlp.c_fc.weight", 2, 8, 32},
        {"h.1.mlp.c_fc.bias", 1, 32, 0},
        {"h.1.mlp.c_proj.weight", 2, 32, 8},
        {"h.1.mlp.c_proj.bias", 1, 8, 0},
    };
    struct model_config c = {2, 2, 8, 5, 11, 0, {0}};
    struct tensor t;
    for (int k = 0; k < MODEL_PER_LAYER; k++) {
        model_tensor(&c, 2 + MODEL_PER_LAYER + k, &t);
        assert_string_equal(t.name, layer[k].name);
        assert_int_equal(t.ndim, layer[k].ndim);
        assert_int_equal(t.shape[0], layer[k].rows);
        if (t.ndim == 2)
            assert_int_equal(t.shape[1], layer[k].columns);
    }
    model_tensor(&c, 0, &t);
    assert_string_equal(t.name, "wte.weight");
    assert_int_equal(t.shape[0], 11);
    model_tensor(&c, 1, &t);
    assert_string_equal(t.name, "wpe.weight");
    assert_int_equal(t.shape[0], 5);
    model_tensor(&c, model_ntensors(&c) - 2, &t);
    assert_string_equal(t.name, "ln_f.weight");
    model_tensor(&c, model_ntensors(&c) - 1, &t);
    assert_string_equal(t.name, "ln_f.bias");
}

static void initial_weights_have_their_deviations(void **state)
{
    (void)state;
    struct model_config c = {4, 4, 128, 64, 65, 0, {0}};
    size_t n = model_nparams(&c);
    float *p = mem_alloc(n, sizeof *p), *again = mem_alloc(n, sizeof *p);
    assert_non_null(p);
    assert_non_null(again);
    model_init(&c, 1234, p);
    model_init(&c, 1234, again);
    assert_memory_equal(p, again, n * sizeof *p);
    model_init(&c, 1235, again);
    assert_memory_not_equal(p, again, n * sizeof *p);
    for (int i = 0; i < model_ntensors(&c); i++) {
        struct tensor t;
        model_tensor(&c, i, &t);
        double sum = 0, squares = 0;
        for (size_t k = 0; k < t.n; k++) {
            sum += p[t.off + k];
            squares += (double)p[t.off + k] * p[t.off + k];
        }
        if (t.ndim == 1) { // LayerNorm's weights are 1, all biases 0
            bool one = strstr(t.name, "ln_") && strstr(t.name, ".weight");
            assert_true(sum == (one ? (double)t.n : 0));
            assert_true(squares == (one ? (double)t.n : 0));
            continue;
        }
        double count = (double)t.n;
        double sigma = strstr(t.name, "c_proj") ? 0.02 / sqrt(8) : 0.02;
        assert_true(fabs(sum / count) < 5 * sigma / sqrt(count));
        assert_true(fabs(sqrt(squares / count) / sigma - 1) < 5 / sqrt(count));
    }
    mem_free(again);
    mem_free(p);
}

static void refused(struct model_config c, const char *names)
{
    assert_int_equal(model_check(&c), -1);
    if (!strstr(fail_message(), names))
        print_error("\"%s\" does not say \"%s\"\n", fail_message(), names);
    assert_non_null(strstr(fail_message(), names));
}

static void impossible_models_are_refused(void **state)
{
    (void)state;
    struct model_config good = {2, 4, 32, 16, 67, 0, {0}};
    assert_int_equal(model_check(&good), 0);
    int bad[] = {0, -1, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct model_config c = good;
        c.layers = bad[i];
        refused(c, "layers");
        c = good, c.heads = bad[i];
        refused(c, "heads");
        c = good, c.channels = bad[i];
        refused(c, "channels");
        c = good, c.context = bad[i];
        refused(c, "context");
        c = good, c.vocab = bad[i];
        refused(c, "vocab_size");
    }
    struct model_config c = good;
    c.heads = 5;
    refused(c, "5 does not divide channels 32");
    c = good, c.dropout = 1;
    refused(c, "dropout");
    c.dropout = -0.1f;
    refused(c, "dropout");
    c.dropout = NAN;
    refused(c, "dropout");
    c = (struct model_config){1000, 1, 1 << 20, 1 << 20, 1 << 24, 0, {0}};
    refused(c, "addressed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(released_models_have_their_parameter_counts),
        cmocka_unit_test(every_named_preset_exists),
        cmocka_unit_test(tensors_tile_the_vector),
        cmocka_unit_test(names_and_shapes_are_hugging_faces),
        cmocka_unit_test(initial_weights_have_their_deviations),
        cmocka_unit_test(impossible_models_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
