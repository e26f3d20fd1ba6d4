// ini.h - settings out of an INI text that is already in memory.

#ifndef CONFIG_INI_H
#define CONFIG_INI_H

#include "config/config.h"

// Apply the n bytes of `text`; `name` is what errors call it, with the line.
// 0, or -1 after fail().
int config_ini(struct run *r, const char *name, const char *text, size_t n);

#endif
