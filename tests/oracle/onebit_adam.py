#!/usr/bin/env python3
"""onebit_adam.py FILE [make] - five steps of 1-bit Adam with two workers, two of them
before the second moment is frozen, from the formulas of arXiv 2102.02888, in double
precision.

Fails if FILE, with which tests/test_squeeze_freeze.c compares freeze=, is not what it
computes; `make` writes it. The numbers are the parameters. It refuses gradients for which
rounding could choose another sign.
"""

import math
import sys

import golden

N, FIRST, LAST, STEPS, FREEZE, WORLD = 1003, 334, 658, 5, 2, 2
BUCKETS = (703, 1003), (403, 703), (103, 403), (0, 103)
BETA1, BETA2, EPS, LR, WEIGHT_DECAY, CLIP = .9, .99, 1e-8, .125, .1, 10
CLEAR = 1e-5  # single precision tells apart numbers of this size


def gradient(rank, step):
    """The gradients of a worker. Some are 0 until the second moment is frozen."""
    return [0 if i % 50 == 7 and step <= FREEZE else
            ((i * 7919 + i * i * 31 + step * 104729 + rank * 31337) % 97 - 48.5) / 4
            for i in range(N)]


def mean(vectors):
    """The mean of vectors."""
    return [math.fsum(column) / len(vectors) for column in zip(*vectors)]


def compress(x):
    """The message of x, decoded; x becomes what it lacks."""
    size = math.fsum(map(abs, x)) / len(x)
    if min(map(abs, x)) < CLEAR:
        sys.exit(f"{min(map(abs, x))} is nearly zero; try other gradients")
    message = [math.copysign(size, one) for one in x]
    x[:] = [one - sent for one, sent in zip(x, message)]
    return message


def exchange(momenta, residuals, of_sums):
    """The compressed mean of the workers' momenta, in two phases: each worker takes the
    mean of one part of a bucket, and compresses it again. Changes the residuals."""
    out = [0.] * N
    for start, end in BUCKETS:
        middle = start + (end - start + 1) // 2
        for part in (start, middle), (middle, end):
            sent = []
            for momentum, residual in zip(momenta, residuals):
                x = [m + e for m, e in zip(momentum[slice(*part)], residual[slice(*part)])]
                sent.append(compress(x))
                residual[slice(*part)] = x
            y = [m + e for m, e in zip(mean(sent), of_sums[slice(*part)])]
            out[slice(*part)] = compress(y)
            of_sums[slice(*part)] = y
    return out


def clipped(x):
    """x with a norm of at most CLIP."""
    norm = math.sqrt(math.fsum(one * one for one in x))
    return [one * min(1, CLIP / norm) for one in x]


def adamw(step, moments, gradients):
    """The update of a step before the freeze, with the mean gradient."""
    update = []
    for i, g in enumerate(clipped(gradients)):
        moments[0][i] = BETA1 * moments[0][i] + (1 - BETA1) * g
        moments[1][i] = BETA2 * moments[1][i] + (1 - BETA2) * g * g
        m, v = (x[i] / (1 - b ** step) for x, b in zip(moments, (BETA1, BETA2)))
        update.append(m / (math.sqrt(v) + EPS))
    return update


def five_steps():
    """The parameters after five steps from 1, 1, .."""
    params, moments, of_sums = [1.] * N, [[0.] * N, [0.] * N], [0.] * N
    residuals = [[0.] * N for _ in range(WORLD)]
    for step in range(1, STEPS + 1):
        own = [gradient(rank, step) for rank in range(WORLD)]
        if step <= FREEZE:
            update = adamw(step, moments, mean(own))
        else:
            momenta = [[BETA1 * m + (1 - BETA1) * g for m, g in zip(moments[0], grads)]
                       for grads in own]
            roots = [math.sqrt(v) for v in moments[1]]
            moments[0] = [m if root > EPS else 0 for m, root in
                          zip(clipped(exchange(momenta, residuals, of_sums)), roots)]
            update = [m / (root + EPS) for m, root in zip(moments[0], roots)]
        for i, x in enumerate(update):
            decay = WEIGHT_DECAY if FIRST <= i < LAST else 0
            params[i] -= LR * (x + decay * params[i])
    return params


if __name__ == "__main__":
    golden.main(five_steps(), 1e-5)
