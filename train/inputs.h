// inputs.h - what a run reads: its data, and hashes of its files.
//
// A reader who finds other hashes than now knows that the run of before would
// not be repeated by the same settings.

#pragma once

struct data_config;
struct manifest;
struct run;

// Fills what the settings alone say of the data. Batches, ranks and the length
// of a sequence are 1.
void inputs_data(const struct run *r, struct data_config *out);

// Adds "inputs": {"init_file": hash, "lab_file": hash}, 16 hexadecimal digits
// each, of the files that init= and lab= name. Reads them. 0, or -1 after
// fail().
int inputs_write(struct manifest *m, const struct run *r);

// Adds "data": {"hash_xxh3": hash} as run.json has it. Reads and tokenises all
// of the data. 0, or -1 after fail().
int inputs_write_data(struct manifest *m, const struct run *r);
