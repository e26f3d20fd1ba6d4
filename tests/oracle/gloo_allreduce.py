#!/usr/bin/python3
"""Gloo's all-reduce in torch.distributed, to compare bench/sync_perf with.

    gloo_allreduce.py WORLD MIB [MIB ...]

Starts WORLD processes on loopback, which sum vectors of fp32 in place. Prints for each
size the median over rounds of the mean time over processes, and busbw as nccl-tests
define it. To use the same congestion control as sync_perf, start both in the same
environment: docs/communication.md shows how.
"""
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

ROUNDS = 11


def work(rank, world, sizes):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29517")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    if rank == 0:
        print(f"# gloo, {world} workers\n#    size(B)    time(us)    busbw")
    for mib in sizes:
        n = max(1, int(mib * 1048576 / 4))
        vector = torch.zeros(n)
        times = []
        for _ in range(ROUNDS + 2):
            vector.fill_(rank + 1)
            dist.barrier()
            start = time.perf_counter()
            dist.all_reduce(vector)
            times.append(time.perf_counter() - start)
            assert bool((vector == world * (world + 1) / 2).all())
        mine = torch.tensor(times[2:], dtype=torch.float64)
        dist.all_reduce(mine)
        middle = float((mine / world).median())
        if rank == 0:
            busbw = 4e-9 * n / middle * 2 * (world - 1) / world
            print(f"{4 * n:12d} {middle * 1e6:11.1f} {busbw:8.3f}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    workers = int(sys.argv[1])
    mp.spawn(work, (workers, [float(s) for s in sys.argv[2:]]), workers)
