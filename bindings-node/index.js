'use strict';

const { ManualClock } = require('./lib/clock.js');
const { Decision } = require('./lib/decision.js');
const { MirabError } = require('./lib/error.js');
const { Limit } = require('./lib/limit.js');
const { Limiter } = require('./lib/limiter.js');

module.exports = { Decision, Limit, Limiter, ManualClock, MirabError };
