"""Tests that an installed Lockstep and its Debian package need no source tree.

    install.py BUILD [deb]     exit status 77 where a tool of Debian is missing

The test installs BUILD with `cmake --install` and moves the installed files before it
uses them. It adds a figure and an experiment that the source tree does not have. With
"deb" it makes and unpacks the package instead.
"""

import os
import pathlib
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
INI = """[experiment]
figures = loss_step own_figure
repeat = 1
[base]
model = nano
context = 16
steps = 3
warmup = 1
eval = 0
workers = 2
threads = 1
data = text.txt
[matrix]
sync = ring, sps
"""
FIGURE = """# own_figure.gp - a figure of the installed tree alone.
load "style.gp"
plot x
"""
complaints = []


def complain(text):
    complaints.append(text)


def run(*words, timeout=120, **more):
    return subprocess.run([str(w) for w in words], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False,
                          timeout=timeout, **more)


def says(pattern, *words, status=0, **more):
    """Complains unless the command ends with `status` and its output matches."""
    done = run(*words, **more)
    if done.returncode != status or not re.search(pattern, done.stdout, re.S):
        complain(f"{words[0]} {words[1:]}: status {done.returncode}, no "
                 f"{pattern!r} in: {done.stdout[-800:]}")
    return done.stdout


def endpoint():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{s.getsockname()[1]}"


def use_programs(prefix, folder):
    """The programs work in an empty folder that has no path to the source tree."""
    lockstep, share = prefix / "bin/lockstep", prefix / "share/lockstep"
    (share / "plots/own_figure.gp").write_text(FIGURE)
    (share / "experiments/own.ini").write_text(INI)
    (folder / "text.txt").write_text((TOP / "ARCHITECTURE.md").read_text() * 4)
    says("own_figure +a figure of the installed", lockstep, "run", "--help")
    says(r"own_figure|report\.html", lockstep, "run", "experiments/own.ini",
         cwd=folder)
    if shutil.which("smpirun") and (prefix / "libexec/lockstep/simulate_job").exists():
        says("2  ring", lockstep, "simulate", "workers=2", "sync=ring", "mb=1", cwd=folder)
    report = folder / "runs/own/report.html"
    if not report.exists() or "svg" not in report.read_text():
        complain("lockstep run: no report with figures")
    if shutil.which("gnuplot"):
        for name in ("loss_step", "own_figure"):
            if not (folder / f"runs/own/figures/{name}.svg").exists():
                complain(f"lockstep run: {name} was not drawn")
    says("report.html", lockstep, "report", "runs/own", cwd=folder)
    # PyTorch's DDP trains two of its cells, or says that PyTorch is not installed.
    says("report.html", lockstep, "run", "experiments/torch.ini", "model=nano", "steps=2",
         "warmup=0", "eval=0", "repeat=1", "figures=none", cwd=folder)
    says("ring.html|explain", lockstep, "explain", "ring", "workers=2", "n=10",
         cwd=folder)
    says("algbw", lockstep, "bench", "sync", "workers=2", "max_mb=0.001",
         "rounds=1", "sync=ring", cwd=folder)
    labs = share / "labs"
    says(r"4 +labs/04-ring", labs / "grade", "--list", cwd=folder)
    shutil.copy(TOP / "labs/04-ring/second.c", folder / "ring.c")
    says("out/04", labs / "grade", "4", "--test", "sums", cwd=folder)
    says("", labs / "export", "F26", folder / "course", "4", cwd=folder)
    left = [str(p) for p in share.glob("labs/*/*")
            if p.name in ("reference.c", "second.c", "mutants.txt")]
    if left:
        complain(f"solutions are installed: {left}")


def keys(lockstep):
    text = run(lockstep, "train", "--help").stdout
    table = text.split("\nSettings are")[1].split("\nsync=\n")[0]
    return re.findall(r"^  ([a-z_0-9]+) ", table, re.M)


def read_pages(prefix):
    """The manual pages have every key and command, and groff and mandoc do not
    warn."""
    lockstep, man = prefix / "bin/lockstep", prefix / "share/man/man1"
    trainer = (man / "trainer.1").read_text().replace("\\-", "-")
    every = keys(lockstep)
    for key in every:
        if f"\n.B {key}=" not in trainer:
            complain(f"trainer.1: no {key}=")
    commands = re.findall(r"^  lockstep ([a-z]+) ", run(lockstep, "--help").stdout, re.M)
    text = (man / "lockstep.1").read_text()
    for command in commands:
        if f"\n.SS {command}\n" not in text:
            complain(f"lockstep.1: no {command}")
    if len(every) < 50 or len(commands) < 10:
        complain(f"few keys or commands: {every} {commands}")
    for page in man.glob("*.1"):
        if shutil.which("groff"):
            says("^$", "groff", "-ww", "-man", "-Tutf8", "-z", page)
        if shutil.which("mandoc"):
            said = run("mandoc", "-Tlint", "-W", "warning", page).stdout
            if [l for l in said.splitlines() if "missing date" not in l]:
                complain(said)


COMPLETED = [
    ("lockstep tra", "train"),
    ("lockstep ma", "man"),
    ("lockstep train model = na", "nano"),
    ("lockstep train sy", "sync="),
    ("lockstep train sync = ri", "ring"),
    ("lockstep train sync = ", "local sps dps"),
    ("lockstep train sync=ri", "sync=ring"),
    ("trainer overlap = ", "0 1"),
    ("trainer wo", "workers= world="),
    ("lockstep report runs/x figure = los", "loss"),
]


def complete(prefix, folder):
    """The shell completes lines. It gets a line as words, as readline splits it."""
    bash = prefix / "share/bash-completion/completions/lockstep"
    for line, want in COMPLETED:
        words = line.split(" ")
        said = run("bash", "-c", f"source '{bash}'; COMP_WORDS=({line!r}); "
                   "COMP_WORDS=(\"${@}\"); COMP_CWORD=$(($# - 1)); _lockstep; "
                   "echo \"${COMPREPLY[*]}\"", "bash", *words, cwd=folder).stdout.strip()
        if said[:len(want)] != want or want[-1] == "=" and said != want:
            complain(f"bash: {line}: {said!r}, want {want!r}")
    zsh = prefix / "share/zsh/site-functions/_lockstep"
    if not zsh.read_text().startswith("#compdef lockstep trainer ps_server\n"):
        complain("zsh: no #compdef")
    if shutil.which("zsh"):
        says("^$", "zsh", "-n", zsh)


def sum_up(programs, env, folder):
    """Each program is one member of a group. All must print the same sum: element i of
    a member's vector is i (rank + 1)."""
    where, world = endpoint(), len(programs)
    want = f"v[999] = {999 * world * (world + 1) // 2}"
    jobs = [subprocess.Popen([*map(str, p), str(r), str(world), where], env=env,
                             cwd=folder, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
            for r, p in enumerate(programs)]
    for r, job in enumerate(jobs):
        said = job.communicate(timeout=60)[0]
        if job.returncode or f"rank {r}: {want}" not in said:
            complain(f"{programs[r]}: status {job.returncode}: {said}")


def use_library(prefix, folder):
    """Programs outside the tree, in C and in Python, form one group."""
    lib = prefix / "lib"
    env = {**os.environ, "PKG_CONFIG_PATH": str(lib / "pkgconfig"),
           "LD_LIBRARY_PATH": str(lib)}
    compiler = os.environ.get("CC", "cc")
    source = TOP / "tests/outside/sum.c"
    for flags, name in (("--libs", "shared"), ("--static --libs", "static")):
        link = shlex.split(run("pkg-config", "--cflags", *flags.split(), "lockstep",
                               env=env).stdout)  # a path may have a blank
        if name == "static":
            link = [f"{lib}/liblockstep.a" if w == "-llockstep" else w for w in link]
        says("^$", compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", source, *link,
             "-o", folder / name, env=env)
    python = [sys.executable, TOP / "tests/outside/sum.py"]
    sum_up([[folder / "shared"], [folder / "static"], python], env, folder)
    if "liblockstep" in run("ldd", folder / "static").stdout:
        complain("the static program needs liblockstep.so")
    for header in (prefix / "include/lockstep").glob("*/*.h"):
        says("^$", compiler, "-std=gnu11", "-Wall", "-Werror", "-fsyntax-only",
             f"-I{prefix}/include/lockstep", "-include", header, "-x", "c", os.devnull)
    wanted = [l for l in (TOP / "package/symbols.txt").read_text().splitlines()
              if l and l[0] != "#"]
    for words, library in ((["nm", "-D"], "liblockstep.so"),
                           (["nm", "-g"], "liblockstep.a")):
        table = run(*words, "--defined-only", lib / library).stdout.splitlines()
        found = {l.split()[2].split("@")[0] for l in table
                 if len(l.split()) == 3 and l.split()[1] != "A"}
        if found != set(wanted):
            complain(f"{library}: too many or too few symbols: "
                     f"{sorted(found ^ set(wanted))}")
    says(r"SONAME.*liblockstep\.so\.0\]", "readelf", "-d", lib / "liblockstep.so")


def use_package(build, folder):
    """The Debian package works when it is unpacked into a folder."""
    if not shutil.which("dpkg-shlibdeps") or not shutil.which("cpack"):
        print("install.py: no dpkg-shlibdeps; try: ./install")
        sys.exit(77)
    done = run("cpack", "--config", build / "CPackConfig.cmake", "-B", folder,
               timeout=280, cwd=folder)
    packages = list(folder.glob("lockstep_*.deb"))
    if done.returncode or len(packages) != 1:
        complain(f"cpack: {done.stdout}")
        return
    needs = run("dpkg-deb", "-f", packages[0], "Depends").stdout
    for name in ("openmpi-bin", "libopenmpi", "libzmq5", "libdnnl", "libc6",
                 "libgomp1"):
        if name not in needs:
            complain(f"Depends: no {name}: {needs}")
    listed = run("dpkg-deb", "-c", packages[0]).stdout
    for name in ("usr/bin/trainer", "usr/include/lockstep/group/group.h",
                 "usr/share/man/man1/lockstep.1",
                 "usr/share/lockstep/plots/loss.gp"):
        if not re.search(rf"root/root .*\./{name}$", listed, re.M):
            complain(f"dpkg-deb -c: no {name}")
    says("^$", "dpkg-deb", "-x", packages[0], folder / "root")
    says(r"lockstep \d", folder / "root/usr/bin/lockstep", "--version")
    says("loss +", folder / "root/usr/bin/lockstep", "run", "--help")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        if sys.argv[2:] == ["deb"]:
            use_package(build, folder)
        else:
            says("", "cmake", "--install", build, "--prefix", folder / "first")
            (folder / "empty").mkdir()
            prefix = (folder / "first").rename(folder / "moved")
            use_library(prefix, folder)
            use_programs(prefix, folder / "empty")
            read_pages(prefix)
            complete(prefix, folder / "empty")
    for text in complaints:
        print(f"install.py: {text}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
