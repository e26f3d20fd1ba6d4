"""Runs the programs, and finds what a job leaves behind."""

import json
import os
import pathlib
import random
import re
import signal
import subprocess
import time

DEADLINE_S = 240  # for one job; its own timeout= is at most 60 s
PATIENCE_S = 20  # for processes of a job that has ended
MARK = "LOCKSTEP_RANDOM_JOB"  # in the environment of all processes of a job
BUGS = re.compile(r"Sanitizer|[Aa]ssertion|CHECK\(|core dumped|Traceback|"
                  r"(rank|server) \d+: killed by signal (6|8|11)\b")  # mpirun has its own


class Wrong(Exception):
    """What a case did that it must not do."""


def processes(out):
    """The processes of a job, by the mark in their environment."""
    want, found = f"{MARK}={out}".encode(), []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if want in (path / "environ").read_bytes().split(b"\0") and \
                    (path / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                found.append(int(path.name))
        except OSError:
            continue
    return sorted(found)


def command(pid):
    """The command line of a process; "" if it has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def kill_all(pids):
    """Kills processes of a job. Returns what they were."""
    who = [f"{pid} {command(pid)[:60]}" for pid in pids]
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return who


class Lockstep:
    """The programs, and the text that all jobs train on."""

    def __init__(self, program, folder):
        self.program = str(pathlib.Path(program).resolve())
        self.folder = pathlib.Path(folder)
        self.disk = pathlib.Path(self.program).parents[1] / "libslow_disk.so"
        words = random.Random(0)
        text = " ".join("".join(words.choices("etaoinshrdlu", k=words.randint(1, 9)))
                        for _ in range(20000))
        (self.folder / "text.txt").write_text(text)

    def words(self, job, **more):
        """key=value for each setting."""
        return [f"{k}={v}" for k, v in {"data": str(self.folder / "text.txt"), **job,
                                        **more}.items()]

    def plan(self, job):
        """What `lockstep plan` says of a job: an object with "error" if it is refused."""
        done = subprocess.run([self.program, "plan"], capture_output=True, text=True,
                              input=json.dumps(self.words(job)) + "\n", timeout=60,
                              check=True)
        return json.loads(done.stdout)

    def accepts(self, job):
        """Whether a job can start."""
        return "error" not in self.plan(job)

    def ask(self, *words):
        """Runs another command. Returns (exit status, output, last line of errors)."""
        done = subprocess.run([self.program, *map(str, words)], capture_output=True,
                              text=True, errors="replace", timeout=DEADLINE_S,
                              check=False, stdin=subprocess.DEVNULL)
        if BUGS.search(done.stderr) or done.returncode < 0:
            raise Wrong(f"lockstep {words[0]}: exit status {done.returncode}: "
                        f"{done.stderr.strip()[-300:]}")
        return done.returncode, done.stdout, (done.stderr.strip().split("\n") or [""])[-1]

    def start(self, job, out, env=None, **more):
        """Starts a job. The caller waits for it by finish()."""
        temporary = pathlib.Path(f"{out}.tmp")
        temporary.mkdir(exist_ok=True)
        with open(f"{out}.txt", "w", encoding="utf-8") as log:
            return subprocess.Popen(
                [self.program, "train", *self.words(job, out=out, **more)], stdout=log,
                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "TMPDIR": str(temporary), MARK: str(out),
                     **(env or {})})

    def finish(self, child, out):
        """Waits for the end. Returns (exit status, last line)."""
        try:
            status = child.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            who = kill_all(processes(out))
            child.wait()
            raise Wrong(f"{out.name}: still there after {DEADLINE_S} s: {who}") from None
        patience = time.monotonic() + PATIENCE_S
        while (left := processes(out)) and time.monotonic() < patience:
            time.sleep(.1)
        if left:
            raise Wrong(f"{out.name}: leaves processes: {kill_all(left)}")
        text = pathlib.Path(f"{out}.txt").read_text(errors="replace").strip()
        if found := BUGS.search(text):
            at = text.count("\n", 0, found.start())
            raise Wrong(f"{out.name}: {text.splitlines()[at]}")
        line = text.rpartition("\n")[2]
        if status > 0 and not line.startswith("lockstep: "):
            raise Wrong(f"{out.name}: exit status {status}, but its last line is: {line}")
        if status >= 0:
            self._leaves_nothing(child.pid, out)
        return status, line

    @staticmethod
    def _leaves_nothing(pid, out):
        """Temporary files, emulated hosts and shared memory go with the job."""
        left = sorted(p.name for p in pathlib.Path(f"{out}.tmp").iterdir())
        left += [p.name for p in pathlib.Path("/run/netns").glob(f"ls{pid}-*")]
        if left:
            raise Wrong(f"{out.name}: leaves {', '.join(left[:5])}")

    def train(self, job, out, env=None, **more):
        """Runs a job that must succeed."""
        status, line = self.finish(self.start(job, out, env, **more), out)
        if status:
            raise Wrong(f"{out.name}: exit status {status}: {line}")
        self.verify(out)

    def verify(self, out):
        """What a job left that ended well proves that it did: `lockstep verify`."""
        status, text, line = self.ask("verify", out)
        if status:
            lines = [line for line in text.split("\n") if line.startswith("WRONG")]
            raise Wrong(f"{out.name}: lockstep verify: {lines or line}")
