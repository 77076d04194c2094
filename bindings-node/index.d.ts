/** A limit, in mirab's notation (`'100/second burst 300'`), made by {@link Limit}, or several of them. */
export type Limits = string | Limit | readonly (string | Limit)[];

/** Text is its UTF-8 bytes: `'a'` and the byte 97 are one key. 1 to 65536 bytes. */
export type Key = string | Uint8Array;

/** An integer from 0 to 2^53; 0 asks without taking. */
export type Cost = number | bigint;

/** A manual clock, or a function that returns milliseconds since 1970, called once a decision. */
export type Clock = ManualClock | (() => number);

export interface LimiterOptions {
  /** Where the state lives: `memory:` (default: this limiter's own), `memory:NAME`, `redis://HOST`. */
  store?: string | undefined;
  /** Default: the store's own clock. */
  clock?: Clock | undefined;
  /** What happens when the store fails: the error is thrown. */
  onStoreFailure?: 'raise' | undefined;
}

/** Limits on a store. */
export class Limiter {
  constructor(limits: Limits, options?: LimiterOptions);
  /** Takes `cost` units of `key` if they are there. A refusal is a decision and no error: look at `allowed`, or call `allow`. */
  acquire(key: Key, cost?: Cost): Promise<Decision>;
  /** As `acquire`, but only yes or no: `if (await limiter.allow(key))`. */
  allow(key: Key, cost?: Cost): Promise<boolean>;
  /** Whether `cost` would be admitted now, and what is left; takes nothing. */
  peek(key: Key, cost?: Cost): Promise<Decision>;
  /**
   * Ends the leases that a decision of this limiter took (`concurrency`). How many still counted: 0 for one that was
   * refused, released before, or has expired.
   */
  release(decision: Decision): Promise<number>;
  /** Forgets what `key` has used. */
  reset(key: Key): Promise<void>;
  /** As `acquire`, for `memory:`; elsewhere MIRAB_UNSUPPORTED. So are all the Sync forms. */
  acquireSync(key: Key, cost?: Cost): Decision;
  allowSync(key: Key, cost?: Cost): boolean;
  peekSync(key: Key, cost?: Cost): Decision;
  releaseSync(decision: Decision): number;
  resetSync(key: Key): void;
  /** Gives up its store; every later operation fails with MIRAB_CLOSED. Twice is fine. */
  close(): void;
}

export interface TokenBucketOptions {
  /** How many units a full bucket holds. Default: the limit. */
  capacity?: Cost | undefined;
  name?: string | undefined;
}

export interface RefilledBucketOptions {
  capacity: Cost;
  /** Tokens a second: a number, or exact text such as `'1/3'`. */
  refillRate: number | bigint | string;
  name?: string | undefined;
}

export interface FixedWindowOptions {
  /** `clock` (default): windows aligned to the clock. `first`: from the first admitted request. */
  anchor?: 'clock' | 'first' | undefined;
  name?: string | undefined;
}

export interface LeakyBucketOptions {
  /** How many may wait besides the one being served. Default 0. */
  queue?: Cost | undefined;
  name?: string | undefined;
}

export interface SlidingLogOptions {
  /** That many counters, 1 to 1024, which divide the period, in place of an entry for each request. */
  buckets?: Cost | undefined;
  name?: string | undefined;
}

export interface NamedOptions {
  name?: string | undefined;
}

/** An algorithm with its numbers; never changes. */
export class Limit {
  private constructor();
  /** Exactly one limit in mirab's notation. */
  static parse(text: string): Limit;
  /** `limit` units in each `perMs` milliseconds. */
  static tokenBucket(limit: Cost, perMs: number, options?: TokenBucketOptions): Limit;
  static tokenBucket(options: RefilledBucketOptions): Limit;
  /** At most `limit` units in each window of `perMs` milliseconds. */
  static fixedWindow(limit: Cost, perMs: number, options?: FixedWindowOptions): Limit;
  /** Admitted requests leave at `limit` in each `perMs`: a decision says how long to hold one (`delayMs`). */
  static leakyBucket(limit: Cost, perMs: number, options?: LeakyBucketOptions): Limit;
  /** `limit` units in `perMs` milliseconds; the window before this one counts by its overlap. */
  static slidingWindow(limit: Cost, perMs: number, options?: NamedOptions): Limit;
  /** Never more than `limit` units in any `perMs` milliseconds. */
  static slidingLog(limit: Cost, perMs: number, options?: SlidingLogOptions): Limit;
  /** At most `limit` units in flight: a decision's are given back by `release`, else after `expiresMs`. */
  static concurrency(limit: Cost, expiresMs: number, options?: NamedOptions): Limit;
  /** Refuses everything. */
  static deny(): Limit;
  /** Admits everything. */
  static unlimited(): Limit;
  /** The same under a name of its own (`A-Z a-z 0-9 . _ -`, at most 64), which keeps its buckets when its numbers change. */
  withName(name: string): Limit;
  /** The same with buckets of its own, such as a route's. */
  withScope(scope: string): Limit;
  /** The canonical notation: the same text in every language. */
  toString(): string;
  toJSON(): string;
}

/** Where one limit of a decision stands. */
export interface Standing {
  readonly name: string;
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  readonly resetAfterMs: number;
  /** Until `remaining` grows by one; undefined when nothing is used. */
  readonly nextAfterMs: number | undefined;
}

/** The answer of a limiter. An object is always true: write `if (decision.allowed)`. Milliseconds have fractions down to the microsecond. */
export class Decision {
  private constructor();
  readonly allowed: boolean;
  /** The capacity of the limit that decided. */
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  /** After this long the same cost is admitted, if nobody else came. Undefined when allowed, and on `never`. */
  readonly retryAfterMs: number | undefined;
  /** Until nothing is owed. */
  readonly resetAfterMs: number;
  /** Hold the request this long before serving it. */
  readonly delayMs: number;
  /** The name, else the canonical notation, of the limit that decided. */
  readonly limitName: string;
  /** Refused, and no wait helps: the cost is above the capacity, or the limit is `deny`. */
  readonly never: boolean;
  /** The store did not decide: a fallback did. */
  readonly degraded: boolean;
  /** Each limit of the policy. */
  readonly standings: readonly Standing[];
}

/** A clock for tests, moved by hand, for every store. */
export class ManualClock {
  /** It starts at `startUs` microseconds after 1970 (default 0, at most 2^52). */
  constructor(startUs?: Cost);
  advanceMs(ms: number): void;
  advanceUs(us: Cost): void;
  /** Backwards too. */
  setUs(us: Cost): void;
  readonly nowUs: number;
}

export type MirabErrorKind =
  | 'invalid_limit'
  | 'invalid_argument'
  | 'invalid_uri'
  | 'invalid_rules'
  | 'unsupported'
  | 'closed'
  | 'store_unavailable'
  | 'store_timeout'
  | 'store_denied'
  | 'store_full'
  | 'store_corrupt'
  | 'store_mismatch'
  | 'internal';

/** What mirab throws and rejects with. */
export class MirabError extends Error {
  constructor(kind: MirabErrorKind, message: string, options?: { cause?: unknown });
  readonly name: 'MirabError';
  readonly kind: MirabErrorKind;
  readonly code: `MIRAB_${Uppercase<MirabErrorKind>}`;
}
