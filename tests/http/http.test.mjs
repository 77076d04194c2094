// The tables of this folder in Node, byte for byte.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';

import { Limiter, ManualClock } from '../../bindings-node/index.mjs';
import { Answers, Clients } from '../../bindings-node/lib/http.mjs';

const table = (name) => JSON.parse(readFileSync(new URL(name, import.meta.url)));

for (const { why, trusted, field, ipv6_prefix: ipv6Prefix, repeat = 1, cases } of table('addresses.json')) {
  test(`who: ${why}`, () => {
    const clients = new Clients({ trustedProxies: trusted, header: field, ipv6Prefix });
    for (const [peer, lines, client] of cases) {
      const more = Array.from({ length: repeat - 1 }, () => lines.at(-1));
      assert.equal(clients.key(peer, [...lines, ...more]), client ?? undefined, `${peer} ${lines}`);
    }
  });
}

for (const told of table('answers.json')) {
  test(`what: ${told.why}`, async () => {
    const limiter = new Limiter(told.limits, { clock: new ManualClock(1_000_500_000) });
    const answers = new Answers({
      families: told.families,
      body: told.body,
      partitionSalt: Buffer.from('0123456789abcdef'),
      maxHoldMs: told.max_hold === undefined ? undefined : told.max_hold * 1000,
    });
    const naming = { policyName: told.policy_name, partitionKey: told.partition_key };
    let answer;
    for (const cost of told.costs) ({ answer } = await limiter.acquireWithAnswer('k', cost, answers, naming));
    assert.deepEqual(answer, { status: told.status, headers: told.fields, body: told.text });
  });
}
