//! How often a limiter answered what.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Result;
use crate::lane::{LANES, Lane, lane};
use crate::store::Contents;

/// Counts of a limiter since it was made.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Requests that were admitted.
    pub allowed: u64,
    /// Requests that were refused and may pass later.
    pub refused: u64,
    /// Requests that were refused for ever: a cost above the capacity, or `deny`.
    pub never: u64,
    /// Requests that were refused because the key is blocked.
    pub blocked: u64,
    /// Requests that were not decided: an error was returned.
    pub errors: u64,
    /// Requests of the above that were decided in the store's place, since it failed.
    pub degraded: u64,
    /// Units that `refund` and `commit` gave back.
    pub refunded: u64,
    /// Keys that the store keeps in this process, of all its limiters; 0 on Redis.
    pub keys: u64,
    /// Live keys that the store forgot, or refused, for want of room; 0 on Redis.
    pub evicted: u64,
}

/// How a request ended.
#[derive(Clone, Copy)]
pub(crate) enum Ended {
    Allowed,
    Refused,
    Never,
    Blocked,
    Error,
    /// Beside one of the others: in the store's place.
    Degraded,
}

/// Counters of which each thread has its own.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    lanes: [Counts; LANES],
    refunded: AtomicU64,
}

/// A cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Counts([AtomicU64; 6]);

impl Counters {
    #[inline]
    pub fn count(&self, ended: Ended) {
        let Lane { index, is_own } = lane();
        let count = &self.lanes[index].0[ended as usize];
        if is_own {
            // Nobody else writes it, so that the dear atomic addition is not needed.
            count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        } else {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn refunded(&self, units: u64) {
        self.refunded.fetch_add(units, Ordering::Relaxed);
    }

    pub fn stats(&self, contents: Option<Contents>) -> Stats {
        let sum =
            |ended: Ended| self.lanes.iter().map(|lane| lane.0[ended as usize].load(Ordering::Relaxed)).sum();
        let (keys, evicted) = contents.map_or((0, 0), |it| (it.keys, it.evicted));
        Stats {
            allowed: sum(Ended::Allowed),
            refused: sum(Ended::Refused),
            never: sum(Ended::Never),
            blocked: sum(Ended::Blocked),
            errors: sum(Ended::Error),
            degraded: sum(Ended::Degraded),
            refunded: self.refunded.load(Ordering::Relaxed),
            keys,
            evicted,
        }
    }

    /// Counts what was answered, or that nothing was.
    #[inline]
    pub fn counted<T>(&self, result: Result<T>, ended: impl FnOnce(&T) -> Ended) -> Result<T> {
        self.count(result.as_ref().map_or(Ended::Error, ended));
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up() {
        let counters = Counters::default();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| (0..100).for_each(|_| counters.count(Ended::Refused)));
            }
        });
        let stats = counters.stats(None);
        assert_eq!((stats.refused, stats.allowed), (2000, 0));
    }
}
