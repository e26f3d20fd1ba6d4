// test_checkpoint.c - writes and reads safetensors files, reads llm.c's files,
// kills the writer, and fills the disk.

#include "tests/checkpoint_files.h"

#include "base/base.h"
#include "base/rng.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

// ---- files that we wrote

static void parameters_survive_a_round_trip(void **state)
{
    (void)state;
    float p[MAX_PARAMS];
    write_tiny(p);
    accepted(p);
    struct model_config c;
    assert_int_equal(checkpoint_config(path, &c), 0);
    assert_memory_equal(&c, &tiny, sizeof c);
    assert_int_equal(files_in_folder(), 1);
    struct bytes b;
    load(&b);
    uint64_t n;
    memcpy(&n, b.at, 8);
    assert_int_equal(n % 8, 0);
    assert_non_null(strstr(b.at + 8, "\"format\":\"pt\""));
}

// Writes ranges that end within tensors, the last range first. Reads them back
// in other ranges.
static void optimizer_slots_survive_a_round_trip(void **state)
{
    (void)state;
    static const char *const names[] = {"exp_avg", "exp_avg_sq"};
    static const char *const swapped[] = {"exp_avg_sq", "exp_avg"};
    static const char *const other[] = {"momentum_buffer"};
    size_t n = model_nparams(&tiny), part = n / 7 + 3;
    float m[MAX_PARAMS], v[MAX_PARAMS], back[MAX_PARAMS];
    const float *slots[] = {m, v};
    struct checkpoint_writer w;
    struct checkpoint *k;
    numbers(m, n, 2), numbers(v, n, 3);
    assert_int_equal(checkpoint_make(path, &tiny, 2, names), 0);
    assert_int_equal(checkpoint_writer_open(&w, path), 0);
    for (int i = 2 * 7 - 1; i >= 0; i--) {
        size_t off = (size_t)(i % 7) * part;
        size_t len = n - off < part ? n - off : part;
        assert_int_equal(checkpoint_write_range(&w, &tiny, i / 7, off,
                                                slots[i / 7] + off, len),
                         0);
    }
    assert_int_equal(checkpoint_writer_close(&w), 0);
    assert_int_equal(checkpoint_sync(path), 0);
    assert_int_equal(checkpoint_open(&k, path, &tiny, 2, swapped), 0);
    assert_int_equal(checkpoint_read_range(k, 1, 0, back, n), 0);
    assert_memory_equal(back, m, n * sizeof *m);
    for (size_t off = 1; off < n; off += part) {
        size_t len = n - off < part ? n - off : part;
        assert_int_equal(checkpoint_read_range(k, 0, off, back + off, len), 0);
    }
    assert_memory_equal(back + 1, v + 1, (n - 1) * sizeof *v);
    checkpoint_close(&k);
    assert_int_equal(checkpoint_open(&k, path, &tiny, 1, other), -1);
    assert_non_null(strstr(fail_message(), "momentum_buffer.wte.weight"));
    refused(&tiny, "wte.weight is missing");
}

// ---- files of other programs

static void other_dtypes_are_converted(void **state)
{
    (void)state;
    float p[MAX_PARAMS];
    static const char *const dtypes[] = {"F32", "F16", "BF16", "F64"};
    for (int i = 0; i < 4; i++) {
        build_model(dtypes[i], "", NULL, 0, p);
        accepted(p);
    }
}

static void language_model_files_are_read(void **state)
{
    (void)state;
    float p[MAX_PARAMS], head[20];
    numbers(head, 20, 9); // equal to wte, which is first in the same stream
    uint8_t mask[9] = {1, 0, 0, 1, 1, 0, 1, 1, 1};
    float masked = -1e4f, odd = 1;
    struct entry more[] = {
        {"lm_head.weight", "F32", "5,4", head, sizeof head},
        {"transformer.h.0.attn.bias", "BOOL", "1,1,3,3", mask, sizeof mask},
        {"transformer.h.0.attn.masked_bias", "F32", "", &masked, 4},
    };
    build_model("F32", "transformer.", more, 3, p);
    accepted(p);
    struct model_config c;
    assert_int_equal(checkpoint_config(path, &c), 0);
    assert_int_equal(c.layers, 1);
    assert_int_equal(c.vocab, 5);
    assert_int_equal(c.heads, 0); // unknown with 4 channels
    head[19] += 1;
    build_model("F32", "transformer.", more, 3, p);
    refused(&tiny, "lm_head.weight differs");
    more[0].shape = "4,5";
    build_model("F32", "transformer.", more, 1, p);
    refused(&tiny, "lm_head.weight is (4,5)");
    struct entry twice = {"wte.weight", "F32", "5,4", head, sizeof head};
    build_model("F32", "transformer.", &twice, 1, p);
    refused(&tiny, "holds both");
    struct entry unknown = {"h.0.attn.rotary", "F32", "1", &odd, 4};
    build_model("F32", "", &unknown, 1, p);
    refused(&tiny, "unknown tensor h.0.attn.rotary");
    double large = 1e300;
    struct entry wide = {"ln_f.bias", "F64", "4", (double[]){0, large, 0, 0},
                         32};
    build_model("F64", "", NULL, 0, p);
    struct bytes b;
    load(&b);
    memcpy(b.at + b.n - 32, wide.data, 32);
    store(&b);
    refused(&tiny, "ln_f.bias: element 1 is inf");
}

// Hugging Face's transformers writes the number of heads to config.json, not to
// the file of tensors.
static void heads_are_read_from_config_json(void **state)
{
    (void)state;
    float p[MAX_PARAMS];
    char beside[160];
    struct model_config c = tiny;
    build_model("F32", "", NULL, 0, p);
    assert_int_equal(text_into(beside, sizeof beside, "%s/config.json", folder),
                     0);
    assert_int_equal(checkpoint_write_config(beside, &tiny), 0);
    assert_int_equal(checkpoint_config(path, &c), 0);
    assert_int_equal(c.heads, tiny.heads);
    accepted(p);
    c.heads = 4;
    assert_int_equal(checkpoint_write_config(beside, &c), 0);
    refused(&tiny, "heads=4, this one heads=2");
    static const char *const bad[] = {"{\"n_head\": -1}", "{\"n_head\": 1e30}",
                                      "{\"n_head\": \"2\"}", "{\"n_head"};
    for (int i = 0; i < 4; i++) {
        FILE *f = fopen(beside, "w");
        assert_non_null(f);
        fputs(bad[i], f);
        assert_int_equal(fclose(f), 0);
        refused(&tiny, beside);
    }
    unlink(beside);
}

// config.json names a token that ends a text only if the vocabulary is GPT-2's
// own. Other vocabularies do not have this token.
static void only_gpt2s_vocabulary_ends_texts(void **state)
{
    (void)state;
    static const struct {
        int vocab;
        const char *line;
    } cases[] = {{256, "\"eos_token_id\": null,"},
                 {256, "\"bos_token_id\": null,"},
                 {50257, "\"eos_token_id\": 50256,"},
                 {65536, "\"eos_token_id\": null,"}};
    char beside[160], text[1024];
    assert_int_equal(text_into(beside, sizeof beside, "%s/config.json", folder),
                     0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_config c = tiny;
        c.vocab = cases[i].vocab;
        assert_int_equal(checkpoint_write_config(beside, &c), 0);
        FILE *f = fopen(beside, "r");
        assert_non_null(f);
        text[fread(text, 1, sizeof text - 1, f)] = '\0';
        fclose(f);
        assert_non_null(strstr(text, cases[i].line));
    }
    unlink(beside);
}

// Reads ranges that begin and end inside tensors. Each must equal the same
// range of `whole`.
static void read_pieces(const struct model_config *c, const float *whole)
{
    struct checkpoint *k;
    float piece[37];
    size_t n = model_nparams(c);
    assert_int_equal(checkpoint_open(&k, path, c, 0, NULL), 0);
    for (size_t off = 0, len; off < n; off += len) {
        len = n - off < 37 ? n - off : 37;
        assert_int_equal(checkpoint_read_range(k, 0, off, piece, len), 0);
        assert_memory_equal(piece, whole + off, len * sizeof *piece);
    }
    checkpoint_close(&k);
}

static void llmc_models_are_read(void **state)
{
    (void)state;
    struct model_config c = {2, 2, 8, 3, 5, 0, {0}}, has;
    float p[MAX_PARAMS], q[MAX_PARAMS];
    size_t n = model_nparams(&c);
    assert_true(n < MAX_PARAMS);
    numbers(p, n, 5);
    for (int version = 3; version <= 5; version += 2) {
        build_llmc(&c, version, 128, p);
        assert_int_equal(checkpoint_config(path, &has), 0);
        assert_memory_equal(&has, &c, sizeof c);
        assert_int_equal(checkpoint_read(path, &c, q), 0);
        for (size_t i = 0; i < n; i++)
            assert_true(
                q[i] ==
                (version == 3 ? p[i] : bf16_to_float(bf16_from_float(p[i]))));
        read_pieces(&c, q);
    }
}

// ---- writing

static void a_failed_write_names_path_and_cause(void **state)
{
    (void)state;
    float p[MAX_PARAMS];
    numbers(p, model_nparams(&tiny), 1);
    static const struct {
        const char *path;
        int cause;
    } places[] = {
        {"/proc/model.safetensors", ENOENT}, // no one creates files there
        {"/dev/null/model.safetensors", ENOTDIR},
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        assert_int_equal(checkpoint_write(places[i].path, &tiny, p), -1);
        assert_non_null(strstr(fail_message(), places[i].path));
        assert_non_null(strstr(fail_message(), strerror(places[i].cause)));
    }
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0); // in the way of the rename
    assert_int_equal(checkpoint_write(path, &tiny, p), -1);
    assert_int_equal(files_in_folder(), 1); // the folder itself
    rmdir(path);
}

// A limit on the file size acts like a full disk: write() stops half way.
static void a_full_disk_leaves_the_old_file(void **state)
{
    (void)state;
    float p[MAX_PARAMS], next[MAX_PARAMS];
    write_tiny(p);
    numbers(next, model_nparams(&tiny), 2);
    struct rlimit old, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 1500; // inside the header
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int status = checkpoint_write(path, &tiny, next);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, -1);
    assert_non_null(strstr(fail_message(), strerror(EFBIG)));
    assert_int_equal(files_in_folder(), 1);
    accepted(p);
}

// Writes the file again and again. All numbers of the k-th file are k, so a
// mixture of two files would show. Sends a byte to `done` after each file.
static _Noreturn void write_for_ever(const struct model_config *c, float *p,
                                     int done)
{
    size_t n = model_nparams(c);
    for (int k = 1;; k++) {
        for (size_t i = 0; i < n; i++)
            p[i] = (float)k;
        if (checkpoint_write(path, c, p) || write(done, "", 1) != 1)
            _exit(1);
    }
}

// Starts a writer, waits for its first file, and kills it at a random moment
// while it writes the next two. The time of the first file says how long one
// takes on this disk.
static void write_and_kill(const struct model_config *c, float *p,
                           uint64_t round)
{
    int done[2], status;
    char byte;
    assert_int_equal(pipe(done), 0);
    uint64_t begin = now_ns();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        write_for_ever(c, p, done[1]);
    close(done[1]);
    ssize_t got = read(done[0], &byte, 1); // 0 if the child failed
    uint64_t wait_us = (now_ns() - begin) / 1000 * 2 + 1;
    usleep((useconds_t)rng_below(begin, round, wait_us));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(got, 1);
    assert_true(WIFSIGNALED(status));
    close(done[0]);
}

static void kills_leave_a_whole_file(void **state)
{
    (void)state;
    struct model_config c = {2, 4, 128, 64, 500, 0, {0}}; // 2 MB
    size_t n = model_nparams(&c);
    float *p = mem_alloc(n, sizeof *p);
    assert_non_null(p);
    for (uint64_t round = 0; round < 20; round++) {
        write_and_kill(&c, p, round);
        if (checkpoint_read(path, &c, p))
            die("after kill %d: %s", (int)round, fail_message());
        assert_true(p[0] >= 1);
        for (size_t i = 1; i < n; i++)
            assert_true(p[i] == p[0]);
    }
    assert_int_equal(checkpoint_write(path, &c, p), 0);
    assert_int_equal(files_in_folder(), 1); // no temporary file is left
    mem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_survive_a_round_trip),
        cmocka_unit_test(optimizer_slots_survive_a_round_trip),
        cmocka_unit_test(other_dtypes_are_converted),
        cmocka_unit_test(language_model_files_are_read),
        cmocka_unit_test(heads_are_read_from_config_json),
        cmocka_unit_test(only_gpt2s_vocabulary_ends_texts),
        cmocka_unit_test(llmc_models_are_read),
        cmocka_unit_test(a_failed_write_names_path_and_cause),
        cmocka_unit_test(a_full_disk_leaves_the_old_file),
        cmocka_unit_test(kills_leave_a_whole_file),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
