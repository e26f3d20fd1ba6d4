#!/usr/bin/env bash
# arm64_tree.sh - builds this tree for 64-bit ARM with Debian's cross compiler, and runs
# the tests on a processor that qemu emulates: all of them with memory pages of 4 KiB,
# and some with pages of 64 KiB. Then it trains with both builds, and compares.
#
#     arm64_tree.sh [FOLDER [BIN]]     FOLDER: default build/debian/arm64
#
# BIN has the programs of this machine's own build (build/release/bin); without it
# nothing is compared. debootstrap unpacks the libraries of ./install for arm64 from the
# archive that this machine's apt uses; nothing of them is installed here. Libraries that
# are already in FOLDER are used again. Tests that start programs need a kernel that knows
# qemu: the script tells it, in a namespace, if it is Linux 6.7 or newer. Else only test
# programs run. Exit status 77, with the reason, if this is not possible.
set -euo pipefail
export LC_ALL=C.UTF-8
cd "$(dirname "$(readlink -f "$0")")/.."

mkdir -p "${1:-build/debian/arm64}"
folder=$(readlink -f "${1:-build/debian/arm64}")
root=$folder/root
build=$folder/build
own=${2:+$(readlink -f "$2")}
emulator=qemu-aarch64-static
libraries=/usr/lib/aarch64-linux-gnu

# What qemu cannot do: it has no seccomp (sandbox) and no PR_SET_CHILD_SUBREAPER
# (supervise), and its own memory counts as the program's (ps_memory). The deadlines of
# whole jobs (label jobs) are too short for it. labs/grade starts programs with an empty
# environment, so it does not find their libraries. Tests of CUDA and fuzzers are about
# this machine, not about that processor.
cannot='sandbox|supervise|ps_memory|labs|lab_.*|fuzz_.*|.*cuda.*|.*cudnn.*|.*emulated.*'
# Test programs that start no other program.
alone='base|config|config_files|mesh|suggest|bpe|wordpiece|data|data_source|device'
alone+='|device_.*|staging|busy|virtual|virtual_law|timetable|secret|telemetry|spans|optim'
alone+='|layered|part|layout|checkpoint|checkpoint_bad|tiles|ps_wire|folder|law|group'
alone+='|schedule|ring|ring_shared|rendezvous|ps|ps_client|model_ops|attention|model_grad'
alone+='|model_formats|model_blocks|stages|slices|pieces|sync|zero|outer|dataparallel'
alone+='|squeeze|squeezed|power|disk'
# Those whose memory is mapped, shared or aligned, for pages of 64 KiB. Jobs that mpirun
# starts end by a signal there, as does an MPI program of five lines.
pages='base|data|data_source|device|staging|busy|telemetry|checkpoint|layout|virtual|tiles'
pages+='|model_ops|attention|snapshot|spans|shared_order'

# Jobs whose losses and bytes are compared with this machine's: each way once. fp16's
# numbers have 11 bits, so there a sum that is rounded otherwise shows more.
small="layers=1 heads=2 channels=32 context=16 vocab_size=257 timeout=600"
jobs=()
for way in local "ring workers=2 transport=tcp" "ring workers=2 transport=shm" \
    "ring workers=3 transport=tcp wire=bf16" "ring workers=3 transport=shm wire=fp16" \
    "sps workers=2 transport=zmq" "dps workers=2 servers=2 transport=zmq" \
    "dps workers=2 servers=2 update=worker transport=zmq" \
    "zero workers=2 shard=1" "zero workers=2 shard=3" "allreduce workers=2" \
    "dataparallel workers=2" "outer workers=2 every=2" "ring workers=2 squeeze=topk" \
    "ring workers=2 squeeze=int8" "ring workers=2 mesh=cp2" "ring workers=2 mesh=tp2" \
    "ring workers=2 mesh=pp2 layers=2" "local precision=bf16"; do
    jobs+=(--job "model=nano $small sync=$way")
done
fp16=(--job "model=nano $small sync=local precision=fp16")

skip() {
    echo "arm64_tree.sh: skipped: $*"
    exit 77
}

# Fetches and unpacks the libraries. None of their scripts runs.
unpack() {
    local suite from include
    suite=$(. /etc/os-release; echo "$VERSION_CODENAME")
    from=$(apt-get indextargets 'Origin: Debian' --format '$(CODENAME) $(REPO_URI)' |
        awk -v own="$suite" '$1 == own {print $2; exit}')
    [ -n "$from" ] || skip "apt names no archive of Debian"
    include=$(./install --list aarch64 | grep -E '^(lib.*-dev|libgomp1)$' |
        grep -v -E 'clang|libomp' | paste -sd,)
    rm -rf "$root"
    debootstrap --arch=arm64 --foreign --variant=minbase --include="$include" \
        "$suite" "$root" "$from" >"$folder/debootstrap.log" 2>&1 ||
        skip "no packages of $suite for arm64: $(tail -n 1 "$folder/debootstrap.log")"
    for package in "$root"/var/cache/apt/archives/*.deb; do
        dpkg-deb -x "$package" "$root"
        rm "$package"
    done
    # qemu would take these folders for the machine's
    rm -rf "$root"/{boot,debootstrap,dev,etc,home,proc,root,run,srv,sys,tmp,var}
    # what the packages' scripts would link
    ln -sf openblas-openmp/libopenblas.so.0 "$root$libraries/libopenblas.so.0"
    touch "$root/whole"
}

# with_qemu COMMAND..: runs it in namespaces in which the kernel starts programs for ARM by
# qemu. The registration ends with them. All users are the same there as here.
with_qemu() {
    unshare --user --mount bash -c '
        until [ "$(id -u)" -eq 0 ]; do sleep 0.1; done
        exec bash -c "$0" bash "$@"' '
        mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc &&
            cat /usr/lib/binfmt.d/qemu-aarch64.conf >/proc/sys/fs/binfmt_misc/register &&
            exec "$@"' "$@" &
    local pid=$!
    while [ /proc/$pid/ns/user -ef /proc/self/ns/user ]; do sleep 0.1; done
    echo "0 0 65536" >/proc/$pid/uid_map
    echo "0 0 65536" >/proc/$pid/gid_map
    wait $pid
}

toolchain() {
    cat <<CMAKE
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_SYSROOT $root)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR $(command -v $emulator))
set(ENV{PKG_CONFIG_SYSROOT_DIR} $root)
set(ENV{PKG_CONFIG_LIBDIR} $root$libraries/pkgconfig:$root/usr/share/pkgconfig)
set(MPI_C_COMPILER none)
set(MPI_ASSUME_NO_BUILTIN_MPI TRUE)
set(MPI_SKIP_GUESSING TRUE)
set(MPI_C_HEADER_DIR $root$libraries/openmpi/include)
set(MPI_C_LIB_NAMES mpi)
set(MPI_mpi_LIBRARY $root$libraries/openmpi/lib/libmpi.so)
CMAKE
}

for program in debootstrap aarch64-linux-gnu-gcc aarch64-linux-gnu-g++ $emulator; do
    command -v $program >/dev/null || skip "no $program; try: apt-get install" \
        "debootstrap gcc-aarch64-linux-gnu g++-aarch64-linux-gnu qemu-user-static"
done
[ "$(id -u)" -eq 0 ] || skip "debootstrap requires root"
[ -e "$root/whole" ] || unpack
export QEMU_LD_PREFIX=$root
toolchain >"$folder/toolchain.cmake"
cmake --preset release -B "$build" -DCMAKE_TOOLCHAIN_FILE="$folder/toolchain.cmake" \
    -DLOCKSTEP_CUDA=OFF -DLOCKSTEP_WERROR=ON
as=() only=
if [ ! -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ]; then
    as=(with_qemu)
    with_qemu true || { as=() only=lockstep_tests; }
fi
# The manual pages are what programs say that start others.
"${as[@]}" cmake --build "$build" --parallel "$(nproc)" ${only:+--target $only}

tests() { "${as[@]}" ctest --test-dir "$build" --output-on-failure -j "$(nproc)" "$@"; }
if [ -n "$only" ]; then
    echo "arm64_tree.sh: this kernel cannot be told of qemu: no tests that start programs"
    tests -R "^($alone)\$"
    exit
fi
rc=0
tests -LE jobs -E "^($cannot)\$" || rc=1
echo "arm64_tree.sh: pages of 64 KiB"
QEMU_PAGESIZE=65536 tests -R "^($pages)\$" || rc=1
compare() { "${as[@]}" tests/compare_builds.py "$@" "$own" "$build/bin" || rc=1; }
if [ -n "$own" ]; then
    compare --rounding 1e-6 "${jobs[@]}"
    compare --rounding 1e-4 "${fp16[@]}"
fi
exit $rc
