/** rate-limiter-flexible in memory: a refusal is a rejected promise. Several limits are its RateLimiterUnion. */

import { RateLimiterMemory, RateLimiterUnion } from 'rate-limiter-flexible';

import { OF_ALL } from '../scenarios.mjs';

function make(limits) {
  const each = limits.map(({ amount, seconds }, index) => (
    new RateLimiterMemory({ points: amount, duration: seconds, keyPrefix: `limit${index}` })
  ));
  const limiter = each.length === 1 ? each[0] : new RateLimiterUnion(...each);
  return async (keys, from, to, admits) => {
    let wrong = 0;
    for (let at = from; at < to; at++) {
      try {
        await limiter.consume(keys[at]);
        if (!admits) wrong++;
      } catch (refusal) {
        if (refusal instanceof Error) throw refusal;
        if (admits) wrong++;
      }
    }
    return wrong;
  };
}

export default [
  {
    name: 'rate-limiter-flexible',
    kind: 'peer',
    note: 'consume, awaited: a full answer; a fixed window from the first request; a refusal is charged, too, and of several limits those that admit',
    make,
    scenarios: OF_ALL,
  },
];
