#!/usr/bin/env python3
"""powersgd.py make | check - five steps of PowerSGD with two workers, by numpy from the
paper's formulas and by PyTorch's powerSGD_hook.

`check` fails if tests/golden/powersgd.txt, with which tests/test_squeeze_state.c compares
squeeze=power, is not what both compute. `make` writes it. The numbers are the sums of
the five mean gradients. Without PyTorch or numpy it exits with 77.
"""

import multiprocessing
import os
import pathlib
import sys
import tempfile

try:
    import numpy as np
    import torch
    import torch.distributed as dist
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden" / "powersgd.txt"
N, ROWS, COLS, FIRST, RANK, STEPS, WORLD = 1003, 12, 27, 334, 2, 5, 2
LAST = FIRST + ROWS * COLS


def gradient(rank, step):
    """The gradients of a worker: integers from -48 to 48."""
    i = np.arange(N, dtype=np.int64)
    return ((i * 7919 + i * i * 31 + step * 104729 + rank * 31337) % 97 - 48).astype(float)


def first_q():
    """The first Q, (COLS, RANK); its columns follow each other."""
    i = np.arange(RANK * COLS)
    return (i * 31 % 17 - 8).astype(float).reshape(RANK, COLS).T


def by_numpy():
    """PowerSGD with error feedback, in double precision."""
    total, q = np.zeros(N), first_q()
    errors = [np.zeros((ROWS, COLS)) for _ in range(WORLD)]
    for step in range(1, STEPS + 1):
        grads = [gradient(r, step) for r in range(WORLD)]
        mean = sum(grads) / WORLD
        xs = [g[FIRST:LAST].reshape(ROWS, COLS) + e for g, e in zip(grads, errors)]
        p, _ = np.linalg.qr(sum(x @ q for x in xs))
        q = sum(x.T @ p for x in xs) / WORLD
        low = p @ q.T
        errors = [x - low for x in xs]
        mean[FIRST:LAST] = low.ravel()
        total += mean
    return total


class Bucket:
    """What the hook asks of a bucket of DistributedDataParallel."""

    def __init__(self, numbers):
        self.all = torch.tensor(numbers, dtype=torch.float64)

    def buffer(self):
        return self.all

    def gradients(self):
        return [self.all[:FIRST], self.all[FIRST:LAST].view(ROWS, COLS), self.all[LAST:]]

    def index(self):
        return 0

    def is_last(self):
        return True


def one_worker(rank, store, results):
    """One of the workers of by_pytorch()."""
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank,
                            world_size=WORLD)
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=RANK,
                                        start_powerSGD_iter=2, min_compression_rate=1)
    state.iter = 2
    state.p_memory_dict[0] = torch.zeros(ROWS * RANK, dtype=torch.float64)
    state.q_memory_dict[0] = torch.tensor(first_q().ravel())
    total = torch.zeros(N, dtype=torch.float64)
    for step in range(1, STEPS + 1):
        total += powerSGD_hook.powerSGD_hook(state, Bucket(gradient(rank, step))).wait()
    results.put((rank, total.tolist()))
    dist.barrier()
    dist.destroy_process_group()


def by_pytorch():
    """The same by PyTorch's hook, whose workers talk through gloo."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    with tempfile.TemporaryDirectory() as folder:
        workers = [spawn.Process(target=one_worker, args=(r, f"{folder}/store", results))
                   for r in range(WORLD)]
        for worker in workers:
            worker.start()
        got = dict(results.get(timeout=100) for _ in workers)
        for worker in workers:
            worker.join()
    assert got[0] == got[1], "the workers have different sums"
    return np.array(got[0])


def compare(name, have, want, most):
    """Exits if two vectors differ by more than `most` of the largest number."""
    off = np.abs(have - want).max() / np.abs(want).max()
    print(f"{name}: largest difference {off:.2g} of the largest number")
    if not off <= most:
        sys.exit(f"{name} differs by more than {most}")


def main():
    """Makes the golden file, or checks it."""
    want = by_numpy()
    compare("PyTorch's hook and numpy", by_pytorch(), want, 1e-9)
    if sys.argv[1:] == ["make"]:
        GOLDEN.write_text("".join(f"{x:.9g}\n" for x in want))
    compare(GOLDEN.name, np.loadtxt(GOLDEN), want, 1e-7)


if __name__ == "__main__":
    main()
