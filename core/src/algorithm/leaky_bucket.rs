//! The leaky bucket as a queue: admitted requests leave at exactly the rate.
//!
//! It decides as a token bucket whose capacity is the queue and the one being served, and tells
//! how long an admitted request waits for its turn.

use super::token_bucket::{Tat, TokenBucket};

/// A leaky bucket's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LeakyBucket {
    pub bucket: TokenBucket,
}

impl LeakyBucket {
    /// How many may wait besides the one being served.
    pub fn queue(&self) -> u64 {
        self.bucket.capacity - 1
    }

    /// How long one unit waits behind a queue that is full but for its place, rounded up.
    pub fn longest_delay(&self) -> u64 {
        let full = self.bucket.charged(Tat::default(), 0, self.queue());
        self.bucket.debt_before(full, 0, 0)
    }

    /// When the first of the `taken` units is served: the debt before they were taken, rounded up.
    pub fn delay(&self, tat: Tat, now: u64, taken: u64) -> u64 {
        self.bucket.debt_before(tat, now, taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_waits_for_those_before_him() {
        let leaky = LeakyBucket { bucket: TokenBucket::new(3, 1_000_000, 4).unwrap() };
        let mut tat = Tat::default();
        for (turn, delay) in [0, 333_334, 666_667, 1_000_000].into_iter().enumerate() {
            assert!(leaky.bucket.admits(tat, 5, 1), "{turn}");
            tat = leaky.bucket.charged(tat, 5, 1);
            assert_eq!(leaky.delay(tat, 5, 1), delay);
        }
        assert!(!leaky.bucket.admits(tat, 5, 1));
        assert_eq!(leaky.queue(), 3);
        assert_eq!(leaky.longest_delay(), 1_000_000);
    }
}
