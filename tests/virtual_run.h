// virtual_run.h - shared by tests of the virtual cluster: a network, a run that
// must succeed, and blocking calls.

#pragma once

#include "base/base.h"
#include "virtual/virtual.h"

#include <math.h>

#include "tests/test.h"

static const double alpha_s = 20e-6, bytes_per_s = 1.25e8;

static inline struct virtual_setup setup(int ranks)
{
    return (struct virtual_setup){.ranks = ranks,
                                  .alpha_s = alpha_s,
                                  .bytes_per_s = bytes_per_s};
}

static inline struct virtual_result *run(const struct virtual_setup *s,
                                         virtual_main *body, void *arg)
{
    struct virtual_result *v = virtual_run(s, body, arg);
    if (!v)
        print_error("%s\n", fail_message());
    assert_non_null(v);
    return v;
}

// Asserts that all ranks returned 0 without an error.
static inline void assert_clean(const struct virtual_result *v)
{
    assert_string_equal(v->deadlock, "");
    for (int r = 0; r < v->ranks; r++) {
        assert_string_equal(v->rank[r].error, "");
        assert_int_equal(v->rank[r].value, 0);
        assert_int_equal(v->rank[r].end, VIRTUAL_RETURNED);
    }
}

static inline void assert_seconds(double is, double law)
{
    bool holds = fabs(is - law) <= 1e-9 * law;
    if (!holds)
        print_error("%.12g s, the law says %.12g\n", is, law);
    assert_true(holds);
}

static inline int send(struct virtual_rank *r, int to, const void *p,
                       size_t bytes)
{
    struct virtual_req req;
    return virtual_isend(r, to, p, bytes, &req) ? -1 : virtual_wait(r, &req, 1);
}

static inline int receive(struct virtual_rank *r, int from, void *p,
                          size_t bytes)
{
    struct virtual_req req;
    return virtual_irecv(r, from, p, bytes, &req) ? -1
                                                  : virtual_wait(r, &req, 1);
}
