// grade.c - lab 12: the tests of a pipeline's timetable.
//
// The timetables of all stages run on the virtual cluster: a stage is a rank,
// and sends its neighbour the number of each micro-batch that it has finished.

#include "labs/12-pipe/pipe.h"

#include "labs/check.h"
#include "labs/term.h"

#include "base/base.h"

#include <math.h>

enum { MOST_STAGES = 12, MOST_MICRO = 200 };

struct job {
    struct pipe pipe;
    int held[MOST_STAGES], peak[MOST_STAGES]; // micro-batches, by stage
};

// Piece number i of a stage in the order of time. The term says how the student
// counts pieces.
static bool piece(const struct pipe *p, int s, int i, struct work *w)
{
    int last = 2 * p->micro - 1;
    bool back = LAB_PIECES == 2 && i <= last;
    return pipe_work(p, s, back ? last - i : i + (LAB_PIECES == 1), w);
}

// Checks that a stage has every piece exactly once and no others, and the order
// forward.
static void whole_stage(struct lab_case *k, const struct pipe *p, int s)
{
    int done[MOST_MICRO][2] = {{0}};
    struct work w;
    int i = 0, sent = 0;
    for (; i <= 2 * p->micro && piece(p, s, i, &w); i++) {
        if (!lab_want(k, w.micro >= 0 && w.micro < p->micro,
                      "stage %d of %d, piece %d: there is no micro-batch %d of "
                      "%d",
                      s, p->stages, i, w.micro, p->micro))
            return;
        done[w.micro][w.backward]++;
        int turn = w.backward || sent == p->micro ? -1 : sent++;
        int ought = lab_at(LAB_MICRO, turn, p->micro);
        lab_want(k, turn < 0 || w.micro == ought,
                 "stage %d of %d: micro-batch %d of %d goes forward at place "
                 "%d, which is that of micro-batch %d",
                 s, p->stages, w.micro, p->micro, turn, ought);
    }
    for (int m = 0; m < p->micro; m++)
        for (int b = 0; b < 2; b++)
            lab_want(k, done[m][b] == 1,
                     "stage %d of %d: micro-batch %d of %d goes %s %d times", s,
                     p->stages, m, p->micro, b ? "backward" : "forward",
                     done[m][b]);
    int later = i + (int)lab_pick(k, 1, 5000);
    lab_want(k, i == 2 * p->micro, "stage %d of %d: %d pieces, not %d", s,
             p->stages, i, 2 * p->micro);
    lab_want(k, !piece(p, s, later, &w),
             "stage %d of %d, %d micro-batches: there is no piece %d", s,
             p->stages, p->micro, later);
}

static const double ones[MOST_STAGES] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
static const double twos[MOST_STAGES] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};

// More stages and micro-batches than any public test has; backward may be
// faster than forward. It is valid until the next one is drawn.
static struct pipe hidden_pipe(const struct lab_case *k, bool equal)
{
    static double forward[MOST_STAGES], backward[MOST_STAGES];
    static const double seconds[] = {1, 1.25, 1.5, 2, 3};
    for (uint64_t s = 0; s < MOST_STAGES; s++) {
        forward[s] = seconds[lab_draw(k, equal ? 0 : s, 5)];
        backward[s] = seconds[lab_draw(k, equal ? 50 : 50 + s, 5)];
    }
    return (struct pipe){(int)lab_pick(k, 7, MOST_STAGES),
                         (int)lab_pick(k, 130, MOST_MICRO), forward, backward};
}

static void whole(struct lab_case *k)
{
    for (int p = 1; p <= 6; p++)
        for (int m = 1; m <= 12; m++)
            for (int s = 0; s < p && !lab_failed(k); s++)
                whole_stage(k, &(struct pipe){p, m, ones, twos}, s);
    for (int i = 0; i < 3 && lab_hidden(k); i++) {
        struct pipe p = hidden_pipe(k, false);
        for (int s = 0; s < p.stages && !lab_failed(k); s++)
            whole_stage(k, &p, s);
    }
}

// Waits until a neighbour has finished micro-batch m. It may finish others
// first.
static int await(struct lab *l, int from, int m, bool *came)
{
    while (!came[m]) {
        int32_t number;
        if (lab_recv(l, from, &number, sizeof number))
            return -1;
        came[number] = true;
    }
    return 0;
}

// The stage at a place of the way forward; -1: there is none.
static int stage_at(const struct pipe *p, int place)
{
    bool is = place >= 0 && place < p->stages;
    return is ? lab_at(LAB_STAGES, place, p->stages) : -1;
}

static int stage(struct lab *l, void *arg)
{
    struct job *j = arg;
    const struct pipe *p = &j->pipe;
    int s = l->rank, place = lab_place(LAB_STAGES, s, p->stages);
    bool came[2][MOST_MICRO] = {{false}}, forward[MOST_MICRO] = {false};
    struct work w;
    for (int i = 0; i < 2 * p->micro && piece(p, s, i, &w); i++) {
        int from = stage_at(p, place + (w.backward ? 1 : -1));
        int to = stage_at(p, place + (w.backward ? -1 : 1));
        int32_t number = w.micro;
        if (w.micro < 0 || w.micro >= p->micro)
            return fail("stage %d of %d: there is no micro-batch %d of %d", s,
                        p->stages, w.micro, p->micro);
        if (from >= 0 && await(l, from, w.micro, came[w.backward]))
            return -1;
        if (w.backward && !forward[w.micro])
            return fail("stage %d: micro-batch %d goes backward before it went "
                        "forward",
                        s, w.micro);
        lab_compute(l, (w.backward ? p->backward : p->forward)[s]);
        forward[w.micro] = true;
        j->held[s] += w.backward ? -1 : 1;
        j->peak[s] = j->held[s] > j->peak[s] ? j->held[s] : j->peak[s];
        if (to >= 0 && lab_send(l, to, &number, sizeof number))
            return -1;
    }
    return 0;
}

// Runs a step. Returns its seconds, or 0 if it failed.
static double run(struct lab_case *k, struct job *j, const struct pipe *p)
{
    struct lab_world world = {.workers = p->stages,
                              .bytes_per_s = 1e18,
                              .eager = SIZE_MAX};
    *j = (struct job){.pipe = *p};
    const struct lab_run *run =
        lab_failed(k) ? NULL : lab_virtual(k, &world, stage, j);
    return lab_clean(k, run) ? run->v->seconds : 0;
}

static void order(struct lab_case *k)
{
    struct job j;
    for (int p = 1; p <= 6; p++)
        for (int m = 1; m <= 12; m++)
            run(k, &j, &(struct pipe){p, m, ones, twos});
    for (int i = 0; i < 2 && lab_hidden(k); i++) {
        struct pipe p = hidden_pipe(k, i);
        run(k, &j, &p);
    }
}

static void want_memory(struct lab_case *k, const struct pipe *p)
{
    struct job j;
    double seconds = run(k, &j, p);
    for (int s = 0; seconds > 0 && s < p->stages; s++) {
        int most = p->stages - lab_place(LAB_STAGES, s, p->stages);
        lab_want(k, j.peak[s] <= most,
                 "%d stages, %d micro-batches: stage %d holds %d, it may hold "
                 "%d",
                 p->stages, p->micro, s, j.peak[s], most);
    }
}

static void memory(struct lab_case *k)
{
    for (int p = 1; p <= 6; p++)
        for (int m = 1; m <= 12; m++)
            want_memory(k, &(struct pipe){p, m, ones, twos});
    for (int i = 0; i < 2 && lab_hidden(k); i++) {
        struct pipe p = hidden_pipe(k, i);
        want_memory(k, &p);
    }
}

static void want_bubble(struct lab_case *k, const struct pipe *p,
                        const char *name)
{
    struct job j;
    double is = run(k, &j, p), each = p->forward[0] + p->backward[0];
    double ought = (p->micro + p->stages - 1) * each;
    if (lab_failed(k))
        return;
    lab_record(k, p->stages, (size_t)p->micro, name, 1 - p->micro * each / is);
    lab_want(k, is <= ought * (1 + 1e-9),
             "%d equal stages, %d micro-batches, forward %g s, backward %g s: "
             "took %g s, (m+p-1)(f+b) is %g s",
             p->stages, p->micro, p->forward[0], p->backward[0], is, ought);
}

static void bubble(struct lab_case *k)
{
    for (int p = 1; p <= 6; p++)
        for (int m = 1; m <= 32; m += m < 4 ? 1 : 4) {
            want_bubble(k, &(struct pipe){p, m, ones, ones}, "idle_backward_1");
            want_bubble(k, &(struct pipe){p, m, ones, twos}, "idle_backward_2");
        }
    for (int i = 0; i < 2 && lab_hidden(k); i++) {
        struct pipe p = hidden_pipe(k, true);
        want_bubble(k, &p, "idle_hidden");
    }
}

// The largest of the stages' lower bounds. A stage computes all micro-batches.
// Before that, the first one goes forward through the earlier stages. After
// that, the last one goes backward through them.
static double unavoidable(const struct pipe *p)
{
    double most = 0;
    for (int s = 0; s < p->stages; s++) {
        double seconds = p->micro * (p->forward[s] + p->backward[s]);
        for (int at = lab_place(LAB_STAGES, s, p->stages) - 1; at >= 0; at--) {
            int t = stage_at(p, at);
            seconds += p->forward[t] + p->backward[t];
        }
        most = fmax(most, seconds);
    }
    return most;
}

static void want_bound(struct lab_case *k, const struct pipe *p)
{
    struct job j;
    double is = run(k, &j, p), least = unavoidable(p);
    if (lab_failed(k))
        return;
    lab_record(k, p->stages, (size_t)p->micro, "seconds_of_unequal", is);
    lab_speed(k, is, least,
              "%d stages of %g, %g, %g and %g s%s forward, %d micro-batches: "
              "took %g s, the lower bound is %g s",
              p->stages, p->forward[0], p->forward[1], p->forward[2],
              p->forward[3], p->stages > 4 ? " and so on" : "", p->micro, is,
              least);
}

static void unequal(struct lab_case *k)
{
    static const double models[][MOST_STAGES] = {
        {1, 1, 1, 2},       {2, 1, 1, 1}, {1, 3, 1, 1},
        {1, 1.5, 1.2, 1.1}, {3, 2, 1, 4},
    };
    for (size_t a = 0; a < sizeof models / sizeof *models; a++)
        for (int m = 32; m <= 64; m *= 2) {
            double backward[MOST_STAGES];
            for (int s = 0; s < 4; s++)
                backward[s] = 2 * models[a][s];
            want_bound(k, &(struct pipe){4, m, models[a], backward});
        }
    for (int i = 0; i < 4 && lab_hidden(k); i++) {
        struct pipe p = hidden_pipe(k, false);
        want_bound(k, &p);
    }
}

static const struct lab_test tests[] = {
    {"whole", 5, whole, NULL,
     "A stage has 2m pieces: m forward and m backward."},
    {"order", 10, order, "whole",
     "Write the pieces of all stages below each other. Which pieces wait for "
     "each other in a circle?"},
    {"memory", 20, memory, "order",
     "The stage that computes the loss can go backward at once. How many "
     "micro-batches may the stage that reads the data send forward before the "
     "first one comes back?"},
    {"bubble", 20, bubble, "memory",
     "Send forward as many micro-batches as may be held, and then alternate: "
     "one backward, one forward."},
    {"unequal", 15, unequal, "bubble",
     "The slowest stage must never wait between its first piece and its "
     "last."},
    {NULL, 0, NULL, NULL, NULL},
};

const struct lab_about lab_about = {
    .number = 12,
    .name = "a pipeline schedule",
    .file = "pipe.c",
    .functions = "pipe_work",
    .floor = 15,
    .tests = tests,
};
