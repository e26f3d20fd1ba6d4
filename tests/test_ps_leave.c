// test_ps_leave.c - a worker that says BYE and closes is not one that died, in
// whatever order the server hears of the two.

#include "base/base.h"
#include "ps_server/server.h"
#include "ps_wire/job.h"
#include "ps_wire/wire.h"

#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "tests/test.h"

static const double timeout_s = 60;

// ---- a transport by hand: one worker, which says HELLO; its connection then
// is closed, and what it said last comes when somebody has noticed.

static struct {
    bool leaves; // it said BYE
    bool noticed;
    int said;
    uint8_t head[PS_HEAD], job[PS_JOB_BYTES];
    struct message message;
} by_hand;

static int open_hand(struct endpoint *m, const struct endpoint_config *c)
{
    (void)c;
    by_hand.message.endpoint = m;
    return 0;
}

static int send_hand(struct endpoint *m, const struct message_peer *to,
                     const void *head, size_t head_bytes,
                     const struct payload *data)
{
    struct ps_head h;
    (void)m;
    (void)to;
    if (data->sent)
        data->sent((void *)(uintptr_t)data->at, data->hint);
    assert_int_equal(ps_head_get(&h, head, head_bytes), 0);
    by_hand.noticed |= h.kind == PS_PING;
    return h.kind == PS_PING ? 1 : 0;
}

static struct message *say(struct ps_head h, const void *data)
{
    struct message *p = &by_hand.message;
    ps_head_put(by_hand.head, &h);
    p->from.n = 5;
    p->head = by_hand.head;
    p->head_bytes = PS_HEAD;
    p->data = (void *)(uintptr_t)data;
    p->bytes = h.bytes;
    by_hand.said++;
    return p;
}

static struct message *receive_hand(struct endpoint *m)
{
    (void)m;
    const struct ps_job job = {.world = 1,
                               .servers = 1,
                               .n = 100,
                               .slice = 256,
                               .timeout_s = timeout_s};
    size_t bytes = ps_job_put(by_hand.job, &job);
    if (by_hand.said == 0)
        return say((struct ps_head){.kind = PS_HELLO, .bytes = bytes},
                   by_hand.job);
    if (by_hand.said == 1 && by_hand.noticed && by_hand.leaves)
        return say((struct ps_head){.kind = PS_BYE}, "");
    return NULL;
}

static void drop_hand(struct message *p)
{
    (void)p;
}

static void wait_hand(struct endpoint *m, int ms)
{
    (void)m;
    usleep((useconds_t)ms * 1000);
}

static void close_hand(struct endpoint *m)
{
    (void)m;
}

static const struct message_ops hand = {
    .name = "hand",
    .notices = true,
    .state_size = 1,
    .open = open_hand,
    .send = send_hand,
    .receive = receive_hand,
    .drop = drop_hand,
    .wait = wait_hand,
    .close = close_hand,
};

static int serve(bool leaves)
{
    struct server *s;
    struct server_config config = {.transport = &hand,
                                   .bind = "",
                                   .curve = "",
                                   .index = -1,
                                   .threads = 1,
                                   .timeout_s = timeout_s};
    memset(&by_hand, 0, sizeof by_hand);
    by_hand.leaves = leaves;
    assert_int_equal(server_open(&s, &config), 0);
    int rc = server_run(s);
    server_close(&s);
    return rc;
}

static void the_last_words_are_heard_first(void **state)
{
    (void)state;
    assert_int_equal(serve(true), 0);
}

static void without_them_it_died(void **state)
{
    (void)state;
    assert_int_equal(serve(false), -1);
    assert_non_null(strstr(fail_message(), "worker rank 0 is gone: its "
                                           "connection closed"));
}

// ---- ZeroMQ: what a worker says before it closes arrives

enum { MESSAGES = 128, BYTES = 1 << 20 };

// More than the buffers hold, to a server that does not read yet.
static void speak_and_close(const char *address, int closing)
{
    static uint8_t data[BYTES];
    struct endpoint *e;
    struct endpoint_config config = {.curve = "", .timeout_s = timeout_s};
    struct message_peer to = message_server(0);
    uint8_t head[PS_HEAD] = {0};
    struct payload d = {.at = data, .bytes = BYTES};
    if (endpoint_open(&e, &message_zmq, &config) ||
        endpoint_connect(e, address))
        _exit(1);
    while (!endpoint_is_up(e, 0))
        endpoint_wait(e, 10);
    for (int i = 0; i < MESSAGES; i++)
        if (endpoint_send(e, &to, head, PS_HEAD, &d))
            _exit(1);
    if (write(closing, "", 1) != 1)
        _exit(1);
    endpoint_close(&e);
    _exit(0);
}

static void a_closing_worker_is_heard_out(void **state)
{
    (void)state;
    struct endpoint *e;
    struct endpoint_config config = {.bind = "tcp://127.0.0.1:0",
                                     .curve = "",
                                     .timeout_s = timeout_s};
    int ends[2], heard = 0;
    char byte;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(endpoint_open(&e, &message_zmq, &config), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        speak_and_close(e->address, ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    sleep(1); // longer than a server's own last words may take
    uint64_t since = now_ns();
    while (heard < MESSAGES && now_ns() - since < (uint64_t)(timeout_s * 1e9)) {
        struct message *m;
        endpoint_wait(e, 100);
        while ((m = endpoint_receive(e))) {
            heard += m->bytes == BYTES;
            message_drop(m);
        }
    }
    assert_int_equal(heard, MESSAGES);
    endpoint_close(&e);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_words_are_heard_first),
        cmocka_unit_test(without_them_it_died),
        cmocka_unit_test(a_closing_worker_is_heard_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
