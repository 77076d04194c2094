'use strict';

/**
 * What mirab throws and rejects with. `kind` is the core's stable name (`invalid_limit`), `code`
 * the same in Node's habit (`MIRAB_INVALID_LIMIT`). A refusal is never an error. `options` is Error's, or what the addon
 * says: whether the store may have done what was asked, though nobody said so.
 */
class MirabError extends Error {
  constructor(kind, message, options) {
    super(message, typeof options === 'object' ? options : undefined);
    this.kind = kind;
    this.code = `MIRAB_${kind.toUpperCase()}`;
    if (kind.startsWith('store_')) this.mayHaveHappened = options === true;
  }
}
Object.defineProperty(MirabError.prototype, 'name', { value: 'MirabError', writable: true, configurable: true });

module.exports = { MirabError };
