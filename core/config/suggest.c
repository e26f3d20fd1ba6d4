// suggest.c - edit distance with swaps (Damerau 1964), by dynamic programming:
// row i of the table holds the cost of turning the first i letters of a into
// each prefix of b. The list `field` translates names from other programs and
// papers, for which the nearest key would be the wrong one.

#include "config/suggest.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { LONGEST = 63 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

int suggest_distance(const char *a, const char *b)
{
    int na = (int)strnlen(a, LONGEST), nb = (int)strnlen(b, LONGEST);
    int cost[LONGEST + 1][LONGEST + 1];
    for (int i = 0; i <= na; i++)
        cost[i][0] = i;
    for (int j = 0; j <= nb; j++)
        cost[0][j] = j;
    for (int i = 1; i <= na; i++) {
        for (int j = 1; j <= nb; j++) {
            int best = cost[i - 1][j - 1] + !same(a[i - 1], b[j - 1]);
            best = least(best, cost[i - 1][j] + 1);
            best = least(best, cost[i][j - 1] + 1);
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) &&
                same(a[i - 2], b[j - 1]))
                best = least(best, cost[i - 2][j - 2] + 1);
            cost[i][j] = best;
        }
    }
    return cost[na][nb];
}

static bool holds(const char *outer, const char *inner)
{
    return strlen(inner) >= 3 && strcasestr(outer, inner);
}

const char *suggest_nearest(const char *word, const char *const *words, int n)
{
    const char *nearest = NULL;
    int best = INT_MAX;
    for (int i = 0; i < n; i++) {
        int distance = suggest_distance(word, words[i]);
        if (holds(word, words[i]) || holds(words[i], word))
            distance = least(distance, 2);
        if (distance < best) {
            best = distance;
            nearest = words[i];
        }
    }
    return nearest;
}

static const struct suggest_row field[] = {
    {"sync", "ddp", "sync=ring, or sync=allreduce"},
    {"sync", "horovod gloo", "sync=ring"},
    {"sync", "mpi nccl", "sync=allreduce"},
    {"sync", "fsdp fully_shard zero3", "sync=zero shard=3"},
    {"sync", "deepspeed zero2", "sync=zero shard=2"},
    {"sync", "zero1 distributed_optimizer", "sync=zero shard=1"},
    {"sync", "diloco localsgd fedavg", "sync=outer every=10"},
    {"sync", "dp nn.DataParallel", "sync=dataparallel"},
    {"sync", "ps pserver parameter_server", "sync=sps, or sync=dps"},
    {"sync", "byteps", "sync=dps"},
    {"sync", "async hogwild asp", "sync=sps consistency=asp"},
    {"sync", "ssp", "sync=sps consistency=ssp:2"},
    {"sync", "gpipe pipeline pp", "sync=ring mesh=pp2 pipeline=gpipe"},
    {"sync", "pipedream 1f1b", "sync=ring mesh=pp2 pipeline=1f1b"},
    {"sync", "none single", "sync=local"},
    {"pipeline", "pipedream", "pipeline=1f1b"},
    {"", "learning_rate", "lr="},
    {"", "backend strategy", "sync="},
    {"", "world_size nproc_per_node num_workers np", "workers="},
    {"", "gradient_accumulation_steps grad_accum", "accum="},
    {"", "zero_stage stage", "shard="},
    {"", "seq_len block_size sequence_length", "context="},
    {"", "max_grad_norm grad_clip", "clip="},
    {"", "n_embd hidden_size d_model", "channels="},
    {"", "hostfile", "hosts="},
    {"", "activation_checkpointing gradient_checkpointing", "recompute=1"},
};

static char plain(const char **s)
{
    while (**s == '-' || **s == '_')
        ++*s;
    return **s ? (char)tolower((unsigned char)*(*s)++) : '\0';
}

// Whether the first of `words` is `word`.
static bool is_first(const char *words, const char *word)
{
    char ours, theirs;
    do {
        ours = plain(&words);
        theirs = plain(&word);
    } while (ours == theirs && ours);
    return !theirs && (!ours || ours == ' ');
}

bool suggest_row(int i, struct suggest_row *row)
{
    if (i >= (int)(sizeof field / sizeof *field))
        return false;
    *row = field[i];
    return true;
}

const char *suggest_ours(const char *key, const char *word)
{
    struct suggest_row row;
    for (int i = 0; suggest_row(i, &row); i++) {
        if (strcmp(row.key, key))
            continue;
        for (const char *w = row.words; w; w = strchr(w, ' ')) {
            w += *w == ' ';
            if (is_first(w, word))
                return row.ours;
        }
    }
    return NULL;
}
