#!/usr/bin/env python3
"""Times a training step of GPT-2 in tuned PyTorch, for comparison in bench/layer_perf.

    gpt2_torch_speed.py layers=4 heads=4 channels=256 context=128 vocab=256
                        batch=8 tokens=128 precision=fp32|bf16 threads=1
                        [ours_ms=MS]

A step is forward, backward, clipping and AdamW; bf16 is autocast. There is a
line for eager mode and one for compiled (torch.compile). Both use fused
attention (scaled_dot_product_attention) and the fused AdamW. The line names
what this PyTorch lacks. Without fused attention, eager mode multiplies the
matrices itself. Without the fused AdamW, its foreach loops update. A version
that cannot compile has no such line. ours_ms= is Lockstep's time for the same
step: with it a line says how many times as fast Lockstep is.

Weights start as GPT-2's do, from a normal distribution of 0.02. PyTorch's own
start gives embeddings of 1: the loss begins in the hundreds, after a few steps
gradients are denormal numbers, and a processor adds these many times slower.

PyTorch is tuned in these ways. It uses AVX-512 if the processor has it. The
allocator keeps its memory. Products come from MKL or the OpenMP build of
OpenBLAS; for that the program starts itself again. It also chooses OpenBLAS's
AVX-512 kernels by name, since on newer processors OpenBLAS falls back to those
of a Pentium 4. With Debian's reference BLAS a comparison would mean nothing, so
there is none. Exit status 77: a comparison is not possible.
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
    """Start this program again with settings that are read only at its start."""
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
        s[key] = (value if key == "precision" else
                  float(value) if key == "ours_ms" else int(value))
    return s


def blas(torch):
    """The library that computes products."""
    if "BLAS_INFO=mkl" in torch.__config__.show():
        return "MKL"
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
    fused = getattr(functional, "scaled_dot_product_attention", None)

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
            if fused:
                o = fused(q, k, v, is_causal=True)
                return o.transpose(1, 2).reshape(B, T, C)
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

    model = GPT2()
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.normal_(p, 0, 0.02)
    return model


def adamw(torch, model):
    """(the optimiser, its name)."""
    settings = {"lr": 1e-4, "betas": (0.9, 0.95), "weight_decay": 0.1}
    try:
        optimizer = torch.optim.AdamW(model.parameters(), fused=True, **settings)
        return optimizer, "fused AdamW"
    except (TypeError, RuntimeError):  # this PyTorch has none, or none for a CPU
        return torch.optim.AdamW(model.parameters(), **settings), "AdamW not fused"


def measure(torch, s, compiled):
    """(seconds of a step, the optimiser's name)."""
    torch.manual_seed(1)
    model = build(torch, s)
    optimizer, name = adamw(torch, model)
    run = torch.compile(model) if compiled else model
    x = torch.randint(s["vocab"], (s["batch"], s["tokens"]))
    y = torch.randint(s["vocab"], (s["batch"] * s["tokens"],))
    # one thread: its own processor time, as in layer_perf
    clock = time.thread_time if s["threads"] == 1 else time.perf_counter
    times = []
    for i in range(WARM + REPEATS):
        start = clock()
        with torch.autocast("cpu", dtype=torch.bfloat16,
                            enabled=s["precision"] == "bf16"):
            logits = run(x)
            loss = torch.nn.functional.cross_entropy(
                logits.view(-1, s["vocab"]).float(), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if i >= WARM:
            times.append(clock() - start)
        elif i == 0 and not loss.item() < 1.2 * math.log(s["vocab"]):
            raise RuntimeError(f"its first loss is {loss.item():.1f}, far above "
                               f"ln({s['vocab']})")
    return sorted(times)[REPEATS // 2], name


def print_row(torch, s, way, library):
    fused = hasattr(torch.nn.functional, "scaled_dot_product_attention")
    attention = "fused attention" if fused else "attention not fused"
    head = f"PyTorch {torch.__version__} {way}, {library}"
    try:
        step, optimizer = measure(torch, s, way == "compiled")
    except Exception as e:  # pylint: disable=broad-except  # a compiler's
        print(f"{head}: left out: {(str(e).splitlines() or [type(e).__name__])[0]}")
        return
    faster = f", ours is {step * 1e3 / s['ours_ms']:.2f} times as fast" \
        if "ours_ms" in s else ""
    print(f"{head}, {attention}, {optimizer}: step {step * 1e3:.2f} ms, "
          f"{s['batch'] * s['tokens'] / step:.0f} tokens/s{faster}", flush=True)


def main():
    s = settings()
    tune(s["threads"])
    try:
        import torch
    except ImportError as missing:
        give_up(f"{missing}; try: apt-get install python3-torch, or peer_python= "
                "of a virtual environment that has it")
    torch.set_num_threads(s["threads"])
    library = blas(torch)
    print_row(torch, s, "eager", library)
    if hasattr(torch, "compile"):
        print_row(torch, s, "compiled", library)
    else:
        print(f"PyTorch {torch.__version__} compiled: left out: it has no "
              "torch.compile; try: peer_python= of a PyTorch 2")


if __name__ == "__main__":
    main()
