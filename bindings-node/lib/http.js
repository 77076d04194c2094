'use strict';

// Who is asking, and what he is told: the same bytes as from every other language.

const check = require('./arguments.js');
const { MirabError } = require('./error.js');
const { longestHeld, toldFor } = require('./limiter.js');
const native = require('./native.js');

const clientsRegistry = new FinalizationRegistry((handle) => native.clientsFree(handle));
const answersRegistry = new FinalizationRegistry((handle) => native.answersFree(handle));

/** Who is asking: the client's address, behind proxies that are trusted and no others. */
class Clients {
  #handle;

  constructor(options) {
    const { trustedProxies = [], header = 'X-Forwarded-For', ipv6Prefix = 64 } =
      check.options('the options of Clients', options, ['trustedProxies', 'header', 'ipv6Prefix']);
    const [networks, hops] = proxies(trustedProxies);
    const bits = check.integer('ipv6Prefix', ipv6Prefix, 'invalid_argument', 'from 1 to 128');
    this.#handle = native.clientsNew(networks, hops, check.text('header', header), bits);
    clientsRegistry.register(this, this.#handle);
  }

  /** The name of the header that `key` wants to see, in lower case; undefined where none is read. */
  get header() {
    return native.clientsHeader(this.#handle);
  }

  /** The key of the client: `192.0.2.7`, or `2001:db8:1:2::/64`; undefined where nothing is known of him. */
  key(peer, lines = []) {
    if (peer !== undefined && peer !== null && typeof peer !== 'string') throw invalid('peer', peer, 'it must be an address as text, or undefined');
    if (!Array.isArray(lines) || !lines.every((line) => typeof line === 'string')) {
      throw invalid('lines', lines, "they must be an array of the header's values");
    }
    return native.clientsKey(this.#handle, peer ?? undefined, lines);
  }

  /** The key of who has sent a request of node:http, Express or Connect. */
  keyOf(request) {
    const { header } = this;
    const peer = request.socket?.remoteAddress;
    // A socket that is gone has no address either, and is none of this machine's.
    if (peer === undefined && (request.socket?.destroyed ?? true)) return undefined;
    return this.key(peer, header === undefined ? [] : linesOf(request, header));
  }
}

/** How decisions are told to clients: made once, used for each. */
class Answers {
  #handle;

  static {
    toldFor.isAnswers = (answers) => answers !== null && typeof answers === 'object' && #handle in answers;
    toldFor.naming = (naming) => {
      const { policyName, partitionKey } = check.options('the naming of an answer', naming, ['policyName', 'partitionKey']);
      return {
        policyName: policyName === undefined ? undefined : check.text('policyName', policyName),
        partitionKey: partitionKey === undefined ? undefined : check.ownKey(partitionKey, 'partitionKey'),
      };
    };
    toldFor.flat = (answers, held, policyName, partitionKey) => native.answer(answers.#handle, held, policyName, partitionKey);
    toldFor.answer = (answers, held, { policyName, partitionKey }) => {
      const [status, body, ...flat] = toldFor.flat(answers, held, policyName, partitionKey);
      return { status, headers: pairs(flat), body };
    };
  }

  constructor(options) {
    const { families = ['draft-8'], body = 'none', partitionSalt, maxHoldMs } =
      check.options('the options of Answers', options, ['families', 'body', 'partitionSalt', 'maxHoldMs']);
    if (!Array.isArray(families)) throw invalid('families', families, 'they must be an array of names');
    const names = families.map((name) => check.text('families', name));
    if (partitionSalt !== undefined && !(partitionSalt instanceof Uint8Array)) {
      throw new MirabError('invalid_argument', 'partitionSalt: it must be bytes (Buffer, Uint8Array), 16 or more');
    }
    this.#handle = native.answersNew(names, check.text('body', body), partitionSalt, longest(maxHoldMs));
    answersRegistry.register(this, this.#handle);
  }
}

/** How many fields of a request Node keeps, and how far it may miss that. */
const NODES_MOST = 1000;
const NODES_STEP = 40;

/** A request of HTTP/2 has no headersDistinct: its lines stand joined in `headers`, which reads the same. */
function linesOf({ headersDistinct, headers, rawHeaders, socket }, name) {
  // Node drops the fields beyond a number, and so what a proxy has added behind a client's many.
  const most = Math.min(socket?.server?.maxHeadersCount || NODES_MOST, NODES_MOST) - NODES_STEP;
  if (rawHeaders && rawHeaders.length / 2 > most) return [];
  return headersDistinct ? (headersDistinct[name] ?? []) : [headers?.[name] ?? []].flat();
}

function proxies(given) {
  if (typeof given === 'number') {
    if (Number.isInteger(given) && given >= 0 && given <= 32) return [[], given];
    throw invalid('trustedProxies', given, 'a number of proxies is from 0 to 32');
  }
  if (Array.isArray(given)) return [given.map((network) => check.text('trustedProxies', network)), undefined];
  throw invalid('trustedProxies', given, "it must be an array of networks such as '10.0.0.0/8', or a number of proxies");
}

function longest(ms) {
  if (ms === undefined || (typeof ms === 'number' && ms >= 0 && ms <= longestHeld)) return ms;
  throw invalid('maxHoldMs', ms, `it must be milliseconds, from 0 to ${longestHeld}`);
}

function pairs(flat) {
  return Array.from({ length: flat.length / 2 }, (_, index) => [flat[2 * index], flat[2 * index + 1]]);
}

function invalid(name, value, right) {
  return new MirabError('invalid_argument', `${name} ${check.show(value)}: ${right}`);
}

module.exports = { Answers, Clients };
