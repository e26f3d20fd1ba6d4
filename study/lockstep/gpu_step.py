"""Estimates a training step on a GPU from its FLOP, bytes and instructions. It measures
nothing.

    products     FLOP / (490 .. 620 TFLOP/s)
    attention    instructions of a warp / (issued per second * 0.4 .. 0.6)
    passes       bytes / (2.2 .. 2.8 TB/s)

The figures are for an H100 SXM: 989 TFLOP/s dense in bf16, 132 multiprocessors that
issue 4 instructions each a cycle of 1.755 GHz, 3.35 TB/s (NVIDIA's data sheet). llm.c
trains GPT-2 124M at 468k tokens/s on such a GPU: its products then run at 490 TFLOP/s.
620 is an estimate of the rate that shapes like these can reach. The shares 0.4 .. 0.6
and the rates of passes over memory are estimates, too. tests/sass.py counted the
instructions of attention in nvcc's code.
"""

from .files import Error, visible

# Each pair is the best and the worst case. peak: FLOP/s of the data sheet. rates: of
# products, warp instructions, bytes of passes over memory, kernels a second.
GPUS = {
    "h100": {
        "peak": 989e12,
        "rates": ((620e12, 490e12),
                  (4 * 132 * 1.755e9 * 0.6, 4 * 132 * 1.755e9 * 0.4),
                  (2.8e12, 2.2e12), (1 / 1e-6, 1 / 2e-6)),
        # to the other GPUs of its host: link=, seconds of a message
        "inner": ("450GB/s", "3.4e-6"),
        "assumed": "assumed: NVLink of an H100 SXM, 450 GB/s each way by\n           "
                   "NVIDIA's data sheet, 3.4 us a message by NCCL's tuning",
    },
}
PRODUCT, ISSUED, MOVED, KERNELS = range(4)
UNITS = ("TFLOP", 1e12), ("G instr.", 1e9), ("GB", 1e9), ("kernels", 1)
# Instructions of a warp for a tile of 16 rows of its own and 64 of the other operand.
FORWARD, DQ, DKV, ROWS, COLUMNS, LINE = 335, 338, 507, 16, 64, 64


def find(name):
    """The figures of a GPU."""
    if name not in GPUS:
        raise Error(f"device={visible(name)}: only an h100 has an estimate; try: "
                    "device=h100")
    return GPUS[name]


def with_precision(core, name, words):
    """The run of these words on a GPU. The estimates are for bf16, so it is the
    default."""
    find(name)
    run = core.ask("run", *words)
    if "precision" not in run["asked"]:
        return core.ask("run", *words, "precision=bf16")
    if run["settings"]["precision"] != "bf16":
        raise Error(f"device={name}: there is no estimate for "
                    f"precision={run['settings']['precision']}; try: precision=bf16, or "
                    "without device=")
    return run


def _parts(run, batch):
    """(name, unit, amount) of a step."""
    N, C, L = batch * run["context"], run["channels"], run["layers"]
    V = (run["vocab"] + LINE - 1) // LINE * LINE
    rows = N * C * 2  # bytes of a tensor (N, C)
    tiles = sum(row // COLUMNS + 1 for row in range(0, run["context"], ROWS))
    heads = batch * run["heads"] * L * tiles  # tiles on or below the diagonal
    return (("products of the layers, forward", PRODUCT, 24 * N * C * C * L),
            ("products of the layers, backward", PRODUCT, 48 * N * C * C * L),
            ("products of the classifier", PRODUCT, 6 * N * C * V),
            ("attention, forward", ISSUED, heads * FORWARD),
            ("attention, backward", ISSUED, heads * (DQ + DKV)),
            ("sum of dO * O", MOVED, 2 * rows * L),
            ("LayerNorm and additions, forward", MOVED, 4 * rows * (2 * L + 1)),
            ("LayerNorm, backward", MOVED, 5 * rows * (2 * L + 1)),
            ("gradients of the biases", MOVED, 9 * rows * L),
            ("loss and its gradient", MOVED, 2 * N * V * 2),
            ("embedding, norm and AdamW", MOVED,
             4 * rows + 8 * V * C + 34 * run["params"]),
            ("gaps between kernels", KERNELS, 28 * L + 20))


def estimate(name, run, batch):
    """Prints an estimate for each part of a step of `batch` sequences in bf16. Returns
    the mean of the best and the worst sum, in ms."""
    gpu, tokens, best, worst = find(name), batch * run["context"], 0, 0
    print(f"A step of {batch} x {run['context']:.0f} tokens in bf16 on one {name}, "
          "estimated from its arithmetic and bytes.\nNothing here was measured.\n\n"
          f"{'part':<34} {'amount':>10} {'ms, best':>8} {'worst':>8}")
    for part, unit, amount in _parts(run, batch):
        seconds = [amount / rate for rate in gpu["rates"][unit]]
        best, worst = best + seconds[0], worst + seconds[1]
        print(f"{part:<32} {amount / UNITS[unit][1]:8.3g} {UNITS[unit][0]:<8} "
              f"{seconds[0] * 1e3:5.2f} {seconds[1] * 1e3:8.2f}")
    flop = 6 * run["params"] + 12 * run["layers"] * run["channels"] * run["context"]
    print(f"{'sum':<34} {'':>15} {best * 1e3:5.1f} {worst * 1e3:8.1f}\n"
          f"{'tokens/s':<34} {'':>15} {tokens / best * 1e-3:4.0f}k "
          f"{tokens / worst * 1e-3:7.0f}k\n"
          f"{'MFU':<34} {'':>15} {100 * flop * tokens / best / gpu['peak']:4.0f}% "
          f"{100 * flop * tokens / worst / gpu['peak']:7.0f}%\n")
    return (best + worst) / 2 * 1e3
