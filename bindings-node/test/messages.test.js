'use strict';

// What error messages show of a value, and what they call it.

const assert = require('node:assert/strict');
const test = require('node:test');
const { MessageChannel } = require('node:worker_threads');

const { Limit, Limiter, ManualClock, MirabError } = require('..');
const { ipKeyGenerator, rateLimit } = require('../lib/express.js');
const { failure, stores } = require('./helpers.js');

const PASSWORD = 'S3cr3tPW';
const URI = `redis://:${PASSWORD}@h`;

/** A value in every place that quotes one. */
const PLACES = {
  store: (value) => new Limiter('5/minute', { store: value }),
  options: (value) => new Limiter('5/minute', value),
  'an option\'s name': (value) => new Limiter('5/minute', { [value]: true }),
  clock: (value) => new Limiter('5/minute', { clock: value }),
  'the clock returned': (value) => new Limiter('5/minute', { clock: () => value }).acquireSync('k'),
  onStoreFailure: (value) => new Limiter('5/minute', { onStoreFailure: value }),
  instances: (value) => new Limiter('5/minute', { instances: value }),
  limits: (value) => new Limiter([value]),
  limit: (value) => Limit.slidingLog(value, 1000),
  name: (value) => Limit.parse('5/minute').withName(value),
  refillRate: (value) => Limit.tokenBucket({ capacity: 1, refillRate: value }),
  anchor: (value) => Limit.fixedWindow(5, 1000, { anchor: value }),
  cost: (value) => new Limiter('5/minute').acquireSync('k', value),
  item: (value) => new Limiter('5/minute').acquireManySync([[value, 1, 2]]),
  decision: (value) => new Limiter('5/minute').refundSync(value),
  startUs: (value) => new ManualClock(value),
  ip: (value) => ipKeyGenerator(Object(value)),
  rateLimit: (value) => rateLimit(value),
  ...Object.fromEntries(
    ['store', 'windowMs', 'limit', 'limits', 'statusCode', 'standardHeaders', 'skip', 'ipv6Subnet', 'legacyHeaders', 'passOnStoreError', 'validate', 'prefix'].map(
      (name) => [`rateLimit ${name}`, (value) => rateLimit({ [name]: name === 'prefix' ? Object(value) : value })],
    ),
  ),
};

const VALUES = {
  'a text': URI,
  'a long text': `redis://:${PASSWORD.repeat(20)}@h`,
  'a password with blanks and quotes': `redis://u:a '${PASSWORD}"\n@b@h`,
  'a text in an object': new String(URI),
  'a URL': new URL(URI),
  'an array': [URI, 'memory:', `redis://:${PASSWORD.repeat(20)}@h`],
  'URLs in an array': [new URL(URI), { url: URI }, [URI]],
  'an object': { url: URI },
  'an object of parts': { host: 'h', password: PASSWORD },
  'a map': new Map([['url', URI]]),
  'a symbol': Symbol(URI),
  'an error': Object.assign(new Error(`no ${URI}`), { password: PASSWORD }),
  'a function': Object.assign(function store() {}, { password: PASSWORD }),
  'an object that shows itself': { [Symbol.for('nodejs.util.inspect.custom')]: () => PASSWORD },
};

for (const [what, value] of Object.entries(VALUES)) {
  test(`no password is shown of ${what}`, () => {
    for (const [place, use] of Object.entries(PLACES)) {
      if (typeof value === 'symbol' && /name$/.test(place)) continue; // symbols name no option
      try {
        use(value);
      } catch (error) {
        assert.ok(error instanceof MirabError || place === "an option's name", `${place}: ${error.stack}`);
        assert.ok(!`${error.message}${error.stack}`.includes(PASSWORD), `${place}: ${error.message}`);
      }
    }
  });
}

test('what is shown of a value says what it is', () => {
  const long = 'x'.repeat(500);
  for (const [value, shown] of [
    [URI, "'redis://…@h'"],
    [[URI, 5], "[ 'redis://…@h', 5 ]"],
    [[], '[]'],
    [[[1], { a: 1 }], '[ [Array], [Object] ]'],
    [new String(URI), "[String: 'redis://…@h']"],
    [{ a: 1 }, '[Object]'],
    [null, 'null'],
    ['redis://h', "'redis://h'"],
    ['a@b://c', "'a@b://c'"],
    [long, `'${long.slice(0, 60)}'... 440 more characters`],
    [Array(500).fill(7), `[ ${'7, '.repeat(500).slice(0, 98)}...`],
  ]) {
    assert.throws(() => new Limiter('5/minute', { clock: value ?? 0, instances: value }), failure('MIRAB_INVALID_ARGUMENT', value === null ? '0' : shown));
    assert.throws(() => new Limiter('5/minute', { instances: value }), failure('MIRAB_INVALID_ARGUMENT', `instances ${shown}: `));
  }
});

test('a store in the place of the limits is told where it belongs', () => {
  assert.throws(() => new Limiter(URI), failure('MIRAB_INVALID_LIMIT', "'redis://…@h'", 'option store'));
  const scope = `https://someone@h/${'x'.repeat(9)}`;
  assert.equal(new Limiter(Limit.parse('5/minute').withScope(scope)).acquireSync('k').remaining, 4);
});

test('options are an object of options', () => {
  class Config {
    store = 'memory:';
  }
  for (const options of [{}, Object.create(null), { store: undefined }, new Config()]) new Limiter('5/minute', options);
  for (const options of [URI, new URL(URI), [URI], new String(URI), new Map(), new Date(), Promise.resolve({}), () => {}, null, 5]) {
    assert.throws(() => new Limiter('5/minute', options), failure('MIRAB_INVALID_ARGUMENT', 'the options of a Limiter', 'object'));
  }
});

test('messages use the names of this interface, and say the range that is right', () => {
  const count = 'from 1 to 4294967295';
  for (const [make, code, ...texts] of [
    [() => new Limiter('5/minute', { instances: 1.5 }), 'MIRAB_INVALID_ARGUMENT', 'instances 1.5', count],
    [() => new Limiter('5/minute', { instances: 0 }), 'MIRAB_INVALID_ARGUMENT', '0 instances', '1 to 4294967295'],
    [() => new Limiter('5/minute', { onStoreFailure: 'opn' }), 'MIRAB_INVALID_ARGUMENT', "onStoreFailure 'opn'", "'local', 'open', 'closed', 'raise'"],
    [() => Limit.tokenBucket(1.5, 1000), 'MIRAB_INVALID_LIMIT', 'limit 1.5', count],
    [() => Limit.tokenBucket(5, 1000, { capacity: -1 }), 'MIRAB_INVALID_LIMIT', 'capacity -1', count],
    [() => Limit.tokenBucket({ capacity: 0.5, refillRate: 1 }), 'MIRAB_INVALID_LIMIT', 'capacity 0.5', count],
    [() => Limit.fixedWindow('5', 1000), 'MIRAB_INVALID_LIMIT', "limit '5'", count],
    [() => Limit.slidingWindow(2 ** 54, 1000), 'MIRAB_INVALID_LIMIT', 'limit 18014398509481984', count],
    [() => Limit.concurrency(-1, 1000), 'MIRAB_INVALID_LIMIT', 'limit -1', count],
    [() => Limit.leakyBucket(5, 1000, { queue: 1.5 }), 'MIRAB_INVALID_LIMIT', 'queue 1.5', 'from 0 to 4294967294'],
    [() => Limit.slidingLog(5, 1000, { buckets: 1.5 }), 'MIRAB_INVALID_LIMIT', 'buckets 1.5', 'from 1 to 1024'],
    [() => new ManualClock(0.5), 'MIRAB_INVALID_ARGUMENT', 'startUs 0.5', '(2^52)'],
    [() => new Limiter('5/minute').acquireSync('k', 1.5), 'MIRAB_INVALID_ARGUMENT', 'cost 1.5', '(2^53)'],
  ]) {
    assert.throws(make, failure(code, ...texts));
  }
});

test('a lone surrogate is refused wherever it is no key', () => {
  const lone = 'a\ud800b';
  for (const [make, code] of [
    [() => new Limiter('5/minute', { store: `redis://${lone}` }), 'MIRAB_INVALID_URI'],
    [() => new Limiter('5/minute', { store: `memory:${lone}` }), 'MIRAB_INVALID_URI'],
    [() => new Limiter(`${lone}=5/minute`), 'MIRAB_INVALID_LIMIT'],
    [() => new Limiter(['9/hour', `fixed_window: 5/day in ${lone}`]), 'MIRAB_INVALID_LIMIT'],
    [() => Limit.parse(`fixed_window: 5/day in ${lone}`), 'MIRAB_INVALID_LIMIT'],
    [() => Limit.tokenBucket(5, 1000, { name: lone }), 'MIRAB_INVALID_LIMIT'],
    [() => Limit.tokenBucket({ capacity: 5, refillRate: lone }), 'MIRAB_INVALID_LIMIT'],
    [() => Limit.fixedWindow(5, 1000, { anchor: lone }), 'MIRAB_INVALID_LIMIT'],
    [() => Limit.parse('5/minute').withName(lone), 'MIRAB_INVALID_LIMIT'],
    [() => Limit.parse('5/minute').withScope(lone), 'MIRAB_INVALID_LIMIT'],
    [() => rateLimit({ limits: `${lone}=5/minute` }), 'MIRAB_INVALID_LIMIT'],
    [() => rateLimit({ store: `redis://${lone}` }), 'MIRAB_INVALID_URI'],
    [() => rateLimit({ prefix: lone }), 'MIRAB_INVALID_ARGUMENT'],
    [() => rateLimit({ identifier: lone }), 'MIRAB_INVALID_ARGUMENT'],
  ]) {
    assert.throws(make, failure(code, 'lone surrogate'));
  }
  assert.equal(String(Limit.parse('5/minute').withScope('😀')), '5/minute');
});

for (const [name, store] of Object.entries(stores)) {
  test(`bytes that were given away are an error that says so on ${name}`, async () => {
    const limiter = new Limiter('concurrency: 9 for 30s', { store: store() });
    const gone = new Uint8Array([1, 2, 3]);
    new MessageChannel().port1.postMessage(gone.buffer, [gone.buffer]);
    const small = new Uint8Array(new ArrayBuffer(8, { maxByteLength: 16 }), 4, 4);
    small.buffer.resize(2);
    for (const key of [gone, small]) {
      for (const [call, ...args] of [['acquire'], ['allow'], ['peek'], ['wait'], ['reset'], ['block', 1000], ['unblock']]) {
        await assert.rejects(limiter[call](key, ...args), failure('MIRAB_INVALID_ARGUMENT', 'key: ', 'transferred'), call);
      }
      await assert.rejects(limiter.acquireMany(['a', key]), failure('MIRAB_INVALID_ARGUMENT', 'item 1: key: ', 'transferred'));
    }
    await assert.rejects(limiter.acquire(new Uint8Array(0)), failure('MIRAB_INVALID_ARGUMENT', 'the key is empty'));
  });
}

test('a timeout of 0 asks once', async () => {
  const limiter = new Limiter('1/hour');
  assert.equal((await limiter.wait('k', 1, { timeoutMs: 0 })).allowed, true);
  assert.equal((await limiter.wait('k', 1, { timeoutMs: 0 })).allowed, false);
});
