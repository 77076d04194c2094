'use strict';

/**
 * What mirab throws and rejects with. `kind` is the core's stable name (`invalid_limit`), `code`
 * the same in Node's habit (`MIRAB_INVALID_LIMIT`). A refusal is never an error.
 */
class MirabError extends Error {
  constructor(kind, message, options) {
    super(message, options);
    this.kind = kind;
    this.code = `MIRAB_${kind.toUpperCase()}`;
  }
}
Object.defineProperty(MirabError.prototype, 'name', { value: 'MirabError', writable: true, configurable: true });

module.exports = { MirabError };
