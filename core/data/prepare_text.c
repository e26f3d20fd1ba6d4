// prepare_text.c - encodes a text piece by piece into a file, whose end becomes
// val.bin.

#include "data/prepare_text.h"

#include "base/base.h"
#include "base/file.h"
#include "data/symbols.h"
#include "data/token_file.h"
#include "data/tokens.h"
#include "data/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH = 1280, PIECE = 4 << 20, BLOCK = 1 << 16 };

struct work {
    const struct prepare_config *config;
    struct file text;
    struct symbols symbols;
    char train[PATH], val[PATH]; // temporary names
    size_t tokens;
};

static int write_error(const char *path)
{
    return fail("%s: %s", path, strerror(errno));
}

// ---- pieces

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Whether the character that ends before text[at] is white space.
static bool is_after_space(const unsigned char *text, size_t at)
{
    size_t from = at - 1;
    while (from > 0 && at - from < 4 && (text[from] & 0xc0) == 0x80)
        from--;
    uint32_t c;
    utf8_next(text + from, at - from, &c);
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return c <= ' ' || c == 0x85 ||
           (k >= UTF8PROC_CATEGORY_ZS && k <= UTF8PROC_CATEGORY_ZP);
}

// Where a piece from `from` ends: before the blank behind a word, so that no
// word and no run of blanks is cut, and the tokens are those of the whole text.
static size_t piece_end(const struct work *w, size_t from)
{
    const unsigned char *text = w->text.at;
    size_t n = w->text.bytes, piece = w->config->piece;
    size_t at = from + (piece ? piece : (size_t)PIECE);
    while (at < n && !(is_blank((char)text[at]) && !is_after_space(text, at)))
        at++;
    return at < n ? at : n;
}

static int encode_piece(struct work *w, size_t from, size_t to, FILE *f)
{
    uint16_t *tokens = mem_alloc(to - from, sizeof *tokens);
    if (!tokens)
        return -1;
    long n = symbols_encode(&w->symbols, (const char *)w->text.at + from,
                            to - from, tokens);
    int rc = n < 0 ? -1 : 0;
    if (!rc && fwrite(tokens, sizeof *tokens, (size_t)n, f) != (size_t)n)
        rc = write_error(w->train);
    w->tokens += rc ? 0 : (size_t)n;
    mem_free(tokens);
    return rc;
}

static int encode(struct work *w, FILE *f)
{
    size_t to;
    for (size_t from = 0; from < w->text.bytes; from = to) {
        to = piece_end(w, from);
        if (encode_piece(w, from, to, f))
            return -1;
    }
    return 0;
}

// ---- files

// Moves the tokens from `first` on into val.
static int cut(const struct work *w, FILE *train, size_t first)
{
    static const size_t width = sizeof(uint16_t);
    uint16_t block[BLOCK];
    FILE *val = fopen(w->val, "we");
    if (!val)
        return write_error(w->val);
    int rc = fseeko(train, (off_t)(first * width), SEEK_SET) ? -1 : 0;
    size_t n;
    while (!rc && (n = fread(block, width, BLOCK, train)) > 0)
        rc = fwrite(block, width, n, val) == n ? 0 : -1;
    rc |= fflush(val) || fsync(fileno(val));
    rc |= fclose(val);
    rc = rc || ferror(train) ||
         ftruncate(fileno(train), (off_t)(first * width)) ||
         fsync(fileno(train));
    return rc ? write_error(w->val) : 0;
}

static int write_tokens(struct work *w, struct prepared *out)
{
    FILE *f = fopen(w->train, "w+e");
    if (!f)
        return write_error(w->train);
    int rc = encode(w, f);
    if (!rc && fflush(f))
        rc = write_error(w->train);
    out->train = (size_t)((double)w->tokens * (1 - w->config->val_fraction));
    out->val = w->tokens - out->train;
    if (!rc && out->train == 0)
        rc = fail("%s: %zu tokens leave none for train.bin; try: more text",
                  w->config->text, w->tokens);
    if (!rc)
        rc = cut(w, f, out->train);
    if (fclose(f) && !rc)
        rc = write_error(w->train);
    return rc;
}

static int save_symbols(const struct work *w)
{
    char path[PATH], *text = symbols_save(&w->symbols);
    int rc = !text || text_into(path, PATH, "%s/symbols.txt", w->config->folder)
                 ? -1
                 : file_replace_text(path, text);
    free(text);
    return rc;
}

static int name_files(const struct work *w, const char *train, const char *val)
{
    if (rename(w->val, val))
        return write_error(val);
    return rename(w->train, train) ? write_error(train) : 0;
}

static int write_folder(struct work *w, struct prepared *out)
{
    const char *folder = w->config->folder;
    char train[PATH], val[PATH];
    if (text_into(train, PATH, "%s/train.bin", folder) ||
        text_into(val, PATH, "%s/val.bin", folder) ||
        text_into(w->train, PATH, "%s.tmp", train) ||
        text_into(w->val, PATH, "%s.tmp", val))
        return -1;
    if (access(train, F_OK) == 0)
        return fail("%s: is there already; try: another out=", train);
    if (file_make_folder(folder) < 0)
        return -1;
    int rc =
        write_tokens(w, out) || save_symbols(w) || name_files(w, train, val)
            ? -1
            : 0;
    if (rc) {
        unlink(w->train);
        unlink(w->val);
    }
    return rc;
}

int prepare_text(const struct prepare_config *c, struct prepared *out)
{
    struct work w = {.config = c};
    CHECK(c->val_fraction > 0 && c->val_fraction < 1);
    if (file_map(&w.text, "prepare", c->text))
        return -1;
    int rc =
        shard_is(&w.text, c->text)
            ? fail("%s: has tokens already; try: data=%s", c->text, c->text)
            : 0;
    if (!rc && !symbols_open(&w.symbols, c->vocab, (const char *)w.text.at,
                             w.text.bytes)) {
        rc = write_folder(&w, out);
        out->symbols = w.symbols.n;
        symbols_close(&w.symbols);
    } else {
        rc = -1;
    }
    file_unmap(&w.text);
    return rc;
}
