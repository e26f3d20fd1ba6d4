// json.h - the settings of a run out of its run.json.

#ifndef CONFIG_JSON_H
#define CONFIG_JSON_H

#include "config/config.h"

// Apply "asked" of the run.json whose n bytes are at `text`; of one from before
// it had that, "settings". What belongs to one start of a run (key.once, and
// endpoints) is left out. `name` is what errors call it. 0, or -1 after fail().
int config_json(struct run *r, const char *name, const char *text, size_t n);

#endif
