// squeeze_perf.c - the time to compress and to decode gradients, one thread,
// beside the time to copy them.
//
//     squeeze_perf [mb=25] [rounds=11] [density=..] [levels=..]
//                  [squeeze_rank=..] [peers=0] [peer_python=PATH]
//
// In each round all compressors take turns; times are medians of the time that
// the processor spent, which other programs change little. The gradients are
// normal deviates. A worker encodes one message and decodes one for each
// worker of a gathered compressor, so decoding is a column of its own. power
// takes them as a square matrix: encoding computes P and Q, decoding their
// product. demo takes the same matrix. PyTorch does the same behind the table,
// if it is there (tests/oracle/squeeze_torch_speed.py).

#include "bench/peer.h"

#include "base/base.h"
#include "base/median.h"
#include "base/rng.h"
#include "config/keys.h"
#include "squeeze/cosines.h"
#include "squeeze/power.h"
#include "squeeze/squeeze.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 1001, KINDS = SQUEEZE_DEMO };

struct plan {
    double mb;
    int rounds;
    double density;
    int levels, rank;
    int peers; // bool
    char python[CONFIG_PATH];
};

// The shell sees it between quotes.
static int check_python(const char *key, const char *value)
{
    return strchr(value, '\'') ? fail("%s=%s: a quote", key, value) : 0;
}

#define AT(member) offsetof(struct plan, member), false

static const struct key rows[] = {
    {"bench squeeze", "mb", "25", KEY_NUMBER, AT(mb), .min = 1e-5, .max = 4096,
     .unit = "MB", .help = "size of the gradients"},
    {"bench squeeze", "rounds", "11", KEY_INT, AT(rounds), .min = 1,
     .max = ROUNDS, .help = "in each round all take turns"},
    {"bench squeeze", "density", "0.01", KEY_NUMBER, AT(density), .min = 1e-6,
     .max = 1, .unit = "share", .help = "topk, demo: share that is sent"},
    {"bench squeeze", "levels", "127", KEY_INT, AT(levels), .min = 1,
     .max = 127,
     .help = "int8: to how many sizes above 0 gradients are rounded"},
    {"bench squeeze", "squeeze_rank", "4", KEY_INT, AT(rank), .min = 1,
     .max = 1024, .help = "power: rank of P and Q"},
    {"bench squeeze", "peers", "1", KEY_INT, AT(peers), .max = 1,
     .help = "1: PyTorch does the same, too"},
    {"bench squeeze", "peer_python", "", KEY_TEXT, AT(python),
     .check = check_python, .unit = "path",
     .help = "another python3 whose PyTorch is compared"},
};

static const struct key_table keys = {rows, sizeof rows / sizeof *rows,
                                      "lockstep bench squeeze --help"};

struct vectors {
    size_t n;
    float *gradients, *x, *sum;
    char *message;
    void *scratch;
};

// Milliseconds, by round.
struct times {
    double encode[ROUNDS], decode[ROUNDS];
};

static int open_vectors(struct vectors *v, size_t n)
{
    size_t scratch = n * sizeof(float), room = squeeze_demo.scratch(n);
    scratch = scratch > room ? scratch : room;
    *v = (struct vectors){
        .n = n,
        .gradients = mem_alloc(n, sizeof(float)),
        .x = mem_alloc(n, sizeof(float)),
        .sum = mem_alloc(n, sizeof(float)),
        .message = mem_alloc(n, 2 * sizeof(float)), // topk with density=1
        .scratch = mem_alloc(scratch, 1),
    };
    if (!v->gradients || !v->x || !v->sum || !v->message || !v->scratch)
        return -1;
    for (size_t i = 0; i < n; i++)
        v->gradients[i] = (float)rng_normal(1, i);
    memset(v->scratch, 1, scratch); // so that its pages are there
    memset(v->message, 1, 2 * n * sizeof(float));
    return 0;
}

static double ms_since(uint64_t start)
{
    return (double)(cpu_process_ns() - start) * 1e-6;
}

static double copy_ms(struct vectors *v)
{
    uint64_t start = cpu_process_ns();
    memcpy(v->x, v->gradients, v->n * sizeof *v->x);
    return ms_since(start);
}

// Gradients of n elements as a matrix, but for less than a row of them.
static struct power_matrix matrix_of(const struct sync_settings *set, size_t n)
{
    size_t side = (size_t)sqrt((double)n);
    return power_matrix(set, side * (n / side), side);
}

static struct demo_grid grid_of(const struct sync_settings *set, size_t n)
{
    struct power_matrix m = matrix_of(set, n);
    return demo_grid(set, m.rows * m.cols, m.rows);
}

// Q of the last round is where this one begins, as in a training.
static void encode(const struct sync_settings *set, struct vectors *v)
{
    const struct squeeze_ops *ops = squeeze_find(set->squeeze);
    struct power_matrix m = matrix_of(set, v->n);
    struct demo_grid g = grid_of(set, v->n);
    float *q = v->scratch, *p = (float *)(void *)v->message;
    if (ops->summed) {
        power_orthonormal(q, m.rank, m.cols, 1);
        power_right(&m, v->x, q, p);
        power_orthonormal(p, m.rank, m.rows, 2);
        power_left(&m, v->x, p, q);
    } else if (ops->gives_update) {
        demo_encode(set, &g, v->x, v->message, v->scratch);
    } else {
        ops->encode(set, 1, v->x, v->n, v->message, v->scratch);
    }
}

static int decode(const struct sync_settings *set, struct vectors *v)
{
    const struct squeeze_ops *ops = squeeze_find(set->squeeze);
    struct power_matrix m = matrix_of(set, v->n);
    struct demo_grid g = grid_of(set, v->n);
    if (ops->summed)
        power_product(&m, (float *)(void *)v->message, v->scratch, v->sum);
    else if (!ops->gives_update)
        return ops->add(set, v->message, v->n, v->sum);
    else if (demo_check(&g, v->message))
        return -1;
    else
        demo_signs(&g, v->message, 1, v->sum, v->scratch);
    return 0;
}

static size_t message_bytes(const struct sync_settings *set, size_t n)
{
    const struct squeeze_ops *ops = squeeze_find(set->squeeze);
    struct power_matrix m = matrix_of(set, n);
    struct demo_grid g = grid_of(set, n);
    if (ops->gives_update)
        return demo_bytes(&g);
    return ops->summed ? (power_p(&m) + power_q(&m)) * sizeof(float)
                       : ops->bytes(set, n);
}

// The copy of the gradients in front of it is not measured.
static int round_ms(const struct sync_settings *set, struct vectors *v,
                    double *encode_ms, double *decode_ms)
{
    copy_ms(v);
    uint64_t start = cpu_process_ns();
    encode(set, v);
    *encode_ms = ms_since(start);
    start = cpu_process_ns();
    int rc = decode(set, v);
    *decode_ms = ms_since(start);
    return rc;
}

// Fills in *v and of[]. Returns 0, or -1 after fail().
static int measure(const struct plan *p, struct sync_settings *set,
                   struct vectors *v, struct times of[])
{
    for (int i = -1; i < p->rounds; i++) // the first round is not counted
        for (int k = 0; k <= KINDS; k++) {
            int at = i < 0 ? 0 : i;
            set->squeeze = (enum squeeze_kind)k;
            if (!k)
                of[k].encode[at] = copy_ms(v);
            else if (round_ms(set, v, &of[k].encode[at], &of[k].decode[at]))
                return -1;
        }
    return 0;
}

// Prints the table, and fills in the words that tell the peer of it.
static void print_rows(const struct plan *p, struct sync_settings *set,
                       const struct vectors *v, struct times of[],
                       char words[512])
{
    double copy = median(of[0].encode, p->rounds);
    size_t at =
        (size_t)snprintf(words, 512,
                         "n=%zu rounds=%d density=%.9g levels=%d "
                         "squeeze_rank=%d copy_ms=%.4f",
                         v->n, p->rounds, p->density, p->levels, p->rank, copy);
    printf("%-10s %10s %10s %10s %10s\n", "squeeze", "encode_ms", "decode_ms",
           "of_memcpy", "ratio");
    printf("%-10s %10.3f %10s %10.2f %10s\n", "memcpy", copy, "", 1.0, "");
    for (int k = 1; k <= KINDS; k++) {
        set->squeeze = (enum squeeze_kind)k;
        const char *name = squeeze_find(set->squeeze)->name;
        double encode = median(of[k].encode, p->rounds);
        double decode = median(of[k].decode, p->rounds);
        printf("%-10s %10.3f %10.3f %10.2f %10.1f\n", name, encode, decode,
               (encode + decode) / copy,
               (double)(v->n * sizeof(float)) /
                   (double)message_bytes(set, v->n));
        at += (size_t)snprintf(words + at, 512 - at, " %s=%.4f", name,
                               encode + decode);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static struct times of[KINDS + 1];
    struct sync_settings set = {0};
    struct vectors v;
    struct plan p;
    char words[512];
    log_as_lockstep();
    streams_begin();
    key_defaults(&keys, &p);
    if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        printf("lockstep bench squeeze [key=value] ...\n\nThe time to "
               "compress and to decode gradients, beside a copy of them.\n");
        key_help(stdout, &keys);
        return 0;
    }
    if (key_words(&keys, &p, argc - 1, argv + 1) ||
        open_vectors(&v, (size_t)(p.mb * 1e6 / sizeof(float))))
        die("%s", fail_message());
    set.density = p.density;
    set.levels = p.levels;
    set.squeeze_rank = p.rank;
    set.squeeze = SQUEEZE_POWER;
    if (!matrix_of(&set, v.n).rank)
        die("squeeze_rank=%d: P and Q of mb=%g MB would not be shorter; try: a "
            "lower squeeze_rank, or a larger mb",
            p.rank, p.mb);
    if (measure(&p, &set, &v, of))
        die("%s", fail_message());
    print_rows(&p, &set, &v, of, words);
    mem_free(v.gradients);
    mem_free(v.x);
    mem_free(v.sum);
    mem_free(v.message);
    mem_free(v.scratch);
    if (p.peers)
        peer_run(p.python, "squeeze_torch_speed.py", words);
    return 0;
}
