#!/usr/bin/env bash
# Builds and installs the two packages, and plays the demo on them.
#
#   STORE=shm      in shared memory, without a server: the default
#   STORE=redis    on a private Redis, started for it
set -euo pipefail
cd "$(dirname "$0")/.."

case ${STORE:-shm} in
shm) play=("$PYTHON" scripts/demo.py) ;;
redis) play=(scripts/with-redis.sh "$PYTHON" scripts/demo.py --store redis) ;;
*) echo "demo: unknown STORE \"$STORE\": shm or redis" >&2; exit 2 ;;
esac

if [ ! -e dist ]; then echo "demo: building the Python and the Node package; the first time takes some minutes" >&2; fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for part in bindings-python bindings-node; do
    make --no-print-directory -C "$part" dist >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
done
scripts/install-built.sh python node
rm "$log" # what follows takes this shell's place, and its trap with it
exec "${play[@]}"
