/**
 * Who is measured: one file a peer, each with its documented way to be fast.
 *
 * `make(limits)` gives a function that decides for the keys of an array, from here to there, and counts the answers
 * that are not as they should be. The loop is each contender's own, so that the call that is measured is written out
 * in it, as in an app. Promises are awaited.
 */

import expressRateLimit from './express-rate-limit.mjs';
import floors from './floors.mjs';
import limiter from './limiter.mjs';
import mirab from './mirab.mjs';
import rateLimiterFlexible from './rate-limiter-flexible.mjs';

export const CONTENDERS = [...mirab, ...limiter, ...expressRateLimit, ...rateLimiterFlexible, ...floors];
