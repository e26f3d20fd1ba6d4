#!/usr/bin/env bash
# pbs.sh - a job of PBS: a worker on each of two hosts.
#
#     qsub -v "words=sync=dps model=gpt2 steps=500" examples/pbs.sh
#
# The project has NOT RUN this script under PBS: ctest -R launched runs it with
# a node file like those of PBS. lockstep reads the hosts from that file (hosts=
# overrides it) and reaches them by ssh, so ssh must work with keys.
# LOCKSTEP_RSH names another agent, such as pbs_tmrsh. The programs must have
# the same path on all hosts, and all hosts must share the folder.
#PBS -N lockstep
#PBS -l select=2:ncpus=4
#PBS -j oe
set -euo pipefail

cd "$PBS_O_WORKDIR"
workers=$(sort -u "$PBS_NODEFILE" | wc -l)
# shellcheck disable=SC2086 # several words
exec lockstep train workers="$workers" ${words:-sync=dps}
