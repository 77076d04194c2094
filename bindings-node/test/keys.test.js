'use strict';

const assert = require('node:assert/strict');
const test = require('node:test');

const { Limiter, ManualClock } = require('..');
const { failure, stores } = require('./helpers.js');

/** Keys that must never meet: each takes one unit, and each must find a full bucket. */
const APART = [
  'a', 'b', 'A', 'a ', ' a', 'a\0', 'a\0b', '\0', '\0\0', '"', "'", '`', '{', '}', '{a}', '{a}b', '{}', '}{', '*', '?', '[a]',
  '\\', '\r\n', '%00', '%', '%7B', 'a:b', 'a/b', '~', '~a', 'user:42', 'é', 'e\u0301', '日本', '😀', '\ufffd', '-0', 'null',
  'x'.repeat(127), 'x'.repeat(128), 'x'.repeat(129), 'x'.repeat(10_000), `${'x'.repeat(9_999)}y`, 'x'.repeat(65_536),
  'é'.repeat(127), 'é'.repeat(128), '日'.repeat(83), '日'.repeat(84), '日'.repeat(85), '😀'.repeat(63), '😀'.repeat(64),
  'x'.repeat(251), 'x'.repeat(252), 'x'.repeat(253), 'x'.repeat(254), 'x'.repeat(255), 'x'.repeat(256), 'x'.repeat(257),
];

for (const [name, store] of Object.entries(stores)) {
  test(`keys never meet on ${name}`, async () => {
    const limiter = new Limiter('2/hour', { store: store(), clock: new ManualClock() });
    for (const key of APART) assert.equal((await limiter.acquire(key)).remaining, 1, JSON.stringify(key.slice(0, 20)));
    for (const key of APART) assert.equal((await limiter.acquire(Buffer.from(key))).remaining, 0, JSON.stringify(key.slice(0, 20)));
  });

  test(`bytes that are no text are a key on ${name}`, async () => {
    const limiter = new Limiter('2/hour', { store: store(), clock: new ManualClock() });
    const keys = [[0xff], [0xff, 0xfe], [0xc3], [0x80], [0], [0xef, 0xbf, 0xbd]].map((bytes) => Uint8Array.from(bytes));
    for (const key of keys) assert.equal((await limiter.acquire(key)).remaining, 1);
    assert.equal((await limiter.acquire('\ud800')).remaining, 0); // a lone surrogate is U+FFFD, EF BF BD
    const part = Buffer.from('xay').subarray(1, 2);
    assert.equal((await limiter.acquire('a')).remaining, 1);
    assert.equal((await limiter.acquire(part)).remaining, 0);
    assert.equal((await limiter.acquire(new Uint8Array(new SharedArrayBuffer(3)))).remaining, 1);
  });

  test(`a text is its UTF-8, and each lone surrogate U+FFFD, however long, on ${name}`, async () => {
    const limiter = new Limiter('1000000/hour', { store: store(), clock: new ManualClock() });
    const parts = ['a', '\x7f', '\x80', 'é', '\u07ff', '\u0800', '日', '\uffff', '😀', '\u{10ffff}', '\ud800', '\udc00', '\udc00\ud800', '\0'];
    const texts = parts.flatMap((part) => [part, `${part}x`, `x${part}`, `${part}${part}`]);
    for (const length of [126, 127, 128, 253, 254, 255, 256, 257, 511, 512, 513, 2000]) {
      for (const part of ['x', 'é', '日', '😀', '\ud800', '\udc00']) {
        texts.push('y'.repeat(length - part.length) + part, part.repeat(length / part.length), part + 'y'.repeat(length - part.length));
      }
    }
    texts.push(`${'x'.repeat(20)}${'y'.repeat(20)}`, 'x'.repeat(300).slice(20, 60), '日本語'.repeat(9).slice(3)); // which the engine keeps in parts
    for (const text of new Set(texts)) {
      await limiter.reset(text);
      assert.equal((await limiter.acquire(text)).used, 1);
      assert.equal((await limiter.acquire(Buffer.from(text))).used, 2, JSON.stringify(text.slice(0, 20)) + text.length);
    }
  });

  test(`a key that is none is an error on ${name}`, async () => {
    const limiter = new Limiter('2/hour', { store: store() });
    for (const [key, ...texts] of [
      ['', 'empty'],
      [Buffer.alloc(0), 'empty'],
      ['x'.repeat(65_537), '65537', '65536'],
      ['é'.repeat(32_769), '65538'],
      [Buffer.alloc(65_537), '65537'],
      [undefined, 'key undefined'],
      [null, 'key null'],
      [42, 'key 42', 'string'],
      [['a'], "key [ 'a' ]"],
      [new Uint16Array(2), 'Uint16Array'],
      [Symbol('s'), 'Symbol(s)'],
    ]) {
      for (const call of ['acquire', 'allow', 'peek', 'reset']) {
        await assert.rejects(limiter[call](key), failure('MIRAB_INVALID_ARGUMENT', ...texts), `${call} ${texts}`);
      }
    }
  });
}
