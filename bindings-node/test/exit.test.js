'use strict';

const assert = require('node:assert/strict');
const test = require('node:test');

const { node, redis } = require('./helpers.js');

async function ends(script, { args = [], stdout = '', status = 0 } = {}) {
  const ended = await node(['-e', script, ...args]);
  assert.deepEqual(ended, { status, signal: null, stdout, stderr: '' });
}

test('a process with an open Redis limiter ends by itself', () =>
  ends(`const { Limiter } = require('.'); globalThis.limiter = new Limiter('5/minute', { store: process.argv[1] });`, { args: [redis()] }));

test('a process ends by itself after a decision', () =>
  ends(
    `const { Limiter } = require('.');
     globalThis.limiter = new Limiter('5/minute', { store: process.argv[1] });
     limiter.acquire('k').then((decision) => console.log(decision.remaining));`,
    { args: [redis()], stdout: '4\n' },
  ));

test('a process stays alive while decisions are in flight', () =>
  ends(
    `const { Limiter } = require('.');
     const limiter = new Limiter('5/minute', { store: 'redis://127.0.0.1:1', onStoreFailure: 'raise' });
     Promise.allSettled(Array.from({ length: 9 }, () => limiter.acquire('k')))
       .then((all) => console.log(all.filter((one) => /^MIRAB_STORE_/.test(one.reason.code)).length));`,
    { stdout: '9\n' },
  ));

test('a process may exit with decisions in flight', () =>
  ends(
    `const { Limiter } = require('.');
     const limiter = new Limiter('5/minute', { store: process.argv[1] });
     for (let i = 0; i < 50; i++) limiter.acquire('k').catch(() => {});
     setImmediate(() => process.exit(7));`,
    { args: [redis()], status: 7 },
  ));

test('a worker with open limiters ends by itself', () =>
  ends(
    `const { Worker } = require('node:worker_threads');
     const code = "const { Limiter } = require('.');" +
       "globalThis.limiter = new Limiter('5/minute', { store: " + JSON.stringify(process.argv[1]) + " });" +
       "globalThis.local = new Limiter('5/minute'); local.allowSync('k');" +
       "limiter.acquire('k').then((decision) => require('node:worker_threads').parentPort.postMessage(decision.remaining));";
     new Worker(code, { eval: true }).on('message', console.log).on('exit', (status) => console.log('exit', status));`,
    { args: [redis()], stdout: '4\nexit 0\n' },
  ));

test('a hundred workers come and go, half of them in the middle of decisions', () =>
  ends(
    `const { Worker } = require('node:worker_threads');
     const code = "const { Limiter, ManualClock } = require('.');" +
       "const { threadId, workerData, parentPort } = require('node:worker_threads');" +
       "const limiter = new Limiter('5/minute', { store: workerData });" +
       "const local = new Limiter('5/minute', { clock: new ManualClock() });" +
       "for (let i = 0; i < 20; i++) { local.acquireSync('k' + i); limiter.acquire('k' + i).catch(() => {}); }" +
       "parentPort.postMessage('started');";
     (async () => {
       let ended = 0;
       for (let batch = 0; batch < 25; batch++) {
         await Promise.all([0, 1, 2, 3].map((index) => new Promise((resolve, reject) => {
           const worker = new Worker(code, { eval: true, workerData: process.argv[1] });
           worker.on('message', () => { if (index % 2) worker.terminate(); });
           worker.on('error', reject);
           worker.on('exit', () => { ended += 1; resolve(); });
         })));
       }
       console.log(ended);
     })();`,
    { args: [redis()], stdout: '100\n' },
  ));
