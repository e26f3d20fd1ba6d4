// address.h - tells AddressSanitizer which memory may be read and written. In
// other builds these functions do nothing.

#pragma once

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace emulated
{

#if defined(__SANITIZE_ADDRESS__)
inline void poison(const void *p, size_t bytes)
{
    __asan_poison_memory_region(p, bytes);
}

inline void unpoison(const void *p, size_t bytes)
{
    __asan_unpoison_memory_region(p, bytes);
}

// The first byte of [p, p + bytes) that must not be read or written; NULL if
// there is none.
inline const void *forbidden(const void *p, size_t bytes)
{
    return __asan_region_is_poisoned(const_cast<void *>(p), bytes);
}
#else
inline void poison(const void *, size_t)
{
}

inline void unpoison(const void *, size_t)
{
}

inline const void *forbidden(const void *, size_t)
{
    return nullptr;
}
#endif

} // namespace emulated
