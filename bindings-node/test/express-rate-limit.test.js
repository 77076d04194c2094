'use strict';

// Side by side with express-rate-limit: the same options must give the same answers, byte for byte, but for the
// partition key, which is keyed here.

const assert = require('node:assert/strict');
const test = require('node:test');

const express = require('express');
const theirs = require('express-rate-limit');
const ours = require('../lib/express.js');
const { serve } = require('./helpers.js');

const FIELDS = [
  'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'ratelimit', 'ratelimit-policy',
  'ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset', 'retry-after', 'content-type', 'date',
];

const OPTIONS = {
  'the defaults': {},
  'draft 6 by true': { standardHeaders: true },
  'draft 6': { standardHeaders: 'draft-6', legacyHeaders: false },
  'draft 7': { standardHeaders: 'draft-7', legacyHeaders: false },
  'draft 8': { standardHeaders: 'draft-8', legacyHeaders: false },
  'draft 8 and the older fields': { standardHeaders: 'draft-8', legacyHeaders: true },
  'a policy name': { standardHeaders: 'draft-8', identifier: 'api' },
  'a key': { standardHeaders: 'draft-8', keyGenerator: (request) => request.get('user-agent') ?? 'none' },
  'half seconds': { standardHeaders: 'draft-8', windowMs: 1500, limit: 7 },
  'an hour': { standardHeaders: 'draft-8', windowMs: 3_600_000, limit: 2 },
  'hours': { standardHeaders: 'draft-8', windowMs: 5_400_000, max: 2 },
  'days': { standardHeaders: 'draft-8', windowMs: 172_800_000, limit: 2 },
  'a window without whole seconds': { standardHeaders: 'draft-7', windowMs: 61_234 },
  'no headers': { legacyHeaders: false },
  'the older names': { max: 2, headers: true },
  'a text': { limit: 1, message: 'slower', statusCode: 420 },
  'an object': { limit: 1, message: { slower: true } },
};

/** The client's partition, of a hash that ours keys. */
const PARTITION = /pk=:[\w+/]{16}:/;

/** What six requests are answered, at times that a mocked clock gives to both libraries. */
async function answers(t, limiter) {
  t.mock.timers.enable({ apis: ['Date'], now: 1_790_000_000_123 });
  const app = express();
  app.set('etag', false);
  app.use((_request, response, next) => {
    response.sendDate = false; // Node's own date is the real one; what is left is what a library sets
    next();
  });
  app.use(limiter);
  app.get('/', (request, response) => {
    const { limit, used, remaining, resetTime, key } = request.rateLimit;
    response.json({ limit, used, remaining, resetTime, key });
  });
  const seen = [];
  await serve(app, async (ask) => {
    for (let index = 0; index < 7; index++) {
      const { status, headers, body } = await ask('/', { 'user-agent': 'test' });
      const fields = Object.fromEntries(FIELDS.map((field) => [field, headers.get(field)?.replace(PARTITION, 'pk=:...:') ?? null]));
      seen.push({ status, body, ...fields });
      t.mock.timers.tick(index === 4 ? 990 : 77);
    }
  });
  t.mock.timers.reset();
  return seen;
}

for (const [name, options] of Object.entries(OPTIONS)) {
  test(`the same answers with ${name}`, async (t) => {
    const wanted = await answers(t, theirs.rateLimit({ ...options, validate: false }));
    const given = await answers(t, ours.rateLimit({ ...options, clock: () => Date.now() }));
    assert.deepEqual(given, wanted);
  });
}
