// test_offload_jobs.c - whole jobs whose optimiser's state is in a file. They
// write the same files as jobs with the state in memory, to the byte, also
// after kills; a disk that is too small is one line.

#include "tests/job.h"
#include "tests/job_asserts.h"

#include <stdio.h>
#include <string.h>

#include "tests/test.h"

static const char same[] =
    "data=text.txt model=nano layers=2 channels=96 heads=3 context=32 batch=4 "
    "eval=0 log=0 warmup=0 timeout=30 threads=1 verify=1 schedule=constant "
    "save=3";

// Two parts of three steps. Run i has the state in a file in part p if bit p of
// i is set. So checkpoints go in both directions.
static void same_files(const char *way)
{
    struct job j;
    job_run(&j, 20, "rm -rf run?");
    for (int i = 0; i < 4; i++) {
        char out[16];
        snprintf(out, sizeof out, "run%d", i);
        for (int part = 0; part < 2; part++) {
            job_run(&j, 100,
                    "lockstep train %s resume=auto steps=%d out=%s %s%s", same,
                    3 + 3 * part, out, way,
                    i >> part & 1 ? " offload=disk" : " offload=none");
            assert_ok(&j);
            assert_same_files("run0", out, 3 + 3 * part);
        }
        job_run(&j, 20,
                "for r in run0 %s; do cut -d, -f3,4,7,9 $r/steps.csv > $r.csv; "
                "done; cmp run0.csv %s.csv && ! ls -A %s | grep offload",
                out, out, out);
        assert_ok(&j);
    }
}

static void a_file_changes_no_bit(void **state)
{
    (void)state;
    static const char *const ways[] = {
        "sync=local",
        "sync=zero workers=2 clip=0.1",
        "sync=ring workers=2 optimizer=sgd transport=tcp",
        "sync=zero workers=3 shard=3 optimizer=sgd overlap=0",
        "sync=zero workers=2 shard=3 precision=bf16 accum=2",
        "sync=zero workers=2 shard=2 precision=bf16",
        "sync=ring mesh=cp2,tp2 tp_sequence=1 attention_over=ring",
        "sync=zero mesh=dp2,pp2 precision=fp16",
        "sync=outer workers=2 every=3",
        "sync=ring workers=2 squeeze=topk",
        "sync=allreduce workers=2",
    };
    size_t n = test_long() ? sizeof ways / sizeof *ways : 5;
    for (size_t i = 0; i < n; i++)
        same_files(ways[i]);
}

// Kills at any time, also while the file is read and written: what was saved is
// enough, and the killed process leaves no file.
static void kills_lose_nothing(void **state)
{
    (void)state;
    static const char more[] = "steps=60 save=3 keep=2";
    struct job j;
    int kills = test_long() ? 20 : 4;
    job_run(&j, 100, "rm -rf calm ill; trainer %s %s out=calm", same, more);
    assert_ok(&j);
    for (int i = 0; i < kills; i++) {
        job_run(&j, 60,
                "timeout -s KILL %d.%d trainer %s %s out=ill offload=disk "
                "resume=auto; ! ls -A ill | grep offload",
                i % 3, 3 + 29 * i % 7, same, more);
        assert_ok(&j);
    }
    job_run(&j, 100, "trainer %s %s out=ill offload=disk resume=auto", same,
            more);
    assert_ok(&j);
    assert_same_files("calm", "ill", 60);
}

// A limit of the size of files stands in for a full disk.
static void a_full_disk_ends_the_job_in_one_line(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60,
            "trap '' XFSZ; ulimit -f 3000; trainer %s steps=3 out=full "
            "offload=disk >/dev/null",
            same);
    assert_status(&j, 1);
    assert_prints(&j, "offload=disk: 2.0 MiB of state in full: File too large");
    assert_int_equal(count_lines(j.out), 1);
}

static void what_has_no_state_of_its_own_is_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"sync=sps workers=2", "sps has no such setting"},
        {"sync=dps workers=2 update=worker", "dps has no such setting"},
        {"sync=dataparallel workers=2", "dataparallel has no such setting"},
        {"optimizer=lamb", "needs the norms of whole tensors"},
        {"optimizer=sgd momentum=0", "has no state"},
        {"device=cuda", "try: sync=zero"},
    };
    struct job j;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        job_run(&j, 30, "lockstep train %s steps=1 offload=disk out=no %s",
                same, cases[i][0]);
        assert_status(&j, 1);
        assert_prints(&j, "offload=disk: ");
        assert_prints(&j, cases[i][1]);
        assert_int_equal(count_lines(j.out), 1);
    }
    job_run(&j, 30, "trainer %s steps=1 offload=disk", same);
    assert_status(&j, 1);
    assert_prints(&j, "try: out=DIR");
    job_run(&j, 30, "lockstep train %s steps=1 offload=host out=no", same);
    assert_status(&j, 1);
    assert_prints(&j, "try: sync=zero device=cuda");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_no_state_of_its_own_is_refused),
        cmocka_unit_test(a_full_disk_ends_the_job_in_one_line),
        cmocka_unit_test(a_file_changes_no_bit),
        cmocka_unit_test(kills_lose_nothing),
    };
    return cmocka_run_group_tests(tests, job_text, job_cleanup);
}
