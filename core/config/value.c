// value.c - reads numbers and words from text, strictly.

#include "config/value.h"

#include "base/base.h"
#include "config/suggest.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// strtod() takes "nan", "inf", "0x1p3" and leading blanks; a setting does not.
static bool plain(const char *text)
{
    size_t n = strlen(text);
    return n > 0 && n < 64 && strspn(text, "+-.0123456789eE") == n;
}

int value_real(const char *text, double *out)
{
    if (!plain(text))
        return -1;
    char *end;
    double x = strtod(text, &end);
    if (end == text || *end != '\0')
        return -1;
    *out = x;
    return 0;
}

int value_whole(const char *text, int64_t *out)
{
    if (!plain(text))
        return -1;
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (end != text && *end == '\0' && errno == 0) {
        *out = n;
        return 0;
    }
    double x;
    if (value_real(text, &x) || !(fabs(x) <= 0x1p53) || x != floor(x))
        return -1;
    *out = (int64_t)x;
    return 0;
}

int value_word(const char *key, const char *text, const char *const *words)
{
    char list[256] = "";
    int n = 0;
    for (; words[n]; n++) {
        if (strcmp(words[n], text) == 0)
            return n;
        size_t at = strlen(list);
        snprintf(list + at, sizeof list - at, "%s%s", n ? ", " : "", words[n]);
    }
    const char *ours = suggest_ours(key, text);
    if (ours && *ours)
        return fail("%s=%s: not one of %s; try: %s", key, text, list, ours);
    if (ours)
        return fail("%s=%s: not one of %s; " SUGGEST_NONE, key, text, list);
    const char *nearest = suggest_nearest(text, words, n);
    return nearest ? fail("%s=%s: not one of %s; try: %s=%s", key, text, list,
                          key, nearest)
                   : fail("%s=%s: not one of %s", key, text, list);
}

bool value_known(const char *text, const char *const *words)
{
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], text) == 0)
            return true;
    }
    return false;
}

char *value_text(char buf[32], double x)
{
    char text[32] = "";
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    // 1e9 instead of 1e+09
    char *e = strchr(text, 'e');
    if (e) {
        char *digits = e + 1 + strspn(e + 1, "+-");
        digits += strspn(digits, "0");
        int sign = e[1] == '-';
        memmove(e + 1 + sign, digits, strlen(digits) + 1);
    }
    return memcpy(buf, text, sizeof text);
}

char *value_seconds(char buf[32], double s)
{
    long long n = llround(s);
    if (n < 3600)
        snprintf(buf, 32, "%lld:%02lld", n / 60, n % 60);
    else
        snprintf(buf, 32, "%lld:%02lld:%02lld", n / 3600, n / 60 % 60, n % 60);
    return buf;
}

char *value_limit(char buf[32], double x)
{
    int power;
    for (int less = 0; x >= 1e6 && less < 2; less++)
        if (frexp(x + less, &power) == 0.5) {
            snprintf(buf, 32, "2^%d%s", power - 1, less ? "-1" : "");
            return buf;
        }
    return value_text(buf, x);
}
