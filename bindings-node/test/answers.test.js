'use strict';

// mirab/http: who is asking, and what he is told; the tables of tests/http hold the rest.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const http = require('node:http');
const http2 = require('node:http2');
const net = require('node:net');
const test = require('node:test');

const { Limiter, ManualClock } = require('..');
const { rateLimit } = require('../lib/express.js');
const { Answers, Clients } = require('../lib/http.js');
const { listen, serve } = require('./helpers.js');

const invalid = (words) => (error) => error.code === 'MIRAB_INVALID_ARGUMENT' && error.message.includes(words);

test('a decision and its answer come together', async () => {
  const limiter = new Limiter('1/minute', { clock: new ManualClock() });
  const answers = new Answers({ families: ['draft-8', 'x-ratelimit-epoch'], body: 'json' });
  const admitted = await limiter.acquireWithAnswer('k', 1, answers);
  assert.equal(admitted.decision.allowed, true);
  assert.deepEqual([admitted.answer.status, admitted.answer.body], [200, undefined]);
  const { decision, answer } = await limiter.acquireWithAnswer(Buffer.from('k'), 1, answers);
  assert.deepEqual([decision.allowed, answer.status], [false, 429]);
  const headers = Object.fromEntries(answer.headers);
  assert.deepEqual([headers['Retry-After'], headers['X-RateLimit-Reset']], ['60', '60']);
  assert.match(answer.body, /^\{"error":"rate_limited"/);
  const asked = await limiter.peekWithAnswer('other', 1, answers);
  assert.deepEqual([asked.answer.status, asked.decision.remaining, limiter.stats().allowed], [200, 1, 1]);
  assert.equal(await limiter.refund(admitted.decision), 1);
});

test('a request that would be held too long is answered as refused', async () => {
  const limiter = new Limiter('leaky_bucket: 1/second queue 9', { clock: new ManualClock() });
  const answers = new Answers({ families: [], maxHoldMs: 1500 });
  const told = [];
  for (let count = 0; count < 3; count += 1) told.push((await limiter.acquireWithAnswer('k', 1, answers)).answer);
  assert.deepEqual(told.map(({ status }) => status), [200, 200, 429]);
  assert.deepEqual(told[2].headers, [['Retry-After', '1'], ['Cache-Control', 'no-store']]);
});

test('on a store that is away, closed is 503 and open tells nothing', async () => {
  const store = 'redis://127.0.0.1:1?timeout_ms=50&connect_timeout_ms=50';
  const answers = new Answers({ body: 'problem' });
  const closed = new Limiter('5/minute', { store, onStoreFailure: 'closed' });
  const { answer } = await closed.acquireWithAnswer('k', 1, answers);
  assert.deepEqual([answer.status, answer.headers.map(([name]) => name)], [503, ['Retry-After', 'Cache-Control', 'Content-Type']]);
  assert.match(answer.body, /temporary-reduced-capacity/);
  const open = new Limiter('5/minute', { store, onStoreFailure: 'open' });
  assert.deepEqual((await open.acquireWithAnswer('k', 1, answers)).answer, { status: 200, headers: [], body: undefined });
});

test('partitions are salted', async () => {
  const limiter = new Limiter('5/minute');
  const policy = async (answers, partitionKey) =>
    Object.fromEntries((await limiter.acquireWithAnswer('k', 0, answers, { partitionKey })).answer.headers)['RateLimit-Policy'];
  const salted = new Answers({ partitionSalt: Buffer.from('0123456789abcdef') });
  const own = new Answers();
  assert.equal(await policy(salted, '127.0.0.1'), '"5/minute";q=5;w=60;pk=:NzRmNjJjYmI0NTAy:');
  assert.equal(await policy(salted, Buffer.from('127.0.0.1')), await policy(salted, '127.0.0.1'));
  assert.notEqual(await policy(own, '127.0.0.1'), await policy(salted, '127.0.0.1'));
  assert.equal(await policy(own, 'k'), await policy(new Answers(), 'k'));
});

test('what cannot be answered by is refused, and nothing is taken', async () => {
  const limiter = new Limiter('5/minute');
  for (const answers of [undefined, null, {}, 'draft-8', new Clients()]) {
    await assert.rejects(limiter.acquireWithAnswer('k', 1, answers), invalid('answers'));
  }
  await assert.rejects(limiter.acquireWithAnswer('k', -1, new Answers()), invalid('cost -1'));
  await assert.rejects(limiter.acquireWithAnswer('', 1, new Answers()), invalid('key'));
  assert.equal(limiter.stats().allowed, 0);
  for (const [options, words] of [
    [{ families: ['draft-99'] }, 'draft-99'],
    [{ families: 'draft-8' }, 'families'],
    [{ body: 'xml' }, 'xml'],
    [{ partitionSalt: 'a secret of some length' }, 'partitionSalt: it must be bytes'],
    [{ partitionSalt: Buffer.from('short') }, '5 bytes'],
    [{ maxHoldMs: -1 }, 'maxHoldMs -1'],
    [{ max_hold: 1 }, 'max_hold'],
  ]) assert.throws(() => new Answers(options), invalid(words));
  for (const [options, words] of [
    [{ trustedProxies: ['everyone'] }, 'everyone'],
    [{ trustedProxies: ['::/0'] }, 'everybody'],
    [{ trustedProxies: '10.0.0.0/8' }, 'trustedProxies'],
    [{ trustedProxies: 33 }, 'trustedProxies 33'],
    [{ trustedProxies: 1.5 }, 'trustedProxies 1.5'],
    [{ trustedProxies: [7] }, 'trustedProxies'],
    [{ header: 'X-A, X-B' }, 'one header'],
    [{ ipv6Prefix: 0 }, '1 to 128'],
    [{ ipv6Prefix: 129 }, '1 to 128'],
    [{ ipv6Prefix: 300 }, '1 to 128'],
  ]) assert.throws(() => new Clients(options), invalid(words));
  assert.throws(() => new Clients().key(5), invalid('peer 5'));
  for (const lines of ['1.1.1.1', [5], null]) assert.throws(() => new Clients().key('1.1.1.1', lines), invalid('lines'));
});

test('the client of a request behind a trusted proxy, and of one who says that he is one', async () => {
  const behind = new Clients({ trustedProxies: ['loopback'] });
  const nobody = new Clients();
  assert.deepEqual([behind.header, nobody.header], ['x-forwarded-for', undefined]);
  const listener = (request, response) => response.end(`${behind.keyOf(request)} ${nobody.keyOf(request)}`);
  await serve(listener, async (ask) => {
    assert.equal((await ask('/', { 'x-forwarded-for': '1.1.1.1, 192.0.2.7' })).body, '192.0.2.7 127.0.0.1');
    assert.equal((await ask()).body, '127.0.0.1 127.0.0.1');
  });
});

test('a request of HTTP/2 is asked for the same header', async () => {
  const clients = ['X-Forwarded-For', 'Forwarded'].map((header) => new Clients({ trustedProxies: ['loopback'], header }));
  const server = http2.createServer((request, response) => response.end(clients.map((each) => each.keyOf(request)).join(' ')));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const session = http2.connect(`http://127.0.0.1:${server.address().port}`);
  try {
    const ask = async (headers) => {
      const chunks = await session.request({ ':path': '/', ...headers }).setEncoding('utf8').toArray();
      return chunks.join('');
    };
    assert.equal(await ask({ 'x-forwarded-for': ['1.1.1.1', '192.0.2.7'], forwarded: ['for=1.1.1.1', 'for=192.0.2.8'] }), '192.0.2.7 192.0.2.8');
    assert.equal(await ask({}), '127.0.0.1 127.0.0.1');
  } finally {
    session.close();
    await new Promise((resolve) => server.close(resolve));
  }
});

test('the middleware asks the proxies that are trusted', async () => {
  const key = (options) => (request, response) => rateLimit(options)(request, response, () => response.end(request.rateLimit.key));
  const headers = { 'x-forwarded-for': '1.1.1.1, 2001:db8:1:2ff::9', forwarded: 'for=192.0.2.7' };
  for (const [options, expected] of [
    [{}, '127.0.0.1'],
    [{ trustedProxies: ['loopback'] }, '2001:db8:1:200::/56'],
    [{ trustedProxies: 1, ipv6Subnet: 64 }, '2001:db8:1:2ff::/64'],
    [{ trustedProxies: 1, clientIpHeader: 'Forwarded' }, '192.0.2.7'],
    [{ trustedProxies: ['10.0.0.0/8'] }, '127.0.0.1'],
  ]) await serve(key(options), async (ask) => assert.equal((await ask('/', headers)).body, expected));
  assert.throws(() => rateLimit({ clientIpHeader: 'Forwarded' }), invalid('trustedProxies'));
  assert.throws(() => rateLimit({ trustedProxies: ['::/0'] }), invalid('everybody'));
  assert.throws(() => rateLimit({ trustedProxies: 1, ipv6Subnet: false }), invalid('ipv6Subnet'));
  assert.throws(() => rateLimit({ partitionSalt: 'text' }), invalid('partitionSalt'));
});

test('the key of a mapped address costs a part of what it costs express-rate-limit', (t) => {
  const { ipKeyGenerator: theirs } = require('express-rate-limit');
  const { ipKeyGenerator: ours } = require('../lib/express.js');
  const took = (generator, address) => {
    const rounds = Array.from({ length: 5 }, () => {
      const begun = performance.now();
      for (let count = 0; count < 5000; count += 1) generator(address, 56);
      return (performance.now() - begun) / 5000;
    });
    return Math.min(...rounds) * 1e6;
  };
  for (const address of ['::ffff:192.0.2.7', '::ffff:c000:207']) {
    assert.equal(ours(address, 56), theirs(address, 56));
    const [own, their] = [took(ours, address), took(theirs, address)];
    t.diagnostic(`${address}: ${own.toFixed(0)} ns, express-rate-limit ${their.toFixed(0)} ns (bound: a fifth)`);
    assert.ok(own < 10 * (their / 5));
  }
});

test('who resets his connection is no proxy of this machine', async () => {
  const clients = new Clients({ trustedProxies: ['10.0.0.0/8', 'unix'] });
  const headersDistinct = { 'x-forwarded-for': ['192.0.2.66'] };
  const of = (socket) => clients.keyOf({ socket, headersDistinct, rawHeaders: [] });
  assert.equal(of({ remoteAddress: undefined, destroyed: true }), undefined);
  assert.equal(of(undefined), undefined);
  assert.equal(of({ remoteAddress: undefined, destroyed: false }), '192.0.2.66'); // a socket file
});

test('a header of which Node may have dropped lines is not read', async () => {
  const clients = new Clients({ trustedProxies: ['loopback'] });
  const keys = [];
  const server = http.createServer((request, response) => {
    keys.push(clients.keyOf(request));
    response.end();
  });
  await listen(server, async (port) => {
    for (const fillers of [10, 900, 1000, 1100]) {
      const socket = net.connect(port, '127.0.0.1');
      socket.write(`GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 6.6.6.6\r\n${'a:\r\n'.repeat(fillers)}X-Forwarded-For: 192.0.2.7\r\n\r\n`);
      await once(socket, 'data');
      socket.destroy();
    }
  });
  assert.deepEqual(keys, ['192.0.2.7', '192.0.2.7', '127.0.0.1', '127.0.0.1']);
});

test('a naming that is none takes nothing', async () => {
  const limiter = new Limiter('concurrency: 1 for 30s');
  for (const naming of [{ policyName: 5 }, { nope: 1 }, 'x', { partitionKey: 5 }]) {
    await assert.rejects(limiter.acquireWithAnswer('k', 1, new Answers(), naming), { code: 'MIRAB_INVALID_ARGUMENT' });
  }
  assert.equal((await limiter.peek('k')).used, 0);
});

test('who is refused for the store is told when to come, also without families', () =>
  serve(
    (request, response) =>
      rateLimit({ store: 'redis://127.0.0.1:1?timeout_ms=50&connect_timeout_ms=50', onStoreFailure: 'closed', legacyHeaders: false })(request, response, () => response.end()),
    async (ask) => {
      const { status, headers } = await ask();
      assert.deepEqual([status, headers.get('retry-after'), headers.get('cache-control')], [503, '1', 'no-store']);
    },
  ));
