export { Decision, Limit, Limiter, ManualClock, MirabError } from './index.js';
export type {
  Clock,
  Cost,
  FixedWindowOptions,
  Key,
  LeakyBucketOptions,
  LimiterOptions,
  Limits,
  MirabErrorKind,
  NamedOptions,
  RefilledBucketOptions,
  SlidingLogOptions,
  Standing,
  TokenBucketOptions,
} from './index.js';
