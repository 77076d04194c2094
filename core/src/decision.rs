//! A decision: the answer, and everything a client should be told.

use std::time::Duration;

use smallvec::SmallVec;

use crate::policy::Policy;
use crate::receipt::Receipt;
use crate::standing::Standing;
use crate::told::{BareDecision, Told};

/// The answer to a request. Every duration is whole microseconds, rounded up.
///
/// It holds what the store saw; what is told of it is computed when it is asked. A clone tells the same,
/// but holds nothing that could be given back.
#[derive(Clone, Debug)]
pub struct Decision {
    policy: Policy,
    key: SmallVec<[u8; 24]>,
    bare: BareDecision,
}

/// It is made for every request: what a processor moves in a few steps.
const _: () = assert!(size_of::<Decision>() == 128);

impl Decision {
    #[inline]
    pub(crate) fn new(policy: Policy, key: &[u8], bare: BareDecision) -> Self {
        Self { policy, key: SmallVec::from_slice(key), bare }
    }

    /// All that it tells, as a value to pass on.
    #[inline]
    pub fn told(&self) -> Told<'_> {
        self.bare.told(&self.policy)
    }

    /// Whether the request may pass.
    #[inline]
    pub fn allowed(&self) -> bool {
        self.told().allowed()
    }

    /// The capacity of the limit that decided.
    #[inline]
    pub fn limit(&self) -> u64 {
        self.told().limit()
    }

    /// What is in use of it.
    #[inline]
    pub fn used(&self) -> u64 {
        self.told().used()
    }

    /// What is left of it.
    #[inline]
    pub fn remaining(&self) -> u64 {
        self.told().remaining()
    }

    /// How long to wait: the same cost is then admitted if nobody else came, and not a microsecond
    /// earlier. None when allowed, and when no wait helps ([`never`](Self::never)).
    #[inline]
    pub fn retry_after(&self) -> Option<Duration> {
        self.told().retry_after()
    }

    /// Until nothing is owed.
    #[inline]
    pub fn reset_after(&self) -> Duration {
        self.told().reset_after()
    }

    /// How long to hold an admitted request until its turn (leaky bucket), else zero; of several
    /// limits the longest.
    #[inline]
    pub fn delay(&self) -> Duration {
        self.told().delay()
    }

    /// The name of the limit that decided, else its canonical notation. Of several: never, then
    /// the longest wait, then the fewest left, then the order in the policy.
    #[inline]
    pub fn limit_name(&self) -> &str {
        self.told().limit_name()
    }

    /// The place in the policy, and in `standings`, of the limit that decided; none where the key is
    /// blocked.
    #[inline]
    pub fn limit_index(&self) -> Option<usize> {
        self.told().limit_index()
    }

    /// Whether the key is blocked.
    #[inline]
    pub fn is_blocked(&self) -> bool {
        self.told().is_blocked()
    }

    /// Whether no wait helps: the cost is above the capacity, or everything is denied.
    #[inline]
    pub fn never(&self) -> bool {
        self.told().never()
    }

    /// Whether something decided in the store's place.
    #[inline]
    pub fn degraded(&self) -> bool {
        self.told().degraded()
    }

    /// Where the limit stands that decided; the block, where the key is blocked.
    #[inline]
    pub fn decided(&self) -> Standing<'_> {
        self.told().decided()
    }

    /// Every limit's standing, in the order of the policy; the block's alone where the key is blocked.
    #[inline]
    pub fn standings(&self) -> impl ExactSizeIterator<Item = Standing<'_>> + Clone {
        self.told().standings()
    }

    /// The key that was asked about.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// What it took; none when it took nothing, and for a clone: only the original can be settled.
    pub fn receipt(&self) -> Option<Receipt> {
        self.told().receipt()
    }

    pub(crate) fn bare(&self) -> &BareDecision {
        &self.bare
    }
}
