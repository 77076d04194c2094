#!/usr/bin/env bash
# The tests of shared memory under a sanitizer: scripts/sanitize.sh address|thread
#
# `address` finds what is read or written outside of its place, `thread` what two threads do to the same place without
# an order. The sanitizers belong to the stable toolchain, but must be asked for as what is not stable yet; `thread`
# needs the standard library built with it, too. What a process has mapped it keeps until its end: no leak.
set -euo pipefail
cd "$(dirname "$0")/.."

kind=${1:-}
target=$(rustc -vV | sed -n 's/^host: //p')
case $kind in
    address) build=() ;;
    thread)
        build=(-Zbuild-std)
        if [ ! -d "$(rustc --print sysroot)/lib/rustlib/src/rust/library" ]; then rustup component add rust-src; fi
        ;;
    *) echo "scripts/sanitize.sh: \"$kind\" is no sanitizer: it must be address or thread" >&2; exit 2 ;;
esac

export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=$kind" ASAN_OPTIONS=detect_leaks=0
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/sanitized-$kind"
test=(cargo test --quiet --locked "${build[@]}" --target "$target" -p mirab --all-features)
"${test[@]}" --test shm
case $kind in
    address)
        "${test[@]}" --lib -- shm::
        # The sanitizer itself needs /proc.
        "${test[@]}" --test shm_files -- --skip without_proc
        "${test[@]}" --test shm_kill
        ;;
    thread) "${test[@]}" --lib -- shm:: --skip interleaved ;;
esac
