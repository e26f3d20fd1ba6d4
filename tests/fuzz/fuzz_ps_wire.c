// fuzz_ps_wire.c - reads any bytes as messages of the parameter server. They
// may be accepted or refused, but must not crash the reader. An accepted head
// or step that is written again must have the same bytes, and an accepted job
// that is written and read again must be the same job.

#include "ps_wire/job.h"
#include "ps_wire/wire.h"

#include "tests/fuzz/fuzz.h"

#include <string.h>

static void head(const uint8_t *data, size_t size)
{
    struct ps_head h;
    uint8_t again[PS_HEAD];
    if (ps_head_get(&h, data, size))
        return;
    CHECK(h.bytes <= PS_MAX_SLICE);
    ps_head_put(again, &h);
    CHECK(memcmp(again, data, PS_HEAD) == 0);
}

static void small(const uint8_t *data, size_t size)
{
    struct ps_step s;
    uint8_t step[PS_STEP_BYTES], result[PS_RESULT_BYTES];
    if (!ps_step_get(&s, data, size)) {
        ps_step_put(step, &s);
        CHECK(memcmp(step, data, size) == 0);
    }
    struct ps_result r;
    if (!ps_result_get(&r, data, size))
        ps_result_put(result, &r);
}

static void job(const uint8_t *data, size_t size)
{
    static struct ps_job j, other;
    static uint8_t again[PS_JOB_BYTES];
    if (ps_job_get(&j, data, size))
        return;
    CHECK(ps_job_put(again, &j) == size);
    CHECK(ps_job_get(&other, again, size) == 0);
    CHECK(ps_job_same(&j, &other) == 0);
}

// The first byte chooses the parser, so that each finds its own corpus.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    void (*const parsers[])(const uint8_t *, size_t) = {head, small, job};
    parsers[data[0] % 3](data + 1, size - 1);
    return 0;
}
