// safetensors.c - checks the whole header first, then reads numbers as floats.
//
// cJSON parses the header, but allows more than the format does. So this file
// refuses duplicate keys, numbers with fractions, text behind the end, and NUL
// bytes. Format: huggingface/safetensors, README, "Format".

#include "model/safetensors.h"

#include "base/base.h"
#include "base/file.h"
#include "base/half.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// The format allows headers of 100 MB; GPT-2's have about 100 kB. Parsed JSON
// takes about thirty times the memory of its text, so we allow less.
enum { MAX_HEADER = 16 << 20, CHUNK = 1 << 14 };

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && sizeof(size_t) == 8,
               "files have little-endian numbers, and lengths of 64 bits");

struct safetensors {
    FILE *file;
    const char *path;
    cJSON *json; // names and metadata point into it
    const cJSON *metadata;
    size_t data, data_bytes; // where the data begin in the file; their length
    int count;
    struct safetensors_tensor *tensors; // by name
};

static const struct dtype_size {
    const char *name;
    size_t bytes;
} dtype_sizes[] = {
    {"F32", 4},     {"F16", 2},     {"BF16", 2}, {"F64", 8}, {"BOOL", 1},
    {"U8", 1},      {"I8", 1},      {"I16", 2},  {"U16", 2}, {"I32", 4},
    {"U32", 4},     {"I64", 8},     {"U64", 8},  {"C64", 8}, {"F8_E4M3", 1},
    {"F8_E5M2", 1}, {"F8_E8M0", 1},
};

// Bytes of an element; 0 for a dtype that the format does not know.
static size_t dtype_size(const char *name)
{
    for (size_t i = 0; i < sizeof dtype_sizes / sizeof dtype_sizes[0]; i++)
        if (strcmp(dtype_sizes[i].name, name) == 0)
            return dtype_sizes[i].bytes;
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Whether a message of one line can quote the text.
static bool is_plain(const char *text)
{
    while ((unsigned char)*text >= ' ' && *text != 127)
        text++;
    return *text == '\0';
}

// Returns 0, or -1 after fail() if the object has a key twice, or if a key is
// not plain text.
static int check_keys(const struct safetensors *s, const cJSON *object)
{
    size_t n = 0, i = 0;
    for (const cJSON *e = object->child; e; e = e->next)
        n++;
    const char **keys = mem_alloc(n + 1, sizeof *keys);
    if (!keys)
        return -1;
    for (const cJSON *e = object->child; e; e = e->next)
        keys[i++] = e->string;
    qsort(keys, n, sizeof *keys, by_text);
    int status = 0;
    for (i = 0; i < n && status == 0; i++) {
        if (!is_plain(keys[i]))
            status = fail("%s: a key holds control characters", s->path);
        else if (i > 0 && strcmp(keys[i - 1], keys[i]) == 0)
            status = fail("%s: key \"%.64s\" occurs twice", s->path, keys[i]);
    }
    mem_free(keys);
    return status;
}

// A count in JSON: a whole number, and small enough to be exact in a double.
static int get_count(const cJSON *e, size_t *out)
{
    if (!cJSON_IsNumber(e) || !(e->valuedouble >= 0) ||
        e->valuedouble > 0x1p53 || e->valuedouble != floor(e->valuedouble))
        return -1;
    *out = (size_t)e->valuedouble;
    return 0;
}

static int get_shape(const struct safetensors *s, const cJSON *shape,
                     struct safetensors_tensor *t)
{
    t->n = 1;
    for (const cJSON *e = shape->child; e; e = e->next) {
        size_t length;
        if (t->ndim == SAFETENSORS_MAX_DIMS)
            return fail("%s: tensor %.64s has more than %d dimensions", s->path,
                        t->name, SAFETENSORS_MAX_DIMS);
        if (get_count(e, &length))
            return fail("%s: tensor %.64s has a dimension that is not a count",
                        s->path, t->name);
        if (__builtin_mul_overflow(t->n, length, &t->n))
            return fail("%s: tensor %.64s has too many elements", s->path,
                        t->name);
        t->shape[t->ndim++] = length;
    }
    return 0;
}

static int get_extent(const struct safetensors *s, const cJSON *offsets,
                      struct safetensors_tensor *t)
{
    const cJSON *begin = offsets->child, *end = begin ? begin->next : NULL;
    if (!end || end->next || get_count(begin, &t->begin) ||
        get_count(end, &t->end))
        return fail("%s: tensor %.64s: data_offsets must be two counts of "
                    "bytes",
                    s->path, t->name);
    if (t->begin > t->end || t->end > s->data_bytes)
        return fail("%s: tensor %.64s: data_offsets [%zu, %zu) are outside "
                    "the %zu bytes of data; try: fetch the file again",
                    s->path, t->name, t->begin, t->end, s->data_bytes);
    size_t bytes;
    if (__builtin_mul_overflow(t->n, dtype_size(t->dtype), &bytes) ||
        bytes != t->end - t->begin)
        return fail("%s: tensor %.64s: %zu elements of %s do not fill its "
                    "%zu bytes",
                    s->path, t->name, t->n, t->dtype, t->end - t->begin);
    return 0;
}

static int get_tensor(const struct safetensors *s, const cJSON *e,
                      struct safetensors_tensor *t)
{
    *t = (struct safetensors_tensor){.name = e->string};
    const cJSON *dtype = NULL, *shape = NULL, *offsets = NULL;
    if (!cJSON_IsObject(e))
        return fail("%s: tensor %.64s is not described by a JSON object",
                    s->path, t->name);
    if (check_keys(s, e))
        return -1;
    for (const cJSON *part = e->child; part; part = part->next) {
        if (strcmp(part->string, "dtype") == 0 && cJSON_IsString(part))
            dtype = part;
        else if (strcmp(part->string, "shape") == 0 && cJSON_IsArray(part))
            shape = part;
        else if (strcmp(part->string, "data_offsets") == 0 &&
                 cJSON_IsArray(part))
            offsets = part;
        else
            return fail("%s: tensor %.64s: \"%.32s\" is unknown or of the "
                        "wrong type",
                        s->path, t->name, part->string);
    }
    if (!dtype || !shape || !offsets)
        return fail("%s: tensor %.64s lacks dtype, shape or data_offsets",
                    s->path, t->name);
    t->dtype = dtype->valuestring;
    if (dtype_size(t->dtype) == 0)
        return fail("%s: tensor %.64s has unknown dtype \"%.16s\"", s->path,
                    t->name, is_plain(t->dtype) ? t->dtype : "?");
    return get_shape(s, shape, t) || get_extent(s, offsets, t) ? -1 : 0;
}

static int by_place(const void *a, const void *b)
{
    const struct safetensors_tensor *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static int by_name(const void *a, const void *b)
{
    const struct safetensors_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

// The tensors must tile the data. Leaves them sorted by name.
static int check_tiling(struct safetensors *s)
{
    qsort(s->tensors, (size_t)s->count, sizeof *s->tensors, by_place);
    size_t at = 0;
    for (int i = 0; i < s->count; i++) {
        const struct safetensors_tensor *t = &s->tensors[i];
        if (t->begin != at)
            return fail("%s: tensor %.64s begins at byte %zu of the data, the "
                        "one before ends at %zu: they %s",
                        s->path, t->name, t->begin, at,
                        t->begin < at ? "overlap" : "leave a hole");
        at = t->end;
    }
    if (at != s->data_bytes)
        return fail("%s: %zu bytes of data, tensors fill %zu of them; try: "
                    "fetch the file again",
                    s->path, s->data_bytes, at);
    qsort(s->tensors, (size_t)s->count, sizeof *s->tensors, by_name);
    return 0;
}

static int get_metadata(struct safetensors *s, const cJSON *e)
{
    if (!cJSON_IsObject(e))
        return fail("%s: __metadata__ is not a JSON object", s->path);
    for (const cJSON *text = e->child; text; text = text->next)
        if (!cJSON_IsString(text))
            return fail("%s: __metadata__ \"%.64s\" is not a string", s->path,
                        text->string);
    s->metadata = e;
    return check_keys(s, e);
}

static int get_all(struct safetensors *s)
{
    if (check_keys(s, s->json))
        return -1;
    s->tensors =
        mem_alloc((size_t)cJSON_GetArraySize(s->json) + 1, sizeof *s->tensors);
    if (!s->tensors)
        return -1;
    for (const cJSON *e = s->json->child; e; e = e->next) {
        if (strcmp(e->string, "__metadata__") == 0) {
            if (get_metadata(s, e))
                return -1;
        } else if (get_tensor(s, e, &s->tensors[s->count++])) {
            return -1;
        }
    }
    return check_tiling(s);
}

// Refuses a NUL, raw or escaped. cJSON would allow it and end the string there,
// so two different keys could look alike.
static int check_text(const struct safetensors *s, const char *text, size_t n)
{
    if (text[0] != '{')
        return fail("%s: not a safetensors file: its header begins with byte "
                    "%d, not with '{'",
                    s->path, (unsigned char)text[0]);
    if (memchr(text, 0, n) || strstr(text, "\\u0000"))
        return fail("%s: the header holds a NUL", s->path);
    return 0;
}

static int parse(struct safetensors *s, size_t n)
{
    char *text = mem_alloc(n + 1, 1);
    if (!text)
        return -1;
    int status = file_read_at(fileno(s->file), s->path, text, n, 8) ||
                         check_text(s, text, n)
                     ? -1
                     : 0;
    if (status == 0) {
        // Only blanks may follow the object, up to the NUL at the text's end.
        s->json = cJSON_ParseWithLengthOpts(text, n + 1, NULL, true);
        if (!cJSON_IsObject(s->json))
            status = fail("%s: the header of %zu bytes is not a JSON object",
                          s->path, n);
    }
    mem_free(text);
    return status ? -1 : get_all(s);
}

static int open_file(struct safetensors *s)
{
    struct stat st;
    s->file = file_open(s->path);
    if (!s->file)
        return -1;
    if (fstat(fileno(s->file), &st))
        return fail("%s: %s", s->path, strerror(errno));
    size_t size = (size_t)st.st_size, n;
    if (size < 8 + 2)
        return fail("%s: %zu bytes are too few for a safetensors file", s->path,
                    size);
    if (file_read_at(fileno(s->file), s->path, &n, 8, 0))
        return -1;
    if (n < 2 || n > size - 8 || n > MAX_HEADER)
        return fail("%s: not a safetensors file: a header of %zu bytes in a "
                    "file of %zu (at most %d)",
                    s->path, n, size, MAX_HEADER);
    s->data = 8 + n;
    s->data_bytes = size - s->data;
    return parse(s, n);
}

int safetensors_open(struct safetensors **out, const char *path)
{
    struct safetensors *s = mem_alloc(1, sizeof *s);
    if (!s)
        return -1;
    s->path = path;
    if (open_file(s)) {
        safetensors_close(&s);
        return -1;
    }
    *out = s;
    return 0;
}

void safetensors_close(struct safetensors **s)
{
    if (!*s)
        return;
    if ((*s)->file)
        fclose((*s)->file);
    cJSON_Delete((*s)->json);
    mem_free((*s)->tensors);
    mem_free(*s);
    *s = NULL;
}

int safetensors_count(const struct safetensors *s)
{
    return s->count;
}

const struct safetensors_tensor *safetensors_at(const struct safetensors *s,
                                                int i)
{
    CHECK(i >= 0 && i < s->count);
    return &s->tensors[i];
}

const struct safetensors_tensor *safetensors_find(const struct safetensors *s,
                                                  const char *name)
{
    struct safetensors_tensor key = {.name = name};
    return bsearch(&key, s->tensors, (size_t)s->count, sizeof key, by_name);
}

const char *safetensors_metadata(const struct safetensors *s, const char *key)
{
    return cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(s->metadata, key));
}

static float convert(const char *dtype, const unsigned char *from, size_t i)
{
    uint16_t half;
    double wide;
    float narrow;
    switch (dtype[1]) {
    case '3': // F32
        memcpy(&narrow, from + 4 * i, 4);
        return narrow;
    case '6': // F64
        memcpy(&wide, from + 8 * i, 8);
        return fabs(wide) > FLT_MAX ? INFINITY : (float)wide;
    default: // F16, BF16
        memcpy(&half, from + 2 * i, 2);
        return dtype[0] == 'B' ? bf16_to_float(half) : f16_to_float(half);
    }
}

static bool is_float(const char *dtype)
{
    return strcmp(dtype, "F32") == 0 || strcmp(dtype, "F16") == 0 ||
           strcmp(dtype, "BF16") == 0 || strcmp(dtype, "F64") == 0;
}

int safetensors_read(const struct safetensors *s,
                     const struct safetensors_tensor *t, size_t first, size_t n,
                     float *out)
{
    CHECK(first <= t->n && n <= t->n - first);
    if (!is_float(t->dtype))
        return fail("%s: tensor %.64s is of dtype %s, must be F32, F16, BF16 "
                    "or F64",
                    s->path, t->name, t->dtype);
    size_t size = dtype_size(t->dtype);
    size_t from = s->data + t->begin + first * size;
    unsigned char raw[CHUNK];
    for (size_t done = 0, part; done < n; done += part) {
        part = n - done < CHUNK / size ? n - done : CHUNK / size;
        if (file_read_at(fileno(s->file), s->path, raw, part * size,
                         from + done * size))
            return -1;
        for (size_t i = 0; i < part; i++) {
            float x = convert(t->dtype, raw, i);
            if (!isfinite(x))
                return fail("%s: tensor %.64s: element %zu is %g", s->path,
                            t->name, first + done + i, x);
            if (out)
                out[done + i] = x;
        }
    }
    return 0;
}
