#!/usr/bin/env bash
# scripts.sh - tests `./check --elsewhere` and --stranger, the list of slowest tests,
# ./install with stand-ins for apt, ./demo's words and signals, and that each build is told
# its commit.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

said=$(./check --elsewhere bash -c 'umask && ulimit -n && ls -A "$HOME" &&
    test -w "$TMPDIR" && echo "$TMPDIR" && cut -d. -f1 /proc/uptime &&
    stat -f -c "%b %S" /dev/shm' 2>&1)
{
    read -r mask && [ "$mask" = 0077 ]
    read -r descriptors && [ "$descriptors" = 256 ]
    read -r tmp && [[ "$tmp" = *" "* ]]
    read -r up && { [[ "$said" = *"a boot 20"* ]] || [ "$up" -lt 3600 ]; }
    read -r blocks size &&
        { [[ "$said" = *"shm of 64"* ]] || [ $((blocks * size)) -eq 67108864 ]; }
} <<<"$said" || { echo "scripts.sh: not elsewhere: $said"; exit 1; }
[ ! -e "$tmp" ]
if ./check --elsewhere false 2>/dev/null; then exit 1; fi

# The stranger is not root, has lo only, 200 MB in /tmp, and writes into its tree.
if unshare --mount --net true 2>/dev/null; then
    tree=$(mktemp -d)
    chown 65534 "$tree"
    said=$(bash -c "set -euo pipefail; copy='$tree'; $(sed -n '/^stranger() {/,/^}/p' check)
        stranger bash -c 'echo \$(id -u) \$(ip -br link | wc -l) \
            \$((\$(stat -f -c %b*%S /tmp))) \$PWD && touch here'")
    [ "$said" = "65534 1 209715200 /mnt/für alle" ] && [ -e "$tree/here" ] ||
        { echo "scripts.sh: no stranger: $said"; exit 1; }
    rm -r "$tree"
fi

# The slowest tests of a log with more lines than a pipe's buffer takes.
slow=$(mktemp)
for i in $(seq 5000); do
    echo "$i/5000 Test #$i: test_number_$i ..................   Passed    $i.25 sec"
done >"$slow"
said=$(bash -c "set -euo pipefail; $(sed -n '/^slowest() {/,/^}/p' check)
    slowest '$slow'")
[[ "$said" = "test_number_5000 5000 s, "*", test_number_4991 4991 s" ]]
rm "$slow"

# A machine without any package, whose archive has packages of 1.5 MB.
stand=$(mktemp -d)
trap 'rm -rf "$stand"' EXIT
for name in dpkg-query sudo; do
    printf '#!/bin/sh\nexit 1\n' >"$stand/$name"
done
cat >"$stand/apt-get" <<'APT'
#!/bin/sh
case " $* " in
*" --print-uris "*) echo "After this operation, 4096 kB of additional disk space"
    for each in a b; do echo "'http://x/$each' $each.deb 1500000 M:0"; done ;;
*) echo "apt-get $*" ;;
esac
APT
printf '#!/bin/sh\necho 0\n' >"$stand/id"
chmod +x "$stand"/*
few=$(PATH=$stand:$PATH ./install)
all=$(PATH=$stand:$PATH ./install --all)
[[ "$few" = *"install: 3 MB come from the archive, and fill 4096 kB of the disk"*"recommends gcc "*"install: done" ]]
[[ "$few" != *cmocka* && "$few" != *simgrid* ]]
[[ "$all" = *"recommends gcc "*cmocka*simgrid*"install: done" ]]
if ./install --al 2>/dev/null; then exit 1; fi

# A word makes ./demo neither install nor build.
[[ "$(PATH=$stand:$PATH ./demo --help)" = "demo - from a clone"* ]]
if PATH=$stand:$PATH ./demo --hlep 2>/dev/null; then exit 1; fi

# A signal to ./demo alone is passed on to what it runs, and ends it after that.
mkdir -p "$stand/bin" "$stand/share/lockstep"
cp demo "$stand/share/lockstep"
cat >"$stand/bin/lockstep" <<'LOCKSTEP'
#!/usr/bin/env bash
for name in INT TERM HUP; do trap "sleep 0.3; echo got $name; exit 1" "$name"; done
echo "runs $1"
for _ in {1..200}; do sleep 0.1; done
LOCKSTEP
chmod +x "$stand/bin/lockstep"
for each in INT=130 TERM=143 HUP=129; do
    status=0
    : >"$stand/said"
    env --default-signal=INT "$stand/share/lockstep/demo" >"$stand/said" 2>&1 &
    until grep -q runs "$stand/said"; do sleep 0.05; done
    kill -s "${each%=*}" $!
    wait $! || status=$?
    [[ $status = "${each#*=}" && "$(tail -n 1 "$stand/said")" = "got ${each%=*}" ]]
    [ "$(grep -c runs "$stand/said")" = 1 ]
done

# A build's revision is COMMIT+HASH. HASH follows each edit of what is compiled, and
# nothing else; COMMIT is the last one that changed it.
script=$PWD/core/base/revision.cmake header=$stand/build/revision/base/revision.h
revision() { (cd "$stand/tree" && GIT_CEILING_DIRECTORIES=$stand \
    cmake -D OUT="$header" -P "$script" && cut -d'"' -f2 "$header"); }
mkdir -p "$stand/tree/tests"
tree=$stand/tree
echo 'int one;' >"$tree/a.c" && echo text >"$tree/a.md" && echo 'int t;' >"$tree/tests/t.c"
[[ "$(revision)" = none+???????? ]]
sources=$(revision) && sources=${sources#*+}
save() { git -C "$tree" -c user.name=a -c user.email=a@b commit -qam "$1"; }
git -C "$tree" init -q
git -C "$tree" add . && save first
first=$(git -C "$tree" describe --always)
[ "$(revision)" = "$first+$sources" ]
echo more >>"$tree/a.md" && save page && echo 'int u;' >"$tree/tests/t.c" && save test
commit=$(revision)
[[ "$commit" = *"+$sources" && "$commit" != *dirty* ]]
seen=$sources
for file in a.c a.c 'new.c' 'für mich.h'; do
    echo "int after_$(echo "$seen" | wc -l);" >>"$tree/$file"
    now=$(revision)
    [[ "$now" = "${commit%+*}.dirty+"???????? && "$seen" != *"${now#*+}"* ]]
    seen+=$'\n'${now#*+}
done
touch -d '1 hour ago' "$header"
before=$(stat -c %Y "$header")
revision >/dev/null && [ "$(stat -c %Y "$header")" = "$before" ]
git -C "$tree" add . && save second
[[ "$(revision)" = "$(git -C "$tree" describe --always)+${now#*+}" ]]
echo "scripts.sh: ok"
