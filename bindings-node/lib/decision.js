'use strict';

/** Where the numbers of the first standing start, and how many each has; `src/decision.rs` writes them. */
const HEAD = 12;
const STANDING = 5;
const HELD = 10;

/** The answer of a limiter. Milliseconds, with fractions down to the microsecond. */
class Decision {
  constructor(numbers, names) {
    this.allowed = numbers[0] === 1;
    this.limit = numbers[1];
    this.used = numbers[2];
    this.remaining = numbers[3];
    this.retryAfterMs = ms(numbers[4]);
    this.resetAfterMs = ms(numbers[5]);
    this.delayMs = ms(numbers[6]);
    this.never = numbers[7] === 1;
    this.degraded = numbers[8] === 1;
    this.limitName = names[numbers[9]];
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

module.exports = { Decision, heldOf };
