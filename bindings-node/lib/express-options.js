'use strict';

const check = require('./arguments.js');
const { sendable } = require('./express-answer.js');
const { isTaken } = require('./express-names.js');
const { MirabError } = require('./error.js');
const { Answers, Clients } = require('./http.js');
const { Limit } = require('./limit.js');
const { MAX_TIMER_MS } = require('./wait.js');

/** The core's longest time, in milliseconds. */
const MAX_WINDOW_MS = 2 ** 52 / 1000;

const DRAFTS = ['draft-6', 'draft-7', 'draft-8'];

/** Options of express-rate-limit that mirab does not have yet, with the value that asks for nothing. */
const LATER = {
  validate: true,
  logger: undefined,
  retryAfter: undefined,
};

const KNOWN = [
  'windowMs', 'limit', 'max', 'message', 'statusCode', 'handler', 'legacyHeaders', 'headers', 'standardHeaders',
  'identifier', 'requestPropertyName', 'skip', 'keyGenerator', 'ipv6Subnet', 'passOnStoreError',
  'skipFailedRequests', 'skipSuccessfulRequests', 'requestWasSuccessful',
  'limits', 'store', 'clock', 'prefix', 'maxHold', 'onStoreFailure', 'instances',
  'trustedProxies', 'clientIpHeader', 'partitionSalt',
];

/** What the middleware works with: every option checked, every default filled in. */
function readOptions(given) {
  const options = check.options('the options of rateLimit', given, [...KNOWN, ...Object.keys(LATER)]);
  for (const [name, harmless] of Object.entries(LATER)) {
    if (name in options && options[name] !== harmless) throw unsupported(name, options[name], 'mirab does not have this option yet');
  }
  const own = 'limits' in options; // mirab's notation in place of windowMs and limit
  if (own) {
    const clash = ['windowMs', 'limit', 'max'].find((name) => name in options);
    if (clash) throw invalid(clash, options[clash], 'limits says it already: give one of the two');
  }
  for (const [name, older] of [['limit', 'max'], ['legacyHeaders', 'headers']]) checkAgree(options, name, older);
  const windowMs = windowTime(options.windowMs ?? 60_000);
  const limit = options.limit ?? options.max ?? 5;
  return Object.freeze({
    ...(own ? {} : { windowMs, limit }),
    limits: own ? options.limits : window('limit' in options ? 'limit' : 'max', limit, windowMs),
    message: body(options.message ?? 'Too many requests, please try again later.'),
    statusCode: status(options.statusCode ?? 429),
    handler: fn('handler', options.handler),
    legacyHeaders: bool('legacyHeaders', options.legacyHeaders ?? options.headers ?? !own),
    standardHeaders: draft(options.standardHeaders ?? (own && 'draft-8')),
    identifier: identifier(options.identifier ?? (own ? undefined : `${limit}-in-${duration(windowMs)}`)),
    requestPropertyName: property(options.requestPropertyName ?? 'rateLimit'),
    skip: fn('skip', options.skip) ?? (() => false),
    keyGenerator: fn('keyGenerator', options.keyGenerator),
    ipv6Subnet: subnet(options.ipv6Subnet ?? 56),
    clients: behind(options),
    ...tellers(options, own),
    skipFailedRequests: bool('skipFailedRequests', options.skipFailedRequests ?? false),
    skipSuccessfulRequests: bool('skipSuccessfulRequests', options.skipSuccessfulRequests ?? false),
    requestWasSuccessful: fn('requestWasSuccessful', options.requestWasSuccessful) ?? ((_request, response) => response.statusCode < 400),
    onStoreFailure: choice(options),
    instances: options.instances,
    store: uri(options.store ?? 'memory:'),
    clock: options.clock,
    prefix: check.text('prefix', options.prefix ?? ''),
    maxHold: milliseconds('maxHold', options.maxHold ?? 1000),
  });
}

/** The algorithm of express-rate-limit: a window from the first request, and 0 refuses everything. */
function window(name, limit, windowMs) {
  if (typeof limit === 'function') throw unsupported(name, limit, 'it must be a number');
  const count = check.integer(name, limit, 'invalid_limit', 'from 0 to 4294967295 (2^32-1)');
  return count === 0 ? Limit.deny() : Limit.fixedWindow(count, windowMs, { anchor: 'first' });
}

function windowTime(ms) {
  if (typeof ms === 'number' && Math.round(ms * 1000) >= 1 && ms <= MAX_WINDOW_MS) return ms;
  throw invalid('windowMs', ms, `it must be milliseconds, from 0.001 to ${MAX_WINDOW_MS}`);
}

/** An option and its older name, both given, must say the same. */
function checkAgree(options, name, older) {
  if (!(name in options && older in options) || Object.is(options[name], options[older])) return;
  throw invalid(older, options[older], `${name} says ${check.show(options[name])}: give one of the two`);
}

/** A window as the names of policies have it: `1min`, `1.5sec`, `2hrs`. */
function duration(ms) {
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds}sec`;
  if (seconds < 3600) return `${seconds / 60}min`;
  const [count, unit] = seconds < 86_400 ? [seconds / 3600, 'hr'] : [seconds / 86_400, 'day'];
  return `${count}${unit}${count > 1 ? 's' : ''}`;
}

/** What is done while the store fails: express-rate-limit's `passOnStoreError` says it by true or false. */
function choice({ onStoreFailure, passOnStoreError }) {
  if (passOnStoreError === undefined) return check.text('onStoreFailure', onStoreFailure ?? 'local');
  if (onStoreFailure !== undefined) throw invalid('passOnStoreError', passOnStoreError, 'onStoreFailure says it already: give one of the two');
  return bool('passOnStoreError', passOnStoreError) ? 'open' : 'raise';
}

function draft(value) {
  if (value === true) return 'draft-6';
  if (value === false || DRAFTS.includes(value)) return value;
  throw invalid('standardHeaders', value, `it must be true, false or one of ${DRAFTS.join(', ')}`);
}

function subnet(value) {
  if (typeof value === 'function') throw unsupported('ipv6Subnet', value, 'it must be a number or false');
  if (value === false || (Number.isInteger(value) && value >= 1 && value <= 128)) return value;
  throw invalid('ipv6Subnet', value, 'it must be an integer from 1 to 128, or false');
}

function status(value) {
  if (Number.isInteger(value) && value >= 200 && value <= 999) return value;
  throw invalid('statusCode', value, 'it must be an HTTP status from 200 to 999');
}

/** A time that a timer can wait. */
function milliseconds(name, value) {
  if (typeof value === 'number' && value >= 0 && value < MAX_TIMER_MS) return value;
  throw invalid(name, value, `it must be milliseconds, from 0 and below ${MAX_TIMER_MS} (2^31-1)`);
}

/** Where the request carries what its handlers find. */
function property(value) {
  const name = check.text('requestPropertyName', value);
  if (name !== '' && !isTaken(name)) return name;
  throw invalid('requestPropertyName', value, 'it must be a name that a request does not have itself, such as rateLimit');
}

/** What refused requests are answered; what a function returns is checked when it is sent. */
function body(message) {
  return typeof message === 'function' ? message : sendable('message', message);
}

function uri(value) {
  if (typeof value === 'string') return check.text('store', value, 'invalid_uri');
  throw unsupported('store', value, "a store is named by its URI: 'memory:' or 'redis://HOST'");
}

function identifier(value) {
  if (value === undefined || typeof value === 'function') return value;
  if (typeof value === 'string') return check.text('identifier', value);
  throw invalid('identifier', value, 'it must be a string or a function');
}

function fn(name, value) {
  if (value === undefined || typeof value === 'function') return value;
  throw invalid(name, value, 'it must be a function');
}

function bool(name, value) {
  if (typeof value === 'boolean') return value;
  throw invalid(name, value, 'it must be true or false');
}

function invalid(name, value, right) {
  return new MirabError('invalid_argument', `${name} ${check.show(value)}: ${right}`);
}

function unsupported(name, value, right) {
  return new MirabError('unsupported', `${name} ${check.show(value)}: ${right}`);
}

/** Who is asking behind trusted proxies; undefined where the framework says it. */
function behind({ trustedProxies, clientIpHeader, ipv6Subnet }) {
  if (trustedProxies === undefined) {
    if (clientIpHeader === undefined) return undefined;
    throw invalid('clientIpHeader', clientIpHeader, 'it is read of trustedProxies only: name them');
  }
  if (ipv6Subnet === false) throw invalid('ipv6Subnet', false, 'behind trustedProxies it must be a number');
  return new Clients({ trustedProxies, header: clientIpHeader, ipv6Prefix: ipv6Subnet ?? 56 });
}

/** How clients are told: in the families that the options ask for. */
function tellers({ legacyHeaders, headers, standardHeaders, partitionSalt }, own) {
  const families = [];
  if (legacyHeaders ?? headers ?? !own) families.push('x-ratelimit-epoch');
  const wanted = draft(standardHeaders ?? (own && 'draft-8'));
  // The draft's list with the blanks that express-rate-limit writes.
  if (wanted) families.push(wanted === 'draft-8' ? 'draft-8-spaced' : wanted);
  return { answers: new Answers({ families, partitionSalt }), tells: families.length > 0 };
}

/** Of each prefix, made once. */
const direct = new Map();

/** The key of a client's address: IPv6 masked to `ipv6Subnet` bits, IPv4 mapped into IPv6 as IPv4. */
function ipKeyGenerator(ip, ipv6Subnet = 56) {
  const address = check.text('ip', ip);
  if (subnet(ipv6Subnet) === false) return address;
  if (!direct.has(ipv6Subnet)) direct.set(ipv6Subnet, new Clients({ ipv6Prefix: ipv6Subnet }));
  return direct.get(ipv6Subnet).key(address) ?? address;
}

module.exports = { ipKeyGenerator, readOptions };
