// secret.h - the secret of a job: who knows it belongs to the job.
//
// The launcher makes one and passes it on in the environment; whoever starts
// workers by hand gives all of them the same, as LOCKSTEP_SECRET, or as
// LOCKSTEP_SECRET_FILE, a file that its owner alone can read. A job by hand
// that has neither takes its user's. It is never a word of a command, which
// every user of the host can see. Keys for each purpose are derived from it, so
// that none of them tells another.

#ifndef BASE_SECRET_H
#define BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SECRET_KEY = 32 };

// Put a new secret into the environment, unless there is one. 0, or -1 after
// fail().
int secret_make(void);

// The variable that holds it, or names its file.
const char *secret_name(void);

// The secret of this process's job: 1; 0: it has none; -1 after fail().
int secret_read(uint8_t key[SECRET_KEY]);

// The secret of this process's user, for a job that has none and stays within
// this host: 1. It lies in $XDG_STATE_HOME/lockstep/secret, below
// ~/.local/state by default, and is made by whoever first asks for it. 0, and a
// line in the log: it cannot be made. -1 after fail(): it is there, but others
// may have read or made it.
int secret_of_user(uint8_t key[SECRET_KEY]);

// Fresh random bytes.
void secret_random(void *out, size_t bytes);

// A key for `purpose`, of which n bytes say more (keyed BLAKE2b).
void secret_derive(const uint8_t key[SECRET_KEY], const char *purpose,
                   const void *more, size_t n, uint8_t out[SECRET_KEY]);

// What only somebody with the key can say of a text (HMAC-SHA-512-256), and
// whether somebody has: in a time that does not depend on how wrong it is.
enum { SECRET_PROOF = 32 };
void secret_prove(const uint8_t key[SECRET_KEY], const void *text, size_t n,
                  uint8_t proof[SECRET_PROOF]);
bool secret_proves(const uint8_t key[SECRET_KEY], const void *text, size_t n,
                   const uint8_t proof[SECRET_PROOF]);

// Whether two secrets are the same, in such a time.
bool secret_same(const void *a, const void *b, size_t bytes);

// The public key of a secret one of Curve25519.
void secret_public(const uint8_t secret[SECRET_KEY], uint8_t out[SECRET_KEY]);

#endif
