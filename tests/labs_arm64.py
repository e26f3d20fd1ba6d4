#!/usr/bin/env python3
"""labs_arm64.py [NUMBER ..] - checks that a file has the same points on 64-bit ARM, which
qemu emulates, as on this machine: right solutions, the skeleton and wrong solutions.

A program for ARM becomes a script that starts qemu. So the kernel need not know of qemu,
and the empty environment in which labs/grade starts programs does no harm. qemu has no
filter of system calls, and the cross compiler's sanitizers are not used. A file that
exceeds 5 s of processor time in qemu's much slower processor is named, and not compared.
Exit status 77, with the reason, if a program is missing.
"""

import json
import os
import pathlib
import shutil
import sys
import tempfile

from labs import TOP, run_job
from grading import changes, lab

WRONG = 3  # of each lab's mutants.txt
NEEDED = ("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-nm", "aarch64-linux-gnu-objdump",
          "qemu-aarch64-static")
COMPILER = r"""#!/bin/bash
for word; do
    case $word in -fsanitize=*) exit 1;; -c|-S|-E) objects=1;; esac
    [ "$last" = -o ] && out=$word
    last=$word
done
aarch64-linux-gnu-gcc "$@" || exit
[ -z "$objects" ] && [ -f "$out" ] || exit 0
mv "$out" "$out.arm"
printf '#!/bin/sh\nexec %s -L /usr/aarch64-linux-gnu "$0.arm" "$@"\n' "$QEMU" >"$out"
chmod +x "$out"
"""


def points(its, path, out, env):
    """{test: points} of a file, and what the command says."""
    words = [f"{key}={value}" for key, value in env.items()]
    _, said = run_job("env", *words, TOP / "labs/grade", its.number, path, "--out", out)
    results = json.loads((out / f"{its.number:02}/results.json").read_text())
    return {test["name"]: test["score"] for test in results["tests"]}, said


def files(its, folder):
    """The files of a lab to compare."""
    for name in ("reference.c", "second.c", "skeleton.c"):
        yield its.folder / name
    text = (its.folder / "reference.c").read_text()
    for wrong in changes.read(its.folder / "mutants.txt", changes.MUTANT)[:WRONG]:
        path = folder / f"{wrong.name}.c"
        path.write_text(wrong.apply({"reference.c": text})["reference.c"])
        yield path


def judge(its, folder, arm):
    for path in files(its, folder):
        here, _ = points(its, path, folder / "here", {})
        there, said = points(its, path, folder / "there", arm)
        if "processor time" in said:
            print(f"  {its} {path.name}: qemu is too slow for it")
        elif here != there:
            yield f"{its} {path.name}: {here} here and {there} on ARM: {said}"
        else:
            print(f"  {its} {path.name}: {sum(here.values())} points on both", flush=True)


def main():
    missing = [name for name in NEEDED if not shutil.which(name)]
    if missing:
        print(f"labs_arm64: skipped: no {missing[0]}; try: apt-get install "
              "gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static")
        return 77
    complaints = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "bin").mkdir()
        for tool in ("nm", "objdump"):
            (folder / "bin" / tool).symlink_to(shutil.which(f"aarch64-linux-gnu-{tool}"))
        (folder / "armcc").write_text(COMPILER)
        (folder / "armcc").chmod(0o755)
        arm = {"CC": folder / "armcc", "QEMU": shutil.which("qemu-aarch64-static"),
               "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
        for its in [lab.find(number) for number in sys.argv[1:]] or lab.every():
            complaints += judge(its, folder, arm)
    print("\n".join(complaints) or "labs_arm64: passed")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
