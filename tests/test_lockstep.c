// test_lockstep.c - the command `lockstep` as a user runs it: help, training,
// sampling, keys, benchmarks.

#include "base/base.h"
#include "tests/job_asserts.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char tiny[] =
    "data=text.txt model=nano layers=1 channels=32 heads=2 context=16 batch=4 "
    "threads=1 warmup=3 eval=0";

static int write_text(void **state)
{
    (void)state;
    char path[256];
    snprintf(path, sizeof path, "%s/text.txt", job_dir());
    FILE *f = fopen(path, "w");
    for (int i = 0; i < 500; i++)
        fprintf(f, "int a%d = %d + b;\n", i * 7 % 40, i % 13);
    return fclose(f);
}

static void help_lists_the_commands(void **state)
{
    (void)state;
    static const char *const parts[] = {"train", "sample", "doctor",
                                        "keys",  "--help", NULL};
    struct job j = {0};
    job_run(&j, 20, "lockstep --help");
    assert_int_equal(j.status, 0);
    for (int i = 0; parts[i]; i++)
        assert_prints(&j, parts[i]);
    assert_null(strstr(j.out, "lockstep pin"));
    job_run(&j, 20, "lockstep train --help");
    assert_int_equal(j.status, 0);
    assert_prints(&j, "val_fraction  ");
    assert_prints(&j, "1..65536 sequences");
    assert_prints(&j, "fp32|bf16|fp16");
    job_run(&j, 20, "lockstep");
    assert_int_equal(j.status, 2);
    job_run(&j, 20, "lockstep trian");
    assert_int_equal(j.status, 1);
    assert_prints(&j, "nearest: train");
    job_run(&j, 20, "lockstep probee"); // probe is internal
    assert_status(&j, 1);
    assert_null(strstr(j.out, "nearest: probe"));
    job_run(&j, 20, "lockstep sample runs/x --hlep");
    assert_int_equal(j.status, 1);
    assert_prints(&j, "no such option; try: lockstep sample --help");
    job_run(&j, 20, "lockstep train --steps=5");
    assert_status(&j, 1);
    assert_prints(&j, "settings have no dashes; try: steps=5");
    job_run(&j, 20, "lockstep train --help=lr");
    assert_prints(&j, "no such option; try: lockstep train --help");
}

// These commands explain themselves with --help at any place (bench only at the
// first). They print their usage if they need words and get none.
static void every_command_explains_itself(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool needs_words;
    } commands[] = {{"train", false},   {"run", true},    {"report", true},
                    {"compare", true},  {"sample", true}, {"doctor", false},
                    {"keys", true},     {"bench", true},  {"predict", true},
                    {"simulate", false}};
    struct job j = {0};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char usage[64];
        const char *name = commands[i].name;
        snprintf(usage, sizeof usage, "lockstep %s", name);
        for (int how = 0; how < 2; how++) {
            job_run(&j, 20, how ? "lockstep help %s" : "lockstep %s --help",
                    name);
            assert_int_equal(j.status, 0);
            assert_int_equal(strncmp(j.out, usage, strlen(usage)), 0);
        }
        if (strcmp(name, "bench")) {
            job_run(&j, 20, "lockstep %s x=1 -h 2>/dev/null", name);
            assert_int_equal(j.status, 0);
            assert_prints(&j, usage);
        }
        if (commands[i].needs_words) {
            job_run(&j, 20, "lockstep %s 2>&1 >/dev/null", name);
            assert_int_equal(j.status, 2);
            assert_prints(&j, usage);
        }
    }
}

// A user may start these programs by mistake instead of mpirun. They then
// explain themselves, and start no job.
static void programs_explain_themselves(void **state)
{
    (void)state;
    static const char *const programs[] = {"lockstep", "trainer", "ps_server"};
    struct job j = {0};
    for (int i = 0; i < 3; i++) {
        char version[64];
        snprintf(version, sizeof version, "%s " LOCKSTEP_VERSION, programs[i]);
        job_run(&j, 20, "%s --version", programs[i]);
        assert_int_equal(j.status, 0);
        assert_int_equal(strncmp(j.out, version, strlen(version)), 0);
        assert_int_equal(count_lines(j.out), 1);
        job_run(&j, 20, "%s --help", programs[i]);
        assert_int_equal(j.status, 0);
    }
    job_run(&j, 20, "trainer sync=ring --help");
    assert_int_equal(j.status, 0);
    assert_prints(&j, "mpirun -n 4 trainer sync=ring");
    assert_prints(&j, "val_fraction  ");
    job_run(&j, 20, "trainer %s sync=ring workers=2 steps=1", tiny);
    assert_int_equal(j.status, 1);
    assert_prints(&j, "mpirun -n 2 trainer");
    job_run(&j, 20, "ps_server port=3");
    assert_int_equal(j.status, 1);
    assert_null(strstr(j.out, "try: ps_server"));
    job_run(&j, 20, "trainer");
    assert_int_equal(j.status, 2);
    assert_prints(&j, "trainer --help lists every setting");
}

// A script, or a time limit, ends a command that has started a job: the job
// ends, too, and its folder goes. What nohup ignores does not end it.
static void a_command_ends_what_it_started(void **state)
{
    (void)state;
    struct job j = {0};
    job_run(
        &j, 60,
        "mkdir -p ended && export TMPDIR=$PWD/ended && { "
        "trap '' HUP; lockstep predict model=nano batch=8 accum=4000 threads=1 "
        "workers=4 link=1gbit & p=$!; until [ -f ended/*/run.json ]; do "
        "kill -0 $p || exit 1; sleep 0.05; done; kill -HUP $p; sleep 1; "
        "kill -TERM $p; wait $p; "
        "echo status $?; }; ls -A ended | wc -l; "
        "ps -e -o args | grep -c \"[t]rain.*$TMPDIR\"");
    assert_prints(&j, "status 143\n0\n0\n");
}

static void a_run_trains_and_samples(void **state)
{
    (void)state;
    struct job j = {0};
    job_run(&j, 60,
            "printf 'steps=99\\nlr=1e-2\\n' > run.ini && "
            "lockstep train run.ini %s steps=30 save=20 out=a/b",
            tiny);
    assert_int_equal(j.status, 0);
    assert_prints(&j, "step 30/30");
    assert_prints(&j, "a/b");
    assert_true(job_has("a/b/log.txt"));
    assert_true(job_has("a/b/run.json"));
    assert_true(job_summary("a/b", "steps") == 30);

    char first[4096];
    job_run(&j, 20, "lockstep sample a/b tokens=100 seed=7 prompt='int '");
    assert_int_equal(j.status, 0);
    assert_int_equal(strncmp(j.out, "int ", 4), 0);
    assert_int_equal(strlen(j.out), 4 + 100 + 1);
    snprintf(first, sizeof first, "%s", j.out);
    job_run(&j, 20, "lockstep sample a/b tokens=100 seed=7 prompt='int '");
    assert_string_equal(j.out, first);
    job_run(&j, 20, "lockstep sample a/b tokens=100 seed=8 prompt='int '");
    assert_string_not_equal(j.out, first);

    job_run(&j, 20, "lockstep sample a/b/checkpoint-20 tokens=50 top_k=1");
    assert_int_equal(j.status, 0);
    snprintf(first, sizeof first, "%s", j.out);
    job_run(&j, 20,
            "lockstep sample a/b/checkpoint-20 tokens=50 "
            "temperature=0 seed=3");
    assert_string_equal(j.out, first);
}

// If standard input, output and error are closed, no file of a run takes their
// numbers: it has what it has in other runs.
static void closed_streams_reach_no_file(void **state)
{
    (void)state;
    static const char *const programs[] = {"trainer", "lockstep train"};
    struct job j = {0};
    for (int i = 0; i < 2; i++) {
        job_run(&j, 60,
                "rm -rf closed; %s %s steps=2 out=closed <&- >&- 2>&- && "
                "! grep -v -e ^run, -e ^closed, closed/steps.csv && "
                "! grep -r -e 'tokens/s' -e 'done in' closed",
                programs[i], tiny);
        assert_ok(&j);
    }
    job_run(&j, 60,
            "lockstep verify closed >&- && lockstep verify closed 2>&-");
    assert_ok(&j);
    assert_prints(&j, "summary");
}

// What was not printed, since the disk is full, is said in one line.
static void output_that_is_lost_is_said(void **state)
{
    (void)state;
    static const char *const commands[] = {
        "lockstep --version",
        "lockstep train --help",
        "lockstep run --help",
        "lockstep help verify",
        "lockstep keys lost",
        "lockstep sample lost tokens=5",
        "lockstep verify lost",
        "lockstep completion bash",
        "trainer --help",
        "ps_server --help",
        "lockstep bench sync --help",
        "lockstep explain ring", // limits its memory; a sanitizer wants more
    };
    size_t count = sizeof commands / sizeof *commands - TEST_SANITIZED;
    struct job j = {0};
    job_run(&j, 60, "lockstep train %s steps=2 save=2 out=lost >/dev/full",
            tiny);
    assert_status(&j, 1);
    assert_prints(&j, "lockstep: stdout: No space left on device\n");
    for (size_t i = 0; i < count; i++) {
        job_run(&j, 60, "%s >/dev/full", commands[i]);
        assert_status(&j, 1);
        assert_prints(&j, ": stdout: No space left on device\n");
        assert_int_equal(count_lines(j.out), 1);
    }
    job_run(&j, 60, "lockstep completion bash | head -n 1");
    assert_ok(&j);
    assert_int_equal(count_lines(j.out), 1);
}

// A damaged checkpoint is neither sampled nor trained from.
static void damage_is_refused(void **state)
{
    (void)state;
    static const char *const files[] = {"model.safetensors", "config.json",
                                        "symbols.txt", "state.json"};
    struct job j;
    job_run(&j, 60, "lockstep train %s steps=2 save=2 out=good", tiny);
    assert_status(&j, 0);
    for (int i = 0; i < 4; i++) {
        job_run(&j, 60,
                "rm -rf bad && cp -r good bad && cd bad/checkpoint-2 && "
                "n=$(($(wc -c < %s) / 2)) && "
                "b=$(od -An -tu1 -j$n -N1 %s) && printf \"\\\\$(printf "
                "%%o $((b ^ 1)))\" | dd of=%s bs=1 seek=$n conv=notrunc "
                "status=none",
                files[i], files[i], files[i]);
        assert_status(&j, 0);
        job_run(&j, 60, "lockstep sample bad tokens=5");
        assert_status(&j, 1);
        assert_prints(&j, files[i]);
        assert_prints(&j, "damaged");
        job_run(&j, 60,
                "lockstep train %s steps=2 out=from "
                "init=bad/checkpoint-2/model.safetensors",
                tiny);
        assert_status(&j, 1);
        assert_prints(&j, "damaged");
        assert_false(job_has("from"));
    }
    job_run(&j, 60,
            "rm good/checkpoint-2/optimizer.safetensors; "
            "lockstep sample good tokens=5 && "
            "lockstep train %s steps=2 out=from "
            "init=good/checkpoint-2/model.safetensors",
            tiny);
    assert_status(&j, 0);
}

// Each step of log= and of eval= has a line, and so has the last step, even if
// steps are very fast.
static void training_prints_its_progress(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60, "lockstep train %s steps=11 log=4 eval=6 out=said", tiny);
    assert_int_equal(j.status, 0);
    static const int expected[] = {4, 6, 8, 11};
    int n = 0, step;
    double rate = 0;
    for (char *save, *line = strtok_r(j.out, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        if (sscanf(line, "step %d/11", &step) != 1)
            continue;
        assert_true(n < 4 && step == expected[n++]);
        assert_true(!strstr(line, "val ") == (step == 4 || step == 8));
        const char *at = strstr(line, " tokens/s");
        assert_non_null(at);
        while (at > line && at[-1] != ' ')
            at--;
        rate = strtod(at, NULL);
    }
    assert_int_equal(n, 4);
    // the last line agrees with the summary: both cover 11 steps
    assert_true(fabs(job_summary("said", "tokens_per_s") / rate - 1) < 1e-2);
    // the command in run.json lacks words that later words replace
    job_run(&j, 20,
            "! grep eval=0 said/run.json && grep 'eval=6 ' "
            "said/run.json");
    assert_int_equal(j.status, 0);
}

static void each_run_has_a_folder_of_its_own(void **state)
{
    (void)state;
    struct job j = {0};
    for (int i = 0; i < 2; i++) {
        job_run(&j, 60, "lockstep train %s steps=3", tiny);
        assert_int_equal(j.status, 0);
    }
    job_run(&j, 20, "test $(ls -d runs/*/summary.json | wc -l) = 2");
    assert_int_equal(j.status, 0);
    job_run(&j, 60,
            "mkdir none && cd none && ! lockstep train data=/no/text && ls");
    assert_int_equal(j.status, 0);
    assert_prints(&j, "/no/text");
    assert_null(strstr(j.out, "runs"));
}

static void keys_are_readable_by_their_owner_only(void **state)
{
    (void)state;
    struct job j = {0};
    job_run(&j, 20, "lockstep keys k && cat k/* | wc -c");
    assert_int_equal(j.status, 0);
    assert_prints(&j, "164"); // four files of 40 characters and a newline
    static const char *const names[] = {"server.public", "server.secret",
                                        "worker.public", "worker.secret"};
    for (int i = 0; i < 4; i++) {
        char path[256];
        struct stat st;
        snprintf(path, sizeof path, "%s/k/%s", job_dir(), names[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
    job_run(&j, 20, "lockstep keys k");
    assert_int_equal(j.status, 1);
    assert_prints(&j, "File exists");
}

// Rows with MPI are measured, too: mpirun gets the user's words. No step takes
// longer than the whole command may.
static void bench_measures_every_backend(void **state)
{
    (void)state;
    static const char *const rows[] = {"sps",      "dps",       "ring",
                                       "ring-shm", "allreduce", "mpi-halving",
                                       "zmq-echo", "zmq-echos"};
    struct job j = {0};
    job_run(
        &j, 120,
        "lockstep bench sync workers=3 min_bytes=64 max_mb=0.0001 "
        "rounds=1 > b.txt; rc=$?; cat b.txt; "
        "awk '$3 == \"fp32\" && $4 + 0 > 120e6 {print \"too long\"}' b.txt; "
        "exit $rc");
    assert_int_equal(j.status, 0);
    assert_null(strstr(j.out, "too long"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char head[64];
        snprintf(head, sizeof head, "# %s, 3 workers:", rows[i]);
        assert_prints(&j, head);
    }
    job_run(&j, 60, "lockstep bench sync workers=2 sizes=4");
    assert_int_equal(j.status, 1);
    assert_prints(&j, "unknown key sizes");
    assert_int_equal(count_lines(j.out), 1);
}

// What it could not write at its end, a bench refuses before it begins. The
// check leaves nothing.
static void a_bench_looks_at_its_output_first(void **state)
{
    (void)state;
    static const char *const benches[] = {"sync sync=ring max_mb=0.0001",
                                          "link"};
    struct job j = {0};
    for (int i = 0; i < 2; i++) {
        job_run(&j, 60, "lockstep bench %s out=/no/such/x", benches[i]);
        assert_status(&j, 1);
        assert_prints(&j, "/no/such/x.next: No such file or directory; try: ");
        assert_int_equal(count_lines(j.out), 1);
    }
    job_run(&j, 60,
            "mkdir fitted && lockstep bench sync sync=ring rounds=1 "
            "max_mb=0.001 inject=nan:5 out=fitted/x; ls -A fitted; echo end");
    assert_prints(&j, "results are wrong");
    assert_prints(&j, "\nend\n");
    assert_false(job_has("fitted/x.next"));
}

// The processes of a bench end with it. They are stopped before, or they might
// end by themselves.
static void a_bench_ends_what_it_started(void **state)
{
    (void)state;
    static const char *const signals[] = {"TERM", "INT"};
    struct job j = {0};
    for (int i = 0; i < 2; i++) {
        job_run(&j, 60,
                "env --default-signal=INT lockstep bench link & p=$!; "
                "sockets() { for c in $(pgrep -P $p); do "
                "ls -l /proc/$c/fd | grep -q socket: && echo $c; done; }; "
                "until all=$(sockets) && [ $(echo $all | wc -w) = 2 ]; do "
                "kill -0 $p || exit 9; sleep 0.05; done; "
                "kill -STOP $all; kill -%s $p; wait $p; echo status $?; "
                "for c in $all; do timeout 20 tail --pid=$c -f /dev/null || "
                "{ echo left; kill -KILL $c; }; done",
                signals[i]);
        assert_prints(&j, i ? "status 130\n" : "status 143\n");
        assert_null(strstr(j.out, "left"));
    }
}

static void doctor_examines_the_machine(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "cores", "memory",       "disk",    "oneDNN", "ZeroMQ",
        "CURVE", "Open MPI",     "gnuplot", "GPU",    "namespaces",
        "NCCL",  "CUDA toolkit", NULL,
    };
    struct job j = {0};
    job_run(&j, 60, "lockstep doctor");
    for (int i = 0; parts[i]; i++)
        assert_prints(&j, parts[i]);
    bool lacks = strstr(j.out, "LACK") != NULL;
    assert_int_equal(j.status, lacks);
}

// With peer=ddp another program trains a cell. It gets our program, the cell's
// words and a folder. Exit status 77 means that it cannot run here: the cell is
// skipped, with a message. The other program of this test runs ours.
static void another_program_trains_a_cell(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 100,
            "printf '[cell ours]\\nseed=1\\n[cell theirs]\\npeer=ddp\\nseed=1"
            "\\n' > p.ini; printf '#!/bin/sh\\ncase $1 in "
            "*gpt2_torch_ddp.py) ;; *) exit 1;; esac\\n"
            "for w; do out=${w#out=}; done\\n\"$2\" train %s eval=0 "
            "steps=3 trace=off samples=0 out=$out || exit 1\\n"
            "sed -i -e s/local_/#/ -e s/local/theirs/ -e s/#/local_/ "
            "$out/run.json $out/summary.json $out/steps.csv\\n' > py; "
            "printf '#!/bin/sh\\necho no module named torch\\n"
            "exit 77\\n' > nopy; "
            "chmod +x py nopy; "
            "lockstep run p.ini %s eval=0 steps=3 repeat=1 figures=speedup "
            "baseline=ours "
            "peer_python=$PWD/nopy out=p",
            tiny, tiny);
    assert_ok(&j);
    assert_prints(&j, "skipped: theirs, repeat 1: no module named torch");
    assert_prints(&j, "Not run: theirs.");
    assert_null(strstr(j.out, "gnuplot failed")); // all speed-ups are 1
    job_run(&j, 100,
            "lockstep run p.ini %s eval=0 steps=3 repeat=1 figures=speedup "
            "peer_python=$PWD/py out=p",
            tiny);
    assert_ok(&j);
    assert_prints(&j, "theirs = ours: the losses of the first 3 steps");
    // the answer and the report's path come last
    const char *answer = strstr(j.out, "Each cell ran once");
    assert_non_null(answer);
    assert_true(answer > strstr(j.out, "theirs = ours"));
    assert_string_equal(strstr(answer, "\n\n"), "\n\nreport: p/report.html\n");
    assert_null(strstr(j.out, "not run"));
    job_run(&j, 20,
            "echo '[cell a]\npeer=horovod' > q.ini; lockstep run q.ini");
    assert_status(&j, 1);
    assert_prints(&j, "peer=horovod: must be ddp");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_lists_the_commands),
        cmocka_unit_test(every_command_explains_itself),
        cmocka_unit_test(programs_explain_themselves),
        cmocka_unit_test(a_command_ends_what_it_started),
        cmocka_unit_test(a_run_trains_and_samples),
        cmocka_unit_test(closed_streams_reach_no_file),
        cmocka_unit_test(output_that_is_lost_is_said),
        cmocka_unit_test(damage_is_refused),
        cmocka_unit_test(training_prints_its_progress),
        cmocka_unit_test(each_run_has_a_folder_of_its_own),
        cmocka_unit_test(keys_are_readable_by_their_owner_only),
        cmocka_unit_test(bench_measures_every_backend),
        cmocka_unit_test(a_bench_looks_at_its_output_first),
        cmocka_unit_test(a_bench_ends_what_it_started),
        cmocka_unit_test(another_program_trains_a_cell),
        cmocka_unit_test(doctor_examines_the_machine),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, write_text, job_cleanup);
}
