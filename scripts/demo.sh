#!/usr/bin/env bash
# Builds and installs the two packages, starts a private Redis, and plays the demo on it.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ ! -e dist ]; then echo "demo: building the Python and the Node package; the first time takes some minutes" >&2; fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for part in bindings-python bindings-node; do
    make --no-print-directory -C "$part" dist >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
done
scripts/install-built.sh python node
exec scripts/with-redis.sh "$PYTHON" scripts/demo.py "$@"
