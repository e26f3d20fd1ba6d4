// range.c - begins and ends ranges of NVTX.

#include "telemetry/range.h"

#include <nvtx3/nvToolsExt.h>
#include <pthread.h>

static nvtxDomainHandle_t domain;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_domain(void)
{
    domain = nvtxDomainCreateA("lockstep");
}

void range_begin(int kind, const char *name, int index)
{
    pthread_once(&once, open_domain);
    nvtxEventAttributes_t range = {
        .version = NVTX_VERSION,
        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
        .category = (uint32_t)kind,
        .payloadType = NVTX_PAYLOAD_TYPE_INT32,
        .payload.iValue = index,
        .messageType = NVTX_MESSAGE_TYPE_ASCII,
        .message.ascii = name,
    };
    nvtxDomainRangePushEx(domain, &range);
}

void range_end(void)
{
    nvtxDomainRangePop(domain);
}
