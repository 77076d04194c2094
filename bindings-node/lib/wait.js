'use strict';

/** Node's longest timer; a longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Those who sleep inside a limiter. */
class Sleepers {
  #wakers = new Set();
  #closed = false;

  /** Lets `ms` milliseconds pass on timers: less when the limiter is closed, and an error when the signal is aborted. */
  sleep(ms, signal) {
    if (this.#closed) return Promise.resolve();
    if (signal?.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      let timer;
      const end = (settle, value) => {
        clearTimeout(timer);
        this.#wakers.delete(wake);
        signal?.removeEventListener('abort', abort);
        settle(value);
      };
      const wake = () => end(resolve);
      const abort = () => end(reject, signal.reason);
      const sleep = (left) => {
        const more = left - MAX_TIMER_MS;
        timer = setTimeout(() => (more > 0 ? sleep(more) : wake()), Math.min(left, MAX_TIMER_MS));
      };
      // Timers count whole milliseconds, and may fire one too early.
      sleep(Math.ceil(ms) + 1);
      this.#wakers.add(wake);
      signal?.addEventListener('abort', abort);
    });
  }

  /** Wakes them all, and whoever comes later. */
  close() {
    this.#closed = true;
    for (const wake of this.#wakers) wake();
  }
}

module.exports = { MAX_TIMER_MS, Sleepers };
