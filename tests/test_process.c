// test_process.c - programs that are started: their streams, their status, and
// their deadline.

#include "base/process.h"

#include "base/base.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void test_status(void **state)
{
    (void)state;
    char none[] = "/none/such", *const words[] = {none, NULL};
    struct process p = {.words = words, .err = PROCESS_NULL};
    assert_int_equal(process_run(&p, 30), PROCESS_NO_PROGRAM);
    assert_int_equal(process_shell(&(struct process){0}, "exit 0", 30), 0);
    assert_int_equal(process_shell(&(struct process){0}, "exit 3", 30), 3);
    assert_int_equal(process_shell(&(struct process){0}, "kill -TERM $$", 30),
                     128 + SIGTERM);
}

static void test_streams(void **state)
{
    (void)state;
    char text[64] = "";
    char sh[] = "sh", c[] = "-c", does[] = "read x; echo out $x; echo err >&2";
    char *const words[] = {sh, c, does, NULL};
    struct process p = {.words = words,
                        .in = PROCESS_PIPE,
                        .out = PROCESS_PIPE,
                        .err = PROCESS_PIPE};
    assert_int_equal(process_start(&p), 0);
    assert_int_equal(write(p.ends[0], "seven\n", 6), 6);
    assert_int_equal(process_wait(&p, 30), 0);
    assert_true(read(p.ends[1], text, sizeof text - 1) > 0);
    assert_string_equal(text, "out seven\n");
    assert_int_equal(read(p.ends[1], text, 1), 0); // its end is closed
    assert_int_equal(read(p.ends[2], text, sizeof text), 4);
    assert_memory_equal(text, "err\n", 4);
    for (int s = 0; s < 3; s++)
        close(p.ends[s]);
    assert_int_equal(process_shell(&(struct process){.in = PROCESS_NULL},
                                   "! read x", 30),
                     0);
}

// The shell's child would keep the time, if only the shell were killed.
static void test_deadline(void **state)
{
    (void)state;
    struct process p = {.group = true, .out = PROCESS_PIPE};
    char byte;
    uint64_t began = now_ns();
    assert_int_equal(process_shell(&p, "sleep 50; true", 0.2), -1);
    assert_string_equal(fail_message(), "sh: not done after 0.2 s");
    assert_int_equal(read(p.ends[1], &byte, 1), 0); // all of them have ended
    assert_true(now_ns() - began < UINT64_C(20000000000));
    close(p.ends[1]);
}

static int leave(void *arg)
{
    return chdir(arg) ? 9 : 0;
}

static void test_prepare(void **state)
{
    (void)state;
    struct process p = {.prepare = leave, .arg = (char[]){"/"}};
    assert_int_equal(process_shell(&p, "test $(pwd) = /", 30), 0);
    p.arg = (char[]){"/none/such"};
    assert_int_equal(process_shell(&p, "true", 30), 9);
}

static void test_ask(void **state)
{
    (void)state;
    char line[8];
    assert_int_equal(process_ask("echo a; echo b", 30, line, sizeof line), 0);
    assert_string_equal(line, "a");
    assert_int_equal(process_ask("echo 123456789; exit 2", 30, line, 8), 2);
    assert_string_equal(line, "1234567");
    assert_int_equal(process_ask("true", 30, line, sizeof line), 0);
    assert_string_equal(line, "");
    // More than a pipe would hold.
    assert_int_equal(process_ask("yes | head -c 300000", 30, line, 8), 0);
    assert_string_equal(line, "y");
    assert_int_equal(process_ask("sleep 50", 0.2, line, sizeof line), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status),   cmocka_unit_test(test_streams),
        cmocka_unit_test(test_deadline), cmocka_unit_test(test_prepare),
        cmocka_unit_test(test_ask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
