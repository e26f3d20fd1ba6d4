// processor.c - reads /proc/cpuinfo. The numbers of ARM's cores are those of
// the register MIDR_EL1, as in util-linux's lscpu-arm.c.

#include "base/processor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct core {
    unsigned implementer, part;
    const char *name;
} cores[] = {
    {0x41, 0xd08, "ARM Cortex-A72 (Graviton, Raspberry Pi 4)"},
    {0x41, 0xd0b, "ARM Cortex-A76 (Raspberry Pi 5)"},
    {0x41, 0xd0c, "ARM Neoverse N1 (Graviton2, Altra)"},
    {0x41, 0xd40, "ARM Neoverse V1 (Graviton3)"},
    {0x41, 0xd49, "ARM Neoverse N2"},
    {0x41, 0xd4f, "ARM Neoverse V2 (Grace, Graviton4)"},
    {0x46, 0x001, "Fujitsu A64FX"},
    {0xc0, 0xac3, "Ampere-1 (AmpereOne)"},
};

// The value of the first line that begins with `name`; "" if there is none.
static void field(FILE *f, const char *name, char *out, size_t size)
{
    char line[256];
    *out = '\0';
    rewind(f);
    while (fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, name, strlen(name)) || !colon)
            continue;
        snprintf(out, size, "%s", colon + 1 + strspn(colon + 1, " "));
        out[strcspn(out, "\n")] = '\0';
        return;
    }
}

void processor_name(char *out, size_t size, const char *path)
{
    char implementer[32], part[32];
    FILE *f = fopen(path, "re");
    *out = '\0';
    if (!f)
        return;
    field(f, "model name", out, size);
    field(f, "CPU implementer", implementer, sizeof implementer);
    field(f, "CPU part", part, sizeof part);
    fclose(f);
    if (*out || !*part)
        return;
    snprintf(out, size, "ARM %s %s", implementer, part);
    for (size_t i = 0; i < sizeof cores / sizeof *cores; i++)
        if (cores[i].implementer == strtoul(implementer, NULL, 16) &&
            cores[i].part == strtoul(part, NULL, 16))
            snprintf(out, size, "%s", cores[i].name);
}
