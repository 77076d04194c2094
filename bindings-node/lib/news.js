'use strict';

const native = require('./native.js');

/** A store of this machine is asked for its news once in so many decisions. */
const NEWS_EVERY = 16;

/**
 * Warns of what the store of a limiter has come to since anybody was told: that it is not asked any more and why, that
 * it decides again, that its file was removed. Each change once, for all limiters of the process on it.
 */
function tellNews(handle) {
  const news = native.limiterNews(handle);
  if (news === undefined) return;
  for (const text of news) process.emitWarning(text, { type: 'MirabWarning', code: 'MIRAB_STORE' });
}

module.exports = { NEWS_EVERY, tellNews };
