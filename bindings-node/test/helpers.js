'use strict';

const { spawn } = require('node:child_process');
const { randomUUID } = require('node:crypto');
const { EventEmitter } = require('node:events');
const { existsSync, readdirSync, rmSync } = require('node:fs');
const http = require('node:http');
const { join } = require('node:path');

const ROOT = join(__dirname, '..');

/** The key of the clients of the tests. */
const KEY = '127.0.0.1';

/** A key space of its own on the Redis of the tests, which must be there. */
function redis() {
  const uri = process.env.MIRAB_TEST_REDIS;
  if (!uri) throw new Error('MIRAB_TEST_REDIS is not set: run the tests with scripts/with-redis.sh');
  return `${uri}?timeout_ms=5000&prefix=${randomUUID()}`;
}

/** Where files of shared memory are. */
const SHARED = existsSync('/dev/shm') ? '/dev/shm' : '/tmp';

/** What the names of this process's begin with. */
const RUN = `node-${process.env.MIRAB_TEST_RUN ?? 'x'}-${process.pid}`;

/** The file of a store in shared memory. */
const fileOf = (uri) => `${SHARED}/mirab-${process.getuid()}-1-${/^shm:([^?]*)/.exec(uri)[1]}`;

/** A store in shared memory under a name of its own, whose file is removed when this process ends. */
function shm(parameters = 'max_keys=256&timeout_ms=5000') {
  return `shm:${RUN}-${randomUUID().slice(0, 13)}?${parameters}`;
}

process.on('exit', () => {
  const files = readdirSync(SHARED).filter((name) => name.startsWith(`mirab-${process.getuid()}-1-${RUN}-`));
  for (const name of files) rmSync(`${SHARED}/${name}`, { recursive: true, force: true });
});

/** Every store, by a name for the test. */
const stores = { memory: () => 'memory:', shm: () => shm(), redis };

/** A check that an error is a MirabError of this code whose message has these texts. */
function failure(code, ...texts) {
  return (error) => {
    const { MirabError } = require('..');
    return (
      error instanceof MirabError &&
      error.code === code &&
      (texts.every((text) => error.message.includes(text)) || fail(`"${error.message}" lacks ${texts}`))
    );
  };
}

function fail(message) {
  throw new Error(message);
}

/** Runs node in the package's folder; it must end by itself before the kill timer. */
function node(args, { env = {}, input, cwd = ROOT, killAfterMs = 15_000 } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd, env: { ...process.env, ...env } });
    const timer = setTimeout(() => child.kill('SIGKILL'), killAfterMs);
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (data) => (stdout += data));
    child.stderr.on('data', (data) => (stderr += data));
    child.on('error', reject);
    child.on('close', (status, signal) => {
      clearTimeout(timer);
      resolve({ status, signal, stdout, stderr });
    });
    child.stdin.end(input);
  });
}

/** Serves `app` (a request listener) while `run` asks; `ask(path, headers)` answers like fetch, with `body`. */
async function serve(app, run, host = '127.0.0.1') {
  const server = http.createServer(app);
  await new Promise((resolve) => server.listen(0, host, resolve));
  const { port } = server.address();
  const ask = async (path = '/', headers = {}) => {
    const response = await fetch(`http://${host.includes(':') ? `[${host}]` : host}:${port}${path}`, { headers });
    return { status: response.status, headers: response.headers, body: await response.text() };
  };
  try {
    return await run(ask);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

/** Lets `server` listen while `run` uses its port. */
async function listen(server, run) {
  const sockets = new Set();
  server.on('connection', (socket) => sockets.add(socket));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await run(server.address().port);
  } finally {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
}

/** Waits until `check` is true, for what the server does after its client has the answer. */
async function until(check) {
  for (let tries = 0; tries < 500; tries++) {
    if (await check()) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error(`never true: ${check}`);
}

const isFree = (limiter, key = KEY) => until(async () => (await limiter.getKey(key)) === undefined);

/** The warnings of mirab while `run` runs. */
async function warningsOf(run) {
  const warnings = [];
  const listener = ({ name, message }) => name === 'MirabWarning' && warnings.push(message);
  process.on('warning', listener);
  await run();
  await new Promise(setImmediate);
  process.off('warning', listener);
  return warnings;
}

/** A response without a server: it ends when told to. */
class Response extends EventEmitter {
  destroyed = false;
  statusCode = 200;
  setHeader() {}
  appendHeader() {}
  hasHeader() {
    return true;
  }
  end(body) {
    this.body = body;
  }
  close() {
    this.destroyed = true;
    this.emit('close');
  }
}

module.exports = { KEY, ROOT, Response, failure, fileOf, isFree, listen, node, redis, serve, shm, stores, until, warningsOf };
