'use strict';

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const { join } = require('node:path');
const test = require('node:test');

const { ROOT } = require('./helpers.js');

for (const resolution of ['node16', 'bundler']) {
  test(`the types hold under the resolution ${resolution}`, () => {
    const tsc = join(ROOT, 'node_modules/.bin/tsc');
    const { status, stdout } = spawnSync(tsc, ['-p', join(__dirname, 'types', resolution)], { encoding: 'utf8' });
    assert.equal(stdout, '');
    assert.equal(status, 0);
  });
}
