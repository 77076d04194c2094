export { Decision, Limit, Limiter, ManualClock, MirabError } from './index.js';
export type {
  Clock,
  Cost,
  FixedWindowOptions,
  Key,
  LimiterOptions,
  Limits,
  MirabErrorKind,
  RefilledBucketOptions,
  Standing,
  TokenBucketOptions,
} from './index.js';
