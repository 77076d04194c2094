'use strict';

const check = require('./arguments.js');
const { clockOf } = require('./clock.js');
const { allDecidedBy, decided, decidedBy, heldNumber, reopen, settle, takenBy } = require('./decision.js');
const { MirabError } = require('./error.js');
const { healthOf } = require('./health.js');
const { Limit } = require('./limit.js');
const native = require('./native.js');
const { NEWS_EVERY, tellNews } = require('./news.js');
const { statsOf } = require('./stats.js');
const { Sleepers } = require('./wait.js');

const OPTIONS = ['store', 'clock', 'onStoreFailure', 'instances'];
const FAILURES = ['local', 'open', 'closed', 'raise'];

/** No limiter has this number: what is left after `close`. */
const CLOSED = 2 ** 32 - 1;

const { acquire, allow, peek } = native;

const registry = new FinalizationRegistry((handle) => native.limiterFree(handle));

/** The longest that a request may be held, in milliseconds: a day. */
const longestHeld = 86_400_000;

/** What `http.js` puts here: how a held decision is told. */
const toldFor = {};

let acquireHeld;
let isLeasing;
let longestHolds;
let nowMs;

/** Limits on a store. Keys are text or bytes; a cost is an integer from 0 to 2^53. */
class Limiter {
  #handle;
  #names;
  #local;
  /** On a store of this machine that may have news: how often it was asked. Memory never has, and this is undefined. */
  #asked;
  #read;
  #nowMs;
  #sleepers = new Sleepers();
  #last;

  static {
    acquireHeld = (limiter, key) => limiter.#held(native.acquireHeld, native.acquireHeldAsync, key, 1);
    isLeasing = (limiter) => native.limiterIsLeasing(limiter.#handle);
    longestHolds = (limiter) => {
      const delays = native.limiterLongestDelays(limiter.#handle);
      return native.limiterTexts(limiter.#handle).map((text, index) => ({ text, ms: delays[index] / 1000 }));
    };
    nowMs = (limiter) => limiter.#nowMs();
  }

  constructor(limits, options) {
    const { store = 'memory:', clock, onStoreFailure = 'local', instances = 1 } = check.options('the options of a Limiter', options, OPTIONS);
    const { texts, scopes } = Limit.list(limits);
    const time = clockOf(clock);
    this.#handle = native.limiterNew(
      texts,
      scopes,
      [check.text('store', store, 'invalid_uri'), check.oneOf('onStoreFailure', onStoreFailure, FAILURES)],
      check.integer('instances', instances, 'invalid_argument', 'from 1 to 4294967295 (2^32-1)'),
      time.source,
    );
    registry.register(this, this.#handle, this);
    this.#names = native.limiterNames(this.#handle);
    this.#local = native.limiterIsLocal(this.#handle);
    if (this.#local && native.limiterKind(this.#handle) !== 'memory') {
      this.#asked = 0;
      tellNews(this.#handle);
    }
    this.#read = time.read;
    this.#nowMs = time.nowMs;
  }

  /** Takes `cost` units of `key` if they are there, and says so in a Decision. */
  async acquire(key, cost = 1) {
    if (this.#local) return this.acquireSync(key, cost);
    const own = check.ownKey(key);
    const slots = await this.#told(native.acquireAsync(this.#handle, own, check.integer('cost', cost), this.#time()));
    return decidedBy(slots, this.#names, own);
  }

  /** As `acquire`, but only yes or no. */
  async allow(key, cost = 1) {
    if (this.#local) return this.allowSync(key, cost);
    return this.#told(native.allowAsync(this.#handle, check.key(key), check.integer('cost', cost), this.#time()));
  }

  /** Whether `cost` would be admitted now, and what is left; takes nothing. */
  async peek(key, cost = 1) {
    if (this.#local) return this.peekSync(key, cost);
    const own = check.ownKey(key);
    const slots = await this.#told(native.peekAsync(this.#handle, own, check.integer('cost', cost), this.#time()));
    return decidedBy(slots, this.#names, own);
  }

  /** As `acquire`, with what the client is told of it: `{ decision, answer }`, by the Answers of `mirab/http`. */
  async acquireWithAnswer(key, cost, answers, naming) {
    checkAnswers(answers);
    return this.#withAnswer(native.acquireHeld, native.acquireHeldAsync, key, cost, answers, naming);
  }

  /** As `peek`, with what the client would be told of it. */
  async peekWithAnswer(key, cost, answers, naming) {
    checkAnswers(answers);
    return this.#withAnswer(native.peekHeld, native.peekHeldAsync, key, cost, answers, naming);
  }

  /** For each key, or [key, cost], as `acquire`, in one step: each is all or nothing for itself. */
  async acquireMany(items) {
    if (this.#local) return this.acquireManySync(items);
    const { keys, costs } = check.items(items);
    return allDecidedBy(await this.#told(native.acquireManyAsync(this.#handle, keys, costs, this.#time())), this.#names, keys);
  }

  /**
   * Waits until `cost` is admitted and due, or the timeout has passed, and resolves with the last decision;
   * at once when no wait helps, or the wait would be beyond the timeout. A manual clock is advanced.
   */
  async wait(key, cost = 1, options) {
    const { timeoutMs, signal } = check.options('the options of wait', options, ['timeoutMs', 'signal']);
    const own = check.ownKey(key);
    const timeout = timeoutMs === undefined ? undefined : check.number('timeoutMs', timeoutMs);
    if (check.signal(signal)?.aborted) throw signal.reason;
    const waiter = native.waiterNew(this.#handle, own, check.integer('cost', cost), timeout);
    const step = this.#local ? native.waiterStep : native.waiterStepAsync;
    try {
      for (;;) {
        const next = await this.#told(step(waiter, this.#time()));
        if (typeof next !== 'number') return decidedBy(next, this.#names, own);
        if (next > 0) await this.#sleepers.sleep(next / 1000, signal);
      }
    } finally {
      native.waiterFree(waiter);
    }
  }

  /** Gives back what a decision took, once, never above full: how many units. */
  async refund(decision) {
    if (this.#local) return this.refundSync(decision);
    const time = this.#time();
    const key = this.#settle(decision);
    return key === undefined ? 0 : this.#told(native.refundAsync(this.#handle, key, 0, time)).catch((error) => unsettled(decision, error));
  }

  /** Settles a decision at a cost that is known only now: what it took less is given back, more is charged. */
  async commit(decision, actualCost) {
    if (this.#local) return this.commitSync(decision, actualCost);
    const cost = check.integer('actualCost', actualCost);
    const time = this.#time();
    const key = this.#settle(decision);
    return key && this.#told(native.commitAsync(this.#handle, key, cost, time)).catch((error) => unsettled(decision, error));
  }

  /** Ends the leases that a decision took (`concurrency`); how many still counted, 0 the second time. */
  async release(decision) {
    if (this.#local) return this.releaseSync(decision);
    const time = this.#time();
    return this.#told(native.releaseAsync(this.#handle, takenBy(decision), 0, time));
  }

  /** Refuses `key` for so long, under any limits on this store. */
  async block(key, ms) {
    if (this.#local) return this.blockSync(key, ms);
    return this.#told(native.blockAsync(this.#handle, check.key(key), 0, this.#time(), check.number('block', ms)));
  }

  /** Lifts a block. */
  async unblock(key) {
    if (this.#local) return this.unblockSync(key);
    return this.#told(native.unblockAsync(this.#handle, check.key(key), 0, this.#time()));
  }

  /** Forgets what `key` has used, and lifts its block. */
  async reset(key) {
    if (this.#local) return this.resetSync(key);
    return this.#told(native.resetAsync(this.#handle, check.key(key), 0, this.#time()));
  }

  acquireSync(key, cost = 1) {
    this.#checkLocal('acquire');
    const given = check.key(key);
    try {
      if (cost === 1 && this.#read === undefined) acquire(this.#handle, given);
      else acquire(this.#handle, given, check.integer('cost', cost), this.#time());
    } catch (error) {
      throw this.#failed(error);
    }
    return this.#heard(decided(this.#names, check.kept(given)));
  }

  allowSync(key, cost = 1) {
    this.#checkLocal('allow');
    const given = check.key(key);
    try {
      if (cost === 1 && this.#read === undefined) return allow(this.#handle, given);
      return allow(this.#handle, given, check.integer('cost', cost), this.#time());
    } catch (error) {
      throw this.#failed(error);
    }
  }

  peekSync(key, cost = 1) {
    this.#checkLocal('peek');
    const given = check.key(key);
    try {
      if (cost === 1 && this.#read === undefined) peek(this.#handle, given);
      else peek(this.#handle, given, check.integer('cost', cost), this.#time());
    } catch (error) {
      throw this.#failed(error);
    }
    return this.#heard(decided(this.#names, check.kept(given)));
  }

  acquireManySync(items) {
    this.#checkLocal('acquireMany');
    const { keys, costs } = check.items(items);
    return allDecidedBy(native.acquireMany(this.#handle, keys, costs, this.#time()), this.#names, keys);
  }

  refundSync(decision) {
    this.#checkLocal('refund');
    const time = this.#time();
    const key = this.#settle(decision);
    try {
      return key === undefined ? 0 : native.refund(this.#handle, key, 0, time);
    } catch (error) {
      return unsettled(decision, error);
    }
  }

  commitSync(decision, actualCost) {
    this.#checkLocal('commit');
    const cost = check.integer('actualCost', actualCost);
    const time = this.#time();
    const key = this.#settle(decision);
    try {
      if (key !== undefined) native.commit(this.#handle, key, cost, time);
    } catch (error) {
      unsettled(decision, error);
    }
  }

  releaseSync(decision) {
    this.#checkLocal('release');
    const time = this.#time();
    return native.release(this.#handle, takenBy(decision), 0, time);
  }

  blockSync(key, ms) {
    this.#checkLocal('block');
    native.block(this.#handle, check.key(key), 0, this.#time(), check.number('block', ms));
  }

  unblockSync(key) {
    this.#checkLocal('unblock');
    native.unblock(this.#handle, check.key(key), 0, this.#time());
  }

  resetSync(key) {
    this.#checkLocal('reset');
    native.reset(this.#handle, check.key(key), 0, this.#time());
  }

  /** How its store is, asked now. A store that is away is what it tells, and no error. */
  async health() {
    return healthOf(await this.#told(native.limiterHealthAsync(this.#handle)));
  }

  /** How often it answered what, since it was made; after `close` the last counts. */
  stats() {
    return this.#last ?? statsOf(native.limiterStats(this.#handle));
  }

  /** Gives up its store. Every later operation, and who waits inside, fails with MIRAB_CLOSED; twice is fine. */
  close() {
    if (this.#handle === CLOSED) return;
    registry.unregister(this);
    this.#last = this.stats();
    native.limiterClose(this.#handle);
    this.#handle = CLOSED;
    this.#sleepers.close();
  }

  /** A decision on a key, and the number under which the addon holds it for its answer, until it is freed. */
  async #held(here, elsewhere, key, cost) {
    if (!this.#local) {
      const decision = decidedBy(await this.#told(elsewhere(this.#handle, key, cost, this.#time())), this.#names, key);
      return { decision, held: heldNumber() };
    }
    this.#hear();
    try {
      here(this.#handle, key, cost, this.#time());
    } catch (error) {
      throw this.#failed(error);
    }
    return { decision: this.#heard(decided(this.#names, key)), held: heldNumber() };
  }

  async #withAnswer(here, elsewhere, key, cost, answers, naming) {
    const named = toldFor.naming(naming); // before anything is taken
    const { decision, held } = await this.#held(here, elsewhere, check.ownKey(key), check.integer('cost', cost));
    try {
      return { decision, answer: toldFor.answer(answers, held, named) };
    } finally {
      native.decisionFree(held);
    }
  }

  /** Hands over the receipt of a decision, the first time only, and returns its key; undefined when it took nothing. */
  #settle(decision) {
    if (this.#handle === CLOSED) throw new MirabError('closed', 'the limiter is closed');
    return settle(decision);
  }

  /** What a store elsewhere answered; what became of that store meanwhile is told beside it. */
  async #told(answer) {
    try {
      return await answer;
    } finally {
      tellNews(this.#handle);
    }
  }

  /** What its clock says, when it is a function: read here, once a decision. */
  #time() {
    return this.#read === undefined ? undefined : this.#read();
  }

  #checkLocal(name) {
    if (this.#local) return this.#hear();
    throw new MirabError('unsupported', `${name}Sync: this store may block, use the promise form ${name}; the Sync forms are for memory: and shm:`);
  }

  /** What a store of this machine has come to is told now and then, so that no decision pays for it. */
  #hear() {
    if (this.#asked !== undefined && ++this.#asked % NEWS_EVERY === 0) tellNews(this.#handle);
  }

  /** That a store of this machine did not decide is news, told at once. */
  #heard(decision) {
    if (this.#asked !== undefined && decision.degraded) tellNews(this.#handle);
    return decision;
  }

  /** And so is that it failed. */
  #failed(error) {
    if (this.#asked !== undefined) tellNews(this.#handle);
    return error;
  }
}

/** Before anything is taken. */
function checkAnswers(answers) {
  if (toldFor.isAnswers?.(answers)) return;
  throw new MirabError('invalid_argument', `answers ${check.show(answers)}: they must be Answers of mirab/http`);
}

/** What was not done, since the decision is another limiter's or the store was not asked, can be tried again. */
function unsettled(decision, error) {
  if (!error.mayHaveHappened) reopen(decision);
  throw error;
}

module.exports = { Limiter, acquireHeld, isLeasing, longestHeld, longestHolds, nowMs, toldFor };
