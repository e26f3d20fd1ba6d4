#!/usr/bin/env python3
"""GPT-2 built from torch.nn: it computes the numbers that our C model must reproduce.

    gpt2_torch.py make     write tests/golden/gpt2_tiny*.safetensors again
    gpt2_torch.py check    compute all numbers again, and compare with these files

The model is tiny. Its weights are larger than usual, so that no gradient is
negligible. The files have the logits, loss and gradients of one step, then the
results of 50 steps of AdamW with clipping, a schedule, and weight decay of matrices
only. If `transformers` or `safetensors` can be imported, check also compares with
them. Exit status 77: no PyTorch here.
"""
import json
import math
import os
import struct
import sys

try:
    import numpy as np
    import torch
    from torch import nn
except ImportError as missing:
    print(f"oracle skipped: {missing}; try: apt-get install python3-torch")
    sys.exit(77)

L, H, C, T, V, B, STEPS = 2, 2, 32, 16, 67, 3, 50
SETTINGS = dict(lr=3e-3, min_lr=3e-4, warmup=5, steps=STEPS, beta1=0.9,
                beta2=0.95, eps=1e-8, weight_decay=0.1, clip=1.0)
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "..", "golden")
WEIGHTS = os.path.join(GOLDEN, "gpt2_tiny.safetensors")
EXPECTED = os.path.join(GOLDEN, "gpt2_tiny_expected.safetensors")


# ---- safetensors files, read and written without the safetensors package

def write_safetensors(path, tensors, metadata):
    header, off = {"__metadata__": metadata}, 0
    for name, a in tensors.items():
        assert a.dtype == np.float32
        header[name] = {"dtype": "F32", "shape": list(a.shape),
                        "data_offsets": [off, off + a.nbytes]}
        off += a.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for a in tensors.values():
            f.write(np.ascontiguousarray(a).tobytes())


def read_safetensors(path):
    with open(path, "rb") as f:
        n, = struct.unpack("<Q", f.read(8))
        header, data = json.loads(f.read(n)), f.read()
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, t in header.items():
        begin, end = t["data_offsets"]
        tensors[name] = np.frombuffer(
            data[begin:end], "<f4").reshape(t["shape"]).copy()
    return tensors, metadata


# ---- the model

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(C, eps=1e-5)
        self.attn = nn.MultiheadAttention(C, H, batch_first=True)
        self.ln_2 = nn.LayerNorm(C, eps=1e-5)
        self.c_fc = nn.Linear(C, 4 * C)
        self.gelu = nn.GELU(approximate="tanh")
        self.c_proj = nn.Linear(4 * C, C)

    def forward(self, x, mask):
        h = self.ln_1(x)
        x = x + self.attn(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.c_proj(self.gelu(self.c_fc(self.ln_2(x))))


class GPT2(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(V, C)
        self.wpe = nn.Embedding(T, C)
        self.h = nn.ModuleList(Block() for _ in range(L))
        self.ln_f = nn.LayerNorm(C, eps=1e-5)

    def forward(self, x):
        n = x.shape[1]
        mask = torch.ones(n, n, dtype=torch.bool).triu(1)
        r = self.wte(x) + self.wpe(torch.arange(n))
        for block in self.h:
            r = block(r, mask)
        return self.ln_f(r) @ self.wte.weight.T


def named(model):
    """(Hugging Face's name, parameter, whether PyTorch stores it transposed)"""
    yield "wte.weight", model.wte.weight, False
    yield "wpe.weight", model.wpe.weight, False
    for i, b in enumerate(model.h):
        for name, p, turned in (
                ("ln_1.weight", b.ln_1.weight, False),
                ("ln_1.bias", b.ln_1.bias, False),
                ("attn.c_attn.weight", b.attn.in_proj_weight, True),
                ("attn.c_attn.bias", b.attn.in_proj_bias, False),
                ("attn.c_proj.weight", b.attn.out_proj.weight, True),
                ("attn.c_proj.bias", b.attn.out_proj.bias, False),
                ("ln_2.weight", b.ln_2.weight, False),
                ("ln_2.bias", b.ln_2.bias, False),
                ("mlp.c_fc.weight", b.c_fc.weight, True),
                ("mlp.c_fc.bias", b.c_fc.bias, False),
                ("mlp.c_proj.weight", b.c_proj.weight, True),
                ("mlp.c_proj.bias", b.c_proj.bias, False)):
            yield f"h.{i}.{name}", p, turned
    yield "ln_f.weight", model.ln_f.weight, False
    yield "ln_f.bias", model.ln_f.bias, False


def as_array(tensor, turned):
    a = tensor.detach().numpy()
    return np.ascontiguousarray(a.T if turned else a)


def draw_weights():
    """Weights so large that no term of a gradient is near zero."""
    rng = np.random.default_rng(1)
    weights = {}
    for name, p, turned in named(GPT2()):
        shape = p.shape[::-1] if turned else p.shape
        a = rng.normal(0, 0.15 if len(shape) == 2 else 0.1, shape)
        if "ln_" in name and name.endswith("weight"):
            a += 1
        weights[name] = a.astype(np.float32)
    return weights


def draw_tokens():
    """(STEPS, B, T + 1) tokens. 80% of them are a function of the token before."""
    rng = np.random.default_rng(2)
    tokens = rng.integers(0, V, (STEPS, B, T + 1))
    for t in range(1, T + 1):
        follow = rng.random((STEPS, B)) < 0.8
        tokens[:, :, t] = np.where(follow, (3 * tokens[:, :, t - 1] + 5) % V,
                                   tokens[:, :, t])
    return tokens.astype(np.float32)


def load(weights):
    model = GPT2()
    with torch.no_grad():
        for name, p, turned in named(model):
            a = torch.from_numpy(weights[name])
            p.copy_(a.T if turned else a)
    return model


# ---- the numbers to compare

def mean_loss(logits, y):
    return nn.functional.cross_entropy(logits.reshape(-1, V), y.reshape(-1))


def batch(tokens, step):
    both = torch.from_numpy(tokens[step]).long()
    return both[:, :-1], both[:, 1:]


def learning_rate(step):
    s = SETTINGS
    if step < s["warmup"]:
        return s["lr"] * (step + 1) / s["warmup"]
    done = (step - s["warmup"]) / (s["steps"] - s["warmup"])
    return s["min_lr"] + (s["lr"] - s["min_lr"]) * 0.5 * (
        1 + math.cos(math.pi * done))


def first_step(weights, tokens):
    model = load(weights)
    x, y = batch(tokens, 0)
    logits = model(x)
    loss = mean_loss(logits, y)
    loss.backward()
    out = {"logits": logits.detach().numpy(),
           "loss": np.array([loss.item()], np.float32)}
    for name, p, turned in named(model):
        out["grad." + name] = as_array(p.grad, turned)
    return out


def train(weights, tokens):
    model, s = load(weights), SETTINGS
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": s["weight_decay"]},
         {"params": vectors, "weight_decay": 0.0}],
        betas=(s["beta1"], s["beta2"]), eps=s["eps"])
    losses, norms = [], []
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        x, y = batch(tokens, step)
        loss = mean_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        norms.append(float(nn.utils.clip_grad_norm_(model.parameters(),
                                                    s["clip"])))
        optimizer.step()
        losses.append(loss.item())
    return {"losses": np.array(losses, np.float32),
            "norms": np.array(norms, np.float32)}


def compute(weights, tokens):
    out = {"tokens": tokens}
    out.update(first_step(weights, tokens))
    out.update(train(weights, tokens))
    return out


def make():
    weights, tokens = draw_weights(), draw_tokens()
    os.makedirs(GOLDEN, exist_ok=True)
    write_safetensors(WEIGHTS, weights, {"format": "pt", "heads": str(H)})
    expected = compute(weights, tokens)
    write_safetensors(EXPECTED, expected,
                      {k: repr(v) for k, v in SETTINGS.items()})
    print(f"loss {expected['losses'][0]:.6f} to {expected['losses'][-1]:.6f}, "
          f"gradient norms {expected['norms'].min():.3f} to "
          f"{expected['norms'].max():.3f}")


# ---- check

def distance(a, b):
    a, b = a.astype(np.float64), b.astype(np.float64)
    return np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30)


def compare(title, has, wanted, limit):
    d = distance(has, wanted)
    if not d < limit:
        sys.exit(f"oracle: {title} differs by {d:.3g} in relative norm, "
                 f"the limit is {limit:g}")
    return d


def check_transformers(weights, expected):
    try:
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError as missing:
        print(f"transformers: not compared: {missing}")
        return
    model = GPT2LMHeadModel(GPT2Config(
        vocab_size=V, n_positions=T, n_embd=C, n_layer=L, n_head=H,
        activation_function="gelu_new", resid_pdrop=0, embd_pdrop=0,
        attn_pdrop=0))
    state = {"transformer." + k: torch.from_numpy(v)
             for k, v in weights.items()}
    missing = set(model.load_state_dict(state, strict=False).missing_keys)
    if any("attn.bias" not in k and "masked_bias" not in k and
           k != "lm_head.weight" for k in missing):
        sys.exit(f"oracle: weights missing for transformers: {sorted(missing)}")
    x, y = batch(expected["tokens"], 0)
    logits = model(x).logits
    loss = mean_loss(logits, y)
    loss.backward()
    compare("transformers' logits", logits.detach().numpy(),
            expected["logits"], 1e-5)
    for name, p in model.transformer.named_parameters():
        compare("transformers' gradient of " + name, p.grad.numpy(),
                expected["grad." + name], 1e-5)
    print("transformers: same logits, same gradients")


def check_container(weights):
    try:
        from safetensors.numpy import load_file
    except ImportError as missing:
        print(f"safetensors: not compared: {missing}")
        return
    theirs = load_file(WEIGHTS)
    if sorted(theirs) != sorted(weights) or any(
            not np.array_equal(theirs[k], weights[k]) for k in weights):
        sys.exit("oracle: safetensors reads our file differently")
    print("safetensors: reads the same numbers")


def check():
    weights, _ = read_safetensors(WEIGHTS)
    expected, settings = read_safetensors(EXPECTED)
    if settings != {k: repr(v) for k, v in SETTINGS.items()}:
        sys.exit("oracle: golden settings differ; try: gpt2_torch.py make")
    again = compute(weights, expected["tokens"])
    for name, wanted in expected.items():
        limit = 1e-4 if name in ("losses", "norms") else 1e-5
        compare(name, again[name], wanted, limit)
    print(f"torch {torch.__version__}: {len(expected)} tensors agree")
    check_container(weights)
    check_transformers(weights, expected)


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    if sys.argv[1:] == ["make"]:
        make()
    elif sys.argv[1:] == ["check"]:
        check()
    else:
        sys.exit(__doc__)
