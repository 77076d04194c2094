'use strict';

const assert = require('node:assert/strict');
const test = require('node:test');

const { Decision, Limit, Limiter, ManualClock } = require('..');
const { failure, redis, stores } = require('./helpers.js');

for (const [name, store] of Object.entries(stores)) {
  test(`a bucket drains and fills on ${name}`, async () => {
    const clock = new ManualClock();
    const limiter = new Limiter('3 per 1 s', { store: store(), clock });
    const first = await limiter.acquire('user:42', 2);
    assert.ok(first instanceof Decision);
    assert.deepEqual({ ...first, standings: [...first.standings] }, {
      allowed: true,
      limit: 3,
      used: 2,
      remaining: 1,
      retryAfterMs: undefined,
      resetAfterMs: 666.667,
      delayMs: 0,
      never: false,
      degraded: false,
      limitName: '3/second',
      standings: [{ name: '3/second', limit: 3, used: 2, remaining: 1, resetAfterMs: 666.667, nextAfterMs: 333.334 }],
    });
    const refused = await limiter.acquire('user:42', 2);
    assert.equal(refused.allowed, false);
    assert.equal(refused.retryAfterMs, 333.334);

    clock.advanceUs(333_333);
    assert.equal(await limiter.allow('user:42', 2), false);
    clock.advanceUs(1);
    assert.equal((await limiter.peek('user:42', 2)).allowed, true);
    assert.equal(await limiter.allow('user:42', 2), true);
    assert.equal(await limiter.reset('user:42'), undefined);
    assert.equal((await limiter.peek('user:42')).remaining, 3);
    limiter.close();
  });

  test(`a wait in milliseconds lands on its instant on ${name}`, async () => {
    const clock = new ManualClock(1_790_000_000_123_457);
    const limiter = new Limiter('7/second burst 7', { store: store(), clock });
    await limiter.acquire('k', 7);
    for (let step = 0; step < 20; step++) {
      const refused = await limiter.acquire('k');
      clock.advanceMs(refused.retryAfterMs);
      clock.setUs(clock.nowUs - 1);
      assert.equal(await limiter.allow('k'), false);
      clock.advanceUs(1);
      assert.equal(await limiter.allow('k'), true);
    }
    limiter.close();
  });

  test(`never, cost 0, deny and unlimited on ${name}`, async () => {
    const clock = new ManualClock(5);
    const of = (limit) => new Limiter(limit, { store: store(), clock });
    const limiter = of('5/minute');
    const never = await limiter.acquire('k', 6);
    assert.deepEqual([never.allowed, never.never, never.retryAfterMs, never.remaining], [false, true, undefined, 5]);
    assert.equal((await limiter.acquire('k', 5)).remaining, 0);
    assert.equal((await limiter.acquire('k', 0)).allowed, true);
    assert.equal((await limiter.peek('k', 0)).remaining, 0);

    const denied = await of(Limit.deny()).acquire('k');
    assert.deepEqual([denied.allowed, denied.never, denied.limit, denied.remaining], [false, true, 0, 0]);
    assert.equal((await of(Limit.unlimited()).acquire('k', 2 ** 53)).allowed, true);
  });
}

test('the Sync forms decide on memory: as the promise forms do', async () => {
  const clock = new ManualClock();
  const limiter = new Limiter('5/minute', { clock });
  assert.equal(limiter.allowSync('k'), true);
  assert.equal(limiter.acquireSync('k', 2).remaining, 2);
  assert.equal(limiter.peekSync('k', 2).allowed, true);
  assert.deepEqual(limiter.peekSync('k'), await limiter.peek('k'));
  assert.equal(limiter.resetSync('k'), undefined);
  assert.equal(limiter.peekSync('k').remaining, 5);
});

test('on memory: the promise forms decide at once, in the order of the calls', async () => {
  const limiter = new Limiter('5/minute', { clock: new ManualClock() });
  const promises = [limiter.acquire('k'), limiter.allow('k'), limiter.acquire('k', 9)];
  assert.equal(limiter.peekSync('k').remaining, 3);
  const [first, second, third] = await Promise.all(promises);
  assert.deepEqual([first.remaining, second, third.never], [4, true, true]);
});

test('a decision is a value of its own', () => {
  const limiter = new Limiter('5/minute', { clock: new ManualClock() });
  const first = limiter.acquireSync('k');
  const second = limiter.acquireSync('k');
  assert.deepEqual([first.remaining, second.remaining], [4, 3]);
  assert.deepEqual([first.standings[0].remaining, second.standings[0].remaining], [4, 3]);
});

test('a policy is decided as one', async () => {
  const limiter = new Limiter(['5/minute', Limit.fixedWindow(3, 3_600_000, { name: 'hour' })], { clock: new ManualClock() });
  limiter.acquireSync('k', 2);
  const refused = limiter.acquireSync('k', 2);
  assert.equal(refused.limitName, 'hour');
  assert.deepEqual(refused.standings.map((standing) => [standing.name, standing.remaining]), [['5/minute', 3], ['hour', 1]]);
  const same = new Limiter('5/minute; hour=fixed_window: 3/hour', { clock: new ManualClock() });
  assert.deepEqual(same.acquireSync('k', 2).standings.map((standing) => standing.remaining), [3, 1]);
});

test('the Sync forms are refused where a store may block', () => {
  const limiter = new Limiter('5/minute', { store: redis() });
  for (const call of ['acquireSync', 'allowSync', 'peekSync', 'resetSync']) {
    assert.throws(() => limiter[call]('k'), failure('MIRAB_UNSUPPORTED', call, 'memory:'));
  }
});

test('costs are integers from 0 to 2^53', async () => {
  const limiter = new Limiter(Limit.unlimited());
  for (const cost of [0, -0, 1, 5n, 2 ** 53, 2n ** 53n]) assert.equal(await limiter.allow('k', cost), true);
  for (const [cost, shown] of [
    [1.5, '1.5'],
    [NaN, 'NaN'],
    [-1, '-1'],
    [-1n, '-1n'],
    [Infinity, 'Infinity'],
    ['1', "'1'"],
    [true, 'true'],
    [null, 'null'],
    [{}, '{}'],
    [2 ** 53 + 2, '9007199254740994'],
    [2n ** 53n + 1n, '9007199254740993n'],
  ]) {
    const check = failure('MIRAB_INVALID_ARGUMENT', `cost ${shown}`);
    for (const call of ['acquireSync', 'allowSync', 'peekSync']) assert.throws(() => limiter[call]('k', cost), check);
    for (const call of ['acquire', 'allow', 'peek']) await assert.rejects(limiter[call]('k', cost), check);
  }
});

test('options are checked', () => {
  for (const [options, code, ...texts] of [
    [{ stor: 'memory:' }, 'MIRAB_INVALID_ARGUMENT', 'did you mean "store"'],
    [{ colour: 1 }, 'MIRAB_INVALID_ARGUMENT', '"colour"', 'store, clock, onStoreFailure, instances'],
    ['memory:', 'MIRAB_INVALID_ARGUMENT', "'memory:'", 'object'],
    [{ store: 7 }, 'MIRAB_INVALID_URI', 'store 7'],
    [{ store: 'mongodb://h' }, 'MIRAB_INVALID_URI', 'mongodb'],
    [{ store: 'redis://h?colour=red' }, 'MIRAB_INVALID_URI', 'colour'],
    [{ instances: 0 }, 'MIRAB_INVALID_ARGUMENT', '0 instances'],
    [{ instances: 1.5 }, 'MIRAB_INVALID_ARGUMENT', 'instances 1.5'],
    [{ onStoreFailure: 'rise' }, 'MIRAB_INVALID_ARGUMENT', 'rise'],
    [{ clock: 5 }, 'MIRAB_INVALID_ARGUMENT', 'clock 5', 'ManualClock'],
    [{ clock: {} }, 'MIRAB_INVALID_ARGUMENT', 'clock {}'],
  ]) {
    assert.throws(() => new Limiter('5/minute', options), failure(code, ...texts));
  }
  new Limiter('5/minute', { store: undefined, clock: undefined, onStoreFailure: undefined, instances: undefined }).close();
});

test('after close everything is MIRAB_CLOSED, and closing twice is fine', async () => {
  for (const store of [stores.memory(), stores.shm(), stores.redis()]) {
    const limiter = new Limiter('5/minute', { store });
    await limiter.acquire('k');
    const other = new Limiter('5/minute', { store });
    limiter.close();
    limiter.close();
    new Limiter('9/minute'); // may get the number of the closed one
    for (const call of ['acquire', 'allow', 'peek', 'reset']) {
      await assert.rejects(limiter[call]('k'), failure('MIRAB_CLOSED', 'closed'));
    }
    assert.equal(await other.allow('k'), true);
  }
});

test('limiters and clocks that nobody holds are freed', async () => {
  const { stdout, status } = await require('./helpers.js').node(['--expose-gc', '-e', `
    const { Limiter, ManualClock } = require('.');
    const native = require('./lib/native.js');
    (async () => {
      for (let round = 0; round < 50; round++) {
        for (let i = 0; i < 200; i++) new Limiter('5/minute', { clock: new ManualClock() }).allowSync('k');
        gc();
        await new Promise((resolve) => setTimeout(resolve));
      }
      console.log(native.clockNew(0) < 2000 && native.limiterNew(['5/minute'], [''], ['memory:', 'raise'], 1) < 2000);
    })();
  `]);
  assert.equal(stdout, 'true\n');
  assert.equal(status, 0);
});

test('in memory no promise waits for a thread, nor for the event loop', async () => {
  const limiter = new Limiter('9/minute; concurrency: 9 for 60s');
  const [settled, given] = [limiter.acquireSync('k'), limiter.acquireSync('k')];
  for (const call of [
    () => limiter.acquire('k'),
    () => limiter.allow('k'),
    () => limiter.peek('k'),
    () => limiter.acquireMany(['k', 'l']),
    () => limiter.wait('k'),
    () => limiter.commit(settled, 0),
    () => limiter.release(settled),
    () => limiter.refund(given),
    () => limiter.block('k', 5),
    () => limiter.unblock('k'),
    () => limiter.reset('k'),
  ]) {
    let done = false;
    call().then(() => { done = true; });
    for (let turn = 0; turn < 5; turn++) await undefined; // each lets other promises go on, and nothing else
    assert.ok(done, String(call));
  }
});
