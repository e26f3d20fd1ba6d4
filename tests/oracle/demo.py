#!/usr/bin/env python3
"""demo.py FILE [make] - five steps of DeMo with two workers, from the paper's formulas, in
double precision.

Fails if FILE, with which tests/test_squeeze_state.c compares squeeze=demo, is not what it
computes; `make` writes it. The numbers are the parameters. It refuses gradients for which
rounding could choose another coefficient, or another sign.
"""

import math
import sys

import golden

N, ROWS, COLS, FIRST, STEPS, WORLD = 1003, 12, 27, 334, 5, 2
LAST = FIRST + ROWS * COLS
DENSITY, DECAY, LR, WEIGHT_DECAY = .05, .9, .125, .1
CLEAR = 2e-4  # single precision tells numbers apart that differ by so much


def gradient(rank, step):
    """The gradients of a worker: integers from -48 to 48."""
    return [float((i * 7919 + i * i * 31 + step * 104729 + rank * 31337) % 97 - 48)
            for i in range(N)]


def side(n):
    """The largest divisor up to 64."""
    return max(d for d in range(1, 65) if n % d == 0)


def dct(n):
    """The matrix of the orthonormal DCT-II."""
    return [[math.sqrt((2 if k else 1) / n) * math.cos(math.pi * (2 * j + 1) * k / (2 * n))
             for j in range(n)] for k in range(n)]


def turned(a):
    """The transposed matrix."""
    return [list(row) for row in zip(*a)]


def times(a, b):
    """The product of two matrices."""
    columns = turned(b)
    return [[math.fsum(x * y for x, y in zip(row, column)) for column in columns]
            for row in a]


def largest(y, k):
    """{place: coefficient} of the k largest."""
    places = [(i, j) for i in range(len(y)) for j in range(len(y[0]))]
    places.sort(key=lambda at: -abs(y[at[0]][at[1]]))
    sizes = [abs(y[i][j]) for i, j in places]
    if k < len(sizes) and sizes[k - 1] - sizes[k] < CLEAR:
        sys.exit("two coefficients are as large; try other gradients")
    return {(i, j): y[i][j] for i, j in places[:k]}


def sign(x):
    """-1, 0 or 1."""
    if 1e-11 < abs(x) < CLEAR:
        sys.exit(f"{x} is nearly zero; try other gradients")
    return 0 if abs(x) < CLEAR else math.copysign(1, x)


def step_of(momenta, start, end, height):
    """Takes from each momentum what is sent of one matrix. Yields (place, sign)."""
    width = (end - start) // height
    rows, cols = side(height), side(width)
    down, across = dct(rows), dct(cols)
    for top in range(0, height, rows):
        for left in range(0, width, cols):
            at = [[start + (top + i) * width + left + j for j in range(cols)]
                  for i in range(rows)]
            sent = []
            for m in momenta:
                y = times(times(down, [[m[i] for i in row] for row in at]), turned(across))
                sent.append(largest(y, math.ceil(DENSITY * rows * cols)))
                q = [[sent[-1].get((i, j), 0) for j in range(cols)] for i in range(rows)]
                for row, new in zip(at, times(times(turned(down), q), across)):
                    for i, x in zip(row, new):
                        m[i] -= x
            mean = [[0] * cols for _ in range(rows)]
            for i, j in set().union(*sent):
                those = [s[i, j] for s in sent if (i, j) in s]
                mean[i][j] = math.fsum(those) / len(those)
            for row, new in zip(at, times(times(turned(down), mean), across)):
                yield from zip(row, map(sign, new))


def five_steps():
    """The parameters after five steps from 1, 1, .."""
    units = (0, FIRST, 1), (FIRST, LAST, ROWS), (LAST, N, 1)
    momenta, params = [[0.] * N for _ in range(WORLD)], [1.] * N
    for step in range(1, STEPS + 1):
        for r, m in enumerate(momenta):
            m[:] = [DECAY * x + g for x, g in zip(m, gradient(r, step))]
        for unit in units:
            decay = WEIGHT_DECAY if unit[0] == FIRST else 0
            for i, s in step_of(momenta, *unit):
                params[i] = params[i] * (1 - LR * decay) - LR * s
    return params


if __name__ == "__main__":
    golden.main(five_steps(), 1e-7)
