"""Tests srun, sbatch, scancel and the death of a node, under a Slurm of our own.

    slurm.py BIN SOURCE FOLDER

The test downloads Debian's packages into FOLDER and unpacks them there. It does
not install them or change the system. munge, slurmctld and two slurmd run in a
scratch folder, as this user, with ports and addresses that nobody else uses. The
test ends by process id what it started. The nodes have names, which only this test
knows; without root they have addresses. Exit status 77, with a line that says why,
if the packages cannot be downloaded.
"""

import csv
import ctypes
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from unpacked import unpack

BIN, SOURCE, CACHE = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
PACKAGES = ["munge", "slurmctld", "slurmd", "slurm-client"]
TINY = ["data=text.txt", "model=nano", "layers=1", "channels=32", "heads=2",
        "context=16", "batch=2", "eval=0", "log=0", "warmup=0", "threads=1",
        "samples=0", "trace=off", "timeout=60"]
LIMIT_S = 180  # a wait ends after this time at the latest, and the test fails

CONFIG = """ClusterName=lockstep
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={dir}/munge/socket,cred_expire=5
CredType=cred/munge
SlurmctldPort={port[0]}
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/%n.pid
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/%n
TmpFS={dir}/tmp-%n
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/%n.log
PluginDir={plugins}
PlugStackConfig=/dev/null
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
SlurmdTimeout=5
NodeName={node[0]} NodeHostname={host} NodeAddr=127.0.0.1 Port={port[1]} CPUs=8
NodeName={node[1]} NodeHostname={host} NodeAddr=127.0.0.1 Port={port[2]} CPUs=8
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def skip(why):
    print(f"slurm: SKIPPED: {why}")
    sys.exit(77)


def wait_for(what, true, seconds=LIMIT_S):
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, f"{what}: not within {seconds} s"
        time.sleep(0.05)


def free_ports(n):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def name_hosts(folder, addresses):
    """Give the addresses names in an /etc/hosts that only this process and its
    children see, and return the names."""
    if os.geteuid() != 0:
        print("slurm: the nodes have no names, because this is not root")
        return addresses
    names = [f"lockstep-node-{i}" for i in range(len(addresses))]
    hosts = folder / "hosts"
    hosts.write_text(pathlib.Path("/etc/hosts").read_text(encoding="utf-8") + "".join(
        f"{address} {name}\n" for address, name in zip(addresses, names)),
        encoding="utf-8")
    assert ctypes.CDLL(None).unshare(0x20000) == 0  # CLONE_NEWNS
    for words in ["--make-rprivate", "/"], ["--bind", str(hosts), "/etc/hosts"]:
        subprocess.run(["mount", *words], check=True)
    return names


def children(pid):
    """All descendants of a process. A process that loses its parent becomes a child
    of this test, which is the subreaper."""
    found = []
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            below = [int(word) for word in path.read_text().split()]
        except OSError:
            continue
        for child in below:
            found += [child, *children(child)]
    return found


def look_at(pid):
    """A process's name, state and parent. The name is "" if it has ended."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "", "Z", 0
    name, _, rest = text.partition("(")[2].rpartition(")")
    return name, rest.split()[0], int(rest.split()[1])


def kill_all(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Slurm:
    """A controller and two nodes on this machine."""

    def __init__(self, root, folder):
        self.folder, self.daemons = folder, {}
        # loopback addresses that no other process of this host uses
        pid = os.getpid()
        self.nodes = name_hosts(folder, [
            f"127.{1 + (pid >> 15) % 250}.{(pid >> 7) % 250}."
            f"{2 + 2 * (pid % 120) + i}" for i in range(2)])
        plugins = next(root.glob("usr/lib/*/slurm*/auth_munge.so")).parent
        library = f"{plugins}:{plugins.parent}"
        self.sbin = root / "usr" / "sbin"
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("SLURM", "PMI", "OMPI", "LOCKSTEP"))}
        self.env |= {
            "PATH": f"{BIN}:{root}/usr/bin:{os.environ['PATH']}",
            "LD_LIBRARY_PATH": library,
            "SLURM_CONF": str(folder / "slurm.conf"),
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_btl_tcp_if_include": "lo",  # both nodes are this host
            "OMP_NUM_THREADS": "1",
        }
        for name in "state", "munge", *(f"tmp-{node}" for node in self.nodes):
            (folder / name).mkdir(mode=0o700)
        user = subprocess.run(["id", "-un"], capture_output=True, text=True,
                              check=True).stdout.strip()
        (folder / "slurm.conf").write_text(CONFIG.format(
            host=socket.gethostname().split(".")[0], user=user, dir=folder,
            port=free_ports(3), node=self.nodes, plugins=plugins))
        (folder / "munge" / "key").write_bytes(os.urandom(1024))
        (folder / "munge" / "key").chmod(0o400)

    def program(self, name):
        return next(self.sbin.glob(f"{name}*"))

    def daemon(self, name, *words):
        log = open(self.folder / f"{name}.out", "ab")
        self.daemons[name] = subprocess.Popen(
            [str(word) for word in words], env=self.env, stdout=log, stderr=log,
            stdin=subprocess.DEVNULL, cwd=self.folder)
        log.close()

    def start_node(self, i):
        # -d: slurmd would look for slurmstepd where the package installs it
        self.daemon(f"slurmd{i}", self.program("slurmd"), "-D", "-N",
                    self.nodes[i], "-d", self.program("slurmstepd"))

    def start(self):
        munge = self.folder / "munge"
        self.daemon("munged", self.program("munged"), "--foreground", "--force",
                    *(f"--{key}={munge}/{name}" for key, name in
                      (("key-file", "key"), ("socket", "socket"),
                       ("pid-file", "pid"), ("log-file", "log"),
                       ("seed-file", "seed"))))
        wait_for("munged", (munge / "socket").exists)
        self.daemon("slurmctld", self.program("slurmctld"), "-D")
        for i in range(2):
            self.start_node(i)
        wait_for("two idle nodes", self.all_idle)

    def all_idle(self):
        return self.run("sinfo", "-h", "-N", "-o", "%T", check=False
                        ).stdout.split() == ["idle", "idle"]

    def run(self, *words, check=True):
        done = subprocess.run([str(word) for word in words], env=self.env,
                              capture_output=True, text=True, timeout=LIMIT_S,
                              stdin=subprocess.DEVNULL, cwd=self.folder)
        if check:
            assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done

    def submit(self, *words):
        """Submit a job with sbatch, and return its number."""
        out = self.run("sbatch", "--parsable", *words)
        return out.stdout.strip()

    def state(self, job):
        text = self.run("scontrol", "-o", "show", "job", job).stdout
        return re.search(r"JobState=(\w+)", text).group(1)

    def restarts(self, job):
        text = self.run("scontrol", "-o", "show", "job", job).stdout
        return int(re.search(r"Restarts=(\d+)", text).group(1))

    def said(self, job):
        path = self.folder / f"lockstep-{job}.txt"
        return path.read_text(errors="replace") if path.exists() else ""

    def ended(self, job):
        return self.state(job) not in ("PENDING", "CONFIGURING", "RUNNING",
                                       "COMPLETING")

    def await_end(self, job, state):
        wait_for(f"the end of job {job}", lambda: self.ended(job))
        assert self.state(job) == state, (self.state(job), self.said(job))

    def kill_node(self, i):
        """Kill the node's slurmd and all processes on the node. Return how many."""
        mine = f"SLURMD_NODENAME={self.nodes[i]}\0".encode()
        doomed = [self.daemons[f"slurmd{i}"].pid]
        for pid in children(os.getpid()):
            try:
                environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
            except OSError:
                continue
            if mine in environment + b"\0":
                doomed += [pid, look_at(pid)[2]]
        doomed = [pid for pid in doomed if pid and pid != os.getpid()]
        kill_all(doomed)
        self.daemons[f"slurmd{i}"].wait()
        return len(doomed)

    def stop(self):
        for name in "slurmctld", "slurmd0", "slurmd1", "munged":
            if name in self.daemons:
                self.daemons[name].kill()
                self.daemons[name].wait()
        while below := children(os.getpid()):  # steps are no children of slurmd
            kill_all(below)
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                pass


def rows(folder, rank):
    with open(folder / "steps.csv", newline="", encoding="utf-8") as f:
        return [row for row in csv.DictReader(f) if int(row["rank"]) == rank]


def steps_of(path):
    return path.read_text().count("\n") - 1 if path.exists() else 0


def srun_starts_workers(slurm):
    """Workers that srun starts find each other, and train the same parameters as
    workers that lockstep starts."""
    slurm.run(BIN / "lockstep", "train", *TINY, "sync=ring", "workers=2",
              "steps=6", "save=6", "out=alone")
    slurm.run("srun", "-N", "2", "-n", "2", "trainer", *TINY, "sync=ring",
              "steps=6", "save=6", "out=srun",
              f"rendezvous=tcp://{slurm.nodes[0]}:19900")
    files = [slurm.folder / out / "checkpoint-6" / "model.safetensors"
             for out in ("alone", "srun")]
    assert files[0].read_bytes() == files[1].read_bytes()
    done = slurm.run("srun", "-n", "2", "trainer", *TINY, "sync=ring",
                     "out=none", check=False)
    assert done.returncode != 0 and not (slurm.folder / "none").exists()
    assert "srun started 2 trainers, and Open MPI cannot join" in done.stderr, done
    done = slurm.run("srun", "-n", "2", "lockstep", "train", *TINY, "out=none",
                     check=False)
    assert done.returncode != 0 and not (slurm.folder / "none").exists()
    assert "lockstep train, which starts all workers itself" in done.stderr, done


def every_way_is_a_batch_job(slurm):
    script = SOURCE / "examples" / "slurm.sh"
    for sync in "sps", "dps", "ring", "allreduce":
        job = slurm.submit(script, f"sync={sync}", *TINY, "steps=6",
                           f"out=batch-{sync}")
        slurm.await_end(job, "COMPLETED")
        for rank in range(2):
            assert len(rows(slurm.folder / f"batch-{sync}", rank)) == 6
        assert not list(slurm.folder.glob(".lockstep-*"))  # secrets
    job = slurm.submit(script, "sync=gossip")
    slurm.await_end(job, "FAILED")
    assert "want sync=ring, zero, outer" in slurm.said(job)


def a_server_that_cannot_start_ends_the_job(slurm):
    """The workers would wait much longer for it than this test waits."""
    job = slurm.submit("--hold", SOURCE / "examples" / "slurm.sh", "sync=sps", *TINY,
                       "timeout=3600", "out=deaf")
    port = 20000 + int(job) % 10000
    with socket.create_server((socket.gethostbyname(slurm.nodes[0]), port)):
        slurm.run("scontrol", "release", job)
        slurm.await_end(job, "FAILED")
    assert "cannot listen on" in slurm.said(job), slurm.said(job)


def begin_long_job(slurm, sync, out):
    job = slurm.submit(SOURCE / "examples" / "slurm.sh", f"sync={sync}", *TINY,
                       "steps=100000000", "save=20", f"out={out}")
    folder = slurm.folder / out
    wait_for(f"{sync} at work",
             lambda: (folder / "latest").exists() or slurm.ended(job))
    assert not slurm.ended(job), slurm.said(job)
    return job


def nobody_works(slurm):
    """Whether no trainer and no server of this test runs."""
    for pid in children(os.getpid()):
        name, state, _ = look_at(pid)
        if name in ("trainer", "ps_server") and state != "Z":
            return False
    return True


def scancel_ends_it(slurm):
    for sync in "ring", "sps":
        job = begin_long_job(slurm, sync, f"cancelled-{sync}")
        slurm.run("scancel", job)
        slurm.await_end(job, "CANCELLED")
        wait_for("the end of its workers", lambda: nobody_works(slurm))


def a_node_dies(slurm):
    """Slurm starts the job again, and it continues from its last checkpoint."""
    job = begin_long_job(slurm, "ring", "died")
    folder = slurm.folder / "died"
    assert slurm.kill_node(1) > 1
    wait_for("the job in the queue again", lambda: slurm.restarts(job) == 1)
    wait_for("the end of its workers", lambda: nobody_works(slurm))
    had = (folder / "latest").read_text()
    slurm.start_node(1)
    wait_for("more steps", lambda: (folder / "latest").read_text() != had)
    assert f"resuming from died/{had}" in slurm.said(job), slurm.said(job)
    slurm.run("scancel", job)
    slurm.await_end(job, "CANCELLED")
    wait_for("the end of its workers", lambda: nobody_works(slurm))
    first = int(had.split("-")[1])
    for rank in range(2):
        text = (folder / f"steps.{rank}.csv").read_text().splitlines()[1:]
        steps = [int(line.split(",")[3]) for line in text]
        assert steps == list(range(1, len(steps) + 1)), steps[:first + 9]
        assert len(steps) > first, (len(steps), first)


def main():
    root = unpack(CACHE, PACKAGES, skip)
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    with tempfile.TemporaryDirectory(prefix="lockstep-slurm-") as name:
        slurm = Slurm(root, pathlib.Path(name))
        text = (SOURCE / "README.md").read_text(encoding="utf-8")
        (slurm.folder / "text.txt").write_text(text * 6, encoding="utf-8")
        try:
            slurm.start()
            srun_starts_workers(slurm)
            every_way_is_a_batch_job(slurm)
            a_server_that_cannot_start_ends_the_job(slurm)
            scancel_ends_it(slurm)
            a_node_dies(slurm)
        except BaseException:
            for log in [*slurm.folder.glob("*.log"),
                        *slurm.folder.glob("lockstep-*.txt")]:
                print(f"== {log.name}\n" + log.read_text(errors="replace")[-2000:])
            raise
        finally:
            slurm.stop()
    print("ok")


main()
