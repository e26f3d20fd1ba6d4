// test_stages.c - the stages of a model compute the same as the whole model.
// With every schedule, losses and gradients are bit-identical. The gradient of
// the tied wte is equal within rounding, since the first and the last stage
// each sum a share of it.
//
// All stages are models in this process. Each does the actions of its timetable
// in order, as soon as their inputs have arrived. The test copies a stage's
// output to the next stage. Empty buffers are filled with NaN.

#include "base/base.h"
#include "base/rng.h"
#include "model/part.h"
#include "pipeline/timetable.h"
#include "tests/test.h"
#include "tests/tiny_model.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { LAYERS = 7, MICRO = 8, STAGES = 4, RUNS = 8, MOST = MICRO * RUNS };

static const struct model_config odd = {
    .layers = LAYERS, .heads = 3, .channels = 21, .context = 13, .vocab = 31};

// Tokens of each micro-batch.
struct batch {
    int32_t x[ROWS * TOKENS], y[ROWS * TOKENS];
};

// Run r is the r-th range of layers of the model, from its start: it is chunk
// r / stages of stage r % stages.
struct stage {
    struct bench b;
    int at;                      // actions done
    int slot[MOST], input[MOST]; // by run and micro-batch
    bool slot_used[2 * MOST];
};

struct line {
    struct pipeline plan;
    struct batch *batches;
    struct stage s[STAGES];
    char *forward[MOST], *backward[MOST]; // inputs, by run and micro-batch
    size_t bytes;                         // of each
    double loss;
};

static void draw_batches(struct batch *all, int vocab)
{
    for (int k = 0; k < MICRO; k++)
        for (int i = 0; i < ROWS * TOKENS; i++) {
            all[k].x[i] =
                (int32_t)rng_below(3 + k, (uint64_t)i, (uint64_t)vocab);
            all[k].y[i] =
                (int32_t)rng_below(50 + k, (uint64_t)i, (uint64_t)vocab);
        }
}

static struct model_step step_of(const struct batch *batches, int micro)
{
    return (struct model_step){.x = batches[micro].x,
                               .y = batches[micro].y,
                               .step = 4,
                               .micro = micro,
                               .scale = 8,
                               .accumulate = micro > 0};
}

// The whole model's gradients, which the caller frees, and its loss.
static float *train_whole(struct bench *b, const struct batch *batches, int m,
                          double *loss)
{
    *loss = 0;
    for (int k = 0; k < m; k++) {
        float one;
        struct model_step s = step_of(batches, k);
        assert_int_equal(model_train(b->m, &s, &one), 0);
        *loss += one;
    }
    return copy(b->grads, b->n);
}

static int copy_in(void *ctx, size_t off, size_t n, size_t at)
{
    struct bench *const *both = ctx;
    memcpy(both[0]->params + off, both[1]->params + at, n * sizeof(float));
    return 0;
}

static void open_stage(struct line *l, int s, struct bench *whole,
                       const int *layers)
{
    struct stage *t = &l->s[s];
    struct model_job job = whole->job;
    struct bench *both[] = {&t->b, whole};
    int before = (s + l->plan.stages - 1) % l->plan.stages;
    *t = (struct stage){.at = 0};
    assert_int_equal(part_cut(&whole->job.config, l->plan.stages, s,
                              l->plan.chunks, layers, &job.config),
                     0);
    size_t n = t->b.n = model_nparams(&job.config);
    t->b.params = job.params = mem_alloc(n, sizeof(float));
    t->b.grads = job.grads = mem_alloc(n, sizeof(float));
    memset(job.grads, 0xff, n * sizeof(float));
    job.slots = timetable_slots(&l->plan, s);
    if (l->plan.stages > 1)
        job.inputs = job.slots + timetable_slots(&l->plan, before);
    job.edges = 2;
    part_ranges(&job.config, 0, n, copy_in, both);
    t->b.job = job;
    assert_int_equal(model_open(&t->b.m, &job), 0);
}

// The input that stage s needs for its action, or NULL if it needs none.
static char **needs(struct line *l, int s, struct action a)
{
    int runs = l->plan.stages * l->plan.chunks;
    int run = a.chunk * l->plan.stages + s;
    if (a.kind == ACTION_FORWARD)
        return run ? &l->forward[run * MICRO + a.micro] : NULL;
    return run < runs - 1 ? &l->backward[run * MICRO + a.micro] : NULL;
}

static void send(struct line *l, char **to, const void *from)
{
    assert_null(*to);
    *to = mem_alloc(l->bytes, 1);
    memcpy(*to, from, l->bytes);
}

static void take_in(struct line *l, void *to, char **from)
{
    memset(to, 0xff, l->bytes);
    if (from) {
        memcpy(to, *from, l->bytes);
        mem_free(*from);
        *from = NULL;
    }
}

static int take_free(bool *used, int n)
{
    int k = 0;
    while (used[k])
        k++;
    assert_true(k < n);
    used[k] = true;
    return k;
}

static void run_forward(struct line *l, int s, struct action a)
{
    struct stage *t = &l->s[s];
    struct model *m = t->b.m;
    int stages = l->plan.stages, run = a.chunk * stages + s;
    int at = run * MICRO + a.micro;
    t->slot[at] = take_free(t->slot_used, t->b.job.slots);
    t->input[at] = t->b.job.inputs ? t->slot[at] : 0; // any free one
    struct model_pass pass = {.chunk = a.chunk,
                              .slot = t->slot[at],
                              .input = t->input[at]};
    struct model_step step = step_of(l->batches, a.micro);
    if (stages > 1)
        take_in(l, model_input(m, pass.input), needs(l, s, a));
    memset(model_output(m, pass.slot), 0xff, l->bytes);
    assert_int_equal(model_forward(m, &step, &pass), 0);
    if (run + 1 < stages * l->plan.chunks)
        send(l, &l->forward[at + MICRO], model_output(m, pass.slot));
}

static void run_backward(struct line *l, int s, struct action a)
{
    struct stage *t = &l->s[s];
    struct model *m = t->b.m;
    int run = a.chunk * l->plan.stages + s, at = run * MICRO + a.micro;
    struct model_pass pass = {.chunk = a.chunk,
                              .slot = t->slot[at],
                              .input = t->input[at],
                              .edge = t->at % 2};
    struct model_step step = step_of(l->batches, a.micro);
    float loss = 0;
    take_in(l, model_edge(m, pass.edge), needs(l, s, a));
    assert_int_equal(model_backward(m, &step, &pass, &loss), 0);
    if (run + 1 == l->plan.stages * l->plan.chunks)
        l->loss += loss;
    if (run > 0)
        send(l, &l->backward[at - MICRO], model_edge(m, pass.edge));
    t->slot_used[t->slot[at]] = false;
}

static void run_line(struct line *l)
{
    int length = timetable_length(&l->plan);
    for (bool moved = true; moved;) {
        moved = false;
        for (int s = 0; s < l->plan.stages; s++) {
            struct stage *t = &l->s[s];
            while (t->at < length) {
                struct action a = timetable_action(&l->plan, s, t->at);
                char **need = needs(l, s, a);
                if (need && !*need)
                    break;
                (a.kind == ACTION_FORWARD ? run_forward : run_backward)(l, s,
                                                                        a);
                t->at++;
                moved = true;
            }
        }
    }
    for (int s = 0; s < l->plan.stages; s++)
        assert_int_equal(l->s[s].at, length);
}

// ---- the comparison

struct compare {
    const float *got, *want;
    size_t tied; // elements of wte
};

static int same_bits(void *ctx, size_t off, size_t n, size_t at)
{
    const struct compare *c = ctx;
    size_t skip = at < c->tied ? c->tied - at : 0; // the vector begins with wte
    if (skip < n)
        assert_memory_equal(c->got + off + skip, c->want + at + skip,
                            (n - skip) * sizeof(float));
    return 0;
}

static void compare(struct line *l, const struct bench *whole,
                    const float *want)
{
    const struct model_config *c = &whole->job.config;
    size_t tied = (size_t)c->vocab * (size_t)c->channels;
    struct stage *first = &l->s[0], *last = &l->s[l->plan.stages - 1];
    double most = 0;
    for (int s = 0; s < l->plan.stages; s++) {
        const struct bench *b = &l->s[s].b;
        struct compare k = {b->grads, want, l->plan.stages > 1 ? tied : 0};
        part_ranges(&b->job.config, 0, b->n, same_bits, &k);
    }
    if (first == last)
        return;
    for (size_t i = 0; i < tied; i++) {
        double size = fabs((double)want[i]);
        most = size > most ? size : most; // fmax() here crashes GCC 12 on arm64
    }
    double terms = sqrt((double)ROWS * TOKENS * l->plan.micro);
    double eps =
        whole->job.precision == DTYPE_F16 ? 0x1p-10 : (double)FLT_EPSILON;
    for (size_t i = 0; i < tied; i++) {
        double sum = (double)(first->b.grads[i] + last->b.grads[i]);
        assert_true(fabs(sum - (double)want[i]) <= 8 * eps * terms * most);
    }
}

static void check(const struct pipeline *plan, struct bench *whole,
                  const struct batch *batches, const int *layers)
{
    struct line l = {.plan = *plan, .batches = (struct batch *)batches};
    double want;
    float *grads = train_whole(whole, batches, plan->micro, &want);
    l.bytes = ROWS * TOKENS * (size_t)whole->job.config.channels *
              dtype_bytes(whole->job.precision);
    for (int s = 0; s < plan->stages; s++)
        open_stage(&l, s, whole, layers);
    run_line(&l);
    assert_true(l.loss == want);
    compare(&l, whole, grads);
    for (int s = 0; s < plan->stages; s++) {
        model_close(&l.s[s].b.m);
        mem_free(l.s[s].b.params);
        mem_free(l.s[s].b.grads);
    }
    mem_free(grads);
}

// A whole model on one thread.
static struct bench begin_whole(float dropout, enum dtype precision,
                                bool recompute)
{
    struct model_config c = odd;
    c.dropout = dropout;
    struct bench b = begin(c, precision, ROWS, TOKENS);
    model_close(&b.m);
    b.job.threads = 1;
    b.job.recompute = recompute;
    assert_int_equal(model_open(&b.m, &b.job), 0);
    return b;
}

// All schedules of up to four stages and eight micro-batches.
static void stages_are_the_whole_model(void **state)
{
    (void)state;
    static const int micro[] = {1, 2, 3, MICRO};
    struct batch *batches = mem_alloc(MICRO, sizeof *batches);
    draw_batches(batches, odd.vocab);
    struct bench b = begin_whole(0.2f, DTYPE_F32, false);
    for (int kind = 0; kind < PIPELINE_KINDS; kind++)
        for (int p = 1; p <= STAGES; p++)
            for (int i = 0; i < 4; i++)
                for (int v = 1; v * p <= LAYERS && v <= 3; v++) {
                    struct pipeline plan = {kind, p, micro[i], v, 0};
                    if (!pipeline_check(&plan))
                        check(&plan, &b, batches, NULL);
                }
    end(&b);
    mem_free(batches);
}

// The test covers every format, without dropout, and with dropout and
// recompute. Stages have unequal numbers of layers. One plan has ahead=1.
static void stages_in_every_format(void **state)
{
    (void)state;
    static const int uneven[] = {1, 4, 2}, pairs[] = {1, 2, 3, 1};
    struct batch *batches = mem_alloc(MICRO, sizeof *batches);
    draw_batches(batches, odd.vocab);
    for (int k = 0; k < 6; k++) {
        struct bench b =
            begin_whole(k % 2 ? 0.1f : 0, (enum dtype)(k / 2), k % 2);
        check(&(struct pipeline){PIPELINE_1F1B, 3, 5, 1, 1}, &b, batches,
              uneven);
        check(&(struct pipeline){PIPELINE_GPIPE, 3, 5, 1, 0}, &b, batches,
              uneven);
        check(&(struct pipeline){PIPELINE_1F1B, 2, 6, 2, 0}, &b, batches,
              pairs);
        end(&b);
    }
    mem_free(batches);
}

// ---- evaluation, and the vector of a part

static void evaluation_goes_through_all_stages(void **state)
{
    (void)state;
    struct batch *batches = mem_alloc(MICRO, sizeof *batches);
    draw_batches(batches, odd.vocab);
    struct bench b = begin(odd, DTYPE_F32, ROWS, TOKENS);
    struct line l = {.plan = {PIPELINE_1F1B, 2, 2, 2, 0}};
    size_t bytes = ROWS * TOKENS * (size_t)odd.channels * sizeof(float);
    float want, got = 0;
    for (int s = 0; s < 2; s++)
        open_stage(&l, s, &b, NULL);
    for (int run = 0; run < 4; run++) {
        struct model *m = l.s[run % 2].b.m, *before = l.s[(run + 1) % 2].b.m;
        struct model_pass pass = {.chunk = run / 2};
        if (run)
            memcpy(model_input(m, 0), model_output(before, 0), bytes);
        assert_int_equal(model_eval_chunk(m, &pass, batches->x, batches->y,
                                          ROWS, &got),
                         0);
    }
    assert_int_equal(model_eval(b.m, batches->x, batches->y, ROWS, &want), 0);
    assert_true(got == want);
    for (int s = 0; s < 2; s++) {
        model_close(&l.s[s].b.m);
        mem_free(l.s[s].b.params);
        mem_free(l.s[s].b.grads);
    }
    end(&b);
    mem_free(batches);
}

static int count_once(void *ctx, size_t off, size_t n, size_t at)
{
    (void)off;
    for (size_t i = at; i < at + n; i++)
        ((uint8_t *)ctx)[i]++;
    return 0;
}

// Together the stages have each element once, and the tied wte twice. Each
// element has the initial value that it has in the whole model.
static void parts_tile_the_model(void **state)
{
    (void)state;
    size_t n = model_nparams(&odd);
    size_t tied = (size_t)odd.vocab * (size_t)odd.channels;
    float *all = mem_alloc(n, sizeof *all), *own = mem_alloc(n, sizeof *own);
    uint8_t *count = mem_alloc(n, 1);
    model_init(&odd, 9, all);
    for (int p = 1; p <= STAGES; p++) {
        memset(count, 0, n);
        for (int s = 0; s < p; s++) {
            struct model_config c;
            assert_int_equal(part_cut(&odd, p, s, 1, NULL, &c), 0);
            size_t mine = model_nparams(&c);
            part_ranges(&c, 0, mine, count_once, count);
            model_init(&c, 9, own);
            struct compare k = {own, all, 0};
            part_ranges(&c, 0, mine, same_bits, &k);
        }
        for (size_t i = 0; i < n; i++)
            assert_int_equal(count[i], p > 1 && i < tied ? 2 : 1);
    }
    mem_free(all);
    mem_free(own);
    mem_free(count);
}

static void bad_cuts(void **state)
{
    (void)state;
    struct model_config c;
    assert_int_equal(part_cut(&odd, 4, 0, 2, NULL, &c), -1);
    assert_non_null(strstr(fail_message(), "7 layers in 8 parts"));
    assert_int_equal(part_cut(&odd, 2, 0, 1, (int[]){3, 3}, &c), -1);
    assert_non_null(strstr(fail_message(), "add up to 6 layers"));
    assert_int_equal(part_cut(&odd, 2, 0, 1, (int[]){7, 0}, &c), -1);
    assert_non_null(strstr(fail_message(), "part 1 has 0 layers"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_are_the_whole_model),
        cmocka_unit_test(stages_in_every_format),
        cmocka_unit_test(evaluation_goes_through_all_stages),
        cmocka_unit_test(parts_tile_the_model),
        cmocka_unit_test(bad_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
