// tfevents.c - writes TensorBoard's event files without protobuf.
//
//     record:  u64 length, u32 crc(length), data, u32 crc(data)
//     data:    Event { 1: double wall_time  2: int64 step
//                      3: file_version      5: Summary { 1: Value {
//                                                  1: tag  2: float value }}}
//
// crc is CRC-32C, rotated right by 15 and added to a constant ("masked").

#include "telemetry/tfevents.h"

#include "base/base.h"
#include "base/file.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 512 };

struct tfevents {
    FILE *file;
    char path[1200];
};

struct bytes {
    uint8_t at[MOST];
    size_t n;
};

static uint32_t masked_crc(const void *p, size_t n)
{
    const uint8_t *bytes = p;
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void put(struct bytes *b, const void *p, size_t n)
{
    CHECK(b->n + n <= MOST);
    memcpy(b->at + b->n, p, n);
    b->n += n;
}

static void put_byte(struct bytes *b, uint8_t x)
{
    put(b, &x, 1);
}

static void put_varint(struct bytes *b, uint64_t x)
{
    for (; x >= 128; x >>= 7)
        put_byte(b, (uint8_t)(x | 128));
    put_byte(b, (uint8_t)x);
}

static void put_block(struct bytes *b, uint8_t key, const void *p, size_t n)
{
    put_byte(b, key);
    put_varint(b, n);
    put(b, p, n);
}

static void put_wall_time(struct bytes *b)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    double seconds = (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
    put_byte(b, 0x09);
    put(b, &seconds, sizeof seconds);
}

static int write_record(struct tfevents *t, const struct bytes *b)
{
    uint64_t n = b->n;
    uint32_t head = masked_crc(&n, sizeof n), body = masked_crc(b->at, b->n);
    fwrite(&n, sizeof n, 1, t->file);
    fwrite(&head, sizeof head, 1, t->file);
    fwrite(b->at, b->n, 1, t->file);
    fwrite(&body, sizeof body, 1, t->file);
    if (ferror(t->file))
        return fail("%s: %s", t->path, strerror(errno));
    return 0;
}

int tfevents_open(struct tfevents **out, const char *dir)
{
    static const char version[] = "brain.Event:2";
    char host[64] = "host";
    struct bytes event = {.n = 0};
    struct tfevents *t = mem_alloc(1, sizeof *t);
    if (!t)
        return -1;
    gethostname(host, sizeof host - 1);
    if (text_into(t->path, sizeof t->path, "%s/events.out.tfevents.%lld.%s",
                  dir, (long long)time(NULL), host))
        goto free_events;
    t->file = file_create(t->path);
    if (!t->file)
        goto free_events;
    put_wall_time(&event);
    put_block(&event, 0x1a, version, sizeof version - 1);
    if (write_record(t, &event))
        goto close_file;
    *out = t;
    return 0;
close_file:
    fclose(t->file);
free_events:
    mem_free(t);
    return -1;
}

int tfevents_scalar(struct tfevents *t, const char *tag, int64_t step,
                    double value)
{
    struct bytes event = {.n = 0}, summary = {.n = 0}, one = {.n = 0};
    float f = (float)value;
    put_block(&one, 0x0a, tag, strnlen(tag, 200));
    put_byte(&one, 0x15);
    put(&one, &f, sizeof f);
    put_block(&summary, 0x0a, one.at, one.n);
    put_wall_time(&event);
    put_byte(&event, 0x10);
    put_varint(&event, (uint64_t)step);
    put_block(&event, 0x2a, summary.at, summary.n);
    return write_record(t, &event);
}

int tfevents_close(struct tfevents **t)
{
    if (!*t)
        return 0;
    int rc = file_close((*t)->file, (*t)->path);
    mem_free(*t);
    *t = NULL;
    return rc;
}
