// test_flow.c - sends slices around a ring of workers in one process, over
// pipes that move a few bytes at a time. Random numbers choose which worker
// goes on. Also checks which worker is blamed for a failure.

#include "horovod_ring/flow.h"

#include "base/base.h"
#include "base/rng.h"

#include "tests/test.h"

enum { MOST = 7, PIPE = 37, OPS = 7 };

struct net;

struct node { // one worker
    struct net *net;
    struct streams streams;
    struct streams_link links[2];
    struct wire wire;
    struct group_op ops[OPS];
    struct flow flow;
    float *data[OPS];
    int posted;
    bool dead;
};

struct net {
    int world;
    enum dtype type; // of the wire
    uint64_t key, draws;
    struct node nodes[MOST];
    struct {
        char bytes[PIPE];
        size_t n;
    } pipes[MOST][2]; // bytes on their way to a worker from LEFT or RIGHT
};

// The linker puts this clock in the place of base.h's. So time passes only when
// the test says so, however busy the machine is.
static uint64_t clock_ns = 1;

uint64_t __wrap_now_ns(void);

uint64_t __wrap_now_ns(void)
{
    return clock_ns;
}

static uint64_t draw(struct net *net, uint64_t n)
{
    return rng_below(net->key, net->draws++, n);
}

static ssize_t pipe_send(struct streams *p, int to, const struct iovec *v,
                         int n)
{
    struct net *net = ((struct node *)p->state)->net;
    int peer = p->links[to].member;
    if (net->nodes[peer].dead)
        return fail("rank %d closed", peer);
    size_t *used = &net->pipes[peer][1 - to].n, most = draw(net, PIPE);
    char *bytes = net->pipes[peer][1 - to].bytes;
    ssize_t moved = 0;
    for (int i = 0; i < n; i++)
        for (size_t k = 0; k < v[i].iov_len && *used < PIPE && most > 0; k++) {
            bytes[(*used)++] = ((const char *)v[i].iov_base)[k];
            moved++;
            most--;
        }
    return moved;
}

static ssize_t pipe_recv(struct streams *p, int from, void *to, size_t bytes)
{
    struct net *net = ((struct node *)p->state)->net;
    size_t *used = &net->pipes[p->rank][from].n;
    char *at = net->pipes[p->rank][from].bytes;
    int peer = p->links[from].member;
    if (*used == 0 && net->nodes[peer].dead)
        return fail("rank %d closed", peer);
    size_t n = draw(net, PIPE);
    n = n < *used ? n : *used;
    n = n < bytes ? n : bytes;
    memcpy(to, at, n);
    memmove(at, at + n, *used - n);
    *used -= n;
    return (ssize_t)n;
}

static int pipe_wait(struct streams *p, int timeout_ms)
{
    (void)p;
    (void)timeout_ms;
    return 0;
}

static const struct streams_ops pipes = {.send = pipe_send,
                                         .recv = pipe_recv,
                                         .wait = pipe_wait};

static void net_open(struct net *net, int world, size_t most, size_t slice,
                     enum dtype type, double timeout_s)
{
    *net = (struct net){.world = world, .type = type, .key = 1};
    for (int r = 0; r < world; r++) {
        struct node *k = &net->nodes[r];
        k->net = net;
        k->links[LEFT].member = (r + world - 1) % world;
        k->links[RIGHT].member = (r + 1) % world;
        k->streams = (struct streams){.ops = &pipes,
                                      .name = "ring",
                                      .rank = r,
                                      .world = world,
                                      .n = 2,
                                      .links = k->links,
                                      .culprit = -1,
                                      .state = k};
        assert_int_equal(wire_open(&k->wire, most, slice), 0);
        k->flow = (struct flow){.streams = &k->streams,
                                .wire = &k->wire,
                                .ops = k->ops,
                                .depth = OPS,
                                .slice_bytes = slice,
                                .timeout_s = timeout_s,
                                .plan = {.grain = 1}};
        flow_open(&k->flow);
        for (int i = 0; i < OPS; i++)
            k->data[i] = mem_alloc(most, sizeof(float));
    }
}

static void net_close(struct net *net)
{
    for (int r = 0; r < net->world; r++) {
        wire_close(&net->nodes[r].wire);
        for (int i = 0; i < OPS; i++)
            mem_free(net->nodes[r].data[i]);
    }
}

// Exchange i has n + i elements. Every collective verb occurs, all-reduce three
// times.
static const enum group_verb verbs[OPS] = {
    GROUP_ALL_REDUCE, GROUP_ALL_REDUCE,     GROUP_REDUCE,    GROUP_BROADCAST,
    GROUP_ALL_REDUCE, GROUP_REDUCE_SCATTER, GROUP_ALL_GATHER};

static struct group_op op_make(const struct net *net, float *data, int i,
                               size_t n)
{
    bool sum = verbs[i] != GROUP_BROADCAST && verbs[i] != GROUP_ALL_GATHER;
    struct group_op op = {.verb = verbs[i],
                          .vector = group_floats(data, n + (size_t)i),
                          .peer = i % net->world};
    op.vector.wire = net->type;
    op.vector.scale = sum ? group_scale(net->type, net->world) : 1;
    return op;
}

static float value(int rank, int i, size_t e)
{
    return (float)((rank + 1) * (i + 3) + (int)(e * 5 % 17));
}

static float sum_of_all(const struct net *net, int i, size_t e)
{
    float sum = 0;
    for (int q = 0; q < net->world; q++)
        sum += value(q, i, e);
    return sum * group_scale(net->type, net->world);
}

static void check(const struct net *net, size_t n)
{
    for (int r = 0; r < net->world; r++) {
        for (int i = 0; i < OPS; i++) {
            const float *data = net->nodes[r].data[i];
            int root = i % net->world;
            for (int c = 0; c < net->world; c++) {
                struct group_chunk k =
                    group_chunk(n + (size_t)i, 1, net->world, c);
                for (size_t e = k.off; e < k.off + k.n; e++) {
                    float sum = sum_of_all(net, i, e);
                    if (verbs[i] == GROUP_ALL_REDUCE ||
                        (verbs[i] == GROUP_REDUCE && r == root) ||
                        (verbs[i] == GROUP_REDUCE_SCATTER && r == c))
                        assert_true(data[e] == sum);
                    else if (verbs[i] == GROUP_BROADCAST)
                        assert_true(data[e] == value(root, i, e));
                    else if (verbs[i] == GROUP_ALL_GATHER)
                        assert_true(data[e] == value(c, i, e));
                }
            }
        }
    }
}

static void run(struct net *net, size_t n)
{
    for (int done = 0; done < net->world;) {
        int r = (int)draw(net, (uint64_t)net->world);
        struct node *k = &net->nodes[r];
        uint64_t before = flow_done(&k->flow);
        if (k->posted < OPS && draw(net, 3) == 0) {
            struct group_op op = op_make(net, k->data[k->posted], k->posted, n);
            for (size_t e = 0; e < op.vector.n; e++)
                k->data[k->posted][e] = value(r, k->posted, e);
            flow_post(&k->flow, &op);
            k->posted++;
        }
        assert_int_equal(flow_advance(&k->flow), 0);
        done += before < OPS && flow_done(&k->flow) == OPS;
    }
}

static void every_verb_gives_its_result(void **state)
{
    (void)state;
    const size_t sizes[] = {1, 2, 5, 64, 301};
    const enum dtype types[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16};
    struct net *net = mem_alloc(1, sizeof *net);
    for (int world = 2; world <= MOST; world++) {
        for (int i = 0; i < 5; i++) {
            for (int t = 0; t < 3; t++) {
                size_t n = sizes[i];
                // bf16 holds integers up to 256, and half of each, exactly
                if (types[t] == DTYPE_BF16 && world > 3)
                    continue;
                net_open(net, world, n + OPS, 8 * (size_t)(i + 1), types[t],
                         60);
                run(net, n);
                check(net, n);
                for (int r = 0; r < world; r++) {
                    uint64_t law = 0;
                    const struct flow *f = &net->nodes[r].flow;
                    for (int k = 0; k < OPS; k++) {
                        struct group_op op = op_make(net, NULL, k, n);
                        law += plan_elements(&f->plan, &op, OUT) *
                               dtype_bytes(types[t]);
                    }
                    assert_int_equal(f->counted.bytes_out, law);
                }
                net_close(net);
            }
        }
    }
    mem_free(net);
}

// Posts on every worker but `away`, and advances those until `watched` fails.
static void advance_until_failure(struct net *net, int away, int watched)
{
    for (int r = 0; r < net->world; r++) {
        struct group_op op = op_make(net, net->nodes[r].data[0], 0, 50);
        if (r != away)
            flow_post(&net->nodes[r].flow, &op);
    }
    bool gone[MOST] = {0};
    while (!gone[watched]) {
        clock_ns += 1000000;
        for (int r = 0; r < net->world; r++) {
            struct flow *f = &net->nodes[r].flow;
            if (r == away || r == watched || gone[r])
                continue;
            if (flow_advance(f) || flow_wait(f, 0)) {
                flow_abort(f);
                gone[r] = true;
            }
        }
        struct flow *f = &net->nodes[watched].flow;
        gone[watched] = flow_advance(f) || flow_wait(f, 0);
    }
}

// Every worker names the one that is missing or dead, however far away it is.
static void the_missing_worker_is_blamed(void **state)
{
    (void)state;
    struct net *net = mem_alloc(1, sizeof *net);
    for (int dead = 0; dead < 2; dead++) {
        for (int watched = 1; watched < 5; watched++) {
            net_open(net, 5, 50 + OPS, 16, DTYPE_F32, 0.3);
            net->nodes[0].dead = dead;
            advance_until_failure(net, 0, watched);
            assert_non_null(strstr(fail_message(), "rank 0"));
            assert_int_equal(net->nodes[watched].streams.culprit, 0);
            net_close(net);
        }
    }
    mem_free(net);
}

// The right neighbour gave up and sent the rank that it blames. When our own
// deadline passes, too, that rank is blamed, and not the silent left neighbour.
static void a_neighbours_message_decides_the_blame(void **state)
{
    (void)state;
    struct net *net = mem_alloc(1, sizeof *net);
    net_open(net, 4, 50 + OPS, 16, DTYPE_F32, 0.05);
    struct flow *f = &net->nodes[2].flow;
    struct group_op op = op_make(net, net->nodes[2].data[0], 0, 50);
    const struct head gave_up = {.kind = HEAD_ABORT, .number = 0};
    flow_post(f, &op);
    assert_int_equal(flow_advance(f), 0);
    memcpy(net->pipes[2][RIGHT].bytes, &gave_up, sizeof gave_up);
    net->pipes[2][RIGHT].n = sizeof gave_up;
    clock_ns += 60 * 1000000;
    assert_int_equal(flow_wait(f, 0), -1);
    assert_non_null(strstr(fail_message(), "rank 0 failed, says rank 3"));
    assert_int_equal(net->nodes[2].streams.culprit, 0);
    net_close(net);
    mem_free(net);
}

// A malformed head, or one that is not due, ends the exchange.
static void malformed_heads_end_the_exchange(void **state)
{
    (void)state;
    struct net *net = mem_alloc(1, sizeof *net);
    const struct head bad[] = {
        {.kind = 0x1234},
        {HEAD_SLICE, .number = 1, .bytes = 8},        // another exchange
        {HEAD_SLICE, .message = 1, .bytes = 8},       // another message
        {HEAD_SLICE, .bytes = 0xfffffffffffffff0ull}, // far too long
        {HEAD_STUCK, .number = 77}, // blames a rank that does not exist
        {HEAD_ABORT, .number = 77},
        {HEAD_STUCK, .bytes = 8}, // has no payload
        {HEAD_MESSAGE, .bytes = 8},
    };
    for (int i = 0; i < 8; i++) {
        net_open(net, 2, 50 + OPS, 8, DTYPE_F32, 60);
        struct flow *f = &net->nodes[1].flow;
        struct group_op op = op_make(net, net->nodes[1].data[0], 0, 50);
        flow_post(f, &op);
        memcpy(net->pipes[1][LEFT].bytes, &bad[i], sizeof bad[i]);
        net->pipes[1][LEFT].n = sizeof bad[i];
        int rc = 0;
        for (int k = 0; !rc && k < 200; k++)
            rc = flow_advance(f);
        assert_int_equal(rc, -1);
        assert_non_null(strstr(fail_message(), "rank 0 sent"));
        net_close(net);
    }
    mem_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_verb_gives_its_result),
        cmocka_unit_test(the_missing_worker_is_blamed),
        cmocka_unit_test(a_neighbours_message_decides_the_blame),
        cmocka_unit_test(malformed_heads_end_the_exchange),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
