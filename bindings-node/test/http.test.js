'use strict';

// The middleware on bare node:http, without a framework.

const assert = require('node:assert/strict');
const test = require('node:test');

const { ManualClock } = require('..');
const { rateLimit } = require('../lib/express.js');
const { serve } = require('./helpers.js');

function listener(limiter) {
  return (request, response) =>
    limiter(request, response, (error) => {
      response.statusCode = error ? 503 : 200;
      response.end(error ? error.code : String(request.rateLimit.remaining));
    });
}

test('a bare server is limited by the address of the socket', () =>
  serve(listener(rateLimit({ limits: '2/hour', clock: new ManualClock() })), async (ask) => {
    assert.equal((await ask()).body, '1');
    assert.equal((await ask()).body, '0');
    const refused = await ask();
    assert.equal(refused.status, 429);
    assert.equal(refused.body, 'Too many requests, please try again later.');
    assert.equal(refused.headers.get('content-type'), 'text/plain; charset=utf-8');
    assert.equal(refused.headers.get('retry-after'), '1800');
    assert.equal(refused.headers.get('ratelimit'), '"2/hour"; r=0; t=1800');
  }));

test('an IPv6 client is its subnet', () =>
  serve(
    (request, response) => rateLimit()(request, response, () => response.end(request.rateLimit.key)),
    async (ask) => assert.equal((await ask()).body, '::/56'),
    '::1',
  ));

test('a body has its type', async () => {
  for (const [message, type, body] of [
    [{ sorry: true }, 'application/json; charset=utf-8', '{"sorry":true}'],
    [Buffer.from('bytes'), 'application/octet-stream', 'bytes'],
    ['Слишком много', 'text/plain; charset=utf-8', 'Слишком много'],
  ]) {
    await serve(listener(rateLimit({ limit: 0, message })), async (ask) => {
      const refused = await ask();
      assert.equal(refused.headers.get('content-type'), type);
      assert.equal(refused.body, body);
    });
  }
});

test('an error goes to the callback', () =>
  serve(listener(rateLimit({ store: 'redis://127.0.0.1:1', onStoreFailure: 'raise' })), async (ask) => {
    const { status, body } = await ask();
    assert.equal(status, 503);
    assert.match(body, /^MIRAB_STORE_/);
  }));

test('what the callback throws is its caller\'s, and is not called back', async () => {
  let calls = 0;
  const limiter = rateLimit();
  const thrown = new Error('mine');
  const call = limiter({ ip: '192.0.2.1' }, { setHeader() {} }, () => {
    calls += 1;
    throw thrown;
  });
  await assert.rejects(call, thrown);
  assert.equal(calls, 1);
});
