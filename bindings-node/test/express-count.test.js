'use strict';

// Requests that are not counted, by how they ended, and what is given back for one that nobody served.

const assert = require('node:assert/strict');
const http = require('node:http');
const http2 = require('node:http2');
const test = require('node:test');

const theirs = require('express-rate-limit');
const { Limiter, ManualClock } = require('..');
const { rateLimit } = require('../lib/express.js');
const { KEY, Response, isFree, listen, redis, serve, stores, until, warningsOf } = require('./helpers.js');

const frameworks = { 'express 5': require('express'), 'express 4': require('express-4') };
const express = frameworks['express 5'];

/** An app whose answers have the status of their path. */
function statusApp(framework, limiter) {
  const app = framework();
  app.set('etag', false);
  app.use(limiter);
  app.use((request, response) => response.status(Number(request.path.slice(1))).json(request.rateLimit?.used ?? null));
  return app;
}

const hits = async (limiter, key = KEY) => (await limiter.getKey(key))?.totalHits ?? 0;
const settle = () => new Promise((resolve) => setTimeout(resolve, 20));

for (const [framework, express_] of Object.entries(frameworks)) {
  for (const [name, store] of Object.entries(stores)) {
    test(`what failed, or succeeded, is given back on ${framework} and ${name}`, async () => {
      for (const [options, counted] of [
        [{ skipFailedRequests: true }, [200, 201, 302, 399]],
        [{ skipSuccessfulRequests: true }, [400, 404, 500]],
        [{ skipFailedRequests: true, skipSuccessfulRequests: true }, []],
        [{ skipFailedRequests: true, requestWasSuccessful: async (request, response) => response.statusCode === 404 && request.path === '/404' }, [404]],
        [{ requestWasSuccessful: () => assert.fail('nobody asked') }, [200, 201, 302, 399, 400, 404, 500]],
      ]) {
        const limiter = rateLimit({ limit: 100, store: store(), clock: new ManualClock(1_000_000), ...options });
        await serve(statusApp(express_, limiter), async (ask) => {
          for (const status of [200, 201, 302, 399, 400, 404, 500]) await ask(`/${status}`);
          await until(async () => (await hits(limiter)) === counted.length);
          await settle();
          assert.equal(await hits(limiter), counted.length);
        });
      }
    });
  }
}

/** What a sequence of requests is answered, with the time of both libraries mocked. */
async function answers(t, limiter, paths) {
  t.mock.timers.enable({ apis: ['Date'], now: 1_790_000_000_123 });
  const seen = [];
  await serve(statusApp(express, limiter), async (ask) => {
    for (const path of paths) {
      const { status, headers, body } = await ask(path);
      seen.push([status, body, ...['ratelimit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'retry-after'].map((field) => headers.get(field))]);
      await settle();
      t.mock.timers.tick(777);
    }
  });
  t.mock.timers.reset();
  return seen;
}

// Each window of theirs starts with a request that counts: one that was given back starts no window of mirab's.
for (const [options, ...codes] of [
  [{ skipFailedRequests: true }, 200, 400, 200, 500, 404, 200, 400, 200, 503, 200, 200, 400, 400],
  [{ skipSuccessfulRequests: true }, 400, 200, 404, 200, 200, 500, 200, 503, 200, 200, 401, 403, 400],
]) {
  test(`the same answers as express-rate-limit with ${Object.keys(options)}`, async (t) => {
    const paths = codes.map((code) => `/${code}`);
    const given = { limit: 3, windowMs: 5000, standardHeaders: 'draft-8', ...options };
    const wanted = await answers(t, theirs.rateLimit({ ...given, validate: false }), paths);
    assert.deepEqual(await answers(t, rateLimit({ ...given, clock: () => Date.now() }), paths), wanted);
  });
}

test('a login that fails counts, and one that succeeds does not', async () => {
  const limiter = rateLimit({ limit: 3, skipSuccessfulRequests: true });
  await serve(statusApp(express, limiter), async (ask) => {
    for (let index = 0; index < 10; index++) {
      assert.equal((await ask('/200')).status, 200);
      await isFree(limiter);
    }
    for (const status of [401, 401, 401, 429]) assert.equal((await ask('/401')).status, status);
    assert.equal((await ask('/200')).status, 429);
    assert.equal(await hits(limiter), 3);
  });
});

test('a place is reserved at entry: of many at once no more than the limit are served', async () => {
  for (const store of Object.values(stores)) {
    const limiter = rateLimit({ limits: 'fixed_window: 5/hour', store: store(), skipFailedRequests: true });
    const inside = [];
    const server = http.createServer((request, response) => limiter(request, response, () => inside.push(response)));
    await listen(server, async (port) => {
      let refused = 0;
      const asked = Array.from({ length: 20 }, async () => {
        const { status } = await fetch(`http://${KEY}:${port}`);
        if (status === 429) refused += 1;
      });
      await until(() => refused === 15);
      assert.equal(inside.length, 5);
      for (const response of inside) response.writeHead(500).end();
      await Promise.all(asked);
      assert.equal(refused, 15);
      await isFree(limiter);
    });
  }
});

for (const [name, store] of Object.entries(stores)) {
  test(`a client that leaves has failed, once, on ${name}`, async () => {
    const limiters = [{ skipFailedRequests: true }, { skipSuccessfulRequests: true }].map((options) =>
      rateLimit({ limits: 'fixed_window: 9/hour', store: store(), ...options }),
    );
    const waiting = [];
    const app = express();
    for (const limiter of limiters) app.use(limiter);
    app.use((_request, response) => waiting.push(response.on('error', () => {})));
    await listen(http.createServer(app), async (port) => {
      const left = http.get({ port, host: KEY, path: '/' }).on('error', () => {});
      await until(() => waiting.length === 1);
      left.destroy();
      await isFree(limiters[0]);
      waiting[0].status(500).end('too late');
      waiting[0].emit('error', new Error('mine'));
      await settle();
      assert.equal(await hits(limiters[1]), 1);

      http.get({ port, host: KEY, path: '/' }).on('error', () => {});
      await until(() => waiting.length === 2);
      waiting[1].destroy(new Error('mine'));
      await isFree(limiters[0]);
      assert.equal(await hits(limiters[1]), 2);
    });
  });

  test(`a place under a limit of concurrency is free at once, whatever is counted, on ${name}`, async () => {
    let succeeded;
    const limiter = rateLimit({
      limits: 'r=fixed_window: 9/hour; c=concurrency: 2 for 30s',
      store: store(),
      skipSuccessfulRequests: true,
      requestWasSuccessful: () => new Promise((resolve) => (succeeded = resolve)),
    });
    const seen = [];
    const app = express();
    app.use(limiter, (request, response) => response.json(request.rateLimit));
    await serve(app, async (ask) => {
      for (const left of [1, 1, 1]) {
        seen.push(JSON.parse((await ask()).body).remaining);
        assert.equal(seen.at(-1), left);
        await until(() => succeeded !== undefined);
        await settle(); // the place is free, and the count is still to be decided
        const decide = succeeded;
        succeeded = undefined;
        decide(true);
        await isFree(limiter);
      }
    });
  });

  test(`a client that leaves while it is held gives its place back, on ${name}`, async () => {
    const limiter = rateLimit({
      limits: 'leaky_bucket: 2/second queue 1; day=fixed_window: 100/day; concurrency: 9 for 30s', store: store(), clock: new ManualClock(1_000_000), skipFailedRequests: true,
    });
    let passed = 0;
    const first = new Response();
    await limiter({ ip: KEY }, first, () => (passed += 1));
    for (let round = 0; round < 5; round++) {
      const held = new Response();
      const asked = limiter({ ip: KEY }, held, () => (passed += 1));
      await until(() => held.listenerCount('close') > 0);
      held.close();
      await asked;
      await until(async () => (await hits(limiter)) === 1);
      assert.equal(held.statusCode, 200); // it had a place: the one before gave its back
      assert.deepEqual(held.eventNames(), []);
    }
    assert.equal(passed, 1);
    first.close();
  });
}

test('a client that left while the store decided is not served, nor counted', async () => {
  const limiter = rateLimit({ limits: '5/hour', store: redis(), skipFailedRequests: true });
  const response = new Response();
  const asked = limiter({ ip: KEY }, response, () => assert.fail('served'));
  response.close();
  await asked;
  await isFree(limiter);
});

test('an answer that its client did not stay for is counted', async () => {
  const limiter = rateLimit({ limits: '5/hour', skipFailedRequests: true, skipSuccessfulRequests: true });
  const response = new Response();
  await limiter({ ip: KEY }, response, () => {});
  response.writableEnded = true;
  response.close();
  await settle();
  assert.equal(await hits(limiter), 1);
});

test('over HTTP/2, too', async () => {
  const limiter = rateLimit({ limits: '9/hour', keyGenerator: () => 'k', skipFailedRequests: true });
  const waiting = [];
  const server = http2.createServer((request, response) => {
    limiter(request, response, () => waiting.push(response));
  });
  await listen(server, async (port) => {
    const client = http2.connect(`http://127.0.0.1:${port}`);
    client.on('error', () => {});
    for (const [index, end] of [(response) => response.writeHead(404).end('none'), (response) => response.stream.destroy(), (_response, request) => request.close()].entries()) {
      const request = client.request({ ':path': '/' }).on('error', () => {}).resume();
      await until(() => waiting.length === index + 1);
      assert.equal(await hits(limiter, 'k'), 1);
      end(waiting[index], request);
      await isFree(limiter, 'k');
    }
    client.request({ ':path': '/' }).resume();
    await until(() => waiting.length === 4);
    waiting[3].end('fine');
    await settle();
    assert.equal(await hits(limiter, 'k'), 1);
    client.destroy();
  });
});

test('what cannot be given back is a warning, once for each reason', async () => {
  let broken = false;
  const clock = () => {
    if (broken) throw new Error('no time');
    return 1000;
  };
  const made = (options) => rateLimit({ limits: '9/minute', clock, skipFailedRequests: true, ...options });
  const fails = made({ requestWasSuccessful: () => Promise.reject(new Error('mine')) });
  const ends = async (limiter, event) => {
    const response = new Response();
    await limiter({ ip: KEY }, response, () => {});
    broken = event === 'close';
    response[event === 'close' ? 'close' : 'emit'](event);
    await new Promise(setImmediate);
    broken = false;
  };
  const warnings = await warningsOf(async () => {
    for (let round = 0; round < 3; round++) {
      await ends(fails, 'finish');
      await ends(fails, 'close');
    }
  });
  assert.deepEqual(warnings.map((warning) => warning.split(': ').slice(1).join(': ')), [
    'requestWasSuccessful failed and the request is counted: mine',
    'a request could not be given back and is counted: no time',
  ]);
  assert.equal(await hits(fails), 6);
});

test('a blocked client is refused, whatever it has left', async () => {
  const store = redis();
  const limiter = rateLimit({ limits: '5/minute', store, prefix: 'web:' });
  const operator = new Limiter('unlimited', { store });
  await serve(statusApp(express, limiter), async (ask) => {
    assert.equal((await ask('/200')).status, 200);
    await operator.block(`web:${KEY}`, 90_500);
    const { status, headers } = await ask('/200');
    assert.deepEqual([status, headers.get('retry-after')], [429, '91']);
    await operator.unblock(`web:${KEY}`);
    assert.equal((await ask('/200')).status, 200);
    await operator.block(`web:${KEY}`, 90_500);
    await limiter.resetKey(KEY);
    assert.equal((await ask('/200')).body, '1');
  });
});
