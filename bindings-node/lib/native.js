'use strict';

const { existsSync } = require('node:fs');
const { join } = require('node:path');

const { version } = require('../package.json');
const { MirabError } = require('./error.js');

/** The package that carries the addon of each platform. */
const PACKAGES = { 'linux-x64': 'mirab-linux-x64-gnu' };

function load() {
  const local = join(__dirname, '..', 'mirab.linux-x64-gnu.node'); // a development tree's own build
  if (existsSync(local)) return require(local);

  const platform = `${process.platform}-${process.arch}`;
  const name = PACKAGES[platform];
  if (name === undefined) {
    throw new Error(`mirab has no native package for ${platform}; it has them for ${Object.keys(PACKAGES).join(', ')}`);
  }
  try {
    return require(name);
  } catch (cause) {
    throw new Error(
      `mirab needs the package ${name}@${version}, which could not be loaded. Install again without ` +
        '--omit=optional (and, if a lock file from another platform hides it, without that file). ' +
        'It needs glibc: Alpine and other musl systems are not supported.',
      { cause },
    );
  }
}

const native = load();
if (native.version !== version) {
  throw new Error(`mirab ${version} found the native package of version ${native.version}: install the same version of both`);
}
native.setErrorClass(MirabError);

module.exports = native;
