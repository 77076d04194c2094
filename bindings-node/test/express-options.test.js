'use strict';

// The options of the middleware, and what it hands to next.

const assert = require('node:assert/strict');
const { Readable } = require('node:stream');
const http = require('node:http');
const http2 = require('node:http2');
const test = require('node:test');

const { Limiter } = require('..');
const { rateLimit } = require('../lib/express.js');
const { failure, serve } = require('./helpers.js');

const frameworks = { 'express 5': require('express'), 'express 4': require('express-4') };

test('options are checked when the limiter is made', () => {
  for (const [options, code, ...texts] of [
    [{ window: 5 }, 'MIRAB_INVALID_ARGUMENT', '"window"'],
    [{ windowMS: 5 }, 'MIRAB_INVALID_ARGUMENT', 'did you mean "windowMs"'],
    [{ keyGenrator: () => 'k' }, 'MIRAB_INVALID_ARGUMENT', 'did you mean "keyGenerator"'],
    [{ windowMs: '60000' }, 'MIRAB_INVALID_ARGUMENT', "windowMs '60000'"],
    [{ windowMs: 0 }, 'MIRAB_INVALID_ARGUMENT', 'windowMs 0', 'from 0.001'],
    [{ windowMs: 1e30 }, 'MIRAB_INVALID_ARGUMENT', 'windowMs 1e+30'],
    [{ windowMs: NaN }, 'MIRAB_INVALID_ARGUMENT', 'windowMs NaN'],
    [{ windowMs: 'x', limit: 0 }, 'MIRAB_INVALID_ARGUMENT', "windowMs 'x'"],
    [{ max: 1.5 }, 'MIRAB_INVALID_LIMIT', 'max 1.5', 'from 0 to 4294967295'],
    [{ limit: 5, max: 9 }, 'MIRAB_INVALID_ARGUMENT', 'max 9', 'limit says 5'],
    [{ legacyHeaders: true, headers: false }, 'MIRAB_INVALID_ARGUMENT', 'headers false', 'legacyHeaders says true'],
    [{ limit: -1 }, 'MIRAB_INVALID_LIMIT', 'limit -1'],
    [{ limit: 1.5 }, 'MIRAB_INVALID_LIMIT', 'limit 1.5'],
    [{ limit: NaN }, 'MIRAB_INVALID_LIMIT', 'limit NaN'],
    [{ limit: '5' }, 'MIRAB_INVALID_LIMIT', "limit '5'"],
    [{ limit: () => 5 }, 'MIRAB_UNSUPPORTED', 'limit', 'number'],
    [{ limits: '0/second' }, 'MIRAB_INVALID_LIMIT', '0/second'],
    [{ limits: '5/minute', windowMs: 5 }, 'MIRAB_INVALID_ARGUMENT', 'windowMs 5', 'limits'],
    [{ limits: '5/minute', max: 5 }, 'MIRAB_INVALID_ARGUMENT', 'max 5'],
    [{ statusCode: 42 }, 'MIRAB_INVALID_ARGUMENT', 'statusCode 42'],
    [{ legacyHeaders: 1 }, 'MIRAB_INVALID_ARGUMENT', 'legacyHeaders 1'],
    [{ standardHeaders: 'draft-9' }, 'MIRAB_INVALID_ARGUMENT', "'draft-9'", 'draft-8'],
    [{ identifier: 5 }, 'MIRAB_INVALID_ARGUMENT', 'identifier 5'],
    [{ handler: 'no' }, 'MIRAB_INVALID_ARGUMENT', "handler 'no'"],
    [{ skip: true }, 'MIRAB_INVALID_ARGUMENT', 'skip true'],
    [{ keyGenerator: 'ip' }, 'MIRAB_INVALID_ARGUMENT', "keyGenerator 'ip'"],
    [{ ipv6Subnet: 0 }, 'MIRAB_INVALID_ARGUMENT', 'ipv6Subnet 0'],
    [{ ipv6Subnet: 129 }, 'MIRAB_INVALID_ARGUMENT', 'ipv6Subnet 129'],
    [{ ipv6Subnet: () => 64 }, 'MIRAB_UNSUPPORTED', 'ipv6Subnet'],
    [{ store: { increment() {} } }, 'MIRAB_UNSUPPORTED', 'store', "'memory:'"],
    [{ store: 'nowhere:' }, 'MIRAB_INVALID_URI', 'nowhere'],
    [{ skipFailedRequests: 1 }, 'MIRAB_INVALID_ARGUMENT', 'skipFailedRequests 1'],
    [{ skipSuccessfulRequests: 'yes' }, 'MIRAB_INVALID_ARGUMENT', "skipSuccessfulRequests 'yes'"],
    [{ requestWasSuccessful: true }, 'MIRAB_INVALID_ARGUMENT', 'requestWasSuccessful true'],
    [{ validate: false }, 'MIRAB_UNSUPPORTED', 'validate false'],
    [{ logger: console }, 'MIRAB_UNSUPPORTED', 'logger'],
    [{ retryAfter: 5 }, 'MIRAB_UNSUPPORTED', 'retryAfter 5'],
    [{ passOnStoreError: 'yes' }, 'MIRAB_INVALID_ARGUMENT', "'yes'"],
    [{ passOnStoreError: true, onStoreFailure: 'local' }, 'MIRAB_INVALID_ARGUMENT', 'onStoreFailure'],
    [{ onStoreFailure: 'rise' }, 'MIRAB_INVALID_ARGUMENT', "onStoreFailure 'rise'", 'raise'],
    [{ instances: 0 }, 'MIRAB_INVALID_ARGUMENT', '0 instances', '1 to 4294967295'],
    [{ instances: 1.5 }, 'MIRAB_INVALID_ARGUMENT', 'instances 1.5', 'from 1 to 4294967295'],
    [{ prefix: 5 }, 'MIRAB_INVALID_ARGUMENT', 'prefix 5'],
    [null, 'MIRAB_INVALID_ARGUMENT', 'null'],
  ]) {
    assert.throws(() => rateLimit(options), failure(code, ...texts));
  }
  for (const agreed of [{ limit: 5, max: 5 }, { limit: 0n }, { headers: true, legacyHeaders: true }, { windowMs: 0.001 }]) rateLimit(agreed);
  rateLimit({ skipFailedRequests: false, skipSuccessfulRequests: false, requestWasSuccessful: undefined, validate: true });
});

test('a property of the request is never one that it has itself', () => {
  const refused = (requestPropertyName) =>
    assert.throws(() => rateLimit({ requestPropertyName }), failure('MIRAB_INVALID_ARGUMENT', 'requestPropertyName', 'rateLimit'), requestPropertyName);
  for (const name of ['', '__proto__', 'constructor', 'toString', 'headers', 'socket', 'url', 'method', 'on', 'pipe', '_events']) refused(name);
  for (const { prototype } of [http.IncomingMessage, http2.Http2ServerRequest, Readable]) {
    for (const name of Object.getOwnPropertyNames(prototype)) refused(name);
  }
  for (const express of Object.values(frameworks)) {
    for (const name of Object.keys(express.request)) refused(name);
  }
  for (const name of ['query', 'params', 'body', 'res', 'next', 'originalUrl']) refused(name);
  assert.throws(() => rateLimit({ requestPropertyName: '\ud800' }), failure('MIRAB_INVALID_ARGUMENT', 'surrogate'));
  for (const name of ['rateLimit', 'bucket', 'proto', 'rate-limit']) rateLimit({ requestPropertyName: name });
});

/** Objects that JSON cannot say. */
const loop = {};
loop.self = loop;
const UNSENDABLE = [5n, Symbol('s'), loop, { a: 5n }, { toJSON: () => undefined }, { toJSON: () => assert.fail('mine') }];

test('a message that cannot be sent is an error when the limiter is made', () => {
  for (const message of UNSENDABLE) {
    assert.throws(() => rateLimit({ message }), failure('MIRAB_INVALID_ARGUMENT', 'message ', 'JSON'));
  }
});

for (const [framework, express] of Object.entries(frameworks)) {
  test(`an error of a message is a 500 on ${framework}`, async () => {
    for (const value of [...UNSENDABLE, () => 'text', new Error('mine')]) {
      const message = async () => {
        if (value instanceof Error) throw value;
        return value;
      };
      await serve(appOf(express, { message }), async (ask) => {
        const { status, body } = await ask();
        assert.equal(status, 500);
        assert.match(body, value instanceof Error ? /mine/ : /message returned .*JSON/);
      });
    }
  });

  test(`every other message is sent on ${framework}`, async () => {
    for (const [value, body, type] of [
      ['text', 'text', 'text/html'],
      [429, '429', 'application/json'],
      [false, 'false', 'application/json'],
      [[1], '[1]', 'application/json'],
      [Uint8Array.from([104, 105]), 'hi', 'application/octet-stream'],
      [Buffer.from('hi'), 'hi', 'application/octet-stream'],
    ]) {
      for (const message of [value, () => value]) {
        await serve(appOf(express, { message, statusCode: 420 }), async (ask) => {
          const { status, headers, body: given } = await ask();
          assert.deepEqual([status, given, headers.get('content-type').split(';')[0]], [420, body, type]);
        });
      }
    }
    await serve(appOf(express, { message: () => undefined }), async (ask) => {
      const { status, body } = await ask();
      assert.deepEqual([status, body], [429, '']);
    });
  });

  test(`a store that is away is a 503 of ${framework} itself, and other errors are a 500`, async () => {
    const away = { store: 'redis://127.0.0.1:1', onStoreFailure: 'raise', limit: 1 };
    for (const [options, wanted] of [
      [away, 503],
      [{ store: 'memory:?max_keys=1&when_full=refuse', limit: 9, keyGenerator: (request) => request.path }, 503],
      [{ limit: 1, keyGenerator: () => 'x'.repeat(70_000) }, 500],
      [{ limit: 1, identifier: () => ({}), standardHeaders: 'draft-8' }, 500],
    ]) {
      await serve(appOf(express, options), async (ask) => {
        await ask('/first');
        const { status, body } = await ask('/second');
        assert.equal(status, wanted, body);
      });
    }
  });
}

/** An app with Express's own error handler, which here does not print. */
function appOf(express, options) {
  const app = express();
  app.set('env', 'test');
  app.use(rateLimit({ limit: 0, ...options }));
  app.use((_request, response) => response.end());
  return app;
}

test('without Express an error says its status', async () => {
  const ask = (options) => new Promise((resolve) => {
    rateLimit(options)({ ip: '192.0.2.1' }, { setHeader() {}, hasHeader: () => true, end() {} }, resolve);
  });
  const away = await ask({ store: 'redis://127.0.0.1:1', onStoreFailure: 'raise' });
  assert.match(away.code, /^MIRAB_STORE_/);
  assert.deepEqual([away.status, away.statusCode], [503, 503]);
  const mine = await ask({ keyGenerator: () => ({}) });
  assert.deepEqual([mine.code, mine.status, mine.statusCode], ['MIRAB_INVALID_ARGUMENT', undefined, undefined]);
  const thrown = Object.assign(new Error('mine'), { kind: 'store_mine' });
  assert.equal((await ask({ skip: () => { throw thrown; } })).status, undefined);
  await assert.rejects(new Limiter('5/minute', { store: 'redis://127.0.0.1:1', onStoreFailure: 'raise' }).acquire('k'), (error) => error.status === undefined);
});

test('a message that cannot be sent goes to the callback of a bare server, with nothing sent', () => {
  const limiter = rateLimit({ limit: 0, message: () => 5n });
  const app = (request, response) => limiter(request, response, (error) => response.end(`${response.statusCode} ${error.message}`));
  return serve(app, async (ask) => assert.match((await ask()).body, /^200 message returned 5n: /));
});
