"""Tests that a job survives unauthenticated connections to each of its ports.

    unauthenticated.py BIN [CONNECTIONS]

The test starts the processes of a job of two workers. The first job has a parameter server
without a secret of its own, which uses the secret of its user. The second job has a
rendezvous with a secret, and rank 0 listens.

Unauthenticated clients connect while the job waits for its last worker, and while it
trains. They send nothing, a byte now and then, random bytes, or a message without an end.
One client repeats the bytes that a worker sent. Another worker asks for a rank that is
already in use, and a worker of another user connects. The job must end as it would
without all this, and the listening process must have used little memory.
"""

import os
import pathlib
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

BIN = pathlib.Path(sys.argv[1]).resolve()
CONNECTIONS = int(sys.argv[2]) if len(sys.argv) > 2 else 200
LIMIT_S = 300
TINY = ["data=text.txt", "model=nano", "layers=1", "channels=32", "heads=2",
        "context=16", "batch=2", "eval=0", "log=0", "warmup=0", "threads=1",
        "samples=0", "trace=off", "timeout=250", "world=2"]
# The memory that one unauthenticated connection may take (ZeroMQ's buffers),
# and that any number of them may take on top (the slack of malloc).
KB_EACH, KB_SLACK = 8, 24 << 10
ENDLESS = 400 << 20  # bytes of a message without an end


def grown(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    return 0  # the process has just ended


def dial(port):
    s = socket.create_connection(("127.0.0.1", port), LIMIT_S)
    s.settimeout(LIMIT_S)
    return s


def say(s, data):
    """Sends data. Returns False if the other side has hung up."""
    try:
        s.sendall(data)
        return True
    except OSError:
        return False


def hear(s):
    try:
        return s.recv(64)
    except OSError:
        return b""


GREETING = b"\xff" + bytes(7) + b"\x01\x7f\x03\x00"


def say_nothing(port, dice):
    return [dial(port) for _ in range(CONNECTIONS)]


def say_nonsense(port, dice):
    open_ones = []
    for i in range(CONNECTIONS // 10):
        s = dial(port)
        begin = GREETING + b"PLAIN".ljust(52, b"\0") if i % 2 else b""
        say(s, begin + dice.randbytes(dice.randrange(1, 20000)))
        open_ones.append(s)
    return open_ones


def announce_much(port, dice):
    """Announces frames of up to 2^64-1 bytes, during the handshake or instead
    of it."""
    open_ones = []
    for size in (1 << 31, 1 << 40, (1 << 64) - 1):
        for begin in (GREETING + b"NULL".ljust(52, b"\0"),
                      GREETING + b"PLAIN".ljust(52, b"\0")):
            for flags in (b"\x02", b"\x03", b"\x06"):
                s = dial(port)
                say(s, begin + flags + size.to_bytes(8, "big") + bytes(1000))
                open_ones.append(s)
    return open_ones


def command(name, data):
    body = bytes([len(name)]) + name + data
    return b"\x04" + bytes([len(body)]) + body


def never_end(port, dice):
    """Sends a message in frames of 64 KiB. Each frame announces another."""
    open_ones = []
    frame = b"\x03" + (1 << 16).to_bytes(8, "big") + bytes(1 << 16)
    kind = b"\x0bSocket-Type\0\0\0\x06DEALER"
    for how, prove in ((b"NULL", command(b"READY", kind)),
                       (b"PLAIN", command(b"HELLO", b"\x01a\x01b") +
                        command(b"INITIATE", kind))):
        s = dial(port)
        going = say(s, GREETING + how.ljust(52, b"\0"))
        hear(s)  # as a real worker does: data that are sent too early are not read
        going = going and say(s, prove)
        for _ in range(ENDLESS >> 16):
            going = going and say(s, frame)
        open_ones.append(s)
    return open_ones


ATTACKS = say_nothing, say_nonsense, announce_much, never_end


class Trickle(threading.Thread):
    """Sends a greeting byte by byte, so that each connection is very slow."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.sockets = [dial(port) for _ in range(20)]
        self.over = threading.Event()

    def run(self):
        text = GREETING + b"PLAIN".ljust(52, b"\0")
        for byte in text * 100:
            for s in self.sockets:
                say(s, bytes([byte]))
            if self.over.wait(1):
                return

    def stop(self):
        self.over.set()
        self.join()
        for s in self.sockets:
            s.close()


class Tap(threading.Thread):
    """Passes a connection on to `port`, and keeps the bytes that its worker
    sends."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.to, self.said = self.listener.getsockname()[1], port, []

    def run(self):
        while True:
            s, _ = self.listener.accept()
            t = dial(self.to)
            said = bytearray()
            self.said.append(said)
            for a, b, keep in ((s, t, said), (t, s, None)):
                threading.Thread(target=self.carry, args=(a, b, keep),
                                 daemon=True).start()

    def carry(self, a, b, keep):
        try:
            while data := a.recv(65536):
                if keep is not None and len(keep) < 1 << 20:
                    keep += data
                b.sendall(data)
        except OSError:
            pass
        for s in a, b:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Job:
    def __init__(self, folder, sync):
        self.folder, self.sync, self.started = folder, sync, []
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("SLURM", "PMI", "RANK", "WORLD",
                                        "LOCKSTEP_SECRET"))}
        self.env["XDG_STATE_HOME"] = str(folder / "state")
        if sync == "ring":
            self.env["LOCKSTEP_SECRET"] = random.Random().randbytes(32).hex()
        self.env["PATH"] = f"{BIN}:{self.env['PATH']}"
        if sync == "sps":
            p = self.start("ps_server", "timeout=250", "world=2", "servers=1")
            line = p.stdout.readline().decode()
            self.listener, self.port = p, int(line.rsplit(":", 1)[1])
            threading.Thread(target=p.stdout.read, daemon=True).start()
        else:
            with socket.create_server(("127.0.0.1", 0)) as s:
                self.port = s.getsockname()[1]
            self.listener = self.worker(0)
            while not self.listens():
                assert self.listener.poll() is None
                time.sleep(0.02)

    def listens(self):
        try:
            dial(self.port).close()
            return True
        except OSError:
            return False

    def start(self, *words, **env):
        out = subprocess.PIPE if words[0] == "ps_server" else self.log()
        p = subprocess.Popen(words, env=self.env | env, cwd=self.folder, stdout=out,
                             stderr=self.log(), stdin=subprocess.DEVNULL)
        self.started.append(p)
        return p

    def log(self):
        return open(self.folder / f"log-{self.sync}.txt", "ab")

    def worker(self, rank, steps=2000, port=None, **env):
        at = f"tcp://127.0.0.1:{port or self.port}"
        where = f"servers={at}" if self.sync == "sps" else f"rendezvous={at}"
        return self.start("trainer", *TINY, f"sync={self.sync}", where,
                          f"rank={rank}", f"steps={steps}", f"out={self.sync}",
                          **env)

    def said(self):
        return (self.folder / f"log-{self.sync}.txt").read_text(errors="replace")

    def stop(self):
        for p in self.started:
            if p.poll() is None:
                p.kill()
            p.wait()


def rows(job, rank):
    path = job.folder / job.sync / f"steps.{rank}.csv"
    return path.read_text().count("\n") if path.exists() else 0


def hang_up(sockets):
    """Closes all sockets, and returns their number."""
    n = len(sockets)
    while sockets:
        sockets.pop().close()
    return n


def attack(job):
    dice = random.Random(1)
    before = grown(job.listener.pid)
    slow = Trickle(job.port)
    slow.start()
    count, held = 20, []
    tap = Tap(job.port)
    tap.start()
    for how in ATTACKS:
        held += how(job.port, dice)
    workers = [job.worker(1, port=tap.port)]
    if job.sync == "sps":
        workers.append(job.worker(0))
    while rows(job, 1) < 10:  # they train
        assert workers[0].poll() is None, job.said()
        time.sleep(0.05)
    workers[0].send_signal(signal.SIGSTOP)  # so that the job waits
    again = [dial(job.port) for _ in tap.said]
    for s, said in zip(again, tap.said):
        say(s, bytes(said))
    count += hang_up(held)
    for how in ATTACKS:
        held += how(job.port, dice)
    second = job.worker(1)
    user = job.worker(1, XDG_STATE_HOME=str(job.folder / "other"),
                      LOCKSTEP_SECRET="")
    assert second.wait(LIMIT_S) != 0 and user.wait(LIMIT_S) != 0
    assert "refused our key; try: the secret of its job" in job.said()
    assert all(p.poll() is None for p in job.started[:-2]), job.said()
    workers[0].send_signal(signal.SIGCONT)
    if job.sync != "sps":
        workers.append(job.listener)
    peak = before
    while any(p.poll() is None for p in workers):
        peak = max(peak, grown(job.listener.pid))
        time.sleep(0.05)
    assert not any(p.wait() for p in workers), job.said()
    slow.stop()
    count += hang_up(held) + hang_up(again)
    return before, peak, count


def main():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    need = CONNECTIONS * 3 // 2 + 1000
    if most < need:
        print(f"unauthenticated: SKIPPED: {need} descriptors are needed, and {most} "
              "are allowed")
        sys.exit(77)
    resource.setrlimit(resource.RLIMIT_NOFILE, (need, most))
    with tempfile.TemporaryDirectory(prefix="lockstep-unauthenticated-") as name:
        folder = pathlib.Path(name)
        (folder / "text.txt").write_text("the quick brown fox. " * 4000)
        for sync in "sps", "ring":
            job = Job(folder, sync)
            try:
                before, peak, count = attack(job)
                print(f"{sync}: {count} connections; {before} KiB before them, at "
                      f"most {peak} KiB")
                assert peak - before <= KB_EACH * count + KB_SLACK
            finally:
                job.stop()
    print("ok")


main()
