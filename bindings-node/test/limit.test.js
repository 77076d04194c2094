'use strict';

const assert = require('node:assert/strict');
const test = require('node:test');
const { inspect } = require('node:util');

const { Limit, Limiter } = require('..');
const { failure } = require('./helpers.js');

const INVALID = 'MIRAB_INVALID_LIMIT';

test('constructors and notation say the same', () => {
  for (const [limit, text] of [
    [Limit.parse('5 per 60 seconds'), '5/minute'],
    [Limit.tokenBucket(5, 60_000), '5/minute'],
    [Limit.tokenBucket(100, 1000, { capacity: 300 }), '100/second burst 300'],
    [Limit.tokenBucket(100n, 1000, { capacity: 300n, name: 'api' }), 'api=100/second burst 300'],
    [Limit.tokenBucket({ capacity: 20, refillRate: 5 }), '5/second burst 20'],
    [Limit.tokenBucket({ capacity: 20, refillRate: 0.5, name: 'slow' }), 'slow=1/2s burst 20'],
    [Limit.fixedWindow(10, 60_000), 'fixed_window: 10/minute'],
    [Limit.fixedWindow(10, 60_000, { anchor: 'first', name: 'login' }), 'login=fixed_window: 10/minute from first'],
    [Limit.leakyBucket(50, 1000, { queue: 20 }), 'leaky_bucket: 50/second queue 20'],
    [Limit.leakyBucket(50n, 1000, { queue: 20n, name: 'out' }), 'out=leaky_bucket: 50/s queue 20'],
    [Limit.leakyBucket(1, 1.5), 'leaky_bucket: 1/1500us'],
    [Limit.slidingWindow(10, 60_000), 'sliding_window: 10/minute'],
    [Limit.slidingWindow(10, 60_000, { name: 'w' }), 'w=sliding_window: 10/minute'],
    [Limit.slidingLog(5, 60_000), 'sliding_log: 5/minute'],
    [Limit.slidingLog(5, 60_000, { buckets: 6, name: 'log' }), 'log=sliding_log: 5/minute buckets 6'],
    [Limit.slidingLog(5, 60_000, { buckets: undefined }), 'sliding_log: 5/minute'],
    [Limit.concurrency(20, 30_000), 'concurrency: 20 for 30s'],
    [Limit.concurrency(20n, 30_000, { name: 'db' }), 'db=concurrency: 20 for 30s'],
    [Limit.deny(), 'deny'],
    [Limit.unlimited(), 'unlimited'],
    [Limit.parse('5/minute').withName('a.b-c_D'), 'a.b-c_D=5/minute'],
  ]) {
    assert.equal(String(limit), String(Limit.parse(text)));
    assert.equal(String(Limit.parse(String(limit))), String(limit));
    assert.ok(limit instanceof Limit);
  }
  assert.equal(String(Limit.tokenBucket({ capacity: 2, refillRate: '1/3' })), String(Limit.parse('1 per 3 s burst 2')));
  assert.equal(String(Limit.slidingLog(5, 60_000, { buckets: 6 })), 'sliding_log: 5/minute buckets 6');
  assert.equal(String(Limit.concurrency(20, 30_000)), 'concurrency: 20 for 30 seconds');
  assert.equal(JSON.stringify({ limit: Limit.parse('5 per 60 seconds') }), '{"limit":"5/minute"}');
  assert.equal(inspect(Limit.parse('5/minute').withScope('/login')), 'Limit(5/minute !/login)');
});

test('a limit that cannot be is an error that names the value', () => {
  for (const [make, ...texts] of [
    [() => Limit.parse('0/second'), '0'],
    [() => Limit.parse('5/fortnight'), 'fortnight'],
    [() => Limit.parse('5/minute; 9/hour'), 'one limit'],
    [() => Limit.parse(5), '5', 'string'],
    [() => Limit.tokenBucket(0, 1000), '0', 'deny'],
    [() => Limit.tokenBucket(1.5, 1000), 'limit 1.5', 'integer'],
    [() => Limit.tokenBucket(-1, 1000), 'limit -1'],
    [() => Limit.tokenBucket('5', 1000), "limit '5'"],
    [() => Limit.tokenBucket(2 ** 32, 1000), '4294967296'],
    [() => Limit.tokenBucket(5, '1000'), "perMs '1000'"],
    [() => Limit.tokenBucket(5, undefined), 'perMs undefined'],
    [() => Limit.tokenBucket(5, 1000, { capacity: 0 }), '0'],
    [() => Limit.tokenBucket({ refillRate: 5 }), 'capacity undefined'],
    [() => Limit.tokenBucket({ capacity: 5 }), 'refillRate undefined'],
    [() => Limit.tokenBucket({ capacity: 5, refillRate: NaN }), 'NaN'],
    [() => Limit.tokenBucket({ capacity: 5, refillRate: '1/0' }), '1/0'],
    [() => Limit.fixedWindow(5, 1000, { anchor: 'last' }), 'last', 'clock', 'first'],
    [() => Limit.leakyBucket(0, 1000), '0', 'deny'],
    [() => Limit.leakyBucket(5, 1000, { queue: -1 }), 'queue -1', 'integer'],
    [() => Limit.leakyBucket(5, 1000, { queue: 1.5 }), 'queue 1.5'],
    [() => Limit.leakyBucket(5, 1000, { queue: null }), 'queue null'],
    [() => Limit.leakyBucket(5, 1000, { queue: 2 ** 32 - 1 }), '4294967295', '4294967294'],
    [() => Limit.leakyBucket(5, '1000'), "perMs '1000'"],
    [() => Limit.slidingWindow(0, 1000), '0', 'deny'],
    [() => Limit.slidingWindow(2 ** 32, 1000), '4294967296'],
    [() => Limit.slidingWindow(5), 'perMs undefined'],
    [() => Limit.slidingLog(0.5, 1000), 'limit 0.5'],
    [() => Limit.slidingLog(5, 60_000, { buckets: 7 }), '7 buckets', '60000000'],
    [() => Limit.slidingLog(5, 60_000, { buckets: 0 }), '0 buckets'],
    [() => Limit.slidingLog(5, 60_000, { buckets: 1200 }), '1200 buckets', '1024'],
    [() => Limit.slidingLog(5, 60_000, { buckets: '6' }), "buckets '6'"],
    [() => Limit.concurrency(0, 1000), '0', 'deny'],
    [() => Limit.concurrency(NaN, 1000), 'limit NaN'],
    [() => Limit.concurrency(5), 'expiresMs undefined'],
    [() => Limit.slidingWindow(5, 1000, { name: 'a b' }), 'a b'],
    [() => Limit.parse('5/minute').withName('a b'), 'a b'],
    [() => Limit.parse('5/minute').withName(7), 'name 7'],
    [() => Limit.parse('5/minute').withScope(''), 'scope'],
    [() => new Limiter([]), '0 limits'],
    [() => new Limiter(undefined), 'undefined', "'5/minute'"],
    [() => new Limiter(['5/minute', 7]), '7'],
    [() => new Limiter(['5/minute', '5 per 60 s']), 'twice'],
  ]) {
    assert.throws(make, failure(INVALID, ...texts));
  }
  for (const ms of [0, -1, NaN, Infinity, 0.0004]) {
    for (const algorithm of ['tokenBucket', 'leakyBucket', 'fixedWindow', 'slidingWindow', 'slidingLog']) {
      assert.throws(() => Limit[algorithm](5, ms), failure('MIRAB_INVALID_ARGUMENT', `perMs of ${ms}`.replace('Infinity', 'inf')));
    }
    assert.throws(() => Limit.concurrency(5, ms), failure('MIRAB_INVALID_ARGUMENT', `expiresMs of ${ms}`.replace('Infinity', 'inf')));
  }
  assert.throws(() => Limit.leakyBucket(5, 1000, { burst: 9 }), failure('MIRAB_INVALID_ARGUMENT', '"burst"', 'queue, name'));
  assert.throws(() => Limit.slidingLog(5, 1000, { bucket: 9 }), failure('MIRAB_INVALID_ARGUMENT', 'did you mean "buckets"'));
  assert.throws(() => Limit.concurrency(5, 1000, 9), failure('MIRAB_INVALID_ARGUMENT', '9', 'object'));
  assert.throws(() => Limit.tokenBucket(5, 1000, { burst: 9 }), failure('MIRAB_INVALID_ARGUMENT', 'burst', 'capacity'));
  assert.throws(() => Limit.tokenBucket(5, 1000, { capcity: 9 }), failure('MIRAB_INVALID_ARGUMENT', 'did you mean "capacity"'));
  assert.throws(() => new Limit('5/minute'), failure('MIRAB_UNSUPPORTED', 'Limit.parse'));
});

test('names and scopes tell buckets apart on one store', () => {
  const store = 'memory:limit-test';
  const take = (limit) => new Limiter(limit, { store }).acquireSync('k').remaining;
  const limit = Limit.parse('5/minute');
  assert.equal(take(limit), 4);
  assert.equal(take('5 per 60 seconds'), 3);
  assert.equal(take(limit.withName('login')), 4);
  assert.equal(take(limit.withScope('/login')), 4);
  assert.equal(take(limit.withScope('/login')), 3);
  assert.equal(take(limit.withScope('/logout')), 4);
  assert.equal(take(limit.withScope('/login').withName('login')), 4);
  assert.equal(take(limit), 2);
});
