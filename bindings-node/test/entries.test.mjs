import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import test from 'node:test';

import * as esm from 'mirab';
import defaulted, { ipKeyGenerator, rateLimit } from 'mirab/express';

const require = createRequire(import.meta.url);
const cjs = require('mirab');
const NAMES = ['Decision', 'Limit', 'Limiter', 'ManualClock', 'MirabError'];

test('both kinds of module have the same names and the same classes', () => {
  assert.deepEqual(Object.keys(cjs).sort(), NAMES);
  assert.deepEqual(Object.keys(esm).sort(), NAMES);
  for (const name of NAMES) assert.equal(esm[name], cjs[name]);
});

test('mirab/express is callable in CommonJS, and has its names and a default', () => {
  const express = require('mirab/express');
  assert.equal(typeof express(), 'function');
  assert.equal(express, rateLimit);
  assert.equal(express.rateLimit, rateLimit);
  assert.equal(express.default, rateLimit);
  assert.equal(express.ipKeyGenerator, ipKeyGenerator);
  assert.equal(defaulted, rateLimit);
});

test('nothing else can be reached', async () => {
  assert.throws(() => require('mirab/lib/native.js'), { code: 'ERR_PACKAGE_PATH_NOT_EXPORTED' });
  await assert.rejects(import('mirab/lib/limiter.js'), { code: 'ERR_PACKAGE_PATH_NOT_EXPORTED' });
});

test('the versions of both packages are one', () => {
  const read = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'));
  const main = read('../package.json');
  const platform = read('../npm/linux-x64-gnu/package.json');
  assert.equal(platform.version, main.version);
  assert.deepEqual(main.optionalDependencies, { [platform.name]: main.version });
  assert.equal(main.dependencies, undefined);
  for (const { scripts = {} } of [main, platform]) {
    assert.deepEqual(Object.keys(scripts).filter((name) => /install|prepare/.test(name)), []);
  }
});
