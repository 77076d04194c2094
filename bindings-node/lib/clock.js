'use strict';

const check = require('./arguments.js');
const { MirabError } = require('./error.js');
const native = require('./native.js');

/** What the core's times are within. */
const RANGE = 'from 0 to 4503599627370496 (2^52)';

const registry = new FinalizationRegistry((handle) => native.clockFree(handle));

let handleOf;

/** A clock for tests, moved by hand. It starts at `startUs` microseconds after 1970. */
class ManualClock {
  #handle;

  static {
    handleOf = (clock) => (clock !== null && typeof clock === 'object' && #handle in clock ? clock.#handle : undefined);
  }

  constructor(startUs = 0) {
    this.#handle = native.clockNew(check.integer('startUs', startUs, 'invalid_argument', RANGE));
    registry.register(this, this.#handle);
  }

  /** Moves it forward by milliseconds, taken to the nearest microsecond. */
  advanceMs(ms) {
    native.clockAdvanceMs(this.#handle, check.number('advanceMs', ms));
  }

  /** Moves it forward by microseconds. */
  advanceUs(us) {
    native.clockAdvanceUs(this.#handle, check.integer('advanceUs', us, 'invalid_argument', RANGE));
  }

  /** Sets its time, backwards too: microseconds since 1970. */
  setUs(us) {
    native.clockSetUs(this.#handle, check.integer('setUs', us, 'invalid_argument', RANGE));
  }

  /** The time it shows: microseconds since 1970. */
  get nowUs() {
    return native.clockNowUs(this.#handle);
  }
}

/**
 * The clock of a limiter, from its option. `source` is what the addon takes: a manual clock's handle,
 * or 'host' with a function `read` that is called once a decision, or undefined: the store's own.
 * `nowMs` is for what HTTP clients are told.
 */
function clockOf(option) {
  const given = option ?? undefined;
  if (given === undefined) {
    return process.env.MIRAB_CLOCK === 'host' ? hostClock() : { nowMs: () => Date.now() };
  }
  const handle = handleOf(given);
  if (handle !== undefined) return { source: handle, nowMs: () => given.nowUs / 1000 };
  if (typeof given === 'function') {
    const read = () => readMs(given);
    return { source: 'host', read, nowMs: read };
  }
  throw new MirabError(
    'invalid_argument',
    `clock ${check.show(given)}: it must be a ManualClock or a function that returns milliseconds since 1970, as Date.now does`,
  );
}

function readMs(read) {
  const ms = read();
  if (typeof ms === 'number') return ms;
  throw new MirabError('invalid_argument', `the clock returned ${check.show(ms)}: it must return milliseconds since 1970, as Date.now does`);
}

let warned = false;

/** `Date.now`, looked up at each call so that mocked timers drive it. */
function hostClock() {
  if (!warned) {
    warned = true;
    process.emitWarning('MIRAB_CLOCK=host is set: limiters read Date.now and not their store\'s clock. It is for tests.', 'MirabWarning');
  }
  const read = () => Date.now();
  return { source: 'host', read, nowMs: read };
}

module.exports = { ManualClock, clockOf };
