// secret.c - reads a secret from the environment or the user's folder, and
// derives keys from it with libsodium.

#include "base/secret.h"

#include "base/base.h"
#include "base/file.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// LEAST, MOST: how many characters a secret may have. One that the launcher
// makes has 2 * BYTES.
enum { LEAST = 32, MOST = 4096, BYTES = 32, TEXT = 2 * BYTES + 1 };

static const char in_words[] = "LOCKSTEP_SECRET",
                  in_file[] = "LOCKSTEP_SECRET_FILE";

static void new_text(char text[TEXT])
{
    uint8_t random[BYTES];
    secret_random(random, sizeof random);
    sodium_bin2hex(text, TEXT, random, sizeof random);
    sodium_memzero(random, sizeof random);
}

int secret_make(void)
{
    char text[TEXT];
    if (getenv(in_words) || getenv(in_file))
        return 0;
    new_text(text);
    int rc = setenv(in_words, text, 1)
                 ? fail("%s: %s", in_words, strerror(errno))
                 : 0;
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

// `what` names the file in messages. With `own` the file must belong to this
// user, so that no other user can have put it there.
static int read_file(const char *what, const char *path, bool own,
                     uint8_t key[SECRET_KEY])
{
    struct stat st;
    if (own ? lstat(path, &st) : stat(path, &st))
        return fail("%s%s: %s", what, path, strerror(errno));
    if (own && !S_ISREG(st.st_mode))
        return fail("%s%s: not a file; try: remove it", what, path);
    if (own && st.st_uid != geteuid())
        return fail("%s%s: belongs to user %u; try: remove it", what, path,
                    st.st_uid);
    if (st.st_mode & 077)
        return fail("%s%s: others may read it; try: chmod 600 %s", what, path,
                    path);
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
    return path && *path ? read_file("LOCKSTEP_SECRET_FILE=", path, false, key)
                         : 0;
}

// The folder in which programs keep a user's state (XDG Base Directory
// Specification).
static int user_folder(char out[PATH_MAX])
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    struct passwd entry, *found = NULL;
    struct stat st;
    char text[4096];
    if (state && *state == '/')
        return text_into(out, PATH_MAX, "%s/lockstep", state);
    // HOME may be another user's, as after `sudo -E`
    if (!home || *home != '/' || (!stat(home, &st) && st.st_uid != geteuid())) {
        getpwuid_r(geteuid(), &entry, text, sizeof text, &found);
        home = found ? found->pw_dir : NULL;
    }
    return home ? text_into(out, PATH_MAX, "%s/.local/state/lockstep", home)
                : fail("user %u has no home", geteuid());
}

// Makes the file of the user's secret, whole or not at all. Another process of
// this user may make it at the same moment.
static int make_file(const char *folder, const char *path)
{
    char temporary[PATH_MAX], text[TEXT];
    struct stat st;
    int made = file_make_folder(folder);
    if (made > 0 && chmod(folder, 0700))
        return fail("%s: %s", folder, strerror(errno));
    if (made < 0 || text_into(temporary, sizeof temporary, "%s.XXXXXX", path))
        return -1;
    int fd = mkstemp(temporary), rc = 0; // only its owner may read it
    if (fd < 0)
        return fail("%s: %s", temporary, strerror(errno));
    new_text(text);
    if (fstat(fd, &st) || st.st_uid != geteuid() || st.st_mode & 077)
        rc = fail("%s: its file system keeps no owner or mode", folder);
    else if (write(fd, text, TEXT - 1) != TEXT - 1 || fsync(fd) ||
             (link(temporary, path) && errno != EEXIST))
        rc = fail("%s: %s", path, strerror(errno));
    sodium_memzero(text, sizeof text);
    unlink(temporary);
    close(fd);
    return rc;
}

int secret_of_user(uint8_t key[SECRET_KEY])
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    char folder[PATH_MAX], path[PATH_MAX];
    CHECK(sodium_init() >= 0);
    if (!user_folder(folder) &&
        !text_into(path, sizeof path, "%s/secret", folder) &&
        (!access(path, F_OK) || !make_file(folder, path)))
        return read_file("", path, true, key);
    if (!atomic_flag_test_and_set(&said))
        log_line("no secret, so that every user of this host may join the job: "
                 "%s; try: LOCKSTEP_SECRET_FILE=FILE",
                 fail_message());
    return 0;
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
