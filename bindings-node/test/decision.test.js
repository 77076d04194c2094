'use strict';

// What a decision looks like to JavaScript, and that its numbers come over whole.

const assert = require('node:assert/strict');
const test = require('node:test');
const { inspect } = require('node:util');

const { Decision, Limit, Limiter, ManualClock } = require('..');
const { stores } = require('./helpers.js');

const START = 1_790_000_000_000_000;
const LARGEST = 2 ** 53;

for (const [name, store] of Object.entries(stores)) {
  const made = (limits) => {
    const clock = new ManualClock(START);
    return { clock, limiter: new Limiter(limits, { store: store(), clock }) };
  };

  test(`a decision is an object of its fields on ${name}`, async () => {
    const { limiter } = made('5/minute');
    const fields = {
      allowed: true,
      limit: 5,
      used: 2,
      remaining: 3,
      retryAfterMs: undefined,
      resetAfterMs: 24_000,
      delayMs: 0,
      never: false,
      degraded: false,
      limitName: '5/minute',
      standings: [{ name: '5/minute', limit: 5, used: 2, remaining: 3, resetAfterMs: 24_000, nextAfterMs: 12_000 }],
    };
    const decision = await limiter.acquire('k', 2);
    assert.ok(decision instanceof Decision);
    assert.deepEqual({ ...decision }, fields);
    assert.deepEqual(Object.keys(decision), Object.keys(fields));
    assert.deepEqual(Object.getOwnPropertyDescriptors(decision), Object.getOwnPropertyDescriptors(fields));
    assert.equal(JSON.stringify(decision), JSON.stringify(fields));
    assert.equal(inspect(decision, { depth: 9 }), `Decision ${inspect(fields, { depth: 9 })}`);
    assert.equal(await limiter.refund(decision), 2);
    assert.deepEqual(await limiter.acquire('k', 2), decision);
    const refused = await limiter.acquire('k', 4);
    assert.deepEqual({ ...refused }, { ...fields, allowed: false, retryAfterMs: 12_000 });
    const never = await limiter.peek('k', 6);
    assert.deepEqual({ ...never }, { ...fields, allowed: false, never: true });
    const fresh = await limiter.peek('other');
    assert.deepEqual(fresh.standings, [{ name: '5/minute', limit: 5, used: 0, remaining: 5, resetAfterMs: 0, nextAfterMs: undefined }]);
  });

  test(`a decision keeps what it said on ${name}`, async () => {
    const { limiter } = made('5/minute; b=concurrency: 9 for 60s');
    const first = await limiter.acquire('k');
    const before = JSON.stringify(first);
    for (const key of ['k', 'l']) await limiter.acquire(key, 3);
    await limiter.block('k', 5);
    await limiter.peek('k');
    assert.equal(JSON.stringify(first), before);
    assert.equal(await limiter.refund(first), 1);
  });

  test(`counts come over whole, small and large, on ${name}`, async () => {
    const { limiter } = made([Limit.unlimited(), '4000000000/day', '7/hour']);
    const { standings, ...rest } = await limiter.acquire('k', 3);
    assert.deepEqual(standings.map(({ limit, used, remaining }) => [limit, used, remaining]), [
      [LARGEST, 0, LARGEST], [4_000_000_000, 3, 3_999_999_997], [7, 3, 4],
    ]);
    assert.deepEqual([rest.limit, rest.used, rest.remaining], [7, 3, 4]);
    for (const limit of [2 ** 31 - 2, 2 ** 31 - 1, 2 ** 31, 2 ** 31 + 1, 2 ** 32 - 1]) {
      const { limiter: wide } = made(`fixed_window: ${limit}/hour`);
      const decision = await wide.acquire('k', limit - 1);
      assert.deepEqual([decision.limit, decision.used, decision.remaining], [limit, limit - 1, 1]);
      assert.deepEqual(decision.standings.map(({ used, remaining }) => [used, remaining]), [[limit - 1, 1]]);
      assert.equal((await wide.acquire('k', 2)).retryAfterMs, decision.resetAfterMs);
      assert.equal(await wide.refund(decision), limit - 1);
      assert.equal((await wide.peek('k')).remaining, limit);
    }
    const { limiter: all } = made(Limit.unlimited());
    const decision = await all.acquire('k', LARGEST);
    assert.deepEqual([decision.allowed, decision.limit, decision.remaining], [true, LARGEST, LARGEST]);
  });

  test(`a receipt comes back whole on ${name}`, async () => {
    // The last of a queue leaves only where its instant, to the fraction of a microsecond, is what it was.
    const queues = [7, 1_000_003, 2_147_483_659, 4_294_967_291].map((count) => `leaky_bucket: ${count}/day queue 99`);
    for (const text of [...queues, 'concurrency: 50 for 60s', '50/minute']) {
      const { limiter, clock } = made(text);
      for (let round = 1; round <= 12; round++) {
        await limiter.acquire('k');
        const last = await limiter.acquire('k', 3);
        await limiter.acquire('l', round); // which goes through the same memory
        assert.equal(await limiter.refund(last), 3, `${text} ${round}`);
        assert.equal(await limiter.refund(last), 0);
        clock.advanceUs(1);
      }
    }
  });
}

test('bytes are a key as they were when asked', () => {
  const limiter = new Limiter('5/minute', { clock: new ManualClock(START) });
  const key = Buffer.from('abc');
  const decision = limiter.acquireSync(key, 2);
  key.fill(0x78);
  assert.equal(limiter.peekSync('abc').used, 2);
  assert.equal(limiter.refundSync(decision), 2);
  assert.equal(limiter.peekSync('abc').used, 0);
});

test('a clock that asks a limiter itself disturbs no decision and no refund', () => {
  const other = new Limiter('4000000000/day; concurrency: 3 for 9s', { clock: new ManualClock(START) });
  const clock = () => {
    other.refundSync(other.acquireSync('x', 2));
    other.acquireManySync(['y', 'z']);
    return START / 1000;
  };
  const limiter = new Limiter('5/minute', { clock });
  const decision = limiter.acquireSync('k', 2);
  assert.deepEqual([decision.limit, decision.used, decision.standings.length], [5, 2, 1]);
  assert.equal(limiter.refundSync(decision), 2);
  assert.equal(limiter.peekSync('k').used, 0);
  const settled = limiter.acquireSync('k', 2);
  limiter.commitSync(settled, 1);
  assert.equal(limiter.peekSync('k').used, 1);
});
