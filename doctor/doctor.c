// doctor.c - `lockstep doctor` prints what this machine has and lacks, and how
// to get what it lacks.

#include "launch/command.h"

#include "base/base.h"
#include "base/processor.h"
#include "launch/cores.h"
#include "launch/study.h"

#if defined(LOCKSTEP_OPENBLAS)
#include <cblas.h>
#endif
#include <dnnl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zmq.h>

enum finding {
    FINDING_OK,
    FINDING_WITHOUT, // something optional is missing
    FINDING_LACK,    // something that a CPU run or its report needs is missing
};

// Prints a line with what was checked and what was found (fmt, ..). Unless all
// is well, a second line says how to mend it. Returns how much is lacking.
static int say(enum finding f, const char *what, const char *remedy,
               const char *fmt, ...) __attribute__((format(printf, 4, 5)));
static int say(enum finding f, const char *what, const char *remedy,
               const char *fmt, ...)
{
    va_list args;
    static const char *const marks[] = {"ok", "-", "LACK"};
    printf("%-5s %-14s ", marks[f], what);
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
    if (f != FINDING_OK)
        printf("%-5s %-14s   try: %s\n", "", "", remedy);
    return f == FINDING_LACK;
}

static void look_at_cores(void)
{
    char model[128];
    processor_name(model, sizeof model, "/proc/cpuinfo");
    int n = cores_count();
    say(n > 1 ? FINDING_OK : FINDING_WITHOUT, "cores",
        "a machine with more cores: on one core, several workers share "
        "it, and runs are marked as oversubscribed",
        "%d (of %ld online)%s%s", n, sysconf(_SC_NPROCESSORS_ONLN),
        model[0] ? ", " : "", model);
}

static int look_at_memory(void)
{
    char size[32];
    size_t bytes = mem_available();
    return say(bytes >= (size_t)2 << 30 ? FINDING_OK : FINDING_LACK, "memory",
               "end other programs; nano and micro need less than 1 GiB, "
               "gpt2 about 5",
               "%s available", mem_text(size, bytes));
}

static int look_at_disk(void)
{
    char size[32];
    struct statvfs st;
    size_t bytes = 0;
    if (statvfs(".", &st) == 0)
        bytes = (size_t)st.f_bavail * st.f_frsize;
    return say(bytes >= (size_t)1 << 30 ? FINDING_OK : FINDING_LACK, "disk",
               "out=DIR on another disk, or keep=1", "%s free here",
               mem_text(size, bytes));
}

static const struct isa {
    dnnl_cpu_isa_t isa;
    const char *name;
    bool bf16; // it multiplies bf16
} isas[] = {
#if defined(__x86_64__) // oneDNN's names of instruction sets are those of x86
    {dnnl_cpu_isa_sse41, "SSE4.1", false},
    {dnnl_cpu_isa_avx, "AVX", false},
    {dnnl_cpu_isa_avx2, "AVX2", false},
    {dnnl_cpu_isa_avx2_vnni, "AVX2 with VNNI", false},
    {dnnl_cpu_isa_avx512_core, "AVX-512", false},
    {dnnl_cpu_isa_avx512_core_vnni, "AVX-512 with VNNI", false},
    {dnnl_cpu_isa_avx512_core_bf16, "AVX-512 with bf16", true},
    {dnnl_cpu_isa_avx512_core_amx, "AVX-512 with AMX", true},
    {0, "another instruction set", false},
#else
    {0, "reference code", false},
#endif
};

// The set that oneDNN uses; the last row if it has no other.
static const struct isa *find_isa(void)
{
    const struct isa *last = isas + sizeof isas / sizeof *isas - 1, *i = isas;
    while (i < last && i->isa != dnnl_get_effective_cpu_isa())
        i++;
    return i;
}

static void look_at_libraries(void)
{
    int major, minor, patch;
    const struct isa *isa = find_isa();
    const dnnl_version_t *v = dnnl_version();
    say(FINDING_OK, "oneDNN", NULL, "%d.%d.%d, uses %s", v->major, v->minor,
        v->patch, isa->name);
#if defined(LOCKSTEP_OPENBLAS)
    say(FINDING_OK, "OpenBLAS", NULL, "%s", openblas_get_config());
#endif
    say(isa->bf16 ? FINDING_OK : FINDING_WITHOUT, "bf16", "precision=fp32",
        isa->bf16 ? "dot products in hardware"
                  : "no dot products in hardware: precision=bf16 works, "
                    "but is slow");
    zmq_version(&major, &minor, &patch);
    say(FINDING_OK, "ZeroMQ", NULL, "%d.%d.%d", major, minor, patch);
    bool curve = zmq_has("curve");
    say(curve ? FINDING_OK : FINDING_WITHOUT, "CURVE",
        "apt-get install libzmq5 libsodium23",
        curve ? "ZeroMQ encrypts (curve=DIR, lockstep keys)"
              : "this ZeroMQ cannot encrypt: no curve=");
}

// The Python package has the rest: other programs, the network, GPUs, and
// other hosts. Without Python this is a lack of its own.
static int doctor(int nwords, char **words)
{
    char lacks[16], here[] = "here", *own[] = {here, lacks};
    if (nwords > 0 && !strchr(words[0], '='))
        return fail("doctor: takes hosts=FILE, not %s", words[0]);
    if (nwords > 0)
        return study_become("doctor", nwords, words);
    look_at_cores();
    int n = look_at_memory() + look_at_disk();
    look_at_libraries();
    fflush(stdout);
    snprintf(lacks, sizeof lacks, "%d", n);
    study_become("doctor", 2, own);
    const char *why = fail_message();
    n += say(FINDING_LACK, "Python", "./install, and Lockstep as a whole",
             "%.*s", (int)strcspn(why, ";"), why);
    printf("\n%d thing%s missing for training on the CPU: see LACK above.\n", n,
           n > 1 ? "s are" : " is");
    return 1;
}

const struct command command_doctor = {
    .name = "doctor",
    .words = "[hosts=FILE]",
    .help = "check what this machine, or several hosts, have and lack",
    .run = doctor,
};
