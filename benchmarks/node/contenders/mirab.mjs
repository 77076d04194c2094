/** mirab in memory: yes or no, the full decision, and the promise of one. */

import { Limiter } from 'mirab';

import { OF_ALL } from '../scenarios.mjs';

/** The default is a million keys, and then one is forgotten for each that comes. */
const STORE = 'memory:?max_keys=4000000';

const limiterOf = (limits) => new Limiter(limits.map(({ amount, seconds }) => `${amount} per ${seconds} s`).join('; '), { store: STORE });

function allow(limits) {
  const limiter = limiterOf(limits);
  return (keys, from, to, admits) => {
    let wrong = 0;
    for (let at = from; at < to; at++) if (limiter.allowSync(keys[at]) !== admits) wrong++;
    return wrong;
  };
}

function acquire(limits) {
  const limiter = limiterOf(limits);
  return (keys, from, to, admits) => {
    let wrong = 0;
    for (let at = from; at < to; at++) if (limiter.acquireSync(keys[at]).allowed !== admits) wrong++;
    return wrong;
  };
}

function acquirePromise(limits) {
  const limiter = limiterOf(limits);
  return async (keys, from, to, admits) => {
    let wrong = 0;
    for (let at = from; at < to; at++) if ((await limiter.acquire(keys[at])).allowed !== admits) wrong++;
    return wrong;
  };
}

export default [
  { name: 'mirab.allow', kind: 'mirab', note: 'allowSync: yes or no', make: allow, scenarios: OF_ALL },
  { name: 'mirab.acquire', kind: 'mirab', note: 'acquireSync: the full decision, of which `allowed` is read', make: acquire, scenarios: OF_ALL },
  { name: 'mirab.acquire-promise', kind: 'mirab', note: 'acquire: the same, awaited', make: acquirePromise, scenarios: OF_ALL },
];
