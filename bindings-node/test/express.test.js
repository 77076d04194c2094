'use strict';

const assert = require('node:assert/strict');
const test = require('node:test');

const { Limit, ManualClock } = require('..');
const { ipKeyGenerator, rateLimit } = require('../lib/express.js');
const { redis, serve, stores } = require('./helpers.js');

const frameworks = { 'express 5': require('express'), 'express 4': require('express-4') };

/** An app that answers what the limiter left on the request. */
function appOf(express, limiter, property = 'rateLimit') {
  const app = express();
  app.use(limiter);
  app.get('/', (request, response) => response.json(request[property] ?? null));
  app.use((error, request, response, next) => {
    if (!error.code) return next(error);
    response.status(503).send(error.code);
  });
  return app;
}

for (const [framework, express] of Object.entries(frameworks)) {
  for (const [name, store] of Object.entries(stores)) {
    test(`a limit holds and its window ends on ${framework} and ${name}`, async () => {
      const clock = new ManualClock(1_000_000_000);
      const limiter = rateLimit({ windowMs: 60_000, limit: 2, store: store(), clock });
      await serve(appOf(express, limiter), async (ask) => {
        const first = await ask();
        assert.equal(first.status, 200);
        assert.deepEqual(JSON.parse(first.body), {
          limit: 2, used: 1, remaining: 1, resetTime: new Date(1_060_000).toJSON(), key: '127.0.0.1',
        });
        clock.advanceMs(10_000);
        assert.equal((await ask()).status, 200);
        const refused = await ask();
        assert.equal(refused.status, 429);
        assert.equal(refused.body, 'Too many requests, please try again later.');
        assert.equal(refused.headers.get('retry-after'), '50');
        assert.equal(refused.headers.get('cache-control'), 'no-store');
        assert.equal(refused.headers.get('x-ratelimit-limit'), '2');
        assert.equal(refused.headers.get('x-ratelimit-remaining'), '0');
        assert.equal(refused.headers.get('x-ratelimit-reset'), '1060');
        assert.deepEqual(await limiter.getKey('127.0.0.1'), { totalHits: 2, resetTime: new Date(1_060_000) });
        await limiter.resetKey('127.0.0.1');
        assert.equal(await limiter.getKey('127.0.0.1'), undefined);
        assert.equal((await ask()).status, 200);
        clock.advanceMs(60_000);
        assert.equal(JSON.parse((await ask()).body).used, 1);
      });
    });
  }
}

const express = frameworks['express 5'];

/** The statuses of `count` requests, each with the headers that `headersOf` gives it. */
async function statuses(ask, count, headersOf = () => ({})) {
  const seen = [];
  for (let index = 0; index < count; index++) seen.push((await ask('/', headersOf(index))).status);
  return seen;
}

test('the default is five a minute, with the X-RateLimit fields only', () =>
  serve(appOf(express, rateLimit()), async (ask) => {
    const { headers } = await ask();
    assert.equal(headers.get('x-ratelimit-limit'), '5');
    assert.equal(headers.get('ratelimit'), null);
    assert.equal(headers.get('ratelimit-policy'), null);
    assert.deepEqual(await statuses(ask, 5), [200, 200, 200, 200, 429]);
  }));

test('limits in mirab\'s notation tell draft 8', () =>
  serve(appOf(express, rateLimit({ limits: '1/second burst 5', clock: new ManualClock() })), async (ask) => {
    const { headers } = await ask();
    assert.equal(headers.get('x-ratelimit-limit'), null);
    assert.match(headers.get('ratelimit-policy'), /^"1\/second burst 5"; q=5; w=5; pk=:[\w+/]{16}:$/);
    assert.equal(headers.get('ratelimit'), '"1/second burst 5"; r=4; t=1');
    assert.deepEqual(await statuses(ask, 5), [200, 200, 200, 200, 429]);
  }));

test('limits may be a Limit or several', async () => {
  const limits = [Limit.parse('5/minute'), 'few=fixed_window: 1/hour'];
  await serve(appOf(express, rateLimit({ limits, clock: new ManualClock(1) })), async (ask) => {
    const { headers } = await ask();
    assert.match(headers.get('ratelimit'), /^"5\/minute"; r=4; t=12, "few"; r=0; t=3600$/);
    assert.equal((await ask()).status, 429);
  });
});

test('limit 0 and max 0 refuse everything', async () => {
  for (const options of [{ limit: 0 }, { max: 0 }]) {
    await serve(appOf(express, rateLimit(options)), async (ask) => {
      const { status, headers } = await ask();
      assert.equal(status, 429);
      assert.equal(headers.get('x-ratelimit-limit'), '0');
      assert.equal(headers.get('retry-after'), null);
    });
  }
});

test('undefined means not given', async () => {
  const options = Object.fromEntries(
    ['windowMs', 'message', 'statusCode', 'handler', 'skip', 'keyGenerator', 'store', 'logger', 'limits'].map((name) => [name, undefined]),
  );
  await serve(appOf(express, rateLimit({ ...options, limit: 1, max: undefined })), async (ask) => {
    assert.deepEqual(await statuses(ask, 2), [200, 429]);
  });
});

test('skip, keyGenerator, identifier and message may be asynchronous', () => {
  const limiter = rateLimit({
    limit: 1,
    standardHeaders: 'draft-8',
    skip: async (request) => request.get('x-skip') === 'yes',
    keyGenerator: async (request) => request.get('x-user-id'),
    identifier: async (request) => `of ${request.rateLimit.key}`,
    message: async (request) => ({ sorry: request.rateLimit.key }),
  });
  return serve(appOf(express, limiter), async (ask) => {
    assert.deepEqual(await statuses(ask, 3, (index) => ({ 'x-user-id': `u${index}` })), [200, 200, 200]);
    const refused = await ask('/', { 'x-user-id': 'u0' });
    assert.equal(refused.status, 429);
    assert.deepEqual(JSON.parse(refused.body), { sorry: 'u0' });
    assert.match(refused.headers.get('ratelimit'), /^"of u0"; r=0; t=60$/);
    const skipped = await ask('/', { 'x-user-id': 'u0', 'x-skip': 'yes' });
    assert.deepEqual([skipped.status, skipped.body, skipped.headers.get('ratelimit')], [200, 'null', null]);
  });
});

test('handler, statusCode and requestPropertyName are the app\'s', () => {
  const limiter = rateLimit({
    limit: 1,
    statusCode: 420,
    requestPropertyName: 'bucket',
    handler: (request, response, next, options) =>
      response.status(options.statusCode).json([options.limit, options.windowMs, options.message, request.bucket.current]),
  });
  return serve(appOf(express, limiter, 'bucket'), async (ask) => {
    assert.equal(JSON.parse((await ask()).body).remaining, 0);
    const refused = await ask();
    assert.equal(refused.status, 420);
    assert.deepEqual(JSON.parse(refused.body), [1, 60_000, 'Too many requests, please try again later.', 1]);
  });
});

test('no headers at all when both families are off', () =>
  serve(appOf(express, rateLimit({ limit: 1, legacyHeaders: false })), async (ask) => {
    await ask();
    const { status, headers } = await ask();
    assert.equal(status, 429);
    assert.deepEqual([...headers.keys()].filter((name) => /ratelimit|retry/.test(name)), []);
  }));

test('two limiters on one route each add their item to draft 8', () => {
  const app = express();
  app.use(rateLimit({ limit: 5, standardHeaders: 'draft-8', legacyHeaders: false }));
  app.use(rateLimit({ windowMs: 3_600_000, limit: 9, standardHeaders: 'draft-8', legacyHeaders: false }));
  app.get('/', (_request, response) => response.end());
  return serve(app, async (ask) => {
    assert.match((await ask()).headers.get('ratelimit'), /^"5-in-1min"; r=4; t=60, "9-in-1hr"; r=8; t=3600$/);
  });
});

test('a prefix keeps equal limits on one store apart', async () => {
  const store = redis();
  const of = (prefix) => rateLimit({ limit: 1, store, prefix });
  const app = express();
  for (const [path, prefix] of [['/a', 'a:'], ['/b', 'b:'], ['/c', 'a:']]) app.get(path, of(prefix), (_request, response) => response.end());
  await serve(app, async (ask) => {
    assert.deepEqual([(await ask('/a')).status, (await ask('/b')).status, (await ask('/c')).status], [200, 200, 429]);
  });
});

test('while the store fails', async (t) => {
  const store = 'redis://127.0.0.1:1';
  const limits = '2/hour';
  const during = (name, options, run) => t.test(name, () => serve(appOf(express, rateLimit({ store, limits, ...options })), run));
  for (const options of [{ onStoreFailure: 'raise' }, { passOnStoreError: false }]) {
    await during(`the error goes to next: ${Object.keys(options)}`, options, async (ask) => {
      const { status, body } = await ask();
      assert.equal(status, 503);
      assert.match(body, /^MIRAB_STORE_(UNAVAILABLE|TIMEOUT)$/);
    });
  }
  for (const options of [{ onStoreFailure: 'open' }, { passOnStoreError: true }]) {
    await during(`all pass, and no number is invented: ${Object.keys(options)}`, options, async (ask) => {
      for (let index = 0; index < 3; index++) {
        const { status, headers } = await ask();
        assert.equal(status, 200);
        assert.deepEqual([...headers.keys()].filter((name) => /ratelimit|retry-after/.test(name)), []);
      }
    });
  }
  await during('closed is 503 and when to come back', { onStoreFailure: 'closed', handler: () => assert.fail('he did not ask too often') }, async (ask) => {
    const { status, headers, body } = await ask();
    assert.equal(status, 503);
    assert.match(headers.get('retry-after'), /^[1-9]\d*$/);
    assert.deepEqual([...headers.keys()].filter((name) => name.includes('ratelimit')), []);
    assert.equal(body, 'The service is unavailable, please try again later.');
  });
  await during('the same limits are kept in the process', {}, async (ask) => assert.deepEqual(await statuses(ask, 3), [200, 200, 429]));
  await during('an instance keeps its share', { instances: 2 }, async (ask) => assert.deepEqual(await statuses(ask, 2), [200, 429]));
});

test('an error of the app\'s own functions goes to next', async () => {
  const thrown = Object.assign(new Error('mine'), { code: 'MINE' });
  const fails = () => {
    throw thrown;
  };
  for (const name of ['skip', 'keyGenerator', 'identifier', 'message', 'handler']) {
    const limiter = rateLimit({ limit: 0, standardHeaders: 'draft-8', [name]: fails });
    await serve(appOf(express, limiter), async (ask) => assert.equal((await ask()).body, 'MINE', name));
  }
});

test('a client without an address shares one key, with a warning', async () => {
  const warnings = [];
  const listen = (warning) => warnings.push(warning.message);
  process.on('warning', listen);
  const limiter = rateLimit({ limit: 2 });
  const answers = [];
  for (let index = 0; index < 3; index++) {
    const response = { setHeader() {}, hasHeader: () => false, end: () => answers.push('refused') };
    await limiter({ socket: {} }, response, () => answers.push('passed'));
  }
  await new Promise(setImmediate);
  process.off('warning', listen);
  assert.deepEqual(answers, ['passed', 'passed', 'refused']);
  assert.equal((await limiter.getKey('anonymous')).totalHits, 2);
  assert.equal(warnings.length, 1);
  assert.match(warnings[0], /anonymous/);
});

test('a key is text or a number, never an object that all requests would share', async () => {
  for (const [key, status] of [[42, 200], [7n, 200], [{}, 503], [true, 503], [Symbol('s'), 503]]) {
    await serve(appOf(express, rateLimit({ keyGenerator: () => key })), async (ask) => assert.equal((await ask()).status, status));
  }
});

test('an address is one key however it is written', () => {
  for (const [ip, subnet, key] of [
    ['192.0.2.7', undefined, '192.0.2.7'],
    ['::ffff:192.0.2.7', undefined, '192.0.2.7'],
    ['2001:db8:1:2ff::1', undefined, '2001:db8:1:200::/56'],
    ['2001:db8:1:2ff::1', 64, '2001:db8:1:2ff::/64'],
    ['2001:db8:1:2ff::1', false, '2001:db8:1:2ff::1'],
    ['no address', undefined, 'no address'],
  ]) {
    assert.equal(ipKeyGenerator(ip, subnet), key);
  }
});

test('IPv6 clients are told apart by their subnet', async () => {
  const limiter = rateLimit({ limit: 2 });
  const keys = [];
  const from = (ip) => limiter({ ip }, { setHeader() {}, hasHeader: () => true, end() {} }, () => keys.push(ip));
  for (const ip of ['2001:db8::1', '2001:db8:0:ff::2', '2001:db8::3', '2001:db8:0:100::1']) await from(ip);
  assert.deepEqual(keys, ['2001:db8::1', '2001:db8:0:ff::2', '2001:db8:0:100::1']);
});
