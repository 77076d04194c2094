'use strict';

const { inspect, types } = require('node:util');

const { MirabError } = require('./error.js');

/** The largest cost: every integer up to it is exact in a double. */
const MAX_INTEGER = 2 ** 53;

/** How long a value is in an error message, at most. */
const MAX_SHOWN = 100;

/** A text without what may be a password: all between the first `://` and the last `@`, however it is written. */
function hide(given) {
  const [start, end] = [given.indexOf('://') + 3, given.lastIndexOf('@')];
  return start > 2 && end >= start ? `${given.slice(0, start)}…${given.slice(end)}` : given;
}

function cut(given) {
  return given.length > MAX_SHOWN ? `${given.slice(0, MAX_SHOWN)}...` : given;
}

/** A short text of any value, for error messages. What is in an object, which may be a secret too, is not shown. */
function show(value) {
  if (!Array.isArray(value)) return cut(showOne(value));
  return value.length === 0 ? '[]' : cut(`[ ${Array.from(value.slice(0, MAX_SHOWN), showOne).join(', ')} ]`);
}

function showOne(value) {
  // Hidden before inspect shortens it: of a long password the end would be missing.
  if (typeof value === 'string') return inspect(hide(value), { maxStringLength: 60 });
  if (types.isStringObject(value)) return `[String: ${showOne(String.prototype.valueOf.call(value))}]`;
  return hide(inspect(value, { depth: -1, breakLength: Infinity, customInspect: false }));
}

/**
 * An integer, given as a number or a bigint; `what` names it in the error, and `range` what is right. What is an integer
 * and out of range the core refuses.
 */
function integer(what, value, kind = 'invalid_argument', range = `from 0 to ${MAX_INTEGER} (2^53)`) {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_INTEGER) return value;
  if (typeof value === 'bigint' && value >= 0n && value <= MAX_INTEGER) return Number(value);
  throw new MirabError(kind, `${what} ${show(value)}: it must be an integer ${range}`);
}

/** A key: a string, or bytes; `what` names it in the error. The core checks its length. */
function key(value, what = 'key') {
  if (typeof value === 'string') return value;
  if (types.isUint8Array(value)) {
    if (value.length === 0) checkAttached(value, what);
    return value;
  }
  throw new MirabError('invalid_argument', `${what} ${show(value)}: it must be a string or bytes (Buffer, Uint8Array)`);
}

/** Bytes whose buffer was given away look empty, and cannot be copied. */
function checkAttached(bytes, what) {
  try {
    new Uint8Array(bytes);
  } catch (cause) {
    throw new MirabError('invalid_argument', `${what}: its bytes are gone, their buffer was transferred or made smaller`, { cause });
  }
}

/** A key to keep: bytes are copied, since their owner may change them. */
function kept(given) {
  return typeof given === 'string' ? given : new Uint8Array(given);
}

function ownKey(value, what) {
  return kept(key(value, what));
}

function text(what, value, kind = 'invalid_argument') {
  if (typeof value !== 'string') throw new MirabError(kind, `${what} ${show(value)}: it must be a string`);
  if (value.isWellFormed()) return value;
  throw new MirabError(kind, `${what} ${show(value)}: it has a lone surrogate, which no UTF-8 can say`);
}

/** A limit's notation, or a part of it. A URI in its place may hold a password, and is told by its kind only. */
function notation(what, value) {
  if (hide(text(what, value, 'invalid_limit')) === value) return value;
  throw new MirabError('invalid_limit', `${what} ${show(value)}: it is a URI; a store's URI belongs into the option store`);
}

/** One of these texts. */
function oneOf(what, value, known) {
  if (known.includes(value)) return value;
  throw new MirabError('invalid_argument', `${what} ${show(value)}: it must be one of ${known.map((each) => `'${each}'`).join(', ')}`);
}

function number(what, value, kind = 'invalid_argument') {
  if (typeof value === 'number') return value;
  throw new MirabError(kind, `${what} ${show(value)}: it must be a number`);
}

/** Keys, each with its cost or alone: as two arrays. */
function items(given) {
  if (!Array.isArray(given)) throw new MirabError('invalid_argument', `items ${show(given)}: they must be an array of keys, or of [key, cost]`);
  const keys = [];
  const costs = [];
  for (let index = 0; index < given.length; index++) {
    const item = given[index];
    const isPair = Array.isArray(item);
    if (isPair && item.length > 2) throw new MirabError('invalid_argument', `item ${index}: ${show(item)}: it must be a key, or [key, cost]`);
    const one = isPair ? item[0] : item;
    const cost = isPair ? item[1] : undefined;
    keys.push(typeof one === 'string' ? one : ownKey(one, `item ${index}: key`));
    costs.push(cost === undefined ? 1 : integer(`item ${index}: cost`, cost));
  }
  return { keys, costs };
}

/** An AbortSignal, or none. */
function signal(value) {
  if (value === undefined || (typeof value?.aborted === 'boolean' && typeof value.addEventListener === 'function')) return value;
  throw new MirabError('invalid_argument', `signal ${show(value)}: it must be an AbortSignal`);
}

/** The options of `given` that are set, all of them in `known`; `what` names them in the error. */
function options(what, given, known) {
  if (given === undefined) return {};
  if (!isBag(given)) {
    throw new MirabError('invalid_argument', `${what} ${show(given)}: they must be an object`);
  }
  for (const name of Object.keys(given)) {
    if (known.includes(name)) continue;
    const near = nearest(name, known);
    const hint = near ? `did you mean "${near}"?` : `there are ${known.join(', ')}`;
    throw new MirabError('invalid_argument', `${what} have no "${cut(hide(name))}": ${hint}`);
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

/** Whether options can be in it. A URL or a Map has nothing that is read here, and so would be taken for no options. */
function isBag(given) {
  if (given === null || typeof given !== 'object' || Array.isArray(given) || types.isBoxedPrimitive(given)) return false;
  const parent = Object.getPrototypeOf(given);
  return parent === null || Object.getPrototypeOf(parent) === null || Object.keys(given).length > 0;
}

/** The name that `name` was most likely meant to be, if any is near. */
function nearest(name, known) {
  if (name.length > MAX_SHOWN) return undefined;
  const ranked = known.map((each) => [distance(name.toLowerCase(), each.toLowerCase()), each]);
  const [least, best] = ranked.reduce((a, b) => (b[0] < a[0] ? b : a), [Infinity]);
  return least <= Math.max(1, Math.floor(name.length / 3)) ? best : undefined;
}

/** How many letters must be inserted, removed or replaced to make `a` into `b`. */
function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) {
      next.push(Math.min(row[j + 1] + 1, next[j] + 1, row[j] + (a[i] === b[j] ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length];
}

module.exports = { integer, items, kept, key, nearest, notation, number, oneOf, options, ownKey, show, signal, text };
