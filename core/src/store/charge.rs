//! The one primitive of every store: groups of charges, each all or nothing.

use smallvec::SmallVec;

use super::bucket::Bucket;
use crate::Result;
use crate::algorithm::Seen;
use crate::clock::Now;
use crate::receipt::Lease;

/// `cost` units of a limit for a key.
#[derive(Clone, Copy)]
pub(crate) struct Charge<'a> {
    pub bucket: &'a Bucket,
    pub key: &'a [u8],
    pub cost: u64,
}

/// Charges that are all admitted and taken, or none is. No two are of one bucket.
pub(crate) struct Group<'a> {
    pub charges: SmallVec<[Charge<'a>; 2]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Take the costs when all are admitted, else nothing.
    Acquire,
    /// Ask only; nothing is written.
    Peek,
    /// Take what is there of the costs, without asking, also of a blocked key.
    Charge,
}

/// The answer to a group: the verdict, the store's time, and what was seen of each charge's state
/// (after taking, when taken).
pub(crate) struct Outcome {
    pub admitted: bool,
    pub now: Now,
    pub seen: SmallVec<[Seen; 2]>,
    /// The identity of the leases that may have been taken.
    pub lease: Lease,
    /// Until when a key of it is blocked: then it is refused, and nothing of its charges was seen.
    pub blocked: Option<u64>,
}

/// The answers to groups, in their order; each may fail alone.
pub(crate) type Outcomes = SmallVec<[Result<Outcome>; 1]>;

impl Charge<'_> {
    /// Whether it is written when it is admitted: a cost of 0 asks without taking.
    pub fn takes(&self, mode: Mode) -> bool {
        mode != Mode::Peek && self.cost > 0
    }

    pub fn never_admitted(&self) -> bool {
        self.bucket.limit().never_admits(self.cost)
    }
}

impl Group<'_> {
    /// Whether no wait helps.
    #[cfg(feature = "redis")]
    pub fn never_admitted(&self) -> bool {
        self.charges.iter().any(Charge::never_admitted)
    }

    /// The keys, each once.
    #[cfg(feature = "redis")]
    pub fn keys(&self) -> SmallVec<[&[u8]; 2]> {
        let mut keys: SmallVec<[&[u8]; 2]> = SmallVec::new();
        for charge in &self.charges {
            if !keys.iter().any(|&key| std::ptr::eq(key, charge.key) || key == charge.key) {
                keys.push(charge.key);
            }
        }
        keys
    }

    /// Whether any of them is by wall time.
    pub fn reads_wall(&self) -> bool {
        self.charges.iter().any(|charge| charge.bucket.algorithm().reads_wall())
    }

    /// An identity for the leases that it may take; none where it takes none.
    pub fn lease(&self, mode: Mode) -> Lease {
        let leases = |charge: &Charge<'_>| charge.takes(mode) && charge.bucket.limit().is_concurrency();
        if self.charges.iter().any(leases) { Lease::unique() } else { Lease::default() }
    }
}
