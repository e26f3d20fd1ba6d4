// secret.c - out of the environment, and what libsodium makes of it.

#include "base/secret.h"

#include "base/base.h"
#include "base/file.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// So many characters at least; the launcher's has 64.
enum { LEAST = 32, MOST = 4096, BYTES = 32 };

static const char in_words[] = "LOCKSTEP_SECRET",
                  in_file[] = "LOCKSTEP_SECRET_FILE";

int secret_make(void)
{
    uint8_t random[BYTES];
    char text[2 * BYTES + 1];
    if (getenv(in_words) || getenv(in_file))
        return 0;
    secret_random(random, sizeof random);
    sodium_bin2hex(text, sizeof text, random, sizeof random);
    int rc = setenv(in_words, text, 1)
                 ? fail("%s: %s", in_words, strerror(errno))
                 : 0;
    sodium_memzero(random, sizeof random);
    sodium_memzero(text, sizeof text);
    return rc;
}

const char *secret_name(void)
{
    return getenv(in_words) ? in_words : in_file;
}

static int key_of(const char *from, const char *text, uint8_t key[SECRET_KEY])
{
    size_t n = strcspn(text, "\r\n");
    if (n < LEAST)
        return fail("%s: %zu characters, a secret has %d or more; try: "
                    "openssl rand -hex 32",
                    from, n, LEAST);
    CHECK(!crypto_generichash(key, SECRET_KEY, (const uint8_t *)text, n, NULL,
                              0));
    return 1;
}

static int read_file(const char *path, uint8_t key[SECRET_KEY])
{
    struct stat st;
    if (stat(path, &st))
        return fail("%s=%s: %s", in_file, path, strerror(errno));
    if (st.st_mode & 077)
        return fail("%s=%s: others may read it; try: chmod 600 %s", in_file,
                    path, path);
    char *text = file_read(path, MOST);
    int rc = text ? key_of(path, text, key) : -1;
    if (text)
        sodium_memzero(text, strlen(text));
    mem_free(text);
    return rc;
}

int secret_read(uint8_t key[SECRET_KEY])
{
    const char *text = getenv(in_words), *path = getenv(in_file);
    CHECK(sodium_init() >= 0);
    if (text && *text)
        return key_of(in_words, text, key);
    return path && *path ? read_file(path, key) : 0;
}

void secret_random(void *out, size_t bytes)
{
    CHECK(sodium_init() >= 0);
    randombytes_buf(out, bytes);
}

void secret_derive(const uint8_t key[SECRET_KEY], const char *purpose,
                   const void *more, size_t n, uint8_t out[SECRET_KEY])
{
    crypto_generichash_state s;
    CHECK(sodium_init() >= 0);
    crypto_generichash_init(&s, key, SECRET_KEY, SECRET_KEY);
    crypto_generichash_update(&s, (const uint8_t *)purpose,
                              strlen(purpose) + 1);
    if (n)
        crypto_generichash_update(&s, more, n);
    crypto_generichash_final(&s, out, SECRET_KEY);
}

void secret_prove(const uint8_t key[SECRET_KEY], const void *text, size_t n,
                  uint8_t proof[SECRET_PROOF])
{
    crypto_auth(proof, text, n, key);
}

bool secret_proves(const uint8_t key[SECRET_KEY], const void *text, size_t n,
                   const uint8_t proof[SECRET_PROOF])
{
    return crypto_auth_verify(proof, text, n, key) == 0;
}

bool secret_same(const void *a, const void *b, size_t bytes)
{
    return sodium_memcmp(a, b, bytes) == 0;
}

void secret_public(const uint8_t secret[SECRET_KEY], uint8_t out[SECRET_KEY])
{
    CHECK(!crypto_scalarmult_base(out, secret));
}
