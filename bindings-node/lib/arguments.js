'use strict';

const { inspect, types } = require('node:util');

const { MirabError } = require('./error.js');

/** The largest cost: every integer up to it is exact in a double. */
const MAX_INTEGER = 2 ** 53;

/** A short text of any value, for error messages. */
function show(value) {
  const shown = inspect(value, { depth: 0, breakLength: Infinity, maxStringLength: 60 });
  return shown.length > 100 ? `${shown.slice(0, 100)}...` : shown;
}

/** An integer from 0 to 2^53, given as a number or a bigint; `what` names it in the error. */
function integer(what, value, kind = 'invalid_argument') {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_INTEGER) return value;
  if (typeof value === 'bigint' && value >= 0n && value <= MAX_INTEGER) return Number(value);
  throw new MirabError(kind, `${what} ${show(value)}: it must be an integer from 0 to ${MAX_INTEGER} (2^53)`);
}

/** A key: a string, or bytes; `what` names it in the error. The core checks its length. */
function key(value, what = 'key') {
  if (typeof value === 'string' || types.isUint8Array(value)) return value;
  throw new MirabError('invalid_argument', `${what} ${show(value)}: it must be a string or bytes (Buffer, Uint8Array)`);
}

/** A key to keep: bytes are copied, since their owner may change them. */
function kept(given) {
  return typeof given === 'string' ? given : new Uint8Array(given);
}

function ownKey(value, what) {
  return kept(key(value, what));
}

function text(what, value, kind = 'invalid_argument') {
  if (typeof value === 'string') return value;
  throw new MirabError(kind, `${what} ${show(value)}: it must be a string`);
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
  if (given === null || typeof given !== 'object') {
    throw new MirabError('invalid_argument', `${what} ${show(given)}: they must be an object`);
  }
  for (const name of Object.keys(given)) {
    if (known.includes(name)) continue;
    const near = nearest(name, known);
    const hint = near ? `did you mean "${near}"?` : `there are ${known.join(', ')}`;
    throw new MirabError('invalid_argument', `${what} have no "${name}": ${hint}`);
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

/** The name that `name` was most likely meant to be, if any is near. */
function nearest(name, known) {
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

module.exports = { integer, items, kept, key, nearest, number, options, ownKey, show, signal, text };
