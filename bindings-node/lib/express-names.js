'use strict';

const { IncomingMessage } = require('node:http');

/** What the requests of HTTP/2 have beyond those of HTTP/1. */
const HTTP2 = ['stream', 'authority', 'scheme'];

/** What Express, of any version, puts on a request. */
const EXPRESS = [
  'get', 'header', 'accepts', 'acceptsEncodings', 'acceptsEncoding', 'acceptsCharsets', 'acceptsCharset', 'acceptsLanguages',
  'acceptsLanguage', 'range', 'param', 'is', 'protocol', 'secure', 'ip', 'ips', 'subdomains', 'path', 'hostname', 'host',
  'fresh', 'stale', 'xhr', 'app', 'res', 'next', 'route', 'baseUrl', 'originalUrl', 'params', 'query', 'body',
];

/** Whether a request means something else by this name: written over, it would fail in what comes after. */
function isTaken(name) {
  return name in new IncomingMessage() || HTTP2.includes(name) || EXPRESS.includes(name);
}

module.exports = { isTaken };
