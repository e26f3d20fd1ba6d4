// link.c - reads and writes the file that describes the links between workers.

#include "sync/link.h"

#include "base/base.h"
#include "base/file.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { FILE_MOST = 1 << 18 };

// The relative error that links_error() assumes of a link that nobody measured.
static const double unmeasured = 0.15;

int links_add(struct links *l, const char *who, const struct law *law,
              const double *bytes, const double *seconds, int n)
{
    if (l->n == LINK_FITS)
        return fail("link: more than %d fits", LINK_FITS);
    CHECK(n <= LINK_SIZES);
    struct link_fit *f = &l->fits[l->n];
    *f = (struct link_fit){.n = n};
    law_fit(law, bytes, seconds, n, &f->link);
    if (f->link.bytes_per_s == 0)
        return 0;
    for (int i = 0; i < n; i++)
        f->off[i] = seconds[i] / law_seconds(law, &f->link, bytes[i]) - 1;
    memcpy(f->bytes, bytes, (size_t)n * sizeof *bytes);
    memcpy(f->seconds, seconds, (size_t)n * sizeof *seconds);
    l->n++;
    return text_into(f->who, sizeof f->who, "%s", who);
}

const struct link_fit *links_find(const struct links *l, const char *who)
{
    const struct link_fit *tcp = NULL;
    for (int i = 0; i < l->n; i++) {
        if (!strcmp(l->fits[i].who, who))
            return &l->fits[i];
        if (!strcmp(l->fits[i].who, "tcp"))
            tcp = &l->fits[i];
    }
    if (!tcp)
        fail("link: no fit of %s, nor of tcp; try: lockstep bench link "
             "out=FILE.json",
             who);
    return tcp;
}

double links_error(const struct link_fit *f, double bytes)
{
    double below = -1, above = -1, size_below = 0, size_above = INFINITY;
    for (int i = 0; i < f->n; i++) {
        double size = f->bytes[i], off = fabs(f->off[i]);
        if (size <= bytes && size > size_below) {
            size_below = size;
            below = off;
        }
        if (size >= bytes && size < size_above) {
            size_above = size;
            above = off;
        }
    }
    return f->n ? fmax(below, above) : unmeasured;
}

// Reads a rate: "25gbit", also as 25Gbit/s or 25gbps, or "3MB/s" of payload.
// "3mb/s" could be either. Returns 1 and sets the rate in bytes/s of payload,
// or 0 if the text is no rate.
static int read_rate(const char *text, double *bytes_per_s)
{
    static const char *const bits[] = {"bit", "bit/s", "bps"};
    static const struct {
        char name;
        double scale;
    } units[] = {{'k', 1e3}, {'m', 1e6}, {'g', 1e9}};
    char *end;
    double rate = strtod(text, &end), payload = 0, scale = 0;
    for (size_t i = 0; end > text && i < sizeof units / sizeof *units; i++)
        if (tolower((unsigned char)*end) == units[i].name)
            scale = units[i].scale;
    if (scale == 0 || !(rate > 0 && rate <= 1e6))
        return 0;
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
        if (!strcasecmp(end + 1, bits[i]))
            payload = LINK_PAYLOAD / 8;
    if (strchr("kMG", *end) && !strcmp(end + 1, "B/s"))
        payload = 1;
    *bytes_per_s = rate * scale * payload;
    return payload > 0;
}

static double positive(const cJSON *j, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(j, key);
    return cJSON_IsNumber(v) && v->valuedouble >= 0 ? v->valuedouble : -1;
}

static int read_numbers(const cJSON *j, const char *key, double *out, int n)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(j, key);
    if (cJSON_GetArraySize(list) != n)
        return -1;
    for (int i = 0; i < n; i++) {
        const cJSON *v = cJSON_GetArrayItem(list, i);
        if (!cJSON_IsNumber(v))
            return -1;
        out[i] = v->valuedouble;
    }
    return 0;
}

static int read_fit(const cJSON *j, struct link_fit *f)
{
    const cJSON *who = cJSON_GetObjectItemCaseSensitive(j, "who");
    f->link.alpha_s = positive(j, "alpha_us") * 1e-6;
    f->link.bytes_per_s = positive(j, "bytes_per_s");
    f->n = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(j, "bytes"));
    if (!cJSON_IsString(who) || f->link.alpha_s < 0 ||
        !(f->link.bytes_per_s > 0) || f->n > LINK_SIZES ||
        read_numbers(j, "bytes", f->bytes, f->n) ||
        read_numbers(j, "seconds", f->seconds, f->n) ||
        read_numbers(j, "off", f->off, f->n))
        return -1;
    return text_into(f->who, sizeof f->who, "%s", who->valuestring);
}

static int read_links(const char *text, struct links *l)
{
    cJSON *j = cJSON_Parse(text);
    const cJSON *fits = cJSON_GetObjectItemCaseSensitive(j, "fits");
    double workers = positive(j, "workers");
    int n = cJSON_GetArraySize(fits), rc = 0;
    if (!cJSON_IsArray(fits) || n > LINK_FITS ||
        !(workers >= 0 && workers < 1e6))
        rc = -1;
    *l = (struct links){.workers = (int)workers};
    for (; !rc && l->n < n; l->n++)
        rc = read_fit(cJSON_GetArrayItem(fits, l->n), &l->fits[l->n]);
    cJSON_Delete(j);
    return rc;
}

int links_read(struct links *l, const char *text, double alpha_s)
{
    double rate;
    if (read_rate(text, &rate)) {
        *l = (struct links){.n = 1};
        l->fits[0] = (struct link_fit){.who = "tcp", .link = {alpha_s, rate}};
        return 0;
    }
    if (isdigit((unsigned char)*text) && access(text, F_OK))
        return fail("link=%s: want a rate with its unit, as 25gbit or 3MB/s",
                    text);
    char *all = file_read(text, FILE_MOST);
    if (!all)
        return fail("link=%s; want a rate, as 25gbit or 3MB/s, or a file of "
                    "lockstep bench link|sync out=FILE",
                    fail_message());
    int rc = read_links(all, l) ? fail("link=%s: not a file of lockstep bench "
                                       "link|sync out=FILE",
                                       text)
                                : 0;
    mem_free(all);
    return rc;
}

static cJSON *fit_object(const struct link_fit *f)
{
    cJSON *j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "who", f->who);
    cJSON_AddNumberToObject(j, "alpha_us", f->link.alpha_s * 1e6);
    cJSON_AddNumberToObject(j, "bytes_per_s", f->link.bytes_per_s);
    cJSON_AddItemToObject(j, "bytes", cJSON_CreateDoubleArray(f->bytes, f->n));
    cJSON_AddItemToObject(j, "seconds",
                          cJSON_CreateDoubleArray(f->seconds, f->n));
    cJSON_AddItemToObject(j, "off", cJSON_CreateDoubleArray(f->off, f->n));
    return j;
}

int links_write(const struct links *l, const char *path)
{
    cJSON *j = cJSON_CreateObject();
    cJSON_AddNumberToObject(j, "workers", l->workers);
    cJSON *fits = cJSON_AddArrayToObject(j, "fits");
    for (int i = 0; i < l->n; i++)
        cJSON_AddItemToArray(fits, fit_object(&l->fits[i]));
    char *text = cJSON_Print(j);
    int rc = text ? file_replace_text(path, text)
                  : fail("memory: none left to print %s", path);
    free(text);
    cJSON_Delete(j);
    return rc;
}
