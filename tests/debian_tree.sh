#!/usr/bin/env bash
# debian_tree.sh - builds this tree in a fresh Debian of another release, and runs there
# the tests of everything that differs between releases.
#
#     debian_tree.sh SUITE [FOLDER]     SUITE: as trixie; FOLDER: default build/debian
#     debian_tree.sh SUITE --demo [FOLDER]
#                                       runs ./demo there instead, in a new release
#                                       without any package but the smallest set, and
#                                       says what it took
#
# debootstrap installs the release from the archive that this machine's apt uses, and
# ./install --all the packages that its tests need. Without --demo, a release that is
# already in FOLDER is used again. Exit status 77, with the reason, if this is not
# possible: no root, no debootstrap or no archive.
set -euo pipefail
export LC_ALL=C.UTF-8
cd "$(dirname "$(readlink -f "$0")")/.."

suite=${1:?"debian_tree.sh SUITE [--demo] [FOLDER]"}
demo=
if [ "${2-}" = --demo ]; then
    demo=-demo
    shift
fi
folder=${2:-build/debian}
root=$folder/$suite$demo
tests='config|start|mpirun|supervise|doctor_hosts|lockstep|refusals|model_ops|model_formats|ring'
tests="^($tests|(allreduce|library_mpi|install)_.*)\$"

skip() {
    echo "debian_tree.sh: skipped: $*"
    exit 77
}

# The archive of this machine's own release.
archive() {
    apt-get indextargets 'Origin: Debian' --format '$(CODENAME) $(REPO_URI)' |
        sort -u | awk -v own="$(. /etc/os-release; echo "$VERSION_CODENAME")" \
        '$1 == own {print $2; exit}'
}

[ "$(id -u)" -eq 0 ] || skip "debootstrap requires root"
command -v debootstrap >/dev/null ||
    skip "no debootstrap; try: apt-get install debootstrap"
from=$(archive 2>/dev/null || true)
[ -n "$from" ] || skip "apt names no archive of Debian"
mkdir -p "$folder"
if [ -n "$demo" ] || [ ! -e "$root/whole" ]; then
    /usr/lib/apt/apt-helper download-file "${from}dists/$suite/Release" \
        "$folder/Release" >/dev/null 2>&1 ||
        skip "the archive of this machine's apt does not answer, or has no $suite"
    rm -rf "$root"
    debootstrap --variant=minbase "$suite" "$root" "$from" \
        >"$folder/$suite.log" 2>&1 ||
        { tail -n 20 "$folder/$suite.log"; exit 1; }
    touch "$root/whole"
fi

# Copies the sources, and no build products. Unchanged files keep their times, so that a
# second build is short.
mkdir -p "$root/src"
git ls-files -z --cached --others --exclude-standard | while read -r -d '' file; do
    cmp -s "$file" "$root/src/$file" || cp --parents "$file" "$root/src/"
done

cat >"$root/inside-demo.sh" <<'INSIDE'
set -e
cd /src
export LC_ALL=C.UTF-8
disk() { apt-get clean; du -smx --exclude=/src / | cut -f1; }
empty=$(disk)
./install
installed=$(disk)
TIMEFORMAT='debian_tree.sh: ./demo: %R s; of processors %U s, in the kernel %S s'
time ./demo
echo "debian_tree.sh: ./install: $((installed - empty)) MB of disk; of ./demo:"
du -sm build runs
INSIDE
cat >"$root/inside.sh" <<INSIDE
set -e
cd /src
export LC_ALL=C.UTF-8
./install --all
cmake --preset release -DLOCKSTEP_CUDA=OFF -DLOCKSTEP_WERROR=ON
cmake --build --preset release --parallel $(nproc)
ctest --preset release -R '$tests'
INSIDE
# The mounts are in a namespace of their own, and so end with it.
exec env -i HOME=/root PATH="$PATH" TERM="${TERM:-dumb}" unshare --mount bash -c "
    mount --bind '$root' '$root' && mount -t proc proc '$root/proc' && mount --rbind /sys '$root/sys' &&
    mount --rbind /dev '$root/dev' && exec chroot '$root' bash /inside$demo.sh"
