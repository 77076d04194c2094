// Plays the published cases through the public interface, on every store.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import test, { after } from 'node:test';

import { Limit, Limiter, ManualClock } from '../../bindings-node/index.mjs';

const folder = new URL('.', import.meta.url);
const cases = readdirSync(folder)
  .filter((file) => file.endsWith('.json'))
  .map((file) => JSON.parse(readFileSync(new URL(file, folder), 'utf8')));

const files = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : '/tmp', 'mirab-vectors-'));
after(() => rmSync(files, { recursive: true }));

const stores = {
  memory: () => 'memory:',
  shm: () => `shm://${join(files, randomUUID())}?max_keys=64&timeout_ms=5000`,
  redis: () => {
    const uri = process.env.MIRAB_TEST_REDIS;
    assert.ok(uri, 'MIRAB_TEST_REDIS is not set: run this with scripts/with-redis.sh');
    return `${uri}?timeout_ms=5000&prefix=${randomUUID()}`;
  },
};

const makers = {
  token_bucket: ({ limit, period_us, capacity }) => Limit.tokenBucket(limit, period_us / 1000, { capacity }),
  leaky_bucket: ({ limit, period_us, queue }) => Limit.leakyBucket(limit, period_us / 1000, { queue }),
  sliding_window: ({ limit, period_us }) => Limit.slidingWindow(limit, period_us / 1000),
  sliding_log: ({ limit, period_us, buckets }) => Limit.slidingLog(limit, period_us / 1000, { buckets }),
  fixed_window: ({ limit, period_us, anchor }) => Limit.fixedWindow(limit, period_us / 1000, { anchor }),
};

/** The largest cost that can pass: a queue has one place more, for the one being served. */
const capacityOf = ({ limit, capacity, queue }) => capacity ?? (queue === undefined ? limit : queue + 1);

const ms = (us) => us / 1000;

test('there are cases', () => assert.ok(cases.length > 0));

for (const { name, limit, steps } of cases) {
  for (const [kind, store] of Object.entries(stores)) {
    test(`${name} on ${kind}`, async () => {
      const clock = new ManualClock();
      const limiter = new Limiter(makers[limit.algorithm](limit), { store: store(), clock, onStoreFailure: 'raise' });
      for (const [index, step] of steps.entries()) {
        clock.setUs(step.at_us);
        const { allowed, remaining, used, resetAfterMs, retryAfterMs, never, delayMs, degraded, ...rest } = await limiter.acquire(name, step.cost);
        assert.deepEqual(
          { allowed, remaining, used, resetAfterMs, retryAfterMs, never, delayMs, degraded },
          {
            allowed: step.allowed,
            remaining: step.remaining,
            used: rest.limit - step.remaining,
            resetAfterMs: ms(step.reset_after_us),
            retryAfterMs: step.retry_after_us > 0 ? ms(step.retry_after_us) : undefined,
            never: step.retry_after_us === 'never',
            delayMs: ms(step.delay_us ?? 0),
            degraded: false,
          },
          `step ${index}`,
        );
        assert.equal(rest.limit, capacityOf(limit));
      }
      limiter.close();
    });
  }
}
