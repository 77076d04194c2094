/** What cannot be beaten from JavaScript: a bucket in a Map that answers with an object, in plain JavaScript. */

import { OF_ONE_LIMIT } from '../scenarios.mjs';

function make([{ amount, seconds }]) {
  const interval = (seconds * 1000) / amount;
  const depth = seconds * 1000 - interval;
  const fullAt = new Map();

  const acquire = (key) => {
    const now = performance.now();
    const before = Math.max(fullAt.get(key) ?? now, now);
    const used = before - now;
    if (used > depth) return { allowed: false, remaining: 0, retryAfterMs: used - depth, resetAfterMs: used };
    fullAt.set(key, before + interval);
    return { allowed: true, remaining: Math.floor((depth - used) / interval), retryAfterMs: undefined, resetAfterMs: used + interval };
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
