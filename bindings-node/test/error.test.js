'use strict';

const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const test = require('node:test');

const { Limiter, MirabError } = require('..');
const native = require('../lib/native.js');
const { ROOT } = require('./helpers.js');

test('every kind of the core has its code, and the types name it', () => {
  const kinds = native.errorKinds();
  assert.equal(kinds.length, 13);
  for (const kind of kinds) {
    const error = new MirabError(kind, 'why');
    assert.equal(error.code, `MIRAB_${kind.toUpperCase()}`);
    assert.equal(error.kind, kind);
  }
  const types = readFileSync(join(ROOT, 'index.d.ts'), 'utf8');
  const union = /type MirabErrorKind =([^;]*);/.exec(types)[1];
  assert.deepEqual([...union.matchAll(/'(\w+)'/g)].map((match) => match[1]), kinds);
});

test('an error of the core is a MirabError with a stack of its caller', () => {
  assert.throws(
    () => new Limiter('0/second'),
    (error) => {
      assert.ok(error instanceof MirabError);
      assert.ok(error instanceof Error);
      assert.equal(error.name, 'MirabError');
      assert.equal(String(error), `MirabError: ${error.message}`);
      assert.ok(error.stack.includes('error.test.js'));
      return true;
    },
  );
});

test('the addon exports what its declarations name', () => {
  const types = readFileSync(join(ROOT, 'lib/native.d.ts'), 'utf8');
  const declared = [...types.matchAll(/^export (?:function|const) (\w+)/gm)].map((match) => match[1]);
  assert.deepEqual(declared.sort(), Object.keys(native).sort());
});

test('a fault inside the addon is an error and no crash', () => {
  for (const [name, value] of Object.entries(native)) {
    if (typeof value !== 'function' || /^(errorKinds|limitDeny|limitUnlimited)$/.test(name)) continue;
    assert.throws(() => value(), MirabError, name);
    assert.throws(() => value({}, Symbol('x'), null, [], () => {}), MirabError, name);
  }
  assert.throws(() => native.acquire(123456, 'k', 1), { code: 'MIRAB_CLOSED' });
  assert.throws(() => native.acquire(-1e300, 'k', 1), { code: 'MIRAB_CLOSED' });
});
