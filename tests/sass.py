#!/usr/bin/env python3
"""sass.py VERSION TOOL LIBRARY... - prints and checks nvcc's code of the kernels.

VERSION: the compiler's. TOOL: cuobjdump, with nvdisasm beside it. LIBRARY: a file
with code for compute capability 9.0. Needs no GPU. Each kernel must stay within the
budgets below: registers, stack (which has the spills), shared memory, blocks that
run on a multiprocessor at once, and instructions:

    turn    one iteration of the kernel's main loop: the shortest path from a loop's
            head back to it with the given numbers of tensor-core instructions and
            of copies into shared memory. This path computes a tile that is neither
            the first nor on the diagonal, without dropout
    tile    the instructions of a turn, divided by the number of tiles in it. A tile
            is 16 rows that a warp owns (of queries, say) by 64 rows of the side
            that the loop reads (the keys)

Kernels on vectors must not store single 16-bit numbers, which takes four times the
transactions (core/device/number.cuh). Status 77: cannot run here.
"""

import collections
import heapq
import os
import pathlib
import re
import subprocess
import sys

SKIPPED, ARCH = 77, "sm_90"
COMPILER = "13.0"  # the budgets are for this release; others schedule differently

# Attention kernels. regs, stack, shared: the most registers, bytes of stack and bytes
# of shared memory. blocks: the fewest blocks on a multiprocessor. tensor, copies: the
# tensor-core instructions and copies of a turn. tile: the most instructions for a
# tile. part: the tiles in a turn. All blocks have 128 threads.
ATTENTION = [
    # kernel    math  head  regs stack shared blocks tensor copies tile  part
    ("attention", "bf16", 64, 232, 0, 36864, 2, 128, 8, 345, 2),
    ("attention", "fp16", 64, 232, 0, 36864, 2, 128, 8, 345, 2),
    ("attention", "bf16", 128, 168, 0, 34816, 3, 64, 8, 765, 1 / 2),
    ("attention", "fp16", 128, 168, 0, 34816, 3, 64, 8, 765, 1 / 2),
    ("attention", "tf32", 64, 128, 0, 36864, 4, 128, 8, None, 1 / 2),
    ("attention", "fp32", 64, 128, 0, 36864, 4, 0, 8, None, 1 / 2),
    ("dq", "bf16", 64, 240, 0, 36864, 2, 192, 8, 345, 2),
    ("dq", "fp16", 64, 240, 0, 36864, 2, 192, 8, 345, 2),
    ("dq", "bf16", 128, 240, 0, 34816, 2, 96, 8, 740, 1 / 2),
    ("dq", "fp16", 128, 240, 0, 34816, 2, 96, 8, 740, 1 / 2),
    ("dkv", "bf16", 64, 255, 0, 37376, 2, 128, 5, 515, 1),
    ("dkv", "fp16", 64, 255, 0, 37376, 2, 128, 5, 515, 1),
    ("dkv", "bf16", 128, 255, 0, 35328, 2, 128, 9, 970, 1 / 2),
    ("dkv", "fp16", 128, 255, 0, 35328, 2, 128, 9, 970, 1 / 2),
    # fp32 with heads of 128 channels does not fit into registers, and spills
    ("dkv", "fp32", 128, 255, 208, 35072, 2, 0, 9, None, 1),
    ("dkv", "tf32", 128, 255, 240, 35072, 2, 0, 9, None, 1),
]

# {kernel on vectors: the most registers}. With 32 registers, the 2048
# threads of a multiprocessor all fit.
VECTORS = {
    "add_partials": 32,
    "bias_kernel": 32,
    "embed_kernel": 32,
    "gelu_backward": 32,
    "loss_kernel": 32,
    "mask_rows": 32,
    "norm_backward": 48,
    "norm_kernel": 40,
    "norm_rows": 216,
    "norm_rows_kernelI13__nv_bfloat16Li6E": 168,  # two blocks of 192 threads
    "places_kernel": 40,
    "row_sum": 32,
    "sum_rows": 32,
    "tokens_kernel": 72,
}

# {kernel: the fewest loads that a thread has under way at once}. These kernels must
# add in order; several loads at once keep the memory busy.
AHEAD = {"squares_kernel": 8, "tokens_kernel": 8}

# {kernel: the most registers}. These may store single 16-bit numbers: each thread
# has one number at a time, and the threads of a warp store side by side.
SINGLES = {"squares_kernel": 32, "update_kernel": 32}

FUNCTION = re.compile(r"^\s+Function : (\S+)")
LINE = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z]\S*)([^;]*);")
TARGET = re.compile(r"0x([0-9a-f]+)")
RESOURCES = re.compile(r"(REG|STACK|SHARED|LOCAL):(\d+)")

Instruction = collections.namedtuple("Instruction", "guard name operands")


def jumps(code, i):
    """The instructions that may follow number i."""
    at = code[i]
    if at.name == "EXIT":
        return [i + 1] if at.guard else []
    if not at.name.startswith("BRA"):
        return [i + 1]
    *condition, target = at.operands.split(",")
    to = int(TARGET.search(target)[1], 16) // 16
    return [to, i + 1] if at.guard or condition else [to]


def turn(code, wanted):
    """The fewest instructions from a loop's head back to it. wanted: {instruction:
    how many of it the path must have}."""
    kinds = list(wanted)
    end = tuple(wanted.values())
    heads = {to for i in range(len(code)) for to in jumps(code, i) if to <= i}
    best = None
    for head in heads:
        seen, queue = {}, [(0, head, (0,) * len(kinds))]
        while queue:
            cost, i, got = heapq.heappop(queue)
            if (i, got) in seen or i >= len(code):
                continue
            if i == head and got == end and cost:
                best = cost if best is None else min(best, cost)
                break
            seen[i, got] = cost
            name = code[i].name
            got = tuple(g + name.startswith(k) for g, k in zip(got, kinds))
            if any(g > e for g, e in zip(got, end)):
                continue
            for to in jumps(code, i):
                heapq.heappush(queue, (cost + 1, to, got))
    return best


def ask(cuobjdump, option, arch, file):
    words = [cuobjdump, "-arch", arch, option, file]
    return subprocess.run(
        words, check=True, capture_output=True, text=True
    ).stdout.splitlines()


def code_of(cuobjdump, arch, file):
    """{mangled name: [Instruction]}"""
    kernels, code = {}, None
    for line in ask(cuobjdump, "-sass", arch, file):
        if found := FUNCTION.match(line):
            code = kernels[found[1]] = []
        elif found := LINE.match(line):
            assert len(code) == int(found[1], 16) // 16, line
            code.append(Instruction(found[2], found[3], found[4]))
    return kernels


def resources_of(cuobjdump, arch, file):
    """{mangled name: {"REG": .., "SHARED": .., "STACK": .., "LOCAL": ..}}"""
    kernels, name = {}, None
    for line in ask(cuobjdump, "-res-usage", arch, file):
        if found := re.match(r"^\s*Function (\S+):", line):
            name = found[1]
        elif name and (found := RESOURCES.findall(line)):
            kernels[name] = {what: int(n) for what, n in found}
            name = None
    return kernels


def blocks_at_once(registers, shared, threads=128):
    """How many blocks fit on a multiprocessor: 64 Ki registers, 228 KiB shared."""
    warp = -(-registers * 32 // 256) * 256  # a warp gets a multiple of 256
    return min(65536 // warp // (threads // 32), 233472 // (shared + 1024))


def loads_at_once(code):
    """The largest number of loads in a row whose results are used only after the last
    of them has been issued."""
    most, waiting = 0, []
    for at in code:
        used = at.operands
        if at.name.startswith("LDG"):
            to, _, used = at.operands.partition(",")
        if at.name.startswith("BRA") or any(
            re.search(rf"\b{r}\b", used) for r in waiting
        ):
            waiting = []
        if at.name.startswith("LDG"):
            waiting.append(to.strip())
            most = max(most, len(waiting))
    return most


def attention_row(row, code, used):
    kernel, math, head, regs, stack, shared, blocks, tensor, copies, most, part = row
    mark = f"{kernel}_kernelI9math_{math}Li{head}ELb0E"  # of whole sequences
    name = next((n for n in code if mark in n), None)
    if not name:
        return [f"{mark}: no such kernel"]
    has = used[name]
    static = has["SHARED"] - 1024  # which CUDA reserves
    at_once = blocks_at_once(has["REG"], static)
    tile = None
    if tensor and most:
        around = turn(code[name], {"HMMA": tensor, "LDGSTS": copies})
        tile = around and around / part
    print(
        f"{kernel:9} {math} {head:3} {has['REG']:4} {has['STACK']:5} {static:6} "
        f"{at_once:6} {sum(i.name.startswith('LDSM') for i in code[name]):5} "
        f"{tile or '-':>6}"
    )
    found = [
        (has["REG"] > regs, f"{has['REG']} registers, at most {regs}"),
        (has["STACK"] > stack, f"{has['STACK']} bytes of stack, at most {stack}"),
        (static > shared, f"{static} shared bytes, at most {shared}"),
        (at_once < blocks, f"{at_once} blocks at once, at least {blocks}"),
        (most and not tile, f"no turn of {tensor} HMMA and {copies} LDGSTS"),
        (tile and tile > most, f"{tile} instructions a tile, at most {most}"),
    ]
    return [f"{mark}: {text}" for wrong, text in found if wrong]


def vector_rows(mark, most, single, code, used):
    names = [n for n in code if mark in n]
    for name in names:
        if used[name]["REG"] > most:
            yield f"{name}: {used[name]['REG']} registers, at most {most}"
        if used[name]["STACK"]:
            yield f"{name}: {used[name]['STACK']} bytes of stack"
        for at in code[name]:
            one = at.name.startswith("STG") and at.name.endswith("16")
            if one and not single:
                yield f"{name}: {at.name}, a store of one 16-bit number"
    if not names:
        yield f"{mark}: no such kernel"


def main(version, tool, *libraries):
    tool = pathlib.Path(tool)
    if not tool.exists() or not (tool.parent / "nvdisasm").exists():
        print(f"skipped: no cuobjdump, or no nvdisasm in its folder ({tool})")
        return SKIPPED
    if not version.startswith(COMPILER + "."):
        print(f"skipped: budgets are nvcc {COMPILER}'s, this is {version}")
        return SKIPPED
    os.environ["PATH"] += f":{tool.parent}"
    code, used = {}, {}
    for library in libraries:
        code |= code_of(tool, ARCH, library)
        used |= resources_of(tool, ARCH, library)
    if not code:
        print(f"skipped: nothing is compiled for {ARCH}; try: LOCKSTEP_CUDA_ARCHS=90")
        return SKIPPED
    print("kernel    math head regs stack shared blocks LDSM  tile")
    wrong = [line for row in ATTENTION for line in attention_row(row, code, used)]
    for mark, most in (VECTORS | SINGLES).items():
        wrong += vector_rows(mark, most, mark in SINGLES, code, used)
    for mark, least in AHEAD.items():
        for name in [n for n in code if mark in n]:
            if (most := loads_at_once(code[name])) < least:
                wrong.append(f"{name}: {most} loads at once, at least {least}")
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
