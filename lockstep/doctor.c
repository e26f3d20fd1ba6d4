// doctor.c - `lockstep doctor` prints what this machine has and lacks, and how
// to get what it lacks.

#include "lockstep/doctor.h"
#include "lockstep/commands.h"

#include "base/base.h"
#include "lockstep/cores.h"

#if defined(LOCKSTEP_OPENBLAS)
#include <cblas.h>
#endif
#include <dnnl.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zmq.h>

static void look_for_program(struct doctor *d, enum finding without,
                             const char *what, const char *command,
                             const char *purpose, const char *remedy)
{
    char line[160], text[256];
    doctor_ask(command, line, sizeof line);
    if (line[0]) {
        doctor_say(d, FINDING_OK, what, line, NULL);
        return;
    }
    snprintf(text, sizeof text, "not found; it %s", purpose);
    doctor_say(d, without, what, text, remedy);
}

static void look_at_cores(struct doctor *d)
{
    char model[128], text[256];
    doctor_ask(
        "grep -m 1 -E 'model name|CPU part' /proc/cpuinfo | cut -d: -f2-",
        model, sizeof model);
    int n = cores_count();
    snprintf(text, sizeof text, "%d (of %ld online)%s%s", n,
             sysconf(_SC_NPROCESSORS_ONLN), model[0] ? "," : "", model);
    doctor_say(d, n > 1 ? FINDING_OK : FINDING_WITHOUT, "cores", text,
               "a machine with more cores: on one core, several workers share "
               "it, and runs are marked as oversubscribed");
}

static void look_at_memory(struct doctor *d)
{
    char size[32], text[64];
    size_t bytes = mem_available();
    snprintf(text, sizeof text, "%s available", mem_text(size, bytes));
    doctor_say(d, bytes >= (size_t)2 << 30 ? FINDING_OK : FINDING_LACK,
               "memory", text,
               "end other programs; nano and micro need less than 1 GiB, "
               "gpt2 about 5");
}

static void look_at_disk(struct doctor *d)
{
    char size[32], text[64];
    struct statvfs st;
    size_t bytes = 0;
    if (statvfs(".", &st) == 0)
        bytes = (size_t)st.f_bavail * st.f_frsize;
    snprintf(text, sizeof text, "%s free here", mem_text(size, bytes));
    doctor_say(d, bytes >= (size_t)1 << 30 ? FINDING_OK : FINDING_LACK, "disk",
               text, "out=DIR on another disk, or keep=1");
}

// oneDNN's names of instruction sets are those of x86.
#if defined(__x86_64__)
static const char *isa_name(dnnl_cpu_isa_t isa)
{
    switch (isa) {
    case dnnl_cpu_isa_sse41:
        return "SSE4.1";
    case dnnl_cpu_isa_avx:
        return "AVX";
    case dnnl_cpu_isa_avx2:
        return "AVX2";
    case dnnl_cpu_isa_avx2_vnni:
        return "AVX2 with VNNI";
    case dnnl_cpu_isa_avx512_core:
        return "AVX-512";
    case dnnl_cpu_isa_avx512_core_vnni:
        return "AVX-512 with VNNI";
    case dnnl_cpu_isa_avx512_core_bf16:
        return "AVX-512 with bf16";
    case dnnl_cpu_isa_avx512_core_amx:
        return "AVX-512 with AMX";
    default:
        return "another instruction set";
    }
}
#else
static const char *isa_name(dnnl_cpu_isa_t isa)
{
    (void)isa;
    return "instructions of a processor that is not x86";
}
#endif

static void look_at_libraries(struct doctor *d)
{
    char text[128];
    int major, minor, patch;
    dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "%d.%d.%d, uses %s", v->major, v->minor,
             v->patch, isa_name(isa));
    doctor_say(d, FINDING_OK, "oneDNN", text, NULL);
#if defined(LOCKSTEP_OPENBLAS)
    snprintf(text, sizeof text, "%s", openblas_get_config());
    doctor_say(d, FINDING_OK, "OpenBLAS", text, NULL);
#endif
    bool fast16 = isa == dnnl_cpu_isa_avx512_core_bf16 ||
                  isa == dnnl_cpu_isa_avx512_core_amx;
    doctor_say(d, fast16 ? FINDING_OK : FINDING_WITHOUT, "bf16",
               fast16 ? "dot products in hardware"
                      : "no dot products in hardware: precision=bf16 works, "
                        "but is slow",
               "precision=fp32");
    zmq_version(&major, &minor, &patch);
    snprintf(text, sizeof text, "%d.%d.%d", major, minor, patch);
    doctor_say(d, FINDING_OK, "ZeroMQ", text, NULL);
    bool curve = zmq_has("curve");
    doctor_say(d, curve ? FINDING_OK : FINDING_WITHOUT, "CURVE",
               curve ? "ZeroMQ encrypts (curve=DIR, lockstep keys)"
                     : "this ZeroMQ cannot encrypt: no curve=",
               "apt-get install libzmq5 libsodium23");
}

static void look_for_programs(struct doctor *d)
{
    look_for_program(d, FINDING_LACK, "Open MPI", "mpirun --version 2>&1",
                     "starts sync=allreduce and what else sends by MPI",
                     "apt-get install openmpi-bin, or ./install");
    look_for_program(d, FINDING_LACK, "gnuplot", "gnuplot --version 2>&1",
                     "draws the plots",
                     "apt-get install gnuplot-nox, or ./install");
    look_for_program(d, FINDING_WITHOUT, "SimGrid", "smpirun --version 2>&1",
                     "runs lockstep simulate",
                     "apt-get install libsimgrid-dev, and build again");
}

static void explain(FILE *f)
{
    fprintf(f,
            "lockstep doctor [hosts=FILE [key=value] ..]\n\nPrints what this "
            "machine has and what it lacks, and how to get what it lacks.\n"
            "With hosts= it checks several hosts: that each can be reached as "
            "a job reaches it,\nhas the same build of Lockstep, the right "
            "time and the shared folder out=. It also\nmeasures latency and "
            "rate between pairs of hosts.\n\n"
            "  ok    there\n  -     missing, but optional\n"
            "  LACK  missing, and needed to train on the CPU or for its "
            "report\n\n");
    doctor_hosts_explain(f);
}

static int look_here(struct doctor *d)
{
    look_at_cores(d);
    look_at_memory(d);
    look_at_disk(d);
    look_at_libraries(d);
    look_for_programs(d);
    doctor_network(d);
    doctor_gpu(d);
    return 0;
}

static int doctor(int nwords, char **words)
{
    struct doctor d = {{0}};
    bool hosts = doctor_asks_hosts(nwords, words);
    if (nwords > 0 && !hosts)
        return fail("doctor: takes hosts=FILE, not %s", words[0]);
    if (hosts ? doctor_hosts(&d, nwords, words) : look_here(&d))
        return -1;
    const char *what = hosts ? "a job on these hosts" : "training on the CPU";
    int lacks = d.counts[FINDING_LACK];
    if (lacks == 0)
        printf("\nNothing is missing for %s.\n", what);
    else
        printf("\n%d thing%s missing for %s: see LACK above.\n", lacks,
               lacks > 1 ? "s are" : " is", what);
    return lacks > 0;
}

const struct command command_doctor = {
    .name = "doctor",
    .words = "[hosts=FILE]",
    .help = "check what this machine, or several hosts, have and lack",
    .explain = explain,
    .run = doctor,
};
