#!/usr/bin/env bash
# slurm.sh - a job of Slurm: a worker on each of two nodes.
#
#     sbatch examples/slurm.sh sync=ring model=gpt2 steps=500 save=50
#
# The arguments go to every trainer. One of them must be sync=ring, zero, outer,
# dataparallel, allreduce, sps or dps. The programs must be in PATH, and all
# nodes must share the folder. If a job loses a node, Slurm queues it again, and
# it continues from its newest checkpoint.
#
# ctest -C long -R slurm runs this file on a Slurm of its own.
#SBATCH --job-name=lockstep
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --output=lockstep-%j.txt
#SBATCH --open-mode=append
#SBATCH --requeue
set -euo pipefail

set -- "out=slurm-$SLURM_JOB_ID" resume=auto "$@" # the last of two settings counts
nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
port=$((20000 + SLURM_JOB_ID % 10000))

# Only processes that can read this file may join the job.
export LOCKSTEP_SECRET_FILE=$PWD/.lockstep-$SLURM_JOB_ID
trap 'rm -f "$LOCKSTEP_SECRET_FILE"' EXIT
(umask 077; od -An -v -N32 -tx1 /dev/urandom | tr -d ' \n' >"$LOCKSTEP_SECRET_FILE")

# Trains with a server on each of the first $1 nodes, beside the workers. The
# job ends with the first process that fails, because the script does.
with_servers() {
    local n=$1 i endpoint servers=''
    shift
    for ((i = 0; i < n; i++)); do
        endpoint=tcp://${nodes[i]}:$port
        servers+=${servers:+,}$endpoint
        srun --overlap --nodes=1 --ntasks=1 --nodelist="${nodes[i]}" \
            ps_server bind="$endpoint" index="$i" servers="$n" \
            world="$SLURM_NTASKS" &
    done
    srun --overlap --kill-on-bad-exit=1 trainer servers="$servers" "$@" &
    for ((i = 0; i <= n; i++)); do
        wait -n
    done
}

case " $* " in
*" sync=ring "* | *" sync=zero "* | *" sync=outer "* | *" sync=dataparallel "*)
    srun --kill-on-bad-exit=1 trainer rendezvous="tcp://${nodes[0]}:$port" "$@"
    ;;
*" sync=allreduce "*)
    srun --kill-on-bad-exit=1 --mpi=pmix trainer "$@"
    ;;
*" sync=sps "*)
    with_servers 1 "$@"
    ;;
*" sync=dps "*)
    with_servers "${#nodes[@]}" "$@"
    ;;
*)
    echo "slurm.sh: want sync=ring, zero, outer, dataparallel," \
        "allreduce, sps or dps among the arguments" >&2
    exit 2
    ;;
esac
