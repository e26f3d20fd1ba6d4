// fake_nvtx.h - a fake tool, which NVTX loads like one of NVIDIA.

#pragma once

// "domain: name(payload) { .. } .." of all ranges so far.
const char *fake_nvtx_text(void);
