#!/usr/bin/env python3
"""Times the compressors of gradients in PyTorch, for comparison in bench/squeeze_perf.

    squeeze_torch_speed.py n=6250000 rounds=11 density=0.01 levels=127 squeeze_rank=4
                           [copy_ms=MS] [topk=MS int8=MS sign=MS power=MS demo=MS]

Each does in eager mode, on one thread, what squeeze_perf measures: encoding makes a
message of a vector of normal deviates and leaves there what the message lacks (power
and demo: as squeeze_perf), decoding adds the message to a sum. A line for each has the
medians of the rounds. copy_ms= is the time of a memcpy of the vector, and topk= .. are
Lockstep's times for the same: with them a line has both ratios. A sign is a byte here,
because PyTorch has no vectors of bits.

Exit status 77: a comparison is not possible.
"""
import math
import sys
import time

from gpt2_torch_speed import blas, give_up, tune

BLOCK = 128  # of int8


def topk(torch, s, x):
    def encode():
        at = torch.topk(x.abs(), math.ceil(s["density"] * s["n"]), sorted=False)[1]
        values = x[at]
        x[at] = 0
        return at, values
    return encode, lambda message, total: total.index_add_(0, *message)


def int8(torch, s, x):
    even = s["n"] // BLOCK * BLOCK  # the rest is less than a block
    blocks = x[:even].view(-1, BLOCK)

    def encode():
        unit = blocks.norm(dim=1, keepdim=True) / s["levels"]
        exact = blocks.abs() / unit
        whole = exact.floor()
        whole += torch.rand_like(whole) < exact - whole
        level = whole.copysign(blocks).to(torch.int8)
        blocks.sub_(level * unit)
        return level, unit
    return encode, lambda message, total: total[:even].view(-1, BLOCK).add_(
        message[0] * message[1])


def sign(torch, s, x):
    def encode():
        length = x.abs().mean()
        signs = x < 0
        x.sub_(length.expand_as(x).copysign(x))
        return signs, length
    return encode, lambda message, total: total.add_(
        torch.where(message[0], -message[1], message[1]))


def matrix(s, x):
    side = math.isqrt(s["n"])
    return x[:side * (s["n"] // side)].view(s["n"] // side, side)


def power(torch, s, x):
    m = matrix(s, x)
    q = torch.randn(m.shape[1], s["squeeze_rank"])

    def encode():
        p = torch.linalg.qr(m @ torch.linalg.qr(q)[0])[0]
        torch.mm(m.t(), p, out=q)
        return p
    return encode, lambda p, total: torch.mm(p, q.t(), out=matrix(s, total))


def dct(torch, n):
    """The orthonormal DCT-II: row k has the cosines of frequency k."""
    i = torch.arange(n, dtype=torch.float64)
    rows = torch.cos(math.pi / n * (i + .5) * i[:, None]) * math.sqrt(2 / n)
    rows[0] /= math.sqrt(2)
    return rows.float()


def demo(torch, s, x):
    m = matrix(s, x)
    a, b = (max(d for d in range(1, 65) if side % d == 0) for side in m.shape)
    chunks = m.view(m.shape[0] // a, a, m.shape[1] // b, b)
    rows, cols = dct(torch, a), dct(torch, b)
    k = math.ceil(s["density"] * a * b)

    def back(flat):
        return torch.einsum("yxkl,ki,lj->yixj", flat.view(*flat.shape[:2], a, b), rows, cols)

    def encode():
        flat = torch.einsum("yixj,ki,lj->yxkl", chunks, rows, cols).flatten(2)
        at = torch.topk(flat.abs(), k, dim=-1, sorted=False)[1]
        values = flat.gather(-1, at)
        chunks.sub_(back(torch.zeros_like(flat).scatter_(-1, at, values)))
        return at, values, flat.shape

    def decode(message, total):
        at, values, shape = message
        matrix(s, total).view_as(chunks).copy_(
            back(torch.zeros(shape).scatter_(-1, at, values)).sign())
    return encode, decode


def measure(torch, s, make):
    """(milliseconds to encode, to decode): medians."""
    torch.manual_seed(1)
    gradients, total, found = torch.randn(s["n"]), torch.zeros(s["n"]), []
    x = gradients.clone()
    encode, decode = make(torch, s, x)
    for _ in range(s["rounds"] + 1):
        x.copy_(gradients)
        start = time.thread_time()
        message = encode()
        between = time.thread_time()
        decode(message, total)
        found.append((between - start, time.thread_time() - between))
    return [1e3 * sorted(v)[len(v) // 2] for v in zip(*found[1:])]


def main():
    words = dict(word.split("=", 1) for word in sys.argv[1:])
    s = {k: float(v) if k in ("density", "copy_ms") else int(v)
         for k, v in words.items() if k not in ("topk", "int8", "sign", "power", "demo")}
    tune(1)
    try:
        import torch
    except ImportError as missing:
        give_up(f"{missing}; try: apt-get install python3-torch, or peer_python= "
                "of a virtual environment that has it")
    torch.set_num_threads(1)
    head = f"PyTorch {torch.__version__} eager, {blas(torch)}"
    for make in topk, int8, sign, power, demo:
        with torch.no_grad():
            encode, decode = measure(torch, s, make)
        both = encode + decode
        ours = words.get(make.__name__)
        print(f"{head}: {make.__name__} {encode:.2f} + {decode:.2f} ms" +
              (f", {both / s['copy_ms']:.1f} memcpy" if "copy_ms" in s else "") +
              (f", ours is {both / float(ours):.1f} times as fast" if ours else ""),
              flush=True)


if __name__ == "__main__":
    main()
