'use strict';

const check = require('./arguments.js');
const { clockOf } = require('./clock.js');
const { Decision, heldOf, takenBy } = require('./decision.js');
const { MirabError } = require('./error.js');
const { Limit } = require('./limit.js');
const native = require('./native.js');

const OPTIONS = ['store', 'clock', 'onStoreFailure'];

/** No limiter has this number: what is left after `close`. */
const CLOSED = 2 ** 32 - 1;

const registry = new FinalizationRegistry((handle) => native.limiterFree(handle));

let acquireHeld;
let nowMs;
let textsOf;

/** Limits on a store. Keys are text or bytes; a cost is an integer from 0 to 2^53. */
class Limiter {
  #handle;
  #names;
  #local;
  #read;
  #nowMs;

  static {
    acquireHeld = (limiter, key) => limiter.#acquireHeld(key);
    nowMs = (limiter) => limiter.#nowMs();
    textsOf = (limiter) => native.limiterTexts(limiter.#handle);
  }

  constructor(limits, options) {
    const { store = 'memory:', clock, onStoreFailure = 'raise' } = check.options('the options of a Limiter', options, OPTIONS);
    const { texts, scopes } = Limit.list(limits);
    const time = clockOf(clock);
    this.#handle = native.limiterNew(
      texts,
      scopes,
      check.text('store', store, 'invalid_uri'),
      check.text('onStoreFailure', onStoreFailure),
      time.handle,
    );
    registry.register(this, this.#handle, this);
    this.#names = native.limiterNames(this.#handle);
    this.#local = native.limiterIsLocal(this.#handle);
    this.#read = time.read;
    this.#nowMs = time.nowMs;
  }

  /** Takes `cost` units of `key` if they are there, and says so in a Decision. */
  async acquire(key, cost = 1) {
    if (this.#local) return this.acquireSync(key, cost);
    const own = check.ownKey(key);
    const numbers = await native.acquireAsync(this.#handle, own, check.integer('cost', cost), this.#time());
    return new Decision(numbers, this.#names, own);
  }

  /** As `acquire`, but only yes or no. */
  async allow(key, cost = 1) {
    if (this.#local) return this.allowSync(key, cost);
    return native.allowAsync(this.#handle, check.key(key), check.integer('cost', cost), this.#time());
  }

  /** Whether `cost` would be admitted now, and what is left; takes nothing. */
  async peek(key, cost = 1) {
    if (this.#local) return this.peekSync(key, cost);
    const own = check.ownKey(key);
    const numbers = await native.peekAsync(this.#handle, own, check.integer('cost', cost), this.#time());
    return new Decision(numbers, this.#names, own);
  }

  /** Ends the leases that a decision took (`concurrency`); how many still counted, 0 the second time. */
  async release(decision) {
    if (this.#local) return this.releaseSync(decision);
    const [key, steady, wall, cost, high, low] = takenBy(decision);
    return native.releaseAsync(this.#handle, key, cost, this.#time(), steady, wall, high, low);
  }

  /** Forgets what `key` has used. */
  async reset(key) {
    if (this.#local) return this.resetSync(key);
    return native.resetAsync(this.#handle, check.key(key), 0, this.#time());
  }

  acquireSync(key, cost = 1) {
    this.#checkLocal('acquire');
    const own = check.ownKey(key);
    native.acquire(this.#handle, own, check.integer('cost', cost), this.#time());
    return new Decision(native.results, this.#names, own);
  }

  allowSync(key, cost = 1) {
    this.#checkLocal('allow');
    return native.allow(this.#handle, check.key(key), check.integer('cost', cost), this.#time());
  }

  peekSync(key, cost = 1) {
    this.#checkLocal('peek');
    const own = check.ownKey(key);
    native.peek(this.#handle, own, check.integer('cost', cost), this.#time());
    return new Decision(native.results, this.#names, own);
  }

  releaseSync(decision) {
    this.#checkLocal('release');
    const [key, steady, wall, cost, high, low] = takenBy(decision);
    return native.release(this.#handle, key, cost, this.#time(), steady, wall, high, low);
  }

  resetSync(key) {
    this.#checkLocal('reset');
    native.reset(this.#handle, check.key(key), 0, this.#time());
  }

  /** Gives up its store. Every later operation fails with MIRAB_CLOSED; twice is fine. */
  close() {
    if (this.#handle === CLOSED) return;
    registry.unregister(this);
    native.limiterClose(this.#handle);
    this.#handle = CLOSED;
  }

  /** A decision on a text key, and the number under which the addon holds it for its headers, until it is freed. */
  async #acquireHeld(key) {
    let numbers = native.results;
    if (this.#local) native.acquireHeld(this.#handle, key, 1, this.#time());
    else numbers = await native.acquireHeldAsync(this.#handle, key, 1, this.#time());
    return { decision: new Decision(numbers, this.#names, key), held: heldOf(numbers) };
  }

  /** What its clock says, when it is a function: read here, once a decision. */
  #time() {
    return this.#read === undefined ? undefined : this.#read();
  }

  #checkLocal(name) {
    if (this.#local) return;
    throw new MirabError('unsupported', `${name}Sync: this store may block, use the promise form ${name}; the Sync forms are for memory:`);
  }
}

module.exports = { Limiter, acquireHeld, nowMs, textsOf };
