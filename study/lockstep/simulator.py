"""Runs the program simulate_job on simulated hosts, and writes the table of its times."""

import os
import shutil
import signal
import subprocess
import time

from .files import Error, create, make_folder, number, read_lines, visible, write_text
from .places import helper

# SimGrid's links behave as the law assumes: a message takes the latency, plus its bytes
# divided by its share of the bandwidth.
IDEAL = ("network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0",
         "network/latency-factor:1", "network/bandwidth-factor:1")


class Simulator:
    """Runs simulate_job on simulated hosts, whose files are in a folder."""

    def __init__(self, core, values):
        self.link = core.ask("link", values["link"],
                             repr(float(values["alpha_us"]) * 1e-6), "tcp", "0")
        self.folder, self.timeout_s = values["out"], float(values["timeout"])
        self.ideal = values["network"] == "ideal"
        self.job = helper("simulate_job")

    def law_seconds(self, law, size):
        """The seconds that a law predicts for so many bytes."""
        return law["hops"] * self.link["alpha_s"] + \
            law["share"] * size / self.link["bytes_per_s"]

    def check(self):
        """Refuses to go on without SimGrid."""
        if not shutil.which("smpirun"):
            raise Error("simulate: SimGrid is not installed; try: apt-get install "
                        "libsimgrid-dev, then cmake --preset release and build")
        if not self.job:
            raise Error("simulate: this build has no simulate_job; try: cmake --preset "
                        "release, then cmake --build --preset release (not with "
                        "sanitizers)")

    def _write(self, hosts):
        """The platform and the hosts. A path between two hosts has two links, so each has
        half the latency. Messages within a host take almost no time."""
        write_text(os.path.join(self.folder, "platform.xml"),
                   "<?xml version='1.0'?>\n"
                   '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
                   '<platform version="4.1">\n'
                   '  <cluster id="cluster" prefix="host" suffix="" '
                   f'radical="0-{hosts - 1}" speed="1Gf"\n'
                   f'           bw="{self.link["bytes_per_s"]:.9g}Bps" '
                   f'lat="{self.link["alpha_s"] / 2:.9g}s" '
                   'loopback_bw="1000GBps" loopback_lat="0s"/>\n</platform>\n')
        write_text(os.path.join(self.folder, "hosts.txt"),
                   "".join(f"host{i}\n" for i in range(hosts)))

    def run(self, name, workers, backend, words, waited=False, halving=False):
        """(simulated seconds, seconds that it took, MB of memory). The job gets `words`.
        `waited`: it waits until its messages are sent."""
        from .runner import end_with_parent
        hosts = workers + (backend["servers"] == 1)  # a single server has its own host
        ranks = 2 * workers if backend["servers"] < 0 else hosts
        self._write(hosts)
        # All ranks share one block of memory for gradients ("local"), or one page for all
        # messages whose content nobody reads ("global").
        shared = "local" if backend["traffic"] == "library" else "global"
        config = ["smpi/simulate-computation:no", "smpi/wtime:0",
                  *["smpi/send-is-detached-thresh:0"] * waited,
                  f"smpi/allreduce:{'rab_rdb' if halving else 'lr'}",
                  "smpi/allgather:ring", "smpi/alltoall:basic_linear",
                  f"smpi/shared-malloc:{shared}", *(IDEAL if self.ideal else ())]
        # smpirun cuts paths at blanks, and that of TMPDIR. So it starts in the folder.
        command = ["smpirun", "-quiet", "-no-privatize", "-np", str(ranks), "-platform",
                   "platform.xml", "-hostfile", "hosts.txt", *(f"--cfg={c}" for c in config),
                   "--log=root.thres:error", self.job, *words]
        log, began = os.path.join(self.folder, "log.txt"), time.monotonic()
        with create(log) as errors:
            child = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, cwd=self.folder,
                env={**os.environ, "TMPDIR": "."}, process_group=0,
                preexec_fn=end_with_parent)
        said, peak = self._wait(child, f"simulate: {name}, {workers} workers")
        seconds = number(said.partition("@seconds=")[2].strip())
        if child.returncode or seconds is None:
            why = next(iter(read_lines(log, 1 << 22)), "") or "no output"
            raise Error(f"simulate: {name}, {workers} workers: {why} ({visible(log)})")
        return seconds, time.monotonic() - began, peak * 1024e-6

    def _wait(self, child, what):
        """(what a child has said, its largest resident size in KiB)."""
        late = False

        def stop(*_):
            nonlocal late
            late = True
            os.killpg(child.pid, signal.SIGKILL)

        signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, self.timeout_s)
        try:
            with child.stdout:
                said = child.stdout.read().decode("utf-8", "replace")
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        except BaseException:
            child.terminate()  # smpirun forwards it
            child.wait()
            raise
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if late:
            raise Error(f"{what}: not done after {self.timeout_s:g} s; try: "
                        f"timeout={4 * self.timeout_s:g}, or fewer workers")
        return said, usage.ru_maxrss


class Table:
    """The table of simulated times beside the law's, on the screen and in a file.
    `columns`: the heads of what `names` fills in each row. `note` follows the size."""

    def __init__(self, simulator, elements, name, columns, note=""):
        self.simulator, self.elements = simulator, elements
        make_folder(simulator.folder)
        self.path = os.path.join(simulator.folder, name)
        link = simulator.link
        self._rows = [f"workers,{columns},mb,simulated_s,law_s,ratio,wall_s,memory_mb\n"]
        print(f"{elements * 4e-6:.4g} MB{note}; links of {link['bytes_per_s'] * 8e-9:.4g} Gbit/s "
              f"of payload, {link['alpha_s'] * 1e6:g} us\n\n"
              f"{'workers':>7}  {columns:<20} {'simulated (s)':>13} {'law (s)':>12} "
              f"{'ratio':>8} {'took (s)':>9} {'memory (MB)':>12}")

    def row(self, names, law_s, workers, *job, **more):
        """Runs a simulation, and writes a row with its seconds and the law's."""
        seconds, wall_s, memory = self.simulator.run(names.partition(",")[0], workers, *job,
                                                     **more)
        print(f"{workers:7d}  {names:<20} {seconds:13.6g} {law_s:12.6g} "
              f"{seconds / law_s:8.4f} {wall_s:9.1f} {memory:12.0f}", flush=True)
        self._rows.append(
            f"{workers},{names},{self.elements * 4e-6:.9g},{seconds:.9g},{law_s:.9g},"
            f"{seconds / law_s:.6f},{wall_s:.2f},{memory:.0f}\n")
        write_text(self.path, "".join(self._rows))

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        if not error:
            print(f"\n{self.path}")
