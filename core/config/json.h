// json.h - the settings of a run from its run.json.

#pragma once

#include "config/config.h"

// Applies "asked" of the run.json whose n bytes are at `text`, or "settings" if
// an earlier version wrote the file without "asked". Leaves out settings that
// belong to one start of a run (key.once, and endpoints). Errors begin with
// `name`. 0, or -1 after fail().
int config_json(struct run *r, const char *name, const char *text, size_t n);
