#!/usr/bin/env bash
# says.sh - a program must end with a given status and print a given text.
#
#     says.sh STATUS PATTERN PROGRAM words...    PATTERN: an extended regular
#                                                expression; . matches newlines
#     says.sh --self-test                        test that it finds each kind of
#                                                mistake
#
# CTest's PASS_REGULAR_EXPRESSION checks only the text: a program that crashes
# after the line would pass.
set -u

says() {
    local want=$1 pattern=$2 text status
    shift 2
    text=$("$@" 2>&1)
    status=$?
    printf '%s\n' "$text"
    if [ $status -ne "$want" ]; then
        echo "says.sh: exit status $status; want $want"
        return 1
    fi
    if ! [[ $text =~ $pattern ]]; then
        echo "says.sh: no \"$pattern\" in this text"
        return 1
    fi
}

self_test() {
    says 0 'one.*two' printf 'one\ntwo' &&
        says 3 '^x$' bash -c 'echo x; exit 3' &&
        ! says 0 one printf two &&
        ! says 1 one printf one &&
        ! says 0 one bash -c 'echo one; kill -SEGV $$' &&
        ! says 0 one bash -c 'echo one; exit 1'
}

if [ "$*" = --self-test ]; then
    self_test
else
    says "$@"
fi
