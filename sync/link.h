// link.h - the links between workers, as a file that sync_perf and link_perf
// write (out=FILE) and `lockstep predict` and sync_perf read (link=FILE).
//
//     {"workers": 2, "fits": [{
//         "who": "ring",        a backend, or "tcp": a stream between two hosts
//         "alpha_us": 80.1, "bytes_per_s": 119600000,
//         "bytes": [..], "seconds": [..],      what it was fitted to
//         "off": [..]}]}                       measured / law - 1

#ifndef SYNC_LINK_H
#define SYNC_LINK_H

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

// Fit `who` to the times of law and append it; a link that cannot be told
// (fewer than two sizes) is left out. 0, or -1 after fail() where it is full.
int links_add(struct links *l, const char *who, const struct law *law,
              const double *bytes, const double *seconds, int n);

// The fit of `who`, or of "tcp" where it has none; NULL after fail().
const struct link_fit *links_find(const struct links *l, const char *who);

// How far the law may be off for so many bytes, as a share: as far as at the
// sizes next to it, or 0.15 where nothing was measured.
double links_error(const struct link_fit *f, double bytes);

// The share of a link's rate that is payload of TCP: 1448 of 1514 bytes.
#define LINK_PAYLOAD (1448.0 / 1514)

// `text` is a rate, as 25gbit or 100mbit, for a link of that rate that nobody
// has measured, of latency `alpha_s`; or, as 3MB/s, the rate of its payload; or
// the path of a file. 0, or -1 after fail().
int links_read(struct links *l, const char *text, double alpha_s);
int links_write(const struct links *l, const char *path);

#endif
