#!/usr/bin/env bash
# arm64_tree.sh - builds this tree for 64-bit ARM with Debian's cross compiler, and runs
# the tests on a processor that qemu emulates.
#
#     arm64_tree.sh [FOLDER]     FOLDER: default build/debian/arm64
#
# debootstrap unpacks the libraries of ./install for arm64 from the archive that this
# machine's apt uses; nothing of them is installed here. Libraries that are already in
# FOLDER are used again. Tests that start programs need the kernel to know qemu, as it
# does after Debian's qemu-user-static was installed; else only test programs run. Exit
# status 77, with the reason, if this is not possible.
set -euo pipefail
export LC_ALL=C.UTF-8
cd "$(dirname "$(readlink -f "$0")")/.."

mkdir -p "${1:-build/debian/arm64}"
folder=$(readlink -f "${1:-build/debian/arm64}")
root=$folder/root
build=$folder/build
emulator=qemu-aarch64-static
libraries=/usr/lib/aarch64-linux-gnu

# What qemu cannot do: it has no seccomp (sandbox) and no PR_SET_CHILD_SUBREAPER
# (supervise), and its own memory counts as the program's (memory). Tests of CUDA,
# fuzzers, pages and packages are about this machine, not about that processor.
cannot='sandbox|supervise|memory|ps_memory|fuzz.*|.*_long'
# Test programs that start no other program.
alone='base|config|config_files|mesh|suggest|bpe|data|data_source|device|device_.*|staging'
alone+='|busy|virtual|virtual_law|timetable|secret|telemetry|spans|optim|part|layout'
alone+='|checkpoint|checkpoint_bad|tiles|ps_wire|folder|law|group|schedule|ring|ring_shared'
alone+='|rendezvous|ps|ps_client|model_ops|attention|model_grad|model_formats|model_blocks'
alone+='|stages|slices|sync|zero|outer|dataparallel|disk'

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
        grep -v clang | paste -sd,)
    rm -rf "$root"
    debootstrap --arch=arm64 --foreign --variant=minbase --include="$include" \
        "$suite" "$root" "$from" >"$folder/debootstrap.log" 2>&1 ||
        skip "no packages of $suite for arm64: $(tail -n 1 "$folder/debootstrap.log")"
    for package in "$root"/var/cache/apt/archives/*.deb; do
        dpkg-deb -x "$package" "$root"
        rm "$package"
    done
    # what the packages' scripts would link
    ln -sf openblas-openmp/libopenblas.so.0 "$root$libraries/libopenblas.so.0"
    touch "$root/whole"
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
toolchain >"$folder/toolchain.cmake"
cmake --preset release -B "$build" -DCMAKE_TOOLCHAIN_FILE="$folder/toolchain.cmake" \
    -DLOCKSTEP_CUDA=OFF -DLOCKSTEP_WERROR=ON
cmake --build "$build" --parallel "$(nproc)"
export QEMU_LD_PREFIX=$root
if [ -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ]; then
    ctest --test-dir "$build" --output-on-failure -j "$(nproc)" -E "^($cannot)\$"
else
    echo "arm64_tree.sh: this kernel does not know qemu: no tests that start programs"
    ctest --test-dir "$build" --output-on-failure -j "$(nproc)" -R "^($alone)\$"
fi
