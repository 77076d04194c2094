'use strict';

// Asks for one key without a pause, as a process, a worker of a cluster or a worker thread.
//
//   hammer.js cluster LIMITS STORE COUNT WORKERS    workers of a cluster, each asks so often; prints how many passed
//   hammer.js for-ever LIMITS STORE                 says "hammers" after the first decision, and goes on until it is killed

const cluster = require('node:cluster');
const { isMainThread, parentPort, workerData } = require('node:worker_threads');

const { Limiter } = require('..');

function hammer(limits, store, count) {
  const limiter = new Limiter(limits, { store, onStoreFailure: 'raise' });
  let passed = 0;
  for (let asked = 0; asked < count; asked++) passed += limiter.allowSync('k');
  return passed;
}

function hammerForEver(limits, store) {
  const limiter = new Limiter(limits, { store });
  const keys = Array(100).fill('k');
  limiter.acquireManySync(keys);
  process.stdout.write('hammers\n', () => {
    for (;;) limiter.acquireManySync(keys);
  });
}

function asPrimary(workers) {
  const passed = [];
  for (let number = 0; number < workers; number++) cluster.fork();
  cluster.on('message', (worker, message) => {
    passed.push(message);
    worker.kill();
    if (passed.length === workers) console.log(JSON.stringify(passed));
  });
}

if (isMainThread) {
  const [role, limits, store, count, workers] = process.argv.slice(2);
  if (role === 'for-ever') hammerForEver(limits, store);
  else if (role === 'cluster' && cluster.isPrimary) asPrimary(Number(workers));
  else process.send(hammer(limits, store, Number(count)), () => process.disconnect());
} else {
  const [limits, store, count] = workerData;
  parentPort.postMessage(hammer(limits, store, count));
}
