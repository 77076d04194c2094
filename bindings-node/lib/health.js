'use strict';

/** How a store is, from what `src/health.rs` tells. */
function healthOf([store, ok, circuit, opened, kind, message, serverVersion, maxmemoryPolicy, mayDropKeys, aheadUs, layout, ageMs]) {
  return {
    store,
    ok,
    circuit,
    opened,
    lastError: kind === undefined ? undefined : { kind, message, ageMs },
    serverVersion,
    maxmemoryPolicy,
    mayDropKeys,
    clockAheadMs: aheadUs === undefined ? undefined : aheadUs / 1000,
    layout,
  };
}

module.exports = { healthOf };
