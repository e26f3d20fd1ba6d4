// test_ps_leave.c - a worker that sends BYE and closes its connection has not
// died, in whichever order the server learns of the two.

#include "base/base.h"
#include "ps_server/server.h"
#include "ps_wire/job.h"
#include "ps_wire/wire.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "tests/test.h"

static const double timeout_s = 60;

// ---- a fake transport

// Its one worker says HELLO and closes its connection. If the worker also says
// BYE, this arrives after the server has noticed the close.

static struct {
    bool leaves;  // the worker says BYE
    bool noticed; // the server has seen that the connection is closed
    int said;     // messages so far
    uint8_t head[PS_HEAD], job[PS_JOB_BYTES];
    struct message message;
} fake;

static int fake_open(struct endpoint *m, const struct endpoint_config *c)
{
    (void)c;
    fake.message.endpoint = m;
    return 0;
}

static int fake_send(struct endpoint *m, const struct message_peer *to,
                     const void *head, size_t head_bytes,
                     const struct payload *data)
{
    struct ps_head h;
    (void)m;
    (void)to;
    if (data->sent)
        data->sent((void *)(uintptr_t)data->at, data->hint);
    assert_int_equal(ps_head_get(&h, head, head_bytes), 0);
    fake.noticed |= h.kind == PS_PING;
    return h.kind == PS_PING ? 1 : 0;
}

static struct message *say(struct ps_head h, const void *data)
{
    struct message *p = &fake.message;
    ps_head_put(fake.head, &h);
    p->from.n = 5;
    p->head = fake.head;
    p->head_bytes = PS_HEAD;
    p->data = (void *)(uintptr_t)data;
    p->bytes = h.bytes;
    fake.said++;
    return p;
}

static struct message *fake_receive(struct endpoint *m)
{
    (void)m;
    const struct ps_job job = {.world = 1,
                               .servers = 1,
                               .n = 100,
                               .slice = 256,
                               .timeout_s = timeout_s};
    size_t bytes = ps_job_put(fake.job, &job);
    if (fake.said == 0)
        return say((struct ps_head){.kind = PS_HELLO, .bytes = bytes},
                   fake.job);
    if (fake.said == 1 && fake.noticed && fake.leaves)
        return say((struct ps_head){.kind = PS_BYE}, "");
    return NULL;
}

static void fake_drop(struct message *p)
{
    (void)p;
}

static void fake_wait(struct endpoint *m, int ms)
{
    (void)m;
    usleep((useconds_t)ms * 1000);
}

static void fake_close(struct endpoint *m)
{
    (void)m;
}

static const struct message_ops fake_transport = {
    .name = "fake",
    .notices = true,
    .state_size = 1,
    .open = fake_open,
    .send = fake_send,
    .receive = fake_receive,
    .drop = fake_drop,
    .wait = fake_wait,
    .close = fake_close,
};

static int serve(bool leaves)
{
    struct server *s;
    struct server_config config = {.transport = &fake_transport,
                                   .bind = "",
                                   .curve = "",
                                   .index = -1,
                                   .threads = 1,
                                   .timeout_s = timeout_s};
    memset(&fake, 0, sizeof fake);
    fake.leaves = leaves;
    assert_int_equal(server_open(&s, &config), 0);
    int rc = server_run(s);
    server_close(&s);
    return rc;
}

static void bye_before_the_close_is_no_death(void **state)
{
    (void)state;
    assert_int_equal(serve(true), 0);
}

static void a_close_without_bye_is_a_death(void **state)
{
    (void)state;
    assert_int_equal(serve(false), -1);
    assert_non_null(strstr(fail_message(), "worker rank 0 is gone: its "
                                           "connection closed"));
}

// ---- ZeroMQ: messages that a worker sends before it closes arrive

enum { MESSAGES = 128, BYTES = 1 << 20 };

// Hears the address of a server that does not read yet, and sends it more than
// the buffers hold.
static int speak_and_close(int parent)
{
    static uint8_t data[BYTES];
    struct endpoint *e;
    struct endpoint_config config = {.servers = 1,
                                     .curve = "",
                                     .timeout_s = timeout_s};
    struct message_peer to = message_server(0);
    uint8_t head[PS_HEAD] = {0};
    struct payload d = {.at = data, .bytes = BYTES};
    char address[sizeof e->address];
    if (read(parent, address, sizeof address) != sizeof address ||
        endpoint_open(&e, &message_zmq, &config) ||
        endpoint_connect(e, address))
        return 1;
    uint64_t since = now_ns();
    while (!endpoint_is_up(e, 0)) {
        if (now_ns() - since > (uint64_t)(timeout_s * 1e9))
            return 1;
        endpoint_wait(e, 10);
    }
    for (int i = 0; i < MESSAGES; i++)
        if (endpoint_send(e, &to, head, PS_HEAD, &d))
            return 1;
    if (write(parent, "", 1) != 1)
        return 1;
    endpoint_close(&e);
    return 0;
}

// The worker is forked before the endpoint has threads: a lock that a thread
// holds at that moment, such as malloc()'s, would stay locked in the worker.
static void messages_before_the_close_arrive(void **state)
{
    (void)state;
    struct endpoint *e;
    struct endpoint_config config = {.bind = "tcp://127.0.0.1:0",
                                     .curve = "",
                                     .timeout_s = timeout_s};
    int ends[2], arrived = 0, status;
    char byte;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        _exit(speak_and_close(ends[1]));
    }
    close(ends[1]);
    assert_int_equal(endpoint_open(&e, &message_zmq, &config), 0);
    assert_int_equal(write(ends[0], e->address, sizeof e->address),
                     sizeof e->address);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    sleep(1); // longer than a server's own last messages may take
    uint64_t since = now_ns();
    while (arrived < MESSAGES &&
           now_ns() - since < (uint64_t)(timeout_s * 1e9)) {
        struct message *m;
        endpoint_wait(e, 100);
        while ((m = endpoint_receive(e))) {
            arrived += m->bytes == BYTES;
            message_drop(m);
        }
    }
    assert_int_equal(arrived, MESSAGES);
    endpoint_close(&e);
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

// ZeroMQ itself listens at addresses only.
static void a_server_listens_at_the_name_of_a_host(void **state)
{
    (void)state;
    struct endpoint *e;
    struct endpoint_config config = {.bind = "tcp://localhost:0",
                                     .curve = "",
                                     .timeout_s = timeout_s};
    assert_int_equal(endpoint_open(&e, &message_zmq, &config), 0);
    assert_int_equal(strncmp(e->address, "tcp://127.", 10), 0);
    endpoint_close(&e);
    config.bind = "tcp://no host has this name:0";
    assert_int_equal(endpoint_open(&e, &message_zmq, &config), -1);
    assert_non_null(strstr(fail_message(), config.bind));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bye_before_the_close_is_no_death),
        cmocka_unit_test(a_close_without_bye_is_a_death),
        cmocka_unit_test(messages_before_the_close_arrive),
        cmocka_unit_test(a_server_listens_at_the_name_of_a_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
