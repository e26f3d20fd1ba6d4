// hosts.h - reads the hosts of hosts=FILE, and builds the command that starts a
// program on one of them.
//
// The file is an mpirun hostfile. It has a line "NAME [slots=N]" for each host;
// # begins a comment. Ranks fill the slots of the first host, then of the next,
// as mpirun places them. If there are more ranks than slots, they begin again
// at the first host.
//
// ssh, or the command in LOCKSTEP_RSH, starts programs on other hosts, from the
// same path and in the same folder as on this host. `lockstep watchdog` starts
// each program there and ends it when the connection ends.

#pragma once

#include "launch/argv.h"

#include <netinet/in.h>
#include <stdbool.h>

enum { HOSTS_MOST = 256, HOSTS_NAME = 256 };

struct host {
    char name[HOSTS_NAME];
    char address[INET_ADDRSTRLEN]; // where other hosts reach it; "": not known
    int slots;
};

struct hosts {
    int n;
    struct host at[HOSTS_MOST];
};

// A rank's host, the rank's index among the ranks on it, and their number.
struct slot {
    const struct host *host;
    int index, count;
};

// Reads the file and looks up the addresses of its hosts. 0, or -1 after
// fail().
int hosts_read(struct hosts *h, const char *path);

// The parts of hosts_read(), for a caller that goes on without some hosts. They
// read the file, look up the address of one host, and check that no host has a
// loopback address, which the other hosts cannot reach. Each returns 0, or -1
// after fail().
int hosts_parse(struct hosts *h, const char *path);
int hosts_look_up(struct host *h);
int hosts_check_loopback(const struct hosts *h);

// Checks that the file can be read; its content is checked when the job starts.
// 0, or -1 after fail().
int hosts_check(const char *path);

// Inside a PBS job of several hosts, sets hosts= to that job's hosts unless the
// user set it, and says so. 0, or -1 after fail().
int hosts_of_job(struct run *r);

// Returns the host of `rank` of `world`, and its place there.
struct slot hosts_slot(const struct hosts *h, int rank, int world);

// Appends to *out the command that starts `program` at that slot, under
// `lockstep watchdog`. 0, or -1 after fail().
int hosts_wrap(struct argv *out, const struct slot *slot,
               const struct argv *program);

// Appends to *out the command that starts `lockstep COMMAND` on a host, without
// a watchdog: COMMAND must end when its standard input ends. 0, or -1 after
// fail().
int hosts_reach(struct argv *out, const struct host *host, const char *command);
