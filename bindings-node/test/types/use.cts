// Compiled, never run: what CommonJS may write, in both of TypeScript's ways.

import mirab = require('mirab');
import rateLimit = require('mirab/express');
import { rateLimit as named } from 'mirab/express';
import defaulted from 'mirab/express';

const limiter: mirab.Limiter = new mirab.Limiter(mirab.Limit.parse('5/minute'));
const info = (request: { rateLimit: rateLimit.RateLimitInfo }): number => request.rateLimit.used;
const options: rateLimit.Options = { limits: '5/minute', clock: new mirab.ManualClock() };

export const all = [rateLimit(options), rateLimit.rateLimit(), rateLimit.default(), named(), defaulted(), rateLimit.ipKeyGenerator('::1')];
export { info, limiter };
