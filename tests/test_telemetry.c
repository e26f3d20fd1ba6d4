// test_telemetry.c - writes, resumes, merges and sums up steps.csv.

#include "telemetry/cell.h"
#include "telemetry/steps.h"

#include "base/base.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test.h"

static char dir[64];

static int make_dir(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/lockstep-telemetry-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", dir);
    return system(command);
}

// Writes steps `from` + 1 to `to`. The loss is 10 - step + rank. Every second
// step has a validation loss.
static void write_rows_again(int rank, int world, int from, int to,
                             int restarts)
{
    struct steps *s;
    double time_s;
    assert_int_equal(steps_open(&s, dir, "ring", rank, world, from, false,
                                restarts, &time_s),
                     0);
    for (int step = from + 1; step <= to; step++) {
        time_s += 0.5;
        struct step_row row = {
            .step = step,
            .tokens = (uint64_t)step * 1000,
            .time_s = time_s,
            .loss = 10 - step + rank,
            .lr = 1e-3,
            .grad_norm = INFINITY,
            .loss_scale = 65536,
            .skipped = step == 2,
            .step_us = 500000,
            .bytes_out = 100,
            .bytes_in = 50,
            .val_loss = step % 2 ? NAN : 3 + fabs(step - 4.0) + rank,
        };
        assert_int_equal(steps_write(s, &row), 0);
    }
    assert_int_equal(steps_close(&s), 0);
}

static void write_rows(int rank, int world, int from, int to)
{
    write_rows_again(rank, world, from, to, 0);
}

static char *read_all(const char *name)
{
    static char text[1 << 16];
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "r");
    if (!f)
        return NULL;
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

static void merge_and_sum(struct steps_summary *sum)
{
    assert_int_equal(steps_merge(dir, 2), 0);
    assert_int_equal(steps_summarise(dir, 1, sum), 0);
}

static int lines(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void one_rank(void **state)
{
    (void)state;
    struct steps_summary sum;
    write_rows(0, 1, 0, 6);
    assert_int_equal(steps_summarise(dir, 1, &sum), 0);
    assert_int_equal(sum.steps, 6);
    assert_int_equal(sum.ranks, 1);
    assert_int_equal(sum.skipped, 1);
    assert_true(sum.final_loss == 4 && sum.best_loss == 4);
    assert_true(sum.final_val_loss == 5 && sum.best_val_loss == 3);
    assert_int_equal(sum.best_val_step, 4);
    assert_true(sum.seconds == 3 && sum.tokens == 6000);
    assert_true(sum.tokens_per_s == 2000 && sum.median_step_s == 0.5);
    assert_true(sum.bytes_out == 600 && sum.bytes_in == 300);
}

// Each worker has its own speed. Time outside of steps does not count.
static void paces_add_up(void **state)
{
    (void)state;
    struct steps_summary sum;
    struct steps *s;
    double time_s;
    for (int rank = 0; rank < 2; rank++) {
        assert_int_equal(steps_open(&s, dir, "sps", rank, 2, 0, false, 0,
                                    &time_s),
                         0);
        for (int step = 1; step <= 5; step++) {
            struct step_row row = {.step = step,
                                   .tokens = (uint64_t)step * 1000,
                                   .time_s = 100 * step, // with evaluation
                                   .step_us = rank ? 2000000 : 500000,
                                   .val_loss = NAN};
            if (step == 3)
                row.step_us = 90000000;
            assert_int_equal(steps_write(s, &row), 0);
        }
        assert_int_equal(steps_close(&s), 0);
    }
    merge_and_sum(&sum);
    assert_true(sum.seconds == 500);
    assert_true(fabs(sum.tokens_per_s - (500 / 0.5 + 500 / 2.)) < 1e-9);
    assert_true(fabs(sum.median_step_s - 0.8) < 1e-9);
}

// Worker 1 dies before it has made its file, and joins after step 4.
static void steps_before_the_first_file_are_lost(void **state)
{
    (void)state;
    struct steps_summary sum;
    struct steps *s;
    double time_s;
    write_rows(0, 2, 0, 5);
    assert_int_equal(steps_open(&s, dir, "sps", 1, 2, 4, true, 1, &time_s), 0);
    struct step_row row = {.step = 5, .step_us = 500000, .val_loss = NAN};
    assert_int_equal(steps_write(s, &row), 0);
    assert_int_equal(steps_close(&s), 0);
    merge_and_sum(&sum);
    assert_int_equal(sum.lost, 4);
}

// Worker 1 dies after step 2. Before it is back, another worker dies, so all go
// on from the checkpoint of step 5: worker 1 has missed three steps. Or it was
// back for step 6 and does that again: then what it missed counts once.
static void steps_missed_before_a_restart_are_lost(void **state)
{
    (void)state;
    struct steps_summary sum;
    for (int back = 0; back < 2; back++) {
        write_rows(0, 2, 0, 6);
        write_rows(1, 2, 0, 2);
        if (back)
            write_rows_again(1, 2, 5, 6, 1);
        for (int rank = 0; rank < 2; rank++)
            write_rows_again(rank, 2, 5, 7, 2);
        merge_and_sum(&sum);
        assert_int_equal(sum.lost, 3 + back);
    }
}

// The disk is full, or a file may not become larger. No row is lost, however
// many there are.
static void a_failed_merge_keeps_the_rows(void **state)
{
    (void)state;
    struct rlimit before, none;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = (struct rlimit){.rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    for (int steps = 1; steps < 60; steps++) {
        for (int rank = 0; rank < 2; rank++)
            write_rows(rank, 2, 0, steps);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
        int rc = steps_merge(dir, 2);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(rc, -1);
        assert_non_null(read_all("steps.1.csv"));
        assert_null(read_all("steps.csv"));
    }
    char command[128]; // nor if a file cannot be read: zeros are not text
    snprintf(command, sizeof command, "truncate -s +9999 %s/steps.1.csv", dir);
    assert_int_equal(system(command), 0);
    assert_int_equal(steps_merge(dir, 2), -1);
    assert_non_null(read_all("steps.1.csv"));
    assert_null(read_all("steps.csv"));
}

// Of an even number of steps the median is the mean of the two middle ones.
static void even_steps(void **state)
{
    (void)state;
    struct steps_summary sum;
    struct steps *s;
    double time_s;
    assert_int_equal(steps_open(&s, dir, "local", 0, 1, 0, false, 0, &time_s),
                     0);
    for (int step = 1; step <= 4; step++) {
        struct step_row row = {.step = step,
                               .tokens = (uint64_t)step * 1000,
                               .step_us = 1000000 * (uint64_t)(step * step),
                               .val_loss = NAN};
        assert_int_equal(steps_write(s, &row), 0);
    }
    assert_int_equal(steps_close(&s), 0);
    assert_int_equal(steps_merge(dir, 1), 0);
    assert_int_equal(steps_summarise(dir, 1, &sum), 0);
    assert_true(fabs(sum.median_step_s - 6.5) < 1e-9);
}

// Every third step exchanges, and takes longer. The rate is that of whole
// rounds.
static void rounds_count_as_one(void **state)
{
    (void)state;
    struct steps_summary sum;
    struct steps *s;
    double time_s;
    for (int rank = 0; rank < 2; rank++) {
        assert_int_equal(steps_open(&s, dir, "outer", rank, 2, 0, false, 0,
                                    &time_s),
                         0);
        for (int step = 1; step <= 10; step++) {
            struct step_row row = {.step = step,
                                   .tokens = (uint64_t)step * 1000,
                                   .step_us = step % 3 ? 500000 : 2000000,
                                   .val_loss = NAN};
            assert_int_equal(steps_write(s, &row), 0);
        }
        assert_int_equal(steps_close(&s), 0);
    }
    merge_and_sum(&sum);
    assert_true(fabs(sum.median_step_s - 0.5) < 1e-9);
    assert_int_equal(steps_summarise(dir, 3, &sum), 0);
    assert_true(fabs(sum.median_step_s - 1) < 1e-9);
    assert_true(fabs(sum.tokens_per_s - 1000) < 1e-9);
}

static void resumed(void **state)
{
    (void)state;
    static char whole[1 << 16];
    write_rows(0, 1, 0, 6);
    strcpy(whole, read_all("steps.csv"));
    write_rows(0, 1, 0, 5); // two steps beyond a checkpoint of step 3
    write_rows(0, 1, 3, 6); // resumed from that checkpoint
    assert_string_equal(read_all("steps.csv"), whole);
}

// Each step takes 0.5 s. After a restart some steps are done a second time. The
// time of the first counts as lost, and not in `seconds`. This stays so when
// the run is resumed by hand.
static void lost_time_is_kept_apart(void **state)
{
    (void)state;
    struct steps_summary sum;
    write_rows(0, 1, 0, 5);
    write_rows_again(0, 1, 3, 8, 1); // steps 4 and 5 are lost
    write_rows_again(0, 1, 6, 7, 2); // and 7 and 8
    write_rows(0, 1, 7, 10);
    assert_int_equal(steps_summarise(dir, 1, &sum), 0);
    assert_int_equal(sum.restarts, 2);
    assert_int_equal(sum.lost, 4);
    assert_true(fabs(sum.seconds - 5) < 1e-6);
    assert_true(fabs(sum.seconds_lost - 2) < 1e-6);
    write_rows_again(0, 1, 0, 1, 3); // without a checkpoint: all of it
    assert_int_equal(steps_summarise(dir, 1, &sum), 0);
    assert_true(fabs(sum.seconds - 0.5) < 1e-6);
    assert_true(fabs(sum.seconds_lost - 7) < 1e-6);
}

// A run that goes on continues worker 0's time, which may be less than that of
// another worker's last row. No time was lost there.
static void lost_time_is_never_negative(void **state)
{
    (void)state;
    struct steps *s;
    struct steps_summary sum;
    double time_s;
    assert_int_equal(steps_open(&s, dir, "ring", 0, 1, 0, false, 0, &time_s),
                     0);
    for (int step = 1; step <= 2; step++) {
        struct step_row row = {.step = step, .time_s = 1.1 - 0.1 * step};
        assert_int_equal(steps_write(s, &row), 0);
    }
    assert_int_equal(steps_close(&s), 0);
    write_rows_again(0, 1, 1, 2, 1);
    assert_int_equal(steps_summarise(dir, 1, &sum), 0);
    assert_int_equal(sum.lost, 1);
    assert_true(sum.seconds_lost == 0);
    assert_non_null(strstr(read_all("steps.csv"), ",0.000000,"));
    assert_null(strstr(read_all("steps.csv"), "-0."));
}

static void merged(void **state)
{
    (void)state;
    struct steps_summary sum;
    write_rows(0, 3, 0, 4);
    write_rows(1, 3, 0, 4);
    write_rows(2, 3, 0, 2); // died
    assert_int_equal(steps_merge(dir, 3), 0);
    char *text = read_all("steps.csv");
    assert_int_equal(lines(text), 1 + 3 + 3 + 2 + 2);
    assert_null(read_all("steps.1.csv"));
    assert_int_equal(steps_summarise(dir, 1, &sum), 0);
    assert_int_equal(sum.ranks, 3);
    assert_true(sum.final_loss == 6.5);
    assert_true(sum.best_loss == 6.5);
    assert_true(sum.final_val_loss == 3.5);
    assert_int_equal(steps_merge(dir, 3), 0); // a second merge loses nothing
    assert_int_equal(lines(read_all("steps.csv")), 11);
}

// A worker that comes back after the merge takes its rows along. The rows of
// the others stay.
static void merged_again(void **state)
{
    (void)state;
    static char whole[1 << 16];
    write_rows(0, 3, 0, 4);
    write_rows(1, 3, 0, 4);
    write_rows(2, 3, 0, 4);
    assert_int_equal(steps_merge(dir, 3), 0);
    strcpy(whole, read_all("steps.csv"));
    write_rows(1, 3, 4, 4);
    assert_non_null(read_all("steps.1.csv"));
    assert_int_equal(steps_merge(dir, 3), 0);
    assert_string_equal(read_all("steps.csv"), whole);
    assert_null(read_all("steps.1.csv"));
}

static void resumed_by_another_world(void **state)
{
    (void)state;
    write_rows(0, 2, 0, 4);
    write_rows(1, 2, 0, 4);
    assert_int_equal(steps_merge(dir, 2), 0);
    write_rows(0, 3, 3, 5);
    write_rows(1, 3, 3, 5);
    write_rows(2, 3, 3, 5); // new: has no earlier rows
    assert_int_equal(steps_merge(dir, 3), 0);
    assert_int_equal(lines(read_all("steps.csv")), 1 + 5 + 5 + 2);
    write_rows(0, 1, 4, 5); // one worker continues alone
    assert_int_equal(lines(read_all("steps.csv")), 1 + 5);
}

static void unwritable(void **state)
{
    (void)state;
    struct steps *s;
    double t;
    assert_int_equal(steps_open(&s, "/dev/null/dir", "x", 0, 1, 0, false, 0,
                                &t),
                     -1);
    assert_non_null(strstr(fail_message(), "/dev/null/dir"));
}

// Names of folders with all that a CSV file treats in a special way.
static void rows_of_any_folder_are_read(void **state)
{
    (void)state;
    static const char *const names[] = {
        "a,b", "pp2,tp2,", "say \"hi\"", "\"", "a b", "gr\xc3\xbc\xc3\x9f", "",
    };
    enum { N = sizeof names / sizeof *names };
    char long_name[201] = "", quotes[256] = "", path[512];
    memset(long_name, 'n', sizeof long_name - 1);
    memset(quotes, '"', sizeof quotes - 1);
    for (int i = 0; i < N + 2; i++) {
        const char *name = i < N ? names[i] : i == N ? long_name : quotes;
        struct steps *s[2];
        struct steps_summary sum;
        double time_s;
        snprintf(path, sizeof path, "%s/%s", dir, name);
        mkdir(path, 0755);
        for (int part = 0; part < 2; part++) { // goes on after step 1
            for (int rank = 0; rank < 2; rank++) {
                assert_int_equal(steps_open(&s[rank], path, "ring", rank, 2,
                                            part, false, 0, &time_s),
                                 0);
                const struct step_row row = {.step = part + 1,
                                             .tokens = 100,
                                             .loss = 2 + rank,
                                             .step_us = 500000,
                                             .val_loss = 3};
                assert_int_equal(steps_write(s[rank], &row), 0);
                assert_int_equal(steps_close(&s[rank]), 0);
            }
            assert_int_equal(steps_merge(path, 2), 0);
        }
        assert_int_equal(steps_summarise(path, 1, &sum), 0);
        assert_int_equal(sum.steps, 2);
        assert_int_equal(sum.ranks, 2);
        assert_true(sum.final_loss == 2.5 && sum.final_val_loss == 3);
    }
}

static void cells_are_quoted(void **state)
{
    (void)state;
    char cell[16], row[] = "\"a,\"\"\n\",,b\n";
    assert_int_equal(cell_write(cell, sizeof cell, "plain"), 0);
    assert_string_equal(cell, "plain");
    assert_int_equal(cell_write(cell, sizeof cell, "a,\"\n"), 0);
    assert_string_equal(cell, "\"a,\"\"\n\"");
    assert_int_equal(cell_write(cell, sizeof cell, "too,long,a,cell"), -1);
    assert_string_equal(cell_at(row, 2), "b\n");
    assert_string_equal(cell_at(row, 3), "\n");
    *(char *)(uintptr_t)cell_end(row) = '\0';
    assert_string_equal(row, "\"a,\"\"\n\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_rank, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(paces_add_up, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(steps_before_the_first_file_are_lost,
                                        make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(steps_missed_before_a_restart_are_lost,
                                        make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(a_failed_merge_keeps_the_rows, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(even_steps, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(rounds_count_as_one, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(resumed, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(lost_time_is_never_negative, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(lost_time_is_kept_apart, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(merged, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(merged_again, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(resumed_by_another_world, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(unwritable, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(rows_of_any_folder_are_read, make_dir,
                                        remove_dir),
        cmocka_unit_test(cells_are_quoted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
