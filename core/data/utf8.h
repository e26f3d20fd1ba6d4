// utf8.h - turns any bytes into code points and back, without loss.
//
// A byte that is not part of valid UTF-8 becomes U+DC80..U+DCFF, as with
// Python's "surrogateescape". Valid text has none of these, so they can be
// turned back into the byte.

#pragma once

#include <stddef.h>
#include <stdint.h>

#include <utf8proc.h>

enum { UTF8_LOST = 0xdc00, UTF8_END = 0x110000 };

// Writes the first code point of n > 0 bytes. Returns how many bytes it takes.
static inline size_t utf8_next(const unsigned char *s, size_t n, uint32_t *code)
{
    if (s[0] < 0x80) {
        *code = s[0];
        return 1;
    }
    utf8proc_int32_t c;
    utf8proc_ssize_t len =
        utf8proc_iterate(s, n < 4 ? (utf8proc_ssize_t)n : 4, &c);
    if (len <= 0) {
        *code = UTF8_LOST + s[0];
        return 1;
    }
    *code = (uint32_t)c;
    return (size_t)len;
}

// Writes the bytes of a code point. Returns how many there are.
static inline size_t utf8_put(uint32_t code, char out[4])
{
    if (code >= UTF8_LOST + 0x80 && code < UTF8_LOST + 0x100) {
        out[0] = (char)(unsigned char)(code - UTF8_LOST);
        return 1;
    }
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)code,
                                        (utf8proc_uint8_t *)out);
}
