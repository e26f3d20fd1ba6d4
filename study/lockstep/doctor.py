"""The command doctor: what this machine, or several hosts, have and lack, and how to get
it. The program `lockstep` itself prints what a training on the CPU needs of this machine
(doctor/doctor.c), also where there is no Python; then it starts this.
"""

import ctypes
import ctypes.util
import os
import subprocess

from .core import Core, key_help
from .files import Error, visible

OK, WITHOUT, LACK = "ok", "-", "LACK"
ANSWER_S = 60
NEW_NETWORK = 0x40000000  # CLONE_NEWNET

HELP = """\
lockstep doctor [hosts=FILE [key=value] ..]

Prints what this machine has and what it lacks, and how to get what it lacks.
With hosts= it checks several hosts: that each can be reached as a job reaches it,
has the same build of Lockstep, the right time and the shared folder out=. It also
measures latency and rate between pairs of hosts.

  ok    there
  -     missing, but optional
  LACK  missing, and needed to train on the CPU or for its report

"""


def explain():
    """What --help says."""
    from .doctor_hosts import ROWS
    with Core() as core:
        return HELP + key_help(core, ROWS)


class Findings:
    """Prints findings, one line each, and counts what is needed and missing."""

    def __init__(self, lacks=0):
        self.lacks = lacks

    def say(self, mark, what, text, remedy=""):
        """What was checked and found. Unless all is well a second line says how to mend
        it."""
        self.lacks += mark == LACK
        print(f"{mark:<5} {what:<14} {text}", flush=True)
        if mark != OK and remedy:
            print(f"{'':<5} {'':<14}   try: {remedy}", flush=True)

    def conclude(self, what):
        """The last line. Returns the exit status."""
        if self.lacks:
            print(f"\n{self.lacks} thing{'s are' if self.lacks > 1 else ' is'} missing for "
                  f"{what}: see LACK above.")
        else:
            print(f"\nNothing is missing for {what}.")
        return int(self.lacks > 0)


def ask(command):
    """The first line that a shell command prints; "" if it fails or prints nothing."""
    try:
        done = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, timeout=ANSWER_S,
                              check=False)
    except subprocess.TimeoutExpired:
        return ""
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    return lines[0] if lines and not done.returncode else ""


# ---- programs, and the network


def _programs(find):
    for mark, what, command, purpose, remedy in (
            (LACK, "Open MPI", "mpirun --version 2>&1",
             "starts sync=allreduce and what else sends by MPI",
             "apt-get install openmpi-bin, or ./install"),
            (LACK, "gnuplot", "gnuplot --version 2>&1", "draws the plots",
             "apt-get install gnuplot-nox, or ./install"),
            (WITHOUT, "SimGrid", "smpirun --version 2>&1", "runs lockstep simulate",
             "apt-get install libsimgrid-dev, and build again")):
        line = ask(command)
        find.say(OK if line else mark, what, line or f"not found; it {purpose}", remedy)


def _in_namespace(command):
    """The exit status of a shell command in a new network namespace; 127 if there is
    none."""
    def enter():
        if ctypes.CDLL(None).unshare(NEW_NETWORK):
            os._exit(127)
    return subprocess.run(["sh", "-c", command], preexec_fn=enter, timeout=ANSWER_S,
                          check=False).returncode


def _network(find):
    """Can this machine emulate a cluster? A child tries it: it creates a network namespace
    and limits the rate of the loopback there."""
    if not ask("tc -V 2>/dev/null && ip -V 2>/dev/null"):
        find.say(WITHOUT, "ip and tc", "not found; they emulate clusters",
                 "apt-get install iproute2, or ./install")
    status = _in_namespace("tc qdisc add dev lo root tbf rate 1gbit burst 256kb latency 10ms "
                           ">/dev/null 2>&1 || exit 1")
    if status not in (0, 1):
        find.say(WITHOUT, "namespaces",
                 "cannot be created: net= and emulated hosts do not work",
                 "run as root, or in a container with CAP_SYS_ADMIN")
        return
    find.say(OK, "namespaces", "can be created: net= and emulated hosts work")
    find.say(WITHOUT if status else OK, "tc tbf",
             "does not work: links cannot be limited" if status else
             "limits links between emulated hosts",
             "apt-get install iproute2, and a kernel with sch_tbf")


# ---- GPUs: libraries are loaded while running, since most builds do not link them


def _load(name):
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def _version(library, function):
    """The number that a function of a library writes; 0 if there is none."""
    number = ctypes.c_int(0)
    found = getattr(library, function, None) if library else None
    return number.value if found and found(ctypes.byref(number)) == 0 else 0


def _gpus(find):
    nvml = _load("libnvidia-ml.so.1")
    if not nvml:
        find.say(WITHOUT, "NVML", "none: a GPU's utilisation cannot be measured",
                 "it comes with NVIDIA's driver")
        return

    def call(name, *words):
        return hasattr(nvml, name) and getattr(nvml, name)(*words) == 0

    if not call("nvmlInit_v2"):
        find.say(WITHOUT, "NVML", "does not start", "look at nvidia-smi")
        return
    count, device = ctypes.c_uint(0), ctypes.c_void_p()
    name = ctypes.create_string_buffer(96)
    if not call("nvmlDeviceGetCount_v2", ctypes.byref(count)):
        count.value = 0
    for i in range(count.value):
        if call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(i), ctypes.byref(device)) \
                and call("nvmlDeviceGetName", device, name, ctypes.c_uint(len(name))):
            find.say(OK, "GPU", f"{i}: {visible(name.value.decode('utf-8', 'replace'))}")
    if not count.value:
        find.say(WITHOUT, "GPU", "the driver sees none", "look at nvidia-smi")
    call("nvmlShutdown")


def _cuda(find, core):
    version = _version(_load("libcuda.so.1"), "cuDriverGetVersion")
    if version > 0:
        line = ask("cat /proc/driver/nvidia/version 2>/dev/null")
        find.say(OK, "GPU driver", f"CUDA {version // 1000}.{version % 1000 // 10}; "
                 f"{line[:120]}")
    else:
        find.say(WITHOUT, "GPU driver", "none: device=cuda cannot run, device=cpu can",
                 "NVIDIA's driver, on a machine with an NVIDIA GPU")
    _gpus(find)
    line = ask("{ nvcc --version || /usr/local/cuda/bin/nvcc --version; } 2>/dev/null | "
               "grep release")
    find.say(OK if line else WITHOUT, "CUDA toolkit",
             line or "no nvcc: the build has no GPU code",
             "NVIDIA's cuda-toolkit, then build again")
    version = _version(_load("libnccl.so.2"), "ncclGetVersion")
    find.say(OK if version else WITHOUT, "NCCL",
             f"{version // 10000}.{version % 10000 // 100}.{version % 100}" if version else
             "none: sync=allreduce works on the CPU only",
             "libnccl2 from NVIDIA's repository")
    try:
        find.say(OK, "cuDNN", core.ask("cudnn")["version"])
    except Error as why:
        text, _, remedy = str(why).partition("; try: ")
        find.say(WITHOUT, "cuDNN", text, remedy)


def doctor(words):
    """lockstep doctor. ["here", N]: N things that are needed were found missing."""
    if words[0] == "here":
        find = Findings(int(words[1]))
        _programs(find)
        _network(find)
        with Core() as core:
            _cuda(find, core)
        return find.conclude("training on the CPU")
    from .doctor_hosts import check
    find = Findings()
    check(find, words)
    return find.conclude("a job on these hosts")
