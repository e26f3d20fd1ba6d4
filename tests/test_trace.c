// test_trace.c - the files that are made from spans: a Chrome trace that nests,
// merged parts, the times of a run, samples, TensorBoard's records; and aligned
// clocks.

#include "telemetry/trace.h"

#include "base/base.h"
#include "telemetry/align.h"
#include "telemetry/sampler.h"
#include "telemetry/span.h"
#include "telemetry/tfevents.h"
#include "telemetry/times.h"
#include "telemetry/trace_parts.h"

#include <cjson/cJSON.h>
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/test.h"

static char dir[64];

static int make_dir(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/lockstep-trace-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

static const char *under(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static char *read_all(const char *name)
{
    static char text[1 << 20];
    FILE *f = fopen(under(name), "r");
    if (!f)
        return NULL;
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

static void nap(long us)
{
    struct timespec t = {.tv_nsec = us * 1000};
    nanosleep(&t, NULL);
}

// Records a step on two lanes. A send begins in backward, and ends 2 ms after
// the end of backward.
static void record_step(struct spans *s, struct span_lane *comm, int step)
{
    struct span_lane *l = spans_compute(s);
    span_begin(l, SPAN_STEP, step);
    span_begin(l, SPAN_BACKWARD, -1);
    span_begin(l, SPAN_BACKWARD, 0);
    span_begin(comm, SPAN_SEND, 3);
    nap(2000);
    span_end(l);
    span_end(l);
    span_begin(l, SPAN_WAIT, -1);
    nap(2000);
    span_end(comm);
    nap(2000);
    span_end(l);
    span_count(l, COUNTER_LOSS, 2.25);
    span_end(l);
}

static void write_trace(const char *name, int pid)
{
    struct spans *s;
    struct trace_head head = {.pid = pid, .name = "a \xc3\xa9 rank"};
    assert_int_equal(spans_open(&s, 256), 0);
    struct span_lane *comm = spans_lane(s, "communication");
    record_step(s, comm, 0); // before zero: left out
    spans_set_zero(s, now_ns());
    for (int i = 1; i <= 3; i++)
        record_step(s, comm, i);
    assert_int_equal(trace_write(s, under(name), &head), 0);
    head.hta = true;
    assert_int_equal(trace_write(s, under("hta.json"), &head), 0);
    spans_close(&s);
}

static double number(const cJSON *e, const char *key)
{
    const cJSON *n = cJSON_GetObjectItem(e, key);
    assert_non_null(n);
    assert_true(cJSON_IsNumber(n));
    return n->valuedouble;
}

static const char *text(const cJSON *e, const char *key)
{
    const cJSON *n = cJSON_GetObjectItem(e, key);
    assert_true(n && cJSON_IsString(n));
    return n->valuestring;
}

// Checks that each X event of a thread is inside the events that are open, in
// the order of the file. Returns the number of X events.
static int check_thread(const cJSON *events, int pid, int tid)
{
    double ends[16];
    int depth = 0, n = 0;
    const cJSON *e;
    double last = -INFINITY;
    cJSON_ArrayForEach(e, events)
    {
        if (strcmp(text(e, "ph"), "X") || number(e, "pid") != pid ||
            number(e, "tid") != tid)
            continue;
        double ts = number(e, "ts"), end = ts + number(e, "dur");
        assert_true(ts >= 0 && ts >= last && end >= ts);
        last = ts;
        while (depth && ends[depth - 1] <= ts + 0.0005)
            depth--;
        assert_true(!depth || end <= ends[depth - 1] + 0.0005);
        assert_true(depth < 16);
        ends[depth++] = end;
        n++;
    }
    return n;
}

static void nests(void **state)
{
    (void)state;
    write_trace("trace.0.json", 0);
    write_trace("trace.1.json", 1);
    write_trace("trace.s0.json", TRACE_SERVER);
    assert_int_equal(trace_merge(dir, true), 0);
    assert_null(read_all("trace.0.json"));
    assert_null(read_all("trace.s0.json"));
    cJSON *j = cJSON_Parse(read_all("trace.json"));
    assert_non_null(j);
    const cJSON *events = cJSON_GetObjectItem(j, "traceEvents");
    int pids[] = {0, 1, TRACE_SERVER};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(check_thread(events, pids[i], 0), 12);
        assert_int_equal(check_thread(events, pids[i], 1), 3);
    }
    int counters = 0, names = 0;
    const cJSON *e;
    cJSON_ArrayForEach(e, events)
    {
        counters += !strcmp(text(e, "ph"), "C");
        names += !strcmp(text(e, "name"), "process_name");
        if (!strcmp(text(e, "name"), "step")) // microseconds: 6 ms and more
            assert_true(number(e, "dur") > 6000 && number(e, "dur") < 6e6);
    }
    assert_int_equal(counters, 9);
    assert_int_equal(names, 3);
    int before = cJSON_GetArraySize(events);
    cJSON_Delete(j);

    write_trace("trace.2.json", 2); // a late trace is added to the others
    assert_int_equal(trace_merge(dir, true), 0);
    assert_int_equal(trace_merge(dir, true), 0);
    j = cJSON_Parse(read_all("trace.json"));
    int after = cJSON_GetArraySize(cJSON_GetObjectItem(j, "traceEvents"));
    assert_int_equal(after, before / 3 * 4);
    cJSON_Delete(j);
}

static void for_hta(void **state)
{
    (void)state;
    write_trace("trace.0.json", 3);
    char *all = read_all("hta.json");
    assert_non_null(strstr(all, "\"distributedInfo\": {\"rank\": 3}"));
    cJSON *j = cJSON_Parse(all);
    const cJSON *e, *events = cJSON_GetObjectItem(j, "traceEvents");
    int kernels = 0, launches = 0, steps = 0, comm = 0;
    cJSON_ArrayForEach(e, events)
    {
        if (strcmp(text(e, "ph"), "X"))
            continue;
        const cJSON *args = cJSON_GetObjectItem(e, "args");
        if (!strcmp(text(e, "cat"), "kernel")) {
            assert_true(number(args, "stream") >= 0);
            assert_true(number(args, "correlation") == ++kernels);
            comm += !strncmp(text(e, "name"), "nccl_compat_Kernel:", 19);
        }
        launches += !strcmp(text(e, "cat"), "cuda_runtime");
        steps += !strcmp(text(e, "cat"), "user_annotation");
    }
    assert_int_equal(kernels, 6); // backward's layer and send, of each step
    assert_int_equal(launches, 6);
    assert_int_equal(comm, 3);
    assert_int_equal(steps, 3);
    cJSON_Delete(j);
}

static double share_of(const char *csv, const char *kind)
{
    double seconds, share = -1;
    char key[64];
    snprintf(key, sizeof key, "0,%s,", kind);
    const char *at = strstr(csv, key);
    assert_non_null(at);
    assert_int_equal(sscanf(at + strlen(key), "%lf,%lf", &seconds, &share), 2);
    return share;
}

static void times(void **state)
{
    (void)state;
    struct spans *s;
    struct times t;
    assert_int_equal(spans_open(&s, 256), 0);
    struct span_lane *comm = spans_lane(s, "communication");
    for (int i = 1; i <= 3; i++)
        record_step(s, comm, i);
    assert_int_equal(times_of(s, &t), 0);
    assert_true(t.comm_s >= 0.012 && t.exposed_s >= 0.006);
    assert_true(t.exposed_s <= t.comm_s - 0.006 && t.comm_s <= t.kept_s);
    t.steps = 3;
    assert_int_equal(times_write(&t, dir, "0", false), 0);
    assert_int_equal(times_write(&t, dir, "1", false), 0);
    assert_int_equal(parts_renew_csv(dir, "breakdown"), 0);
    const char *csv = read_all("breakdown.csv");
    static const char head[] = "rank,kind,seconds,share,steps\n0,data";
    assert_int_equal(strncmp(csv, head, strlen(head)), 0);
    assert_null(strstr(csv + 1, "rank,kind"));
    double exposed = share_of(csv, "exposed"), wait = share_of(csv, "wait");
    assert_true(exposed > 0.1 && wait > 0.1);
    const char *kinds[] = {"data",   "forward",    "backward", "update",
                           "wait",   "checkpoint", "evaluate", "exposed",
                           "slowed", "other"};
    double sum = 0;
    for (int i = 0; i < 10; i++)
        sum += share_of(csv, kinds[i]);
    assert_true(fabs(sum - 1) < 1e-4);
    assert_null(strstr(csv, "gpu_"));
    double all = 0; // a GPU has rows in addition to the host's
    for (int k = 0; k < SPAN_KINDS; k++)
        all += t.seconds[k];
    t.gpu = (struct times_gpu){.compute = all / 2, .up = all / 4};
    assert_int_equal(times_write(&t, dir, "0", false), 0);
    csv = read_all("breakdown.0.csv");
    assert_true(fabs(share_of(csv, "gpu_compute") - 0.5) < 1e-4);
    assert_true(share_of(csv, "gpu_comm") == 0);
    assert_true(fabs(share_of(csv, "gpu_up") - 0.25) < 1e-4);
    assert_true(share_of(csv, "wait") > 0.1);
    spans_close(&s);
    assert_int_equal(times_of(NULL, &t), 0);
}

// Waiting for other stages and slices is no transfer of the worker's own
// exchange, whether a lane records one or not.
static void parts_are_waits(void **state)
{
    (void)state;
    for (int lanes = 0; lanes < 2; lanes++) {
        struct times t = {.seconds = {[SPAN_FORWARD] = 2,
                                      [SPAN_BUBBLE] = 3,
                                      [SPAN_JOIN] = 4,
                                      [SPAN_READY] = 1},
                          .comm_s = lanes,
                          .exposed_s = lanes,
                          .kept_s = 10};
        assert_int_equal(times_write(&t, dir, "0", false), 0);
        const char *csv = read_all("breakdown.0.csv");
        assert_true(fabs(share_of(csv, "exposed") - 0.1) < 1e-4);
        assert_true(fabs(share_of(csv, "wait") - 0.7) < 1e-4);
    }
}

static void put_file(const char *name, const char *text)
{
    FILE *f = fopen(under(name), "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

// A resumed run counts time from the start of its first part. That may be
// before this machine was started, so times count modulo 2^64.
static void goes_on(void **state)
{
    (void)state;
    const double before_s = 1e6; // in ns, a double holds it exactly
    struct spans *s;
    struct trace_head head = {.pid = 0, .name = "rank 0"};
    assert_int_equal(spans_open(&s, 256), 0);
    struct span_lane *comm = spans_lane(s, "communication");
    record_step(s, comm, 0); // setting up
    spans_set_zero(s, now_ns() - (uint64_t)(before_s * 1e9));
    record_step(s, comm, 1);
    assert_int_equal(trace_write(s, under("trace.0.json"), &head), 0);
    assert_int_equal(trace_merge(dir, false), 0);
    cJSON *j = cJSON_Parse(read_all("trace.json"));
    const cJSON *e, *events = cJSON_GetObjectItem(j, "traceEvents");
    assert_int_equal(check_thread(events, 0, 0), 4);
    cJSON_ArrayForEach(e, events)
    {
        if (!strcmp(text(e, "ph"), "X"))
            assert_true(number(e, "ts") >= before_s * 1e6);
    }
    int all = cJSON_GetArraySize(events);
    cJSON_Delete(j);

    struct times t; // only of the spans after setting up
    assert_int_equal(times_of(s, &t), 0);
    assert_true(t.comm_s >= 0.004 && t.comm_s <= t.kept_s);
    spans_close(&s);

    assert_int_equal(trace_cut(dir, before_s - 1), 0); // names remain
    j = cJSON_Parse(read_all("trace.json"));
    events = cJSON_GetObjectItem(j, "traceEvents");
    assert_int_equal(cJSON_GetArraySize(events), all - 4 - 1 - 1);
    cJSON_Delete(j);

    put_file("util.csv", "t_s,rank,metric,value\n0.5,0,cpu_share,1\n"
                         "2.5,0,cpu_share,1\n0.7,s0,cpu_share,1\n");
    put_file("util.1.csv", "t_s,rank,metric,value\n1.000,1,cpu_share,1\n"
                           "1.001,1,cpu_share,1\n");
    put_file("util.2.csv", "t_s,rank,metric,value\n0.9,2,cpu_sh"); // killed
    assert_int_equal(parts_cut_csv(dir, "util", 1), 0);
    assert_null(read_all("util.1.csv"));
    assert_string_equal(read_all("util.csv"),
                        "t_s,rank,metric,value\n0.5,0,cpu_share,1\n"
                        "0.7,s0,cpu_share,1\n1.000,1,cpu_share,1\n");
    assert_int_equal(parts_cut_csv(dir, "none", 1), 0);
    assert_null(read_all("none.csv"));

    put_file("util.0.csv",
             "t_s,rank,metric,value\n0.6,0,cpu_share,1\n0.7,0,cp");
    put_file("util.1.csv", "t_s,rank,metric,value\n0.8,1,cpu_share,1\n");
    assert_int_equal(parts_merge_csv(dir, "util", false), 0);
    assert_non_null(strstr(read_all("util.csv"), // a killed worker's last row
                           "\n0.6,0,cpu_share,1\n0.8,1,cpu_share,1\n"));
}

static void parts_add_up(void **state)
{
    (void)state;
    struct times t = {.seconds[SPAN_FORWARD] = 3,
                      .seconds[SPAN_EVALUATE] = 1,
                      .gpu.compute = 2,
                      .steps = 10};
    assert_int_equal(times_write(&t, dir, "0", false), 0);
    assert_int_equal(times_write(&t, dir, "1", false), 0);
    assert_int_equal(parts_renew_csv(dir, "breakdown"), 0);
    t = (struct times){.seconds[SPAN_FORWARD] = 5, .steps = 4};
    assert_int_equal(times_write(&t, dir, "0", true), 0);
    assert_int_equal(times_write(&t, dir, "2", true), 0); // is new
    assert_int_equal(parts_renew_csv(dir, "breakdown"), 0);
    const char *csv = read_all("breakdown.csv");
    assert_non_null(strstr(csv, "\n0,forward,8.000000,0.888889,14\n"));
    assert_non_null(strstr(csv, "\n0,evaluate,1.000000,0.111111,14\n"));
    assert_non_null(strstr(csv, "\n0,gpu_compute,2.000000,0.222222,14\n"));
    assert_non_null(strstr(csv, "\n2,forward,5.000000,1.000000,4\n"));
    assert_null(strstr(csv, "\n1,")); // not in the second part
    assert_null(strstr(strstr(csv, "0,forward") + 1, "0,forward"));
}

static void samples(void **state)
{
    (void)state;
    struct spans *s;
    struct sampler *sampler;
    assert_int_equal(spans_open(&s, 256), 0);
    struct sampler_config config = {.path = under("util.0.csv"),
                                    .who = "0",
                                    .spans = s,
                                    .cores = 1,
                                    .per_s = 50,
                                    .zero_ns = now_ns()};
    assert_int_equal(sampler_open(&sampler, &config), 0);
    span_begin(spans_compute(s), SPAN_FORWARD, -1);
    nap(150000);
    span_end(spans_compute(s));
    assert_int_equal(sampler_close(&sampler), 0);
    assert_null(sampler);
    char *line = strtok(read_all("util.0.csv"), "\n");
    assert_string_equal(line, "t_s,rank,metric,value");
    double last = 0, most = 0;
    int n = 0;
    while ((line = strtok(NULL, "\n"))) {
        double t, value;
        char metric[40];
        assert_int_equal(sscanf(line, "%lf,0,%39[^,],%lf", &t, metric, &value),
                         3);
        assert_true(t >= last && t < 60);
        last = t;
        n++;
        if (!strcmp(metric, "compute_share")) {
            assert_true(value >= 0 && value <= 1.0001);
            most = value > most ? value : most;
        }
        if (!strcmp(metric, "resident_bytes"))
            assert_true(value > 100000);
    }
    assert_true(n >= 6 && most > 0.5);
    spans_close(&s);
    config.path = "/dev/null/util.csv";
    config.spans = NULL;
    assert_int_equal(sampler_open(&sampler, &config), -1);
}

// The file has the format that TensorBoard reads, with its checksums.
static void events(void **state)
{
    (void)state;
    struct tfevents *t;
    glob_t found;
    assert_int_equal(tfevents_open(&t, dir), 0);
    for (int i = 0; i < 300; i += 100)
        assert_int_equal(tfevents_scalar(t, "loss", i, 2.5 + i), 0);
    assert_int_equal(tfevents_close(&t), 0);
    assert_int_equal(glob(under("events.out.tfevents.*"), 0, NULL, &found), 0);
    FILE *f = fopen(found.gl_pathv[0], "rb");
    globfree(&found);
    unsigned char b[1024];
    size_t n = fread(b, 1, sizeof b, f);
    fclose(f);
    // the length 24, and the masked CRC-32C that TensorFlow writes for it
    assert_int_equal(memcmp(b, "\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12), 0);
    assert_int_equal(memcmp(b + 21,
                            "\x1a\x0d"
                            "brain.Event:2",
                            15),
                     0);
    int records = 0;
    for (size_t at = 0; at < n; records++) {
        uint64_t len;
        memcpy(&len, b + at, sizeof len);
        at += 16 + len;
        assert_true(at <= n);
    }
    assert_int_equal(records, 4);
}

static void clocks(void **state)
{
    (void)state;
    // worker 0 leaves up to 5 us before or after me; my clock is 1 s behind
    struct align_round zero[] = {{5000000000u, 5000040000u},
                                 {5000100000u, 5000110000u},
                                 {5000200000u, 5000290000u}};
    struct align_round mine[] = {{4000010000u, 4000045000u},
                                 {4000102000u, 4000108000u},
                                 {4000205000u, 4000295000u}};
    struct align a;
    assert_int_equal(align_clocks(mine, zero, 3, &a), 0);
    assert_true(llabs(a.offset_ns + 1000000000) <= a.error_ns);
    assert_true(a.error_ns <= 10000);
    assert_int_equal(align_clocks(zero, zero, 3, &a), 0);
    assert_int_equal(a.offset_ns, 0);
    mine[2].entered_ns += 1000000000; // the clock was set in between
    assert_int_equal(align_clocks(mine, zero, 3, &a), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nests, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(for_hta, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(times, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(goes_on, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(parts_are_waits, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(parts_add_up, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(samples, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(events, make_dir, remove_dir),
        cmocka_unit_test(clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
