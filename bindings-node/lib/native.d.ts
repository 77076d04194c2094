// The addon's functions, for readers and the tests: they compare these names with what it exports.
// Numbers named limiter, clock, waiter and held are handles; times are milliseconds since 1970.

export type Key = string | Uint8Array;

/** Where decisions arrive, and receipts are handed over; `src/decision.rs` says what stands where. */
export const results: Float64Array;
export const version: string;

export function setErrorClass(errorClass: new (kind: string, message: string) => Error): void;
export function errorKinds(): string[];

export function limitParse(text: string): string;
export function limitTokenBucket(limit: number, perMs: number, capacity?: number): string;
export function limitTokenBucketRefilled(capacity: number, refillRate: string): string;
export function limitFixedWindow(limit: number, perMs: number, anchor: string): string;
export function limitLeakyBucket(limit: number, perMs: number, queue: number): string;
export function limitSlidingWindow(limit: number, perMs: number): string;
export function limitSlidingLog(limit: number, perMs: number, buckets?: number): string;
export function limitConcurrency(limit: number, expiresMs: number): string;
export function limitDeny(): string;
export function limitUnlimited(): string;
export function limitWithName(text: string, name: string): string;
export function limitWithScope(text: string, scope: string): string;

export function clockNew(startUs: number): number;
export function clockFree(clock: number): void;
export function clockAdvanceMs(clock: number, ms: number): void;
export function clockAdvanceUs(clock: number, us: number): void;
export function clockSetUs(clock: number, us: number): void;
export function clockNowUs(clock: number): number;

export function limiterNew(limits: string[], scopes: string[], storeAndFailure: [store: string, onStoreFailure: string], instances: number, clock?: number | 'host'): number;
export function limiterFree(limiter: number): void;
export function limiterClose(limiter: number): void;
export function limiterIsLocal(limiter: number): boolean;
export function limiterKind(limiter: number): string;
export function limiterNames(limiter: number): string[];
export function limiterTexts(limiter: number): string[];
export function limiterLongestDelays(limiter: number): number[];
export function limiterIsLeasing(limiter: number): boolean;
export function limiterStats(limiter: number): number[];
export function limiterNews(limiter: number): string[] | undefined;
export function limiterHealthAsync(limiter: number): Promise<(string | number | boolean | undefined)[]>;

// A cost that is left out is 1. A receipt stands in `results`.
export function acquire(limiter: number, key: Key, cost?: number, time?: number): void;
export function peekHeld(limiter: number, key: Key, cost?: number, time?: number): void;
export function acquireHeld(limiter: number, key: Key, cost?: number, time?: number): void;
export function allow(limiter: number, key: Key, cost?: number, time?: number): boolean;
export function peek(limiter: number, key: Key, cost?: number, time?: number): void;
export function reset(limiter: number, key: Key, cost: 0, time?: number): void;
export function acquireMany(limiter: number, keys: Key[], costs: number[], time?: number): Float64Array;
export function block(limiter: number, key: Key, cost: 0, time: number | undefined, ms: number): void;
export function unblock(limiter: number, key: Key, cost: 0, time?: number): void;
export function release(limiter: number, key: Key, cost: 0, time?: number): number;
export function refund(limiter: number, key: Key, cost: 0, time?: number): number;
export function commit(limiter: number, key: Key, actualCost: number, time?: number): void;

export function acquireAsync(limiter: number, key: Key, cost?: number, time?: number): Float64Array | Promise<Float64Array>;
export function peekHeldAsync(limiter: number, key: Key, cost?: number, time?: number): Float64Array | Promise<Float64Array>;
export function acquireHeldAsync(limiter: number, key: Key, cost?: number, time?: number): Float64Array | Promise<Float64Array>;
export function allowAsync(limiter: number, key: Key, cost?: number, time?: number): boolean | Promise<boolean>;
export function peekAsync(limiter: number, key: Key, cost?: number, time?: number): Float64Array | Promise<Float64Array>;
export function resetAsync(limiter: number, key: Key, cost: 0, time?: number): Promise<void>;
export function acquireManyAsync(limiter: number, keys: Key[], costs: number[], time?: number): Promise<Float64Array>;
export function blockAsync(limiter: number, key: Key, cost: 0, time: number | undefined, ms: number): Promise<void>;
export function unblockAsync(limiter: number, key: Key, cost: 0, time?: number): Promise<void>;
export function releaseAsync(limiter: number, key: Key, cost: 0, time?: number): Promise<number>;
export function refundAsync(limiter: number, key: Key, cost: 0, time?: number): Promise<number>;
export function commitAsync(limiter: number, key: Key, actualCost: number, time?: number): Promise<void>;

/** Each step: how many microseconds to sleep before the next, or the slots of the decision. */
export function waiterNew(limiter: number, key: Key, cost: number, timeoutMs?: number): number;
export function waiterFree(waiter: number): void;
export function waiterStep(waiter: number, time?: number): number | Float64Array;
export function waiterStepAsync(waiter: number, time?: number): number | Float64Array | Promise<number | Float64Array>;

export function decisionFree(held: number): void;

export function clientsNew(networks: string[], hops: number | undefined, header: string, ipv6Prefix: number): number;
export function clientsFree(clients: number): void;
export function clientsHeader(clients: number): string | undefined;
export function clientsKey(clients: number, peer: string | undefined, lines: readonly string[]): string | undefined;
export function answersNew(families: string[], body: string, partitionSalt: Uint8Array | undefined, maxHoldMs: number | undefined): number;
export function answersFree(answers: number): void;
/** The status, the body, and the headers' names and values in turn. */
export function answer(answers: number, held: number, policyName: string | undefined, partitionKey: Key | undefined): [number, string | undefined, ...string[]];
