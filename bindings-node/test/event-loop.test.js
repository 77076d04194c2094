'use strict';

// Decisions of a Redis in the event loop: no thread waits for them, and they go out together.

const assert = require('node:assert/strict');
const { pbkdf2 } = require('node:crypto');
const test = require('node:test');

const { Limiter, ManualClock, MirabError } = require('..');
const { node, redis, until, warningsOf } = require('./helpers.js');
const { withServer } = require('./server.js');

const DECISIONS = 200_000;
const KEYS = 1000;

for (const tasks of [64, 1000]) {
  test(`${tasks} promises at once are exact, and take few commands`, (t) =>
    withServer(async (server) => {
      const limiter = new Limiter('fixed_window: 5/30 days', { store: server.uri('timeout_ms=5000'), onStoreFailure: 'raise' });
      let next = 0;
      let allowed = 0;
      const begun = performance.now();
      const task = async () => {
        while (next < DECISIONS) {
          const decision = await limiter.acquire(`key ${next++ % KEYS}`);
          if (decision.allowed) allowed += 1;
        }
      };
      await Promise.all(Array.from({ length: tasks }, task));
      const ms = performance.now() - begun;
      const calls = await server.calls();
      t.diagnostic(`${DECISIONS} decisions in ${ms.toFixed(0)} ms and ${calls} commands`);
      assert.equal(allowed, 5 * KEYS);
      // Who is refused is remembered: only so many are asked for.
      assert.ok(calls * 10 <= 6 * KEYS, `${calls} commands`);
      limiter.close();
    }));
}

/** The longest time for which the event loop did not turn while `run` ran, in milliseconds. */
async function longestStill(run) {
  let last = performance.now();
  let longest = 0;
  const look = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
  };
  const timer = setInterval(look, 1);
  await run();
  look();
  clearInterval(timer);
  return longest;
}

test('a Redis that is stopped costs many at once one deadline, and the event loop nothing', (t) =>
  withServer(async (server) => {
    const deadline = 50;
    const limiter = new Limiter('1000/hour', { store: server.uri(`timeout_ms=${deadline}`), onStoreFailure: 'raise' });
    await until(() => limiter.allow('k').catch(() => false)); // connected
    server.stop();
    let answers, ms;
    const still = await longestStill(async () => {
      const begun = performance.now();
      answers = await Promise.allSettled(Array.from({ length: 200 }, (_, index) => limiter.acquire(`key ${index}`)));
      ms = performance.now() - begun;
    });
    t.diagnostic(`200 at once took ${ms.toFixed(1)} ms; the event loop stood still for ${still.toFixed(1)} ms at most`);
    for (const { reason } of answers) assert.match(reason.code, /^MIRAB_STORE_(TIMEOUT|UNAVAILABLE)$/);
    assert.ok(ms >= deadline - 5 && ms <= 10 * deadline, `${ms} ms`);
    assert.ok(still <= 10 * 20, `${still} ms`);
    server.goOn();
    limiter.close();
  }));

test('while the store fails the same limits are kept here, and it is said once', (t) =>
  withServer(async (server) => {
    const store = server.uri();
    const [limiter, shared] = ['5/hour', '6/hour'].map((limits) => new Limiter(limits, { store }));
    const warnings = await warningsOf(async () => {
      await until(async () => !(await limiter.acquire('warm', 0)).degraded);
      assert.deepEqual([(await limiter.health()).ok, (await limiter.health()).circuit], [true, 'closed']);
      const used = (await limiter.acquire('k', 2)).degraded ? 0 : 2; // the share goes on from what was seen
      server.stop();
      const answers = [];
      const still = await longestStill(async () => {
        await until(async () => {
          answers.push(await limiter.acquire('k'), await shared.acquire('k'));
          return answers.length >= 40;
        });
      });
      t.diagnostic(`the event loop stood still for ${still.toFixed(1)} ms at most`);
      assert.ok(answers.every((decision) => decision.degraded));
      assert.equal(answers.filter((decision) => decision.allowed).length, 5 - used + 6);
      assert.equal(limiter.stats().degraded, 20);
      const health = await limiter.health();
      assert.equal(health.ok, false);
      assert.ok(health.opened >= 1);
      assert.equal(health.lastError.kind, 'store_timeout');
      assert.ok((await limiter.wait('free')).degraded);
      assert.equal(await limiter.refund(answers[0]), 0);
      server.goOn();
      await until(async () => !(await limiter.acquire('k', 0)).degraded);
    });
    const [away, back, ...more] = warnings.filter((text) => /not asked any more|decides again/.test(text));
    assert.match(away, /127\.0\.0\.1.*not asked any more/);
    assert.match(back, /127\.0\.0\.1.*decides again/);
    assert.deepEqual(more, []);
    for (const one of [limiter, shared]) one.close();
  }));

test('decisions do not wait for the threads that others keep busy', async () => {
  const limiter = new Limiter('5/minute', { store: redis(), onStoreFailure: 'raise' });
  let done = 0;
  const busy = Array.from({ length: 16 }, () => new Promise((resolve) => pbkdf2('a', 'b', 300_000, 64, 'sha512', () => resolve((done += 1)))));
  const decision = await limiter.acquire('k');
  await limiter.peek('k');
  assert.equal(await limiter.allow('k'), true);
  assert.equal((await limiter.wait('k')).remaining, 2);
  assert.equal(decision.remaining, 4);
  assert.ok(done < 16, 'they were decided meanwhile');
  await Promise.all(busy);
});

test('a decision is asked where the last one was answered', async () => {
  const limiter = new Limiter('100/hour', { store: redis(), onStoreFailure: 'raise' });
  const turns = [(run) => Promise.resolve().then(run), process.nextTick, setImmediate, (run) => setTimeout(run, 0)];
  for (const soon of [...turns, ...turns]) {
    const decision = await new Promise((resolve, reject) => soon(() => limiter.acquire('k').then(resolve, reject)));
    assert.equal(decision.degraded, false);
  }
  assert.equal((await limiter.peek('k')).used, 8);
});

test('a wait on a manual clock takes no time', async () => {
  const clock = new ManualClock(1_000_000);
  const limiter = new Limiter('1/hour', { store: redis(), clock, onStoreFailure: 'raise' });
  await limiter.acquire('k');
  assert.equal((await limiter.wait('k')).allowed, true);
  assert.equal(clock.nowUs, 3_601_000_000);
});

test('a connection ends with the last limiter on it, and another limiter makes one anew', () =>
  withServer(async (server) => {
    const clients = async () => Number((await server.ask('INFO', 'clients')).match(/connected_clients:(\d+)/)[1]) - 1;
    for (let round = 0; round < 3; round++) {
      const limiters = [1, 2].map(() => new Limiter('1000/hour', { store: server.uri('timeout_ms=5000'), onStoreFailure: 'raise' }));
      for (const limiter of limiters) assert.equal(await limiter.allow('k'), true);
      assert.equal(await clients(), 1);
      limiters[0].close();
      assert.equal(await limiters[1].allow('k'), true);
      const last = limiters[1].allow('k'); // asked before it is closed, and answered
      limiters[1].close();
      assert.equal(await last, true);
      await until(async () => (await clients()) === 0);
    }
  }));

test('a process whose Redis is stopped ends by itself, once all are answered', () =>
  withServer(async (server) => {
    const script = `const { Limiter } = require('.');
      const limiter = new Limiter('5/minute', { store: process.argv[1] });
      limiter.allow('k').then(() => {
        process.kill(Number(process.argv[2]), 'SIGSTOP');
        Promise.all(Array.from({ length: 9 }, () => limiter.acquire('k'))).then((all) => console.log(all.every((one) => one.degraded)));
      });`;
    const pid = (await server.ask('INFO', 'server')).match(/process_id:(\d+)/)[1];
    const { status, signal, stdout } = await node(['-e', script, server.uri(), pid]);
    assert.deepEqual({ status, signal, stdout }, { status: 0, signal: null, stdout: 'true\n' });
  }));

test('workers end in the middle of decisions, also where nobody answers them', () =>
  withServer(async (server) => {
    const script = `const { Worker } = require('node:worker_threads');
      const code = "const { Limiter } = require('.'); const { parentPort, workerData } = require('node:worker_threads');" +
        "const limiter = new Limiter('5/minute', { store: workerData });" +
        "const ask = () => Promise.all([1, 2, 3].map((key) => limiter.acquire('k' + key))).then(() => setImmediate(ask));" +
        "limiter.allow('k').then(() => { ask(); parentPort.postMessage('asks'); });";
      const work = (soon) => new Promise((resolve, reject) => {
        const worker = new Worker(code, { eval: true, workerData: process.argv[1] });
        worker.on('message', () => soon(() => worker.terminate())).on('error', reject).on('exit', resolve);
      });
      (async () => {
        for (let round = 0; round < 10; round++) await Promise.all([setImmediate, (end) => setTimeout(end, 2)].map(work));
        await Promise.all([1, 2].map(() => work((end) => {
          process.kill(Number(process.argv[2]), 'SIGSTOP');
          setTimeout(end, 10);
        })));
        console.log('ended');
      })();`;
    const pid = (await server.ask('INFO', 'server')).match(/process_id:(\d+)/)[1];
    const { status, signal, stdout } = await node(['-e', script, server.uri(), pid]);
    assert.deepEqual({ status, signal, stdout }, { status: 0, signal: null, stdout: 'ended\n' });
  }));

test('a decision that was answered while the event loop was busy is not given up', () =>
  withServer(async (server) => {
    const limiter = new Limiter('9/hour', { store: server.uri('timeout_ms=50&connect_timeout_ms=5000'), onStoreFailure: 'raise' });
    await limiter.acquire('k');
    for (let round = 1; round <= 4; round += 1) {
      const asked = limiter.acquire('k');
      if (round % 2 === 0) await new Promise((resolve) => setImmediate(resolve));
      const end = performance.now() + 150;
      while (performance.now() < end);
      assert.equal((await asked).used, round + 1);
    }
  }));

test('of a burst that no deadline holds what was decided stays', (t) =>
  withServer(async (server) => {
    const limiter = new Limiter('1000000/hour', { store: server.uri('timeout_ms=50&connect_timeout_ms=5000') });
    await limiter.acquire('k');
    const decisions = await Promise.all(Array.from({ length: 20_000 }, () => limiter.acquire('k')));
    const there = decisions.filter((decision) => !decision.degraded).length;
    t.diagnostic(`${there} of 20000 at once were decided by the server`);
    assert.ok(there > 100, `${there}`);
    assert.ok(decisions.every((decision) => decision.allowed));
    const { used } = await limiter.peek('k');
    assert.ok(used > there && used <= there + 1 + 8 * 64, `${used} of ${there}`);
  }));

test('what the store surely did not do can be given back again', () =>
  withServer(async (server) => {
    const uri = server.uri('timeout_ms=100&connect_timeout_ms=5000');
    const limiter = new Limiter('9/hour', { store: uri, onStoreFailure: 'raise' });
    const [refunded, committed] = [await limiter.acquire('k', 2), await limiter.acquire('k', 2)];
    server.stop();
    const sure = (error) => error.kind.startsWith('store_') && error.mayHaveHappened === false;
    await until(() => limiter.peek('k').then(() => false, sure)); // it is known to be away
    await assert.rejects(limiter.refund(refunded), sure);
    await assert.rejects(limiter.commit(committed, 1), sure);
    server.goOn();
    await until(() => limiter.peek('k').then(() => true, () => false));
    assert.equal(await limiter.refund(refunded), 2);
    assert.equal(await limiter.refund(refunded), 0);
    await limiter.commit(committed, 1);
    assert.equal((await limiter.peek('k')).used, 1);
    assert.equal(new MirabError('store_timeout', 'late').mayHaveHappened, false);
    assert.equal('mayHaveHappened' in new MirabError('closed', 'closed'), false);
  }));

for (const [name, settle] of [
  ['refund', (limiter, decision) => limiter.refund(decision)],
  ['commit', (limiter, decision) => limiter.commit(decision, 1)],
]) {
  test(`a ${name} that may have been done is settled, and not asked again`, () =>
    withServer(async (server) => {
      const limiter = new Limiter('9/hour', { store: server.uri('timeout_ms=100&connect_timeout_ms=5000'), onStoreFailure: 'raise' });
      const [decision, before] = [await limiter.acquire('k', 2), await limiter.acquire('k', 2)];
      assert.equal(await limiter.refund(before), 2); // there is a connection on which it is sent
      server.stop();
      await assert.rejects(settle(limiter, decision), { code: 'MIRAB_STORE_TIMEOUT', mayHaveHappened: true });
      assert.equal(await limiter.refund(decision), 0);
      server.goOn();
    }));
}
