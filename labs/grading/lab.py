"""lab.py - one lab: its folder, and the facts that grade.c prints about it."""

import json
import pathlib
import re
import subprocess

from grading import build

FOLDER = re.compile(r"(\d\d)-(\w+)$")


class Lab:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.number = int(FOLDER.search(self.folder.name)[1])
        text = (self.folder / "grade.c").read_text()
        self.file = re.search(r'\.file = "(.*?)"', text)[1]
        told = re.search(r'\.functions =((?:\s*"[^"]*")+)', text)[1]
        self.functions = "".join(re.findall(r'"([^"]*)"', told)).split()
        frame = re.search(r"\.frame = (\d+)", text)
        self.frame = int(frame[1]) if frame else 0

    def flags(self):
        """More flags of the compiler: a lab that counts memory limits the stack, too."""
        return ["-Werror=vla", "-Werror=alloca",
                f"-Werror=frame-larger-than={self.frame}"] if self.frame else []

    def header(self):
        """The name of the lab's header: zero.h for zero.c."""
        return pathlib.Path(self.file).with_suffix(".h").name

    def trains(self):
        """The settings of a job that uses the lab's file; [] if training has no use for
        it."""
        if "outer_step" in self.functions:
            return ["sync=outer", "outer_lr=0.7", "outer_momentum=0.9", "every=5",
                    "verify=5"]
        if "slice_forward" in self.functions:
            return ["sync=lab", "mesh=tp2", "verify=1"]
        if "lowrank_exchange" in self.functions:
            return ["sync=lab", "squeeze=power", "verify=1"]
        text = "".join(p.read_text() for p in sorted(self.folder.glob("*.h")))
        sums = re.search(r"^int lab_exchange\(struct lab \*l, float \*v, size_t n\);", text,
                         re.M)
        return ["sync=lab", "verify=1"] if sums else []

    def __str__(self):
        return f"lab {self.number}"

    def about(self, builder):
        """What the grader's `--list` prints: the tests with points, needs and hints."""
        done = subprocess.run([builder.judge(), "--list"], capture_output=True,
                              check=True)
        return json.loads(done.stdout)


def every():
    """All labs of this tree, by number."""
    folders = sorted((build.TOP / "labs").iterdir())
    return [Lab(f) for f in folders
            if FOLDER.match(f.name) and (f / "grade.c").exists()]


def find(number):
    for lab in every():
        if str(lab.number) == number.lstrip("0"):
            return lab
    there = ", ".join(str(lab.number) for lab in every())
    raise build.Refused(f"there is no lab {number}; try: {there}")
