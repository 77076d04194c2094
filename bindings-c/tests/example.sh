#!/bin/sh
# The example, copied out of the source tree, built by its own Makefile and run against the installed library.
#
#   example.sh EXAMPLE OUT      with PKG_CONFIG_PATH and LD_LIBRARY_PATH at that library
set -eu
rm -rf "$2"
mkdir -p "$2"
cp "$1"/taps.c "$1"/Makefile "$2"
cd "$2"
make --no-print-directory --silent taps
passed=0

# expect CODE TEXT ARGUMENTS...: how the program ends, and a part of what it says.
expect() {
    code=$1 part=$2
    shift 2
    said=$(./taps "$@" 2>&1) && ended=0 || ended=$?
    case "$ended $said" in
    "$code "*"$part"*) passed=$((passed + 1)) ;;
    *) printf 'taps %s: ended with %s:\n%s\nnot with %s and: %s\n' "$*" "$ended" "$said" "$code" "$part" >&2; exit 1 ;;
    esac
}

export MIRAB_STORE="$MIRAB_TEST_REDIS?timeout_ms=5000&prefix=taps-$$"
expect 0 "anvar: 0 of 5 litres left" anvar 5
expect 1 "Kuting: " anvar 5
expect 0 "barno: 4 of 5 litres left, full again in 1.0 s" barno
expect 1 "sig'maydi" barno 6
expect 2 "invalid_argument: cost must be 0 or more, not -3" barno -3
expect 2 "usage" barno much
expect 2 "usage"
export MIRAB_STORE="redis://127.0.0.1:1"
expect 0 "The store is away" anvar
export MIRAB_STORE="floppy:"
expect 2 "invalid_uri" anvar
name="c-${MIRAB_TEST_RUN-x}-taps-$$"
trap 'rm -f "/dev/shm/mirab-$(id -u)-1-$name"' EXIT
export MIRAB_STORE="shm:$name?max_keys=1000"
expect 0 "anvar: 4 of 5 litres left" anvar
expect 0 "anvar: 3 of 5 litres left" anvar
export MIRAB_STORE="memory:"
expect 0 "anvar: 4 of 5 litres left" anvar
echo "example: $passed passed, 0 failed"
