// result_law.c - computes the bytes and times that the law predicts for a
// finished run.

#include "lockstep/result_law.h"

#include "base/base.h"
#include "config/backends.h"
#include "config/config.h"
#include "model/model.h"
#include "optim/rule.h"
#include "sync/law.h"
#include "sync/link.h"
#include "sync/sync.h"
#include "train/shape.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Returns the number of emulated hosts that have only servers.
static int own_hosts(const struct result *r)
{
    const char *hosts = strstr(r->net, "hosts=");
    int n = hosts ? atoi(hosts + strlen("hosts=")) : r->world;
    return n > r->world ? n - r->world : 0;
}

bool result_beside(const struct result *r)
{
    return r->row && r->row->servers < 0 && r->servers == r->world &&
           own_hosts(r) == 0;
}

// Returns the bytes of a gradient on the wire. Shared memory is always fp32.
static size_t gradient_bytes(const struct result *r)
{
    return strcmp(r->wire, "fp32") && strcmp(r->transport, "shm") ? 2 : 4;
}

int result_round(const struct result *r)
{
    char every[32];
    if (!r->row || !r->row->apart)
        return 1;
    result_setting(r, "every", every, sizeof every);
    int steps = atoi(every);
    return steps > 0 ? steps : 1;
}

// Returns the payload that leaves a worker's host in a step. It is S to
// servers, and 2(n-1)/n S around a ring. If worker 0 owns the parameters,
// 2(n-1)/n S is the mean of the workers. With a server beside each worker, the
// worker and the server each send (n-1)/n S; the replies of servers that update
// are fp32. If only some steps exchange, it is the mean of all steps, with one
// exchange a round and one at the end.
static double law_bytes(const struct result *r, double parameters)
{
    double n = r->world, bytes = parameters * (double)gradient_bytes(r);
    if (result_beside(r))
        return (n - 1) / n * (bytes + (r->held ? 4 * parameters : bytes));
    if (!r->row || !backend_has_law(r->row))
        return 0;
    int every = result_round(r), rounds = (r->steps + every - 1) / every;
    return r->row->servers ? bytes
                           : 2 * (n - 1) / n * bytes * rounds / r->steps;
}

// Returns the verb that sends these bytes.
static int law_verb(const struct backend *b)
{
    return b->servers                    ? RESULT_PUSH
           : b->traffic == TRAFFIC_OWNER ? (int)GROUP_SEND
                                         : (int)GROUP_ALL_REDUCE;
}

// Reads the links of net=RATE. 0, or -1 if the law predicts no time for the
// run.
static int read_link(const struct result *r, struct link *link)
{
    static const double latency_s = 100e-6; // of a message, an estimate
    struct links links = {0};
    char rate[64];
    snprintf(rate, sizeof rate, "%.*s", (int)strcspn(r->net, " "), r->net);
    if (r->world < 2 || !isdigit((unsigned char)*rate) || r->consistency[0] ||
        !r->row || links_read(&links, rate, latency_s))
        return -1;
    *link = links.fits[0].link;
    return 0;
}

// Returns the seconds of an exchange on these links; NaN if there is no law for
// it.
static double law_exchange(const struct result *r, double parameters,
                           const struct link *link)
{
    struct sync_settings set;
    int apart = result_beside(r) ? 0 : r->servers;
    settings_defaults(&set);
    if (*r->algorithm && settings_set(&set, "algorithm", r->algorithm))
        return NAN;
    if (apart > 1 && own_hosts(r) < apart)
        return NAN; // no law for servers beside some of the workers
    struct law law =
        law_of(r->row, &(struct law_case){.workers = r->world,
                                          .servers = apart,
                                          .held = r->held,
                                          .algorithm = set.algorithm,
                                          .every = result_round(r)});
    return law_seconds(&law, link, parameters * (double)gradient_bytes(r));
}

// ---- shards

static int model_number(const cJSON *run, const char *key)
{
    const cJSON *j = cJSON_GetObjectItemCaseSensitive(run, "model");
    j = cJSON_GetObjectItemCaseSensitive(j, key);
    return cJSON_IsNumber(j) ? j->valueint : 0;
}

static int setting_number(const struct result *r, const char *key)
{
    char text[32];
    result_setting(r, key, text, sizeof text);
    return atoi(text);
}

static void shards_law(struct result *r, const cJSON *run)
{
    const struct model_config c = {
        .layers = model_number(run, "layers"),
        .heads = model_number(run, "heads"),
        .channels = model_number(run, "channels"),
        .context = model_number(run, "context"),
        .vocab = model_number(run, "vocab_size"),
    };
    struct bucket *blocks = NULL;
    struct link link;
    if (model_check(&c) ||
        !(blocks = mem_alloc((size_t)model_nblocks(&c), sizeof *blocks)))
        return;
    const struct law_step step = {
        .world = r->world,
        .micro = setting_number(r, "accum"),
        .shards = true,
        .kind = (enum shard_level)setting_number(r, "shard"),
        .cut = blocks,
        .count = shape_blocks(&c, blocks, model_nblocks(&c)),
        .grain = RULE_BLOCK,
        .sum_bytes = gradient_bytes(r),
        // A model in 16 bits gathers its parameters in 16 bits.
        .param_bytes = strcmp(r->precision, "fp32") ? 2 : 4,
    };
    r->value[METRIC_BYTES_LAW] = law_step_mean(&step, r->law);
    if (!read_link(r, &link))
        r->value[METRIC_LINK_LAW] =
            law_step_hops(&step) * link.alpha_s +
            r->value[METRIC_BYTES_LAW] / link.bytes_per_s;
    mem_free(blocks);
}

void result_law(struct result *r, const cJSON *run)
{
    struct link link;
    double parameters = model_number(run, "parameters");
    if (r->stages > 1)
        return; // no law: each stage sums gradients of its own parameters
    if (r->row && r->row->shards) {
        shards_law(r, run);
        return;
    }
    r->value[METRIC_BYTES_LAW] = law_bytes(r, parameters);
    if (!read_link(r, &link))
        r->value[METRIC_LINK_LAW] = law_exchange(r, parameters, &link);
    if (r->row)
        r->law[law_verb(r->row)] = r->value[METRIC_BYTES_LAW];
}
