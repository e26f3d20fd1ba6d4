"""run.py - run one test in a process of its own, and read its result.

The result comes through a pipe that only the grader's program has. The student's code runs
in other processes, which that program starts. What it prints goes to a file. It is shown,
and never taken for a result.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

WALL_S = 600  # usually the limit of 5 s of processor time ends a test earlier
STUCK_S = 20  # without any work on any of a test's processes
MOST = 65536  # bytes of a result, and of the output that is shown
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:exitcode=99:allocator_may_return_null=1:"
                    "symbolize=0:disable_coredump=1",
    "UBSAN_OPTIONS": "print_stacktrace=0:exitcode=99:symbolize=0",
    "PATH": "/usr/bin:/bin",
}


class Result:
    """One test's result: whether it passed, the share of the points (0 .. 1), the message
    about the failure, its seconds, and what the student's code printed."""

    def __init__(self, passed, part, said, seconds, printed):
        self.passed, self.part, self.said = passed, part, said
        self.seconds, self.printed = seconds, printed


def read_all(fd):
    """The text in a pipe that nobody writes to any more."""
    os.set_blocking(fd, False)
    text = b""
    while len(text) < MOST:
        try:
            more = os.read(fd, MOST)
        except BlockingIOError:
            break
        if not more:
            break
        text += more
    return text.decode(errors="replace")


def work_of(group):
    """What the processes of a group have done: equal if they all sleep in between."""
    done = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(words[2]) == group:  # state, parent, group, .. utime, stime
            done.append((path, words[11:13]) if words[0] in "SZ" else object())
    return done


def await_end(process):
    """The status of a test's process. None if it lasts too long, or if all processes of its
    group wait for each other."""
    began = since = time.monotonic()
    was = None
    while time.monotonic() < since + STUCK_S:
        try:
            return process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            pass
        work = work_of(process.pid)
        if work != was and time.monotonic() < began + WALL_S:
            was, since = work, time.monotonic()
    return None


def place_of(program, printed):
    """" in f(), ring.c:12": the first address of a sanitizer's report that is in the
    student's file."""
    for address in re.findall(rf"\({re.escape(str(program.file))}\+(0x[0-9a-f]+)\)",
                              printed):
        done = subprocess.run(["addr2line", "-f", "-e", program.file, address],
                              capture_output=True, text=True, check=False)
        lines = done.stdout.split("\n") + ["", ""]
        path, _, line = lines[1].partition(":")
        if pathlib.Path(path).parent == pathlib.Path(program.file).parent:
            return f" in {lines[0]}(), {pathlib.Path(path).name}:{line.split()[0]}"
    return ""


def why_it_ended(status, printed, program):
    """The message for a test that gave no result. It names the line of the student's file
    if the output has one."""
    found = re.search(r"^.*runtime error: .*$", printed, re.M)
    if found:
        return found[0]
    found = re.search(r"ERROR: AddressSanitizer: (\S+)", printed)
    if found:
        return f"crashed: {found[1]}{place_of(program, printed)}"
    if status is None:
        return f"did nothing for {STUCK_S} s, or lasted {WALL_S} s; try: end every function"
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        return "used more than 5 s of processor time; try: look for an endless loop"
    if status == -signal.SIGXFSZ:
        return "printed more than 64 MiB; try: look for an endless loop"
    if status < 0:
        return f"crashed: {signal.Signals(-status).name}"
    last = [line for line in printed.strip().splitlines() if line][-1:]
    return f"ended early with status {status}" + (f": {last[0]}" if last else "")


def run_test(program, test, trace=None, csv=None, seed=0):
    """Run one test of a build.Program and return its Result. `trace` and `csv`: paths of
    files that check.c writes, or None. `seed` draws hidden cases; 0: none."""
    folder = pathlib.Path(program.file).parent
    result, its = os.pipe()
    files = [open(path, mode) if path else None
             for path, mode in ((trace, "wb"), (csv, "ab"))]
    fds = [its] + [f.fileno() if f else 0 for f in files]
    began = time.monotonic()
    with tempfile.NamedTemporaryFile() as out:
        # The ranks can add to their output, and no rank can read it.
        to = os.open(out.name, os.O_WRONLY | os.O_APPEND)
        process = subprocess.Popen(
            [program.judge, test, *map(str, fds), program.file, str(seed)],
            stdin=subprocess.DEVNULL, stdout=to, stderr=to, env=OPTIONS,
            start_new_session=True, cwd=folder,
            pass_fds=[fd for fd in fds if fd])
        os.close(to)
        os.close(its)
        status = await_end(process)
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        printed = out.read(MOST).decode(errors="replace")
    for f in files:
        if f:
            f.close()
    text = read_all(result)
    os.close(result)
    seconds = time.monotonic() - began
    try:
        answer = json.loads(text)
        # a file's own words could look like further lines of the table
        passed, said = answer["ok"] is True, str(answer["said"]).replace("\n", "\\n")
        part = min(1.0, max(0.0, float(answer["part"])))
    except (ValueError, KeyError, TypeError):
        passed, part, said = False, 0.0, why_it_ended(status, printed, program)
    if status != 0:
        passed, part, said = False, 0.0, why_it_ended(status, printed, program)
    return Result(passed, 1.0 if passed else part, said, seconds, printed)
