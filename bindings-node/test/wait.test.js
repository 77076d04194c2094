'use strict';

// Waiting until a request is admitted: on a manual clock without time, else on timers.

const assert = require('node:assert/strict');
const test = require('node:test');

const { Limiter, ManualClock } = require('..');
const { failure, node, redis, stores } = require('./helpers.js');

const START = 1_790_000_000_000_000;

for (const [name, store] of Object.entries(stores)) {
  test(`on a manual clock it is admitted at the promised instant, in no time, on ${name}`, async () => {
    const clock = new ManualClock(START);
    const limiter = new Limiter('1/hour burst 2', { store: store(), clock });
    await limiter.acquire('k', 2);
    const begun = performance.now();
    for (let round = 1; round <= 5; round++) {
      const decision = await limiter.wait('k');
      assert.deepEqual([decision.allowed, decision.remaining, clock.nowUs], [true, 0, START + round * 3_600_000_000]);
    }
    assert.ok(performance.now() - begun < 2000);
    const leaky = new Limiter('leaky_bucket: 2/second queue 1', { store: store(), clock });
    clock.setUs(START);
    for (const [at, delayMs] of [[0, 0], [500_000, 500], [1_000_000, 500]]) {
      const decision = await leaky.wait('k');
      assert.deepEqual([decision.allowed, clock.nowUs - START, decision.delayMs], [true, at, delayMs]);
    }
  });

  test(`a wait that does not help, or is beyond the timeout, ends at once on ${name}`, async () => {
    const clock = new ManualClock(START);
    const limiter = new Limiter('1/second burst 2', { store: store(), clock });
    await limiter.acquire('k', 2);
    const never = await limiter.wait('k', 3);
    assert.deepEqual([never.allowed, never.never], [false, true]);
    const refused = await limiter.wait('k', 1, { timeoutMs: 999.999 });
    assert.deepEqual([refused.allowed, refused.retryAfterMs, clock.nowUs], [false, 1000, START]);
    assert.equal((await limiter.wait('k', 1, { timeoutMs: 1000 })).allowed, true);
    assert.equal(clock.nowUs, START + 1_000_000);
    assert.equal((await limiter.wait('k', 0)).allowed, true);
    const deny = new Limiter('deny', { store: store() });
    assert.equal((await deny.wait('k')).never, true);
    const real = new Limiter('1/hour', { store: store() });
    await real.acquire('k');
    const begun = performance.now();
    assert.equal((await real.wait('k', 1, { timeoutMs: 5000 })).allowed, false);
    assert.ok(performance.now() - begun < 1000);
  });

  test(`in real time the event loop goes on, and nobody passes too early, on ${name}`, async () => {
    const limiter = new Limiter('20/second burst 1', { store: store() });
    let ticks = 0;
    const timer = setInterval(() => (ticks += 1), 10);
    const begun = performance.now();
    const passed = await Promise.all(
      Array.from({ length: 5 }, async () => {
        assert.equal((await limiter.wait('k')).allowed, true);
        return performance.now() - begun;
      }),
    );
    clearInterval(timer);
    passed.sort((a, b) => a - b).forEach((after, index) => assert.ok(after >= 50 * index - 1, `${index} after ${after} ms`));
    assert.ok(passed[4] < 3000, `${passed[4]} ms`);
    assert.ok(ticks >= 5, `${ticks} ticks`);
    const { allowed, refused } = limiter.stats();
    assert.equal(allowed, 5);
    assert.ok(refused < 100, `${refused} asked in vain`); // no busy loop
  });

  test(`a place that another gives back is taken on ${name}`, async () => {
    const limiter = new Limiter('concurrency: 1 for 30s', { store: store() });
    const first = await limiter.acquire('k');
    assert.equal((await limiter.wait('k', 1, { timeoutMs: 60 })).allowed, false);
    const waiting = limiter.wait('k', 1, { timeoutMs: 5000 });
    setTimeout(() => limiter.release(first), 30);
    const second = await waiting;
    assert.equal(second.allowed, true);
    assert.equal(await limiter.release(second), 1);
  });

  test(`a leaky request is held until its turn on ${name}`, async () => {
    const limiter = new Limiter('leaky_bucket: 10/second queue 5', { store: store() });
    await limiter.acquire('k');
    const begun = performance.now();
    const { allowed, delayMs } = await limiter.wait('k');
    assert.equal(allowed, true);
    assert.ok(performance.now() - begun >= delayMs - 1, `${performance.now() - begun} of ${delayMs} ms`);
    const soon = await limiter.wait('k', 1, { timeoutMs: 1 }); // admitted, and its turn is left to its caller
    assert.ok(soon.allowed && soon.delayMs > 1);
  });

  test(`close ends those who wait on ${name}`, async () => {
    for (const limits of ['1/hour', 'leaky_bucket: 1/minute queue 5']) {
      const limiter = new Limiter(limits, { store: store() });
      await limiter.acquire('k');
      const waiting = Array.from({ length: 5 }, () => limiter.wait('k'));
      const ended = Promise.all(waiting.map((each) => assert.rejects(each, failure('MIRAB_CLOSED', 'closed'))));
      await new Promise((resolve) => setTimeout(resolve, 50));
      const begun = performance.now();
      limiter.close();
      await ended;
      assert.ok(performance.now() - begun < 1000);
    }
    const asked = new Limiter('1/hour', { store: store() });
    await asked.acquire('k');
    const at = asked.wait('k'); // closed while its first question is on the way
    asked.close();
    await assert.rejects(at, failure('MIRAB_CLOSED'));
  });

  test(`a signal ends a wait on ${name}`, async () => {
    const limiter = new Limiter('1/hour burst 2', { store: store() });
    await limiter.acquire('k');
    const aborted = AbortSignal.abort(new Error('before'));
    await assert.rejects(limiter.wait('k', 1, { signal: aborted }), /before/);
    assert.equal((await limiter.peek('k')).remaining, 1); // nothing was asked
    const controller = new AbortController();
    assert.equal((await limiter.wait('k', 1, { signal: controller.signal })).allowed, true);
    const waiting = [1, 2].map(() => limiter.wait('k', 1, { signal: controller.signal }));
    setTimeout(() => controller.abort(new Error('mine')), 30);
    for (const each of waiting) await assert.rejects(each, /mine/);
    await assert.rejects(limiter.wait('k', 1, { signal: AbortSignal.timeout(20) }), { name: 'TimeoutError' });
    limiter.close();
  });

  test(`a function as a clock is read at each step on ${name}`, async (t) => {
    const realTimeout = setTimeout;
    t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: START / 1000 });
    const limiter = new Limiter('1/second burst 1', { store: store(), clock: () => Date.now() });
    await limiter.acquire('k');
    let decision;
    limiter.wait('k').then((given) => (decision = given));
    for (let tries = 0; tries < 200 && decision === undefined; tries++) {
      await new Promise((resolve) => realTimeout(resolve, 5));
      if (limiter.stats().refused > 0) t.mock.timers.tick(100);
    }
    assert.equal(decision.allowed, true);
    assert.ok(Date.now() >= START / 1000 + 1000);
    assert.equal(limiter.stats().refused, 1);
  });
}

test('a clock that fails ends a wait, and leaves nothing behind', async () => {
  const limiter = new Limiter('1/hour', { clock: () => 'noon' });
  for (let round = 0; round < 500; round++) {
    await assert.rejects(limiter.wait('k'), failure('MIRAB_INVALID_ARGUMENT', "'noon'"));
  }
  const native = require('../lib/native.js');
  const waiter = native.waiterNew(native.limiterNew(['5/minute'], [''], ['memory:', 'raise'], 1), 'k', 1);
  assert.ok(waiter < 100, `number ${waiter}`);
  native.waiterFree(waiter);
  assert.throws(() => native.waiterStep(waiter), failure('MIRAB_INTERNAL'));
});

test('what a wait is asked is checked', async () => {
  const limiter = new Limiter('5/minute');
  for (const [key, cost, options, ...texts] of [
    [5, 1, undefined, 'key 5'],
    ['', 1, undefined, 'empty'],
    ['k', 1.5, undefined, 'cost 1.5'],
    ['k', 1, 5, 'options of wait 5'],
    ['k', 1, { timeout: 5 }, 'did you mean "timeoutMs"'],
    ['k', 1, { timeoutMs: '5' }, "timeoutMs '5'"],
    ['k', 1, { timeoutMs: -1 }, 'timeoutMs of -1'],
    ['k', 1, { timeoutMs: NaN }, 'timeoutMs of NaN'],
    ['k', 1, { timeoutMs: Infinity }, 'timeoutMs of inf'],
    ['k', 1, { signal: {} }, 'signal {}', 'AbortSignal'],
    ['k', 1, { signal: null }, 'signal null'],
  ]) {
    await assert.rejects(limiter.wait(key, cost, options), failure('MIRAB_INVALID_ARGUMENT', ...texts));
  }
  assert.equal((await limiter.wait('k', undefined, { timeoutMs: undefined, signal: undefined })).remaining, 4);
});

test('a wait longer than a timer can be goes on after it', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: START / 1000 });
  const days = 86_400_000;
  const limiter = new Limiter('fixed_window: 1/60 days from first', { clock: () => Date.now() });
  limiter.allowSync('k');
  let decision;
  limiter.wait('k').then((given) => (decision = given));
  for (let day = 0; day < 70 && decision === undefined; day++) {
    t.mock.timers.tick(days);
    await new Promise(setImmediate);
  }
  assert.equal(decision.allowed, true);
  assert.ok(Date.now() - START / 1000 >= 60 * days);
  assert.equal(limiter.stats().refused, 1);
});

test('who waits keeps the process alive, and nothing does afterwards', async () => {
  const script = `
    const { Limiter } = require('.');
    const limiter = new Limiter('5/second burst 1', { store: process.argv[1] });
    limiter.acquire('k').then(() => limiter.wait('k')).then((decision) => console.log(decision.allowed));`;
  for (const store of [stores.memory(), stores.shm(), redis()]) {
    assert.deepEqual(await node(['-e', script, store]), { status: 0, signal: null, stdout: 'true\n', stderr: '' });
  }
  const leaves = `
    const { Limiter } = require('.');
    const limiter = new Limiter('1/hour', { store: process.argv[1] });
    limiter.acquire('k').then(() => limiter.wait('k')).catch((error) => console.log(error.code));
    setTimeout(() => limiter.close(), 100);`;
  for (const store of [stores.memory(), stores.shm(), redis()]) {
    assert.deepEqual(await node(['-e', leaves, store]), { status: 0, signal: null, stdout: 'MIRAB_CLOSED\n', stderr: '' });
  }
});
