#!/usr/bin/env python3
"""PyTorch's speed at training GPT-2 on a GPU, to compare `lockstep bench gpu` with.
Sizes and batch are the same; AdamW has fused=True; tokens are random.

    gpt2_torch_gpu.py [batch=32] [tokens=1024] [steps=20] [eager] [compile]
                      [layers=12] [heads=12] [channels=768] [context=1024]
                      [vocab=50257]

Parameters are fp32; autocast computes in bf16; attention is
scaled_dot_product_attention (flash). Prints a line for eager and one for compile:
the median ms of a step, tokens/s, and TFLOP/s by the same formula, 6 N + 12 L C T
FLOP for each token, where N does not count the position table. Exit status 77: no
PyTorch here, or no GPU.
"""
import sys
import time

try:
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError as missing:
    print(f"PyTorch not compared: {missing}; try: pip install torch, then "
          "tests/oracle/gpt2_torch_gpu.py")
    sys.exit(77)

WARM = 10
SIZES = {"layers": 12, "heads": 12, "channels": 768, "context": 1024,
         "vocab": 50257, "batch": 32, "tokens": 1024, "steps": 20}


class Block(nn.Module):
    def __init__(self, C, H):
        super().__init__()
        self.heads = H
        self.ln_1, self.ln_2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.qkv, self.proj = nn.Linear(C, 3 * C), nn.Linear(C, C)
        self.fc, self.out = nn.Linear(C, 4 * C), nn.Linear(4 * C, C)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (z.view(b, t, self.heads, c // self.heads).transpose(1, 2)
                   for z in self.qkv(self.ln_1(x)).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.out(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class GPT2(nn.Module):
    def __init__(self, s):
        super().__init__()
        C = s["channels"]
        self.wte = nn.Embedding(s["vocab"], C)
        self.wpe = nn.Embedding(s["context"], C)
        self.blocks = nn.ModuleList(Block(C, s["heads"])
                                    for _ in range(s["layers"]))
        self.ln_f = nn.LayerNorm(C)

    def forward(self, x, y):
        h = self.wte(x) + self.wpe.weight[:x.shape[1]]
        for block in self.blocks:
            h = block(h)
        logits = self.ln_f(h) @ self.wte.weight.t()
        return F.cross_entropy(logits.flatten(0, 1), y.flatten())


def measure(way, s):
    torch.manual_seed(1)
    batch, tokens, steps = s["batch"], s["tokens"], s["steps"]
    model = GPT2(s).cuda()
    n = sum(p.numel() for p in model.parameters()) - \
        s["context"] * s["channels"]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    run = torch.compile(model) if way == "compile" else model
    x = torch.randint(s["vocab"], (batch, tokens), device="cuda")
    y = torch.randint(s["vocab"], (batch, tokens), device="cuda")
    times = []
    for i in range(WARM + steps):
        torch.cuda.synchronize()
        began = time.perf_counter()
        with torch.autocast("cuda", torch.bfloat16):
            loss = run(x, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        if i >= WARM:
            times.append(time.perf_counter() - began)
    step = sorted(times)[len(times) // 2]
    flop = (6 * n + 12 * s["layers"] * s["channels"] * tokens) * batch * tokens
    print(f"torch {torch.__version__} {way:7} bf16 {batch:4} x {tokens} "
          f"{step * 1e3:9.2f} ms {batch * tokens / step:10.0f} tokens/s "
          f"{flop / step * 1e-12:8.1f} TFLOP/s", flush=True)


def main():
    if not torch.cuda.is_available():
        print("PyTorch not compared: it sees no GPU; try: its CUDA build")
        return 77
    sizes, ways = dict(SIZES), []
    for word in sys.argv[1:]:
        key, _, value = word.partition("=")
        if key in sizes and value.isdigit():
            sizes[key] = int(value)
        elif word in ("eager", "compile"):
            ways.append(word)
        else:
            sys.exit(f"{word}: unknown argument; see the head of this file")
    torch.set_float32_matmul_precision("high")
    print(torch.cuda.get_device_name())
    for way in ways or ("eager", "compile"):
        measure(way, sizes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
