#!/usr/bin/env bash
# pbs.sh - a job of PBS: a worker on each of two hosts.
#
#     qsub -v "words=sync=dps model=gpt2 steps=500" examples/pbs.sh
#
# NOT RUN UNDER PBS by the project: ctest -R launched runs it with a node file
# as PBS writes it. lockstep takes the hosts from that file (hosts= for others)
# and reaches them by ssh, so keys must allow that; for pbs_tmrsh or another
# agent, LOCKSTEP_RSH. The programs have one path on all hosts, and the folder is
# one that they share.
#PBS -N lockstep
#PBS -l select=2:ncpus=4
#PBS -j oe
set -euo pipefail

cd "$PBS_O_WORKDIR"
workers=$(sort -u "$PBS_NODEFILE" | wc -l)
# shellcheck disable=SC2086 # several words
exec lockstep train workers="$workers" ${words:-sync=dps}
