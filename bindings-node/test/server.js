'use strict';

const { execFile, spawn } = require('node:child_process');
const { mkdtempSync, rmSync } = require('node:fs');
const net = require('node:net');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { promisify } = require('node:util');

const { until } = require('./helpers.js');

/** Runs a Redis of its own while `run` uses it: its commands can be counted, and it can be stopped. */
async function withServer(run) {
  const port = await freePort();
  const dir = mkdtempSync(join(tmpdir(), 'mirab-'));
  const program = process.env.MIRAB_REDIS_SERVER ?? 'redis-server';
  const child = spawn(program, ['--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', dir], { stdio: 'ignore' });
  const ended = new Promise((resolve) => child.on('exit', resolve));
  const ask = async (...command) => (await promisify(execFile)('redis-cli', ['-p', port, ...command])).stdout;
  const server = {
    uri: (parameters = '') => `redis://127.0.0.1:${port}?${parameters}`,
    ask,
    stop: () => child.kill('SIGSTOP'),
    goOn: () => child.kill('SIGCONT'),
    /** How many decisions it was asked for, however many each of them holds. */
    async calls() {
      const lines = (await ask('INFO', 'commandstats')).match(/^cmdstat_eval(sha)?:calls=\d+/gm) ?? [];
      return lines.reduce((sum, line) => sum + Number(line.split('=')[1]), 0);
    },
  };
  try {
    await until(() => ask('PING').then((pong) => pong.startsWith('PONG'), () => false));
    return await run(server);
  } finally {
    child.kill('SIGKILL');
    await ended;
    rmSync(dir, { recursive: true });
  }
}

async function freePort() {
  const listener = net.createServer();
  await new Promise((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const { port } = listener.address();
  await new Promise((resolve) => listener.close(resolve));
  return String(port);
}

module.exports = { withServer };
