// loop.c - a lower bound of the time of a ring over TCP: a bare poll loop.

#include "bench/loop.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "device/vector.h"
#include "horovod_ring/plan.h"
#include "horovod_ring/streams.h"

enum { PIECE = 1 << 16 }; // elements received at a time: 256 KiB

struct loop {
    struct streams streams;
    float *received; // a piece, before it is added
};

static int loop_open(struct sync *s)
{
    struct loop *l = s->state;
    const struct streams_config config = {.name = "loop",
                                          .iface = s->job.settings->iface};
    s->transport = "tcp";
    l->received = mem_alloc(PIECE, sizeof *l->received);
    if (!l->received)
        return -1;
    if (s->job.cluster->world == 1)
        return 0;
    return streams_open(&l->streams, &streams_tcp, s->job.cluster, &config);
}

// Receives at most a piece of `to`, from byte `got` on. With `adds`, adds all
// numbers that are complete.
static ssize_t receive(struct loop *l, float *to, size_t got, size_t bytes,
                       bool adds)
{
    const size_t piece = PIECE * sizeof *to;
    size_t at = got % piece, left = bytes - got;
    size_t most = left < piece - at ? left : piece - at;
    char *p = adds ? (char *)l->received + at : (char *)to + got;
    ssize_t n = l->streams.ops->recv(&l->streams, LEFT, p, most);
    if (n > 0 && adds) {
        size_t from = got / sizeof *to, end = (got + (size_t)n) / sizeof *to;
        vector_add(to + from, l->received + from % PIECE, DTYPE_F32,
                   end - from);
    }
    return n;
}

// Sends chunk `out` to the right while it receives chunk `in` from the left.
static int exchange(struct loop *l, double timeout_s, float *v,
                    struct group_chunk out, struct group_chunk in, bool adds)
{
    struct streams *p = &l->streams;
    size_t sent = 0, got = 0;
    size_t nout = out.n * sizeof *v, nin = in.n * sizeof *v;
    uint64_t moved_ns = now_ns();
    while (sent < nout || got < nin) {
        struct iovec iov = {(char *)(v + out.off) + sent, nout - sent};
        ssize_t went = sent < nout ? p->ops->send(p, RIGHT, &iov, 1) : 0;
        ssize_t came = got < nin ? receive(l, v + in.off, got, nin, adds) : 0;
        if (went < 0 || came < 0)
            return -1;
        sent += (size_t)went;
        got += (size_t)came;
        if (went || came) {
            moved_ns = now_ns();
            continue;
        }
        if ((double)(now_ns() - moved_ns) > timeout_s * 1e9)
            return fail("loop: nothing moved for %g s", timeout_s);
        p->links[RIGHT].wants = sent < nout ? STREAMS_OUT : 0;
        p->links[LEFT].wants = got < nin ? STREAMS_IN : 0;
        if (p->ops->wait(p, (int)(timeout_s * 1000) + 1))
            return -1;
    }
    return 0;
}

static int loop_step(struct sync *s, const struct sync_in *in,
                     struct sync_out *out)
{
    struct loop *l = s->state;
    const struct cluster *c = s->job.cluster;
    const struct plan p = {.rank = c->rank, .world = c->world, .grain = 1};
    const struct group_op op = {.verb = GROUP_ALL_REDUCE,
                                .vector = group_floats(s->job.grads, s->job.n)};
    (void)in;
    (void)out;
    for (int m = 0; c->world > 1 && m < plan_messages(&p, &op, OUT); m++)
        if (exchange(l, c->timeout_s, s->job.grads, plan_span(&p, &op, OUT, m),
                     plan_span(&p, &op, IN, m), plan_adds(&p, &op, m)))
            return -1;
    s->stats.bytes_out += plan_elements(&p, &op, OUT) * sizeof(float);
    return 0;
}

static void loop_close(struct sync *s)
{
    struct loop *l = s->state;
    streams_close(&l->streams);
    mem_free(l->received);
}

const struct sync_ops sync_loop = {
    .state_size = sizeof(struct loop),
    .open = loop_open,
    .step = loop_step,
    .close = loop_close,
};
