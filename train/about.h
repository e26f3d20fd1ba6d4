// about.h - writes what the readers of a run have to know about it.
//
// So that they need no table of keys, backends or laws of their own, run.json
// has these objects, and `lockstep plan` prints them before a run:
//
//     asked      the settings that repeat the run
//     effective  all settings, after defaults and derivation
//     way        servers    processes that are servers
//                beside     each worker has a server on its own host
//                apart      workers' parameters differ between two exchanges
//                every      steps from one exchange to the next
//                promise    "", or the consistency for which no losses are
//                           promised, as "ssp:2"
//                parts, stages, slices, pieces    into how many the model and
//                its sequences are cut
//                ignores    the keys of backends that this one does not read
//     training   key: text, for all that the losses depend on, but the data
//     task       the same for the model alone
//     law        bytes_tx, by_verb, stage_tx, slice_tx, piece_tx, exchange_s,
//                bubble_share: struct run_law; null: there is no law
//     mistakes   the settings that are wrong on purpose
//     format     the version of these objects
//
// Two runs trained the same thing if their data and their objects `training`
// are equal. The backend does not matter.

#pragma once

struct data_config;
struct manifest;
struct model_config;
struct run;

struct about {
    const struct run *asked;          // as the user gave it
    const struct run *effective;      // after defaults and derivation
    const struct model_config *model; // whole; vocab 0: not known yet
    int world;                        // workers
    const char *transport;            // in use; NULL: not known yet
    const char *joins;                // the same between slices
};

void about_write(struct manifest *m, const struct about *a);

// ---- inputs: the data, and hashes of files
//
// A reader who finds other hashes than now knows that the run of before would
// not be repeated by the same settings.

// Fills what the settings alone say of the data. Batches, ranks and the length
// of a sequence are 1.
void about_data_config(const struct run *r, struct data_config *out);

// Adds "inputs": {"init_file": hash, "lab_file": hash}, 16 hexadecimal digits
// each, of the files that init= and lab= name. Reads them. 0, or -1 after
// fail().
int about_inputs(struct manifest *m, const struct run *r);

// Adds "data": {"hash_xxh3": hash} as run.json has it. Reads and tokenises all
// of the data. 0, or -1 after fail().
int about_data(struct manifest *m, const struct run *r);
