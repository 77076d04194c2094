'use strict';

const check = require('./arguments.js');
const { MirabError } = require('./error.js');

/** Where the limit that decided, the receipt and the first standing start, and how long each is; `src/decision.rs` writes them. */
const DECIDED = 9;
const HELD = 10;
const RECEIPT = 12;
const HEAD = 19;
const STANDING = 5;
/** Where a receipt has its cost: 0 says that nothing was taken. */
const COST = 2;

/** What stands in the policy's place where a key is blocked. */
const BLOCK = ['block'];

let takenBy;
let reopen, settle;

/** The answer of a limiter. Milliseconds, with fractions down to the microsecond. */
class Decision {
  #key;
  #receipt;
  #settled = false;

  static {
    takenBy = (decision) => {
      if (decision !== null && typeof decision === 'object' && #receipt in decision) return [decision.#key, decision.#receipt];
      throw new MirabError('invalid_argument', `decision ${check.show(decision)}: it must be a Decision, as acquire gives it`);
    };
    settle = (decision) => {
      const taken = takenBy(decision);
      if (decision.#settled || decision.#receipt[COST] === 0) return undefined;
      decision.#settled = true;
      return taken;
    };
    reopen = (decision) => { decision.#settled = false; };
  }

  constructor(numbers, policy, key) {
    const names = numbers[DECIDED] < 0 ? BLOCK : policy;
    this.#key = key;
    this.#receipt = [
      numbers[RECEIPT], numbers[RECEIPT + 1], numbers[RECEIPT + 2], numbers[RECEIPT + 3], numbers[RECEIPT + 4],
      numbers[RECEIPT + 5], numbers[RECEIPT + 6],
    ];
    this.allowed = numbers[0] === 1;
    this.limit = numbers[1];
    this.used = numbers[2];
    this.remaining = numbers[3];
    this.retryAfterMs = ms(numbers[4]);
    this.resetAfterMs = ms(numbers[5]);
    this.delayMs = ms(numbers[6]);
    this.never = numbers[7] === 1;
    this.degraded = numbers[8] === 1;
    this.limitName = names[Math.max(numbers[DECIDED], 0)];
    this.standings = [];
    for (let index = 0; index < numbers[11]; index++) {
      const at = HEAD + STANDING * index;
      this.standings.push({
        name: names[index],
        limit: numbers[at],
        used: numbers[at + 1],
        remaining: numbers[at + 2],
        resetAfterMs: ms(numbers[at + 3]),
        nextAfterMs: ms(numbers[at + 4]),
      });
    }
  }
}

/** The number under which the addon still holds a decision for its headers. */
const heldOf = (numbers) => numbers[HELD];

function ms(us) {
  return us < 0 ? undefined : us / 1000;
}

module.exports = { Decision, heldOf, reopen, settle, takenBy };
