"""Runs the programs, and finds what a job leaves behind."""

import collections
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import time

ASK_S = 240  # for a command that is no job
WORK_S = 120  # that a job may work for, on a busy machine
START_S = 15  # that a start may take, with the pause before a restart
PATIENCE_S = 20  # for processes of a job that has ended
MARK = "LOCKSTEP_RANDOM_JOB"  # in the environment of all processes of a job
BUGS = re.compile(r"Sanitizer|[Aa]ssertion|CHECK\(|core dumped|Traceback|"
                  r"(rank|server) \d+: killed by signal (6|8|11)\b")  # mpirun has its own
SWEPT = re.compile(r"/lockstep-mpi-|^/run/netns/")  # left by killed launchers


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


class Job(subprocess.Popen):
    """A job that runs in `out`. After each start somebody may miss a peer for timeout=;
    there are 1 + restarts= starts. `shared`: the folders that its launcher has made in
    /dev/shm. On these it holds a lock, so its descriptors name them."""

    def __init__(self, words, out, settings, env):
        self.out, self.shared = out, set()
        self.most = WORK_S + (1 + settings.get("restarts", 0)) * \
            (settings["timeout"] + START_S)
        with open(f"{out}.txt", "w", encoding="utf-8") as log:
            super().__init__(words, stdout=log, stderr=subprocess.STDOUT,
                             stdin=subprocess.DEVNULL, start_new_session=True, env=env)

    def _look(self):
        """Finds the folders in /dev/shm. A launcher also opens those of other jobs, to
        see whether they are locked."""
        at = pathlib.Path(f"/proc/{self.pid}")
        try:
            for name in os.listdir(at / "fd"):
                path = os.readlink(at / "fd" / name)
                if path.startswith("/dev/shm/lockstep-") and \
                        "\nlock:" in (at / "fdinfo" / name).read_text(encoding="utf-8"):
                    self.shared.add(path.removesuffix(" (deleted)"))
        except OSError:  # it has ended, or has closed one
            pass

    def end(self):
        """Its exit status. Kills it if it is still there after its deadlines."""
        until = time.monotonic() + self.most
        while self.poll() is None:
            self._look()
            if time.monotonic() > until:
                who = kill_all(processes(self.out))
                self.wait()
                raise Wrong(f"{self.out.name}: still there after {self.most} s: {who}")
            time.sleep(.02)
        return self.returncode

    def left(self):
        """What is still there of its temporary files, emulated hosts and shared memory."""
        found = [str(p) for p in pathlib.Path(f"{self.out}.tmp").iterdir()]
        found += [str(p) for p in pathlib.Path("/run/netns").glob(f"ls{self.pid}-*")]
        return sorted(found + [p for p in self.shared if os.path.exists(p)])


class Lockstep:
    """The programs, and the text that all jobs train on."""

    def __init__(self, program, folder):
        self.program = str(pathlib.Path(program).resolve())
        self.folder = pathlib.Path(folder)
        self.disk = pathlib.Path(self.program).parents[1] / "libslow_disk.so"
        self.unswept = collections.defaultdict(list)  # of each folder, killed launchers
        words = random.Random(0)
        text = " ".join("".join(words.choices("etaoinshrdlu", k=words.randint(1, 9)))
                        for _ in range(20000))
        (self.folder / "text.txt").write_text(text)
        (self.folder / "symbol.txt").write_text("e" * len(text))

    def words(self, job, **more):
        """key=value for each setting."""
        return [f"{k}={v}" for k, v in {"data": str(self.folder / "text.txt"), **job,
                                        **more}.items()]

    def plans(self, jobs):
        """What `lockstep plan` says of jobs: an object each, with "error" if the job is
        refused."""
        done = subprocess.run([self.program, "plan"], capture_output=True, text=True,
                              input="".join(json.dumps(self.words(job)) + "\n"
                                            for job in jobs), timeout=60, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def plan(self, job):
        """The same of one job."""
        return self.plans([job])[0]

    def accepted(self, jobs):
        """Whether each of some jobs can start. A plan does not know that shared memory
        ends at an emulated host."""
        apart = ("hosts=" in job.get("net", "") and job.get("transport") == "shm"
                 for job in jobs)
        return [not far and "error" not in plan
                for far, plan in zip(apart, self.plans(jobs))]

    def accepts(self, job):
        """The same of one job."""
        return self.accepted([job])[0]

    def ask(self, *words):
        """Runs another command. Returns (exit status, output, last line of errors)."""
        done = subprocess.run([self.program, *map(str, words)], capture_output=True,
                              text=True, errors="replace", timeout=ASK_S,
                              check=False, stdin=subprocess.DEVNULL)
        if BUGS.search(done.stderr) or done.returncode < 0:
            raise Wrong(f"lockstep {words[0]}: exit status {done.returncode}: "
                        f"{done.stderr.strip()[-300:]}")
        return done.returncode, done.stdout, (done.stderr.strip().split("\n") or [""])[-1]

    def start(self, job, out, env=None, **more):
        """Starts a job. The caller waits for it by finish()."""
        temporary = pathlib.Path(f"{out}.tmp")
        temporary.mkdir(exist_ok=True)
        return Job([self.program, "train", *self.words(job, out=out, **more)], out,
                   {**job, **more}, {**os.environ, "TMPDIR": str(temporary),
                                     MARK: str(out), **(env or {})})

    def finish(self, job):
        """Waits for the end. Returns (exit status, last line)."""
        status, out = job.end(), job.out
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
        self._leaves_nothing(job, status)
        return status, line

    def _leaves_nothing(self, job, status):
        """Temporary files, emulated hosts and shared memory go with the job. A launcher
        that was killed leaves the hosts and what mpirun had; the next job in its folder
        removes them."""
        left = job.left() + [p for p in self.unswept.pop(job.out, []) if os.path.exists(p)]
        if status < 0:
            self.unswept[job.out] = [p for p in left if SWEPT.search(p)]
            left = [p for p in left if not SWEPT.search(p)]
        if left:
            raise Wrong(f"{job.out.name}: leaves {', '.join(left[:5])}")

    def train(self, job, out, env=None, **more):
        """Runs a job that must succeed."""
        status, line = self.finish(self.start(job, out, env, **more))
        if status:
            raise Wrong(f"{out.name}: exit status {status}: {line}")
        self.verify(out)

    def verify(self, out):
        """What a job left that ended well proves that it did: `lockstep verify`."""
        status, text, line = self.ask("verify", out)
        if status:
            lines = [line for line in text.split("\n") if line.startswith("WRONG")]
            raise Wrong(f"{out.name}: lockstep verify: {lines or line}")
