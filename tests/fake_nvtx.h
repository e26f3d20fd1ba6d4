// fake_nvtx.h - a tool of the test's own, which NVTX loads as NVIDIA's.

#ifndef TESTS_FAKE_NVTX_H
#define TESTS_FAKE_NVTX_H

// "domain: name(payload) { .. } .." of all ranges so far.
const char *fake_nvtx_text(void);

#endif
