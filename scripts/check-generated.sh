#!/usr/bin/env bash
# Fails when regenerating changes any file that git follows: what is generated is committed as its generator makes it.
set -euo pipefail
cd "$(dirname "$0")/.."

sums() { git ls-files -z --cached --others --exclude-standard | xargs -0 sha256sum 2>/dev/null | sort -k 2; }

before=$(sums)
make gen
after=$(sums)
if ! changed=$(diff <(echo "$before") <(echo "$after") | sed -n 's/^[<>] [0-9a-f]*  //p' | sort -u) || [ -n "$changed" ]; then
    printf 'not as their generator makes them (now rewritten: look at git diff):\n%s\n' "$changed" >&2
    exit 1
fi
