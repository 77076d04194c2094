import rateLimit from './express.js';

export { rateLimit };
export default rateLimit;
export declare const ipKeyGenerator: typeof rateLimit.ipKeyGenerator;
export type Options = rateLimit.Options;
export type Config = rateLimit.Config;
export type DraftHeadersVersion = rateLimit.DraftHeadersVersion;
export type RateLimitExceededEventHandler = rateLimit.RateLimitExceededEventHandler;
export type RateLimitInfo = rateLimit.RateLimitInfo;
export type RateLimitRequestHandler = rateLimit.RateLimitRequestHandler;
