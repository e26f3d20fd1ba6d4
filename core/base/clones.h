// clones.h - VECTOR_CLONES before a function: compile it once for each of
// three instruction sets, and let the loader choose.
//
// For plain loops that the compiler turns into vector code. VECTOR_CLONES is
// empty with clang and on processors other than x86-64. It is empty with a
// sanitizer, too, since that is not yet initialised when the loader chooses.

#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&         \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define VECTOR_CLONES                                                          \
    __attribute__((                                                            \
        target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VECTOR_CLONES
#endif
