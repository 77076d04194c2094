#!/usr/bin/env bash
# Installs what is in dist/ as a user would, in folders of its own, with the examples on top. Nothing from the
# source tree is on any path there.
#
#   scripts/install-built.sh [python] [node] [c]      into .cache/installed/{venv,express_app,node_http,c}
set -euo pipefail
cd "$(dirname "$0")/.."

ROOT=$PWD
DIST=${DIST:-$ROOT/dist}
INTO=$ROOT/.cache/installed
PYTHON=${PYTHON:-$ROOT/.venv/bin/python}
mkdir -p "$INTO"

stamped() { local stamp=$1; shift; [ "$(cat "$stamp" 2>/dev/null)" = "$(cat "$@" | sha256sum)" ]; }
write_stamp() { local stamp=$1; shift; cat "$@" | sha256sum >"$stamp"; }

install_python() {
    local what=("$DIST"/mirab-*.whl examples/flask_app/requirements.txt scripts/requirements.txt)
    stamped "$INTO/venv/stamp" "${what[@]}" && return 0
    rm -rf "$INTO/venv"
    "$PYTHON" -m venv "$INTO/venv"
    # The app's own requirements name the package; the wheel in dist/ is what answers to that name.
    "$INTO/venv/bin/pip" install --quiet --disable-pip-version-check --find-links "$DIST" \
        -r examples/flask_app/requirements.txt "$(grep '^pytest==' scripts/requirements.txt)"
    write_stamp "$INTO/venv/stamp" "${what[@]}"
}

install_node() {
    local app what
    for app in express_app node_http; do
        what=("$DIST"/mirab-*.tgz "examples/$app"/*.js*)
        stamped "$INTO/$app/stamp" "${what[@]}" && continue
        rm -rf "${INTO:?}/$app"
        mkdir -p "$INTO/$app"
        cp "examples/$app"/*.js* "$INTO/$app/"
        (cd "$INTO/$app" && npm install --silent --no-audit --no-fund --no-save "$DIST"/mirab-*.tgz)
        write_stamp "$INTO/$app/stamp" "${what[@]}"
    done
}

install_c() {
    rm -rf "$INTO/c"
    make install DESTDIR="$INTO/c" PREFIX=/usr/local >/dev/null
}

for part in "$@"; do
    case $part in
    python | node | c) "install_$part" ;;
    *) echo "unknown part \"$part\": python, node or c" >&2; exit 2 ;;
    esac
done
