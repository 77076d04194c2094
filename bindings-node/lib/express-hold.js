'use strict';

// What lasts longer than a decision: a request that waits for its turn, and a place that it takes.

const { errorMonitor } = require('node:events');

const { ManualClock } = require('./clock.js');
const { MirabError } = require('./error.js');
const { Limiter, textsOf } = require('./limiter.js');

/** A request that waits longer than `maxHold` would have to be refused after it was charged: no such limit is taken. */
function checkHolds(limiter, maxHold) {
  for (const text of textsOf(limiter)) {
    const longest = longestDelayMs(text);
    if (longest <= maxHold) continue;
    throw new MirabError(
      'invalid_argument',
      `limits "${text}": the last of its queue is held ${longest} ms, and maxHold is ${maxHold}: shorten the queue or raise maxHold`,
    );
  }
}

/** How long the last of a limit's queue waits, as a limiter says whose other places are all taken. */
function longestDelayMs(text) {
  const limiter = new Limiter(text, { clock: new ManualClock() });
  const { remaining } = limiter.peekSync('k', 0);
  limiter.acquireSync('k', Math.max(remaining - 1, 0));
  const { delayMs } = limiter.peekSync('k');
  limiter.close();
  return delayMs;
}

/** Whether nobody waits for this response any more. */
function hasEnded(response) {
  return (response.stream ?? response).destroyed === true; // a response of HTTP/2 says it by its stream
}

/** Lets `ms` milliseconds pass on a timer, and no longer than the client stays: false when he has left. */
function hold(response, ms) {
  if (hasEnded(response)) return Promise.resolve(false);
  return new Promise((resolve) => {
    const settle = (stays) => {
      clearTimeout(timer);
      response.off('close', leave);
      resolve(stays);
    };
    const leave = () => settle(false);
    // Timers count whole milliseconds, and may fire one too early.
    const timer = setTimeout(settle, Math.ceil(ms) + 1, true);
    response.on('close', leave);
  });
}

/** Calls `run` once, when the response has ended in whatever way; at once when it has already. */
function whenEnded(response, run) {
  if (hasEnded(response)) {
    run();
    return;
  }
  const events = ['finish', 'close', errorMonitor]; // not `error`: a listener to it would hide errors from the app
  const end = () => {
    for (const event of events) response.off(event, end);
    run();
  };
  for (const event of events) response.on(event, end);
}

module.exports = { checkHolds, hasEnded, hold, whenEnded };
