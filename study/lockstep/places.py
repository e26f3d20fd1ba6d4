"""Where the other parts of Lockstep are: programs, scripts, experiments.

    SOURCE/study/lockstep, SOURCE/plots, SOURCE/build/release/bin/lockstep
    PREFIX/lib/python3/dist-packages/lockstep, PREFIX/share/lockstep/plots,
    PREFIX/bin/lockstep

So an installed tree may be moved. The program `lockstep` says in LOCKSTEP_PROGRAM
which one it is.
"""

import os
import shutil

from .files import Error

HERE = os.path.dirname(os.path.realpath(__file__))
_SOURCE = os.path.dirname(os.path.dirname(HERE))
# PREFIX/lib/python3/dist-packages/lockstep: _SOURCE is PREFIX/lib/python3.
_PREFIX = os.path.dirname(os.path.dirname(_SOURCE))


def share(name):
    """The path of a file that comes with the programs: "plots", "experiments"."""
    source = os.path.join(_SOURCE, "CMakeLists.txt")
    root = _SOURCE if os.path.exists(source) else \
        os.path.join(_PREFIX, "share", "lockstep")
    return os.path.join(root, name)


def program():
    """The path of the program `lockstep`."""
    for path in (os.environ.get("LOCKSTEP_PROGRAM"),
                 os.path.join(_SOURCE, "build", "release", "bin", "lockstep"),
                 os.path.join(_PREFIX, "bin", "lockstep"),
                 shutil.which("lockstep")):
        if path and os.access(path, os.X_OK):
            return path
    raise Error("the program lockstep is not found; try: LOCKSTEP_PROGRAM=PATH, or build "
                "it, cmake --build --preset release")


def trainer():
    """The path of the program `trainer`, which is beside it."""
    return os.path.join(os.path.dirname(program()), "trainer")


def helper(name):
    """The path of a program that only others of ours start; "" if it was not built.
    SimGrid loads simulate_job, which nobody may execute."""
    folder = os.path.dirname(os.path.realpath(program()))
    for path in (os.path.join(folder, name),
                 os.path.join(folder, "..", "libexec", "lockstep", name)):
        if os.access(path, os.R_OK):
            return path
    return ""


def needed(name):
    """The same; without it an Error."""
    path = helper(name)
    if not path:
        raise Error(f"{name}: not beside {program()}; try: build it, cmake --build --preset "
                    "release")
    return path
