// hosts.h - the hosts of hosts=FILE, and how a program is started on one.
//
// The file is an mpirun hostfile: a line a host, "NAME [slots=N]", # begins a
// comment. Ranks fill the slots of the first host, then of the next, as mpirun
// places them, and begin again where there are more ranks than slots.
//
// Programs start over there through ssh, or the words of LOCKSTEP_RSH in its
// place, in a folder of the same path, from executables of the same path. They
// stand under `lockstep watchdog`, which ends them when the connection ends.

#ifndef LOCKSTEP_HOSTS_H
#define LOCKSTEP_HOSTS_H

#include "lockstep/argv.h"

#include <netinet/in.h>
#include <stdbool.h>

enum { HOSTS_MOST = 256, HOSTS_NAME = 256 };

struct host {
    char name[HOSTS_NAME];
    char address[INET_ADDRSTRLEN]; // that the other hosts reach it at; or ""
    int slots;
};

struct hosts {
    int n;
    struct host at[HOSTS_MOST];
};

// A rank's host, and its place among the ranks there.
struct slot {
    const struct host *host;
    int index, count;
};

// Read the file and look up its names. 0, or -1 after fail().
int hosts_read(struct hosts *h, const char *path);

// The steps of it, for who goes on without a host: the file; the address of one
// host; whether some are on loopback, where the others cannot reach them.
int hosts_parse(struct hosts *h, const char *path);
int hosts_look_up(struct host *h);
int hosts_check_loopback(const struct hosts *h);

// Whether the file can be read: 0, or -1 after fail(). What stands in it is
// mpirun's to judge, where mpirun starts the job.
int hosts_check(const char *path);

// Inside a PBS job of several hosts, and without hosts=: that job's. Says so.
// 0, or -1 after fail().
int hosts_of_job(struct run *r);

// Where `rank` of `world` sits.
struct slot hosts_slot(const struct hosts *h, int rank, int world);

// What starts `program` (argv) at that slot, as words for exec. 0, or -1 after
// fail().
int hosts_wrap(struct argv *out, const struct slot *slot,
               const struct argv *program);

// The same for a command of `lockstep` that ends with its own standard input:
// nothing tends it.
int hosts_reach(struct argv *out, const struct host *host, const char *command);

#endif
