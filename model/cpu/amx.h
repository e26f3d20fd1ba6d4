// amx.h - whether attention may use this processor's tiles.

#pragma once

#include <stdbool.h>

// Whether the processor has AMX for bf16, the kernel lets this process use it
// (after a request), and a product on tiles equals that of plain loops. If only
// the product is wrong, a line of the log says so.
bool amx_usable(void);
