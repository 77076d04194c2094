'use strict';

const assert = require('node:assert/strict');
const test = require('node:test');

const { Limiter, ManualClock } = require('..');
const { failure, node, stores } = require('./helpers.js');

test('a manual clock moves by hand only', () => {
  const clock = new ManualClock();
  assert.equal(clock.nowUs, 0);
  clock.advanceMs(1.5);
  clock.advanceUs(7n);
  assert.equal(clock.nowUs, 1507);
  clock.setUs(3);
  assert.equal(clock.nowUs, 3);
  assert.equal(new ManualClock(2 ** 52).nowUs, 2 ** 52);
  assert.equal(new ManualClock(9n).nowUs, 9);
});

test('a manual clock stays in the domain', () => {
  const clock = new ManualClock(10);
  for (const [move, ...texts] of [
    [() => new ManualClock(-1), 'startUs -1'],
    [() => new ManualClock(2 ** 52 + 1), '4503599627370497'],
    [() => new ManualClock('5'), "'5'"],
    [() => clock.advanceMs(-1), '-1'],
    [() => clock.advanceMs(NaN), 'NaN'],
    [() => clock.advanceMs(Infinity), 'inf'],
    [() => clock.advanceMs(0.0004), '0.0004'],
    [() => clock.advanceMs('1'), "advanceMs '1'"],
    [() => clock.advanceUs(1.5), 'advanceUs 1.5'],
    [() => clock.advanceUs(2 ** 52), '2^52'],
    [() => clock.setUs(-1), 'setUs -1'],
    [() => clock.setUs(2 ** 52 + 1), '4503599627370497'],
  ]) {
    assert.throws(move, failure('MIRAB_INVALID_ARGUMENT', ...texts));
    assert.equal(clock.nowUs, 10);
  }
});

for (const [name, store] of Object.entries(stores)) {
  test(`a function is a clock, read once a decision, on ${name}`, async () => {
    let ms = 1_790_000_000_000;
    let reads = 0;
    const clock = () => {
      reads += 1;
      return ms;
    };
    const limiter = new Limiter('1/second', { store: store(), clock });
    assert.equal(await limiter.allow('k'), true);
    assert.equal((await limiter.acquire('k')).retryAfterMs, 1000);
    ms += 999.999;
    assert.equal((await limiter.peek('k')).retryAfterMs, 0.001);
    ms += 0.001;
    assert.equal(await limiter.allow('k'), true);
    await limiter.reset('k');
    assert.equal(reads, 5);
  });

  test(`a clock that fails is an error on ${name}`, async () => {
    for (const [value, ...texts] of [
      [NaN, 'NaN'],
      [-1, '-1'],
      [1e14, '2^52'],
      [1e300, '1e300'],
      ['5', "'5'"],
      [undefined, 'undefined'],
      [new Date(0), '1970'],
    ]) {
      const limiter = new Limiter('1/second', { store: store(), clock: () => value });
      await assert.rejects(limiter.allow('k'), failure('MIRAB_INVALID_ARGUMENT', ...texts));
    }
    const broken = new Limiter('1/second', {
      store: store(),
      clock: () => {
        throw new TypeError('no time');
      },
    });
    await assert.rejects(broken.acquire('k'), new TypeError('no time'));
  });

  test(`MIRAB_CLOCK=host reads Date.now, which mocked timers move, on ${name}`, async () => {
    const script = `
      const { mock } = require('node:test');
      const { Limiter } = require('.');
      const limiter = new Limiter('1/second', { store: process.argv[1] });
      new Limiter('1/second');
      (async () => {
        mock.timers.enable({ apis: ['Date'], now: 1_000_000 });
        const seen = [await limiter.allow('k'), await limiter.allow('k')];
        mock.timers.tick(999);
        seen.push(await limiter.allow('k'));
        mock.timers.tick(1);
        seen.push(await limiter.allow('k'), (await limiter.acquire('k')).retryAfterMs);
        console.log(JSON.stringify(seen));
      })();`;
    const { stdout, stderr } = await node(['-e', script, store()], { env: { MIRAB_CLOCK: 'host' } });
    assert.equal(stdout, '[true,false,false,true,1000]\n');
    assert.equal(stderr.match(/MirabWarning: MIRAB_CLOCK=host/g).length, 1);
  });
}

test('a given clock beats MIRAB_CLOCK', async () => {
  const script = `
    const { Limiter, ManualClock } = require('.');
    new Limiter('1/second', { clock: new ManualClock() }).allowSync('k');`;
  const { stderr, status } = await node(['-e', script], { env: { MIRAB_CLOCK: 'host' } });
  assert.equal(stderr, '');
  assert.equal(status, 0);
});
