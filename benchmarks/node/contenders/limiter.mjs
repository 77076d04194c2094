/** limiter's TokenBucket has no keys: a Map holds one for each, as its users write. Several limits are a chain of parents. */

import { TokenBucket } from 'limiter';

import { OF_ALL } from '../scenarios.mjs';

function make(limits) {
  const buckets = new Map();
  const bucketOf = (key) => {
    const known = buckets.get(key);
    if (known !== undefined) return known;
    let bucket;
    for (const { amount, seconds } of limits) {
      bucket = new TokenBucket({ bucketSize: amount, tokensPerInterval: amount, interval: seconds * 1000, parentBucket: bucket });
      bucket.content = amount; // it starts empty
    }
    buckets.set(key, bucket);
    return bucket;
  };
  return (keys, from, to, admits) => {
    let wrong = 0;
    for (let at = from; at < to; at++) if (bucketOf(keys[at]).tryRemoveTokens(1) !== admits) wrong++;
    return wrong;
  };
}

export default [
  { name: 'limiter', kind: 'peer', note: 'TokenBucket in a Map: yes or no; floating point; never forgets a key', make, scenarios: OF_ALL },
];
