// manifest.h - run.json and summary.json: what was run, and what came of it.

#ifndef TELEMETRY_MANIFEST_H
#define TELEMETRY_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

struct manifest; // a JSON object being filled

struct manifest *manifest_open(void); // NULL after fail()
void manifest_text(struct manifest *m, const char *key, const char *value);
void manifest_number(struct manifest *m, const char *key, double value);
void manifest_bool(struct manifest *m, const char *key, bool value);

// Begin and end an object inside; objects nest.
void manifest_begin(struct manifest *m, const char *key);
void manifest_end(struct manifest *m);

// The machine: host, kernel, processor, cores, memory, and those environment
// variables that decide speeds.
void manifest_machine(struct manifest *m);

// Write to `path` by temporary file and rename; the manifest is closed either
// way. 0, or -1 after fail(). NULL path: only close.
int manifest_close(struct manifest **m, const char *path);

#endif
