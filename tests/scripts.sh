#!/usr/bin/env bash
# scripts.sh - tests `./check --elsewhere` and ./install, with stand-ins for apt.
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

# A machine without any package, whose archive has packages of 1.5 MB.
stand=$(mktemp -d)
trap 'rm -rf "$stand"' EXIT
for name in dpkg-query sudo; do
    printf '#!/bin/sh\nexit 1\n' >"$stand/$name"
done
cat >"$stand/apt-get" <<'APT'
#!/bin/sh
case " $* " in
*" --print-uris "*) for each in a b; do echo "'http://x/$each' $each.deb 1500000 M:0"; done ;;
*) echo "apt-get $*" ;;
esac
APT
printf '#!/bin/sh\necho 0\n' >"$stand/id"
chmod +x "$stand"/*
few=$(PATH=$stand:$PATH ./install)
all=$(PATH=$stand:$PATH ./install --all)
[[ "$few" = *"install: 3 MB come"*"recommends gcc "*"install: done" ]]
[[ "$few" != *cmocka* && "$few" != *simgrid* ]]
[[ "$all" = *"recommends gcc "*cmocka*simgrid*"install: done" ]]
if ./install --al 2>/dev/null; then exit 1; fi
echo "scripts.sh: ok"
