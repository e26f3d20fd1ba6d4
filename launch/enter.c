// enter.c - `lockstep enter HOST command...` runs a command on an emulated
// host. mpirun uses it instead of ssh.

#include "launch/command.h"

#include "base/base.h"
#include "netns/netns.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int enter(int nwords, char **words)
{
    char line[1 << 15] = "";
    if (nwords < 2)
        return fail("enter: HOST and a command are missing");
    if (netns_enter(words[0]))
        return fail("enter %s: %s; try: the name of a host that net=RATE made",
                    words[0], strerror(errno));
    for (int i = 1; i < nwords; i++) { // as ssh does: one line for a shell
        size_t at = strlen(line);
        if (text_into(line + at, sizeof line - at, "%s%s", i > 1 ? " " : "",
                      words[i]))
            return -1;
    }
    execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    return fail("/bin/sh: %s", strerror(errno));
}

const struct command command_enter = {.name = "enter", .run = enter};
