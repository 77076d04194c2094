//! A receipt: what an admitted decision took, so that it can be returned.

use crate::algorithm::interval::Span;
use crate::clock::Now;

/// What an admitted decision took: the instant, the cost, and the identity of its leases.
///
/// It is plain numbers, each at most 2^53, so that every language can carry it; the key goes
/// beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub(crate) at: Now,
    pub(crate) cost: u64,
    pub(crate) lease: Lease,
    /// When a leaky bucket would have been full after it: only the last in the queue may leave.
    pub(crate) full_at: Span,
    /// Of which limits on which store, in 20 bits: others must not give it back.
    pub(crate) origin: u32,
}

/// The bits of an origin.
pub(crate) const ORIGIN_BITS: u32 = 20;

/// The identity of the leases that one decision took: 104 bits, in two numbers that a double holds.
/// Zero where it took none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lease {
    pub high: u64,
    pub low: u64,
}

const HALF: u64 = (1 << 52) - 1;

impl Receipt {
    /// The numbers: steady and wall time in microseconds since 1970, the cost, the lease's halves, a
    /// leaky bucket's instant of fullness, and its fraction with the origin.
    pub fn to_parts(self) -> [u64; 7] {
        let Span { whole, fraction } = self.full_at;
        let last = u64::from(self.origin) << 32 | u64::from(fraction);
        [self.at.steady, self.at.wall, self.cost, self.lease.high, self.lease.low, whole, last]
    }

    /// A receipt from the numbers of [`to_parts`](Self::to_parts).
    pub fn from_parts([steady, wall, cost, high, low, whole, last]: [u64; 7]) -> Self {
        let full_at = Span { whole, fraction: last as u32 };
        Self {
            at: Now { steady, wall },
            cost,
            lease: Lease { high, low },
            full_at,
            origin: (last >> 32) as u32,
        }
    }
}

impl Lease {
    /// Unique in this process by a counter, and among processes by their number and random seed.
    pub fn unique() -> Self {
        use std::sync::atomic::{AtomicU64, Ordering};

        use crate::store::bucket::Fingerprint;

        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&std::process::id().to_ne_bytes());
        bytes[4..].copy_from_slice(&COUNT.fetch_add(1, Ordering::Relaxed).to_ne_bytes());
        let Fingerprint { high, low } = Fingerprint::of(&bytes);
        Self { high: high & HALF, low: low & HALF }
    }

    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_differ_and_survive_doubles() {
        let lease = Lease::unique();
        assert_ne!(lease, Lease::unique());
        assert!(!lease.is_none());
        assert_eq!(lease.high as f64 as u64, lease.high);
        let receipt = Receipt {
            at: Now { steady: 1, wall: 2 },
            cost: 1 << 53,
            lease,
            full_at: Span { whole: 3, fraction: 4 },
            origin: (1 << ORIGIN_BITS) - 1,
        };
        assert_eq!(Receipt::from_parts(receipt.to_parts()), receipt);
    }
}
