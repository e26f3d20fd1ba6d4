// ini.h - settings from an INI text in memory.

#pragma once

#include "config/config.h"

// Applies the n bytes of `text`. Errors begin with `name` and the line. 0, or
// -1 after fail().
int config_ini(struct run *r, const char *name, const char *text, size_t n);
