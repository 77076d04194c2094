/**
 * The worker of the Node class.
 *
 *     worker.mjs                               slots, asked for on stdin
 *     worker.mjs --bytes mirab.allow 100000    bytes per key
 *     worker.mjs --startup                     milliseconds of `require('mirab')`
 *
 * What it is asked and answers stands in ../README.md, and is checked by ../protocol.py.
 */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

import { CONTENDERS } from './contenders/index.mjs';
import { ENDLESS, LASTING, SCENARIOS, keysOf } from './scenarios.mjs';
import { Slots, check, collect } from './slots.mjs';

const PAGE = 4096;
const REQUIRES = 11;
const REQUIRE = "const begin = performance.now(); require('mirab'); console.log(performance.now() - begin)";

const require = createRequire(import.meta.url);
const say = (answer) => process.stdout.write(`${JSON.stringify(answer)}\n`);

/** What there is to measure, the contenders of a scenario next to each other. */
function hello() {
  const { dependencies } = require('./package.json');
  return {
    class: 'node-memory',
    versions: { node: process.versions.node, mirab: require('mirab/package.json').version, ...dependencies },
    contenders: Object.fromEntries(CONTENDERS.map(({ name, kind, note }) => [name, { kind, note }])),
    cells: SCENARIOS.flatMap(({ name }) => (
      CONTENDERS.filter(({ scenarios }) => scenarios.includes(name)).map((contender) => ({ scenario: name, contender: contender.name }))
    )),
    bytes: CONTENDERS.map(({ name }) => name).filter((name) => !name.endsWith('promise')),
  };
}

function named(contender) {
  const found = CONTENDERS.find(({ name }) => name === contender);
  if (found === undefined) throw new Error(`no contender ${contender}`);
  return found;
}

/** Every line of stdin is a slot. */
async function answerSlots() {
  say(hello());
  const made = new Map();
  for await (const line of createInterface({ input: process.stdin })) {
    const { scenario, contender, ms } = JSON.parse(line);
    const cell = `${scenario} of ${contender}`;
    try {
      if (!made.has(cell)) made.set(cell, await Slots.of(named(contender), SCENARIOS.find(({ name }) => name === scenario)));
      say(await made.get(cell).measure(ms));
    } catch (error) {
      say({ error: String(error) });
    }
  }
}

/** By how much this process grows for each key that comes for the first time; not by what was garbage at once. */
async function bytesPerKey(contender, count) {
  const { make } = named(contender);
  const keys = keysOf(count);
  await make([ENDLESS])(new Array(count).fill(keys[0]), 0, count, true);
  const decide = make([LASTING]);
  collect();
  const before = resident();
  check(await decide(keys, 0, count, true), true);
  collect();
  return (resident() - before) / count;
}

const resident = () => Number(readFileSync('/proc/self/statm', 'ascii').split(' ')[1]) * PAGE;

/** The median of what fresh processes measure around `require('mirab')`. */
function startup() {
  const options = { cwd: import.meta.dirname, encoding: 'ascii' };
  const times = Array.from({ length: REQUIRES }, () => Number(execFileSync(process.execPath, ['-e', REQUIRE], options)));
  return times.sort((a, b) => a - b)[(REQUIRES - 1) / 2];
}

const [verb, ...rest] = process.argv.slice(2);
if (verb === '--bytes') say({ bytes_per_key: await bytesPerKey(rest[0], Number(rest[1])) });
else if (verb === '--startup') say({ ms: startup() });
else await answerSlots();
process.exit(); // the windows of some peers are timers
