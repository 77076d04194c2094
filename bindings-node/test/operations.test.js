'use strict';

// What is given back, settled, blocked and counted, in the shape that JavaScript sees.

const assert = require('node:assert/strict');
const { randomUUID } = require('node:crypto');
const net = require('node:net');
const test = require('node:test');

const { Decision, Limit, Limiter, ManualClock } = require('..');
const { failure, stores } = require('./helpers.js');

const ALL = [
  '10/second burst 10',
  'leaky_bucket: 10/second queue 9',
  'fixed_window: 10/minute',
  'fixed_window: 10/minute from first',
  'sliding_window: 10/minute',
  'sliding_log: 10/minute',
  'sliding_log: 10/minute buckets 6',
  'concurrency: 10 for 60s',
];

for (const [name, store] of Object.entries(stores)) {
  const made = (limits) => {
    const clock = new ManualClock(1_790_000_000_000_000);
    return { clock, limiter: new Limiter(limits, { store: store(), clock }) };
  };
  const used = async (limiter, key = 'k') => (await limiter.peek(key, 0)).used;

  test(`a refund works once, under every limit, on ${name}`, async () => {
    for (const text of ALL) {
      const { limiter } = made(text);
      const kept = await limiter.acquire('k', 2);
      const decision = await limiter.acquire('k', 5);
      assert.equal(await limiter.refund(decision), 5, text);
      assert.equal(await used(limiter), 2, text);
      assert.equal(await limiter.refund(decision), 0, text);
      assert.equal(await limiter.commit(decision, 9), undefined);
      assert.equal(await limiter.release(decision), 0);
      assert.equal(await used(limiter), 2, text);
      const back = text.startsWith('leaky') ? 0 : 2; // its turn was at once
      assert.equal(await limiter.refund(kept), back, text);
      assert.equal(await used(limiter), 2 - back, text);
      assert.equal(limiter.stats().refunded, 5 + back);
    }
  });

  test(`two refunds of a decision at once are one on ${name}`, async () => {
    const { limiter } = made('9/hour');
    const [decision] = [await limiter.acquire('k', 3), await limiter.acquire('k', 3)];
    const given = await Promise.all([1, 2, 3].map(() => limiter.refund(decision)));
    assert.deepEqual(given.sort(), [0, 0, 3]);
    assert.equal(await used(limiter), 3);
  });

  test(`nothing is given back for what took nothing, or has expired, on ${name}`, async () => {
    for (const text of ALL) {
      const { limiter, clock } = made(text);
      const decision = await limiter.acquire('k', 10);
      for (const empty of [await limiter.acquire('k'), await limiter.acquire('k', 11), await limiter.acquire('k', 0), await limiter.peek('k')]) {
        assert.equal(await limiter.refund(empty), 0, text);
        await limiter.commit(empty, 5);
      }
      assert.equal(await used(limiter), 10, text);
      clock.advanceMs(120_000);
      assert.equal(await limiter.refund(decision), 0, text);
      assert.equal(await used(limiter), 0, text);
    }
  });

  test(`a refund never fills above full, on ${name}`, async () => {
    const { limiter, clock } = made('10/second burst 10');
    const decision = await limiter.acquire('k', 5);
    clock.advanceMs(300);
    assert.equal(await limiter.refund(decision), 2);
    assert.equal((await limiter.peek('k')).remaining, 10);
    assert.equal((await limiter.acquire('k', 11)).never, true);
  });

  test(`only the last of a queue leaves, and before its turn, on ${name}`, async () => {
    const { limiter, clock } = made('leaky_bucket: 10/second queue 9');
    const [, second, third] = [await limiter.acquire('k'), await limiter.acquire('k'), await limiter.acquire('k')];
    assert.equal(await limiter.refund(second), 0);
    clock.advanceMs(199.999);
    assert.equal(await limiter.refund(third), 1);
    const fourth = await limiter.acquire('k');
    clock.advanceMs(fourth.delayMs);
    assert.equal(await limiter.refund(fourth), 0);
  });

  test(`a commit settles at what it was, once, on ${name}`, async () => {
    for (const text of ALL.filter((each) => !/leaky|concurrency/.test(each))) {
      const { limiter } = made(text);
      const less = await limiter.acquire('k', 6);
      assert.equal(await limiter.commit(less, 2), undefined);
      assert.equal(await used(limiter), 2, text);
      await limiter.commit(less, 0);
      assert.equal(await limiter.refund(less), 0);
      assert.equal(await used(limiter), 2, text);
      const more = await limiter.acquire('k', 1);
      await limiter.commit(more, 4n);
      assert.equal(await used(limiter), 6, text);
      await limiter.commit(await limiter.acquire('k', 3), 3);
      assert.equal(await used(limiter), 9, text);
      await limiter.commit(await limiter.acquire('k'), 500); // at most to empty
      const { remaining, retryAfterMs } = await limiter.peek('k');
      assert.deepEqual([remaining, retryAfterMs <= (text.includes('buckets') ? 70_000 : 60_000)], [0, true], text);
    }
  });

  test(`a lease goes on over a commit and ends by a refund, with the rest of its policy, on ${name}`, async () => {
    const { limiter } = made('r=9/hour; c=concurrency: 4 for 60s');
    const left = async () => (await limiter.peek('k', 0)).standings.map((standing) => standing.remaining);
    const settled = await limiter.acquire('k', 3);
    await limiter.commit(settled, 1);
    assert.deepEqual(await left(), [8, 1]);
    assert.equal(await limiter.release(settled), 1);
    assert.deepEqual(await left(), [8, 4]);
    const back = await limiter.acquire('k', 2);
    assert.equal(await limiter.refund(back), 2);
    assert.deepEqual(await left(), [8, 4]);
    const released = await limiter.acquire('k', 2);
    assert.equal(await limiter.release(released), 1);
    assert.equal(await limiter.refund(released), 2);
    assert.deepEqual(await left(), [8, 4]);
  });

  test(`twenty at once that reserve and settle pass no more than the limit on ${name}`, async () => {
    const { limiter } = made('fixed_window: 100/hour');
    const spent = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        let own = 0;
        for (let round = 0; round < 5; round++) {
          const decision = await limiter.acquire('k', 10);
          if (!decision.allowed) continue;
          await new Promise(setImmediate);
          if (index % 4 === 0) {
            await limiter.refund(decision);
          } else {
            const actual = (index + round) % 11;
            await limiter.commit(decision, actual);
            own += actual;
          }
        }
        return own;
      }),
    );
    const sum = spent.reduce((a, b) => a + b);
    assert.ok(sum <= 100, `${sum} of 100`);
    assert.equal(await used(limiter), sum);
  });

  test(`a block refuses whatever the limits say, until it ends, on ${name}`, async () => {
    const clock = new ManualClock(1_790_000_000_000_000);
    const uri = store().replace(/^memory:/, `memory:${randomUUID()}`);
    const limiter = new Limiter('5/minute; concurrency: 5 for 60s', { store: uri, clock });
    const other = new Limiter(Limit.unlimited(), { store: uri, clock });
    assert.equal(await limiter.block('k', 1500), undefined);
    for (const decision of [await limiter.acquire('k'), await limiter.acquire('k', 0), await limiter.peek('k'), await limiter.peek('k', 0), await other.acquire('k')]) {
      assert.ok(decision instanceof Decision);
      assert.deepEqual([decision.allowed, decision.never, decision.limitName, decision.remaining, decision.retryAfterMs], [false, false, 'block', 0, 1500]);
      assert.deepEqual(decision.standings.map((standing) => [standing.name, standing.remaining, standing.resetAfterMs]), [['block', 0, 1500]]);
      assert.equal(await limiter.refund(decision), 0);
      assert.equal(await limiter.release(decision), 0);
    }
    assert.equal(await limiter.allow('k'), false);
    assert.equal(await limiter.allow('other'), true);
    clock.advanceUs(1_499_999);
    assert.equal((await limiter.acquire('k')).retryAfterMs, 0.001);
    clock.advanceUs(1);
    assert.equal((await limiter.acquire('k')).remaining, 4);
  });

  test(`a later block replaces, unblock and reset lift it, on ${name}`, async () => {
    const { limiter } = made('5/minute');
    await limiter.acquire('k', 2);
    await limiter.block('k', 60_000);
    await limiter.block('k', 0.5);
    assert.equal((await limiter.peek('k')).retryAfterMs, 0.5);
    assert.equal(await limiter.unblock('k'), undefined);
    assert.equal((await limiter.peek('k')).remaining, 3);
    await limiter.unblock('k');
    await limiter.block(Buffer.from('k'), 60_000);
    await limiter.reset('k');
    assert.equal((await limiter.peek('k')).remaining, 5);
  });

  test(`several keys in one step, each for itself, on ${name}`, async () => {
    const { limiter } = made('5/minute');
    const bytes = Buffer.from('b');
    const asked = limiter.acquireMany(['a', ['a', 4], ['a'], bytes, ['c', 9n], [new Uint8Array([0xff]), 0], ['a', undefined]]);
    bytes.fill(7); // what was asked stays what it was
    const decisions = await asked;
    assert.deepEqual(decisions.map(({ allowed, remaining, never }) => [allowed, remaining, never]), [
      [true, 4, false], [true, 0, false], [false, 0, false], [true, 4, false], [false, 5, true], [true, 5, false], [false, 0, false],
    ]);
    assert.equal(decisions[0].limitName, '5/minute');
    assert.equal(await limiter.refund(decisions[1]), 4);
    assert.equal(await limiter.refund(decisions[3]), 1);
    assert.equal(await used(limiter, 'a'), 1);
    assert.equal(await used(limiter, 'b'), 0);
    assert.deepEqual(await limiter.acquireMany([]), []);
    const many = await limiter.acquireMany(Array.from({ length: 200 }, (_, index) => `k${index % 150}`));
    assert.deepEqual(many.map(({ remaining }) => remaining), [...Array(150).fill(4), ...Array(50).fill(3)]);
  });

  test(`one bad item, and nothing is done, on ${name}`, async () => {
    const { limiter } = made('5/minute');
    for (const [item, ...texts] of [
      [['k', -1], 'cost -1'],
      [['k', 1.5], 'cost 1.5'],
      [['k', null], 'cost null'],
      [42, 'key 42'],
      [undefined, 'key undefined'],
      [[], 'key undefined'],
      [['k', 1, 2], '[key, cost]'],
      ['', 'empty'],
      ['x'.repeat(65_537), '65'],
    ]) {
      await assert.rejects(limiter.acquireMany(['k', ['k', 2], item]), failure('MIRAB_INVALID_ARGUMENT', 'item 2', ...texts));
    }
    for (const items of ['k', undefined, { k: 1 }]) await assert.rejects(limiter.acquireMany(items), failure('MIRAB_INVALID_ARGUMENT', 'items', 'array'));
    assert.equal(await used(limiter), 0);
  });

  test(`every outcome is counted on ${name}`, async () => {
    const { limiter } = made('5/minute');
    const zero = { allowed: 0, refused: 0, never: 0, blocked: 0, errors: 0, degraded: 0, refunded: 0, keys: 0, evicted: 0 };
    const first = limiter.stats();
    assert.deepEqual(first, zero);
    const decision = await limiter.acquire('k', 4);
    await limiter.acquireMany(['k', 'k', 'l', ['l', 6]]);
    await limiter.allow('k');
    await limiter.allow('l', 7);
    await limiter.block('b', 1000);
    await limiter.allow('b');
    await limiter.acquire('b', 99);
    await limiter.peek('b');
    await limiter.commit(decision, 3);
    const { keys, ...counts } = limiter.stats();
    assert.deepEqual(counts, { allowed: 3, refused: 2, never: 2, blocked: 2, errors: 0, degraded: 0, refunded: 1, evicted: 0 });
    assert.equal(keys > 0, name !== 'redis');
    assert.deepEqual(first, zero);
    assert.throws(() => (first.allowed = 1), TypeError);
    limiter.close();
    assert.deepEqual({ ...limiter.stats(), keys: 0 }, { ...counts, keys: 0 });
  });

  test(`calendar windows turn at their zone's midnight on ${name}`, async () => {
    for (const [limit, before, at, length] of [
      ['fixed_window: 2/month in Africa/Cairo', '2026-01-15T00:00:00Z', '2026-01-31T22:00:00Z', 28 * 86_400_000],
      ['fixed_window: 2/month in America/New_York', '2026-03-02T00:00:00Z', '2026-04-01T04:00:00Z', 30 * 86_400_000],
      ['fixed_window: 2/day in America/New_York', '2026-03-08T04:59:59Z', '2026-03-08T05:00:00Z', 23 * 3_600_000],
      ['fixed_window: 2/week in Asia/Tokyo', '2026-03-07T00:00:00Z', '2026-03-08T15:00:00Z', 7 * 86_400_000],
    ]) {
      const clock = new ManualClock(Date.parse(before) * 1000);
      const limiter = new Limiter(limit, { store: store(), clock });
      const decision = await limiter.acquire('k', 2);
      assert.equal(decision.limitName, limit);
      assert.equal(decision.resetAfterMs, Date.parse(at) - Date.parse(before), limit);
      clock.setUs(Date.parse(at) * 1000 - 1);
      assert.equal((await limiter.acquire('k')).retryAfterMs, 0.001);
      clock.advanceUs(1);
      assert.equal(await limiter.refund(decision), 0);
      assert.equal((await limiter.acquire('k')).resetAfterMs, length, limit);
    }
  });

  test(`a clock that is a function is read once for each, on ${name}`, async () => {
    let reads = 0;
    let fails = false;
    const clock = () => {
      if (fails) throw new Error('no time');
      reads += 1;
      return 1_790_000_000_000;
    };
    const limiter = new Limiter('5/minute', { store: store(), clock });
    const decision = await limiter.acquire('k', 4);
    reads = 0;
    for (const call of [
      () => limiter.acquireMany(['k', 'l', 'm']),
      () => limiter.block('k', 1000),
      () => limiter.unblock('k'),
      () => limiter.release(decision),
    ]) {
      await call();
      assert.equal(reads, 1, String(call));
      reads = 0;
    }
    fails = true;
    await assert.rejects(limiter.refund(decision), /no time/);
    fails = false;
    assert.equal(await limiter.refund(decision), 4); // it was not settled in vain
    assert.equal(reads, 1);
  });

  test(`durations, decisions and costs are checked on ${name}`, async () => {
    const { limiter } = made('5/minute');
    const decision = await limiter.acquire('k');
    for (const [ms, shown] of [[0, '0'], [-1, '-1'], [NaN, 'NaN'], [Infinity, 'inf'], ['5', "'5'"], [undefined, 'undefined'], [2 ** 50, 'block'], [0.0001, '0.0001']]) {
      await assert.rejects(limiter.block('k', ms), failure('MIRAB_INVALID_ARGUMENT', 'block', shown));
    }
    await assert.rejects(limiter.block('', 5), failure('MIRAB_INVALID_ARGUMENT', 'empty'));
    await assert.rejects(limiter.block(5, 5), failure('MIRAB_INVALID_ARGUMENT', 'key 5'));
    await assert.rejects(limiter.unblock(null), failure('MIRAB_INVALID_ARGUMENT', 'key null'));
    for (const call of ['refund', 'commit', 'release']) {
      for (const value of ['k', undefined, null, { ...decision }]) {
        await assert.rejects(limiter[call](value, 1), failure('MIRAB_INVALID_ARGUMENT', 'decision', 'acquire'));
      }
    }
    for (const cost of [-1, 1.5, NaN, '1', undefined, true]) {
      await assert.rejects(limiter.commit(decision, cost), failure('MIRAB_INVALID_ARGUMENT', 'actualCost'));
    }
    assert.equal(await limiter.refund(decision), 1); // none of these settled it
  });

  test(`after close each of them is MIRAB_CLOSED on ${name}`, async () => {
    const { limiter } = made('concurrency: 5 for 60s');
    const decisions = [await limiter.acquire('k'), await limiter.peek('k')];
    limiter.close();
    const closed = failure('MIRAB_CLOSED', 'closed');
    for (const decision of decisions) {
      await assert.rejects(limiter.refund(decision), closed);
      await assert.rejects(limiter.commit(decision, 1), closed);
      await assert.rejects(limiter.release(decision), closed);
    }
    await assert.rejects(limiter.acquireMany(['k']), closed);
    await assert.rejects(limiter.block('k', 1), closed);
    await assert.rejects(limiter.unblock('k'), closed);
    await assert.rejects(limiter.wait('k'), closed);
  });
}

test('the Sync forms do the same on memory:, and are refused where a store may block', () => {
  const clock = new ManualClock();
  const limiter = new Limiter('9/minute', { clock });
  const [one, two, three] = limiter.acquireManySync(['k', ['k', 2], ['k', 3]]);
  assert.equal(limiter.refundSync(one), 1);
  assert.equal(limiter.commitSync(two, 4), undefined);
  assert.equal(limiter.commitSync(two, 9), undefined);
  assert.equal(limiter.commitSync(three, 1), undefined);
  assert.equal(limiter.refundSync(three), 0);
  assert.equal(limiter.peekSync('k').used, 5);
  assert.equal(limiter.blockSync('k', 5), undefined);
  assert.equal(limiter.allowSync('k', 0), false);
  assert.equal(limiter.unblockSync('k'), undefined);
  assert.equal(limiter.allowSync('k'), true);
  const remote = new Limiter('9/minute', { store: stores.redis() });
  for (const [call, ...args] of [['acquireManySync', ['k']], ['refundSync', one], ['commitSync', one, 1], ['blockSync', 'k', 1], ['unblockSync', 'k']]) {
    assert.throws(() => remote[call](...args), failure('MIRAB_UNSUPPORTED', call, 'memory:'));
  }
});

test('memory keeps at most max_keys, and says what happened', () => {
  const open = (limit, parameters) => new Limiter(limit, { store: `memory:${randomUUID()}?${parameters}`, clock: new ManualClock(1_000_000) });
  const keys = Array.from({ length: 50_000 }, (_, index) => `k${index}`);
  const evicts = open('5/hour', 'max_keys=1000');
  for (const key of keys) assert.equal(evicts.allowSync(key), true);
  const { keys: kept, evicted } = evicts.stats();
  assert.ok(kept <= 1000 && kept + evicted === keys.length, `${kept} kept, ${evicted} evicted`);

  const refuses = open('5/hour', 'max_keys=1000&when_full=refuse');
  let full = 0;
  for (const key of keys) {
    try {
      refuses.allowSync(key);
    } catch (error) {
      assert.equal(error.code, 'MIRAB_STORE_FULL');
      full += 1;
    }
  }
  assert.ok(full >= 49_000, `${full} refused`);
  assert.equal(refuses.stats().errors, full);
  assert.equal(refuses.stats().allowed, keys.length - full);
  assert.throws(() => open('5/hour', 'max_keys=0'), failure('MIRAB_INVALID_URI', 'max_keys'));
  assert.throws(() => open('5/hour', 'when_full=cry'), failure('MIRAB_INVALID_URI', 'when_full'));
});

test('what another limiter took is an error, and stays the owner\'s', async () => {
  const owner = new Limiter('5/minute');
  const decision = await owner.acquire('k', 2);
  for (const other of [new Limiter('5/minute'), new Limiter('6/minute')]) {
    await assert.rejects(other.refund(decision), { code: 'MIRAB_INVALID_ARGUMENT' });
  }
  assert.equal(await owner.refund(decision), 2);
});

test('a store that is not there is an error for each, and settles nothing', async () => {
  const { port } = new URL(process.env.MIRAB_TEST_REDIS);
  const sockets = [];
  const relay = net.createServer((client) => {
    const server = net.connect(port, '127.0.0.1');
    sockets.push(client, server);
    client.pipe(server).pipe(client);
    for (const socket of [client, server]) socket.on('error', () => {});
  });
  await new Promise((resolve) => relay.listen(0, '127.0.0.1', resolve));
  const store = `redis://127.0.0.1:${relay.address().port}?timeout_ms=5000&prefix=n${randomUUID()}`;
  const limiter = new Limiter('5/minute', { store, onStoreFailure: 'raise' });
  const decision = await limiter.acquire('k');
  relay.close();
  for (const socket of sockets) socket.destroy();
  const down = (error) => /^MIRAB_STORE_(UNAVAILABLE|TIMEOUT)$/.test(error.code);
  await assert.rejects(limiter.acquireMany(['k']), down);
  await assert.rejects(limiter.block('k', 5), down);
  await assert.rejects(limiter.unblock('k'), down);
  await assert.rejects(limiter.wait('k'), down);
  await assert.rejects(limiter.refund(decision), down);
  await assert.rejects(limiter.refund(decision), (error) => down(error) && error.mayHaveHappened === false); // nothing was sent
  assert.equal(limiter.stats().errors > 0, true);
});
