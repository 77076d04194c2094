'use strict';

// What each algorithm answers, and what is given back, in the shape that JavaScript sees.

const assert = require('node:assert/strict');
const test = require('node:test');

const { Limit, Limiter, ManualClock } = require('..');
const { failure, stores } = require('./helpers.js');

for (const [name, store] of Object.entries(stores)) {
  test(`a leaky bucket tells each request how long to wait on ${name}`, async () => {
    const clock = new ManualClock(1_000_000);
    const limiter = new Limiter(Limit.leakyBucket(3, 1000, { queue: 3 }), { store: store(), clock });
    const seen = [];
    for (let index = 0; index < 5; index++) seen.push(await limiter.acquire('k'));
    assert.deepEqual(seen.map((decision) => decision.delayMs), [0, 333.334, 666.667, 1000, 0]);
    assert.deepEqual(seen.map((decision) => decision.remaining), [3, 2, 1, 0, 0]);
    assert.deepEqual([seen[4].allowed, seen[4].retryAfterMs, seen[4].limit], [false, 333.334, 4]);
    clock.advanceMs(seen[4].retryAfterMs);
    assert.equal((await limiter.peek('k')).delayMs, 1000);
    assert.equal((await limiter.acquire('k')).delayMs, 1000);
  });

  test(`a sliding window counts the one before by its overlap on ${name}`, async () => {
    const clock = new ManualClock(0);
    const limiter = new Limiter(Limit.slidingWindow(10, 1000), { store: store(), clock });
    await limiter.acquire('k', 10);
    clock.advanceMs(1250);
    assert.equal((await limiter.peek('k')).remaining, 2);
    assert.equal((await limiter.acquire('k', 2)).allowed, true);
    const refused = await limiter.acquire('k');
    assert.deepEqual([refused.allowed, refused.standings[0].nextAfterMs], [false, refused.retryAfterMs]);
    clock.advanceMs(refused.retryAfterMs);
    assert.equal(await limiter.allow('k'), true);
  });

  test(`a sliding log never admits more in any period on ${name}`, async () => {
    const clock = new ManualClock(5_000_000);
    for (const [limit, wait] of [[Limit.slidingLog(2, 1000), 400], [Limit.slidingLog(2, 1000, { buckets: 2 }), 900]]) {
      const limiter = new Limiter(limit, { store: store(), clock });
      clock.setUs(5_000_000);
      await limiter.acquire('k');
      clock.advanceMs(600);
      await limiter.acquire('k');
      const refused = await limiter.acquire('k');
      assert.deepEqual([refused.allowed, refused.used, refused.retryAfterMs], [false, 2, wait]);
      clock.advanceMs(wait);
      clock.setUs(clock.nowUs - 1);
      assert.equal(await limiter.allow('k'), false);
      clock.advanceUs(1);
      assert.equal(await limiter.allow('k'), true);
    }
  });

  test(`a lease ends once, by release on ${name}`, async () => {
    const clock = new ManualClock(1_000_000);
    const limiter = new Limiter(Limit.concurrency(2, 30_000), { store: store(), clock });
    const [first, second, refused] = [await limiter.acquire('k'), await limiter.acquire('k'), await limiter.acquire('k')];
    assert.deepEqual([first, second, refused].map(({ allowed, remaining }) => [allowed, remaining]), [[true, 1], [true, 0], [false, 0]]);
    assert.equal(refused.retryAfterMs, 30_000);
    assert.equal(await limiter.release(first), 1);
    assert.equal((await limiter.peek('k')).remaining, 1);
    assert.equal(await limiter.release(first), 0);
    assert.equal(await limiter.release(refused), 0);
    assert.equal(await limiter.release(await limiter.peek('k')), 0);
    assert.equal(await limiter.release(await limiter.acquire('k', 0)), 0);
    assert.equal((await limiter.peek('k')).remaining, 1);
    assert.equal(await limiter.release(second), 1);
    assert.equal((await limiter.peek('k')).used, 0);
  });

  test(`a lease that was not released expires on ${name}`, async () => {
    const clock = new ManualClock(1_000_000);
    const limiter = new Limiter('concurrency: 3 for 30s', { store: store(), clock });
    const decision = await limiter.acquire('k', 3);
    clock.setUs(1_000_000 + 29_999_999);
    assert.equal(await limiter.allow('k'), false);
    clock.advanceUs(1);
    assert.equal(await limiter.release(decision), 0);
    assert.equal((await limiter.acquire('k')).remaining, 2);
  });

  test(`only the limiter's own store and limit know a lease on ${name}`, async () => {
    const clock = new ManualClock(1_000_000);
    const uri = store();
    const limiter = new Limiter(Limit.concurrency(1, 30_000), { store: uri, clock });
    const decision = await limiter.acquire('k');
    const rate = new Limiter('5/minute', { store: store(), clock });
    for (const other of [
      rate,
      new Limiter('5/minute; 9/hour', { store: uri, clock }),
      new Limiter('concurrency: 1 for 31s', { store: uri, clock }),
      new Limiter('concurrency: 1 for 30s', { store: store(), clock }),
    ]) {
      assert.equal(await other.release(decision), 0);
    }
    assert.equal(await limiter.release(await rate.acquire('k')), 0);
    assert.equal(await limiter.allow('k'), false);
    assert.equal(await limiter.release(decision), 1);
  });

  test(`a policy takes from all or from none, and tells the strictest on ${name}`, async () => {
    const clock = new ManualClock(1_000_000);
    const limits = ['10/second', 'leaky_bucket: 4/second queue 9', 'w=sliding_window: 9/minute', Limit.slidingLog(8, 60_000), 'c=concurrency: 3 for 20s'];
    const limiter = new Limiter(limits, { store: store(), clock });
    const left = (decision) => decision.standings.map((standing) => standing.remaining);
    const first = await limiter.acquire('k', 2);
    assert.deepEqual(left(first), [8, 8, 7, 6, 1]);
    assert.deepEqual([first.limitName, first.limit, first.remaining, first.resetAfterMs], ['c', 3, 1, 20_000]);
    assert.deepEqual(first.standings.map((standing) => standing.nextAfterMs), [100, 250, 89_000, 60_000, 20_000]);
    const refused = await limiter.acquire('k', 2);
    assert.deepEqual([refused.allowed, refused.limitName, refused.retryAfterMs], [false, 'c', 20_000]);
    assert.deepEqual(left(refused), [8, 8, 7, 6, 1]);
    assert.equal(await limiter.release(first), 1);
    assert.deepEqual(left(await limiter.peek('k')), [8, 8, 7, 6, 3]);
    const second = await limiter.acquire('k');
    assert.equal(second.delayMs, 500);
    assert.equal((await limiter.acquire('k', 11)).never, true);
  });

  test(`the key of a lease is what it was, though its bytes have changed on ${name}`, async () => {
    const limiter = new Limiter('concurrency: 1 for 30s', { store: store(), clock: new ManualClock(1_000_000) });
    const bytes = Buffer.from([0xff, 1, 2]);
    const decision = limiter.acquire(bytes);
    bytes.fill(7);
    assert.equal((await decision).allowed, true);
    assert.equal(await limiter.release(await decision), 1);
    assert.equal(await limiter.allow(Uint8Array.of(0xff, 1, 2)), true);
  });

  test(`at most the limit is in flight of many at once on ${name}`, async () => {
    const limiter = new Limiter('concurrency: 7 for 30s', { store: store() });
    let flying = 0;
    let most = 0;
    let served = 0;
    const work = async () => {
      for (let round = 0; round < 20; round++) {
        const decision = await limiter.acquire('k');
        if (!decision.allowed) continue;
        most = Math.max(most, (flying += 1));
        await new Promise(setImmediate);
        served += 1;
        flying -= 1;
        assert.equal(await limiter.release(decision), 1);
      }
    };
    await Promise.all(Array.from({ length: 16 }, work));
    assert.ok(most <= 7 && served >= 20, `${most} at once, ${served} served`);
    assert.equal((await limiter.peek('k')).used, 0);
  });

  test(`a policy of sixteen limits tells sixteen standings on ${name}`, async () => {
    const limits = Array.from({ length: 16 }, (_, index) => `${index + 20}/hour`);
    const limiter = new Limiter(limits.join('; '), { store: store(), clock: new ManualClock(1_000_000) });
    const { standings, limitName } = await limiter.acquire('k', 5);
    assert.deepEqual(standings.map((standing) => [standing.name, standing.limit, standing.used, standing.remaining]), limits.map((text, index) => [text, index + 20, 5, index + 15]));
    assert.equal(limitName, '20/hour');
    const leased = new Limiter([...limits.slice(1), 'concurrency: 9 for 1s'], { store: store(), clock: new ManualClock(1_000_000) });
    assert.equal(await leased.release(await leased.acquire('k', 9)), 1);
    assert.throws(() => new Limiter([...limits, '99/hour']), failure('MIRAB_INVALID_LIMIT', '17 limits'));
  });
}

test('what was taken stays out of sight', () => {
  const limiter = new Limiter('concurrency: 2 for 30s', { clock: new ManualClock() });
  const [one, two] = [limiter.acquireSync('k'), limiter.acquireSync('k')];
  assert.deepEqual(Object.keys(one).filter((name) => /key|receipt|lease/i.test(name)), []);
  assert.equal(JSON.stringify(one).includes('"k"'), false);
  assert.deepEqual([limiter.releaseSync(one), limiter.releaseSync(one), limiter.releaseSync(two)], [1, 0, 1]);
});

test('only a decision can be released, by a limiter that is open', async () => {
  const limiter = new Limiter('concurrency: 2 for 30s');
  const decision = limiter.acquireSync('k');
  for (const [value, shown] of [['k', "'k'"], [undefined, 'undefined'], [null, 'null'], [true, 'true'], [{ ...decision }, 'decision']]) {
    assert.throws(() => limiter.releaseSync(value), failure('MIRAB_INVALID_ARGUMENT', shown, 'acquire'));
    await assert.rejects(limiter.release(value), failure('MIRAB_INVALID_ARGUMENT', shown));
  }
  const remote = new Limiter('concurrency: 2 for 30s', { store: stores.redis() });
  assert.throws(() => remote.releaseSync(decision), failure('MIRAB_UNSUPPORTED', 'releaseSync'));
  remote.close();
  await assert.rejects(remote.release(decision), failure('MIRAB_CLOSED'));
  limiter.close();
  assert.throws(() => limiter.releaseSync(decision), failure('MIRAB_CLOSED'));
});
