/** The store of express-rate-limit, without the middleware around it: it counts, and the caller compares. */

import { MemoryStore } from 'express-rate-limit';

import { OF_ONE_LIMIT } from '../scenarios.mjs';

function make([{ amount, seconds }]) {
  const store = new MemoryStore();
  store.init({ windowMs: seconds * 1000 });
  return async (keys, from, to, admits) => {
    let wrong = 0;
    for (let at = from; at < to; at++) {
      const { totalHits } = await store.increment(keys[at]);
      if (totalHits <= amount !== admits) wrong++;
    }
    return wrong;
  };
}

export default [
  {
    name: 'express-rate-limit',
    kind: 'peer',
    note: 'MemoryStore.increment, awaited: a fixed window from the first request; a refusal is charged, too',
    make,
    scenarios: OF_ONE_LIMIT,
  },
];
