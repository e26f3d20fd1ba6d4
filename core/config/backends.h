// backends.h - the ways of agreeing, as plain data.

#ifndef CONFIG_BACKENDS_H
#define CONFIG_BACKENDS_H

#include "config/config.h"

struct backend {
    const char *name;        // sync=
    const char *const *keys; // of the group [backend], NULL-terminated
    unsigned transports;     // of bits 1 << enum transport_kind, beside auto
    bool servers;            // it has parameter servers
    bool one_server;         // and never more than one
};

// The row of a name. NULL after fail() that names them all.
const struct backend *backend_row(const char *name);

// Whether it reads a key of the group [backend].
bool backend_reads(const struct backend *b, const char *key);

// Whether it can use the value that such a key has in *s.
bool backend_takes(const struct backend *b, const char *key,
                   const struct sync_settings *s);

// -1 after fail() where the settings of servers do not go together.
int settings_check(const struct sync_settings *s);

// -1 after fail() that names a key of [backend] which somebody asked for and
// which `b` does not read, or a value that it cannot take.
int backend_check(const struct backend *b, const struct run *r);

#endif
