import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { walkOf } from './scenarios.mjs';

const LEAST_BATCH = 64; // decisions between two looks at the clock
const LARGEST_BATCH = 1000;
const BATCH_MS = 0.2;

setFlagsFromString('--expose-gc');
export const collect = runInNewContext('gc');

const walks = new Map();

/** A contender in a scenario, with the state that its slots share. */
export class Slots {
  #decide;
  #scenario;
  #order;
  #at = 0;
  #batch = LEAST_BATCH;

  static async of(contender, scenario) {
    const slots = new Slots();
    if (!walks.has(scenario.keys)) walks.set(scenario.keys, walkOf(scenario.keys));
    const { keys, order } = walks.get(scenario.keys);
    slots.#decide = contender.make(scenario.limits);
    slots.#scenario = scenario;
    slots.#order = order;
    // What is there when slots begin: every key came once, and what admits once has.
    if (scenario.keys > 1 || !scenario.admits) check(await slots.#decide(keys, 0, keys.length, true), true);
    return slots;
  }

  /** Nanoseconds per decision, after a warm-up of a tenth. What others left to be collected is collected before. */
  async measure(ms) {
    collect({ type: 'minor' });
    const warm = await this.#run(ms / 10);
    this.#batch = Math.min(Math.max(LEAST_BATCH, Math.floor((warm.count * BATCH_MS) / warm.ms)), LARGEST_BATCH);
    const run = await this.#run(ms);
    return { ns: (run.ms * 1e6) / run.count, count: run.count };
  }

  async #run(ms) {
    const begin = performance.now();
    const until = begin + ms;
    let now = begin;
    let count = 0;
    let wrong = 0;
    while (now < until) {
      const to = Math.min(this.#at + this.#batch, this.#order.length);
      wrong += await this.#decide(this.#order, this.#at, to, this.#scenario.admits);
      count += to - this.#at;
      this.#at = to === this.#order.length ? 0 : to;
      now = performance.now();
    }
    check(wrong, this.#scenario.admits);
    return { ms: now - begin, count };
  }
}

/** Whether all answers were as they should be. */
export function check(wrong, admits) {
  if (wrong > 0) throw new Error(`${wrong} decisions were ${admits ? 'refused' : 'admitted'}`);
}
