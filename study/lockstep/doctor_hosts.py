"""lockstep doctor hosts=FILE: can a job run on these hosts? It reaches each host as a job
reaches its workers, and starts `lockstep probe` there (doctor/probe.c), which answers
questions. Then pairs of hosts measure their links. Every wait has a deadline.
"""

import contextlib
import ctypes
import os
import secrets
import select
import signal
import statistics
import subprocess
import time

from .core import Core, key
from .doctor import LACK, OK, WITHOUT
from .files import Error, make_folder, visible

ALL = "lockstep doctor --help"
# With at most so many hosts the links of all pairs are measured; with more, only the link
# from each host to the next one, in a circle.
ALL_PAIRS = 8
ASKED = 7  # how many times a host is asked for its time
CLOCK_OFF_S, SLOW_LINK = .1, .5
LINK_WAIT_S = 5  # the longest wait of one side of a link for the other
TEXT = 1024  # bytes of a question or an answer

ROWS = [
    key("doctor", "hosts", "", "text", "an mpirun hostfile: check these hosts", unit="path"),
    key("doctor", "out", "runs", "text",
        "with hosts=: the folder that all of them should share", unit="path"),
    key("doctor", "timeout", "15", "number", "with hosts=: the longest wait for a host",
        min=.1, max=3600, unit="s"),
]


class Probe:
    """`lockstep probe` on a host, started as a worker would be."""

    def __init__(self, host):
        self.host, self.asked, self.text, self.last = host, 0, b"", ""
        self.iface = ""
        self.child = subprocess.Popen(
            host["reach"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, bufsize=0, process_group=0,
            preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL))
        os.set_blocking(self.child.stdout.fileno(), False)

    @property
    def name(self):
        """Of the host."""
        return self.host["name"]

    def ask(self, *question):
        """Sends a question. If the probe has ended, take() says why."""
        line = "\t".join(map(str, question)) + "\n"
        if len(line) >= TEXT:
            raise Error(f"a question of more than {TEXT} bytes")
        self.asked += 1
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.write(os.fsencode(line))

    def _line(self):
        """The next whole line; None if there is none yet."""
        line, end, rest = self.text.partition(b"\n")
        if not end and len(self.text) < TEXT:
            return None
        self.text = rest
        return line[:TEXT].decode("utf-8", "replace").partition("\r")[0]

    def take(self, until):
        """The answer, by the time `until`. Late answers to earlier questions are
        skipped."""
        while True:
            while (line := self._line()) is not None:
                mark, _, answer = line.partition(" ")
                if mark != "@answer":
                    self.last = visible(line[:255])
                    continue
                # An older Lockstep answers without a number. The first answer tells its
                # version, and then it gets no more questions.
                number, tab, text = answer.partition("\t")
                if tab and number.isdigit():
                    if int(number) < self.asked:
                        continue
                    answer = text
                if answer.startswith("error "):
                    raise Error(answer.removeprefix("error "))
                return answer
            # Reads once even after `until`: waiting for other hosts may have taken the
            # time.
            left = max(0, until - time.monotonic())
            ready, _, _ = select.select([self.child.stdout], [], [], left)
            if not ready and not left:
                raise Error("no answer in time" + f": {self.last}" * bool(self.last))
            more = self.child.stdout.read(TEXT) if ready else None
            if more == b"":
                raise Error(self.last or "it ended without a message")
            self.text += more or b""

    def close(self):
        """Ends the probe's input. Kills it if it has not ended a second later."""
        with contextlib.suppress(OSError):
            self.child.stdin.close()
        self.child.stdout.close()
        try:
            self.child.wait(1)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.child.pid, signal.SIGKILL)
            self.child.wait()


def _rate(size):
    """Of bytes a second, in the form that link= of `lockstep predict` reads."""
    mbit = size * 8e-6
    return f"{mbit / 1000:.3g}gbit" if mbit >= 1000 else f"{mbit:.3g}mbit"


class Visit:
    """All hosts, and what was found about them."""

    def __init__(self, find, core, values):
        self.find, self.out = find, values["out"]
        self.timeout = float(values["timeout"])
        found = core.ask("hosts", values["hosts"])
        self.own, self.loopback, self.hosts = (found[k] for k in ("version", "loopback",
                                                                  "hosts"))
        self.all, self.probes, self.rates = [], [], []  # probes: those that answer

    def _until(self):
        return time.monotonic() + self.timeout

    def _failed(self, name, what, why, remedy=""):
        self.find.say(LACK, name, f"{what}: {str(why)[:400]}", remedy)

    def _ask(self, probe, *question):
        """An answer; None after a failure was reported as a finding."""
        try:
            probe.ask(*question)
            return probe.take(self._until())
        except Error as why:
            self._failed(probe.name, question[0], why)
            return None

    def greet(self):
        """Looks up all hosts and starts their probes."""
        for host in self.hosts:
            if host["why"]:
                self._failed(host["name"], "no address", host["why"])
        if self.loopback:
            self.find.say(LACK, "hosts=", self.loopback)
        until = self._until()  # one deadline: all start at the same time
        for host in self.hosts:
            if host["why"]:
                continue
            try:
                self.all.append(Probe(host))
                self.all[-1].ask("hello")
            except OSError as why:
                self._failed(host["name"], "cannot be reached", why)
        for probe in self.all:
            try:
                answer = probe.take(until)
            except Error as why:
                self._failed(probe.name, "cannot be reached", why,
                             "ssh without a password, and this folder and Lockstep at the "
                             "same paths there")
                continue
            self.probes.append(probe)
            self._version(probe, *answer.partition("\t")[::2])

    def _version(self, probe, version, cores):
        slots = probe.host["slots"]
        if version != self.own:
            self.find.say(LACK, probe.name,
                          f"has Lockstep {visible(version[:100])}; this host has {self.own}",
                          "install the same build at the same path on all hosts")
            return
        n = int(cores) if cores.isdigit() else 0
        self.find.say(OK if n >= slots else WITHOUT, probe.name,
                      f"answers; Lockstep {self.own}, {n} core{'s' * (n != 1)}, "
                      f"slots={slots}",
                      "at most as many slots as cores, or workers share cores")

    def clock(self, probe):
        """Compares a host's clock with ours. It reads its clock at some time between
        question and answer, so the fastest answer is the most exact."""
        least = off = None
        for _ in range(ASKED):
            began = time.time()
            answer = self._ask(probe, "time")
            ended = time.time()
            if answer is None:
                return
            if least is None or ended - began < least:
                least = ended - began
                off = float(answer) * 1e-9 - (began + ended) / 2
        sure = abs(off) - least / 2
        how = f"is {abs(off):.4g} s {'behind' if off < 0 else 'ahead of'}" if sure > 0 else \
            "agrees with"
        self.find.say(OK if sure < CLOCK_OFF_S else WITHOUT, probe.name,
                      f"its clock {how} this host's, to within {least * 500:.2g} ms",
                      "a time service (chrony): logs and folder names contain the time")

    def interface(self, probe):
        """The interface that has the host's address."""
        address = probe.host["address"]
        words = (self._ask(probe, "iface", address) or "").split()
        if len(words) != 2:
            return
        name, mbit = words
        if name == "-":
            self.find.say(LACK, probe.name, f"none of its interfaces has {address}",
                          "in the hostfile, the address at which other hosts reach it")
            return
        probe.iface = name
        self.find.say(OK, probe.name, f"{address} is its interface {visible(name)}" +
                      f", of {mbit} Mbit/s" * (mbit != "0"))

    def interfaces(self):
        """Whether one iface= names the interface of each host."""
        names = list(dict.fromkeys(p.iface for p in self.probes if p.iface))
        if len(names) > 1:
            self.find.say(WITHOUT, "iface=", f"{names[0]} on one host, {names[1]} on another",
                          "with sps and dps, no iface=; other backends need one name on all "
                          "hosts")
        elif names:
            self.find.say(OK, "iface=", f"iface={names[0]} on all hosts")

    def _folder(self, probe, folder, token):
        why = None
        try:
            probe.ask("look", folder, token, self.all.index(probe))
            seen = probe.take(self._until()) == "seen"
        except Error as reason:
            why = reason
        try:
            os.unlink(os.path.join(folder, f"{token}.{self.all.index(probe)}"))
            here = True
        except OSError:
            here = False
        good = why is None and seen and here
        text = f"out={self.out[:150]}: {str(why)[:300]}" if why else \
            f"shares out={self.out}" if good else f"out={self.out} is another folder there"
        self.find.say(OK if good else LACK, probe.name, text,
                      "one file system, mounted at the same path on all hosts")

    def folders(self):
        """Whether all hosts see a file in out=, and we see theirs."""
        made = not os.path.lexists(self.out)
        make_folder(self.out)
        folder, token = os.path.realpath(self.out), f".doctor-{secrets.token_hex(8)}"
        path = os.path.join(folder, token)
        try:
            with open(path, "xb"):
                pass
        except OSError as e:
            raise Error(f"out={visible(folder)}: {e.strerror}; try: a folder that you may "
                        "write to") from None
        try:
            for probe in self.probes:
                self._folder(probe, folder, token)
        finally:
            os.unlink(path)
            if made:
                with contextlib.suppress(OSError):
                    os.rmdir(self.out)

    def _measure(self, a, b):
        """(seconds of latency, bytes/s there, bytes/s back) from a to b."""
        token = secrets.token_hex(16)
        b.ask("listen", b.host["address"], token)
        port = b.take(self._until())
        b.ask("accept", f"{self.timeout:g}")
        a.ask("link", b.host["address"], port, token)
        until = self._until() + 4 * LINK_WAIT_S
        try:
            answer = a.take(until)
        except Error:
            with contextlib.suppress(Error):
                b.take(until)
            raise
        b.take(until)
        try:
            latency, there, back = map(float, answer.split())
        except ValueError:
            raise Error(f"not a measurement of a link: {visible(answer)[:400]}") from None
        return latency, there, back

    def link(self, a, b):
        """Measures the link of a pair."""
        what = f"{a.name} - {b.name}"
        try:
            latency, there, back = self._measure(a, b)
        except Error as why:
            self.find.say(LACK, what, str(why)[:400],
                          "open the firewall between them: workers and servers listen at "
                          "ports that the system chooses")
            return
        least = min(there, back)
        # A link is slow by comparison with the links measured so far.
        slow = self.rates and least < SLOW_LINK * statistics.median(self.rates)
        self.rates.append(least)
        self.find.say(WITHOUT if slow else OK, what,
                      f"{latency * 1e6:.3g} us, {_rate(there)} there, {_rate(back)} back",
                      "this link has less than half the rate of the others: check cable and "
                      "switch port, or another interface in the hostfile")

    def links(self):
        """Measures the links of pairs."""
        n = len(self.hosts)
        place = {id(p.host): p for p in self.probes}
        for a in range(n):
            for b in range(a + 1, n):
                pair = [place.get(id(self.hosts[i])) for i in (a, b)]
                near = b == a + 1 or (a == 0 and b == n - 1)
                if all(pair) and (n <= ALL_PAIRS or near):
                    self.link(*pair)
        if self.rates:
            self.find.say(OK, "links",
                          f"link={_rate(statistics.median(self.rates))} between two hosts")

    def close(self):
        """Ends all probes."""
        for probe in self.all:
            probe.close()


def check(find, words):
    """Checks the hosts of hosts=FILE."""
    with Core() as core:
        values = core.ask("words", ROWS, ALL, *words)
        if not values["hosts"]:
            raise Error("doctor: hosts=FILE is missing; try: lockstep doctor --help")
        visit = Visit(find, core, values)
    try:
        visit.greet()
        for probe in visit.probes:
            visit.clock(probe)
        for probe in visit.probes:
            visit.interface(probe)
        visit.interfaces()
        visit.folders()
        visit.links()
    finally:
        visit.close()
