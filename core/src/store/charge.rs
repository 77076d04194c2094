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
/// (after taking, when taken); that alone of a block, where a key is blocked.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub admitted: bool,
    pub now: Now,
    pub seen: SmallVec<[Seen; 1]>,
    /// The identity of the leases that may have been taken.
    pub lease: Lease,
}

/// The answers to groups, in their order; each may fail alone.
pub(crate) type Outcomes = SmallVec<[Result<Outcome>; 1]>;

/// `cost` units of each of a policy's limits, for one key.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub buckets: &'a [Bucket],
    pub key: &'a [u8],
    pub cost: u64,
}

/// The answer to a request: an outcome before it is put away.
#[derive(Clone, Copy)]
pub(crate) struct Verdict<'a> {
    pub admitted: bool,
    pub now: Now,
    pub seen: &'a [Seen],
    pub lease: Lease,
}

impl<'a> Verdict<'a> {
    /// A verdict under which no lease was taken.
    #[inline]
    pub fn new(admitted: bool, now: Now, seen: &'a [Seen]) -> Self {
        Self { admitted, now, seen, lease: Lease::default() }
    }
}

impl<'a> Request<'a> {
    pub fn charges(self) -> impl Iterator<Item = Charge<'a>> {
        self.buckets.iter().map(move |bucket| Charge { bucket, key: self.key, cost: self.cost })
    }
}

impl Outcome {
    pub fn verdict(&self) -> Verdict<'_> {
        let Self { admitted, now, ref seen, lease } = *self;
        Verdict { admitted, now, seen, lease }
    }

    /// The answer where a key of the group is blocked until `end`.
    pub fn blocked(now: Now, end: u64, lease: Lease) -> Self {
        Self { admitted: false, now, seen: SmallVec::from_buf([Seen::Blocked(end)]), lease }
    }
}

impl Charge<'_> {
    /// Whether it is written when it is admitted: a cost of 0 asks without taking.
    pub fn takes(&self, mode: Mode) -> bool {
        mode != Mode::Peek && self.cost > 0
    }

    #[cfg(feature = "redis")]
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
}

/// An identity for the leases that charges may take; none where they take none.
pub(crate) fn lease(charges: &[Charge<'_>], mode: Mode) -> Lease {
    let leases = |charge: &Charge<'_>| charge.takes(mode) && charge.bucket.limit().is_concurrency();
    if charges.iter().any(leases) { Lease::unique() } else { Lease::default() }
}
