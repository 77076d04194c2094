//! The answer to a request, by value.

use std::time::Duration;

use mirab::{Receipt, Told};

use crate::error::Failure;
use crate::ffi::{invalid, null};
use crate::limiter::mirab_limiter;

/// `limit_index` when the key is blocked.
pub const MIRAB_LIMIT_BLOCK: u32 = u32::MAX;

/// `retry_after_us` when there is nothing to wait for: admitted, or never.
pub const MIRAB_NO_RETRY: u64 = u64::MAX;

/// The answer: whether the request is admitted, and what its client should be told.
/// Threads: plain data; each call fills one of yours.
/// Lifetime: copy it, keep it; it refers to nothing but its limiter's limits by number.
/// NULL: `MIRAB_NULL_POINTER`, and then nothing was decided.
/// Freeing: nothing to free. Its size is fixed: later versions use the reserved room.
#[repr(C)]
pub struct mirab_decision {
    /// Admit the request only when this is true.
    pub allowed: bool,
    /// No waiting helps: the cost is above the capacity, or everything is refused.
    pub never: bool,
    /// The store failed, and what `mirab_options_set_on_store_failure` says decided in its place.
    /// There is nothing to give back: `mirab_limiter_refund` and the others do nothing.
    pub degraded: bool,
    #[doc(hidden)]
    pub _reserved_flags: [u8; 1],
    /// Which of the limiter's limits decided, from 0, for `mirab_limiter_limit_name`;
    /// `MIRAB_LIMIT_BLOCK` when `mirab_limiter_block` did.
    pub limit_index: u32,
    /// The capacity of the limit that decided, in units of cost.
    pub limit: u64,
    /// How many units are used: after this request when admitted, else before it.
    pub used: u64,
    /// How many units are left, at the same moment.
    pub remaining: u64,
    /// The same cost is admitted after so many microseconds, if nobody else comes; one
    /// microsecond earlier it is not. `MIRAB_NO_RETRY` when admitted or never.
    pub retry_after_us: u64,
    /// Microseconds until nothing is used any more.
    pub reset_after_us: u64,
    /// Hold an admitted request so many microseconds before serving it.
    pub delay_us: u64,
    /// What it took, for `mirab_limiter_refund`, `_commit` and `_release` to read.
    #[doc(hidden)]
    pub _receipt: [u64; 7],
    #[doc(hidden)]
    pub _origin: u32,
    #[doc(hidden)]
    pub _settled: u32,
    #[doc(hidden)]
    pub _reserved: [u64; 1],
}

const _: () = assert!(size_of::<mirab_decision>() == 128);

// Words of the receipt.
const COST: usize = 2;
const LEASE: [usize; 2] = [3, 4];

impl mirab_decision {
    /// As C sees what this limiter decided about a key. Inlined, so that it is made where it goes.
    #[inline(always)]
    pub(crate) fn new(told: Told<'_>, limiter: &mirab_limiter, key: &[u8]) -> Self {
        let (decided, receipt) = (told.decided(), told.receipt());
        Self {
            allowed: told.allowed(),
            never: told.never(),
            degraded: told.degraded(),
            _reserved_flags: [0; 1],
            // A policy has at most 16 limits.
            limit_index: told.limit_index().map_or(MIRAB_LIMIT_BLOCK, |index| index as u32),
            limit: decided.limit,
            used: decided.used,
            remaining: decided.remaining,
            retry_after_us: told.retry_after().map_or(MIRAB_NO_RETRY, micros),
            reset_after_us: micros(decided.reset_after),
            delay_us: micros(told.delay()),
            _receipt: receipt.map_or([0; 7], Receipt::to_parts),
            _origin: receipt.map_or(0, |_| limiter.origin.with_key(key)),
            _settled: 0,
            _reserved: [0; 1],
        }
    }
}

/// A decision that C hands back. Nothing but what it took is read of it: the rest may be anything.
pub(crate) struct Returned {
    decision: *mut mirab_decision,
    parts: [u64; 7],
    settled: bool,
}

impl Returned {
    /// Refuses what took something elsewhere: under other limits, for another key, or in no decision.
    pub(crate) unsafe fn new(
        decision: *mut mirab_decision,
        limiter: &mirab_limiter,
        key: &[u8],
    ) -> Result<Self, Failure> {
        if decision.is_null() {
            return Err(null("decision"));
        }
        // SAFETY: not NULL, and the promise of `ffi`. Any bits are numbers.
        let (parts, origin, settled) = unsafe {
            let settled = (&raw const (*decision)._settled).read() != 0;
            ((&raw const (*decision)._receipt).read(), (&raw const (*decision)._origin).read(), settled)
        };
        if parts[COST] != 0 && origin != limiter.origin.with_key(key) {
            return Err(invalid("decision must be one that this limiter gave for this key".into()));
        }
        Ok(Self { decision, parts, settled })
    }

    /// Whether its cost can still be given back or settled.
    pub(crate) fn is_open(&self) -> bool {
        self.parts[COST] != 0 && !self.settled
    }

    pub(crate) fn has_lease(&self) -> bool {
        LEASE.iter().any(|&word| self.parts[word] != 0)
    }

    pub(crate) fn receipt(&self) -> Receipt {
        Receipt::from_parts(self.parts)
    }

    /// A receipt that took nothing: with it the core only checks the rest.
    pub(crate) fn nothing(&self) -> Receipt {
        let mut parts = self.parts;
        parts[COST] = 0;
        Receipt::from_parts(parts)
    }

    /// From now on its cost stays as it is.
    pub(crate) fn mark_settled(&self) {
        // SAFETY: `new` has read it.
        unsafe { (&raw mut (*self.decision)._settled).write(1) };
    }

    /// From now on it has no leases.
    pub(crate) fn mark_released(&self) {
        let mut parts = self.parts;
        LEASE.iter().for_each(|&word| parts[word] = 0);
        // SAFETY: `new` has read it.
        unsafe { (&raw mut (*self.decision)._receipt).write(parts) };
    }
}

/// Whole microseconds already, and at most 2^52, by the core's promise.
pub(crate) fn micros(duration: Duration) -> u64 {
    duration.as_secs() * 1_000_000 + u64::from(duration.subsec_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_stay_what_they_are() {
        for us in [0, 1, 999_999, 1_000_000, 1_000_001, (1 << 52) - 1, 1 << 52] {
            assert_eq!(micros(Duration::from_micros(us)), us);
        }
    }
}
