// ini.h - settings from an INI text in memory.

#ifndef CONFIG_INI_H
#define CONFIG_INI_H

#include "config/config.h"

// Applies the n bytes of `text`. Errors begin with `name` and the line. 0, or
// -1 after fail().
int config_ini(struct run *r, const char *name, const char *text, size_t n);

#endif
