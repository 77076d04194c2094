//! A share of a limit: what one of several instances may admit while nobody counts for all of them.

use super::fixed_window::Window;
use super::interval::Span;
use super::leaky_bucket::LeakyBucket;
use super::sliding_buckets::Buckets;
use super::sliding_log::Log;
use super::sliding_window::Pair;
use super::token_bucket::{Tat, TokenBucket};
use super::{Algorithm, Seen, State};

impl Algorithm {
    /// The share of one of `instances`: the capacity divided and rounded up, and exactly that part of the
    /// rate. All shares together admit what the whole does, and less than `instances` more at once. A
    /// share that would take too long to refill stays whole.
    pub fn share(&self, instances: u64) -> Self {
        let part = |count: u64| count.div_ceil(instances);
        let bucket = |it: &TokenBucket| {
            let slower = it.period_us.checked_mul(instances);
            slower
                .and_then(|period| TokenBucket::new(it.count, period, part(it.capacity)).ok())
                .unwrap_or(*it)
        };
        match *self {
            Self::TokenBucket(ref it) => Self::TokenBucket(bucket(it)),
            Self::LeakyBucket(ref it) => Self::LeakyBucket(LeakyBucket { bucket: bucket(&it.bucket) }),
            Self::FixedWindow(mut it) => {
                it.limit = part(it.limit);
                Self::FixedWindow(it)
            }
            Self::SlidingWindow(mut it) => {
                it.limit = part(it.limit);
                Self::SlidingWindow(it)
            }
            Self::SlidingLog(mut it) => {
                it.limit = part(it.limit);
                Self::SlidingLog(it)
            }
            Self::SlidingBuckets(mut it) => {
                it.limit = part(it.limit);
                Self::SlidingBuckets(it)
            }
            Self::Concurrency(mut it) => {
                it.limit = part(it.limit);
                Self::Concurrency(it)
            }
            Self::Deny | Self::Unlimited => *self,
        }
    }

    /// The state from which a share goes on where the whole was last seen so; never less in use than its
    /// part of what was. None where nothing was in use, and for leases, which their holders return to the
    /// store. A log is taken as if all of it had come last.
    pub fn share_of(&self, seen: &Seen, instances: u64) -> Option<State> {
        let part = |count: u32| u64::from(count).div_ceil(instances) as u32;
        match (self, *seen) {
            // The instant at which the share would be full is that of the whole: the used part is the same.
            (_, Seen::Bucket(Tat(full_at))) if full_at.whole > 0 => {
                let whole = full_at.whole + u64::from(full_at.fraction > 0);
                Some(State::Bucket(Tat(Span { whole, fraction: 0 })))
            }
            (_, Seen::Window(window)) if window.count > 0 => {
                Some(State::Window(Window { count: part(window.count), ..window }))
            }
            (_, Seen::Pair(Pair { end, current, previous })) if current > 0 || previous > 0 => {
                Some(State::Pair(Pair { end, current: part(current), previous: part(previous) }.packed()))
            }
            (Self::SlidingLog(it), Seen::Tally(tally)) if tally.used > 0 => {
                let at = tally.last_end.saturating_sub(it.period_us);
                Some(State::Log(Box::new(Log::of(it, at, part(tally.used)))))
            }
            (Self::SlidingBuckets(it), Seen::Tally(tally)) if tally.used > 0 => {
                Some(State::Buckets(Box::new(Buckets::of(it, tally.last_end, part(tally.used)))))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Now;
    use crate::limit::Limit;

    #[test]
    fn shares_add_up_to_the_whole() {
        for text in [
            "10/minute",
            "7/minute burst 3",
            "leaky_bucket: 5/second queue 9",
            "fixed_window: 10/minute",
            "sliding_window: 11/minute",
            "sliding_log: 10/minute",
            "sliding_log: 10/minute buckets 6",
            "concurrency: 3 for 30s",
        ] {
            let whole = *Limit::parse(text).unwrap().algorithm();
            for instances in [1, 2, 3, 4, 100] {
                let share = whole.share(instances);
                assert!(share.capacity() * instances >= whole.capacity(), "{text} / {instances}");
                assert!((share.capacity() - 1) * instances < whole.capacity(), "{text} / {instances}");
            }
            assert_eq!(whole.share(1), whole);
        }
        let Algorithm::TokenBucket(share) = Limit::parse("10/minute").unwrap().algorithm().share(4) else {
            panic!("not a token bucket");
        };
        assert_eq!((share.count, share.period_us, share.capacity), (10, 240_000_000, 3));
        // 35 years each, together more than the domain has.
        let slow = *Limit::parse("1/30 years").unwrap().algorithm();
        assert_eq!(slow.share(3), slow);
    }

    #[test]
    fn a_share_goes_on_where_the_whole_was() {
        let now = Now { steady: 1_000_000_000, wall: 1_000_000_000 };
        for (text, used, left) in [
            ("10/hour", 10, 0),
            ("10/hour", 4, 3),
            ("fixed_window: 10/hour", 10, 0),
            ("fixed_window: 10/hour", 3, 3),
            ("sliding_window: 10/hour", 10, 0),
            ("sliding_log: 10/hour", 3, 3),
            ("sliding_log: 10/hour buckets 6", 3, 3),
        ] {
            let whole = *Limit::parse(text).unwrap().algorithm();
            let seen = whole.charged(whole.nothing(now), now, used);
            let share = whole.share(2);
            let state = share.share_of(&seen, 2).unwrap();
            let (seen, _) = share.see(Some(&state), now, 1);
            assert_eq!(share.measure(&seen, now).remaining, left, "{text}, {used} used");
            assert_eq!(share.share_of(&whole.nothing(now), 2), None, "{text}");
        }
    }
}
