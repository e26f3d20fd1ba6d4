#!/usr/bin/env python3
"""A training step of GPT-2 in PyTorch, tuned: what bench/layer_perf prints
beside ours.

    gpt2_torch_speed.py layers=4 heads=4 channels=256 context=128 vocab=256
                        batch=8 tokens=128 precision=fp32|bf16 threads=1

Forward, backward, clipping and AdamW; bf16 is autocast. Tuned means: AVX-512
where there is one, an allocator that keeps what it has, and the OpenMP build of
OpenBLAS, for which the program starts itself again; and that library's AVX-512
kernels by name, since on processors newer than itself it falls back to those of
a Pentium 4. With Debian's reference BLAS a comparison would mean nothing, and
there is none. Exit status 77: not possible here.
"""
import glob
import math
import os
import sys
import time

WARM, REPEATS = 3, 7


def give_up(why):
    print(f"PyTorch not compared: {why}")
    sys.exit(77)


def tune(threads):
    """Settings that a process must be born with."""
    if os.environ.get("GPT2_SPEED_TUNED"):
        return
    env = dict(os.environ, GPT2_SPEED_TUNED="1", OMP_NUM_THREADS=str(threads))
    env["GLIBC_TUNABLES"] = ("glibc.malloc.mmap_threshold=4294967296:"
                             "glibc.malloc.trim_threshold=4294967296:"
                             "glibc.malloc.top_pad=67108864")
    with open("/proc/cpuinfo") as f:
        if "avx512f" in f.read():
            env["ATEN_CPU_CAPABILITY"] = "avx512"
            env.setdefault("OPENBLAS_CORETYPE", "SkylakeX")
    folders = [os.path.dirname(p) for p in
               glob.glob("/usr/lib/*/openblas-openmp/libblas.so.3")]
    already = env.get("LD_LIBRARY_PATH")
    env["LD_LIBRARY_PATH"] = ":".join(folders + ([already] if already else []))
    os.execve(sys.executable, [sys.executable] + sys.argv, env)


def settings():
    s = {}
    for word in sys.argv[1:]:
        key, _, value = word.partition("=")
        s[key] = value if key == "precision" else int(value)
    return s


def blas():
    """The library that sgemm_ comes from."""
    with open("/proc/self/maps") as f:
        paths = {line.split()[-1] for line in f if "blas" in line}
    for path in sorted(paths):
        if "openblas" in os.path.realpath(path):
            return "OpenBLAS"
    give_up("its BLAS is not OpenBLAS; try: apt-get install "
            "libopenblas0-openmp")


def build(torch, s):
    nn, functional = torch.nn, torch.nn.functional
    C, H = s["channels"], s["heads"]

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(C), nn.LayerNorm(C)
            self.qkv, self.proj = nn.Linear(C, 3 * C), nn.Linear(C, C)
            self.fc, self.out = nn.Linear(C, 4 * C), nn.Linear(4 * C, C)

        def attend(self, x, mask):
            B, T, _ = x.shape
            q, k, v = self.qkv(x).view(B, T, 3, H, C // H).permute(
                2, 0, 3, 1, 4).unbind(0)
            scores = (q @ k.transpose(-2, -1)) * (1 / math.sqrt(C // H))
            p = functional.softmax(scores + mask, dim=-1)
            return (p @ v).transpose(1, 2).reshape(B, T, C)

        def forward(self, x, mask):
            x = x + self.proj(self.attend(self.ln_1(x), mask))
            return x + self.out(functional.gelu(self.fc(self.ln_2(x)),
                                                approximate="tanh"))

    class GPT2(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte = nn.Embedding(s["vocab"], C)
            self.wpe = nn.Embedding(s["context"], C)
            self.h = nn.ModuleList(Block() for _ in range(s["layers"]))
            self.ln_f = nn.LayerNorm(C)
            T = s["tokens"]
            self.register_buffer("mask", torch.full(
                (T, T), float("-inf")).triu(1))

        def forward(self, x):
            r = self.wte(x) + self.wpe.weight[:x.shape[1]]
            for block in self.h:
                r = block(r, self.mask)
            return functional.linear(self.ln_f(r), self.wte.weight)

    return GPT2()


def measure(torch, s):
    model = build(torch, s)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4,
                                  betas=(0.9, 0.95), weight_decay=0.1)
    x = torch.randint(s["vocab"], (s["batch"], s["tokens"]))
    y = torch.randint(s["vocab"], (s["batch"] * s["tokens"],))
    # one thread: its own processor time, as in layer_perf
    clock = time.thread_time if s["threads"] == 1 else time.perf_counter
    times = []
    for i in range(WARM + REPEATS):
        start = clock()
        with torch.autocast("cpu", dtype=torch.bfloat16,
                            enabled=s["precision"] == "bf16"):
            logits = model(x)
            loss = torch.nn.functional.cross_entropy(
                logits.view(-1, s["vocab"]).float(), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if i >= WARM:
            times.append(clock() - start)
    return sorted(times)[REPEATS // 2]


def main():
    s = settings()
    tune(s["threads"])
    try:
        import torch
    except ImportError as missing:
        give_up(f"{missing}; try: apt-get install python3-torch")
    torch.manual_seed(1)
    torch.set_num_threads(s["threads"])
    library = blas()
    step = measure(torch, s)
    tokens = s["batch"] * s["tokens"]
    print(f"PyTorch {torch.__version__}, {library}: step {step * 1e3:.2f} ms, "
          f"{tokens / step:.0f} tokens/s")


if __name__ == "__main__":
    main()
