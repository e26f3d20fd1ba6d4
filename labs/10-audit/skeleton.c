// audit.c - lab 10: does a study's table say what its text says?

#include "labs/10-audit/audit.h"

// Believes everything.
double audit_seconds(const struct row *r)
{
    return r->printed_seconds;
}

double audit_bytes(const struct row *r)
{
    return r->printed_bytes;
}

unsigned audit_row(const struct row *r)
{
    (void)r;
    return 0;
}

unsigned audit_pair(const struct row *a, const struct row *b)
{
    (void)a;
    (void)b;
    return 0;
}

enum verdict audit_claim(const struct row *a, const struct row *b,
                         const struct claim *c)
{
    (void)a;
    (void)b;
    (void)c;
    return SUPPORTED;
}
