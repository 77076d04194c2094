'use strict';

/** What a limiter counts, in the order in which `src/limiter.rs` tells it. */
const COUNTS = ['allowed', 'refused', 'never', 'blocked', 'errors', 'degraded', 'refunded', 'keys', 'evicted'];

function statsOf(numbers) {
  return Object.freeze(Object.fromEntries(COUNTS.map((name, index) => [name, numbers[index]])));
}

module.exports = { statsOf };
