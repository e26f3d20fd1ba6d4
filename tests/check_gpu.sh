#!/usr/bin/env bash
# check_gpu.sh [BIN] - tests check-gpu. Without BIN check-gpu runs with fake programs that
# pass, fail, hang or find no GPU. With BIN, the programs of a build, the short steps of
# check-gpu run on the emulated GPU.
set -euo pipefail
export LC_ALL=C.UTF-8
check=$(dirname "$(readlink -f "$0")")/../check-gpu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

wrong() {
    echo "check_gpu.sh: $*"
    exit 1
}

# Fails unless the results page has PATTERN in the line of STEP.
says() { # STEP PATTERN
    grep -Eq "^$1 +$2" "$work/out/results.txt" || {
        cat "$work/out/results.txt" "$work/out/$1.log"
        wrong "step $1: no \"$2\""
    }
}

if [ $# -gt 0 ]; then
    LOCKSTEP_BIN=$1 "$check" --emulated "$work/out" machine device products \
        memory cudnn tuned busy reruns losses kill || {
        cat "$work/out"/*.log
        wrong "a step failed"
    }
    for step in machine device products cudnn tuned busy reruns losses kill; do
        says $step 'passed .*[^ ]'
    done
    says memory 'skipped .*compute-sanitizer'
    says reruns '.*the same model to the byte'
    for line in 'gpu_tensor_share +0[.]05' 'gpu_energy_j +[0-9]' 'tokens/s +[0-9]+k' \
        ' *"tokens_per_s": *[0-9]' 'cuBLASLt: .* by the fastest of 2 ' \
        '#   attention by cuDNN, backward .* ms'; do
        grep -Eq "^$line" "$work/out/results.txt" || {
            cat "$work/out/results.txt"
            wrong "tuned, busy: no \"$line\""
        }
    done
    exit
fi

mkdir -p "$work/bin/emulated"
program() { # NAME LINE
    printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}
program emulated/lockstep 'echo all is here'
program test_cuda_device_emulated 'echo run >>../runs; echo broken; exit 1'
program test_cuda_ops_emulated 'echo killed before; kill -SEGV $$'
program test_cuda_products_emulated 'echo begun; exec sleep 60'
program test_cuda_train_emulated 'exit 77'
run() {
    LOCKSTEP_BIN=$work/bin LIMIT=2 "$check" --emulated "$work/out" "$@"
}
chosen="machine device operations products training memory"
# shellcheck disable=SC2086
! run $chosen || wrong "steps failed, and the status is 0"
says machine 'passed .*all is here'
says device 'failed: status 1 .*broken'
says operations 'failed: status [0-9]+'
says products 'failed: not done after 2 s .*begun'
says training 'failed: status 1 .*cuda_train found no GPU'
says memory 'skipped'
[ "$(wc -l <"$work/runs")" = 2 ] || wrong "a device test that fails runs twice"

# Only steps that have not passed run again.
program emulated/lockstep 'echo not again; exit 1'
for test in device ops products train; do
    program test_cuda_${test}_emulated 'echo mended'
done
! run >"$work/said" || wrong "other steps fail with this lockstep"
grep -q 'machine *passed before' "$work/said" || wrong "machine ran again"
says device 'passed .*mended'
says training 'passed .*mended'
says reruns 'failed'

! run nonsense 2>"$work/said" || wrong "nonsense is a step"
grep -q 'nonsense: no such step; try: ./check-gpu --list' "$work/said"
! LOCKSTEP_BIN=$work/none "$check" --emulated "$work/out" device \
    2>"$work/said" || wrong "there are no programs"
grep -q 'no program .*lockstep; try: cmake' "$work/said"
