'use strict';

const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const test = require('node:test');

const mirab = require('..');
const { ROOT, node, serve } = require('./helpers.js');

const text = readFileSync(join(ROOT, 'README.md'), 'utf8');
const blocks = (language) => [...text.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'))].map((match) => match[1]);

test('the first example prints what it promises, word for word', async () => {
  const { stdout, stderr } = await node(['-'], { input: blocks('js')[0] });
  assert.equal(stderr, '');
  assert.equal(stdout, blocks('text')[0]);
});

test('the table of limits says the same on both sides', () => {
  const rows = [...text.matchAll(/^\| (`[^|]*) \| (`Limit[^|]*) \|/gm)];
  assert.equal(rows.length, 7);
  for (const [, notations, constructors] of rows) {
    const of = (cell) => [...cell.matchAll(/`([^`]*)`/g)].map((match) => match[1]);
    const made = of(constructors).map((code) => new Function('Limit', `return ${code}`)(mirab.Limit));
    assert.deepEqual(made.map(String), of(notations).map((notation) => String(mirab.Limit.parse(notation))));
  }
});

test('the example of a cost known afterwards settles it', async () => {
  const limiter = new mirab.Limiter('1000/hour');
  const run = new Function('limiter', 'complete', 'prompt', `return (async () => { ${blocks('js')[1]} })()`);
  await run(limiter, async () => 120, 'hello');
  assert.equal((await limiter.peek('user:42')).used, 120);
  await assert.rejects(run(limiter, () => Promise.reject(new Error('mine'))), /mine/);
  assert.equal((await limiter.peek('user:42')).used, 120);
});

test('the example of waiting waits', async () => {
  const clock = new mirab.ManualClock();
  const limiter = new mirab.Limiter('1/second', { clock });
  const run = new Function('limiter', 'send', `return (async () => { ${blocks('js')[2]} })()`);
  let sent = 0;
  for (let round = 0; round < 3; round++) await run(limiter, () => (sent += 1));
  assert.deepEqual([sent, clock.nowUs], [3, 2_000_000]);
});

test('the example of concurrency gives back what it took', async () => {
  const limiter = new mirab.Limiter('concurrency: 2 for 30s');
  const run = new Function('limiter', 'makeReport', `return (async () => { ${blocks('js')[3]} })()`);
  await run(limiter, async () => assert.equal((await limiter.peek('report')).used, 1));
  await assert.rejects(run(limiter, () => Promise.reject(new Error('mine'))), /mine/);
  assert.equal((await limiter.peek('report')).used, 0);
});

test('the Express example starts, and limits a login', async () => {
  const example = blocks('js')[5].replace('redis://127.0.0.1:6379', process.env.MIRAB_TEST_REDIS);
  const app = new Function('require', `${example}\nreturn app;`)(require);
  await serve(app, async (ask) => {
    const { status, headers } = await ask('/');
    assert.equal(status, 404);
    assert.match(headers.get('ratelimit'), /^"20\/second burst 60"; r=59/);
  });
});

test('the error handler hides the address of the store, and leaves other errors alone', async (t) => {
  const told = t.mock.method(console, 'error', () => {});
  const app = require('express')();
  app.get('/mine', () => { throw Object.assign(new Error('mine'), { status: 418 }); });
  app.use(require('mirab/express').rateLimit({ store: 'redis://127.0.0.1:1', onStoreFailure: 'raise' }));
  app.set('env', 'test');
  new Function('app', blocks('js')[6])(app);
  await serve(app, async (ask) => {
    const { status, body } = await ask('/');
    assert.deepEqual([status, body], [503, 'Please try again later.']);
    assert.match(told.mock.calls[0].arguments[0], /127\.0\.0\.1/);
    assert.equal((await ask('/mine')).status, 418);
  });
});

test('the table of health names every field of it', async () => {
  const table = /#### Health(.*?)^## /ms.exec(text)[1];
  for (const name of Object.keys(await new mirab.Limiter('5/minute').health())) assert.match(table, new RegExp(`\\| .*\`${name}\``));
});

test('the bare server answers', async () => {
  let listener;
  const http = { createServer: (given) => (listener = given) };
  new Function('http', 'rateLimit', blocks('js')[7])(http, require('mirab/express').rateLimit);
  await serve(listener, async (ask) => assert.equal((await ask()).body, 'welcome'));
});
