"""Tests hosts=FILE with a real ssh: doctor, training, a connection that breaks.

    ssh_hosts.py BIN FOLDER

The test starts an sshd with new keys, at a free port of two loopback addresses:
these are the two hosts. The program is the system's sshd, or that of Debian's
package unpacked in FOLDER, which the long test (LOCKSTEP_LONG) downloads. Exit
status 77, with a line that says why, if there is no sshd.
"""

import csv
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from unpacked import unpack

BIN, CACHE = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
HOSTS = "127.0.0.1", "127.0.0.2"
TINY = ["data=text.txt", "model=nano", "layers=1", "channels=32", "heads=2",
        "context=16", "batch=2", "eval=0", "warmup=0", "threads=1", "samples=0",
        "trace=off", "timeout=120", "workers=2"]
LIMIT_S = 180  # a wait ends after this time at the latest, and the test fails

SSHD = """Port {port}
ListenAddress 127.0.0.1
ListenAddress 127.0.0.2
HostKey {dir}/host
AuthorizedKeysFile {dir}/user.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
MaxStartups 100
"""
SSH = """Host *
Port {port}
IdentityFile {dir}/user
IdentitiesOnly yes
UserKnownHostsFile {dir}/known
StrictHostKeyChecking accept-new
LogLevel ERROR
BatchMode yes
"""
# As root, sshd needs the user sshd and /run/sshd. They exist only in a mount
# namespace.
AS_ROOT = """mount -t tmpfs tmpfs /run && mkdir /run/sshd || exit
mount --bind {dir}/passwd /etc/passwd || exit
mount --bind {dir}/shadow /etc/shadow || exit
exec "$@"
"""


def skip(why):
    print(f"ssh_hosts: SKIPPED: {why}")
    sys.exit(77)


def find_sshd():
    """The path of sshd, and the folder with the libraries of its package."""
    own = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    if own:
        return own, ""
    root = CACHE / "root"
    if "LOCKSTEP_LONG" in os.environ:
        unpack(CACHE, ["openssh-server"], skip)
    if not (root / "complete").exists():
        skip("no sshd; try: apt-get install openssh-server, or ctest -C long")
    found = [str(path.parent) for path in root.glob("**/libwrap.so.0")]
    return str(root / "usr/sbin/sshd"), ":".join(found)


def wait_for(what, true):
    until = time.monotonic() + LIMIT_S
    while not true():
        assert time.monotonic() < until, f"{what}: not within {LIMIT_S} s"
        time.sleep(0.05)


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
        return True
    except OSError:
        return False


def start_sshd(folder):
    sshd, libraries = find_sshd()
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    for name in "host", "user":
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                        folder / name], check=True)
    for name, text in (("sshd_config", SSHD), ("ssh_config", SSH),
                       ("as_root", AS_ROOT)):
        (folder / name).write_text(text.format(port=port, dir=folder))
    words = [sshd, "-D", "-e", "-f", str(folder / "sshd_config")]
    if os.geteuid() == 0:
        users = [line for line in pathlib.Path("/etc/passwd").read_text()
                 .splitlines() if not line.startswith("sshd:")]
        users.append("sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n")
        (folder / "passwd").write_text("\n".join(users))
        # root is not locked here; Debian locks it if it is installed with sudo
        (folder / "shadow").touch(mode=0o600)
        (folder / "shadow").write_text("root:*:19000::::::\n"
                                       "sshd:!:19000::::::\n")
        words = ["unshare", "--mount", "sh", str(folder / "as_root"), *words]
    p = subprocess.Popen(
        words, env={**os.environ, "LD_LIBRARY_PATH": libraries},
        stdin=subprocess.DEVNULL, stderr=open(folder / "sshd.log", "wb"))
    while p.poll() is None and not answers(port):
        time.sleep(0.05)
    if p.poll() is not None:
        skip("sshd does not start here: " +
             (folder / "sshd.log").read_text().strip())
    return p


def below(pid):
    """Every process that descends from this one."""
    found = []
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(word) for word in path.read_text().split()]
        except OSError:
            continue
        for child in children:
            found += [child, *below(child)]
    return found


def words_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def trainers(pid):
    return [p for p in below(pid)
            if words_of(p) and words_of(p)[0].endswith(b"/trainer")]


class Place:
    def __init__(self, folder):
        self.folder, self.sshd = folder, start_sshd(folder)
        self.env = {k: v for k, v in os.environ.items() if k != "PBS_NODEFILE"}
        self.env["PATH"] = f"{BIN}:{self.env['PATH']}"
        self.env["LOCKSTEP_RSH"] = f"ssh -F {folder}/ssh_config"
        (folder / "text.txt").write_text("the quick brown fox. " * 4000)
        (folder / "hosts").write_text("".join(f"{h} slots=1\n" for h in HOSTS))

    def start(self, *words):
        return subprocess.Popen(["lockstep", *words], cwd=self.folder,
                                env=self.env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def run(self, *words):
        p = self.start(*words)
        said = p.communicate(timeout=LIMIT_S)[0]
        return p.returncode, said

    def losses(self, out):
        with open(self.folder / out / "steps.csv", encoding="utf-8") as f:
            return [(row["rank"], row["step"], row["loss"], row["grad_norm"])
                    for row in csv.DictReader(f)]

    def stop(self):
        self.sshd.terminate()  # and the sessions below it
        for pid in below(self.sshd.pid):
            os.kill(pid, signal.SIGKILL)
        self.sshd.wait()


def doctor_finds_all_well(place):
    rc, said = place.run("doctor", "hosts=hosts", "out=shared", "timeout=60")
    assert rc == 0, said
    for host in HOSTS:
        assert f"ok    {host}      answers; Lockstep" in said, said
        assert f"ok    {host}      shares out=shared" in said, said
    assert f"{HOSTS[0]} - {HOSTS[1]}" in said, said


def a_job_is_the_same_there(place):
    """Losses are the same with and without hosts=. For sps and ring lockstep starts
    the workers over ssh, for allreduce mpirun does."""
    for sync in "sps", "ring", "allreduce":
        for where in [], ["hosts=hosts"]:
            rc, said = place.run("train", *TINY, "steps=20", f"sync={sync}",
                                 f"out={sync}{len(where)}", *where)
            assert rc == 0, said
        assert place.losses(f"{sync}0") == place.losses(f"{sync}1"), sync


def secret_of(pid):
    for word in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
        if word.startswith(b"LOCKSTEP_SECRET="):
            return word.partition(b"=")[2]
    return b""


def break_connection(place, sync):
    out = f"broken-{sync}"
    p = place.start("train", *TINY, "steps=1000000", f"sync={sync}",
                    "hosts=hosts", f"out={out}")
    steps = place.folder / out / "steps.1.csv"
    wait_for("steps", lambda: p.poll() is not None or
             steps.exists() and steps.read_text().count("\n") > 5)
    far = trainers(place.sshd.pid)
    assert len(far) == 2, p.communicate()[0]
    secret = secret_of(far[0])
    assert len(secret) == 64
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        assert all(secret not in word for word in words_of(path.name))
    ssh = [pid for pid in below(p.pid) if words_of(pid)[:1] == [b"ssh"] and
           b"rank=1" in b" ".join(words_of(pid)).replace(b"'", b"")]
    assert len(ssh) == 1, ssh
    os.kill(ssh[0], signal.SIGKILL)
    said = p.communicate(timeout=LIMIT_S)[0]
    assert p.returncode == 1 and "rank 1" in said, said
    wait_for("nothing is left there", lambda: not trainers(place.sshd.pid))


def a_connection_may_break(place):
    """The job ends, names the rank, and leaves no process on the hosts."""
    for sync in "dps", "ring":
        break_connection(place, sync)


def a_refused_login_is_reported(place):
    (place.folder / "user").rename(place.folder / "away")
    for words in (["doctor", "hosts=hosts", "timeout=60"],
                  ["train", *TINY, "sync=sps", "hosts=hosts", "out=no"],
                  ["train", *TINY, "sync=ring", "hosts=hosts", "out=no"],
                  ["train", *TINY, "sync=allreduce", "hosts=hosts",
                   "out=no"]):
        rc, said = place.run(*words)
        assert rc == 1 and "Permission denied (publickey" in said, said
    (place.folder / "away").rename(place.folder / "user")


def main():
    if not shutil.which("ssh") or not shutil.which("ssh-keygen"):
        skip("no ssh; try: apt-get install openssh-client")
    with tempfile.TemporaryDirectory(prefix="lockstep-ssh-") as name:
        place = Place(pathlib.Path(name))
        try:
            for case in (doctor_finds_all_well, a_job_is_the_same_there,
                         a_connection_may_break, a_refused_login_is_reported):
                case(place)
                print(f"ok {case.__name__}", flush=True)
        finally:
            place.stop()


main()
