'use strict';

// Shared memory: one bucket for the processes of a host, what is wrong with a file, and what is warned of.

const assert = require('node:assert/strict');
const { fork, spawn } = require('node:child_process');
const { once } = require('node:events');
const { chownSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const test = require('node:test');
const { Worker } = require('node:worker_threads');

const { Limiter } = require('..');
const { failure, fileOf, node, shm, warningsOf } = require('./helpers.js');

const HAMMER = join(__dirname, 'hammer.js');
const nameOf = (uri) => uri.split('?')[0];
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

test('the Sync forms work, and every promise is kept before the loop turns', async () => {
  const limiter = new Limiter('9/hour; concurrency: 9 for 30s', { store: shm() });
  assert.equal(limiter.acquireSync('k', 2).used, 2);
  assert.equal(limiter.allowSync('k'), true);
  assert.equal(limiter.peekSync('k').used, 3);
  assert.equal(limiter.acquireManySync(['a', ['k', 9]])[1].allowed, false);
  let turns = 0;
  setImmediate(() => turns++);
  const decision = await limiter.acquire('k', 2);
  assert.equal(decision.used, 5);
  assert.equal(await limiter.allow('k'), true);
  assert.equal((await limiter.peek('k')).used, 6);
  assert.equal((await limiter.wait('k')).used, 7);
  assert.equal((await limiter.acquireMany(['a', 'b'])).length, 2);
  assert.equal(await limiter.release(decision), 1);
  await limiter.commit(decision, 1);
  assert.equal(await limiter.refund(await limiter.acquire('b')), 1);
  await limiter.block('b', 1000);
  await limiter.unblock('b');
  await limiter.reset('k');
  assert.equal(turns, 0);
});

test('it says what it is, and counts its keys', async () => {
  const store = shm('max_keys=64');
  const limiter = new Limiter('5/hour', { store });
  const { store: shown, ok, circuit, layout, serverVersion, lastError } = await limiter.health();
  assert.deepEqual({ shown, ok, circuit, layout }, { shown: nameOf(store), ok: true, circuit: 'closed', layout: 1 });
  assert.deepEqual([serverVersion, lastError], [undefined, undefined]);
  for (let number = 0; number < 1000; number++) assert.ok(limiter.allowSync(`${number}`));
  const { keys, evicted } = limiter.stats();
  assert.ok(keys >= 64 && keys <= 500, `${keys}`);
  assert.equal(keys + evicted, 1000);
  assert.equal(statSync(fileOf(store)).mode & 0o777, 0o600);
});

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

for (const limits of ['1/hour burst 400', 'sliding_log: 400/hour', 'fixed_window: 400/hour from first']) {
  test(`processes, workers of a cluster and threads pass exactly what is there: ${limits}`, async () => {
    const store = shm();
    const limiter = new Limiter(limits, { store });
    const one = () => {
      const child = fork(HAMMER, ['process', limits, store, '50']);
      return once(child, 'message').then(([passed]) => passed);
    };
    const thread = () => once(new Worker(HAMMER, { workerData: [limits, store, 60] }), 'message').then(([passed]) => passed);
    const clustered = async () => {
      const { status, stdout, stderr } = await node([HAMMER, 'cluster', limits, store, '50', '2'], { killAfterMs: 60_000 });
      assert.deepEqual([status, stderr], [0, '']);
      return JSON.parse(stdout);
    };
    const all = await Promise.all([one(), one(), thread(), thread(), clustered()]);
    assert.deepEqual(all.flat(), [50, 50, 60, 60, 50, 50]);
    assert.equal(limiter.peekSync('k').used, 320);
    const rest = await Promise.all([one(), one(), thread(), clustered()]);
    assert.equal(sum(rest.flat()), 80);
    assert.equal(limiter.peekSync('k').used, 400);
  });
}

test('a wrong file is named, with its owner', () => {
  const user = process.getuid() === 0 ? 'root' : `${process.getuid()}`;
  const cases = [
    [(path) => writeFileSync(path, ''), 'MIRAB_STORE_CORRUPT', 'only 0 bytes'],
    [(path) => writeFileSync(path, 'A letter to somebody else. '.repeat(4096)), 'MIRAB_STORE_CORRUPT', ''],
    [(path) => mkdirSync(path), 'MIRAB_STORE_CORRUPT', 'folder'],
    [(path) => symlinkSync(`${path}-aim`, path), 'MIRAB_STORE_DENIED', 'symbolic link'],
  ];
  for (const [make, code, part] of cases) {
    const store = shm();
    make(fileOf(store));
    assert.throws(() => new Limiter('5/minute', { store }), failure(code, fileOf(store), ' of user ', user, part));
  }
  let [path, owner] = ['/etc/passwd', 'of user root'];
  if (process.getuid() === 0) {
    [path, owner] = [fileOf(shm()), 'of user 4711'];
    writeFileSync(path, '');
    chownSync(path, 4711, 4711);
  }
  assert.throws(() => new Limiter('5/minute', { store: `shm://${path}` }), failure('MIRAB_STORE_DENIED', path, owner));
  assert.throws(() => new Limiter('5/minute', { store: 'shm:///nowhere/at/all' }), failure('MIRAB_STORE_UNAVAILABLE', '/nowhere'));
});

test('a wrong URI, and a list that is too long, are errors when the limiter is made', () => {
  for (const [store, part] of [['shm:', '1 to 64'], ['shm:a/b', 'a/b'], ['shm:x?max_keys=0', 'max_keys'], ['shm:x?mode=666', '666'], ['shm:x?prefix=y', 'prefix']]) {
    assert.throws(() => new Limiter('5/minute', { store }), failure('MIRAB_INVALID_URI', part));
  }
  const store = shm('max_keys=64&log_entries=100');
  new Limiter('sliding_log: 128/hour', { store }).close();
  for (const limits of ['sliding_log: 129/hour', 'concurrency: 65 for 30s']) {
    assert.throws(() => new Limiter(limits, { store }), failure('MIRAB_UNSUPPORTED', 'log_entries=256'));
  }
});

// A process that is stopped while it decides

const MANY = 'fixed_window: 4000000000/365 days from first';

/** Asks until the process held the key's part when it was stopped; what `ask` said then. */
async function besideOneThatIsStopped(options, ask) {
  const store = shm('max_keys=64&timeout_ms=50');
  const limiter = new Limiter(MANY, { store, ...options });
  const child = spawn(process.execPath, [HAMMER, 'for-ever', MANY, store], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    await once(child.stdout, 'data');
    for (let tries = 0; tries < 20_000; tries++) {
      await pause(Math.random());
      child.kill('SIGSTOP');
      await isStopped(child.pid);
      const begun = performance.now();
      const answer = ask(limiter);
      const took = performance.now() - begun;
      child.kill('SIGCONT');
      if (answer === undefined) continue;
      assert.ok(took >= 50 && took < 500, `${took} ms`);
      return { answer, limiter };
    }
    throw new Error('it never held anything when it was stopped');
  } finally {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended; // it may still hold the part
  }
}

/** It stops a little later than it is told to, each of its threads. */
async function isStopped(pid) {
  while (!/^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))) await pause(0);
}

test('who waits for a stopped process is told', async () => {
  const ask = (limiter) => {
    try {
      limiter.acquireSync('k');
      return undefined;
    } catch (error) {
      return error;
    }
  };
  let answer, limiter;
  const told = await warningsOf(async () => ({ answer, limiter } = await besideOneThatIsStopped({ onStoreFailure: 'raise' }, ask)));
  assert.equal(told.length, 1);
  assert.match(told[0], /does not decide about some keys/);
  assert.ok(failure('MIRAB_STORE_TIMEOUT', 'stopped')(answer));
  assert.equal(limiter.stats().errors, 1);
  const [again, ...more] = await warningsOf(async () => { for (let asked = 0; asked < 20; asked++) limiter.allowSync('k'); });
  assert.match(again, /decides again/);
  assert.deepEqual(more, []);
});

for (const [options, expected] of [
  [{ instances: 4 }, { allowed: true, limit: 1e9, used: 1 }],
  [{ onStoreFailure: 'open' }, { allowed: true, limit: 4e9, used: 0 }],
  [{ onStoreFailure: 'closed' }, { allowed: false, limit: 4e9 }],
]) {
  test(`beside a stopped process it is decided as was chosen: ${JSON.stringify(options)}`, async () => {
    const ask = (limiter) => {
      const decision = limiter.acquireSync('k');
      return decision.degraded ? decision : undefined;
    };
    let answer, limiter;
    const told = await warningsOf(async () => ({ answer, limiter } = await besideOneThatIsStopped(options, ask)));
    assert.match(told.join(), /does not decide about some keys/);
    for (const [name, value] of Object.entries(expected)) assert.equal(answer[name], value, name);
    assert.equal(limiter.stats().degraded, 1);
  });
}

// Warnings

test('another size than the file\'s is warned of when the limiter is made', async () => {
  const store = shm('max_keys=64');
  const other = store.replace('max_keys=64', 'max_keys=65');
  assert.deepEqual(await warningsOf(async () => new Limiter('5/hour', { store })), []);
  const [warning, ...more] = await warningsOf(async () => new Limiter('5/hour', { store: other }));
  assert.match(warning, /^the store shm:node-.*: made with max_keys=64, not 65/);
  assert.deepEqual(more, []);
});

for (const [name, ask] of [
  ['allowSync', (limiter) => limiter.allowSync('other')],
  ['acquire', (limiter) => limiter.acquire('other')],
]) {
  test(`that the file was removed is warned of, by ${name}`, async () => {
    const store = shm();
    const limiter = new Limiter('5/hour', { store });
    limiter.acquireSync('k', 3);
    rmSync(fileOf(store));
    const told = [];
    for (let tries = 0; told.length === 0 && tries < 3000; tries++) {
      told.push(...(await warningsOf(async () => ask(limiter))));
      await pause(10);
    }
    assert.equal(told.length, 1);
    assert.ok(told[0].includes(`${fileOf(store)}" was removed`), told[0]);
    assert.equal(limiter.peekSync('k').used, 0);
    assert.ok(existsSync(fileOf(store)));
  });
}
