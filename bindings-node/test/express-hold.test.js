'use strict';

// Requests that take a place until their response has ended, and requests that wait for their turn.

const assert = require('node:assert/strict');
const { EventEmitter, once } = require('node:events');
const http = require('node:http');
const http2 = require('node:http2');
const net = require('node:net');
const test = require('node:test');

const { ManualClock } = require('..');
const { whenEnded } = require('../lib/express-hold.js');
const { rateLimit } = require('../lib/express.js');
const { KEY, Response, failure, isFree, listen, redis, serve, stores, until, warningsOf } = require('./helpers.js');

const frameworks = { 'express 5': require('express'), 'express 4': require('express-4') };

for (const [framework, express] of Object.entries(frameworks)) {
  for (const [name, store] of Object.entries(stores)) {
    test(`a place is taken until the response has ended on ${framework} and ${name}`, async () => {
      const limiter = rateLimit({ limits: 'c=concurrency: 2 for 30s', store: store() });
      const waiting = [];
      const app = express();
      app.use(limiter);
      app.get('/slow', (_request, response) => waiting.push(response));
      app.get('/', (request, response) => response.json(request.rateLimit.remaining));
      await serve(app, async (ask) => {
        const slow = [ask('/slow'), ask('/slow')];
        await until(() => waiting.length === 2);
        const refused = await ask('/');
        assert.equal(refused.status, 429);
        assert.equal(refused.headers.get('retry-after'), '1');
        assert.match(refused.headers.get('ratelimit-policy'), /^"c"; q=2; qu="concurrent-requests"; pk=/);
        assert.equal((await limiter.getKey(KEY)).totalHits, 2);
        waiting[0].send('done');
        assert.equal((await Promise.race(slow)).body, 'done'); // whichever came first
        await until(async () => (await limiter.getKey(KEY)).totalHits === 1);
        assert.equal((await ask('/')).body, '0');
        waiting[1].status(500).end();
        assert.deepEqual((await Promise.all(slow)).map(({ status }) => status).sort(), [200, 500]);
        await isFree(limiter);
        for (let index = 0; index < 5; index++) {
          assert.equal((await ask('/')).status, 200);
          await isFree(limiter);
        }
      });
    });
  }
}

for (const [name, store] of Object.entries(stores)) {
  test(`a client that leaves, or a response that fails, frees its place on ${name}`, async () => {
    const limiter = rateLimit({ limits: 'concurrency: 9 for 30s', store: store() });
    const waiting = [];
    const errors = [];
    const server = http.createServer((request, response) => {
      response.on('error', (error) => errors.push(error.message));
      limiter(request, response, () => waiting.push(response));
    });
    await listen(server, async (port) => {
      const left = http.get({ port, host: KEY, path: '/' }).on('error', () => {});
      await until(() => waiting.length === 1);
      left.destroy();
      await isFree(limiter);

      http.get({ port, host: KEY, path: '/' }).on('error', () => {});
      await until(() => waiting.length === 2);
      waiting[1].destroy(new Error('mine'));
      await isFree(limiter);

      http.get({ port, host: KEY, path: '/' }).on('error', () => {}).on('response', (response) => response.on('error', () => {}));
      await until(() => waiting.length === 3);
      waiting[2].write('half');
      waiting[2].socket.destroy();
      await isFree(limiter);
    });
  });
}

test('a place is freed over HTTP/2, too', async () => {
  const limiter = rateLimit({ limits: 'concurrency: 1 for 30s', keyGenerator: () => 'k' });
  const waiting = [];
  const server = http2.createServer((request, response) => {
    limiter(request, response, () => waiting.push(response));
  });
  await listen(server, async (port) => {
    const client = http2.connect(`http://127.0.0.1:${port}`);
    client.on('error', () => {});
    client.request({ ':path': '/' }).resume();
    await until(() => waiting.length === 1);
    const [headers] = await once(client.request({ ':path': '/' }).resume(), 'response');
    assert.equal(headers[':status'], 429);
    waiting[0].end('done');
    await isFree(limiter, 'k');
    const leaves = client.request({ ':path': '/' });
    await until(() => waiting.length === 2);
    leaves.close();
    await isFree(limiter, 'k');
    client.destroy();
  });
});

test('an error after the place was taken frees it with the answer', async () => {
  const fails = () => {
    throw Object.assign(new Error('mine'), { code: 'MINE' });
  };
  const limiter = rateLimit({ limits: 'concurrency: 1 for 30s', identifier: fails });
  const app = frameworks['express 5']();
  app.use(limiter);
  app.use((error, _request, response, _next) => response.status(503).send(error.code));
  await serve(app, async (ask) => {
    for (let index = 0; index < 3; index++) {
      assert.equal((await ask()).body, 'MINE');
      await isFree(limiter);
    }
  });
});

test('whatever ends a response, its place is freed once, and its errors stay the app\'s', () => {
  for (const events of [['finish', 'close'], ['close'], ['error', 'close'], ['finish', 'error', 'close'], ['finish', 'finish']]) {
    const response = new EventEmitter();
    const seen = [];
    response.on('error', (error) => seen.push(error));
    let calls = 0;
    whenEnded(response, () => (calls += 1));
    assert.equal(response.listenerCount('error'), 1);
    for (const event of events) response.emit(event, 'failed');
    assert.equal(calls, 1, events.join());
    assert.equal(seen.length, events.includes('error') ? 1 : 0);
    assert.deepEqual(response.eventNames(), ['error']);
  }
  const alone = new EventEmitter();
  let calls = 0;
  whenEnded(alone, () => (calls += 1));
  assert.throws(() => alone.emit('error', new Error('mine')), /mine/);
  assert.equal(calls, 1);
});

test('a client that left while the store decided gets nothing done, and keeps no place', async () => {
  for (const limits of ['concurrency: 5 for 30s', 'leaky_bucket: 10/second queue 5; concurrency: 5 for 30s']) {
    const limiter = rateLimit({ limits, store: redis(), clock: new ManualClock(1_000_000) });
    const response = new Response();
    let passed = 0;
    const asked = limiter({ ip: KEY }, response, () => (passed += 1));
    response.close();
    await asked;
    assert.equal(passed, 0);
    await until(async () => ((await limiter.getKey(KEY))?.totalHits ?? 0) < 2);
    const stays = new Response();
    await limiter({ ip: KEY }, stays, () => (passed += 1));
    assert.equal(passed, 1);
    stays.close();
  }
});

test('a place that cannot be given back is a warning, and expires', async () => {
  let broken = false;
  let ms = 1000;
  const clock = () => {
    if (broken) throw new Error('no time');
    return ms;
  };
  const limiter = rateLimit({ limits: 'concurrency: 1 for 30s', clock });
  const take = async () => {
    const response = new Response();
    let passed = false;
    await limiter({ ip: KEY }, response, () => (passed = true));
    return { response, passed };
  };
  const warnings = await warningsOf(async () => {
    for (let round = 0; round < 2; round++) {
      const { response, passed } = await take();
      assert.equal(passed, true);
      broken = true;
      response.close();
      broken = false;
      assert.equal((await take()).passed, false);
      ms += 30_000;
    }
  });
  assert.equal(warnings.length, 1);
  assert.match(warnings[0], /until it expires: no time$/);
});

test('a request waits for its turn on a timer, one after the other', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const clock = new ManualClock(1_000_000);
  const limiter = rateLimit({ limits: 'leaky_bucket: 4/second queue 2', clock });
  const passed = [];
  const responses = [];
  const ask = (name) => {
    responses.push(new Response());
    return limiter({ ip: KEY }, responses.at(-1), () => passed.push(name));
  };
  const asked = ['first', 'second', 'third', 'fourth'].map(ask);
  await Promise.all([asked[0], asked[3]]);
  assert.deepEqual(passed, ['first']);
  assert.deepEqual(responses.map((response) => response.statusCode), [200, 200, 200, 429]);
  t.mock.timers.tick(249);
  await new Promise(setImmediate);
  assert.deepEqual(passed, ['first']);
  t.mock.timers.tick(1);
  await new Promise(setImmediate);
  assert.deepEqual(passed, ['first']); // a timer of 250 ms may come up to one too early
  t.mock.timers.tick(1);
  await asked[1];
  assert.deepEqual(passed, ['first', 'second']);
  t.mock.timers.tick(250);
  await asked[2];
  assert.deepEqual(passed, ['first', 'second', 'third']);
  assert.deepEqual(responses.map((response) => response.listenerCount('close')), [0, 0, 0, 0]);
});

test('a client that leaves while it waits gets nothing done', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const limiter = rateLimit({ limits: 'leaky_bucket: 4/second queue 2; concurrency: 9 for 30s', clock: new ManualClock(1_000_000) });
  let passed = 0;
  const responses = [new Response(), new Response()];
  const asked = responses.map((response) => limiter({ ip: KEY }, response, () => (passed += 1)));
  await asked[0];
  responses[1].close();
  await asked[1]; // at once: no timer was let run
  t.mock.timers.tick(5000);
  await new Promise(setImmediate);
  assert.equal(passed, 1);
  assert.deepEqual(responses[1].eventNames(), []);
  responses[0].emit('finish');
});

for (const [name, store] of Object.entries(stores)) {
  test(`requests leave at the rate, and the event loop goes on, on ${name}`, async () => {
    const limiter = rateLimit({ limits: 'leaky_bucket: 20/second queue 4', store: store(), clock: new ManualClock(1_000_000) });
    const server = http.createServer((request, response) => limiter(request, response, () => response.end('served')));
    await listen(server, async (port) => {
      let ticks = 0;
      const timer = setInterval(() => (ticks += 1), 5);
      const start = performance.now();
      const answers = await Promise.all(
        Array.from({ length: 7 }, async () => {
          const { status } = await fetch(`http://127.0.0.1:${port}`);
          return [status, performance.now() - start];
        }),
      );
      clearInterval(timer);
      const served = answers.filter(([status]) => status === 200).map(([, after]) => after).sort((a, b) => a - b);
      assert.equal(served.length, 5);
      assert.equal(answers.filter(([status]) => status === 429).length, 2);
      served.forEach((after, index) => assert.ok(after >= 50 * index, `${index} after ${after} ms`));
      assert.ok(served[4] < 2000, `${served[4]} ms`);
      assert.ok(ticks >= 10, `${ticks} ticks`);
    });
  });
}

test('a client that hangs up while it waits is not served', async () => {
  const limiter = rateLimit({ limits: 'leaky_bucket: 2/second queue 1; concurrency: 9 for 30s', clock: new ManualClock(1_000_000) });
  let served = 0;
  let held = 0;
  const server = http.createServer((request, response) => {
    held += 1;
    limiter(request, response, () => {
      served += 1;
      response.end();
    }).then(() => (held -= 1));
  });
  await listen(server, async (port) => {
    await fetch(`http://127.0.0.1:${port}`).then((response) => response.text());
    const socket = net.connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: h\r\n\r\n'));
    await until(() => held === 1);
    const start = performance.now();
    socket.destroy();
    await until(() => held === 0);
    assert.ok(performance.now() - start < 400, 'it was let go when it left');
    await new Promise((resolve) => setTimeout(resolve, 600));
    assert.equal(served, 1);
  });
});

test('a queue that could hold longer than maxHold is refused when the limiter is made', () => {
  const made = (limits, maxHold) => rateLimit({ limits, maxHold });
  for (const [limits, maxHold, ...texts] of [
    ['leaky_bucket: 4/second queue 5', undefined, '"leaky_bucket: 4/second queue 5"', '1250 ms', 'maxHold is 1000'],
    ['5/minute; slow=leaky_bucket: 1/minute queue 1', undefined, 'slow', '60000 ms'],
    [['9/hour', 'leaky_bucket: 3/second queue 1'], 333.333, '333.334 ms', 'maxHold is 333.333'],
    ['leaky_bucket: 1/second queue 1', 0, '1000 ms', 'maxHold is 0'],
  ]) {
    assert.throws(() => made(limits, maxHold), failure('MIRAB_INVALID_ARGUMENT', ...texts));
  }
  for (const maxHold of [-1, NaN, '5', null, Infinity, 2 ** 31]) {
    assert.throws(() => made('5/minute', maxHold ?? false), failure('MIRAB_INVALID_ARGUMENT', 'maxHold', '2^31-1'));
  }
  made('leaky_bucket: 4/second queue 4');
  made('leaky_bucket: 1/minute', 0);
  made('leaky_bucket: 3/second queue 1', 333.334);
  made('leaky_bucket: 1/minute queue 60', 3_600_000);
  made('deny', 0);
  made('unlimited; sliding_log: 4294967295/hour; concurrency: 4294967295 for 1s; sliding_window: 1/hour; 1/hour', 0);
});
