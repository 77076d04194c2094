#!/usr/bin/env bash
# Licences, bans and sources of every Rust dependency; advisories where their database can be reached.
set -euo pipefail
cd "$(dirname "$0")/.."

VERSION=0.20.2
PATH="$PWD/.cache/tools/bin:$PATH"

if ! command -v cargo-deny >/dev/null; then
    echo "deny: building cargo-deny $VERSION in .cache/tools, which takes some minutes" >&2
    CARGO_TARGET_DIR=$PWD/.cache/tools/target cargo install --quiet --locked --root .cache/tools "cargo-deny@$VERSION"
    rm -rf .cache/tools/target
fi

cargo deny --locked --log-level error check bans licenses sources

if cargo deny fetch db >/dev/null 2>&1; then
    cargo deny --locked --log-level error check --disable-fetch advisories
else
    echo "deny: the advisory database could not be reached: advisories were not checked" >&2
fi
