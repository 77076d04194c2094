/** What cannot be beaten from JavaScript: a bucket in a Map that answers with an object, in plain JavaScript. */

import { OF_ONE_LIMIT } from '../scenarios.mjs';

function make([{ amount, seconds }]) {
  const depth = seconds * 1000;
  const interval = depth / amount;
  const fullAt = new Map();

  const acquire = (key) => {
    const now = performance.now();
    const before = Math.max(fullAt.get(key) ?? now, now);
    const after = before + interval;
    if (after - now > depth) return { allowed: false, remaining: 0, retryAfterMs: after - now - depth, resetAfterMs: before - now };
    fullAt.set(key, after);
    return { allowed: true, remaining: Math.floor((depth - after + now) / interval), retryAfterMs: undefined, resetAfterMs: after - now };
  };

  return (keys, from, to, admits) => {
    let wrong = 0;
    for (let at = from; at < to; at++) if (acquire(keys[at]).allowed !== admits) wrong++;
    return wrong;
  };
}

export default [
  { name: 'map', kind: 'floor', note: 'a GCRA in a Map that returns an object, in plain JavaScript: never forgets a key', make, scenarios: OF_ONE_LIMIT },
];
