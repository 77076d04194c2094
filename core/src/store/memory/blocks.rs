//! Blocks: until when keys are refused, under any policy.

use std::collections::BTreeMap;

use crate::store::bucket::Fingerprint;

/// So many are kept before anybody looks for those that are over.
const FEW: usize = 16;

#[derive(Default)]
pub(super) struct Blocks {
    ends: BTreeMap<Fingerprint, u64>,
    /// How many there were after those that were over had been dropped the last time.
    lasting: usize,
}

impl Blocks {
    /// Refuses a key until then. When there are twice as many as at the last time, those that were over
    /// `before` are dropped. How many there are more than before.
    pub fn put(&mut self, key: Fingerprint, end: u64, before: u64) -> isize {
        let count = self.ends.len();
        if count >= (2 * self.lasting).max(FEW) {
            self.ends.retain(|_, end| *end > before);
            self.lasting = self.ends.len();
        }
        self.ends.insert(key, end);
        self.ends.len().cast_signed() - count.cast_signed()
    }

    /// Lifts a block; true when there was one.
    pub fn lift(&mut self, key: Fingerprint) -> bool {
        self.ends.remove(&key).is_some()
    }

    /// Until when a key is refused.
    pub fn end(&self, key: Fingerprint, now: u64) -> Option<u64> {
        self.ends.get(&key).copied().filter(|&end| end > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_does_not_pile_up() {
        let (mut blocks, mut count) = (Blocks::default(), 0);
        let name = |number: u64| Fingerprint::of(&number.to_be_bytes());
        for now in 0..10_000_u64 {
            count += blocks.put(name(now), now + 50, now);
            assert!(count <= 128, "{count} at {now}");
        }
        assert_eq!(count, blocks.ends.len().cast_signed());
        for last in 9_951..10_000 {
            assert_eq!(blocks.end(name(last), 10_000), Some(last + 50));
        }
        assert!(blocks.lift(name(9_999)) && !blocks.lift(name(9_999)));
        assert_eq!(blocks.end(name(9_999), 10_000), None);
    }
}
