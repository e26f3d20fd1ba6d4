// doctor_say.c - prints a finding, and runs other programs to ask them.

#include "lockstep/doctor.h"

#include "base/process.h"

#include <stdio.h>

static const double answer_s = 60;

void doctor_say(struct doctor *d, enum finding f, const char *what,
                const char *found, const char *remedy)
{
    static const char *const marks[] = {"ok", "-", "LACK"};
    d->counts[f]++;
    printf("%-5s %-14s %s\n", marks[f], what, found);
    if (f != FINDING_OK && remedy)
        printf("%-5s %-14s   try: %s\n", "", "", remedy);
}

void doctor_ask(const char *command, char *out, size_t size)
{
    if (process_ask(command, answer_s, out, size))
        out[0] = '\0';
}
