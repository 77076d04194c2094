'use strict';

const { inspect } = require('node:util');

const check = require('./arguments.js');
const { MirabError } = require('./error.js');
const native = require('./native.js');

const OWN = Symbol('made by mirab');
const INVALID = 'invalid_limit';
const COUNT = 'from 1 to 4294967295 (2^32-1)';

/** An algorithm with its numbers. Made by the static methods; never changes. */
class Limit {
  #text;
  #scope;

  constructor(own, text, scope = '') {
    if (own !== OWN) throw new MirabError('unsupported', 'a Limit is made by Limit.parse, or by the method of its algorithm, such as Limit.tokenBucket');
    this.#text = text;
    this.#scope = scope;
  }

  /** Exactly one limit in mirab's notation: `'100/second burst 300'`. */
  static parse(text) {
    return new Limit(OWN, native.limitParse(check.notation('limit', text)));
  }

  /**
   * `tokenBucket(limit, perMs, { capacity, name })`, or `tokenBucket({ capacity, refillRate, name })`
   * with tokens a second as a number or exact text (`'1/3'`).
   */
  static tokenBucket(limit, perMs, options) {
    if (limit !== null && typeof limit === 'object') {
      const { capacity, refillRate, name } = check.options('the options of tokenBucket', limit, ['capacity', 'refillRate', 'name']);
      const text = native.limitTokenBucketRefilled(check.integer('capacity', capacity, INVALID, COUNT), rate(refillRate));
      return named(text, name);
    }
    const { capacity, name } = check.options('the options of tokenBucket', options, ['capacity', 'name']);
    const text = native.limitTokenBucket(
      check.integer('limit', limit, INVALID, COUNT),
      check.number('perMs', perMs, INVALID),
      capacity === undefined ? undefined : check.integer('capacity', capacity, INVALID, COUNT),
    );
    return named(text, name);
  }

  /** `fixedWindow(limit, perMs, { anchor, name })`: windows by the clock, or from the first request. */
  static fixedWindow(limit, perMs, options) {
    const { anchor = 'clock', name } = check.options('the options of fixedWindow', options, ['anchor', 'name']);
    const text = native.limitFixedWindow(
      check.integer('limit', limit, INVALID, COUNT),
      check.number('perMs', perMs, INVALID),
      check.notation('anchor', anchor),
    );
    return named(text, name);
  }

  /** `leakyBucket(limit, perMs, { queue, name })`: admitted requests leave at the rate; `queue` of them may wait. */
  static leakyBucket(limit, perMs, options) {
    const { queue = 0, name } = check.options('the options of leakyBucket', options, ['queue', 'name']);
    const text = native.limitLeakyBucket(
      check.integer('limit', limit, INVALID, COUNT),
      check.number('perMs', perMs, INVALID),
      check.integer('queue', queue, INVALID, 'from 0 to 4294967294 (2^32-2)'),
    );
    return named(text, name);
  }

  /** `slidingWindow(limit, perMs, { name })`: the window before this one counts by its overlap. */
  static slidingWindow(limit, perMs, options) {
    const { name } = check.options('the options of slidingWindow', options, ['name']);
    const text = native.limitSlidingWindow(check.integer('limit', limit, INVALID, COUNT), check.number('perMs', perMs, INVALID));
    return named(text, name);
  }

  /**
   * `slidingLog(limit, perMs, { buckets, name })`: never more than the limit in any `perMs`; with
   * `buckets`, which divide `perMs`, that many counters in place of an entry a request.
   */
  static slidingLog(limit, perMs, options) {
    const { buckets, name } = check.options('the options of slidingLog', options, ['buckets', 'name']);
    const text = native.limitSlidingLog(
      check.integer('limit', limit, INVALID, COUNT),
      check.number('perMs', perMs, INVALID),
      buckets === undefined ? undefined : check.integer('buckets', buckets, INVALID, 'from 1 to 1024'),
    );
    return named(text, name);
  }

  /** `concurrency(limit, expiresMs, { name })`: at most `limit` in flight; what is never released ends after `expiresMs`. */
  static concurrency(limit, expiresMs, options) {
    const { name } = check.options('the options of concurrency', options, ['name']);
    const text = native.limitConcurrency(check.integer('limit', limit, INVALID, COUNT), check.number('expiresMs', expiresMs, INVALID));
    return named(text, name);
  }

  /** Refuses everything. */
  static deny() {
    return new Limit(OWN, native.limitDeny());
  }

  /** Admits everything. */
  static unlimited() {
    return new Limit(OWN, native.limitUnlimited());
  }

  /** The same limit under a name of its own, which keeps its buckets when its numbers change. */
  withName(name) {
    return new Limit(OWN, native.limitWithName(this.#text, check.notation('name', name)), this.#scope);
  }

  /** The same limit with buckets of its own, such as a route's. */
  withScope(scope) {
    native.limitWithScope(this.#text, check.text('scope', scope, INVALID));
    return new Limit(OWN, this.#text, scope);
  }

  /** The canonical notation, the same text in every language; the scope is no part of it. */
  toString() {
    return this.#text;
  }

  toJSON() {
    return this.#text;
  }

  [inspect.custom]() {
    return `Limit(${this.#text}${this.#scope && ` !${this.#scope}`})`;
  }

  /** What `limits` says, as the texts and scopes that the addon takes. */
  static list(limits) {
    const list = Array.isArray(limits) ? limits : [limits];
    const texts = [];
    const scopes = [];
    for (const limit of list) {
      const own = limit !== null && typeof limit === 'object' && #text in limit;
      if (!own && typeof limit !== 'string') {
        throw new MirabError(INVALID, `limits ${check.show(limit)}: they must be a notation such as '5/minute', a Limit, or an array of these`);
      }
      texts.push(own ? limit.#text : check.notation('limits', limit));
      scopes.push(own ? limit.#scope : '');
    }
    return { texts, scopes };
  }
}

function named(text, name) {
  const limit = new Limit(OWN, text);
  return name === undefined ? limit : limit.withName(name);
}

function rate(value) {
  if (typeof value === 'number' || typeof value === 'bigint') return String(value);
  return check.notation('refillRate', value);
}

module.exports = { Limit };
