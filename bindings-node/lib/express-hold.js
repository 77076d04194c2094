'use strict';

// What lasts longer than a decision: a request that waits for its turn, and a place that it takes.

const { errorMonitor } = require('node:events');

const { MirabError } = require('./error.js');
const { longestHolds } = require('./limiter.js');

/** A request that waits longer than `maxHold` would have to be refused after it was charged: no such limit is taken. */
function checkHolds(limiter, maxHold) {
  for (const { text, ms } of longestHolds(limiter)) {
    if (ms <= maxHold) continue;
    throw new MirabError(
      'invalid_argument',
      `limits "${text}": the last of its queue is held ${ms} ms, and maxHold is ${maxHold}: shorten the queue or raise maxHold`,
    );
  }
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

/**
 * Calls `run` once, when the response has ended in whatever way; at once when it has already. It is told
 * how: 'finish', 'error', or 'close' where its client left before.
 */
function whenEnded(response, run) {
  if (hasEnded(response)) {
    run('close');
    return;
  }
  const ends = ['finish', 'close', 'error'].map((how) => [
    how === 'error' ? errorMonitor : how, // a listener to `error` would hide errors from the app
    () => {
      for (const [event, end] of ends) response.off(event, end);
      run(how === 'finish' && response.writableEnded === false ? 'close' : how); // HTTP/2 also tells 'finish' of who left
    },
  ]);
  for (const [event, end] of ends) response.on(event, end);
}

module.exports = { checkHolds, hasEnded, hold, whenEnded };
