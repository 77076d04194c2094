// Compiled, never run: what an ES module may write, and what the types must refuse.

import http from 'node:http';

import express from 'express';
import { Decision, Limit, Limiter, ManualClock, MirabError, type Item, type Limits, type MirabErrorKind, type Standing, type Stats, type WaitOptions } from 'mirab';
import rateLimit, { ipKeyGenerator, rateLimit as named, type Options, type RateLimitInfo } from 'mirab/express';

const clock = new ManualClock(0n);
clock.advanceMs(1.5);
const us: number = clock.nowUs;
const limits: Limits = [Limit.tokenBucket(5, 60_000, { capacity: 9 }), Limit.tokenBucket({ capacity: 20, refillRate: '1/3' }), '5/minute'];
const limiter = new Limiter(limits, { store: 'memory:', clock, onStoreFailure: 'local', instances: 4 });
new Limiter(Limit.fixedWindow(5, us, { anchor: 'first', name: 'login' }).withScope('/login'), { clock: Date.now });

new Limiter([Limit.leakyBucket(5, 1000, { queue: 9n }), Limit.slidingWindow(5, 1000, { name: 'w' }), Limit.slidingLog(5, 1000, { buckets: 2 })]);
const flying = new Limiter(Limit.concurrency(20, 30_000));

const decision: Decision = await limiter.acquire('user:42', 2n);
const wait: number | undefined = decision.retryAfterMs;
const standing: Standing | undefined = decision.standings[0];
if (await limiter.allow(new Uint8Array([1]))) limiter.resetSync(Buffer.from('k'));
const ended: number = (await flying.release(decision)) + flying.releaseSync(decision);
const items: Item[] = ['k', ['k', 2n], [new Uint8Array([1])], Buffer.from('k')];
const many: Decision[] = [...(await limiter.acquireMany(items)), ...limiter.acquireManySync(['k', ['l', 2]] as const)];
const waiting: WaitOptions = { timeoutMs: 500, signal: AbortSignal.timeout(500) };
const waited: Decision = await limiter.wait('k', undefined, waiting);
const back: number = (await limiter.refund(waited)) + limiter.refundSync(decision);
await limiter.commit(waited, 5n);
limiter.commitSync(waited, back + many.length);
await limiter.block('k', 1500);
limiter.blockSync('k', 1.5);
await limiter.unblock('k');
limiter.unblockSync('k');
const stats: Readonly<Stats> = limiter.stats();
const sum: number = stats.allowed + stats.refused + stats.never + stats.blocked + stats.errors + stats.refunded + stats.keys + stats.evicted;
try {
  limiter.peekSync('k');
} catch (error) {
  if (error instanceof MirabError && error.code === 'MIRAB_STORE_TIMEOUT') {
    const kind: MirabErrorKind = error.kind;
    console.log(kind, ended, sum, wait, standing?.nextAfterMs);
  }
}

const options: Options = { limits: '5/minute', maxHold: 500, keyGenerator: (request) => ipKeyGenerator(request.ip, 64), standardHeaders: 'draft-8', skipFailedRequests: true };
const app = express();
app.use(rateLimit(options));
const once: Options = { skipSuccessfulRequests: true, requestWasSuccessful: async (request, response) => response.statusCode < 300 && request.complete };
app.get('/', named({ windowMs: 1000, limit: 2, skip: async (request) => request.get('x') === 'y', ...once }), (_request, response) => {
  response.send('fine');
});
const middleware = rateLimit({ handler: (request, response, next, { statusCode }) => response.status(statusCode).json(request.rateLimit) });
http.createServer((request, response) => middleware(request, response, (error) => response.end(String(error))));
const info: RateLimitInfo = { limit: 1, used: 0, remaining: 1, resetTime: new Date(), key: 'k' };
const hits: number | undefined = (await middleware.getKey(info.key))?.totalHits;
await middleware.resetKey(String(hits));

// @ts-expect-error a store is a URI
rateLimit({ store: {} });
// @ts-expect-error an unknown option
rateLimit({ window: 5 });
// @ts-expect-error no such draft
rateLimit({ standardHeaders: 'draft-5' });
// @ts-expect-error a key is text or bytes
void limiter.acquire(42);
// @ts-expect-error a cost is no text
void limiter.acquire('k', '1');
// @ts-expect-error a key is not what was decided
void limiter.release('k');
// @ts-expect-error a cost is said
void limiter.commit(decision);
// @ts-expect-error in milliseconds, by its name
void limiter.wait('k', 1, { timeout: 5 });
// @ts-expect-error an item is a key, or a key and its cost
void limiter.acquireMany([['k', 1, 2]]);
// @ts-expect-error counts are read-only
stats.allowed = 1;
// @ts-expect-error a log has no queue
Limit.slidingLog(5, 1000, { queue: 5 });
// @ts-expect-error a bucket needs its rate
Limit.tokenBucket({ capacity: 5 });
// @ts-expect-error made by static methods
new Limit('5/minute');
// @ts-expect-error a decision is read-only
decision.allowed = true;
// @ts-expect-error there are four choices
new Limiter('5/minute', { onStoreFailure: 'rise' });
