"""The INI files of the experiments that tests/study_cases.py runs."""

BASE = """model = nano
layers = 1
context = 16
threads = 1
warmup = 1
steps = 26
"""

# {name: INI}.
INIS = {
    # as demo calls experiments/study.ini, with fewer steps
    "study": None,
    "baseline": """[experiment]
title = ring and dps
figures = none
repeat = 2
baseline = single
[base]
%seval = 5
eval_batches = 2
[matrix]
batch = 4, 8
[cell single]
sync = local
accum = 2
[cell ring]
sync = ring
workers = 2
[cell dps]
sync = dps
workers = 2
""",
    "links": """[experiment]
title = links
figures = none
repeat = 1
[base]
%sbatch = 4
workers = 2
eval = 0
[matrix]
seed = 1
net = ?300mbit, ?1gbit
sync = ring, dps, zero
""",
    "repeats": """[experiment]
title = three repeats of four cells
figures = none
repeat = 3
baseline = ring
target_loss = auto
[base]
%sbatch = 2
workers = 2
eval = 6
eval_batches = 2
[cell ring]
sync = ring
[cell sps]
sync = sps
[cell outer]
sync = outer
every = 4
[cell zero]
sync = zero
""",
    "pipeline": """[experiment]
title = stages and slices
figures = none
repeat = 2
baseline = one
[base]
%slayers = 2
batch = 4
eval = 0
sync = ring
[cell pp2]
mesh = pp2
[cell pp2 m=2]
mesh = pp2
accum = 2
batch = 2
[cell tp2]
mesh = tp2
[cell cp2]
mesh = cp2
[cell one]
sync = local
""",
    "outer": """[experiment]
title = every few steps
figures = none
repeat = 2
target_loss = 5.6
[base]
%sbatch = 4
workers = 2
eval = 4
eval_batches = 2
[matrix]
every = 2, 4
[cell outer]
sync = outer
""",
    "stale": """[experiment]
title = consistency
figures = none
repeat = 2
baseline = bsp
[base]
%sbatch = 4
workers = 2
eval = 6
eval_batches = 2
sync = dps
[cell bsp]
consistency = bsp
[cell ssp]
consistency = ssp:2
[cell ssp again]
consistency = ssp:2
[cell asp]
consistency = asp
[cell slow]
consistency = bsp
straggler = 1:2
""",
    "dropped": """[experiment]
title = gradients that trained nothing
figures = none
repeat = 2
baseline = bsp
[base]
%sbatch = 4
workers = 2
eval = 0
sync = dps
[cell bsp]
[cell backup]
backup = 1
[cell elastic]
elastic = 1
restarts = 1
inject = kill:7@1
[cell own]
consistency = asp
mistake=own_steps:1:9
""",
    "shards": """[experiment]
title = shards and compressed gradients
figures = none
repeat = 1
baseline = ring
[base]
%sbatch = 4
workers = 2
eval = 0
[cell ring]
sync = ring
[cell topk]
sync = ring
squeeze = topk
[cell sharded 2]
sync = zero
shard = 2
[cell sharded 3]
sync = zero
shard = 3
""",
    # by lab= of the command line, which an INI file may not have
    "lab": """[experiment]
title = a student's ring
figures = none
repeat = 1
baseline = alone
[base]
%seval = 0
global_batch = 4
[cell alone]
sync = lab
workers = 1
[cell two]
sync = lab
workers = 2
""",
    "wire": """[experiment]
title = formats
figures = none
repeat = 2
baseline = ring
[base]
%sworkers = 2
sync = ring
eval = 6
eval_batches = 2
global_batch = 8
lr_scale = sqrt
base_batch = 4
[cell ring]
[cell fp16]
wire = fp16
[cell bf16 model]
precision = bf16
[cell one]
sync = local
workers = 1
accum = 2
[cell quick]
lr = 0.004
""",
}
