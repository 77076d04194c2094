'use strict';

const check = require('./arguments.js');
const { MirabError } = require('./error.js');
const { results: numbers } = require('./native.js');

/** The same memory as `numbers` in words of 32 bits. */
const words = new Int32Array(numbers.buffer);

/** Which of the words stand for what; `src/decision.rs` writes them. */
const FLAGS = 0;
const DECIDED = 1;
const COUNT = 2;
const HELD = 3;
const FRACTION = 20;
const ORIGIN = 21;

/** Which of the numbers. */
const RETRY_AFTER = 2;
const DELAY = 3;
const STEADY = 4;
const WALL = 5;
const COST = 6;
const LEASE = 7;
const HEAD = 11;
const STANDING = 5;

const ALLOWED = 1;
const NEVER = 2;
const DEGRADED = 4;
/** Counts are numbers, as one of them is no word. */
const WIDE = 8;
const LEASED = 16;

/** What stands in the policy's place where a key is blocked. */
const BLOCK = ['block'];
const NO_LEASE = [0, 0, 0, 0];

let settle, takenBy;
let reopen;

/** The answer of a limiter. Milliseconds, with fractions down to the microsecond. */
class Decision {
  #key;
  #steady;
  #wall;
  #cost;
  #origin;
  #lease;
  #settled;

  static {
    takenBy = (decision) => {
      if (decision === null || typeof decision !== 'object' || !(#key in decision)) {
        throw new MirabError('invalid_argument', `decision ${check.show(decision)}: it must be a Decision, as acquire gives it`);
      }
      numbers[STEADY] = decision.#steady;
      numbers[WALL] = decision.#wall;
      numbers[COST] = decision.#cost;
      const lease = decision.#lease ?? NO_LEASE;
      numbers[LEASE] = lease[0];
      numbers[LEASE + 1] = lease[1];
      numbers[LEASE + 2] = lease[2];
      words[FRACTION] = lease[3];
      words[ORIGIN] = decision.#origin;
      return decision.#key;
    };
    settle = (decision) => {
      const key = takenBy(decision);
      if (decision.#settled || decision.#cost === 0) return undefined;
      decision.#settled = true;
      return key;
    };
    reopen = (decision) => { decision.#settled = false; };
  }

  /** Nothing is read or computed here: V8 then makes the object, and those of its fields, in one go. */
  constructor(flags, standing, standings, retryAfterMs, delayMs, key, steady, wall, cost, origin, lease) {
    this.allowed = (flags & ALLOWED) !== 0;
    this.limit = standing.limit;
    this.used = standing.used;
    this.remaining = standing.remaining;
    this.retryAfterMs = retryAfterMs;
    this.resetAfterMs = standing.resetAfterMs;
    this.delayMs = delayMs;
    this.never = (flags & NEVER) !== 0;
    this.degraded = (flags & DEGRADED) !== 0;
    this.limitName = standing.name;
    this.standings = standings;
    this.#key = key;
    this.#steady = steady;
    this.#wall = wall;
    this.#cost = cost;
    this.#origin = origin;
    this.#lease = lease;
    this.#settled = false;
  }
}

/**
 * The decision on `key`, under limits of these names, that stands in the shared array. It is too long for V8 to inline
 * it into its callers, who vary, and so always has room for the constructor.
 */
function decided(policy, key) {
  const flags = words[FLAGS];
  const wide = (flags & WIDE) !== 0;
  const names = words[DECIDED] < 0 ? BLOCK : policy;
  const only = standingAt(HEAD, names[0], wide);
  const standings = words[COUNT] === 1 ? [only] : names.map((name, index) => standingAt(HEAD + STANDING * index, name, wide));
  return new Decision(
    flags,
    words[COUNT] === 1 ? only : standings[words[DECIDED]],
    standings,
    ms(numbers[RETRY_AFTER]),
    numbers[DELAY] === 0 ? 0 : numbers[DELAY] / 1000,
    key,
    numbers[STEADY],
    numbers[WALL],
    count(COST, wide),
    words[ORIGIN],
    flags & LEASED ? [numbers[LEASE], numbers[LEASE + 1], numbers[LEASE + 2], words[FRACTION]] : undefined,
  );
}

function standingAt(at, name, wide) {
  return {
    name,
    limit: count(at, wide),
    used: count(at + 1, wide),
    remaining: count(at + 2, wide),
    resetAfterMs: numbers[at + 3] / 1000,
    nextAfterMs: ms(numbers[at + 4]),
  };
}

const count = (at, wide) => (wide ? numbers[at] : words[2 * at]);

const ms = (us) => (us < 0 ? undefined : us / 1000);

/** The same of the slots that the addon gave. */
function decidedBy(slots, policy, key) {
  numbers.set(slots);
  return decided(policy, key);
}

/** The decisions on these keys, whose slots stand one after the other. */
function allDecidedBy(slots, policy, keys) {
  const all = new Int32Array(slots.buffer);
  const length = 2 * (HEAD + STANDING * policy.length);
  return keys.map((key, index) => {
    for (let at = 0; at < length; at++) words[at] = all[index * length + at];
    return decided(policy, key);
  });
}

/** The number under which the addon still holds the decision for its headers. */
const heldNumber = () => words[HELD];

module.exports = { Decision, allDecidedBy, decided, decidedBy, heldNumber, reopen, settle, takenBy };
