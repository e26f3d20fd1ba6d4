// test_cudnn_plans.c - a real cuDNN plans our attention graphs, without a GPU.
//
// cuDNN 9.8 and newer can plan for a GPU that a text describes. It looks for
// the graphs among those it knows, chooses an engine, compiles its kernels and
// gives them to the driver, which is fake_driver.c here. So this shows that the
// graphs are ones for which cuDNN has fused kernels, and what workspace they
// need. It does not run them, nor show that the kernels mask scores. Skipped
// where there is no cuDNN.

#include "base/base.h"
#include "model/cuda/dnn.h"
#include "model/cuda/dnn_attention.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tests/test.h"

enum { NEWEST_TRIED = 92800 };

static struct dnn dnn;
static const char *(*last_kernel)(void);

// ---- GPUs that are not here

// The keys are those that cuDNN asks for. Numbers are those of the GPUs in
// CUDA's tables, as far as plans depend on them.
struct gpu {
    int version; // compute capability * 10
    int multiprocessors, shared, threads, blocks;
    const char *name;
};

enum { A100, A10, L4, H100, RTX_5090, GPUS };

static const struct gpu gpus[GPUS] = {
    [A100] = {800, 108, 166912, 2048, 32, "NVIDIA A100-SXM4-80GB"},
    [A10] = {860, 72, 101376, 1536, 16, "NVIDIA A10"},
    [L4] = {890, 58, 101376, 1536, 24, "NVIDIA L4"},
    [H100] = {900, 132, 232448, 2048, 32, "NVIDIA H100 80GB HBM3"},
    [RTX_5090] = {1200, 170, 101376, 1536, 24, "NVIDIA GeForce RTX 5090"},
};

static int describe(const struct gpu *g)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{\"version\":1,\"deviceId\":0,\"cudaDeviceId\":0,"
             "\"deviceVer\":%d,\"driverVer\":13000,"
             "\"maxGridSize\":[2147483647,65535,65535],"
             "\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,"
             "\"multiProcessorCount\":%d,\"smCountOrigin\":0,\"warpSize\":32,"
             "\"maxSharedMemoryPerBlock\":49152,"
             "\"maxSharedMemoryPerBlockOptin\":%d,"
             "\"oversizedSharedMemoryPerBlock\":0,"
             "\"reservedSharedMemoryPerBlock\":1024,"
             "\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":%d,"
             "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":%d,"
             "\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,"
             "\"smClockRateKHz\":1980000,\"memClockRateKHz\":2619000,"
             "\"memoryBusWidth\":5120,\"l2CacheSize\":52428800,"
             "\"deviceName\":\"%s\",\"totalGlobalMem\":85029158912}",
             g->version, g->multiprocessors, g->shared, g->blocks, g->threads,
             g->name);
    if (dnn.device)
        dnn.BackendDestroyDescriptor(dnn.device);
    dnn.device = NULL;
    int status = dnn.BackendCreateDescriptor(DNN_DEVICE, &dnn.device);
    if (!status)
        status =
            dnn.BackendSetAttribute(dnn.device, DNN_DEVICE_JSON, DNN_TYPE_CHAR,
                                    (int64_t)strlen(text) + 1, text);
    if (!status)
        status = dnn.BackendFinalize(dnn.device);
    return status ? dnn_fail(&dnn, g->name, status) : 0;
}

// ---- plans

static struct attention shape(int B, int NH, int T, int D)
{
    return (struct attention){
        .B = B, .T = T, .C = NH * D, .NH = NH, .mask = {.keep = 1}};
}

static void planned(const struct gpu *g, enum dtype t,
                    const struct attention *a, bool train)
{
    struct dnn_attention *plans = NULL;
    size_t workspace = 0, scores = 2 * (size_t)a->B * (size_t)a->NH *
                                   (size_t)a->T * (size_t)a->T;
    if (dnn_attention_plan(&plans, &dnn, t, a, train, &workspace))
        print_message("%s: %s\n", g->name, fail_message());
    assert_non_null(plans);
    const char *kernel = last_kernel();
    print_message("%s, (%d, %d, %d, %d) in %s: %s, workspace %zu\n", g->name,
                  a->B, a->NH, a->T, a->C / a->NH, dtype_name(t), kernel,
                  workspace);
    assert_non_null(strstr(kernel, "flash"));
    assert_non_null(strstr(kernel, train ? "bprop" : "fprop"));
    // Reruns have the same bits if backward keeps dS instead of adding to dQ.
    if (train)
        assert_true(workspace >= scores);
    dnn_attention_close(&plans);
}

static void graphs_are_known(void **state)
{
    (void)state;
    for (int i = 0; i < GPUS; i++) {
        struct attention a = shape(2, 12, 1024, 64);
        assert_int_equal(describe(&gpus[i]), 0);
        planned(&gpus[i], DTYPE_BF16, &a, false);
        planned(&gpus[i], DTYPE_BF16, &a, true);
    }
    assert_int_equal(describe(&gpus[H100]), 0);
    struct attention small = shape(1, 3, 128, 32);
    planned(&gpus[H100], DTYPE_F16, &small, false);
    planned(&gpus[H100], DTYPE_F16, &small, true);
    struct attention wide = shape(3, 2, 256, 128);
    planned(&gpus[H100], DTYPE_BF16, &wide, true);
}

static void refusals_say_why(void **state)
{
    (void)state;
    struct dnn_attention *plans = NULL;
    size_t workspace;
    struct attention a = shape(1, 1, 128, 512);
    assert_int_equal(describe(&gpus[A100]), 0);
    assert_int_equal(dnn_attention_plan(&plans, &dnn, DTYPE_BF16, &a, true,
                                        &workspace),
                     -1);
    print_message("%s\n", fail_message());
    assert_non_null(strstr(fail_message(), "attention=cudnn: cuDNN 9."));
    assert_non_null(strstr(fail_message(), "try: attention=ours"));
    a = shape(1, 1, 96, 64); // no whole tiles
    int rc = dnn_attention_plan(&plans, &dnn, DTYPE_BF16, &a, true, &workspace);
    if (dnn.version < 91501) {
        assert_int_equal(rc, -1);
        assert_non_null(strstr(fail_message(), "no multiple of 128"));
    } else {
        assert_int_equal(rc, 0);
        dnn_attention_close(&plans);
    }
}

// False if there is no cuDNN, or one that is too old for dnn_load(), or newer
// than those that were tried with this driver. Any other trouble is a failure
// of the test.
static bool is_there(void)
{
    void *library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    size_t (*version)(void) = NULL;
    if (!library) {
        print_message("skipped: %s\n", dlerror());
        return false;
    }
    *(void **)&version = dlsym(library, "cudnnGetVersion");
    size_t found = version ? version() : 0;
    if (found < DNN_OLDEST || found > NEWEST_TRIED)
        print_message("skipped: cuDNN %zu, and this test knows what %d to %d "
                      "ask of the driver\n",
                      found, DNN_OLDEST, NEWEST_TRIED);
    return found >= DNN_OLDEST && found <= NEWEST_TRIED;
}

int main(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    *(void **)&last_kernel =
        driver ? dlsym(driver, "fake_driver_kernel") : NULL;
    if (!last_kernel) {
        print_message("libcuda.so.1 is not the one of this test\n");
        return 1;
    }
    if (!is_there())
        return TEST_SKIPPED;
    if (dnn_load(&dnn) || describe(&gpus[A100])) {
        print_message("%s\n", fail_message());
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_are_known),
        cmocka_unit_test(refusals_say_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
