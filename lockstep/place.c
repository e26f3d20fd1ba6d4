// place.c - completes the numbers of hosts and of workers.

#include "lockstep/place.h"

#include "base/base.h"
#include "config/config.h"

#include <unistd.h>

int place_workers(struct place *p, int workers, const char *who)
{
    p->hosts = p->hosts ? p->hosts : 1;
    if (!workers)
        p->slots = p->slots ? p->slots : PLACE_SLOTS;
    else if (!p->slots && workers % p->hosts)
        return fail("%s: %d workers cannot be divided evenly among hosts=%d; "
                    "try: hosts=1",
                    who, workers, p->hosts);
    else if (!p->slots)
        p->slots = workers / p->hosts;
    else if (p->hosts * p->slots != workers)
        return fail("%s: hosts=%d with slots=%d are %d workers, not %d; try: "
                    "without slots=",
                    who, p->hosts, p->slots, p->hosts * p->slots, workers);
    return 0;
}

int place_threads(const struct run *r, int workers)
{
    int share = (int)sysconf(_SC_NPROCESSORS_ONLN) / workers;
    return r->threads ? r->threads : share > 1 ? share : 1;
}
