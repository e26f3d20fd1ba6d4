// wordpiece.c - reads a vocab.txt, and encodes words by its longest tokens.

#include "data/wordpiece.h"

#include "base/base.h"
#include "data/utf8.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 65536, LONGEST_WORD = 100 }; // tokens; code points

static const char unknown[] = "[UNK]";

struct token {
    const char *at;
    size_t n;
    uint16_t id;
};

struct wordpiece {
    char *text;
    size_t n;
    struct token *by_id, *sorted; // (n); sorted by bytes
    uint16_t unknown;
    bool lower;
};

// A word while it is read: lower-case and without accents if the vocabulary is.
struct word {
    char bytes[4 * LONGEST_WORD];
    size_t n, codes; // codes may be more than fit; then the word is unknown
};

// ---- characters

static bool is_chinese(uint32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
           (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2ceaf) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

static bool is_punctuation(uint32_t c)
{
    if (c < 0x80)
        return ispunct((int)c);
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

static bool is_space(uint32_t c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' ||
           (c >= 0x80 &&
            utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_ZS);
}

// Control characters, U+FFFD and bytes that are not UTF-8.
static bool is_left_out(uint32_t c)
{
    if (c == 0xfffd || (c >= UTF8_LOST + 0x80 && c < UTF8_LOST + 0x100))
        return true;
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CF;
}

static bool stands_alone(uint32_t c)
{
    return is_punctuation(c) || is_chinese(c);
}

// ---- the table

static int by_bytes(const void *a, const void *b)
{
    const struct token *x = a, *y = b;
    int order = memcmp(x->at, y->at, x->n < y->n ? x->n : y->n);
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

static const struct token *find(const struct wordpiece *w, const char *at,
                                size_t n)
{
    struct token key = {at, n, 0};
    return bsearch(&key, w->sorted, w->n, sizeof key, by_bytes);
}

bool wordpiece_is(const char *text, size_t n)
{
    static const size_t len = sizeof unknown - 1;
    for (const char *at = text, *end = text + n;
         (at = memmem(at, (size_t)(end - at), unknown, len)); at += len) {
        const char *after = at + len;
        if ((at == text || at[-1] == '\n') &&
            (after == end || *after == '\n' || *after == '\r'))
            return true;
    }
    return false;
}

// Refuses what cannot be the next token. Notes whether it has capital letters.
static int check_token(struct wordpiece *w, const char *name, const char *at,
                       size_t n)
{
    if (n == 0 || n > WORDPIECE_LONGEST)
        return fail("%s: line %zu: %zu bytes; a token has 1 .. %d", name,
                    w->n + 1, n, (int)WORDPIECE_LONGEST);
    if (w->n == MOST)
        return fail("%s: more than the %d tokens that 16 bits can name", name,
                    (int)MOST);
    for (size_t i = 0; i < n; i++)
        if (iscntrl((unsigned char)at[i]))
            return fail("%s: line %zu has a control character", name, w->n + 1);
    for (size_t i = 0; i < n && at[0] != '['; i++)
        w->lower &= !isupper((unsigned char)at[i]);
    return 0;
}

static int read_lines(struct wordpiece *w, const char *name, size_t n)
{
    const char *at = w->text, *end = at + n;
    while (at < end) {
        const char *line = at, *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((stop ? stop : end) - line);
        at = stop ? stop + 1 : end;
        len -= len > 0 && line[len - 1] == '\r';
        if (check_token(w, name, line, len))
            return -1;
        w->by_id[w->n] = (struct token){line, len, (uint16_t)w->n};
        w->n++;
    }
    return 0;
}

static int sort(struct wordpiece *w, const char *name)
{
    memcpy(w->sorted, w->by_id, w->n * sizeof *w->sorted);
    qsort(w->sorted, w->n, sizeof *w->sorted, by_bytes);
    for (size_t i = 1; i < w->n; i++)
        if (by_bytes(&w->sorted[i - 1], &w->sorted[i]) == 0)
            return fail("%s: lines %d and %d have the same token", name,
                        w->sorted[i - 1].id + 1, w->sorted[i].id + 1);
    const struct token *u = find(w, unknown, sizeof unknown - 1);
    if (!u)
        return fail("%s: no line %s", name, unknown);
    w->unknown = u->id;
    return 0;
}

// How many tokens a text can have at most.
static size_t count_lines(const char *text, size_t n)
{
    size_t lines = 1;
    for (size_t i = 0; i < n && lines < MOST; i++)
        lines += text[i] == '\n';
    return lines;
}

int wordpiece_open(struct wordpiece **out, const char *name, const char *text,
                   size_t n)
{
    struct wordpiece *w = mem_alloc(1, sizeof *w);
    if (!w)
        return -1;
    size_t lines = count_lines(text, n);
    w->lower = true;
    w->text = mem_alloc(n + 1, 1);
    w->by_id = mem_alloc(lines, sizeof *w->by_id);
    w->sorted = mem_alloc(lines, sizeof *w->sorted);
    if (w->text)
        memcpy(w->text, text, n);
    if (!w->text || !w->by_id || !w->sorted || read_lines(w, name, n) ||
        sort(w, name)) {
        wordpiece_close(&w);
        return -1;
    }
    *out = w;
    return 0;
}

void wordpiece_close(struct wordpiece **out)
{
    struct wordpiece *w = *out;
    if (!w)
        return;
    mem_free(w->text);
    mem_free(w->by_id);
    mem_free(w->sorted);
    mem_free(w);
    *out = NULL;
}

size_t wordpiece_size(const struct wordpiece *w)
{
    return w->n;
}

// ---- encoding

static void add_code(struct word *word, uint32_t c)
{
    if (word->codes++ < LONGEST_WORD)
        word->n += utf8_put(c, word->bytes + word->n);
}

// Adds a character as the vocabulary writes it.
static void add(const struct wordpiece *w, struct word *word, uint32_t c)
{
    utf8proc_int32_t parts[16];
    int class = UTF8PROC_BOUNDCLASS_START;
    if (!w->lower) {
        add_code(word, c);
        return;
    }
    utf8proc_ssize_t n =
        utf8proc_decompose_char(utf8proc_tolower((utf8proc_int32_t)c), parts,
                                16, UTF8PROC_DECOMPOSE, &class);
    for (utf8proc_ssize_t i = 0; i < n && i < 16; i++)
        if (utf8proc_category(parts[i]) != UTF8PROC_CATEGORY_MN)
            add_code(word, (uint32_t)parts[i]);
}

// The longest token that `word` has at byte `from`; NULL if there is none.
static const struct token *longest(const struct wordpiece *w,
                                   const struct word *word, size_t from)
{
    char key[2 + sizeof word->bytes] = "##";
    size_t mark = from > 0 ? 2 : 0;
    memcpy(key + mark, word->bytes + from, word->n - from);
    for (size_t n = word->n - from; n > 0; n--) {
        const struct token *t = find(w, key, mark + n);
        if (t)
            return t;
    }
    return NULL;
}

// Writes the tokens of a word, and empties it. Returns how many there are.
static long end_word(const struct wordpiece *w, struct word *word,
                     uint16_t *out)
{
    long count = 0;
    size_t at = 0;
    bool fits = word->codes <= LONGEST_WORD;
    while (fits && at < word->n) {
        const struct token *t = longest(w, word, at);
        if (!t)
            break;
        out[count++] = t->id;
        at += t->n - (at > 0 ? 2 : 0);
    }
    if (at < word->n) { // no token for the rest
        out[0] = w->unknown;
        count = 1;
    }
    *word = (struct word){.n = 0};
    return count;
}

// No token takes less than a byte of the text: what a character decomposes to
// has, without accents, no more code points than the character has bytes.
long wordpiece_encode(const struct wordpiece *w, const char *text, size_t n,
                      uint16_t *out)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + n;
    struct word word = {.n = 0};
    long count = 0;
    while (at < end) {
        uint32_t c;
        at += utf8_next(at, (size_t)(end - at), &c);
        bool alone = stands_alone(c);
        if (is_space(c) || alone)
            count += end_word(w, &word, out + count);
        else if (!is_left_out(c))
            add(w, &word, c);
        if (alone) {
            add(w, &word, c);
            count += end_word(w, &word, out + count);
        }
    }
    return count + end_word(w, &word, out + count);
}

size_t wordpiece_decode(const struct wordpiece *w, size_t token, char *out)
{
    const struct token *t = &w->by_id[token];
    bool inside = t->n > 2 && t->at[0] == '#' && t->at[1] == '#';
    uint32_t first;
    utf8_next((const unsigned char *)t->at, t->n, &first);
    bool blank = !inside && (!stands_alone(first) || first == '[');
    if (blank)
        out[0] = ' ';
    memcpy(out + blank, t->at + 2 * inside, t->n - 2 * inside);
    return blank + t->n - 2 * inside;
}

void wordpiece_write(const struct wordpiece *w, FILE *f)
{
    for (size_t i = 0; i < w->n; i++)
        fprintf(f, "%.*s\n", (int)w->by_id[i].n, w->by_id[i].at);
}
