// allreduce.c - the library's all-reduce, a bucket at a time: what DDP does.
//
// ready() hands a bucket over, a thread begins MPI_Iallreduce and tests it now
// and then, since Open MPI moves data only inside its calls; step() waits for
// the last bucket, and every worker updates its own parameters. Where MPI was
// built without MPI_THREAD_MULTIPLE there is no thread, and the calls to
// ready() and step() are all the progress there is.
//
// Which algorithm MPI takes is allreduce/algorithm.h's. MPI does not tell what
// it sends: the byte counters hold what was handed to it, S out and S in (a ring
// inside it moves 2(world-1)/world of that).

#include "allreduce/allreduce.h"

#include "allreduce/algorithm.h"
#include "allreduce/narrow.h"
#include "allreduce/rollcall.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "cluster/mpi.h"
#include "device/vector.h"
#include "sync/update.h"
#include "telemetry/span.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct item { // a bucket to sum, or a vector to spread
    float *data;
    size_t n;
    bool bcast;
    uint64_t begun_ns;
};

struct allreduce {
    enum dtype wire;
    float divisor; // of the sum; a power of two, 1 for fp32
    struct update update;
    uint16_t *narrow; // all gradients in a 16-bit wire
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Op sum;
    struct rollcall roll;
    bool has_comm, has_narrow;

    // The thread's while it runs.
    struct item *items;
    MPI_Request *requests;
    int *ended; // indices, from MPI_Testsome
    int most, begun;
    uint64_t moved_ns;
    bool called; // the roll, in this wait
    struct span_lane *lane;
    uint64_t recorded_ns; // end of the lane's last span
    double timeout_s;

    bool threaded, locks, running;
    pthread_t thread;
    pthread_mutex_t lock; // of what follows
    pthread_cond_t change;
    int asked, done; // items, since the last wait
    int64_t step;    // of the wait; 0: the trainer is not waiting
    bool stop, failed;
    char why[512];
};

static uint16_t *narrow_of(struct allreduce *a, const struct sync_job *job,
                           const struct item *i)
{
    return a->narrow + (i->data - job->grads);
}

static void begin(struct allreduce *a, const struct sync_job *job, int k)
{
    struct item *i = &a->items[k];
    i->begun_ns = now_ns();
    MPI_Request *r = &a->requests[k];
    int n = (int)i->n;
    if (i->bcast) {
        MPI(MPI_Ibcast(i->data, n, MPI_FLOAT, 0, a->comm, r));
    } else if (a->wire == DTYPE_F32) {
        MPI(MPI_Iallreduce(MPI_IN_PLACE, i->data, n, MPI_FLOAT, MPI_SUM,
                           a->comm, r));
    } else {
        uint16_t *narrow = narrow_of(a, job, i);
        vector_cast_scaled(narrow, (enum dtype)a->wire, i->data, 1 / a->divisor,
                           i->n);
        MPI(MPI_Iallreduce(MPI_IN_PLACE, narrow, n, a->type, a->sum, a->comm,
                           r));
    }
}

static void end(struct allreduce *a, const struct sync_job *job, int k)
{
    const struct item *i = &a->items[k];
    uint64_t from = i->begun_ns, now = now_ns();
    if (from < a->recorded_ns)
        from = a->recorded_ns; // buckets overlap; spans of a lane must not
    span_add(a->lane, SPAN_RECEIVE, k, from, now);
    a->recorded_ns = now;
    if (!i->bcast && a->wire != DTYPE_F32)
        vector_cast(i->data, DTYPE_F32, narrow_of(a, job, i),
                    (enum dtype)a->wire, i->n);
}

// Begin what was asked for, test what was begun. How many ended.
static int advance(struct allreduce *a, const struct sync_job *job, int asked)
{
    if (a->begun < asked)
        a->moved_ns = now_ns();
    for (; a->begun < asked; a->begun++)
        begin(a, job, a->begun);
    int n;
    MPI(MPI_Testsome(a->begun, a->requests, &n, a->ended, MPI_STATUSES_IGNORE));
    if (n == MPI_UNDEFINED)
        n = 0;
    for (int i = 0; i < n; i++)
        end(a, job, a->ended[i]);
    if (n > 0) {
        a->moved_ns = now_ns();
        a->called = false;
    }
    return n;
}

// The trainer waits in `step`: -1 after fail() if for too long.
static int check_deadline(struct allreduce *a, int64_t step, int done)
{
    char who[256];
    double idle = (double)(now_ns() - a->moved_ns) * 1e-9;
    if (idle > a->timeout_s / 2 && !a->called) {
        rollcall_say(&a->roll, step);
        a->called = true;
    }
    if (idle < a->timeout_s)
        return 0;
    rollcall_missing(&a->roll, step, who, sizeof who);
    return fail("allreduce: %d of %d buckets done after %g s, waiting for %s",
                done, a->begun, a->timeout_s,
                *who ? who : "the network: all ranks are in the same step");
}

// One round of progress. 1: something ended, 0: nothing, -1: after fail().
static int turn(struct allreduce *a, const struct sync_job *job)
{
    pthread_mutex_lock(&a->lock);
    int asked = a->asked, done = a->done;
    int64_t step = a->step;
    pthread_mutex_unlock(&a->lock);
    int n = advance(a, job, asked);
    int rc = !n && step && done < asked ? check_deadline(a, step, done) : 0;
    pthread_mutex_lock(&a->lock);
    a->done += n;
    if (rc) {
        a->failed = true;
        snprintf(a->why, sizeof a->why, "%s", fail_message());
    }
    if (rc || n)
        pthread_cond_broadcast(&a->change);
    pthread_mutex_unlock(&a->lock);
    return rc ? rc : n > 0;
}

static void *progress(void *arg)
{
    struct sync *s = arg;
    struct allreduce *a = s->state;
    int rc = 0;
    while (rc >= 0) {
        pthread_mutex_lock(&a->lock);
        while (a->done == a->asked && !a->stop)
            pthread_cond_wait(&a->change, &a->lock);
        bool stop = a->stop;
        pthread_mutex_unlock(&a->lock);
        if (stop)
            break;
        rc = turn(a, &s->job);
        if (rc == 0)
            mpi_nap(a->moved_ns);
    }
    return NULL;
}

// ---- the trainer's side

static void ask(struct sync *s, struct item item)
{
    struct allreduce *a = s->state;
    pthread_mutex_lock(&a->lock);
    a->items[a->asked++] = item;
    pthread_cond_broadcast(&a->change);
    pthread_mutex_unlock(&a->lock);
    if (!a->threaded)
        (void)turn(a, &s->job); // a failure is kept for the wait
}

// Until all that was asked for is done; turn() keeps the deadline.
static int await(struct sync *s, int64_t step)
{
    struct allreduce *a = s->state;
    pthread_mutex_lock(&a->lock);
    a->step = step;
    while (a->done < a->asked && !a->failed) {
        if (a->threaded) {
            pthread_cond_wait(&a->change, &a->lock);
            continue;
        }
        pthread_mutex_unlock(&a->lock);
        if (turn(a, &s->job) == 0)
            mpi_nap(a->moved_ns);
        pthread_mutex_lock(&a->lock);
    }
    int rc = a->failed ? fail("%s", a->why) : 0;
    if (!rc)
        a->asked = a->done = a->begun = 0;
    a->step = 0;
    pthread_mutex_unlock(&a->lock);
    return rc;
}

static int spread(struct sync *s, float *data)
{
    if (s->job.cluster->world == 1)
        return 0;
    ask(s, (struct item){.data = data, .n = s->job.n, .bcast = true});
    return await(s, 1);
}

static int open_comm(struct allreduce *a, const struct sync_job *job)
{
    MPI_Request r;
    int flag = 0;
    uint64_t start = now_ns();
    MPI(MPI_Comm_idup(MPI_COMM_WORLD, &a->comm, &r));
    while (!flag) {
        if ((double)(now_ns() - start) > a->timeout_s * 1e9)
            return fail("allreduce: not all of %d ranks came within %g s",
                        job->cluster->world, a->timeout_s);
        MPI(MPI_Test(&r, &flag, MPI_STATUS_IGNORE));
        if (!flag)
            mpi_nap(start);
    }
    a->has_comm = true;
    if (a->wire != DTYPE_F32) {
        narrow_open(&a->type, &a->sum, (enum dtype)a->wire);
        a->has_narrow = true;
    }
    return rollcall_open(&a->roll, a->comm);
}

static int open_memory(struct allreduce *a, const struct sync_job *job)
{
    a->most = job->nbuckets;
    a->items = mem_alloc((size_t)a->most, sizeof *a->items);
    a->requests = mem_alloc((size_t)a->most, sizeof(MPI_Request));
    a->ended = mem_alloc((size_t)a->most, sizeof *a->ended);
    a->divisor = 1;
    if (a->wire != DTYPE_F32) {
        a->narrow = mem_alloc(job->n, sizeof *a->narrow);
        while (a->divisor < (float)job->cluster->world)
            a->divisor *= 2;
    }
    bool narrow = a->narrow || a->wire == DTYPE_F32;
    return a->items && a->requests && a->ended && narrow ? 0 : -1;
}

static int start(struct sync *s)
{
    struct allreduce *a = s->state;
    int level;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->change, NULL);
    a->locks = true;
    MPI(MPI_Query_thread(&level));
    a->threaded = level == MPI_THREAD_MULTIPLE;
    if (!a->threaded)
        return 0;
    int error = pthread_create(&a->thread, NULL, progress, s);
    if (error)
        return fail("allreduce: thread: %s", strerror(error));
    a->running = true;
    return 0;
}

static int allreduce_open(struct sync *s)
{
    struct allreduce *a = s->state;
    const struct sync_job *job = &s->job;
    int up;
    a->timeout_s = job->cluster->timeout_s;
    a->wire = job->settings->wire;
    if (update_open(&a->update, job))
        return -1;
    if (job->cluster->world == 1)
        return 0;
    MPI(MPI_Initialized(&up));
    if (!up || job->n > INT_MAX)
        return fail(up ? "allreduce: more than 2^31 parameters"
                       : "allreduce: MPI is not up; try: mpirun -n 2 trainer "
                         "sync=allreduce, or cluster=mpi");
    if (algorithm_use(job->settings->algorithm))
        return -1;
    a->lane = spans_lane(job->spans, "allreduce");
    return open_memory(a, job) || open_comm(a, job) || start(s) ? -1 : 0;
}

static int allreduce_bcast(struct sync *s)
{
    return spread(s, s->job.params);
}

static int allreduce_ready(struct sync *s, int b)
{
    const struct allreduce *a = s->state;
    const struct bucket *k = &s->job.buckets[b];
    if (s->job.cluster->world == 1)
        return 0;
    size_t bytes = k->n * dtype_bytes((enum dtype)a->wire);
    s->stats.bytes_out += bytes;
    s->stats.bytes_in += bytes;
    ask(s, (struct item){.data = s->job.grads + k->off, .n = k->n});
    return 0;
}

static int allreduce_step(struct sync *s, const struct sync_in *in,
                          struct sync_out *out)
{
    struct allreduce *a = s->state;
    bool alone = s->job.cluster->world == 1;
    if (!alone && await(s, in->step))
        return fail("%s (step %d)", fail_message(), in->step);
    return update_step(&a->update, &s->job, in, alone ? 1 : a->divisor, out);
}

static int allreduce_get_state(struct sync *s, float *const *slots)
{
    const struct allreduce *a = s->state;
    return s->job.cluster->rank ? 0 : update_get(&a->update, &s->job, slots);
}

static int spread_slot(void *ctx, int i, float *vector)
{
    (void)i;
    return spread(ctx, vector);
}

static int allreduce_set_state(struct sync *s, const float *const *slots)
{
    struct allreduce *a = s->state;
    return update_set(&a->update, &s->job, slots, spread_slot, s);
}

static void allreduce_close(struct sync *s)
{
    struct allreduce *a = s->state;
    if (a->running) {
        pthread_mutex_lock(&a->lock);
        a->stop = true;
        pthread_cond_broadcast(&a->change);
        pthread_mutex_unlock(&a->lock);
        pthread_join(a->thread, NULL);
    }
    if (a->locks) {
        pthread_cond_destroy(&a->change);
        pthread_mutex_destroy(&a->lock);
    }
    // A collective that was begun cannot be taken back, and writes into memory
    // that is about to be freed: end the job here, which has failed anyway.
    if (a->done < a->asked) {
        log_line("%s", fail_message());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    rollcall_close(&a->roll);
    if (a->has_narrow)
        narrow_close(&a->type, &a->sum);
    if (a->has_comm)
        MPI(MPI_Comm_free(&a->comm));
    mem_free(a->narrow);
    mem_free(a->ended);
    mem_free(a->requests);
    mem_free(a->items);
    update_close(&a->update, &s->job);
}

const struct sync_ops sync_allreduce = {
    .name = "allreduce",
    .transport = "mpi",
    .help = "MPI's all-reduce, a bucket at a time; every worker updates",
    .state_size = sizeof(struct allreduce),
    .open = allreduce_open,
    .bcast = allreduce_bcast,
    .ready = allreduce_ready,
    .step = allreduce_step,
    .get_state = allreduce_get_state,
    .set_state = allreduce_set_state,
    .close = allreduce_close,
};
