// amx.h - whether attention may use this processor's tiles.

#ifndef MODEL_CPU_AMX_H
#define MODEL_CPU_AMX_H

#include <stdbool.h>

// The processor has AMX for bf16, the kernel lets this process use it (it is
// asked to), and a product on tiles came out as plain loops say. Where it did
// not, a line of the log says so.
bool amx_usable(void);

#endif
