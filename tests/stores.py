#!/usr/bin/env python3
"""stores.py NVCC FILE... - kernels that work on vectors store four numbers at once.

Compiles each .cu file to PTX, and looks for stores of a single 16-bit number. The
compiler may split a store of four numbers (core/device/number.cuh), which costs four
times the transactions. Needs the CUDA compiler, but no GPU.
"""

import re
import subprocess
import sys

FLAGS = "-ptx -arch=compute_80 -O3 -std=c++17 -I. -Icore -o /dev/stdout".split()
KERNEL = re.compile(r"\.entry\s+(\w+)")
STORE = re.compile(r"\b(st\.global[.\w]*)")


def stores(nvcc, file):
    """(kernel, instruction) for each store to global memory."""
    done = subprocess.run(
        [nvcc, *FLAGS, file], check=True, capture_output=True, text=True
    )
    kernel = "?"
    for line in done.stdout.splitlines():
        if named := KERNEL.search(line):
            kernel = named[1]
        if found := STORE.search(line):
            yield kernel, found[1]


def main(nvcc, *files):
    bad = 0
    for file in files:
        found = list(stores(nvcc, file))
        single = [
            f"{file}: {kernel}: {store}"
            for kernel, store in found
            if store.endswith("16") and ".v4." not in store
        ]
        if not any(".v2." in store or ".v4." in store for _, store in found):
            single.append(f"{file}: no store of several numbers at all")
        bad += len(single)
        print(*single, sep="\n", end="\n" if single else "")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
