#!/usr/bin/env bash
# torchrun.sh - workers that PyTorch's torchrun starts: on one host, or on each
# of several, with the same words and another NODE_RANK.
#
#     examples/torchrun.sh 2 sync=ring model=gpt2 steps=500
#     NODES=2 NODE_RANK=0 MASTER_ADDR=node0 LOCKSTEP_SECRET_FILE=secret \
#         examples/torchrun.sh 1 sync=ring model=gpt2 steps=500
#
# torchrun says to each process which of how many it is, and where they meet;
# between hosts they ask each other for the secret (docs/security.md). ctest -R
# launched runs this file: by torchrun where there is one, else by a stand-in
# that sets the same variables.
set -euo pipefail

workers=${1:?how many on this host}
shift
exec torchrun --nnodes="${NODES:-1}" --node-rank="${NODE_RANK:-0}" \
    --nproc-per-node="$workers" --master-addr="${MASTER_ADDR:-127.0.0.1}" \
    --master-port="${MASTER_PORT:-29500}" --no-python trainer "$@"
