export { Decision, Limit, Limiter, ManualClock, MirabError } from './index.js';
export type {
  Clock,
  Cost,
  FixedWindowOptions,
  Item,
  Key,
  LeakyBucketOptions,
  LimiterOptions,
  Limits,
  MirabErrorKind,
  NamedOptions,
  RefilledBucketOptions,
  SlidingLogOptions,
  Standing,
  Stats,
  TokenBucketOptions,
  WaitOptions,
} from './index.js';
