// bpe_encode.c - splits a text into words, and encodes each as tokens.
//
// No token crosses the end of a word. OpenAI's pattern for words:
//
//     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+
//     |\s+(?!\S)|\s+
//
// The first alternative that matches is taken, with as many characters as
// possible. A run of white space before a word leaves out its last character.
// If that is a blank, it joins the word; else it is a word of its own. Letters
// and numbers are those of utf8proc's Unicode version. A byte that is not UTF-8
// is neither.
//
// A word is a list of tokens. A heap holds the pairs that can be joined: the
// pair of the earliest line of the table is on top, of equal pairs the
// leftmost. A joined token can only be half of a pair of a later line than its
// own. So taking pairs from the heap one by one gives the same tokens as
// OpenAI's loop, "find the earliest pair, join it everywhere". But it takes n
// log n time: a megabyte without a blank is one word. Texts repeat their words,
// so the tokens of short words are kept.

#include "data/bpe.h"

#include "base/base.h"
#include "data/utf8.h"

#include <stdbool.h>
#include <string.h>

// ---- words

enum kind { SPACE, LETTER, NUMBER, OTHER };

// Unicode's White_Space, as \s in Python's regex.
static bool is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
           c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

static enum kind kind_of(uint32_t c)
{
    if (is_space(c))
        return SPACE;
    if (c < 0x80) {
        if (c >= '0' && c <= '9')
            return NUMBER;
        return (c | 32) >= 'a' && (c | 32) <= 'z' ? LETTER : OTHER;
    }
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO   ? LETTER
           : k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO ? NUMBER
                                                                    : OTHER;
}

// Bytes of the longest run of one kind from s on; *last is the length of its
// last character.
static size_t run_of(enum kind want, const unsigned char *s, size_t n,
                     size_t *last)
{
    size_t at = 0;
    while (at < n) {
        uint32_t c;
        size_t len = utf8_next(s + at, n - at, &c);
        if (kind_of(c) != want)
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
    enum kind first = kind_of(c);
    if (first != SPACE)
        return blank + run_of(first, s + blank, n - blank, &last);
    len = run_of(SPACE, s, n, &last);
    return len == n || len == last ? len : len - last;
}

// ---- the tokens of a word

enum {
    KEPT_FEWEST = 16,
    KEPT_MOST = 1 << 15,
    KEPT_BYTES = 22,
    KEPT_TOKENS = 12,
    CAPACITY_FIRST = 1024,
    POSITION_BITS = 40, // of a heap entry, below the joined token
};

struct kept {
    uint8_t n, tokens; // of the word: bytes, tokens; n = 0: empty entry
    char word[KEPT_BYTES];
    uint16_t token[KEPT_TOKENS];
};

struct node {
    uint32_t token; // BPE_NONE: it was joined to the one before
    uint32_t before, after;
};

struct encoder {
    const struct bpe *bpe;
    struct kept *kept; // (kept_n), by hash
    size_t kept_n;
    struct node *nodes;
    uint64_t *heap; // joined token << POSITION_BITS | position of its left half
    size_t capacity; // bytes of the longest word that nodes and heap can take
    size_t heap_n;
};

static void push(struct encoder *e, uint64_t entry)
{
    size_t i = e->heap_n++;
    for (; i > 0 && entry < e->heap[(i - 1) / 2]; i = (i - 1) / 2)
        e->heap[i] = e->heap[(i - 1) / 2];
    e->heap[i] = entry;
}

static uint64_t pop(struct encoder *e)
{
    uint64_t top = e->heap[0], last = e->heap[--e->heap_n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < e->heap_n; i = child) {
        if (child + 1 < e->heap_n && e->heap[child + 1] < e->heap[child])
            child++;
        if (last <= e->heap[child])
            break;
        e->heap[i] = e->heap[child];
    }
    e->heap[i] = last;
    return top;
}

// The token that the token at `at` and the one after it make, or BPE_NONE.
static uint32_t joined(const struct encoder *e, uint32_t at)
{
    const struct node *left = &e->nodes[at];
    if (left->token == BPE_NONE || left->after == BPE_NONE)
        return BPE_NONE;
    return bpe_join(e->bpe, left->token, e->nodes[left->after].token);
}

static void offer(struct encoder *e, uint32_t at)
{
    uint32_t token = joined(e, at);
    if (token != BPE_NONE)
        push(e, (uint64_t)token << POSITION_BITS | at);
}

static void join(struct encoder *e, uint32_t at, uint32_t token)
{
    struct node *left = &e->nodes[at], *right = &e->nodes[left->after];
    left->token = token;
    left->after = right->after;
    right->token = BPE_NONE;
    if (left->after != BPE_NONE) {
        e->nodes[left->after].before = at;
        offer(e, at);
    }
    if (left->before != BPE_NONE)
        offer(e, left->before);
}

// Makes nodes and heap large enough for a word of n bytes. Such a word begins
// with at most n - 1 entries in the heap. Each of at most n - 1 joins takes at
// least one entry out and adds at most two, so 2n entries are enough.
static int grow(struct encoder *e, size_t n)
{
    if (n <= e->capacity)
        return 0;
    if (n >= BPE_NONE)
        return fail("text: a word of %zu bytes; try: vocab=bytes", n);
    size_t capacity = e->capacity ? e->capacity : CAPACITY_FIRST;
    while (capacity < n)
        capacity *= 2;
    mem_free(e->nodes);
    mem_free(e->heap);
    e->capacity = 0;
    e->nodes = mem_alloc(capacity, sizeof *e->nodes);
    e->heap = mem_alloc(capacity, 2 * sizeof *e->heap);
    if (!e->nodes || !e->heap)
        return -1;
    e->capacity = capacity;
    return 0;
}

static long encode_word(struct encoder *e, const unsigned char *s, size_t n,
                        uint16_t *out)
{
    if (grow(e, n))
        return -1;
    for (uint32_t i = 0; i < n; i++)
        e->nodes[i] =
            (struct node){bpe_byte(e->bpe, s[i]), i ? i - 1 : BPE_NONE,
                          i + 1 < n ? i + 1 : BPE_NONE};
    for (uint32_t i = 0; i < n; i++)
        offer(e, i);
    while (e->heap_n > 0) {
        uint64_t entry = pop(e);
        uint32_t at = (uint32_t)entry;
        uint32_t token = (uint32_t)(entry >> POSITION_BITS);
        if (joined(e, at) == token) // else a half was joined to another token
            join(e, at, token);
    }
    long count = 0;
    for (uint32_t at = 0; at != BPE_NONE; at = e->nodes[at].after)
        out[count++] = (uint16_t)e->nodes[at].token;
    return count;
}

static long look_up(struct encoder *e, const unsigned char *s, size_t n,
                    uint16_t *out)
{
    if (n > KEPT_BYTES)
        return encode_word(e, s, n, out);
    struct kept *k = &e->kept[hash_bytes(s, n) % e->kept_n];
    if (k->n != n || memcmp(k->word, s, n)) {
        long count = encode_word(e, s, n, out);
        if (count < 0 || count > KEPT_TOKENS)
            return count;
        k->n = (uint8_t)n;
        k->tokens = (uint8_t)count;
        memcpy(k->word, s, n);
        memcpy(k->token, out, (size_t)count * sizeof *out);
    }
    memcpy(out, k->token, k->tokens * sizeof *out);
    return k->tokens;
}

long bpe_encode(const struct bpe *b, const char *text, size_t n, uint16_t *out)
{
    struct encoder e = {.bpe = b, .kept_n = KEPT_FEWEST};
    while (e.kept_n < KEPT_MOST && e.kept_n < n / 8)
        e.kept_n *= 2;
    e.kept = mem_alloc(e.kept_n, sizeof *e.kept);
    long count = e.kept ? 0 : -1;
    const unsigned char *s = (const unsigned char *)text;
    for (size_t at = 0; at < n && count >= 0;) {
        size_t len = bpe_word(s + at, n - at);
        long more = look_up(&e, s + at, len, out + count);
        count = more < 0 ? -1 : count + more;
        at += len;
    }
    mem_free(e.kept);
    mem_free(e.nodes);
    mem_free(e.heap);
    return count;
}
