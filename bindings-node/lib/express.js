'use strict';

const { show } = require('./arguments.js');
const { MirabError } = require('./error.js');
const native = require('./native.js');
const { answerWith, refuse } = require('./express-answer.js');
const { checkHolds, hasEnded, hold, whenEnded } = require('./express-hold.js');
const { ipKeyGenerator, readOptions } = require('./express-options.js');
const { Limiter, acquireHeld, isLeasing, nowMs, toldFor } = require('./limiter.js');

/** What those are told whom nobody decides about. */
const UNAVAILABLE = 'The service is unavailable, please try again later.';

/** The status of a request that nobody could decide. */
const UNDECIDED = 503;

/** The key that all requests without an identity share. */
const ANONYMOUS = 'anonymous';

/** A middleware for Express, Connect and bare `node:http`; the option names are express-rate-limit's. */
function rateLimit(options) {
  const config = readOptions(options);
  const limiter = new Limiter(config.limits, {
    store: config.store, clock: config.clock, onStoreFailure: config.onStoreFailure, instances: config.instances,
  });
  checkHolds(limiter, config.maxHold);
  const takesPlaces = isLeasing(limiter);
  const uncounts = config.skipFailedRequests || config.skipSuccessfulRequests;
  const warn = oncePerReason();

  async function middleware(request, response, next) {
    let passes;
    try {
      passes = await answer(request, response, next);
    } catch (error) {
      next(withStatus(error));
      return;
    }
    if (passes) next(); // out of the try: what comes after throws to its own caller
  }

  /** Whether the request may go on; a refusal is answered here. */
  async function answer(request, response, next) {
    if (await config.skip(request, response)) return true;
    const key = await keyOf(request, response);
    const { decision, held } = await acquireHeld(limiter, config.prefix + key);
    if (decision.allowed && takesPlaces) whenEnded(response, () => release(decision));
    if (decision.allowed && uncounts) whenEnded(response, (how) => uncount(how, request, response, decision));
    let told;
    try {
      const now = nowMs(limiter);
      request[config.requestPropertyName] = infoOf(decision, key, now);
      if (!response.headersSent) {
        const policy = await policyOf(request, response);
        told = toldFor.flat(config.answers, held, policy, key);
        // With both families switched off express-rate-limit tells nothing; who is refused for the store's sake is told when to come.
        if (config.tells || told[0] === UNDECIDED) setHeaders(response, told, config, now);
      }
    } finally {
      native.decisionFree(held);
    }
    if (told?.[0] === UNDECIDED) {
      response.statusCode = UNDECIDED; // nobody knows whether he asked too often
      answerWith(response, UNAVAILABLE);
      return false;
    }
    if (!decision.allowed) {
      await (config.handler ?? refuse)(request, response, next, config);
      return false;
    }
    if (decision.delayMs > 0) {
      const stays = await hold(response, decision.delayMs);
      if (!stays) await refund(decision);
      return stays;
    }
    return !((takesPlaces || config.skipFailedRequests) && hasEnded(response)); // what he took was given back already
  }

  /** Gives back what a request took that is not to be counted, now that its response has ended. */
  async function uncount(how, request, response, decision) {
    const { skipFailedRequests, skipSuccessfulRequests, requestWasSuccessful } = config;
    try {
      if (how === 'close' && response.writableEnded) return; // answered, and the client did not stay for it
      const succeeded = how === 'finish' && (await requestWasSuccessful(request, response));
      if (succeeded ? skipSuccessfulRequests : skipFailedRequests) await refund(decision);
    } catch (error) {
      warn(`requestWasSuccessful failed and the request is counted: ${error?.message}`);
    }
  }

  /** Gives back what a request took for which nothing was done, or which is not to be counted. */
  async function refund(decision) {
    try {
      await limiter.refund(decision);
    } catch (error) {
      warn(`a request could not be given back and is counted: ${error.message}`);
    }
  }

  /** Frees the places of a response that has ended; where that fails they free themselves in time. */
  async function release(decision) {
    try {
      await limiter.release(decision);
    } catch (error) {
      warn(`a place could not be given back and is taken until it expires: ${error.message}`);
    }
  }

  async function keyOf(request, response) {
    const given = config.keyGenerator ? await config.keyGenerator(request, response) : addressOf(request, config);
    if (given === undefined || given === null || given === '') {
      warn(`a request has no ${config.keyGenerator ? 'key' : 'address'}: all such requests share the key "${ANONYMOUS}"`);
      return ANONYMOUS;
    }
    if (['string', 'number', 'bigint'].includes(typeof given)) return String(given);
    throw new MirabError('invalid_argument', `keyGenerator returned ${show(given)}: it must return a string`);
  }

  async function policyOf(request, response) {
    if (typeof config.identifier !== 'function') return config.identifier;
    const given = await config.identifier(request, response);
    if (given === undefined || given === null) return undefined;
    if (['string', 'number', 'bigint'].includes(typeof given)) return String(given);
    throw new MirabError('invalid_argument', `identifier returned ${show(given)}: it must return a string`);
  }

  /** Forgets what a key has used. */
  middleware.resetKey = (key) => limiter.reset(config.prefix + key);

  /** What a key has used and when it is free again; undefined when it has used nothing. */
  middleware.getKey = async (key) => {
    const decision = await limiter.peek(config.prefix + key, 0);
    if (decision.used === 0) return undefined;
    return { totalHits: decision.used, resetTime: after(nowMs(limiter), decision.resetAfterMs) };
  };

  return middleware;
}

/** The error for `next`: one of the store, by which Express shall answer that the service is away, and not that it is broken. */
function withStatus(error) {
  if (error instanceof MirabError && error.kind.startsWith('store_')) {
    error.status = 503;
    error.statusCode = 503;
  }
  return error;
}

function addressOf(request, { clients, ipv6Subnet }) {
  if (clients !== undefined) return clients.keyOf(request);
  const ip = request.ip ?? request.socket?.remoteAddress;
  return ip && ipKeyGenerator(ip, ipv6Subnet);
}

/** What handlers find on the request. */
function infoOf(decision, key, now) {
  const { limit, used, remaining, retryAfterMs, resetAfterMs } = decision;
  const info = { limit, used, remaining, resetTime: after(now, retryAfterMs ?? resetAfterMs), key };
  return Object.defineProperty(info, 'current', { value: used }); // the older name of `used`
}

function after(now, ms) {
  return new Date(Math.ceil(now + ms));
}

/** Draft 8 is a list, to which each limiter of a request adds its own; the older fields hold one. */
function setHeaders(response, fields, { legacyHeaders, standardHeaders }, now) {
  if (legacyHeaders) response.setHeader('Date', new Date(now).toUTCString());
  for (let index = 2; index < fields.length; index += 2) { // behind the status and the body
    const [name, value] = [fields[index], fields[index + 1]];
    if (standardHeaders === 'draft-8' && name.startsWith('RateLimit')) response.appendHeader(name, value);
    else response.setHeader(name, value);
  }
}

/** Warnings of one limiter: each reason once. */
function oncePerReason() {
  const told = new Set();
  return (text) => {
    const reason = text.split(':')[0];
    if (told.has(reason)) return;
    told.add(reason);
    process.emitWarning(`mirab/express: ${text}`, 'MirabWarning');
  };
}

module.exports = rateLimit;
module.exports.rateLimit = rateLimit;
module.exports.default = rateLimit;
module.exports.ipKeyGenerator = ipKeyGenerator;
Object.defineProperty(module.exports, '__esModule', { value: true });
