/** What each scenario asks: whose keys, under which limits, and what the right answer is. */

const WALK = 1 << 20; // steps, then the same again
const HOUR = 3600;
const DAY = 24 * HOUR;

/** So many in so many seconds: for a bucket its capacity and refill, for a window its width. */
const limit = (amount, seconds) => ({ amount, seconds });

export const ENDLESS = limit(1e9, HOUR);
const ONCE = limit(1, HOUR);
/**
 * A unit comes back in three minutes: what is held of a key is still live when its turn comes again, in every store.
 * A window is below the 24.8 days that a timer can hold.
 */
export const LASTING = limit(10_000, 20 * DAY);
const POLICY = [limit(1e9, 60), limit(1e9, HOUR), limit(1e9, DAY)];

export const SCENARIOS = [
  { name: 'hot', limits: [ENDLESS], admits: true, keys: 1 },
  { name: 'denied', limits: [ONCE], admits: false, keys: 1 },
  { name: 'keys_100k', limits: [LASTING], admits: true, keys: 100_000 },
  { name: 'policy_1', limits: POLICY.slice(0, 1), admits: true, keys: 1 },
  { name: 'policy_3', limits: POLICY, admits: true, keys: 1 },
];

export const OF_ONE_LIMIT = ['hot', 'denied', 'keys_100k'];
export const OF_ALL = SCENARIOS.map((scenario) => scenario.name);

/** `count` keys of 16 bytes, such as user:00000012345; flat in memory, as those are that come from a socket. */
export function keysOf(count) {
  return Array.from({ length: count }, (_, number) => Buffer.from(`user:${String(number).padStart(11, '0')}`).latin1Slice());
}

/** The keys of a scenario, each once, and in the order in which they come. */
export function walkOf(count) {
  const keys = keysOf(count);
  if (count === 1) return { keys, order: new Array(1024).fill(keys[0]) };
  return { keys, order: randomOrder(count).map((index) => keys[index]) };
}

/** The same in every run (xorshift32). */
function randomOrder(count) {
  let state = 0x9E3779B9;
  return Array.from({ length: WALK }, () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % count;
  });
}
