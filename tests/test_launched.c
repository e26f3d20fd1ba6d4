// test_launched.c - workers that another launcher started (torchrun, srun,
// PMI): they find each other, or say why they cannot. None silently trains a
// model of its own.

#include "cluster/cluster.h"

#include "base/base.h"
#include "tests/job_asserts.h"

#include <stdlib.h>
#include <unistd.h>

// Runs a command without the variables that any launcher sets.
#define NOBODY                                                                 \
    "env -u RANK -u WORLD_SIZE -u MASTER_ADDR -u MASTER_PORT -u PMI_RANK "     \
    "-u PMI_SIZE -u PALS_RANKID -u SLURM_PROCID -u SLURM_NTASKS "              \
    "-u SLURM_STEP_ID -u PMIX_RANK -u PBS_NODEFILE "

static const char tiny[] =
    "data=text.txt model=nano layers=1 channels=32 heads=2 context=16 batch=2 "
    "eval=0 log=0 warmup=0 timeout=30 threads=1 samples=0 trace=off steps=6";

// A loopback address that no other process uses.
static const char *own_address(void)
{
    static char text[32];
    int pid = (int)getpid();
    snprintf(text, sizeof text, "127.%d.%d.%d", 1 + (pid >> 15) % 250,
             (pid >> 7) % 250, 2 + pid % 128);
    return text;
}

static void set_all(const char *const (*pairs)[2], bool on)
{
    for (; (*pairs)[0]; pairs++)
        if (on)
            setenv((*pairs)[0], (*pairs)[1], 1);
        else
            unsetenv((*pairs)[0]);
}

static void launchers_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *name; // NULL if cluster_named() must return false
        const char *const env[4][2];
    } cases[] = {
        {"torchrun", {{"RANK", "1"}, {"WORLD_SIZE", "3"}}},
        {"PMI", {{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}}},
        {"PALS", {{"PALS_RANKID", "1"}, {"PMI_SIZE", "3"}, {"PMI_RANK", "1"}}},
        {"srun",
         {{"SLURM_PROCID", "1"},
          {"SLURM_NTASKS", "3"},
          {"SLURM_STEP_ID", "0"}}},
        {NULL, {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "3"}}}, // not by srun
        {NULL, {{"RANK", "0"}, {"WORLD_SIZE", "1"}}},
        {NULL, {{"RANK", "3"}, {"WORLD_SIZE", "3"}}},
        {NULL, {{"RANK", "one"}, {"WORLD_SIZE", "3"}}},
        {NULL, {{"RANK", "1"}}},
    };
    static const char *const mpi[][2] = {{"OMPI_COMM_WORLD_RANK", "0"},
                                         {"OMPI_COMM_WORLD_SIZE", "2"},
                                         {NULL, NULL}};
    struct cluster_place p;
    int rank, world;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_all(cases[i].env, true);
        assert_int_equal(cluster_named(&p), cases[i].name != NULL);
        if (cases[i].name) {
            assert_string_equal(p.launcher, cases[i].name);
            assert_int_equal(p.rank, 1);
            assert_int_equal(p.world, 3);
        }
        assert_false(cluster_launched(&rank, &world));
        set_all(mpi, true); // mpirun was started by that launcher: it counts
        assert_false(cluster_named(&p));
        assert_true(cluster_launched(&rank, &world));
        assert_int_equal(world, 2);
        set_all(mpi, false);
        set_all(cases[i].env, false);
    }
}

static void torchrun_gives_the_rendezvous(void **state)
{
    (void)state;
    char at[CLUSTER_ENDPOINT];
    assert_int_equal(cluster_rendezvous(at), 0);
    assert_string_equal(at, "");
    setenv("MASTER_ADDR", "node1", 1);
    setenv("MASTER_PORT", "29500", 1);
    assert_int_equal(cluster_rendezvous(at), 0);
    assert_string_equal(at, "tcp://node1:29500");
    // torchrun itself listens at MASTER_PORT
    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
    assert_int_equal(cluster_rendezvous(at), 0);
    assert_string_equal(at, "tcp://node1:29501");
    unsetenv("TORCHELASTIC_USE_AGENT_STORE");
    unsetenv("MASTER_ADDR");
    unsetenv("MASTER_PORT");
}

// Two processes are two workers of one ring, whichever launcher names their
// ranks. The model has the bits of one that `lockstep train` trained.
static void every_launcher_trains_the_same_model(void **state)
{
    (void)state;
    static const char *const told[] = {
        "RANK=%d WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=%s MASTER_PORT=2910 "
        "trainer",
        "PMI_RANK=%d PMI_SIZE=2 trainer rendezvous=tcp://%s:2911",
        "SLURM_PROCID=%d SLURM_NTASKS=2 SLURM_STEP_ID=0 trainer "
        "rendezvous=tcp://%s:2912",
        "trainer world=2 rank=%d rendezvous=tcp://%s:2913"};
    struct job j;
    job_run(&j, 60,
            NOBODY "lockstep train %s sync=ring workers=2 save=6 out=one",
            tiny);
    assert_status(&j, 0);
    for (int i = 0; i < 4; i++) {
        char a[256], b[256];
        snprintf(a, sizeof a, told[i], 0, own_address());
        snprintf(b, sizeof b, told[i], 1, own_address());
        job_run(&j, 60,
                NOBODY "%s %s sync=ring save=6 out=two%d & " NOBODY
                       "%s %s sync=ring save=6 out=two%d; s=$?; wait $! && "
                       "exit $s",
                b, tiny, i, a, tiny, i);
        assert_status(&j, 0);
        job_run(&j, 20,
                "cmp one/checkpoint-6/model.safetensors "
                "two%d/checkpoint-6/model.safetensors",
                i);
        assert_status(&j, 0);
    }
    assert_int_equal(job_processes(20), 0);
}

// Workers that cannot find each other are refused with one line.
static void no_worker_trains_alone(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"RANK=0 WORLD_SIZE=2 trainer %s", "torchrun started 2 trainers, but "
                                           "sync=local trains one worker"},
        {"OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
         "mpirun -n 2 --oversubscribe trainer %s",
         "mpirun started 2 trainers, but sync=local trains one worker"},
        {"RANK=0 WORLD_SIZE=2 trainer %s sync=ring",
         "Open MPI cannot join them; try: mpirun"},
        {"PMI_RANK=1 PMI_SIZE=2 trainer %s sync=ring",
         "rendezvous=tcp://HOST:PORT"},
        {"SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_ID=0 trainer %s sync=ring",
         "srun started 2 trainers, and Open MPI cannot join them; try: mpirun "
         "(in Slurm srun --mpi=pmix)"},
        {"RANK=0 WORLD_SIZE=2 lockstep train %s sync=ring workers=2",
         "torchrun started 2 copies of lockstep train, which starts all "
         "workers itself"},
        {"SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_ID=0 lockstep train %s",
         "srun started 2 copies of lockstep train, which starts all workers"},
        {"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 lockstep train %s",
         "mpirun started 2 copies of lockstep train, which starts all workers"},
        {"OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
         "mpirun -n 1 trainer %s sync=sps transport=mpi",
         "sps: no server named; try: servers=mpi://RANK"},
    };
    struct job j;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char command[512];
        snprintf(command, sizeof command, cases[i][0], tiny);
        job_run(&j, 60, NOBODY "%s out=none", command);
        assert_status(&j, 1);
        if (!strstr(j.out, cases[i][1]))
            print_error("%s: %s\n", command, j.out);
        assert_non_null(strstr(j.out, cases[i][1]));
        assert_false(job_has("none"));
    }
}

// Jobs that do not send by MPI do not start mpirun, whose place a script takes
// here, neither on one host nor on several.
static void own_carriers_start_without_mpirun(void **state)
{
    (void)state;
    static const char *const ways[] = {
        "sync=ring workers=3",         "sync=zero workers=2 hosts=two",
        "sync=ring mesh=pp2 layers=2", "sync=outer every=2 workers=2",
        "sync=dataparallel workers=2", "sync=ring workers=1",
    };
    static const char *const mpi[] = {"sync=allreduce workers=2",
                                      "sync=zero transport=library workers=2",
                                      "sync=sps transport=mpi workers=2"};
    struct job j;
    job_run(&j, 20,
            "mkdir mpi && printf '#!/bin/sh\ntouch asked-mpi\nexit 3\n' > "
            "mpi/mpirun && chmod +x mpi/mpirun; "
            "printf '127.0.0.1\n127.0.0.2\n' > two; "
            "printf '#!/bin/sh\nshift\nexec sh -c \"$*\"\n' > rsh; "
            "chmod +x rsh");
    assert_status(&j, 0);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        job_run(
            &j, 60,
            "rm -rf own; " NOBODY "PATH=\"$PWD/mpi:$PATH\" "
            "LOCKSTEP_RSH=\"$PWD/rsh\" lockstep train %s %s save=6 out=own && "
            "[ -e own/checkpoint-6/model.safetensors ]",
            tiny, ways[i]);
        assert_status(&j, 0);
        assert_false(job_has("asked-mpi"));
    }
    job_run(&j, 60,
            "rm -rf own; " NOBODY "SLURM_JOB_NUM_NODES=2 lockstep train %s "
            "sync=ring workers=2 out=own",
            tiny);
    assert_status(&j, 0);
    assert_prints(&j, "this Slurm job has 2 nodes, and all processes run on "
                      "this one; try: examples/slurm.sh, or hosts=FILE");
    for (size_t i = 0; i < sizeof mpi / sizeof *mpi; i++) {
        job_run(&j, 60,
                "rm -f asked-mpi; " NOBODY "PATH=\"$PWD/mpi:$PATH\" "
                "lockstep train %s %s out=never; [ -e asked-mpi ]",
                tiny, mpi[i]);
        assert_status(&j, 0);
    }
    assert_int_equal(job_processes(20), 0);
}

// Both ranks are silent for so long, or the first of them is: on one core the
// last sign of the other may come later.
static void assert_silent(const struct job *j, const char *within)
{
    static const char *const who[][2] = {{"2", "rank 0, rank 1"},
                                         {"1", "rank 0"},
                                         {"1", "rank 1"}};
    bool silent = false;
    for (int i = 0; i < 3; i++) {
        char text[128];
        snprintf(text, sizeof text,
                 "mpirun: no sign of life of %s of 2 processes within %s: %s",
                 who[i][0], within, who[i][1]);
        silent |= strstr(j->out, text) != NULL;
    }
    if (!silent)
        print_message("%s\n", j->out);
    assert_true(silent);
}

// A frozen mpirun cannot keep a job for ever. With restarts= the job begins
// again.
static void a_frozen_mpirun_ends_the_job(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 100,
            NOBODY "lockstep train %s sync=allreduce workers=2 steps=1000000 "
                   "timeout=4 save=5 restarts=1 out=frozen & p=$!; "
                   "until [ -e frozen/latest ]; do sleep 0.02; done; "
                   "read v < /proc/$p/task/$p/children; kill -STOP $v; "
                   "until grep -q resuming frozen/log.txt; do sleep 0.02; "
                   "kill -0 $p || break; done; kill $p; wait $p",
            tiny);
    assert_silent(&j, "9 s");
    assert_prints(&j, "; restart 1 of 1");
    assert_int_equal(job_processes(20), 0);
}

static void a_frozen_mpirun_ends_a_bench(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60,
            NOBODY
            "lockstep bench sync workers=2 timeout=2 rounds=99 sync=ring "
            "min_bytes=4e6 max_mb=4 >said 2>&1 & p=$!; "
            "until grep -q 'size 1' said; do sleep 0.02; "
            "kill -0 $p || break; done; "
            "read v < /proc/$p/task/$p/children; kill -STOP $v; "
            "wait $p; s=$?; cat said; exit $s");
    assert_status(&j, 1);
    assert_silent(&j, "7 s");
    assert_int_equal(job_processes(20), 0);
}

// After an error of its own Open MPI 4 may end with status 0 though it has
// started nobody (seen after a SIGCONT while it started ranks on two hosts).
static void an_mpirun_that_starts_nobody_fails(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 30,
            "mkdir -p idle && printf '#!/bin/sh\necho ORTE does not know how "
            "to route >&2\n' > idle/mpirun && chmod +x idle/mpirun; " NOBODY
            "PATH=\"$PWD/idle:$PATH\" lockstep train %s sync=allreduce "
            "workers=2 out=nobody",
            tiny);
    assert_status(&j, 1);
    assert_prints(&j, "mpirun: ended, but 2 of 2 processes never came: rank 0, "
                      "rank 1");
    assert_null(strstr(j.out, "done in"));
}

// MPI_Finalize has no deadline. Nobody waits for it when all ranks are done.
static void an_endless_finalize_ends_the_job(void **state)
{
    (void)state;
    static const char *const jobs[] = {"sync=allreduce",
                                       "sync=sps transport=mpi"};
    struct job j;
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        job_run(&j, 60,
                "cp '" ENDLESS "' endless.so; " NOBODY
                "LD_PRELOAD=./endless.so "
                "ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 "
                "lockstep train %s %s workers=2 save=2 out=endless%zu",
                tiny, jobs[i], i);
        assert_status(&j, 0);
        assert_int_equal(job_processes(20), 0);
    }
}

// mpirun's files are in folders of the job, and no file stays. If the launcher
// was killed, the next one removes them.
static void mpirun_leaves_no_files(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 100,
            "mkdir tmp; export TMPDIR=$PWD/tmp; " NOBODY
            "lockstep train %s sync=allreduce workers=2 steps=1000000 "
            "out=litter & p=$!; "
            "until [ -s litter/steps.1.csv ] && "
            "[ $(wc -l < litter/steps.1.csv) -gt 2 ]; do sleep 0.05; done; "
            "read v < /proc/$p/task/$p/children; "
            "tr '\\0' '\\n' < /proc/$v/cmdline | grep /lockstep-mpi- > "
            "folders; for f in $(cat folders); do "
            "[ -n \"$(ls $f)\" ] || echo $f is empty; done; "
            "kill -9 $p; wait $p; cat folders; ls -d $(cat folders) | wc -l",
            tiny);
    assert_status(&j, 0);
    assert_null(strstr(j.out, "empty"));
    assert_non_null(strstr(j.out, "/tmp/lockstep-mpi-"));
    assert_non_null(strstr(j.out, "/dev/shm/lockstep-mpi-"));
    assert_non_null(strstr(j.out, "\n2\n"));
    assert_int_equal(job_processes(20), 0);
    job_run(&j, 60,
            "export TMPDIR=$PWD/tmp; " NOBODY "lockstep train %s "
            "sync=allreduce workers=2 out=clean && [ -z \"$(ls tmp)\" ] && "
            "for f in $(cat folders); do [ ! -e $f ] || exit 5; done",
            tiny);
    assert_status(&j, 0);
}

// The file PBS_NODEFILE has one line for each slot.
static void pbs_names_the_hosts(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60,
            "printf '#!/bin/sh\\necho $1 >> asked\\nshift\\n"
            "exec sh -c \"$*\"\\n' > rsh; chmod +x rsh; "
            "printf '127.0.0.1\\n127.0.0.1\\n127.0.0.2\\n' > nodes; " NOBODY
            "PBS_NODEFILE=nodes LOCKSTEP_RSH=%s/rsh lockstep train %s sync=sps "
            "workers=3 out=pbs",
            job_dir(), tiny);
    assert_status(&j, 0);
    assert_non_null(strstr(j.out, "using the 2 hosts of this PBS job"));
    job_run(&j, 10, "sort asked | uniq -c | tr -s ' \\n' ' '");
    assert_string_equal(j.out, " 3 127.0.0.1 1 127.0.0.2 ");
}

// Runs the scripts of examples/ as their schedulers do. Debian 12's torchrun
// can start nothing.
static void example_scripts_run(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60,
            "printf '#!/bin/sh\nshift\nexec sh -c \"$*\"\n' > rsh; "
            "chmod +x rsh; printf '127.0.0.1\n127.0.0.2\n' > nodes; " NOBODY
            "PBS_NODEFILE=\"$PWD/nodes\" PBS_O_WORKDIR=\"$PWD\" "
            "LOCKSTEP_RSH='%s/rsh' "
            "words='sync=sps %s out=pbs-sh' '" LOCKSTEP_SOURCE
            "'/examples/pbs.sh",
            job_dir(), tiny);
    assert_status(&j, 0);
    assert_non_null(strstr(j.out, "sps, 2 workers"));
    job_run(&j, 90,
            "torchrun --nproc_per_node=1 --no_python true >torchrun.txt 2>&1 "
            "|| PATH='" LOCKSTEP_SOURCE "'/tests/stand_in:\"$PATH\"; " NOBODY
            "MASTER_ADDR=%s MASTER_PORT=2920 '" LOCKSTEP_SOURCE
            "'/examples/torchrun.sh 2 %s sync=ring out=torchrun-sh",
            own_address(), tiny);
    assert_status(&j, 0);
    assert_non_null(strstr(j.out, "ring, 2 workers"));
}

// The job's secret reaches workers through a remote shell that passes no
// variables on. It is in no command line and in no file of the run.
static void the_secret_is_in_no_command_line(void **state)
{
    (void)state;
    struct job j;
    job_run(&j, 60,
            "printf '#!/bin/sh\nshift\necho \"$*\" >> words\nexec env -i "
            "PATH=\"$PATH\" LOCKSTEP_JOB=$LOCKSTEP_JOB sh -c \"$*\"\n' > "
            "plain; chmod +x plain; printf '127.0.0.1\n127.0.0.2\n' > two; "
            "export LOCKSTEP_SECRET=$(od -An -N16 -tx1 /dev/urandom | "
            "tr -d ' '); " NOBODY
            "LOCKSTEP_RSH=%s/plain lockstep train %s sync=sps workers=2 "
            "hosts=two out=far || exit; [ $(wc -l < words) = 3 ] && "
            "! grep -rqF $LOCKSTEP_SECRET words far",
            job_dir(), tiny);
    assert_status(&j, 0);
}

// Workers on one host listen at loopback addresses only, with every carrier.
static void one_host_listens_on_loopback_only(void **state)
{
    (void)state;
    static const char *const ways[] = {"sync=allreduce", "sync=ring",
                                       "sync=dps", "sync=sps transport=mpi"};
    struct job j;
    for (int i = 0; i < 4; i++) {
        job_run(
            &j, 60,
            "rm -rf quiet; " NOBODY
            "lockstep train %s %s workers=2 steps=1000000 out=quiet & p=$!; "
            "until [ -s quiet/steps.1.csv ] && "
            "[ $(wc -l < quiet/steps.1.csv) -gt 2 ]; do sleep 0.05; done; "
            "for f in /proc/[0-9]*; do "
            "case $(cat $f/comm 2> /dev/null) in trainer|ps_server) ;; "
            "*) continue;; esac; "
            "tr '\\0' '\\n' < $f/environ 2> /dev/null | "
            "grep -qx LOCKSTEP_JOB=$LOCKSTEP_JOB || continue; "
            "echo one of ours; ls -l $f/fd | "
            "sed -n 's/.*socket:.\\([0-9]*\\).*/\\1/p' | while read s; "
            "do awk -v s=$s '$10 == s && $4 == \"0A\" {print \"at \" $2}' "
            "/proc/net/tcp /proc/net/tcp6; done; done > heard; "
            "kill $p; wait $p; cat heard; "
            "[ $(grep -c one heard) -ge 2 ] && "
            "! grep at heard | grep -v '^at ......7F:'",
            tiny, ways[i]);
        assert_status(&j, 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launchers_are_told_apart),
        cmocka_unit_test(torchrun_gives_the_rendezvous),
        cmocka_unit_test(every_launcher_trains_the_same_model),
        cmocka_unit_test(no_worker_trains_alone),
        cmocka_unit_test(own_carriers_start_without_mpirun),
        cmocka_unit_test(a_frozen_mpirun_ends_the_job),
        cmocka_unit_test(a_frozen_mpirun_ends_a_bench),
        cmocka_unit_test(an_mpirun_that_starts_nobody_fails),
        cmocka_unit_test(an_endless_finalize_ends_the_job),
        cmocka_unit_test(mpirun_leaves_no_files),
        cmocka_unit_test(pbs_names_the_hosts),
        cmocka_unit_test(example_scripts_run),
        cmocka_unit_test(the_secret_is_in_no_command_line),
        cmocka_unit_test(one_host_listens_on_loopback_only),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, job_text, job_cleanup);
}
