#!/usr/bin/env python3
"""layered.py GOLDEN - LARS and LAMB in double precision, from the papers' formulas.

Checks that the file GOLDEN (tests/golden/layered.txt), with which tests/test_layered.c
compares the code in C, has the numbers that this script computes. With --write it
writes them. It shares no line with the code: a parameter is a number of a list, a
tensor a range.
"""

import math
import sys

N, STEPS, EVERY = 9000, 6, 450
TENSORS = [(0, 5000), (5100, 8000)]  # [from, to); all other elements do not decay
LR, SCALE, DECAY, EPS = 0.02, 0.5, 0.1, 1e-6
BETA1, BETA2 = 0.9, 0.95


def start():
    """The second tensor begins at 0, as a new bias might."""
    return [0.0 if 5100 <= i < 8000 else math.sin(0.37 * i) for i in range(N)]


def gradient(step, i):
    return math.cos(0.11 * i + 1.7 * step) * (1 + i % 3)


def length(numbers):
    return math.sqrt(sum(x * x for x in numbers))


def parts():
    """(from, to, is a tensor) of all elements, in their order."""
    at = 0
    for first, last in TENSORS:
        yield at, first, False
        yield first, last, True
        at = last
    yield at, N, False


def lars(momentum):
    p, u = start(), [0.0] * N
    for step in range(1, STEPS + 1):
        for first, last, tensor in parts():
            g = [SCALE * gradient(step, i) for i in range(first, last)]
            decay, trust = (DECAY, 1.0) if tensor else (0.0, 1.0)
            size, slope = length(p[first:last]), length(g)
            if tensor and size > 0 and slope > 0:
                trust = size / (slope + decay * size)
            for i in range(first, last):
                u[i] = momentum * u[i] + trust * (g[i - first] + decay * p[i])
                p[i] -= LR * u[i]
    return p


def lamb():
    p, m, v = start(), [0.0] * N, [0.0] * N
    for step in range(1, STEPS + 1):
        for first, last, tensor in parts():
            decay, r = DECAY if tensor else 0.0, []
            for i in range(first, last):
                g = SCALE * gradient(step, i)
                m[i] = BETA1 * m[i] + (1 - BETA1) * g
                v[i] = BETA2 * v[i] + (1 - BETA2) * g * g
                mean, square = m[i] / (1 - BETA1**step), v[i] / (1 - BETA2**step)
                r.append(mean / (math.sqrt(square) + EPS) + decay * p[i])
            size, step_size = length(p[first:last]), length(r)
            trust = size / step_size if tensor and size and step_size else 1.0
            for i in range(first, last):
                p[i] -= LR * trust * r[i - first]
    return p


def lines():
    for name, p in (("lars", lars(0.9)), ("lars_plain", lars(0.0)), ("lamb", lamb())):
        yield f"{name} " + " ".join(f"{x:.9g}" for x in p[::EVERY])


def main():
    path, text = sys.argv[-1], "\n".join(lines()) + "\n"
    if "--write" in sys.argv:
        with open(path, "w") as f:
            f.write(text)
        return
    with open(path) as f:
        stored = f.read()
    want, have = ([line.split() for line in t.splitlines()] for t in (text, stored))
    assert [w[0] for w in want] == [h[0] for h in have], "other rules"
    for w, h in zip(want, have):
        assert len(w) == len(h), w[0]
        for x, y in zip(w[1:], h[1:]):
            assert abs(float(x) - float(y)) < 1e-8, (w[0], x, y)
    print(f"{path} has the numbers of the formulas")


main()
