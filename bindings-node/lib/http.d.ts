import type { IncomingMessage } from 'node:http';

export interface ClientsOptions {
  /**
   * Networks (`'10.0.0.0/8'`, `'2001:db8::7'`), the names `loopback`, `linklocal`, `uniquelocal`, `shared` and `unix`, or
   * the number of proxies, one behind the other, that nobody can go round. Default: nobody.
   */
  trustedProxies?: readonly string[] | number | undefined;
  /** The one header that the proxies write. Default `X-Forwarded-For`; `Forwarded` is read as RFC 7239 says. */
  header?: string | undefined;
  /** How many bits of an IPv6 address make a client, 1 to 128. Default 64. */
  ipv6Prefix?: number | undefined;
}

/**
 * Who is asking: the client's address, behind proxies that are trusted and no others. Without a trusted proxy the client
 * is who has connected, whatever the request says.
 */
export class Clients {
  constructor(options?: ClientsOptions);
  /** The name of the header that `key` wants to see, in lower case; undefined where none is read. */
  readonly header: string | undefined;
  /** The key of the client: `192.0.2.7`, or `2001:db8:1:2::/64`; undefined where nothing is known of him. */
  key(peer: string | null | undefined, lines?: readonly string[]): string | undefined;
  /** The key of who has sent a request of node:http, Express or Connect. */
  keyOf(request: IncomingMessage): string | undefined;
}

export type HeaderFamily = 'draft-8' | 'draft-8-spaced' | 'draft-7' | 'draft-6' | 'x-ratelimit' | 'x-ratelimit-epoch';

export interface AnswersOptions {
  /** Default `['draft-8']`. */
  families?: readonly HeaderFamily[] | undefined;
  /** What stands in a refusal: `problem` is application/problem+json. Default `none`. */
  body?: 'none' | 'problem' | 'json' | undefined;
  /** At least 16 secret bytes, the same in all processes; without them `pk` differs from one process to the next. */
  partitionSalt?: Uint8Array | undefined;
  /** The longest that a request is held for a leaky bucket; one that would be held longer is answered as refused. */
  maxHoldMs?: number | undefined;
}

/** How decisions are told to clients: made once, used for each by `limiter.acquireWithAnswer`. */
export class Answers {
  constructor(options?: AnswersOptions);
  #private;
}

export interface Naming {
  /** What the policy is called, instead of the limit's name. */
  policyName?: string | undefined;
  /** The key whose salted hash becomes `pk`. */
  partitionKey?: string | Uint8Array | undefined;
}

/** What a client is told: to be sent where it refuses; where it admits, its headers go with the response. */
export interface Answer {
  /** 200 where the request may pass, 429 where it may not, 503 where nobody could decide. */
  status: 200 | 429 | 503;
  headers: [name: string, value: string][];
  /** The body of a refusal, where one is wanted. */
  body: string | undefined;
}
