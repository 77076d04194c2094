'use strict';

const assert = require('node:assert/strict');
const net = require('node:net');
const test = require('node:test');

const { Limiter, MirabError } = require('..');
const { redis } = require('./helpers.js');

test('exactly the capacity passes of many concurrent requests', async () => {
  const store = redis();
  const limiters = [1, 2, 3, 4].map(() => new Limiter('1/hour burst 10', { store }));
  const answers = await Promise.all(Array.from({ length: 100 }, (_, index) => limiters[index % 4].allow('k')));
  assert.equal(answers.filter(Boolean).length, 10);
});

test('a Redis that is not there is an error, soon', async () => {
  const limiter = new Limiter('5/minute', { store: 'redis://127.0.0.1:1', onStoreFailure: 'raise' });
  for (const call of ['acquire', 'allow', 'peek', 'reset']) {
    const start = performance.now();
    await assert.rejects(limiter[call]('k'), (error) => error instanceof MirabError && /^MIRAB_STORE_(UNAVAILABLE|TIMEOUT)$/.test(error.code));
    assert.ok(performance.now() - start < 2000);
  }
});

test('a server that never answers is an error, soon', async () => {
  const sockets = new Set();
  const server = net.createServer((socket) => sockets.add(socket));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const limiter = new Limiter('5/minute', { store: `redis://127.0.0.1:${server.address().port}`, onStoreFailure: 'raise' });
  const start = performance.now();
  await assert.rejects(limiter.acquire('k'), { code: 'MIRAB_STORE_TIMEOUT' });
  assert.ok(performance.now() - start < 2000);
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

test('a password never shows in an error', async () => {
  const limiter = new Limiter('5/minute', { store: 'redis://user:s3cret@127.0.0.1:1', onStoreFailure: 'raise' });
  await assert.rejects(limiter.acquire('k'), (error) => !JSON.stringify([error.message, error.stack]).includes('s3cret'));
});

test('the event loop goes on while Redis decides', async () => {
  const server = net.createServer(() => {});
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const limiter = new Limiter('5/minute', { store: `redis://127.0.0.1:${server.address().port}?timeout_ms=300`, onStoreFailure: 'raise' });
  let ticks = 0;
  const timer = setInterval(() => (ticks += 1), 10);
  await assert.rejects(limiter.acquire('k'));
  clearInterval(timer);
  assert.ok(ticks >= 5, `${ticks} ticks`);
  server.unref().close();
});
