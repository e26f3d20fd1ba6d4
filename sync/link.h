// link.h - describes the links between workers, as a file. sync_perf and
// link_perf write it (out=FILE); `lockstep predict`, `lockstep simulate` and
// sync_perf read it (link=FILE).
//
//     {"workers": 2, "fits": [{
//         "who": "ring",        a backend, or "tcp": a stream between two hosts
//         "alpha_us": 80.1, "bytes_per_s": 119600000,
//         "bytes": [..], "seconds": [..],      what it was fitted to
//         "off": [..]}]}                       relative error of the fit:
//                                              measured / law - 1

#pragma once

#include "sync/law.h"

enum { LINK_FITS = 32, LINK_SIZES = 64, LINK_WHO = 24 };

struct link_fit {
    char who[LINK_WHO];
    struct link link;
    double bytes[LINK_SIZES], seconds[LINK_SIZES], off[LINK_SIZES];
    int n; // 0: not measured
};

struct links {
    int workers;
    struct link_fit fits[LINK_FITS];
    int n;
};

// Fit a link to n measured times (seconds[i] for bytes[i]) by `law`, and append
// it under the name `who`. With fewer than two sizes nothing can be fitted and
// nothing is appended. Returns 0, or -1 after fail() if *l is full.
int links_add(struct links *l, const char *who, const struct law *law,
              const double *bytes, const double *seconds, int n);

// The fit of `who`, or of "tcp" if there is none of `who`; NULL after fail().
// *l owns it.
const struct link_fit *links_find(const struct links *l, const char *who);

// The relative error to expect of the law for `bytes` bytes: the larger of the
// fit's errors at the next smaller and at the next larger measured size, or
// 0.15 if nothing was measured.
double links_error(const struct link_fit *f, double bytes);

// The share of a link's rate that is payload of TCP: 1448 of 1514 bytes.
#define LINK_PAYLOAD (1448.0 / 1514)

// links_read fills *l. `text` is a rate of a link that nobody has measured,
// such as 25gbit or 100mbit, or of its payload, such as 3MB/s; then its latency
// is `alpha_s` seconds. Otherwise `text` is the path of a file. links_write
// writes such a file. Both return 0, or -1 after fail().
int links_read(struct links *l, const char *text, double alpha_s);
int links_write(const struct links *l, const char *path);
