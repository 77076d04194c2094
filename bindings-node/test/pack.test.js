'use strict';

// The packed packages, installed into an empty project as users do.

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const test = require('node:test');

const { version } = require('../package.json');
const { ROOT, node } = require('./helpers.js');

const folder = mkdtempSync(join(tmpdir(), 'mirab-pack-'));
const dist = join(folder, 'dist');
const main = join(dist, `mirab-${version}.tgz`);
const platform = join(dist, `mirab-linux-x64-gnu-${version}.tgz`);

const run = (command, args, cwd) => execFileSync(command, args, { cwd, encoding: 'utf8', stdio: 'pipe' });

function project(name, ...install) {
  const cwd = join(folder, name);
  mkdirSync(cwd);
  writeFileSync(join(cwd, 'package.json'), '{"private": true}');
  run('npm', ['install', '--offline', '--no-audit', '--no-fund', ...install], cwd);
  return cwd;
}

test.before(() => run('make', ['--silent', 'pack', `DIST=${dist}`, `STAGE=${join(folder, 'stage')}`], ROOT));
test.after(() => rmSync(folder, { recursive: true }));

test('the tarballs hold what is shipped and nothing else', () => {
  assert.deepEqual(readdirSync(dist).sort(), [main, platform].map((path) => path.slice(dist.length + 1)).sort());
  const list = (tarball) => run('tar', ['-tzf', tarball]).trim().split('\n').map((path) => path.replace('package/', '')).sort();
  assert.deepEqual(list(platform), ['LICENSE-APACHE', 'LICENSE-MIT', 'README.md', 'mirab.linux-x64-gnu.node', 'package.json']);
  assert.deepEqual(
    list(main),
    [
      'LICENSE-APACHE', 'LICENSE-MIT', 'README.md', 'package.json', 'index.js', 'index.mjs', 'index.d.ts', 'index.d.mts',
      ...readdirSync(join(ROOT, 'lib')).map((file) => `lib/${file}`),
    ].sort(),
  );
});

test('installed, both kinds of module work', async () => {
  const cwd = project('installed', main, platform);
  const limit = "new Limiter('5/minute').acquireSync('k').remaining, typeof rateLimit()";
  const cjs = await node(['-p', `const { Limiter } = require('mirab'); const { rateLimit } = require('mirab/express'); [${limit}].join()`], { cwd });
  assert.deepEqual([cjs.stdout, cjs.stderr], ['4,function\n', '']);
  const code = `import { Limiter } from 'mirab'; import { rateLimit } from 'mirab/express'; console.log([${limit}].join())`;
  const esm = await node(['--input-type=module', '-e', code], { cwd });
  assert.deepEqual([esm.stdout, esm.stderr], ['4,function\n', '']);
});

test('without the native package the error names it', async () => {
  const cwd = project('alone', '--omit=optional', main);
  const { stderr, status } = await node(['-e', "require('mirab')"], { cwd });
  assert.equal(status, 1);
  assert.match(stderr, new RegExp(`mirab needs the package mirab-linux-x64-gnu@${version}`));
  assert.match(stderr, /Cannot find module 'mirab-linux-x64-gnu'/);
});

test('a native package of another version is refused', async () => {
  const cwd = project('mixed', main, platform);
  const path = join(cwd, 'node_modules/mirab/package.json');
  writeFileSync(path, readFileSync(path, 'utf8').replace(`"version": "${version}"`, '"version": "9.9.9"'));
  const { stderr } = await node(['-e', "require('mirab')"], { cwd });
  assert.ok(stderr.includes(`mirab 9.9.9 found the native package of version ${version}`), stderr);
});
