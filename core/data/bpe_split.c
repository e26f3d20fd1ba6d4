// bpe_split.c - splits text into words. No token crosses the end of a word.
// OpenAI's pattern:
//
//     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+
//     |\s+(?!\S)|\s+
//
// The first alternative that matches is taken, with as many characters as
// possible. A run of white space before a word leaves out its last character.
// If that is a blank, it joins the word; else it is a word of its own. Letters
// and numbers are those of utf8proc's Unicode version. A byte that is not UTF-8
// is neither.

#include "data/bpe.h"

#include "data/utf8.h"

#include <stdbool.h>
#include <string.h>

enum class { SPACE, LETTER, NUMBER, OTHER };

// Unicode's White_Space, as \s in Python's regex.
static bool is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
           c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

static enum class class_of(uint32_t c) {
    if (is_space(c)) return SPACE;
    if (c < 0x80){if (c >= '0' && c <= '9') return NUMBER;
                  return (c | 32) >= 'a' && (c | 32) <= 'z' ? LETTER : OTHER;}
switch (utf8proc_category((utf8proc_int32_t)c))
{
case UTF8PROC_CATEGORY_LU:
case UTF8PROC_CATEGORY_LL:
case UTF8PROC_CATEGORY_LT:
case UTF8PROC_CATEGORY_LM:
case UTF8PROC_CATEGORY_LO:
    return LETTER;
case UTF8PROC_CATEGORY_ND:
case UTF8PROC_CATEGORY_NL:
case UTF8PROC_CATEGORY_NO:
    return NUMBER;
default:
    return OTHER;
}
}

// Bytes of the longest run of one class from s on; *last is the length of its
// last character.
static size_t run_of(enum class want, const unsigned char *s, size_t n,
                     size_t *last)
{
    size_t at = 0;
    while (at < n) {
        uint32_t c;
        size_t len = utf8_next(s + at, n - at, &c);
        if (class_of(c) != want)
            break;
        *last = len;
        at += len;
    }
    return at;
}

static size_t contraction(const unsigned char *s, size_t n)
{
    static const char *const tails[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    if (s[0] != '\'')
        return 0;
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        size_t len = strlen(tails[i]);
        if (n > len && memcmp(s + 1, tails[i], len) == 0)
            return 1 + len;
    }
    return 0;
}

size_t bpe_word(const unsigned char *s, size_t n)
{
    size_t len = contraction(s, n), last = 0;
    if (len)
        return len;
    size_t blank = s[0] == ' ' && n > 1;
    uint32_t c;
    utf8_next(s + blank, n - blank, &c);
    enum class first = class_of(c);
    if (first != SPACE)
        return blank + run_of(first, s + blank, n - blank, &last);
    len = run_of(SPACE, s, n, &last);
    return len == n || len == last ? len : len - last;
}
