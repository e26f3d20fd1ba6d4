// grade.c - lab 3: the tests of the map from elements to servers.
//
// The expected values are computed here by walking over the vector, element by
// element. No test asks the student's functions what is right.

#include "labs/03-shard/shard.h"

#include "labs/check.h"
#include "labs/term.h"

#include <string.h>

enum { MOST = 3000, MOST_SERVERS = 9 };

// A vector, a slice length and a number of servers to try.
struct map {
    size_t n, slice;
    int servers;
};

static void say_map(char text[96], const struct map *m)
{
    snprintf(text, 96, "n = %zu, slices of %zu, %d servers", m->n, m->slice,
             m->servers);
}

// Calls each(k, m, text) for many maps, until the test has failed.
static void for_maps(struct lab_case *k,
                     void (*each)(struct lab_case *, const struct map *,
                                  const char *))
{
    static const size_t sizes[] = {1,  2,   3,   7,   8,   9,
                                   10, 100, 101, 719, 720, 2999};
    static const size_t slices[] = {1, 2, 5, 16, 1000};
    char text[96];
    for (int a = 0; a < 12; a++)
        for (int b = 0; b < 5; b++)
            for (int s = 1; s <= MOST_SERVERS && !lab_failed(k); s++) {
                struct map m = {sizes[a], slices[b], s};
                say_map(text, &m);
                each(k, &m, text);
            }
    for (int i = 0; i < 20 && lab_hidden(k) && !lab_failed(k); i++) {
        struct map m = {lab_pick(k, 1, MOST - 1), lab_pick(k, 1, 400),
                        (int)(i ? lab_pick(k, 1, 40) : lab_pick(k, 65, 200))};
        say_map(text, &m);
        each(k, &m, text);
    }
}

// A vector that is too long to walk over: the sums of rows and elements, and
// the last row.
static void want_long(struct lab_case *k, size_t n, size_t slice, int servers)
{
    struct map m = {n, slice, servers};
    size_t whole = (size_t)servers * slice, rows = n / whole, sum = 0;
    size_t rest = n % whole;
    rest = rest ? rest : whole;
    rows += rest < whole;
    char text[96];
    say_map(text, &m);
    for (int server = 0; server < servers && !lab_failed(k); server++) {
        struct shard s = {0};
        int err = shard_make(&s, n, slice, servers, server);
        if (!lab_want(k, err == 0 && (size_t)s.rows == rows,
                      "%s: shard_make() of server %d returned %d, with %d "
                      "rows, not %zu",
                      text, server, err, s.rows, rows))
            return;
        struct slice is = shard_slice(&s, (int)rows - 1);
        int c = lab_place(LAB_PARTS, server, servers);
        size_t place = (size_t)lab_place(LAB_MORE, c, servers);
        size_t ought =
            rest / (size_t)servers + (place < rest % (size_t)servers);
        size_t local = (rows - 1) * slice;
        lab_want(k, is.n == ought && (is.n == 0 || is.local == local),
                 "%s: the last row has %zu elements of server %d, from its "
                 "%zu on, not %zu from %zu on",
                 text, is.n, server, is.local, ought, local);
        sum += shard_elements(&s);
    }
    lab_want(k, sum == n, "%s: the servers hold %zu elements", text, sum);
}

enum { MOST_ROWS = 1 << 24 };

// As many rows as are allowed, and one element more.
static void want_most_rows(struct lab_case *k)
{
    size_t slice = lab_pick(k, 1, 9), w = lab_pick(k, 2, 5);
    struct shard s;
    want_long(k, MOST_ROWS * slice * w, slice, (int)w);
    lab_want(k, shard_make(&s, MOST_ROWS * slice * w + 1, slice, (int)w, 0),
             "n = %zu, slices of %zu, %zu servers: that is more than 1 << 24 "
             "rows, and shard_make() did not return -1",
             MOST_ROWS * slice * w + 1, slice, w);
}

// Makes the shard of one server, whose number of rows must be possible.
static bool make(struct lab_case *k, const struct map *m, const char *text,
                 int index, struct shard *s)
{
    memset(s, 0, sizeof *s);
    int err = shard_make(s, m->n, m->slice, m->servers, index);
    return lab_want(k, err == 0 && s->rows >= 0 && s->rows <= MOST,
                    "%s: shard_make() of server %d returned %d, with %d rows",
                    text, index, err, s->rows) &&
           lab_want(k,
                    s->n == m->n && s->slice == m->slice &&
                        s->servers == m->servers && s->index == index,
                    "%s: shard_make() of server %d has other values of n, "
                    "slice, servers or index than it was called with",
                    text, index);
}

// Gets the server's part of a row, which must be within the vector.
static bool part(struct lab_case *k, const struct shard *s, const char *text,
                 int row, struct slice *is)
{
    *is = shard_slice(s, row);
    return lab_want(k, is->n <= s->n && is->off <= s->n - is->n,
                    "%s: row %d of server %d has %zu elements from %zu on, "
                    "which are not in the vector",
                    text, row, s->index, is->n, is->off);
}

static void tile_map(struct lab_case *k, const struct map *m, const char *text)
{
    int owners[MOST] = {0};
    for (int server = 0; server < m->servers; server++) {
        struct shard s;
        struct slice is;
        if (!make(k, m, text, server, &s))
            return;
        for (int row = 0; row < s.rows; row++) {
            if (!part(k, &s, text, row, &is))
                return;
            for (size_t i = 0; i < is.n; i++)
                owners[is.off + i]++;
        }
    }
    for (size_t i = 0; i < m->n; i++)
        lab_want(k, owners[i] == 1, "%s: element %zu has %d owners", text, i,
                 owners[i]);
}

static void tile(struct lab_case *k)
{
    for_maps(k, tile_map);
}

static void balance_map(struct lab_case *k, const struct map *m,
                        const char *text)
{
    size_t least = m->n, most = 0;
    for (int server = 0; server < m->servers; server++) {
        struct shard s;
        struct slice is;
        size_t sum = 0;
        if (!make(k, m, text, server, &s))
            return;
        int rows = 0;
        for (int row = 0; row < s.rows; row++) {
            if (!part(k, &s, text, row, &is))
                return;
            sum += is.n;
            rows += is.n > 0;
        }
        least = sum < least ? sum : least;
        most = sum > most ? sum : most;
        lab_want(
            k, shard_elements(&s) == sum,
            "%s: shard_elements() of server %d is %zu, its slices hold %zu",
            text, server, shard_elements(&s), sum);
        lab_want(k, shard_rows(&s) == rows,
                 "%s: shard_rows() of server %d is %d, but it has elements of "
                 "%d rows",
                 text, server, shard_rows(&s), rows);
    }
    lab_want(k, most - least <= 1,
             "%s: one server holds %zu elements, another %zu", text, most,
             least);
}

static void balance(struct lab_case *k)
{
    for_maps(k, balance_map);
    if (lab_hidden(k)) {
        want_long(k, (1 << 24) + 3, lab_pick(k, 100, 999),
                  (int)lab_pick(k, 2, 8));
        want_long(k, 10000000000 + lab_pick(k, 0, 999),
                  lab_pick(k, 100000, 999999), (int)lab_pick(k, 2, 8));
        want_long(k, 10000000000000 + lab_pick(k, 0, 999),
                  lab_pick(k, 3000000000, 4000000000), (int)lab_pick(k, 2, 8));
    }
}

// The elements of part c of a row, if `len` are dealt out to the parts like
// cards, in the term's order.
static size_t dealt(size_t len, int servers, int c)
{
    size_t n = 0, card = (size_t)lab_place(LAB_MORE, c, servers);
    for (; card < len; card += (size_t)servers)
        n++;
    return n;
}

// Backward finishes row 0 first. The term says which server has part c.
static void rows_map(struct lab_case *k, const struct map *m, const char *text)
{
    size_t width = m->slice * (size_t)m->servers, done = 0;
    for (int row = 0; done < m->n; row++) {
        size_t len = m->n - done < width ? m->n - done : width;
        size_t at = LAB_ROWS_UP ? done : m->n - done - len, end = at + len;
        for (int c = 0; c < m->servers; c++) {
            int server = lab_at(LAB_PARTS, c, m->servers);
            struct shard s;
            struct slice is;
            if (!make(k, m, text, server, &s) ||
                !lab_want(k, row < s.rows, "%s: row %d is missing", text,
                          row) ||
                !part(k, &s, text, row, &is))
                return;
            lab_want(k, is.n == 0 || is.off == at,
                     "%s: row %d of server %d begins at %zu, not at %zu", text,
                     row, server, is.off, at);
            size_t ought = dealt(len, m->servers, c);
            lab_want(k, is.n == ought,
                     "%s: row %d has %zu elements of server %d, not %zu", text,
                     row, is.n, server, ought);
            at += is.n;
        }
        lab_want(k, at == end, "%s: row %d ends at %zu, not at %zu", text, row,
                 at, end);
        done += len;
    }
}

static void rows(struct lab_case *k)
{
    for_maps(k, rows_map);
    struct shard s;
    lab_want(k, shard_make(&s, (size_t)1 << 40, 1, 2, 0) == -1,
             "n = 1 << 40, slices of 1, 2 servers: shard_make() did not return "
             "-1");
    if (lab_hidden(k))
        want_most_rows(k);
}

static void dense_map(struct lab_case *k, const struct map *m, const char *text)
{
    for (int server = 0; server < m->servers; server++) {
        struct shard s;
        struct slice is;
        size_t used = 0;
        if (!make(k, m, text, server, &s))
            return;
        for (int row = 0; row < s.rows; row++) {
            if (!part(k, &s, text, row, &is))
                return;
            lab_want(k, is.n == 0 || is.local == used,
                     "%s: row %d of server %d has local = %zu, but its rows "
                     "before have %zu elements",
                     text, row, server, is.local, used);
            used += is.n;
        }
    }
}

static void dense(struct lab_case *k)
{
    for_maps(k, dense_map);
}

struct job {
    struct map map;
    struct lab_case *test;
    float v[MOST_SERVERS][MOST];   // by worker: gradients, then sums
    float own[MOST_SERVERS][MOST]; // by server
    float in[MOST_SERVERS][MOST];
};

static float number(int rank, size_t i)
{
    return (float)(rank * 7 + (int)(i % 31));
}

// Whether all slices are in the vector, and in their servers' memory.
static bool all_inside(struct job *j, const struct shard *s, int servers)
{
    struct slice is;
    for (int i = 0; i < servers; i++)
        for (int row = 0; row < s[i].rows; row++)
            if (!part(j->test, &s[i], "an exchange", row, &is) ||
                !lab_want(j->test, is.local <= MOST - is.n,
                          "an exchange: row %d of server %d has local = %zu",
                          row, i, is.local))
                return false;
    return true;
}

// Every rank is a worker and a server. It sends every other server the elements
// of that server's shard, adds the elements that it receives for its own shard,
// and sends the sums back.
static int exchange(struct lab *l, struct job *j, const struct shard *s,
                    const struct shard *mine)
{
    int me = l->rank, w = l->workers;
    float *v = j->v[me], *own = j->own[me], *in = j->in[me];
    if (!all_inside(j, s, w))
        return -1;
    for (int hop = 1; hop < w; hop++)
        for (int row = 0; row < mine->rows; row++) {
            int to = (me + hop) % w, from = (me + w - hop) % w;
            struct slice a = shard_slice(&s[to], row);
            struct slice b = shard_slice(mine, row);
            struct lab_req r[2];
            if (lab_isend(l, to, v + a.off, a.n * 4, &r[0]) ||
                lab_irecv(l, from, in, b.n * 4, &r[1]) || lab_wait(l, r, 2))
                return -1;
            for (size_t i = 0; i < b.n; i++)
                own[b.local + i] += in[i];
        }
    for (int row = 0; row < mine->rows; row++) {
        struct slice b = shard_slice(mine, row);
        for (size_t i = 0; i < b.n; i++)
            own[b.local + i] += v[b.off + i];
    }
    for (int hop = 1; hop < w; hop++)
        for (int row = 0; row < mine->rows; row++) {
            int to = (me + hop) % w, from = (me + w - hop) % w;
            struct slice a = shard_slice(mine, row);
            struct slice b = shard_slice(&s[from], row);
            struct lab_req r[2];
            if (lab_isend(l, to, own + a.local, a.n * 4, &r[0]) ||
                lab_irecv(l, from, v + b.off, b.n * 4, &r[1]) ||
                lab_wait(l, r, 2))
                return -1;
        }
    for (int row = 0; row < mine->rows; row++) {
        struct slice b = shard_slice(mine, row);
        for (size_t i = 0; i < b.n; i++)
            v[b.off + i] = own[b.local + i];
    }
    return 0;
}

static int body(struct lab *l, void *arg)
{
    struct job *j = arg;
    struct shard s[MOST_SERVERS] = {{0}};
    for (size_t i = 0; i < j->map.n; i++)
        j->v[l->rank][i] = number(l->rank, i);
    for (int r = 0; r < l->workers; r++)
        if (!make(j->test, &j->map, "an exchange", r, &s[r]))
            return -1;
    return exchange(l, j, s, &s[l->rank]);
}

// The elements of a server, counted row by row.
static size_t owned(const struct map *m, int server)
{
    size_t width = m->slice * (size_t)m->servers, own = 0;
    int c = lab_place(LAB_PARTS, server, m->servers);
    for (size_t left = m->n; left > 0; left -= left < width ? left : width)
        own += dealt(left < width ? left : width, m->servers, c);
    return own;
}

static void want_bytes(struct lab_case *k, struct map map)
{
    struct lab_world world = {.workers = map.servers};
    int w = map.servers;
    struct job *j = lab_failed(k) ? NULL : lab_memory(k, 1, sizeof *j);
    if (!j)
        return;
    j->map = map;
    j->test = k;
    const struct lab_run *run = lab_virtual(k, &world, body, j);
    bool clean = lab_clean(k, run);
    for (int r = 0; clean && r < w; r++) {
        size_t own = owned(&map, r);
        size_t law = 4 * (map.n - own + (size_t)(w - 1) * own);
        size_t out = (size_t)run->v->rank[r].bytes_out;
        lab_record(k, w, map.n, "bytes_out", (double)out);
        lab_want(k, out == law,
                 "%d workers, n = %zu: worker %d sent %zu bytes; the parts of "
                 "others, and its own part to each other, are %zu",
                 w, map.n, r, out, law);
        for (size_t i = 0; i < map.n; i++) {
            float sum = 0;
            for (int o = 0; o < w; o++)
                sum += number(o, i);
            lab_want(k, j->v[r][i] == sum,
                     "%d workers, n = %zu: the sum at %zu is %g on worker %d, "
                     "not %g",
                     w, map.n, i, (double)j->v[r][i], r, (double)sum);
        }
    }
}

static void bytes(struct lab_case *k)
{
    for (int w = 1; w <= MOST_SERVERS; w++) // then the law is 2(w-1)/w S
        want_bytes(k, (struct map){12 * (size_t)w, 5, w});
    for (int i = 0; i < 3 && lab_hidden(k); i++)
        want_bytes(k,
                   (struct map){lab_pick(k, 1, MOST - 1), lab_pick(k, 1, 400),
                                (int)lab_pick(k, 2, MOST_SERVERS)});
}

static const struct lab_test tests[] = {
    {"tile", 20, tile, NULL,
     "n = 7, slices of 2, 3 servers: a whole row has 6 elements, the last row "
     "has 1. Which server gets it?"},
    {"balance", 15, balance, "tile",
     "Cut each row by itself, also the last, shorter one. 10 elements over 4 "
     "servers: 3 3 2 2."},
    {"rows", 15, rows, "tile",
     "Which elements does backward finish first? They are row 0."},
    {"dense", 10, dense, "rows",
     "All rows before this one are whole: how many elements do they give the "
     "server?"},
    {"bytes", 10, bytes, "dense",
     "Is every server's shard as long as every other's?"},
    {NULL, 0, NULL, NULL, NULL},
};

const struct lab_about lab_about = {
    .number = 3,
    .name = "many servers",
    .file = "shard.c",
    .functions = "shard_make shard_slice shard_rows shard_elements",
    .floor = 20,
    .tests = tests,
};
