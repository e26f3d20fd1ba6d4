// doctor.h - findings about this machine, one line each.

#ifndef LOCKSTEP_DOCTOR_H
#define LOCKSTEP_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum finding {
    FINDING_OK,
    FINDING_WITHOUT, // something optional is not there
    FINDING_LACK,    // something that a CPU run or its report needs
};

struct doctor {
    int counts[3]; // by enum finding
};

// Print one line: what was looked at, what was found and, of a lack, what to do
// about it (NULL: nothing to be done).
void doctor_say(struct doctor *d, enum finding f, const char *what,
                const char *found, const char *remedy);

// GPUs, their driver, the CUDA toolkit and NCCL; loaded, never linked.
void doctor_gpu(struct doctor *d);

// Whether namespaces and tc may shape links between emulated hosts.
void doctor_network(struct doctor *d);

// Other hosts: a hostfile's, with the words of `lockstep doctor hosts=FILE ..`.
// 0, or -1 after fail() where nothing can be said of them.
bool doctor_asks_hosts(int nwords, char **words);
void doctor_hosts_explain(FILE *f);
int doctor_hosts(struct doctor *d, int nwords, char **words);

// The first line that a command prints, "" if it fails or prints nothing.
void doctor_ask(const char *command, char *out, size_t size);

#endif
