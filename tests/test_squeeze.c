// test_squeeze.c - the compressors: what they send and what they keep add up,
// messages have the bytes of the law, and malformed messages are refused.

#include "squeeze/squeeze.h"

#include "base/base.h"
#include "base/half.h"
#include "base/rng.h"
#include "config/config.h"
#include "group/group.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

// 128 is a block of int8, and 256 one of sign.
static const size_t sizes[] = {0,   1,   2,   3,   31,  32,  33,   63,
                               127, 128, 129, 255, 256, 257, 1000, 20011};
enum { SIZES = sizeof sizes / sizeof *sizes, MOST = 20011, KINDS = 3 };

static const enum squeeze_kind kinds[KINDS] = {SQUEEZE_TOPK, SQUEEZE_INT8,
                                               SQUEEZE_SIGN};

// One encoding: what went in, what was kept, what the message says.
struct coded {
    const struct squeeze_ops *ops;
    struct sync_settings set;
    size_t n, bytes;
    float x[MOST], left[MOST], sent[MOST];
    char *message; // `bytes` bytes, and not one more
    int rc;        // of add()
};

static struct coded *coded;

static struct sync_settings settings(enum squeeze_kind kind)
{
    struct sync_settings s;
    settings_defaults(&s);
    s.squeeze = kind;
    s.density = 0.1;
    return s;
}

// Encodes coded->x[0..n), and decodes the message.
static void code(const struct sync_settings *set, size_t n, uint64_t key)
{
    struct coded *c = coded;
    c->ops = squeeze_find(set->squeeze);
    c->set = *set;
    c->n = n;
    c->bytes = c->ops->bytes(set, n);
    free(c->message);
    c->message = malloc(c->bytes + !c->bytes);
    void *scratch = c->ops->scratch ? malloc(c->ops->scratch(n) + 1) : NULL;
    assert_non_null(c->message);
    memset(c->message, 0x5a, c->bytes); // what is not written is seen
    memcpy(c->left, c->x, n * sizeof *c->x);
    memset(c->sent, 0, sizeof c->sent);
    c->ops->encode(set, key, c->left, n, c->message, scratch);
    c->rc = c->ops->add(set, c->message, n, c->sent);
    free(scratch);
}

static void fill_integers(size_t n, uint64_t key, int most)
{
    for (size_t i = 0; i < n; i++)
        coded->x[i] =
            (float)((int)rng_below(key, i, 2 * (uint64_t)most + 1) - most);
}

static void fill_normals(size_t n, uint64_t key)
{
    for (size_t i = 0; i < n; i++)
        coded->x[i] = (float)rng_normal(key, i);
}

static float largest(size_t n)
{
    float most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmaxf(most, fabsf(coded->x[i]));
    return most;
}

// ---- topk

static int by_size(const void *a, const void *b)
{
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    float x = fabsf(coded->x[i]), y = fabsf(coded->x[j]);
    return x > y ? -1 : x < y ? 1 : i < j ? -1 : 1;
}

// What is sent is what sorting finds, ties by the lower index. Each element is
// either sent or kept, with its own bits.
static void check_topk(size_t n, double density)
{
    static uint32_t order[MOST];
    static bool sent[MOST];
    struct sync_settings set = settings(SQUEEZE_TOPK);
    set.density = density;
    code(&set, n, 1);
    assert_int_equal(coded->rc, 0);
    size_t k = squeeze_entries(&set, n);
    assert_true(k == (size_t)ceil(density * (double)n));
    assert_int_equal(coded->bytes, 8 * k);
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    qsort(order, n, sizeof *order, by_size);
    memset(sent, 0, sizeof sent);
    for (size_t i = 0; i < k; i++)
        sent[order[i]] = true;
    for (size_t i = 0; i < n; i++) {
        float out = sent[i] ? coded->x[i] : 0, kept = sent[i] ? 0 : coded->x[i];
        assert_true(coded->sent[i] == out && coded->left[i] == kept);
    }
}

static void topk_sends_the_largest(void **state)
{
    (void)state;
    static const double densities[] = {1e-6, 0.01, 0.1, 0.5, 0.999, 1};
    for (int i = 0; i < SIZES; i++)
        for (int d = 0; d < 6; d++) {
            fill_normals(sizes[i], 7);
            check_topk(sizes[i], densities[d]);
            fill_integers(sizes[i], 8, 3); // many are equal
            check_topk(sizes[i], densities[d]);
            fill_integers(sizes[i], 9, 0); // all are zero
            check_topk(sizes[i], densities[d]);
            for (size_t k = 0; k < sizes[i]; k++) // they differ in low bits
                coded->x[k] = bits_float(0x3f800000u | (uint32_t)(k * 7 % 61));
            check_topk(sizes[i], densities[d]);
        }
}

static void topk_is_exact_for_extreme_numbers(void **state)
{
    (void)state;
    static const float odd[] = {-0.0f,    1e-45f, -1e-38f, 3.4e38f,
                                -3.4e38f, 1.0f,   0.0f};
    for (size_t i = 0; i < 700; i++)
        coded->x[i] = odd[i % 7];
    check_topk(700, 0.3);
    check_topk(700, 0.9);
}

// A server's answer has the elements that are not 0, with their bits; it is
// refused if it is malformed, and left to the caller if it saves nothing.
static void an_answer_is_the_union(void **state)
{
    (void)state;
    static char message[8 * MOST];
    static const int every[] = {1, 2, 3, 7, 100};
    for (int i = 0; i < SIZES; i++)
        for (int e = 0; e < 5; e++) {
            size_t n = sizes[i], entries = 0;
            fill_normals(n, 31);
            for (size_t k = 0; k < n; k++)
                if (k % (size_t)every[e])
                    coded->x[k] = 0;
            for (size_t k = 0; k < n; k++)
                entries += coded->x[k] != 0;
            size_t bytes = squeeze_put_union(coded->x, n, message);
            assert_int_equal(bytes, 8 * entries < 4 * n ? 8 * entries : 0);
            if (bytes == 0)
                continue;
            memset(coded->sent, 0, sizeof coded->sent);
            assert_int_equal(squeeze_add_union(message, bytes, n, coded->sent),
                             0);
            assert_memory_equal(coded->sent, coded->x, n * sizeof(float));
            assert_int_equal(squeeze_add_union(message, bytes - 4, n,
                                               coded->sent),
                             -1);
            memset(message, 0xff, 4);
            assert_int_equal(squeeze_add_union(message, bytes, n, coded->sent),
                             -1);
        }
    coded->x[0] = NAN;
    assert_int_equal(squeeze_put_union(coded->x, 100, message), 8);
}

// ---- int8 and sign

// What was sent and what was kept add up: exactly if the unit is a power of
// two, else within 2 ulp of the largest element.
static void check_adds_up(enum squeeze_kind kind, size_t n, bool exact)
{
    struct sync_settings set = settings(kind);
    code(&set, n, 3);
    assert_int_equal(coded->rc, 0);
    float most = largest(n), allowed = 2 * (nextafterf(most, INFINITY) - most);
    for (size_t i = 0; i < n; i++) {
        double sum = (double)coded->sent[i] + (double)coded->left[i];
        double off = fabs(sum - (double)coded->x[i]);
        assert_true(exact ? off == 0 : off <= (double)allowed);
    }
}

static void what_is_sent_and_what_is_kept_add_up(void **state)
{
    (void)state;
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < SIZES; i++) {
            fill_normals(sizes[i], 5);
            check_adds_up(kinds[k], sizes[i], kinds[k] == SQUEEZE_TOPK);
            fill_integers(sizes[i], 6, 100);
            check_adds_up(kinds[k], sizes[i], kinds[k] == SQUEEZE_TOPK);
        }
}

static void they_add_up_exactly_with_a_unit_of_a_power_of_two(void **state)
{
    (void)state;
    struct sync_settings set = settings(SQUEEZE_INT8);
    set.levels = 64;
    for (int i = 0; i < SIZES; i++) { // a block of 256 numbers has 16 x 4 = 64
        for (size_t k = 0; k < sizes[i]; k++)
            coded->x[k] = k % 128 < 64 ? 2 : -2;     // |block| = 2 sqrt(128)
        check_adds_up(SQUEEZE_SIGN, sizes[i], true); // the mean is 2
        for (size_t k = 0; k < sizes[i]; k++)
            coded->x[k] = k % 128 == 5 ? -64 : 0; // |block| = 64: the unit is 1
        code(&set, sizes[i], 1);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_true(coded->sent[k] == coded->x[k] && coded->left[k] == 0);
    }
}

// The mean of many roundings is the element, within 4 standard deviations.
static void int8_is_unbiased(void **state)
{
    (void)state;
    enum { DRAWS = 100000, N = 5 };
    static const int levels[] = {1, 4, 127};
    static const float x[N] = {0.3f, -0.7f, 0.01f, 0.0f, -0.5f};
    for (int l = 0; l < 3; l++) {
        struct sync_settings set = settings(SQUEEZE_INT8);
        double sum[N] = {0};
        set.levels = levels[l];
        memcpy(coded->x, x, sizeof x);
        for (int d = 0; d < DRAWS; d++) {
            code(&set, N, rng_key(11, (uint64_t)d));
            for (int i = 0; i < N; i++)
                sum[i] += (double)coded->sent[i];
        }
        float unit;
        memcpy(&unit, coded->message, sizeof unit);
        for (int i = 0; i < N; i++) {
            double part = fmod(fabs((double)x[i]) / (double)unit, 1);
            double deviation = (double)unit * sqrt(part * (1 - part) / DRAWS);
            assert_true(fabs(sum[i] / DRAWS - (double)x[i]) <=
                        4 * deviation + 1e-6 * fabs((double)x[i]));
        }
    }
}

// An element's error is below one unit, which is |block| / levels.
static void int8_rounds_to_a_neighbouring_level(void **state)
{
    (void)state;
    struct sync_settings set = settings(SQUEEZE_INT8);
    fill_normals(1000, 12);
    code(&set, 1000, 1);
    for (size_t at = 0; at < 1000; at += 128) {
        double squares = 0;
        size_t end = at + 128 < 1000 ? at + 128 : 1000;
        for (size_t i = at; i < end; i++)
            squares += (double)coded->x[i] * (double)coded->x[i];
        for (size_t i = at; i < end; i++)
            assert_true(fabs((double)coded->left[i]) <=
                        sqrt(squares) / set.levels * (1 + 1e-5));
    }
    code(&set, 1000, 1);
    memcpy(coded->x, coded->left, sizeof coded->x);
    fill_normals(1000, 12);
    float first = coded->left[17];
    code(&set, 1000, 1);
    assert_true(coded->left[17] == first); // the same draws
}

// ... and the residual of sign is never longer than what it was made from.
static void sign_sends_the_mean_size(void **state)
{
    (void)state;
    struct sync_settings set = settings(SQUEEZE_SIGN);
    for (int i = 1; i < SIZES; i++) {
        double sum = 0, before = 0, after = 0;
        fill_normals(sizes[i], 13);
        coded->x[0] = 1000; // a few large elements
        code(&set, sizes[i], 1);
        for (size_t k = 0; k < sizes[i]; k++) {
            sum += fabs((double)coded->x[k]);
            before += (double)coded->x[k] * (double)coded->x[k];
            after += (double)coded->left[k] * (double)coded->left[k];
            assert_true((coded->sent[k] < 0) == (coded->x[k] < 0));
        }
        double mean = sum / (double)sizes[i];
        assert_true(fabs(fabs((double)coded->sent[0]) / mean - 1) < 1e-6);
        assert_true(after <= before);
    }
}

// ---- the bits of int8 and sign, one element after the other

// The sum of |x|, or of squares, in eight parts.
static double added_up(const float *x, size_t n, bool squares)
{
    double part[8] = {0}, sum = 0;
    for (size_t i = 0; i < n; i++) {
        double size = fabs((double)x[i]);
        part[i < n / 8 * 8 ? i % 8 : 0] += squares ? size * size : size;
    }
    for (int l = 0; l < 8; l++)
        sum += part[l];
    return sum;
}

// Element i of a block of n with `unit` has this level.
static int level_of(const float *x, size_t i, float length, uint64_t key,
                    int levels)
{
    uint64_t both = rng_u64(key, i / 2);
    uint32_t draw = (uint32_t)(i % 2 ? both >> 32 : both) >> 8;
    volatile float exact = fabsf(x[i]) * ((float)levels / length);
    int size = (int)exact;
    size += (float)draw * 0x1p-24f < exact - (float)size;
    size = size < levels ? size : levels;
    return x[i] < 0 ? -size : size;
}

static void check_int8_bits(size_t n, int levels)
{
    struct sync_settings set = settings(SQUEEZE_INT8);
    const char *message = NULL;
    set.levels = levels;
    code(&set, n, 7);
    message = coded->message;
    for (size_t at = 0; at < n; at += 128) {
        size_t len = at + 128 < n ? 128 : n - at;
        float unit, length = (float)sqrt(added_up(coded->x + at, len, true));
        memcpy(&unit, message, sizeof unit);
        message += sizeof unit;
        assert_true(unit == length / (float)levels);
        for (size_t i = at; i < at + len; i++) {
            int level = level_of(coded->x, i, length, 7, levels);
            volatile float sent = unit * (float)level;
            assert_int_equal(message[i - at], level);
            assert_true(coded->sent[i] == sent);
            assert_true(coded->left[i] == coded->x[i] - sent);
        }
        for (size_t i = len; i % 4; i++)
            assert_int_equal(message[i], 0);
        message += (len + 3) / 4 * 4;
    }
}

static void check_sign_bits(size_t n)
{
    struct sync_settings set = settings(SQUEEZE_SIGN);
    uint32_t word;
    float length;
    code(&set, n, 7);
    memcpy(&length, coded->message, sizeof length);
    assert_true(length == (float)(added_up(coded->x, n, false) / (double)n));
    for (size_t i = 0; i < n; i++) {
        float sent = copysignf(length, coded->x[i]);
        size_t at = 1 + i / 256 * 8 + i % 8;
        memcpy(&word, coded->message + at * sizeof word, sizeof word);
        assert_int_equal(word >> i % 256 / 8 & 1, coded->x[i] < 0);
        assert_true(coded->sent[i] == sent);
        assert_true(coded->left[i] == coded->x[i] - sent);
    }
}

// Whatever vectors the processor has.
static void messages_have_the_bits_of_the_formulas(void **state)
{
    (void)state;
    for (int i = 1; i < SIZES; i++) {
        fill_normals(sizes[i], 17);
        check_sign_bits(sizes[i]);
        check_int8_bits(sizes[i], 127);
        check_int8_bits(sizes[i], 5);
    }
}

// ---- all

static void an_element_that_is_not_finite_is_sent(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int k = 0; k < KINDS; k++)
        for (int i = 1; i < SIZES; i++)
            for (int b = 0; b < 3; b++) {
                struct sync_settings set = settings(kinds[k]);
                bool seen = false;
                fill_normals(sizes[i], 20);
                coded->x[sizes[i] / 2] = bad[b];
                code(&set, sizes[i], 1);
                assert_int_equal(coded->rc, 0);
                for (size_t j = 0; j < sizes[i]; j++)
                    seen = seen || !isfinite(coded->sent[j]);
                assert_true(seen);
            }
}

// What a worker sends of n elements.
static uint64_t law(const struct sync_settings *set, int world, size_t n)
{
    int times = squeeze_find(set->squeeze)->twice ? 2 : 1;
    return (uint64_t)(times * (world - 1)) * squeeze_message(set, world, n);
}

// Bytes are those of the formulas of docs/squeeze.md.
static void messages_have_the_bytes_of_the_law(void **state)
{
    (void)state;
    for (int i = 0; i < SIZES; i++)
        for (int w = 1; w <= 4; w++) {
            size_t n = sizes[i], part = (n + (size_t)w - 1) / (size_t)w;
            size_t blocks = (part + 127) / 128, groups = (part + 255) / 256;
            uint64_t others = (uint64_t)w - 1;
            struct sync_settings set = settings(SQUEEZE_TOPK);
            assert_true(law(&set, w, n) ==
                        others * 8 * (size_t)ceil(0.1 * (double)n));
            set.squeeze = SQUEEZE_INT8;
            assert_true(law(&set, w, n) ==
                        2 * others * (4 * blocks + (part + 3) / 4 * 4));
            set.squeeze = SQUEEZE_SIGN;
            assert_true(law(&set, w, n) ==
                        2 * others * (part ? 4 + 32 * groups : 0));
        }
}

// A message of chance bytes is refused with a reason, or is one that could be.
// It is read only where it has bytes (under AddressSanitizer).
static void malformed_messages_are_refused(void **state)
{
    (void)state;
    int refused[KINDS] = {0};
    for (int round = 0; round < 3000; round++) {
        int k = round % KINDS;
        struct sync_settings set = settings(kinds[k]);
        uint64_t key = rng_key(99, (uint64_t)round);
        size_t n = 1 + rng_below(key, 0, 300);
        set.levels = 1 + (int)rng_below(key, 1, 127);
        fill_normals(n, key);
        code(&set, n, key);
        for (int spoilt = 0; spoilt < 3; spoilt++)
            coded->message[rng_below(key, 2 + 2 * (uint64_t)spoilt,
                                     coded->bytes)] =
                (char)rng_below(key, 3 + 2 * (uint64_t)spoilt, 256);
        if (coded->ops->add(&set, coded->message, n, coded->sent)) {
            assert_true(strlen(fail_message()) > 10);
            refused[k]++;
        }
    }
    for (int k = 0; k < KINDS; k++)
        assert_true(refused[k] > 50);
}

// Each kind of mistake in a message of topk has its reason.
static void the_reason_names_the_entry(void **state)
{
    (void)state;
    struct sync_settings set = settings(SQUEEZE_TOPK);
    uint32_t index[2] = {7, 100};
    fill_integers(20, 1, 50);
    code(&set, 20, 1);
    memcpy(coded->message, index, sizeof index);
    assert_int_equal(coded->ops->add(&set, coded->message, 20, coded->sent),
                     -1);
    assert_string_equal(fail_message(),
                        "entry 1 of 2 has index 100, of 20 elements");
    index[1] = 7;
    memcpy(coded->message, index, sizeof index);
    assert_int_equal(coded->ops->add(&set, coded->message, 20, coded->sent),
                     -1);
    assert_string_equal(fail_message(), "entry 1 of 2 has index 7 after 7");
}

static int open_case(void **state)
{
    (void)state;
    coded = mem_alloc(1, sizeof *coded);
    return coded ? 0 : -1;
}

static int close_case(void **state)
{
    (void)state;
    free(coded->message);
    mem_free(coded);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topk_sends_the_largest),
        cmocka_unit_test(topk_is_exact_for_extreme_numbers),
        cmocka_unit_test(an_answer_is_the_union),
        cmocka_unit_test(what_is_sent_and_what_is_kept_add_up),
        cmocka_unit_test(they_add_up_exactly_with_a_unit_of_a_power_of_two),
        cmocka_unit_test(int8_is_unbiased),
        cmocka_unit_test(int8_rounds_to_a_neighbouring_level),
        cmocka_unit_test(sign_sends_the_mean_size),
        cmocka_unit_test(messages_have_the_bits_of_the_formulas),
        cmocka_unit_test(an_element_that_is_not_finite_is_sent),
        cmocka_unit_test(messages_have_the_bytes_of_the_law),
        cmocka_unit_test(malformed_messages_are_refused),
        cmocka_unit_test(the_reason_names_the_entry),
    };
    return cmocka_run_group_tests(tests, open_case, close_case);
}
