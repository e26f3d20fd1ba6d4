// doctor_say.c - prints a finding, and runs other programs to ask them.

#include "lockstep/doctor.h"

#include <stdio.h>
#include <string.h>

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
    FILE *f = popen(command, "re");
    out[0] = '\0';
    if (!f)
        return;
    if (!fgets(out, (int)size, f))
        out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    char rest[256];
    while (fgets(rest, sizeof rest, f))
        continue; // else the command would get SIGPIPE
    if (pclose(f) != 0)
        out[0] = '\0';
}
