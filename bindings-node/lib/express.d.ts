import type { IncomingMessage, ServerResponse } from 'node:http';

import type { Clock, Limits, OnStoreFailure } from '../index.js';

declare function rateLimit(options?: rateLimit.Options): rateLimit.RateLimitRequestHandler;

declare namespace rateLimit {
  /** A request of `node:http`, with whatever the framework adds to it. */
  export type Request = IncomingMessage & Record<string, any>;
  export type Response = ServerResponse & Record<string, any>;
  export type Identity = string | number | bigint | null | undefined;
  export type Next = (error?: any) => void;
  export type Valued<T> = T | ((request: Request, response: Response) => T | Promise<T>);

  /** What later handlers find on the request. */
  export interface RateLimitInfo {
    limit: number;
    used: number;
    remaining: number;
    resetTime: Date;
    key: string;
  }

  export type DraftHeadersVersion = 'draft-6' | 'draft-7' | 'draft-8';
  export type RateLimitExceededEventHandler = (request: Request, response: Response, next: Next, options: Config) => unknown;

  export interface Options {
    /** The window, in milliseconds, from a client's first request. Default 60000. */
    windowMs?: number | undefined;
    /** Requests in each window; 0 refuses all. Default 5. */
    limit?: number | undefined;
    /** The older name of `limit`; both must not differ. */
    max?: number | undefined;
    /** In place of windowMs and limit: mirab's notation, a Limit, or several. */
    limits?: Limits | undefined;
    /** A store's URI. Default `memory:`; several workers of one host should share `shm:NAME`. */
    store?: string | undefined;
    clock?: Clock | undefined;
    /** Put before every key, so that limiters with equal limits on one store do not share. */
    prefix?: string | undefined;
    /** The longest, in milliseconds, that a `leaky_bucket` may hold a request; a longer queue is an error. Default 1000. */
    maxHold?: number | undefined;
    /** Text, bytes or what JSON can say. */
    message?: Valued<any>;
    /** Default 429. */
    statusCode?: number | undefined;
    handler?: RateLimitExceededEventHandler | undefined;
    /** `X-RateLimit-*`. Default true; with `limits` false. */
    legacyHeaders?: boolean | undefined;
    /** The older name of `legacyHeaders`; both must not differ. */
    headers?: boolean | undefined;
    /** `RateLimit-*`; true means draft-6. Default false; with `limits` draft-8. */
    standardHeaders?: boolean | DraftHeadersVersion | undefined;
    /** The policy's name in the headers of draft-8. */
    identifier?: Valued<string> | undefined;
    /** Default `rateLimit`. No name that a request of Node or Express has itself. */
    requestPropertyName?: string | undefined;
    /** Requests that it is true for are not limited. */
    skip?: ((request: Request, response: Response) => boolean | Promise<boolean>) | undefined;
    /** Default: the client's address. None or an empty one is the shared key `anonymous`. */
    keyGenerator?: ((request: Request, response: Response) => Identity | Promise<Identity>) | undefined;
    /** How many bits of an IPv6 address name a client, 1 to 128; false for the whole text. Default 56. */
    ipv6Subnet?: number | false | undefined;
    /** Counts no request that failed: its response has a status of 400 or more, or its client left before. Default false. */
    skipFailedRequests?: boolean | undefined;
    /** Counts no request that succeeded. Default false. */
    skipSuccessfulRequests?: boolean | undefined;
    /** Which requests succeeded, once their responses are sent. Default: a status below 400. */
    requestWasSuccessful?: ((request: Request, response: Response) => boolean | Promise<boolean>) | undefined;
    /** While the store fails: true is `onStoreFailure: 'open'`, and false `'raise'`. */
    passOnStoreError?: boolean | undefined;
    /**
     * While the store fails: `local` (default) keeps the same limits in this process; `open` lets all pass; `closed`
     * answers 503 with `Retry-After`; with `raise` the error goes to `next`, its `status` 503. None invents numbers for the headers.
     */
    onStoreFailure?: OnStoreFailure | undefined;
    /** How many processes share the store, for `local`. Default 1. */
    instances?: number | undefined;
    /**
     * Who is asking is told by these proxies, and by nobody else: networks, names or a number, as `Clients` of
     * `mirab/http` takes them. Without, it is `request.ip` (Express's own `trust proxy`) or the socket's address.
     */
    trustedProxies?: readonly string[] | number | undefined;
    /** The one header that they write. Default `X-Forwarded-For`. */
    clientIpHeader?: string | undefined;
    /** At least 16 secret bytes: with them all processes tell a client the same partition key. */
    partitionSalt?: Uint8Array | undefined;
  }

  /** The options in use, given to `handler`. */
  export type Config = Readonly<Options> & { readonly message: any; readonly statusCode: number };

  export interface RateLimitRequestHandler {
    (request: IncomingMessage, response: ServerResponse, next: Next): Promise<void>;
    /** Forgets what a key has used. */
    resetKey(key: string): Promise<void>;
    /** What a key has used; undefined for nothing. */
    getKey(key: string): Promise<{ totalHits: number; resetTime: Date } | undefined>;
  }

  /** The key of a client's address, for key generators: IPv6 masked, IPv4 mapped into IPv6 as IPv4. */
  export function ipKeyGenerator(ip: string, ipv6Subnet?: number | false): string;

  export { rateLimit, rateLimit as default };
}

export = rateLimit;
