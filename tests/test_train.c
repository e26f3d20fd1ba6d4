// test_train.c - whole runs of a single trainer: reruns, resumes, kills,
// formats, memory, and every kind of bad input.

#include "base/base.h"
#include "tests/job_asserts.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX = 1000 };

// A run takes seconds, and has every setting that could break a resume.
static const char tiny[] =
    "data=text.txt model=nano layers=2 channels=32 heads=2 context=32 batch=4 "
    "accum=2 dropout=0.1 threads=1 warmup=3 lr=1e-3 eval=10 eval_batches=2 "
    "log=0";

static void assert_same_losses(const char *a, const char *b)
{
    static double x[MAX], y[MAX];
    const char *columns[] = {"step", "loss", "grad_norm", "tokens", "lr"};
    for (int c = 0; c < 5; c++) {
        int n = job_column(a, columns[c], 0, x, MAX);
        assert_true(n > 0);
        assert_int_equal(job_column(b, columns[c], 0, y, MAX), n);
        assert_memory_equal(x, y, (size_t)n * sizeof *x);
    }
}

static void learns_and_reruns(void **state)
{
    (void)state;
    struct job j;
    for (int i = 0; i < 2; i++) {
        job_run(&j, 60, "trainer %s steps=40 out=rerun%d", tiny, i);
        assert_ok(&j);
    }
    assert_same_losses("rerun0", "rerun1");
    static double loss[MAX];
    assert_int_equal(job_column("rerun0", "loss", 0, loss, MAX), 40);
    assert_true(fabs(loss[0] - log(256)) < 0.2);
    assert_true(loss[39] < loss[0] - 1);
    assert_true(job_summary("rerun0", "final_train_loss") == loss[39]);
    assert_true(job_summary("rerun0", "final_val_loss") > 0);
    assert_true(job_summary("rerun0", "tokens") == 40 * 4 * 2 * 32);
    assert_true(job_summary("rerun0", "peak_memory_bytes") > 1e6);
    job_run(&j, 60, "trainer %s steps=40 seed=2 out=rerun2", tiny);
    static double other[MAX];
    job_column("rerun2", "loss", 0, other, MAX);
    assert_true(other[0] != loss[0]);
}

static double seconds_of(const char *dir, const char *kind)
{
    char path[256], line[256], name[32];
    double v, found = NAN;
    snprintf(path, sizeof path, "%s/%s/breakdown.csv", job_dir(), dir);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "0,%31[^,],%lf", name, &v) == 2 && !strcmp(name, kind))
            found = v;
    fclose(f);
    return found;
}

// A straggler is like a slow processor: its delay counts as computing, and has
// a row of its own, `slowed`.
static void slowness_is_computing(void **state)
{
    (void)state;
    struct job j;
    static double compute[MAX], data[MAX];
    job_run(&j, 60, "trainer %s steps=5 eval=0 straggler=0:20 out=slow", tiny);
    assert_ok(&j);
    double own = seconds_of("slow", "data") + seconds_of("slow", "forward");
    assert_true(seconds_of("slow", "slowed") >= 19 * own);
    assert_true(seconds_of("slow", "backward") < 19 * own);
    assert_int_equal(job_column("slow", "t_compute_us", 0, compute, MAX), 5);
    assert_int_equal(job_column("slow", "t_data_us", 0, data, MAX), 5);
    double total = 0;
    for (int i = 0; i < 5; i++) {
        assert_true(compute[i] + 1 >= 19 * data[i]);
        total += compute[i] * 1e-6;
    }
    assert_true(total >= 19 * own);
}

// Samples and traces of all parts of a run have one time axis, that of
// steps.csv. No time goes back, and no step occurs twice.
static void assert_one_axis(const char *dir, int steps)
{
    char path[256], line[1024];
    static double time_s[MAX];
    assert_int_equal(job_column(dir, "time_s", 0, time_s, MAX), steps);
    snprintf(path, sizeof path, "%s/%s/util.csv", job_dir(), dir);
    FILE *f = fopen(path, "r");
    double t, last = 0;
    int n = 0;
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lf,0,cpu_share", &t) != 1 || !strstr(line, "cpu"))
            continue;
        assert_true(t > last);
        last = t;
        n++;
    }
    fclose(f);
    assert_true(n > 0);
    snprintf(path, sizeof path, "%s/%s/trace.json", job_dir(), dir);
    f = fopen(path, "r");
    assert_non_null(f);
    bool seen[MAX] = {false};
    for (int step; fgets(line, sizeof line, f);) {
        const char *at = strstr(line, "\"ts\": ");
        const char *of = strstr(line, "{\"step\": ");
        if (!strstr(line, "\"name\": \"step\"") || !at ||
            sscanf(at, "\"ts\": %lf", &t) != 1 || !of ||
            sscanf(of, "{\"step\": %d", &step) != 1)
            continue;
        assert_true(step >= 1 && step <= steps && !seen[step - 1]);
        seen[step - 1] = true;
        assert_true(step == 1 || t * 1e-6 >= time_s[step - 2]);
    }
    fclose(f);
    assert_true(seen[steps - 1]);
}

static void resumes_to_the_bit(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60, "trainer %s steps=60 out=whole", tiny);
    assert_ok(&j);
    job_run(&j, 60, "trainer %s steps=60 save=5 inject=kill:37 out=parts",
            tiny);
    assert_int_equal(j.status, 137);
    job_run(&j, 60, "trainer %s steps=60 save=5 resume=auto out=parts", tiny);
    assert_ok(&j);
    assert_non_null(strstr(j.out, "step 35"));
    assert_same_losses("whole", "parts");
    assert_one_axis("parts", 60);
    double forward = seconds_of("parts", "forward");
    job_run(&j, 60, "trainer %s steps=70 resume=auto out=parts", tiny);
    assert_ok(&j);
    assert_one_axis("parts", 70);
    assert_true(seconds_of("parts", "forward") > forward);
    // the resumed run still has save=5, and keep=2 is the default
    assert_true(job_has("parts/checkpoint-70/model.safetensors"));
    assert_false(job_has("parts/checkpoint-60"));
    assert_true(job_has("parts/latest"));

    job_run(&j, 60, "trainer %s steps=60 out=whole", tiny);
    assert_int_equal(j.status, 1);
    assert_non_null(strstr(j.out, "holds a run"));
    job_run(&j, 60, "trainer %s steps=60 channels=64 resume=auto out=parts",
            tiny);
    assert_int_equal(j.status, 1);
    assert_non_null(strstr(j.out, "channels=32"));
}

// If one byte of any file of a checkpoint is wrong, or a file is from another
// step, the checkpoint is refused. resume=auto takes the previous checkpoint.
// An explicit resume= fails with an error that names the previous one.
static void damage_is_noticed(void **state)
{
    (void)state;
    static const char *const how[][2] = {{"model.safetensors", "byte"},
                                         {"optimizer.safetensors", "byte"},
                                         {"config.json", "byte"},
                                         {"symbols.txt", "byte"},
                                         {"state.json", "byte"},
                                         {"state.json", "cut"},
                                         {"optimizer.safetensors", "other"}};
    struct job j;
    job_run(&j, 60, "trainer %s steps=20 out=sound", tiny);
    assert_ok(&j);
    job_run(&j, 60, "trainer %s steps=20 save=5 inject=kill:13 out=sick", tiny);
    assert_int_equal(j.status, 137);
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        job_run(&j, 60,
                "rm -rf ill; cp -r sick ill; f=ill/checkpoint-10/%s; "
                "n=$(($(wc -c < $f) / 2)); case %s in "
                "byte) b=$(od -An -tu1 -j$n -N1 $f); printf \"\\\\$(printf "
                "%%o $((b ^ 1)))\" | dd of=$f bs=1 seek=$n conv=notrunc "
                "status=none;; cut) truncate -s $n $f;; "
                "other) cp ill/checkpoint-5/%s $f;; esac; "
                "trainer %s steps=20 resume=ill/checkpoint-10 out=never",
                how[i][0], how[i][1], how[i][0], tiny);
        assert_int_equal(j.status, 1);
        assert_non_null(strstr(j.out, "damaged"));
        assert_non_null(strstr(j.out, how[i][0]));
        assert_non_null(
            strstr(j.out, "try: resume=ill/checkpoint-5, which is undamaged"));
        job_run(&j, 60, "trainer %s steps=20 save=5 resume=auto out=ill", tiny);
        assert_ok(&j);
        assert_non_null(strstr(j.out, "ill/checkpoint-5, step 5"));
        assert_same_losses("sound", "ill");
    }
    job_run(&j, 60,
            "rm -r ill; cp -r sick ill; for f in ill/*/state.json; do echo > "
            "$f; done; trainer %s steps=20 save=5 resume=auto out=ill",
            tiny);
    assert_int_equal(j.status, 1);
    assert_non_null(strstr(j.out, "every checkpoint in ill is damaged"));
}

// A loss scale need not be a whole number.
static void resumes_a_fractional_loss_scale(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60, "trainer %s steps=4 loss_scale=1.5 save=2 out=scaled",
            tiny);
    assert_ok(&j);
    job_run(&j, 60, "trainer resume=auto steps=6 out=scaled");
    assert_ok(&j);
    assert_non_null(strstr(j.out, "step 4"));
}

// A run that continues has no summary.json, since lockstep watch and report
// take that file for the end of the run.
static void goes_on_without_a_summary(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60, "trainer %s steps=4 save=2 out=again", tiny);
    assert_ok(&j);
    assert_true(job_has("again/summary.json"));
    job_run(&j, 60, "trainer resume=auto steps=8 inject=kill:2 out=again");
    assert_int_equal(j.status, 137);
    assert_false(job_has("again/summary.json"));
}

// After SIGKILL at any moment after the first new checkpoint, also while one is
// written, there is always a checkpoint from which the run continues.
static void survives_kill(void **state)
{
    (void)state;
    struct job j;
    int steps = test_long() ? 900 : 300, rounds = test_long() ? 200 : 12;
    int limit_s = test_long() ? 900 : 150; // each step writes a checkpoint
    job_run(&j, limit_s, "trainer %s steps=%d out=calm", tiny, steps);
    assert_ok(&j);
    int kills = 0;
    for (int round = 0; round < rounds; round++) {
        job_run(&j, 60,
                "latest() { cat storm/latest 2>&1; }; old=$(latest); "
                "trainer %s steps=%d save=1 save_async=%d resume=auto "
                "out=storm & p=$!; "
                "while [ \"$(latest)\" = \"$old\" ] && "
                "kill -0 $p; do :; done; "
                "i=0; while [ $i -lt %d ]; do i=$((i + 1)); done; "
                "kill -9 $p; wait $p",
                tiny, steps, round % 2, round * 1009 % 5000);
        if (j.status == 0)
            break;
        assert_int_equal(j.status, 137);
        kills++;
    }
    print_message("killed %d times\n", kills);
    job_run(&j, limit_s, "trainer %s steps=%d save=1 resume=auto out=storm",
            tiny, steps);
    assert_ok(&j);
    assert_true(kills > 0);
    assert_same_losses("calm", "storm");
}

static void begins_from_a_file(void **state)
{
    (void)state;
    struct job j;
    static double a[MAX], b[MAX];
    job_run(&j, 60, "trainer %s steps=20 save=20 out=first", tiny);
    assert_ok(&j);
    job_run(&j, 60,
            "trainer %s steps=1 warmup=0 out=second "
            "init=first/checkpoint-20/model.safetensors",
            tiny);
    assert_ok(&j);
    job_column("first", "loss", 0, a, MAX);
    job_column("second", "loss", 0, b, MAX);
    assert_true(b[0] < a[0] - 0.5);
}

static void accumulation_is_a_larger_batch(void **state)
{
    (void)state;
    struct job j;
    static double a[MAX], b[MAX];
    const char *same = "data=text.txt model=nano layers=2 channels=32 heads=2 "
                       "context=32 threads=1 log=0 eval=0 steps=20 "
                       "optimizer=sgd lr=0.1 warmup=0";
    job_run(&j, 60, "trainer %s batch=8 out=large", same);
    assert_ok(&j);
    job_run(&j, 60, "trainer %s batch=2 accum=4 out=pieces", same);
    assert_ok(&j);
    assert_int_equal(job_column("large", "loss", 0, a, MAX), 20);
    assert_int_equal(job_column("pieces", "loss", 0, b, MAX), 20);
    for (int i = 0; i < 20; i++)
        assert_true(fabs(a[i] - b[i]) < 1e-4 * a[i]);
    // the same by other settings: lr=0.05 is for 2 sequences, and lr_scale=sqrt
    // doubles it for 8
    job_run(&j, 60,
            "trainer %s batch=2 global_batch=8 lr_scale=sqrt base_batch=2 "
            "lr=0.05 min_lr=5e-5 out=shared",
            same);
    assert_ok(&j);
    assert_same_losses("pieces", "shared");
}

static void overflow_is_skipped(void **state)
{
    (void)state;
    struct job j;
    static double skipped[MAX], scale[MAX];
    job_run(&j, 60,
            "trainer %s steps=30 precision=fp16 loss_scale=16777216 "
            "out=static",
            tiny);
    assert_int_equal(j.status, 1); // no step succeeds; the error names a tensor
    assert_non_null(strstr(j.out, "skipped"));
    assert_non_null(strstr(j.out, "the gradient of "));
    job_run(&j, 60, "trainer %s steps=30 precision=fp16 out=dynamic", tiny);
    assert_ok(&j);
    job_column("dynamic", "skipped", 0, skipped, MAX);
    int n = job_column("dynamic", "loss_scale", 0, scale, MAX);
    assert_int_equal(n, 30);
    for (int i = 0; i + 1 < n; i++)
        assert_true(scale[i + 1] == (skipped[i] ? scale[i] / 2 : scale[i]));
    job_run(&j, 60,
            "trainer %s steps=30 lr=100 clip=0 optimizer=sgd "
            "warmup=0 schedule=constant min_lr=0 out=explodes",
            tiny);
    assert_int_equal(j.status, 1);
    assert_non_null(strstr(j.out, "try: a smaller lr"));
}

// bf16 and fp16 reach fp32's loss within 2% after some steps on the default
// text.
static void formats_of_16_bits_train_alike(void **state)
{
    (void)state;
    if (TEST_SANITIZED) // would take minutes; the release build tests it
        skip();
    struct job j;
    const char *formats[] = {"fp32", "bf16", "fp16"};
    double loss[3];
    int steps = test_long() ? 200 : 60;
    for (int i = 0; i < 3; i++) {
        job_run(&j, 280,
                "trainer model=nano batch=8 steps=%d eval=%d "
                "eval_batches=16 warmup=20 log=0 precision=%s out=%s",
                steps, steps, formats[i], formats[i]);
        assert_ok(&j);
        loss[i] = job_summary(formats[i], "final_val_loss");
        print_message("%s: validation loss %.4f after %d steps\n", formats[i],
                      loss[i], steps);
    }
    assert_true(loss[0] < (test_long() ? 3 : 4));
    assert_true(fabs(loss[1] - loss[0]) < 0.02 * loss[0]);
    assert_true(fabs(loss[2] - loss[0]) < 0.02 * loss[0]);
}

static void memory_is_predicted(void **state)
{
    (void)state;
    if (TEST_SANITIZED) // a sanitizer's own memory is not in the formula
        skip();
    struct job j;
    const char *cases[] = {
        "model=baby batch=16 precision=fp32 threads=2",
        "model=baby batch=16 precision=fp32 threads=2 recompute=1",
        "model=baby batch=8 precision=bf16 threads=2",
        "model=baby batch=4 precision=fp16 threads=2",
        "model=micro batch=64 threads=1",
        "model=gpt2 context=1024 batch=4 threads=2", // V=50257 at B*T=4096
    };
    double least = 0;
    for (int i = 0; i < (test_long() ? 6 : 5); i++) {
        job_run(&j, 280,
                "trainer steps=1 warmup=0 eval=0 log=0 out=memory%d %s", i,
                cases[i]);
        assert_ok(&j);
        char name[32];
        snprintf(name, sizeof name, "memory%d", i);
        double peak = job_summary(name, "peak_memory_bytes");
        double predicted = job_summary(name, "predicted_memory_bytes");
        print_message("%-45s %5.0f MiB, predicted %5.0f, ratio %.3f\n",
                      cases[i], peak / 0x1p20, predicted / 0x1p20,
                      peak / predicted);
        assert_true(fabs(peak / predicted - 1) < 0.1);
        assert_true(i != 1 || peak <= 0.6 * least);
        least = peak;
    }
}

static void bad_input(void **state)
{
    (void)state;
    const struct {
        const char *words, *expect;
    } cases[] = {
        {"data=absent.txt", "absent.txt"},
        {"data=empty.txt", "empty.txt"},
        {"data=short.txt", "short.txt"},
        {"data=.", "data"},
        {"data=text.txt model=huge", "huge"},
        {"data=text.txt heads=3", "3"},
        {"data=text.txt layers=-1", "layers"},
        {"data=text.txt batch=0", "batch"},
        {"data=text.txt batch=1e30", "1e30"},
        {"data=text.txt lr=nan", "lr"},
        {"data=text.txt stepz=5", "steps"},
        {"data=text.txt steps=", "steps"},
        {"data=text.txt vocab_size=100", "vocabulary of 100"},
        {"data=text.txt out=/proc/nowhere", "/proc/nowhere"},
        {"model=gpt2-xl batch=64", "memory: a worker needs"},
        {"layers=48 channels=16384 heads=64", "memory: a worker needs"},
        {"data=text.txt init=text.txt", "text.txt"},
        {"data=text.txt resume=nowhere out=x", "nowhere"},
        {"data=text.txt sync=magic", "magic"},
        {"data=text.txt inject=bang:1", "bang"},
        {"absent.ini", "absent.ini"},
    };
    struct job j;
    job_run(&j, 10, ": > empty.txt; echo hello > short.txt");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        job_run(&j, 60, "trainer model=nano out=bad threads=1 steps=1 %s",
                cases[i].words);
        if (j.status != 1 || !strstr(j.out, cases[i].expect) || job_has("bad"))
            print_message("%s -> %d: %s\n", cases[i].words, j.status, j.out);
        assert_int_equal(j.status, 1);
        assert_non_null(strstr(j.out, cases[i].expect));
        assert_false(job_has("bad"));
    }
}

// What a text of another system holds, and how much of it there is, is said.
static void the_log_says_what_the_data_are(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60,
            "for i in $(seq 199); do printf 'caf\\351\\r\\nabcd\\n'; done "
            ">old.txt; trainer %s data=old.txt vocab=chars steps=1 save=1 "
            "out=old; "
            "lockstep sample old prompt=$(printf 'caf\\377')",
            tiny);
    assert_status(&j, 1);
    assert_prints(&j, "text: byte 0xFF is not UTF-8, and not in the data");
    assert_prints(&j, "warning: old.txt: lines end with CR and LF");
    assert_prints(&j, "old.txt: not UTF-8: 1 of its symbols are lone bytes");
    assert_prints(&j, "old.txt: 8 symbols, ");
    job_run(&j, 60, "trainer %s steps=1 out=new", tiny);
    assert_ok(&j);
    assert_null(strstr(j.out, "warning: text.txt"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learns_and_reruns),
        cmocka_unit_test(slowness_is_computing),
        cmocka_unit_test(resumes_to_the_bit),
        cmocka_unit_test(damage_is_noticed),
        cmocka_unit_test(resumes_a_fractional_loss_scale),
        cmocka_unit_test(goes_on_without_a_summary),
        cmocka_unit_test(survives_kill),
        cmocka_unit_test(begins_from_a_file),
        cmocka_unit_test(accumulation_is_a_larger_batch),
        cmocka_unit_test(overflow_is_skipped),
        cmocka_unit_test(formats_of_16_bits_train_alike),
        cmocka_unit_test(memory_is_predicted),
        cmocka_unit_test(the_log_says_what_the_data_are),
        cmocka_unit_test(bad_input),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, job_text, job_cleanup);
}
