// test_again.c - repeats a run by its run.json, and resumes a run that stopped.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/job_asserts.h"

static const char tiny[] =
    "model=nano layers=1 heads=1 channels=8 context=8 batch=2 warmup=2 eval=0 "
    "threads=1 trace=off samples=0";

// Stores the object `object` of RUN/run.json in j->out, as one line of text.
static void print_object(struct job *j, const char *run, const char *object)
{
    job_run(j, 20, "tr -d '\\n\\t' <%s/run.json | grep -o '\"%s\":{[^}]*}'",
            run, object);
    assert_ok(j);
}

static void assert_same_loss(const char *a, const char *b)
{
    assert_true(job_summary(a, "steps") == job_summary(b, "steps"));
    assert_true(job_summary(a, "final_train_loss") ==
                job_summary(b, "final_train_loss"));
}

// "asked" in run.json holds the settings that the user gave, but no folder,
// rank or endpoint. "effective" also holds the settings that were derived.
static void run_json_repeats_the_given_settings(void **state)
{
    (void)state;
    struct job j = {0};
    job_run(&j, 60,
            "lockstep train %s steps=4 sync=dps workers=2 servers=2 wire=fp16 "
            "seed=5 out=one",
            tiny);
    assert_ok(&j);
    print_object(&j, "one", "asked");
    assert_prints(&j, "\"seed\":5,");
    assert_prints(&j, "\"servers\":\"2\"");
    static const char *const never[] = {"\"out\"",   "\"rank\"",
                                        "\"world\"", "\"rendezvous\"",
                                        "://",       "\"lr\""};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        assert_null(strstr(j.out, never[i]));
    print_object(&j, "one", "effective");
    static const char *const derived[] = {
        "\"update\":\"worker\"",   "\"transport\":\"zmq\"",
        "\"bucket_mb\":1,",        "\"servers\":\"tcp://127.0.0.1:",
        "\"consistency\":\"bsp\"", "\"lr\":0.002,",
    };
    for (size_t i = 0; i < sizeof derived / sizeof *derived; i++)
        assert_prints(&j, derived[i]);

    job_run(&j, 60, "lockstep train one/run.json out=two");
    assert_ok(&j);
    assert_same_loss("one", "two");
    // ring has no servers: it drops the old run's servers=, and refuses one in
    // the command
    job_run(&j, 60, "lockstep train one/run.json sync=ring out=three");
    assert_ok(&j);
    print_object(&j, "three", "asked");
    assert_prints(&j, "\"wire\":\"fp16\"");
    assert_null(strstr(j.out, "servers"));
    job_run(&j, 60, "lockstep train one/run.json sync=ring servers=2 out=bad");
    assert_int_equal(j.status, 1);
    assert_prints(&j, "ring has no such setting");
    // with another number of workers the settings are derived again
    job_run(&j, 60,
            "lockstep train %s steps=4 sync=ring workers=2 out=four && "
            "lockstep train four/run.json workers=6 steps=2 out=six",
            tiny);
    assert_ok(&j);
    print_object(&j, "four", "effective");
    assert_prints(&j, "\"bucket_mb\":1,");
    print_object(&j, "six", "effective");
    assert_prints(&j, "\"bucket_mb\":1.5,");
}

// A resumed run keeps its settings. Words of the command line override them,
// and the log names each change.
static void a_resumed_run_keeps_its_settings(void **state)
{
    (void)state;
    struct job j = {0};
    job_run(&j, 60,
            "lockstep train %s steps=8 seed=5 schedule=constant sync=ring "
            "workers=2 slice_kb=64 out=whole",
            tiny);
    assert_ok(&j);
    job_run(&j, 60,
            "lockstep train whole/run.json steps=4 save=2 out=half && "
            "lockstep train resume=half steps=8 out=rest");
    assert_ok(&j);
    assert_prints(&j, "resume=half: steps=8, it was 4");
    assert_prints(&j, "resuming from half/checkpoint-4, step 4");
    assert_null(strstr(j.out, "seed=5, it was"));
    assert_null(strstr(j.out, "the schedule has changed"));
    assert_true(job_summary("whole", "final_train_loss") ==
                job_summary("rest", "final_train_loss"));
    job_run(&j, 60,
            "lockstep train resume=half/checkpoint-4 steps=8 lr=0.003 "
            "sync=allreduce out=other");
    assert_ok(&j); // allreduce does not read slice_kb
    assert_prints(&j, "lr=0.003, it was 0.002");
    assert_prints(&j, "the learning rate was 0.002 in step 4, and will be "
                      "0.003 in step 5");
    assert_prints(&j, "sync=allreduce, it was ring");
    assert_prints(&j, "slice_kb=256, it was 64");
    assert_true(job_summary("whole", "final_train_loss") !=
                job_summary("other", "final_train_loss"));
    job_run(&j, 60,
            "lockstep train resume=half steps=8 sync=dps servers=1 out=dps && "
            "lockstep train resume=dps steps=9 sync=ring out=ring");
    assert_ok(&j);
    assert_prints(&j, "resume=half: servers=1, it was not set");
    assert_prints(&j, "resume=dps: without servers=, it was 1");
    job_run(&j, 60, "lockstep train resume=auto steps=8 out=half");
    assert_ok(&j);
    assert_true(job_summary("whole", "final_train_loss") ==
                job_summary("half", "final_train_loss"));
    job_run(&j, 60, "trainer resume=whole out=nothing");
    assert_int_equal(j.status, 1);
    job_run(&j, 60, "lockstep train resume=/no/such out=nothing");
    assert_int_equal(j.status, 1);
    assert_prints(&j, "try: the folder of a run");
}

// A constant loss scale is a setting, and not what the checkpoint says.
static void a_resumed_run_may_have_another_loss_scale(void **state)
{
    (void)state;
    struct job j = {0};
    double scale[8];
    job_run(&j, 60,
            "lockstep train %s steps=2 save=2 precision=fp16 loss_scale=128 "
            "out=scaled && lockstep train resume=auto steps=4 loss_scale=64 "
            "out=scaled",
            tiny);
    assert_ok(&j);
    assert_int_equal(job_column("scaled", "loss_scale", 0, scale, 8), 4);
    for (int i = 0; i < 4; i++)
        assert_true(scale[i] == (i < 2 ? 128 : 64));
}

// ... but the state of one update rule is none of another.
static void a_resumed_run_needs_the_rule_that_it_had(void **state)
{
    (void)state;
    struct job j = {0};
    job_run(&j, 60,
            "lockstep train %s steps=2 save=2 out=adamw && lockstep train %s "
            "steps=2 save=2 optimizer=sgd momentum=0 out=sgd; lockstep train "
            "resume=adamw steps=4 optimizer=sgd out=no; lockstep train "
            "resume=sgd steps=4 momentum=0.5 out=no",
            tiny, tiny);
    assert_int_equal(j.status, 1);
    assert_prints(&j, "the run was made with optimizer=adamw, not "
                      "optimizer=sgd; try: optimizer=adamw\n");
    assert_prints(&j, "the run was made with momentum=0, not momentum=0.5; "
                      "try: momentum=0\n");
}

// LARS and LAMB need norms of whole tensors, which all workers have: two
// workers train as one does, and a resumed run goes on as if it had not
// stopped.
static void layered_rules_do_not_depend_on_the_world(void **state)
{
    (void)state;
    struct job j = {0};
    static const char *const rules[] = {"lars", "lamb"};
    for (int i = 0; i < 2; i++) {
        const char *rule = rules[i];
        job_run(&j, 60,
                "for n in 1 2; do lockstep train %s steps=8 optimizer=%s "
                "schedule=constant global_batch=4 sync=$([ $n = 1 ] && echo "
                "local || echo ring) workers=$n verify=2 out=%s$n; done; "
                "lockstep train %s2/run.json steps=4 save=4 out=%s_half && "
                "lockstep train resume=%s_half steps=8 out=%s_rest",
                tiny, rule, rule, rule, rule, rule, rule);
        assert_ok(&j);
        char one[16], two[16], rest[16];
        snprintf(one, sizeof one, "%s1", rule);
        snprintf(two, sizeof two, "%s2", rule);
        snprintf(rest, sizeof rest, "%s_rest", rule);
        double loss = job_summary(two, "final_train_loss");
        assert_true(fabs(job_summary(one, "final_train_loss") - loss) < 1e-5);
        assert_true(job_summary(rest, "final_train_loss") == loss);
    }
}

// A larger steps= stretches the schedule, so the learning rate jumps. With the
// same steps= it does not.
static void more_steps_stretch_the_schedule(void **state)
{
    (void)state;
    struct job j = {0};
    job_run(&j, 60,
            "lockstep train %s steps=4 save=2 warmup=0 schedule=cosine "
            "lr=0.002 min_lr=0.0001 out=short && "
            "lockstep train resume=short steps=8 out=stretched",
            tiny);
    assert_ok(&j);
    assert_prints(&j, "the schedule has changed: the learning rate was "
                      "0.000378249 in step 4, and will be 0.00105 in step 5");
    job_run(&j, 60, "lockstep train resume=short/checkpoint-2 out=same");
    assert_ok(&j);
    assert_null(strstr(j.out, "the schedule has changed"));
}

// A run of version 0.1.0. Its run.json does not yet separate the settings that
// the user gave from those that were derived.
static void runs_of_version_0_1_0_are_read(void **state)
{
    (void)state;
    struct job j = {0};
    job_run(&j, 20, "cp -r '%s' old && cp old/text.txt .", LOCKSTEP_OLD_RUN);
    assert_ok(&j);
    job_run(&j, 60, "lockstep train old/run.json out=repeated");
    assert_ok(&j);
    double was = job_summary("old", "final_train_loss");
    assert_true(fabs(job_summary("repeated", "final_train_loss") - was) < 1e-3);
    job_run(&j, 60, "lockstep train resume=old steps=9 out=longer");
    assert_ok(&j);
    assert_prints(&j, "resuming from old/checkpoint-6, step 6");
    assert_prints(&j, "steps=9, it was 6");
    job_run(&j, 60, "lockstep report old && lockstep sample old tokens=5");
    assert_ok(&j);
    job_run(&j, 60, "lockstep compare old old");
    assert_prints(&j, "old");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_json_repeats_the_given_settings),
        cmocka_unit_test(a_resumed_run_keeps_its_settings),
        cmocka_unit_test(a_resumed_run_may_have_another_loss_scale),
        cmocka_unit_test(a_resumed_run_needs_the_rule_that_it_had),
        cmocka_unit_test(layered_rules_do_not_depend_on_the_world),
        cmocka_unit_test(more_steps_stretch_the_schedule),
        cmocka_unit_test(runs_of_version_0_1_0_are_read),
    };
    setenv("PATH", LOCKSTEP_BIN ":/usr/bin:/bin", 1);
    return cmocka_run_group_tests(tests, NULL, job_cleanup);
}
