import type { Answer, Answers, Naming } from './lib/http.js';

/** A limit, in mirab's notation (`'100/second burst 300'`), made by {@link Limit}, or several of them. */
export type Limits = string | Limit | readonly (string | Limit)[];

/** Text is its UTF-8 bytes: `'a'` and the byte 97 are one key. 1 to 65536 bytes. */
export type Key = string | Uint8Array;

/** An integer from 0 to 2^53; 0 asks without taking. */
export type Cost = number | bigint;

/** A manual clock, or a function that returns milliseconds since 1970, called once a decision. */
export type Clock = ManualClock | (() => number);

export interface LimiterOptions {
  /**
   * Where the state lives: `memory:` (default: this limiter's own), `memory:NAME` (this process's), `shm:NAME` (one for
   * all processes of this host and user: what several workers of one host should use), `redis://HOST`. `?max_keys=` bounds
   * what is kept in memory (default 1000000, shared 100000); `&when_full=refuse` refuses new keys rather than forget one.
   */
  store?: string | undefined;
  /** Default: the store's own clock. */
  clock?: Clock | undefined;
  /** What decides while the store fails. Default `local`. */
  onStoreFailure?: OnStoreFailure | undefined;
  /** How many processes share the store (default 1): with `local` each admits that part of the limits by itself. */
  instances?: Cost | undefined;
}

/**
 * While a store elsewhere fails: `local` keeps the same limits in this process, each key from where it was last seen;
 * `open` admits all, `closed` refuses all, `raise` throws the error. The first three mark their decisions `degraded`.
 */
export type OnStoreFailure = 'local' | 'open' | 'closed' | 'raise';

/** The options of {@link Limiter.wait}. */
export interface WaitOptions {
  /** Default: as long as it takes; 0 asks once. */
  timeoutMs?: number | undefined;
  /** Ends the wait: it rejects with the signal's reason. What was taken by then stays taken. */
  signal?: AbortSignal | undefined;
}

/** A key, or a key with its cost (default 1). */
export type Item = Key | readonly [key: Key, cost?: Cost];

/** How often a limiter answered what, since it was made. */
export interface Stats {
  /** Requests that were admitted. */
  readonly allowed: number;
  /** Requests that were refused and may pass later. */
  readonly refused: number;
  /** Requests that were refused for ever: a cost above the capacity, or `deny`. */
  readonly never: number;
  /** Requests that were refused because the key is blocked. */
  readonly blocked: number;
  /** Requests that were not decided: an error was returned. */
  readonly errors: number;
  /** Requests of the above that were decided in the store's place, since it failed. */
  readonly degraded: number;
  /** Units that `refund` and `commit` gave back. */
  readonly refunded: number;
  /** Keys that the store keeps on this machine, of all its limiters; 0 on Redis. */
  readonly keys: number;
  /** Live keys that the store forgot, or refused, for want of room; 0 on Redis. */
  readonly evicted: number;
}

/** How a store is. */
export interface Health {
  /** The store, without credentials. */
  readonly store: string;
  /** Whether it answered just now, and requests may ask it. */
  readonly ok: boolean;
  /** `closed` while it is asked, `open` while it is not, after failures, `trial` while one request tries it again. */
  readonly circuit: 'closed' | 'open' | 'trial';
  /** How often it went from closed to open. */
  readonly opened: number;
  /** What failed last, and how long ago; it stays when the store is well again. */
  readonly lastError: { readonly kind: MirabErrorKind; readonly message: string; readonly ageMs: number } | undefined;
  readonly serverVersion: string | undefined;
  /** What the server does when its memory is full. */
  readonly maxmemoryPolicy: string | undefined;
  /** Whether it would then drop keys of limiters, whose owners so have all their room back; undefined when it did not say. */
  readonly mayDropKeys: boolean | undefined;
  /** How far the server's clock is ahead of this process's. */
  readonly clockAheadMs: number | undefined;
  /** The layout of the state that this release writes. */
  readonly layout: number;
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
   * As `acquire`, with what the client is told of it. Serve by `answer.status`: a request that would be held too long is
   * allowed in the decision, and is to be refunded.
   */
  acquireWithAnswer(key: Key, cost: Cost, answers: Answers, naming?: Naming): Promise<{ decision: Decision; answer: Answer }>;
  /** As `peek`, with what the client would be told of it. */
  peekWithAnswer(key: Key, cost: Cost, answers: Answers, naming?: Naming): Promise<{ decision: Decision; answer: Answer }>;
  /**
   * Acquires for several keys in one step: each is all or nothing for itself, in their order. One bad item is an error
   * that names its index, and then nothing is taken.
   */
  acquireMany(items: readonly Item[]): Promise<Decision[]>;
  /**
   * Waits until `cost` is admitted (and, under `leaky_bucket`, due) and resolves with that decision. With one that refuses
   * when the timeout has passed, and at once when no wait helps or `retryAfterMs` is beyond the timeout. No order among
   * those who wait is promised. A manual clock is advanced, and takes no time. `close` ends it with MIRAB_CLOSED.
   */
  wait(key: Key, cost?: Cost, options?: WaitOptions): Promise<Decision>;
  /**
   * Gives back what a decision of this limiter took, never above full; leases end with it. How many units: it works once,
   * and 0 for one that was refused, settled before, or has expired. In a leaky bucket only the last in the queue may
   * leave, before its turn.
   */
  refund(decision: Decision): Promise<number>;
  /**
   * Settles a decision of this limiter, once, at the cost that it turned out to have: less than was taken is given back;
   * more is charged, whatever is left, at most to empty. Leases go on.
   */
  commit(decision: Decision, actualCost: Cost): Promise<void>;
  /**
   * Ends the leases that a decision of this limiter took (`concurrency`). How many still counted: 0 for one that was
   * refused, released before, or has expired.
   */
  release(decision: Decision): Promise<number>;
  /**
   * Refuses `key` for so long, under any limits on this store, also at cost 0: `limitName` is then `block`. A later block
   * replaces it; `unblock` and `reset` lift it.
   */
  block(key: Key, ms: number): Promise<void>;
  unblock(key: Key): Promise<void>;
  /** Forgets what `key` has used, and lifts its block. */
  reset(key: Key): Promise<void>;
  /** As `acquire`, for `memory:` and `shm:`; elsewhere MIRAB_UNSUPPORTED. So are all the Sync forms. */
  acquireSync(key: Key, cost?: Cost): Decision;
  allowSync(key: Key, cost?: Cost): boolean;
  peekSync(key: Key, cost?: Cost): Decision;
  acquireManySync(items: readonly Item[]): Decision[];
  refundSync(decision: Decision): number;
  commitSync(decision: Decision, actualCost: Cost): void;
  releaseSync(decision: Decision): number;
  blockSync(key: Key, ms: number): void;
  unblockSync(key: Key): void;
  resetSync(key: Key): void;
  /** How its store is, asked now. One that is away is what it tells, and no error. */
  health(): Promise<Health>;
  /** How often it answered what; after `close` the last counts. */
  stats(): Stats;
  /** Gives up its store; every later operation, and who waits, fails with MIRAB_CLOSED. Twice is fine. */
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
  /** At most `limit` units in each window of `perMs` milliseconds. Calendar windows have the notation only: `fixed_window: 10000/month in Africa/Cairo`. */
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
  /** The name, else the canonical notation, of the limit that decided; `block` where the key is blocked. */
  readonly limitName: string;
  /** Refused, and no wait helps: the cost is above the capacity, or the limit is `deny`. */
  readonly never: boolean;
  /** The store did not decide: a fallback did. */
  readonly degraded: boolean;
  /** Each limit of the policy; the block alone where the key is blocked. */
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
  /** Of a store's error: whether it may have done what was asked, though nobody said so. It is never asked twice. */
  readonly mayHaveHappened?: boolean;
  /** 503 on an error of the store that `mirab/express` gave to `next`: Express answers with it. */
  readonly status?: 503;
  readonly statusCode?: 503;
}
