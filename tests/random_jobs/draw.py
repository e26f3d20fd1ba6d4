"""Draws the settings of jobs."""

import math
import re

from promise import is_loose, sizes, world

MOST_WORKERS = 8
# What no draw leaves out; and what it makes usual instead, for the oracle reads it.
KEPT = ("sync", "model", "batch", "layers", "heads", "channels", "context", "vocab_size",
        "steps", "eval_batches")
USUAL = ("precision", "dropout", "optimizer", "eval", "accum")

# All that the draw may set, and what stands for a key that is left out.
DEFAULTS = {
    "wire": "fp32", "overlap": 1, "clip": 1, "recompute": 0, "dropout": 0,
    "precision": "fp32", "optimizer": "adamw", "eval": 0, "trace": "on", "samples": 10,
    "save": 0, "keep": 2, "save_async": 0, "verify": 0, "consistency": "bsp",
    "elastic": 0, "backup": 0, "update": "auto", "priority": 1, "slice_kb": 256,
    "accum": 1, "batch": 1, "layers": 1, "heads": 1, "warmup": 0,
    "schedule": "constant", "bucket_mb": 0, "transport": "auto", "chunks": 1,
    "ahead": 0, "pipeline": "1f1b", "staging": "auto", "bucket": "size",
    "server_threads": 1, "servers": "1", "stages": "", "net": "",
    "squeeze": "none", "density": .01, "scope": "bucket", "levels": 127, "feedback": 1,
    "squeeze_after": 0, "freeze": 0, "squeeze_rank": 4, "momentum_correction": 0,
    "tp_sequence": 0, "tp_wire": "fp32", "offload": "none",
    "attention_over": "gather", "tensorboard": 0, "loss_scale": 0,
    "momentum": .9, "weight_decay": .1}

# Values that a wild draw gives to any job, so that rare ones meet.
FORCED = {
    "wire": ("fp32", "bf16", "fp16"), "precision": ("fp32", "bf16", "fp16"),
    "overlap": (0, 1), "recompute": (0, 1), "dropout": (0, .1), "clip": (0, .05, 1),
    "optimizer": ("adamw", "sgd"), "eval": (0, 2, 3), "verify": (0, 1, 2),
    "save_async": (0, 1), "keep": (0, 1, 2), "transport": ("tcp", "shm", "mpi", "zmq", "library"),
    "consistency": ("bsp", "ssp:1", "asp"), "elastic": (0, 1), "backup": (0, 1),
    "update": ("server", "worker"), "shard": (1, 2, 3), "offload": ("none", "disk"),
    "pipeline": ("1f1b", "gpipe", "naive"), "ahead": (0, 1), "chunks": (1, 2),
    "schedule": ("constant", "cosine", "linear"), "every": (1, 2, 3),
    "outer_lr": (1, .7), "outer_momentum": (0, .9), "staging": ("auto", "always"),
    "bucket": ("size", "block"), "servers": (1, 2, 3), "priority": (0, 1),
    "squeeze": ("topk", "int8", "sign", "power", "demo"), "feedback": (0, 1),
    "squeeze_after": (0, 2), "freeze": (0, 2),
    "scope": ("bucket", "tensor", "model"), "trace": ("on", "off"),
    "attention_over": ("gather", "ring", "heads"),
    "tp_sequence": (0, 1, 2), "tp_wire": ("bf16", "fp16"),
    "mesh": ("dp2", "pp2", "pp3", "tp2", "tp3", "cp2", "cp3", "dp2,pp2", "tp2,dp2",
             "pp2,tp2", "dp2,cp2", "cp2,pp2", "tp2,cp2", "dp2,pp2,tp2", "cp2,up2",
             "up3,cp2")}


def draw_size(rng):
    """A model and batches of odd sizes."""
    heads = rng.choice((1, 2, 3, 4, 5))
    return {"model": "nano", "layers": rng.randint(1, 5), "heads": heads,
            "channels": heads * rng.choice((2, 3, 4, 7, 8)),
            "context": rng.choice((5, 8, 11, 16, 17)),
            "vocab_size": rng.choice((256, 257, 263)), "batch": rng.randint(1, 4),
            "accum": rng.choice((1, 1, 2, 3, 4, 6)), "steps": rng.randint(4, 12)}


def draw_rule(rng):
    """How it trains."""
    job = {"threads": 1, "log": 0, "timeout": 60, "warmup": rng.randint(0, 3),
           "seed": rng.randint(1, 99), "lr": rng.choice((0.002, 0.0005)),
           "schedule": rng.choice(("constant", "cosine", "linear")),
           "clip": rng.choice((1, 1, 0, 0.05)), "recompute": rng.choice((0, 0, 1)),
           "dropout": rng.choice((0, 0, 0, 0.1)),
           "precision": rng.choice(("fp32", "fp32", "fp32", "bf16", "fp16")),
           "optimizer": rng.choice(("adamw", "adamw", "sgd")),
           "eval": rng.choice((0, 0, 2, 3)), "eval_batches": rng.choice((2, 3)),
           "trace": rng.choice(("on", "off")), "samples": rng.choice((0, 10))}
    if rng.random() < .6:
        job |= {"save": rng.randint(1, 4), "keep": rng.choice((0, 1, 2)),
                "save_async": rng.choice((0, 0, 1))}
    if rng.random() < .3:
        job["verify"] = rng.randint(1, 3)
    if rng.random() < .1:
        job["staging"] = "always"
    if rng.random() < .1:
        job["tensorboard"] = 1
    if rng.random() < .15:
        job["offload"] = "disk"
    return job


def draw_mesh(rng):
    """A mesh of at most MOST_WORKERS."""
    while True:
        found = {k: rng.randint(1, 4) for k in ("dp", "pp", "tp")}
        found["cp"] = rng.choice((1, 1, 2, 3))
        found["up"] = rng.choice((1, 2, 3)) if found["cp"] > 1 else 1
        if 1 < math.prod(found.values()) <= MOST_WORKERS:
            words = [f"{k}{n}" for k, n in found.items() if n > 1 or rng.random() < .2]
            rng.shuffle(words)
            return ",".join(words)


def draw_stages(rng, layers, parts):
    """The layers of each stage, in any way."""
    cuts = sorted(rng.sample(range(1, layers), parts - 1))
    return ",".join(str(b - a) for a, b in zip([0, *cuts], [*cuts, layers]))


def draw_pipeline(rng, job, layers):
    """How the stages of a job work together."""
    more = {"pipeline": rng.choice(("1f1b", "gpipe", "naive")), "ahead": rng.choice((0, 1))}
    if rng.random() < .25:
        more |= {"chunks": 2, "pipeline": "1f1b"}
    parts = sizes(job)["pp"] * more.get("chunks", 1)
    if rng.random() < .3 and layers >= parts > 1:
        more["stages"] = draw_stages(rng, layers, parts)
    return more


def draw_straggler(rng):
    """A slow worker, whose lag shows how far the others went ahead. It is exact if the
    model is one row."""
    return rng.choice(({}, {"straggler": "0:6"}, {"straggler": "0:6", "slice_kb": 256}))


def draw_servers(rng, sync):
    """What parameter servers read."""
    job = {"consistency": rng.choice(("bsp", "bsp", "bsp", "ssp:1", "asp")),
           "update": rng.choice(("auto", "server", "worker")),
           "elastic": rng.choice((0, 0, 1)), "slice_kb": rng.choice((1, 4, 256)),
           "priority": rng.choice((0, 1)), "server_threads": rng.choice((1, 1, 3))}
    if sync == "dps":
        job["servers"] = rng.randint(1, 3)
    if job["consistency"] != "bsp":
        job["update"] = rng.choice(("auto", "server"))
    elif rng.random() < .2:
        job["backup"] = 1
    if job["consistency"] == "ssp:1":
        job |= draw_straggler(rng)
    if rng.random() < .15:
        job["transport"] = "mpi"
    return job


def draw_squeeze(rng):
    """How gradients are compressed."""
    if rng.random() < .2:  # a rule of its own
        return {"squeeze": "demo", "wire": "fp32", "optimizer": "sgd", "clip": 0,
                "density": rng.choice((1e-6, .01, .3, 1)), "momentum": rng.choice((.9, .999))}
    job = {"squeeze": rng.choice(("topk", "int8", "sign", "power")), "wire": "fp32",
           "feedback": rng.choice((0, 1, 1)), "squeeze_after": rng.choice((0, 0, 2))}
    if job["squeeze"] == "sign" and rng.random() < .5:
        # with the usual eps= second moments that are frozen at nearly 0 make losses infinite
        job |= {"squeeze_after": 0, "freeze": rng.choice((2, 3)), "optimizer": "adamw",
                "eps": 0.001}
    if job["squeeze"] == "topk":
        job["density"] = rng.choice((1e-6, .01, .3, 1))
        job["momentum_correction"] = rng.choice((0, 0, 1))
    if job["squeeze"] == "int8":
        job["levels"] = rng.choice((12, 15, 127))
    elif job["squeeze"] == "power":
        job["squeeze_rank"] = rng.choice((1, 2, 4))
    else:
        job["scope"] = rng.choice(("bucket", "tensor", "model"))
    return job


def draw_elastic(rng, emulated):
    """Servers whose workers may die. Half of the models are so large that a save takes
    long enough to be hit. Links may be so slow that a server notices a death, half a
    second later, while messages are under way."""
    job = {"sync": rng.choice(("sps", "dps")), "workers": rng.choice((1, 2, 3, 3, 4, 4, 5))}
    job |= draw_servers(rng, job["sync"])
    for key in "backup", "transport":
        job.pop(key, None)
    job |= {"elastic": 1, "update": rng.choice(("auto", "server")), "timeout": 30, "save": rng.randint(1, 4), "steps": rng.randint(10, 24),
            "consistency": rng.choice(("bsp", "bsp", "ssp:1", "asp"))}
    if job["consistency"] == "bsp":
        job["verify"] = rng.choice((0, 0, 2))  # refused, so left out; or a mistake
    if job["consistency"] == "ssp:1":
        job |= draw_straggler(rng)
    elif emulated and rng.random() < .25:
        job |= {"heads": 2, "channels": 64, "layers": 3, "slice_kb": 16,
                "net": "10mbit", "steps": rng.randint(4, 6)}
    elif rng.random() < .6:
        job |= {"heads": 2, "channels": 128, "slice_kb": rng.choice((1, 4))}
    return job


def draw_way(rng, layers, emulated=False):
    """How its workers agree. `emulated`: whether hosts can be emulated."""
    sync = rng.choice(("local", "ring", "ring", "allreduce", "sps", "dps", "zero", "zero",
                       "outer", "dataparallel", "mesh", "mesh", "mesh", "elastic",
                       "elastic", "elastic"))
    if sync == "elastic":
        return draw_elastic(rng, emulated)
    job = {"sync": sync}
    if sync == "mesh":
        job = {"sync": rng.choice(("ring", "ring", "allreduce", "zero")),
               "mesh": draw_mesh(rng)}
        if sizes(job)["pp"] > 1:
            job |= draw_pipeline(rng, job, layers)
        if sizes(job)["tp"] > 1:
            job["tp_sequence"] = rng.choice((0, 1, 2))
            job["tp_wire"] = rng.choice(("fp32", "fp32", "fp32", "bf16", "fp16"))
        if sizes(job)["cp"] > 1:
            ways = ("gather", "ring", "heads")
            job["attention_over"] = rng.choice(ways[:2] if sizes(job)["up"] > 1 else ways)
    elif sync != "local":
        job["workers"] = rng.choice((2, 2, 3, 4, 4, 5, 7) if rng.random() < .3 else (2, 3))
    if sync == "local":
        return job
    if rng.random() < .4:
        job["bucket_mb"] = rng.choice((0.001, 0.003, 0.01))
    if rng.random() < .2:
        job["bucket"] = "block"
    job["wire"] = rng.choice(("fp32", "fp32", "bf16", "fp16"))
    job["overlap"] = rng.choice((0, 1))
    if job["sync"] in ("ring", "dataparallel"):
        job["transport"] = rng.choice(("tcp", "shm", "auto"))
    if job["sync"] in ("zero", "outer"):
        job["transport"] = rng.choice(("tcp", "shm", "auto", "library", "library"))
    if sync in ("sps", "dps"):
        job |= draw_servers(rng, sync)
    if sync in ("ring", "allreduce", "sps", "dps", "zero") and rng.random() < .4:
        job |= draw_squeeze(rng)
    if job.get("squeeze") and sync in ("sps", "dps"):
        job |= {"update": "worker", "consistency": "bsp", "elastic": 0, "backup": 0}
    if job["sync"] == "zero":
        job["shard"] = rng.choice((1, 2, 3))
        if job["shard"] > 1 and job.get("squeeze") in ("topk", "int8", "sign"):
            job["feedback"] = rng.choice((0, 0, 0, 1))  # 1 is refused
    if sync == "outer":
        job |= {"every": rng.choice((1, 2, 3)), **rng.choice((
            {}, {"outer_lr": .7, "outer_momentum": .9}))}
    if emulated and rng.random() < .06:
        job["net"] = f"1gbit,hosts={rng.randint(1, 3)}"
        if job.get("transport") != "library":
            job.pop("transport", None)
    return job


def _settle(rng, lockstep, job):
    """Leaves out settings, of those that the job's refusal names, until it can start.
    Returns whether it can."""
    for _ in range(60):
        error = lockstep.plan(job).get("error")
        if not error:
            return True
        named = [k for k in job if re.search(rf"\b{k}\b", error) and k not in KEPT and
                 not (k in USUAL and job[k] == DEFAULTS[k])]
        if not named:
            return False
        # the first words are what is wrong, the others what it does not go with
        first = [k for k in named if k in re.split("[:;]", error)[0]]
        key = rng.choice(first or named)
        del job[key]
        if key in USUAL:
            job[key] = DEFAULTS[key]
    return False


def draw_job(rng, lockstep, emulated=False):
    """A job that can start. A third of the draws are wild: each key of FORCED may have any
    of its values, so that rare values meet."""
    wild = rng.random() < .35
    for _ in range(1000):
        job = draw_size(rng)
        job |= {**draw_rule(rng), **draw_way(rng, job["layers"], emulated)}
        if is_loose(job):
            job.pop("verify", None)
        if wild:
            job |= {k: rng.choice(v) for k, v in FORCED.items() if rng.random() < .4}
        if "mesh" in job:
            job.pop("workers", None)
        if "hosts=" in job.get("net", "") and job.get("transport") == "shm":
            del job["transport"]  # shared memory ends at a host
        if _settle(rng, lockstep, job) and world(job) <= MOST_WORKERS:
            return job
    raise ValueError("1000 draws, and no job that can start")
