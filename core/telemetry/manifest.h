// manifest.h - writes run.json (the settings of a run) and summary.json (its
// results).

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct manifest; // a JSON object being filled

struct manifest *manifest_open(void); // NULL after fail()

// Add a value to the innermost open object. A number that is not finite is
// null. If memory is missing here or below, close and print fail.
void manifest_text(struct manifest *m, const char *key, const char *value);
void manifest_number(struct manifest *m, const char *key, double value);
void manifest_bool(struct manifest *m, const char *key, bool value);

// Adds a hash as a text of 16 hexadecimal digits.
void manifest_hash(struct manifest *m, const char *key, uint64_t hash);

// Begin and end an object inside the innermost open one.
void manifest_begin(struct manifest *m, const char *key);
void manifest_end(struct manifest *m);

// Adds an array of n texts.
void manifest_texts(struct manifest *m, const char *key, int n,
                    const char *const *texts);

// Adds two objects: the machine (host, kernel, processor, cores, memory), and
// the environment variables that influence speed.
void manifest_machine(struct manifest *m);

// Writes the root object to a temporary file and renames that to `path`; with a
// NULL path it writes nothing. Closes the manifest in any case. 0, or -1 after
// fail().
int manifest_close(struct manifest **m, const char *path);

// Prints the root object as one line, and closes the manifest. 0, or -1 after
// fail().
int manifest_print(struct manifest **m, FILE *f);
