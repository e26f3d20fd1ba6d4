// doctor.h - prints findings about this machine or several hosts, one line
// each.

#ifndef LOCKSTEP_DOCTOR_H
#define LOCKSTEP_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum finding {
    FINDING_OK,
    FINDING_WITHOUT, // something optional is missing
    FINDING_LACK,    // something that a CPU run or its report needs is missing
};

struct doctor {
    int counts[3]; // by enum finding
};

// Prints a line with what was checked and what was found. Unless all is well, a
// second line says how to mend it (NULL: no such line). Counts the finding.
void doctor_say(struct doctor *d, enum finding f, const char *what,
                const char *found, const char *remedy);

// Checks GPUs, their driver, the CUDA toolkit, NCCL and cuDNN. The libraries
// are loaded while running, never linked.
void doctor_gpu(struct doctor *d);

// Checks whether network namespaces and tc can emulate hosts and links.
void doctor_network(struct doctor *d);

// For `lockstep doctor hosts=FILE ..`. doctor_asks_hosts: whether the words ask
// for this form. doctor_hosts_explain: prints its keys, for --help.
// doctor_hosts: checks all hosts of the file; returns 0, or -1 after fail() if
// the words or the file are wrong.
bool doctor_asks_hosts(int nwords, char **words);
void doctor_hosts_explain(FILE *f);
int doctor_hosts(struct doctor *d, int nwords, char **words);

// Runs a shell command. `out` gets the first line that it prints, without the
// newline; "" if it fails or prints nothing.
void doctor_ask(const char *command, char *out, size_t size);

#endif
