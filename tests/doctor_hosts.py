"""Tests lockstep doctor hosts=FILE, with a script instead of ssh.

    doctor_hosts.py LOCKSTEP

Each host is this one, under another address of the loopback. Some hosts report a
wrong version, clock or folder, and some do not answer.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

LOCKSTEP = str(pathlib.Path(sys.argv[1]).resolve())
GOOD, ALSO, OLD, LATE, GONE, SILENT, APART, TWICE = (
    f"127.0.0.{i}" for i in range(1, 9))
NOBODY = "nobody.invalid"  # RFC 6761: no name server knows it

# Takes the place of ssh: HOST COMMAND. Each question and each answer is a line.
RSH = f"""#!{sys.executable}
import os, subprocess, sys, time
host, command = sys.argv[1], " ".join(sys.argv[2:])
open(f"{{os.environ['PIDS']}}/{{os.getpid()}}", "w").close()
if host == "{GONE}":
    sys.exit("ssh: connect to host: No route to host")
if host == "{SILENT}":
    time.sleep(600)
p = subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE,
                     stdout=subprocess.PIPE, text=True)
answer = ""
for question in sys.stdin:
    if host == "{TWICE}":
        sys.stdout.write(answer)  # again, before the next answer
    if host == "{APART}":
        question = question.replace("/shared\\t", "/elsewhere\\t")
    p.stdin.write(question)
    p.stdin.flush()
    answer = p.stdout.readline()
    if host == "{OLD}" and question == "hello\\n":
        answer = "@answer 0.0.1\\t2\\n"  # that version sent no numbers
    if host == "{LATE}" and question == "time\\n":
        _, number, time_ns = answer.split()
        answer = f"@answer {{number}}\\t{{int(time_ns) + 5000000000}}\\n"
    sys.stdout.write(answer)
    sys.stdout.flush()
p.stdin.close()
p.wait()
"""

complaints = []


def doctor(folder, hosts, *words):
    (folder / "hosts").write_text("".join(f"{h}\n" for h in hosts))
    # by its name alone: blanks divide words, and the folder's path may have some
    env = {**os.environ, "LOCKSTEP_RSH": "rsh", "PATH": f"{folder}:{os.environ['PATH']}",
           "PIDS": str(folder / "pids")}
    done = subprocess.run([LOCKSTEP, "doctor", "hosts=hosts", *words], cwd=folder,
                          env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=120,
                          check=False)
    return done.returncode, done.stdout


def expect(said, *lines):
    for pattern in lines:
        if not re.search(f"^{pattern}", said, re.M):
            complaints.append(f"no {pattern!r} in:\n{said}")


def all_is_well(folder):
    status, said = doctor(folder, [GOOD, ALSO], "out=shared")
    expect(said, rf"ok +{GOOD} +answers; Lockstep \S+", rf"ok +{ALSO} +answers",
           rf"ok +{ALSO} +its clock agrees", rf"ok +{GOOD} +shares out=shared",
           rf"ok +{ALSO} +shares out=shared", r"ok +iface= +iface=lo on all",
           rf"(ok|-) +{GOOD} - {ALSO} [\d.e+-]+ us, [\d.e+]+[gm]bit there, [\d.e+]+[gm]",
           "Nothing is missing for a job on these hosts")
    if status or re.search("^LACK", said, re.M):
        complaints.append(f"status {status} of good hosts:\n{said}")


def each_lie_is_found(folder):
    hosts = [GOOD, NOBODY, OLD, LATE, GONE, APART]
    status, said = doctor(folder, hosts, "out=shared", "timeout=60")
    expect(said, rf"LACK +{OLD} +has Lockstep 0\.0\.1; this host has \d",
           rf"- +{LATE} +its clock is (5(\.\d+)?|4\.9\d*) s ahead of this host",
           rf"LACK +{NOBODY} +no address: hosts: {NOBODY}: .*; try: its add",
           rf"LACK +{GONE} +cannot be reached: ssh: .*: No route to host",
           rf"LACK +{APART} +out=shared is another folder there",
           rf"ok +{GOOD} +shares out=shared", rf"(ok|-) +{GOOD} - {APART} ",
           "4 things are missing for a job on these hosts")
    for host in GONE, NOBODY:
        if re.search(rf"{host} - | - {host}|{host} +(its clock|shares)", said):
            complaints.append(f"{host} does not answer, but is tested:\n{said}")
    if status != 1 or len(re.findall(" try: ", said)) < 4:
        complaints.append(f"status {status}, or a lack without a remedy:\n{said}")
    status, said = doctor(folder, [SILENT], "out=shared", "timeout=0.5")
    expect(said, rf"LACK +{SILENT} +cannot be reached: no answer in time",
           "1 thing is missing for a job on these hosts")


def what_is_late_answers_nothing(folder):
    """A host sends its last answer again. doctor does not take it for the next one."""
    status, said = doctor(folder, [GOOD, TWICE], "out=shared")
    expect(said, rf"ok +{TWICE} +answers", rf"ok +{TWICE} +its clock agrees",
           rf"ok +{TWICE} +{TWICE} is its interface lo", rf"ok +{TWICE} +shares out=shared",
           rf"(ok|-) +{GOOD} - {TWICE} [\d.e+-]+ us, [\d.e+]+[gm]bit there")
    if status:
        complaints.append(f"status {status} of late answers:\n{said}")


def loopback_is_told(folder):
    """Debian gives a host's own name a loopback address, which no other host can
    reach. doctor says so."""
    status, said = doctor(folder, [GOOD, "192.0.2.1"], "out=shared")
    expect(said, rf"LACK +hosts= +hosts: {GOOD} is {GOOD}, which the other hosts "
           "cannot reach; try: its address on the network")
    if status != 1:
        complaints.append(f"status {status} with a host on loopback:\n{said}")


def nothing_is_left(folder):
    """No file is left in the folders, and no process."""
    for name in ("shared", "elsewhere"):
        left = [p.name for p in (folder / name).iterdir()]
        if left:
            complaints.append(f"{name}/ holds {left}")
    pids = [p.name for p in (folder / "pids").iterdir()]
    alive = [p for p in pids if pathlib.Path(f"/proc/{p}").exists()]
    if alive or len(pids) < 11:  # a silent host's may end before it writes
        complaints.append(f"{alive} of {pids} are left")


def wrong_words(folder):
    for words, pattern in ((["hosts=nope"], "lockstep: hosts=nope: No such file"),
                           (["out=x"], "lockstep: doctor: hosts=FILE is missing"),
                           (["x"], "lockstep: doctor: takes hosts=FILE")):
        done = subprocess.run([LOCKSTEP, "doctor", *words], cwd=folder,
                              capture_output=True, text=True, timeout=20,
                              check=False)
        expect(done.stderr, pattern)
        if done.returncode != 1 or done.stderr.count("\n") != 1:
            complaints.append(f"{words}: {done.returncode}: {done.stderr}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name in ("shared", "elsewhere", "pids"):
            (folder / name).mkdir()
        (folder / "rsh").write_text(RSH)
        (folder / "rsh").chmod(0o755)
        all_is_well(folder)
        each_lie_is_found(folder)
        what_is_late_answers_nothing(folder)
        loopback_is_told(folder)
        nothing_is_left(folder)
        wrong_words(folder)
    for text in complaints:
        print(f"doctor_hosts.py: {text}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
