// secret.h - the secret of a job: a process that knows it belongs to the job.
//
// The launcher makes a secret and passes it on in the environment. A user who
// starts workers by hand gives the same secret to all of them: in
// LOCKSTEP_SECRET, or in LOCKSTEP_SECRET_FILE, the name of a file that only its
// owner can read. A job started by hand without either uses the secret of its
// user. A secret is never an argument of a command, since every user of the
// host can see those. Each purpose has its own key, derived from the secret, so
// that no key reveals another.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SECRET_KEY = 32 };

// Puts a new secret into the environment, unless there is one. 0, or -1 after
// fail().
int secret_make(void);

// The name of the environment variable that holds the secret or names its file.
const char *secret_name(void);

// Writes the key of this job's secret. Returns 1; 0 if the job has no secret;
// -1 after fail().
int secret_read(uint8_t key[SECRET_KEY]);

// The same with the secret of this process's user, for a job that has none and
// stays within this host. Its file is $XDG_STATE_HOME/lockstep/secret, by
// default below ~/.local/state. The first call makes it. Returns 1; 0, and a
// line in the log, if it cannot be made; -1 after fail() if it is there, but
// others may have read or made it.
int secret_of_user(uint8_t key[SECRET_KEY]);

// Fills `out` with random bytes.
void secret_random(void *out, size_t bytes);

// Derives a key for `purpose` and the n bytes at `more` (keyed BLAKE2b).
void secret_derive(const uint8_t key[SECRET_KEY], const char *purpose,
                   const void *more, size_t n, uint8_t out[SECRET_KEY]);

// secret_prove() computes the authentication code of a text of n bytes, which
// needs the key (HMAC-SHA-512-256). secret_proves() says whether `proof` is
// that code, in a time that does not depend on where the two differ.
enum { SECRET_PROOF = 32 };
void secret_prove(const uint8_t key[SECRET_KEY], const void *text, size_t n,
                  uint8_t proof[SECRET_PROOF]);
bool secret_proves(const uint8_t key[SECRET_KEY], const void *text, size_t n,
                   const uint8_t proof[SECRET_PROOF]);

// Whether two secrets of `bytes` bytes are equal, in a time that does not
// depend on where they differ.
bool secret_same(const void *a, const void *b, size_t bytes);

// The public key of a secret key of Curve25519.
void secret_public(const uint8_t secret[SECRET_KEY], uint8_t out[SECRET_KEY]);
