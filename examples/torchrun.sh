#!/usr/bin/env bash
# torchrun.sh - starts workers with PyTorch's torchrun: on one host, or on
# several hosts. On each host, run it with the same arguments and another
# NODE_RANK.
#
#     examples/torchrun.sh 2 sync=ring model=gpt2 steps=500
#     NODES=2 NODE_RANK=0 MASTER_ADDR=node0 LOCKSTEP_SECRET_FILE=secret \
#         examples/torchrun.sh 1 sync=ring model=gpt2 steps=500
#
# torchrun tells each process its rank, the number of processes, and the address
# of the rendezvous. Workers on different hosts ask each other for the secret
# (docs/security.md). PyTorch 1 knows options with underscores only, PyTorch 2
# also with dashes. ctest -R launched runs this file, with torchrun if it is
# able to start a program, else with a script that sets the same variables.
set -euo pipefail

workers=${1:?how many on this host}
shift
exec torchrun --nnodes="${NODES:-1}" --node_rank="${NODE_RANK:-0}" \
    --nproc_per_node="$workers" --master_addr="${MASTER_ADDR:-127.0.0.1}" \
    --master_port="${MASTER_PORT:-29500}" --no_python trainer "$@"
