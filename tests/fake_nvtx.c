// fake_nvtx.c - a library that NVTX loads into a program, as it would load a
// tool of NVIDIA. It records the ranges.

#include "tests/fake_nvtx.h"

#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <string.h>

static char text[4096];

static void say(const char *more)
{
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s", more);
}

static nvtxDomainHandle_t create(const char *name)
{
    say(name);
    say(": ");
    return (nvtxDomainHandle_t)text;
}

static int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *range)
{
    char one[64];
    snprintf(one, sizeof one, "%s(%d) { ", range->message.ascii,
             range->payload.iValue);
    if (domain == (nvtxDomainHandle_t)text)
        say(one);
    return 0;
}

static int pop(nvtxDomainHandle_t domain)
{
    if (domain == (nvtxDomainHandle_t)text)
        say("} ");
    return 0;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t tables); // NVTX's name

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t tables)
{
    const NvtxExportTableCallbacks *callbacks = tables(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table;
    unsigned size;
    if (!callbacks ||
        !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size))
        return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
    return 1;
}

const char *fake_nvtx_text(void)
{
    return text;
}
