'use strict';

// What a refused request is answered.

const { show } = require('./arguments.js');
const { MirabError } = require('./error.js');

/** A body that can be sent: text, bytes, what JSON can say, or nothing. `what` names it in the error. */
function sendable(what, body) {
  if (body === undefined || body === null || typeof body === 'string' || body instanceof Uint8Array) return body;
  let cause;
  try {
    if (JSON.stringify(body) !== undefined) return body;
  } catch (error) {
    cause = error; // a bigint, or an object inside itself
  }
  throw new MirabError('invalid_argument', `${what} ${show(body)}: it must be text, bytes or a value that JSON can say`, { cause });
}

/** The default answer to a refused request. */
async function refuse(request, response, _next, { message, statusCode }) {
  const before = response.statusCode;
  response.statusCode = statusCode;
  try {
    const body = typeof message === 'function' ? await message(request, response) : message;
    answerWith(response, body);
  } catch (error) {
    response.statusCode = before; // Express would answer the error with it
    throw error;
  }
}

function answerWith(response, given) {
  if (response.writableEnded) return;
  const body = sendable('message returned', given);
  if (typeof response.send === 'function') {
    sendWith(response, body);
    return;
  }
  const [type, bytes] = encode(body);
  if (type !== undefined && !response.hasHeader('Content-Type')) response.setHeader('Content-Type', type);
  response.end(bytes);
}

/** To Express 4 a number is a status, and bytes are a Buffer only. */
function sendWith(response, body) {
  if (typeof body === 'number') response.json(body);
  else if (body instanceof Uint8Array && !Buffer.isBuffer(body)) response.send(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
  else response.send(body);
}

/** A body and its type, where there is no Express to do it. */
function encode(body) {
  if (body === undefined || body === null) return [undefined, ''];
  if (typeof body === 'string') return ['text/plain; charset=utf-8', body];
  if (body instanceof Uint8Array) return ['application/octet-stream', body];
  return ['application/json; charset=utf-8', JSON.stringify(body)];
}

module.exports = { answerWith, refuse, sendable };
