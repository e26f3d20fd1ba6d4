// range.h - spans as NVTX ranges, which NVIDIA's tools show beside the GPU.
//
// Each open span is a range of its thread, in the domain "lockstep". The name
// of the range is the span's kind, its payload the span's index. NVTX is a
// header. It loads the library that NVTX_INJECTION64_PATH names (`nsys profile`
// sets this variable). If the variable is not set, or this program was built
// without the header, these functions do nothing. span.c alone includes them.

#pragma once

#ifdef LOCKSTEP_NVTX

#include <nvtx3/nvToolsExt.h>
#include <pthread.h>

static nvtxDomainHandle_t range_domain;

static void range_open(void)
{
    range_domain = nvtxDomainCreateA("lockstep");
}

static void range_begin(int kind, const char *name, int index)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, range_open);
    nvtxEventAttributes_t range = {
        .version = NVTX_VERSION,
        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
        .category = (uint32_t)kind,
        .payloadType = NVTX_PAYLOAD_TYPE_INT32,
        .payload.iValue = index,
        .messageType = NVTX_MESSAGE_TYPE_ASCII,
        .message.ascii = name,
    };
    nvtxDomainRangePushEx(range_domain, &range);
}

static void range_end(void)
{
    nvtxDomainRangePop(range_domain);
}

#else

static void range_begin(int kind, const char *name, int index)
{
    (void)kind;
    (void)name;
    (void)index;
}

static void range_end(void)
{
}

#endif
