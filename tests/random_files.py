#!/usr/bin/env python3
"""random_files.py LOCKSTEP - writes valid files at random, damages them, and reads them.

    --seed S    the seed (default 1); "new" draws one and prints it
    --count N   how many files of each format (default 12)
    --only F    only this format

Each format has a writer, which makes a valid file, and a reader, which says what a
program made of it. A damaged file is refused, by one line and a non-zero exit status, or
it is read right: as an independent reader in this file reads it. Where there is no such
reader (a report of damaged rows), the program must end in time, and say one line if it
fails.
"""

import argparse
import json
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

JOB = ("model=nano layers=1 heads=2 channels=8 context=8 vocab_size=256 batch=2 steps=6 "
       "save=3 eval=3 eval_batches=2 threads=1 log=0 warmup=0 samples=10").split()
MAGIC, VERSION, HEADER = 20240520, 1, 256  # of a token file, in 32-bit numbers
VALUES = {"layers": (1, 9), "heads": (1, 2), "batch": (1, 99), "accum": (1, 9),
          "steps": (1, 10 ** 6), "seed": (0, 2 ** 40), "log": (0, 99), "keep": (0, 5),
          "warmup": (0, 50), "eval": (0, 99)}
BUGS = re.compile(r"Sanitizer|core dumped|Traceback|CHECK\(")


class Wrong(Exception):
    """What a reader did that it must not do."""


class Refused(Exception):
    """A reader refused a file, as it may."""


class Tools:
    """The program, and a folder."""

    def __init__(self, program, folder):
        self.program, self.folder = str(pathlib.Path(program).resolve()), folder
        self.text = folder / "text.txt"
        self.text.write_text("To be, or not to be, that is the question. " * 300)

    def run(self, *words, text=None):
        """The output of a command that may refuse."""
        done = subprocess.run([self.program, *map(str, words)], input=text, text=True,
                              capture_output=True, errors="replace", timeout=120,
                              check=False)
        if done.returncode not in (0, 1) or BUGS.search(done.stderr):
            raise Wrong(f"{words[0]}: exit status {done.returncode}: {done.stderr[-300:]}")
        if done.returncode and words[0] != "verify":
            lines = done.stderr.strip().split("\n")
            if not lines[-1].startswith("lockstep: "):
                raise Wrong(f"{words[0]}: fails without a line of its own: {lines[-1]}")
            raise Refused(lines[-1])
        return done.stdout

    def plan(self, path):
        """The settings that a file asks for."""
        found = json.loads(self.run("plan", text=json.dumps([str(path)]) + "\n"))
        if "error" in found:
            if "\n" in found["error"]:
                raise Wrong(f"plan: more than one line: {found['error']}")
            raise Refused(found["error"])
        return found["asked"]


# ---- damage

def damage(rng, data):
    """Bytes with one to three changes."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data) + 1)
        kind = rng.choice(("bit", "byte", "cut", "zeros", "swap", "twice", "append", "drop"))
        length = rng.randint(1, 40)
        if kind == "bit" and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == "byte" and at < len(data):
            data[at] = rng.choice(b"0123456789,.=-{}[]\"\n \0\xff")
        elif kind == "cut":
            del data[at:]
        elif kind == "zeros":
            data[at:at + length] = bytes(len(data[at:at + length]))
        elif kind == "swap":
            other = rng.randrange(len(data) + 1)
            a, b = data[at:at + length], data[other:other + length]
            if len(a) == len(b) and abs(at - other) >= length:
                data[at:at + length], data[other:other + length] = b, a
        elif kind == "twice":
            data[at:at] = data[at:at + length]
        elif kind == "append":
            data += rng.randbytes(length)
        else:
            del data[at:at + length]
    return bytes(data)


# ---- formats: write(tools, rng) returns the file to damage; right(tools, path) raises
# Refused, or Wrong if it was read, but not right

def settings(rng):
    """Some settings of a job."""
    return {k: rng.randint(*VALUES[k]) for k in rng.sample(sorted(VALUES), 5)}


def write_ini(tools, rng):
    """Settings with comments, blanks and sections."""
    path, lines = tools.folder / "a.ini", []
    for key, value in settings(rng).items():
        lines += rng.choice(([], ["# a comment"], [""], ["[section]"], ["; another"]))
        lines.append(rng.choice(("", "  ")) + f"{key}{rng.choice(('=', ' = '))}{value}")
    path.write_text("\n".join(lines) + "\n")
    return path


def numbers_of(asked):
    """The settings of VALUES among those that were read."""
    return {k: float(v) for k, v in asked.items() if k in VALUES}


def right_ini(tools, path):
    """Each line is a setting; the last one of a key counts."""
    found, want = numbers_of(tools.plan(path)), {}
    for line in path.read_bytes().split(b"\n"):
        line = re.split(rb"(?:^|\s);", line)[0].strip()
        key, equals, value = line.replace(b":", b"=", 1).partition(b"=") \
            if b"=" not in line else line.partition(b"=")
        key = key.strip().decode(errors="replace")
        if equals and key in VALUES:
            want[key] = float(value.strip())
    if found != want:
        raise Wrong(f"{path.name}: read {found}, it says {want}")


def write_run(tools, rng):
    """A run.json with some settings."""
    path = tools.folder / "run.json"
    path.write_text(json.dumps({"program": "lockstep", "asked": settings(rng),
                                "effective": {}}, indent=rng.choice((None, 1, "\t"))))
    return path


def right_run(tools, path):
    """Python's reader takes it, too, and reads the same. An empty file is one of
    settings, without any."""
    found = numbers_of(tools.plan(path))
    if not path.read_bytes().strip():
        return
    try:
        text = path.read_bytes().decode("utf-8", "surrogateescape")
        want = numbers_of(json.loads(text, strict=False)["asked"])
    except (ValueError, KeyError, TypeError) as why:
        raise Wrong(f"run.json: read {found}, Python refuses it: {why}") from None
    if found != want:
        raise Wrong(f"run.json: read {found}, it says {want}")


def write_tokens(tools, rng):
    """A file of tokens, as llm.c writes them."""
    path, n = tools.folder / "tokens.bin", rng.randint(300, 2000)
    head = [MAGIC, VERSION, n] + [0] * (HEADER - 3)
    path.write_bytes(struct.pack(f"<{HEADER}i{n}H", *head,
                                 *(rng.randrange(256) for _ in range(n))))
    return path


def right_tokens(tools, path):
    """As many tokens as its head says, none beyond the vocabulary."""
    out = tools.folder / "tokens"
    shutil.rmtree(out, ignore_errors=True)
    tools.run("train", *JOB, f"data={path}", "steps=1", "save=0", "eval=0", f"out={out}")
    data = json.loads((out / "run.json").read_text())["data"]
    head = struct.unpack_from(f"<{HEADER}i", path.read_bytes())
    tokens = path.read_bytes()[4 * HEADER:]
    if head[:2] != (MAGIC, VERSION) or len(tokens) != 2 * head[2]:
        raise Wrong(f"tokens.bin: read with a head of {head[:3]} and {len(tokens)} bytes")
    if data["train_tokens"] + data["val_tokens"] != head[2]:
        raise Wrong(f"tokens.bin: read {data}, its head says {head[2]}")
    if max(struct.unpack(f"<{head[2]}H", tokens)) > 255:
        raise Wrong("tokens.bin: read a token beyond the vocabulary")


def fresh_run(tools):
    """A copy of a run that ended well."""
    base, run = tools.folder / "base", tools.folder / "run"
    if not base.exists():
        tools.run("train", *JOB, f"data={tools.text}", "sync=ring", "workers=2",
                  f"out={base}")
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(base, run, symlinks=True)
    return run


def write_checkpoint(tools, rng):
    """One of the files of a checkpoint."""
    return fresh_run(tools) / "checkpoint-6" / rng.choice(
        ("model.safetensors", "optimizer.safetensors", "config.json", "state.json"))


def right_checkpoint(tools, path):
    """state.json seals all files: no change is read."""
    try:
        tools.run("train", f"resume={path.parent}", "steps=7", "save=0",
                  f"out={tools.folder / 'resumed'}")
    finally:
        shutil.rmtree(tools.folder / "resumed", ignore_errors=True)
    raise Wrong(f"{path.name}: the damaged checkpoint was resumed")


def write_rows(tools, rng):
    """One of the files of a run that programs read as text."""
    return fresh_run(tools) / rng.choice(("steps.csv", "summary.json", "util.csv",
                                          "trace.json", "breakdown.csv", "latest"))


def right_rows(tools, path):
    """Every command that reads a run ends. What verify can see of a change, it says."""
    said = tools.run("verify", path.parent)
    if path.name == "latest" and "WRONG" not in said:
        if path.read_text(errors="replace").strip() != "checkpoint-6":
            raise Wrong("latest: verify did not see the change")
    for words in ("report", path.parent), ("explain", path.parent):
        try:
            tools.run(*words)
        except Refused:
            continue


FORMATS = {"ini": (write_ini, right_ini, 4), "run.json": (write_run, right_run, 4),
           "tokens": (write_tokens, right_tokens, 1),
           "checkpoint": (write_checkpoint, right_checkpoint, 1),
           "rows": (write_rows, right_rows, .5)}


def judge(tools, rng, name):
    """Writes a file, reads it, damages it, reads it again. Whether it was refused."""
    write, right, _ = FORMATS[name]
    path = write(tools, rng)
    before = path.read_bytes()
    if name != "checkpoint":
        try:
            right(tools, path)
        except Refused as why:
            raise Wrong(f"{path.name}: a valid file is refused: {why}") from None
    after = before
    while after == before:
        after = damage(rng, before)
    path.write_bytes(after)
    try:
        right(tools, path)
    except Refused:
        return True
    return False


def main():
    """Draws files of all formats."""
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("lockstep")
    p.add_argument("--seed", default="1")
    p.add_argument("--count", type=int, default=12)
    p.add_argument("--only", default="")
    a = p.parse_args()
    if a.seed == "new":
        a.seed = str(random.SystemRandom().randrange(10 ** 6))
    failed = 0
    with tempfile.TemporaryDirectory(prefix="lockstep-files-") as name:
        tools = Tools(a.lockstep, pathlib.Path(name))
        for form in [a.only] if a.only else FORMATS:
            refused, count = 0, max(1, int(a.count * FORMATS[form][2]))
            for number in range(count):
                try:
                    refused += judge(tools, random.Random(f"{a.seed}/{form}/{number}"), form)
                except Wrong as why:
                    failed += 1
                    print(f"FAILED: {form} {number}: {why}")
            print(f"seed {a.seed}: {count} of {form}: {refused} refused", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
