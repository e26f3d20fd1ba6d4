// test_progress.c - the line that a terminal shows from the reports of all
// workers.

#include "launch/progress.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/test.h"

// Gives `lines` to progress_take(), which writes to `file` instead of the
// terminal.
static void take_progress(int file, const char *const *lines, int n)
{
    struct progress *p;
    int was = dup(2);
    assert_true(was >= 0 && dup2(file, 2) == 2);
    int rc = progress_open(&p);
    for (int i = 0; !rc && i < n; i++)
        progress_take(p, lines[i]);
    progress_close(&p);
    dup2(was, 2);
    close(was);
    assert_int_equal(rc, 0);
}

// Each report of worker 0 with line=1 prints a line. The line shows the rate of
// all workers, and no validation loss of an earlier step.
static void progress_is_shown(void **state)
{
    (void)state;
    char path[] = "/tmp/lockstep_progress_XXXXXX", text[1024];
    static const char *const lines[] = {
        "rank=0 world=3 step=1 steps=9 loss=3 val_loss=nan tokens_per_s=50 "
        "eta_s=70 line=0",
        "rank=1 world=3 step=2 steps=9 loss=7 val_loss=nan tokens_per_s=30 "
        "eta_s=70 line=1",
        "rank=0 world=3 step=2 steps=9 loss=2.5 val_loss=1.5 tokens_per_s=50 "
        "eta_s=61 line=1", // no rank 2 yet: it counts as the mean of the others
        "rank=2 world=3 step=4 steps=9 loss=7 val_loss=nan tokens_per_s=10 "
        "eta_s=70 line=1",
        "rank=0 world=3 step=4 steps=9 loss=2 val_loss=nan tokens_per_s=60 "
        "eta_s=7265 line=1",
    };
    int shown = mkstemp(path);
    assert_true(shown >= 0);
    take_progress(shown, lines, 5);
    ssize_t n = pread(shown, text, sizeof text - 1, 0);
    assert_true(n >= 0);
    text[n] = '\0';
    close(shown);
    unlink(path);
    assert_string_equal(
        text, "step 2/9  loss 2.5000  val 1.5000  120 tokens/s  1:01 left\n"
              "step 4/9  loss 2.0000  100 tokens/s  2:01:05 left\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(progress_is_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
