#!/usr/bin/env bash
# Runs a command beside a private Redis: a free port on the loopback address, nothing saved, gone afterwards.
#
#   scripts/with-redis.sh CMD [ARG...]      CMD finds its address in MIRAB_TEST_REDIS
#
# MIRAB_REDIS_SERVER names another server program than redis-server (an older Redis, a Valkey).
#
# Redis ends with the command, on Ctrl-C and on TERM; when this script itself is killed, the kernel ends it.
set -euo pipefail

[ $# -gt 0 ] || { echo "usage: with-redis.sh CMD [ARG...]" >&2; exit 2; }
server=${MIRAB_REDIS_SERVER:-redis-server}
command -v "$server" >/dev/null || { echo "with-redis: $server is missing:  scripts/setup.sh system servers" >&2; exit 1; }

dir=$(mktemp -d)
redis="" child="" signal=TERM

# The command is told first, and waited for: it may have servers of its own to stop.
finish() {
    trap '' INT TERM HUP
    [ -z "$child" ] || { kill "-$signal" -- "-$child" 2>/dev/null && wait "$child" 2>/dev/null; } || true
    # One that the command had stopped hears nothing until it goes on.
    [ -z "$redis" ] || { kill -TERM "$redis" 2>/dev/null && kill -CONT "$redis" && wait "$redis" 2>/dev/null; } || true
    rm -rf "$dir"
}
trap finish EXIT
trap 'signal=INT; exit 130' INT
trap 'exit 143' TERM HUP

# Another Redis may hold the port, and would answer too: ours is the one with our process id.
answers() { [ "$(redis-cli -p "$1" info server 2>/dev/null | tr -d '\r' | sed -n 's/^process_id://p')" = "$redis" ]; }

start() {
    local port=$1 tries
    setsid setpriv --pdeathsig TERM "$server" --port "$port" --bind 127.0.0.1 --save '' --appendonly no \
        --dir "$dir" --loglevel warning >"$dir/log" 2>&1 &
    redis=$!
    for ((tries = 0; tries < 500; tries++)); do
        if answers "$port"; then return 0; fi
        kill -0 "$redis" 2>/dev/null || break
        sleep 0.02
    done
    kill -TERM "$redis" 2>/dev/null || true
    wait "$redis" 2>/dev/null || true
    redis=""
    return 1
}

port=""
for _ in 1 2 3 4 5 6 7 8 9 10; do
    candidate=$((20000 + RANDOM % 12000))
    if start "$candidate"; then port=$candidate; break; fi
done
[ -n "$port" ] || { echo "with-redis: no Redis could be started; its last words:" >&2; cat "$dir/log" >&2; exit 1; }

export MIRAB_TEST_REDIS="redis://127.0.0.1:$port"
set -m # a process group of its own, so that what the command started ends with it
"$@" <&0 &
child=$!
set +m
status=0
wait "$child" || status=$?
child_group=$child child=""
kill -TERM -- "-$child_group" 2>/dev/null || true
exit "$status"
