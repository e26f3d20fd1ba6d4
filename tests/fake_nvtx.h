// fake_nvtx.h - a fake tool, which NVTX loads like one of NVIDIA.

#ifndef TESTS_FAKE_NVTX_H
#define TESTS_FAKE_NVTX_H

// "domain: name(payload) { .. } .." of all ranges so far.
const char *fake_nvtx_text(void);

#endif
