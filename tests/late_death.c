// late_death.c - kills worker 1 once, when it has ended well and only leaves its
// process. LATE_DEATH names a file that says that it was done. Tests preload it.

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Whether a word of this process's command line is `word`.
static int has_word(const char *word)
{
    char words[8192];
    FILE *f = fopen("/proc/self/cmdline", "re");
    size_t n = f ? fread(words, 1, sizeof words - 1, f) : 0;
    if (f)
        fclose(f);
    words[n] = '\0';
    for (size_t at = 0; at < n; at += strlen(words + at) + 1)
        if (strcmp(words + at, word) == 0)
            return 1;
    return 0;
}

__attribute__((destructor)) static void die(void)
{
    const char *done = getenv("LATE_DEATH");
    if (!done || !has_word("rank=1"))
        return;
    int fd = open(done, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    close(fd);
    usleep(300000); // the others leave before that
    raise(SIGKILL);
}
