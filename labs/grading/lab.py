"""lab.py - one lab: its folder, and the facts that grade.c prints about it."""

import json
import pathlib
import re
import subprocess
import tempfile

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

    def trains(self):
        """Whether the lab's file sums a vector. That is all that training needs."""
        text = "".join(p.read_text() for p in sorted(self.folder.glob("*.h")))
        return bool(re.search(
            r"^int lab_exchange\(struct lab \*l, float \*v, size_t n\);", text, re.M))

    def __str__(self):
        return f"lab {self.number}"

    def about(self, builder):
        """What `program --list` prints: the tests with points, needs and hints."""
        with tempfile.TemporaryDirectory() as folder:
            program, _ = builder.build(self.folder / "skeleton.c", folder)
            done = subprocess.run([program, "--list"], capture_output=True,
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
