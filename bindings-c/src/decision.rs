//! The answer to a request, by value.

use std::time::Duration;

use mirab::{Decision, Receipt};

use crate::error::Failure;
use crate::ffi::null;

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
    /// The store didn't decide; a fallback did.
    pub degraded: bool,
    #[doc(hidden)]
    pub _reserved_flags: [u8; 1],
    /// Which of the limiter's limits decided, from 0, for `mirab_limiter_limit_name`;
    /// `UINT32_MAX` when something else than a limit did.
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
    /// What it took, for `mirab_limiter_release` to read.
    #[doc(hidden)]
    pub _receipt: [u64; 5],
    #[doc(hidden)]
    pub _reserved: [u64; 4],
}

const _: () = assert!(size_of::<mirab_decision>() == 128);

impl From<&Decision> for mirab_decision {
    fn from(decision: &Decision) -> Self {
        Self {
            allowed: decision.allowed(),
            never: decision.never(),
            degraded: decision.degraded(),
            _reserved_flags: [0; 1],
            // A policy has at most 16 limits.
            limit_index: decision.limit_index() as u32,
            limit: decision.limit(),
            used: decision.used(),
            remaining: decision.remaining(),
            retry_after_us: decision.retry_after().map_or(MIRAB_NO_RETRY, micros),
            reset_after_us: micros(decision.reset_after()),
            delay_us: micros(decision.delay()),
            _receipt: decision.receipt().map_or([0; 5], Receipt::to_parts),
            _reserved: [0; 4],
        }
    }
}

/// What a decision says that it took. Nothing else of it is read: it may be anything.
pub(crate) unsafe fn receipt_of(decision: *const mirab_decision) -> Result<Receipt, Failure> {
    if decision.is_null() {
        return Err(null("decision"));
    }
    // SAFETY: not NULL, and the promise of `ffi`. Any bits are numbers.
    Ok(Receipt::from_parts(unsafe { (&raw const (*decision)._receipt).read() }))
}

/// Leaves it without leases; what it took of other limits stays on record.
pub(crate) unsafe fn mark_released(decision: *mut mirab_decision) {
    // SAFETY: `receipt_of` has read it.
    unsafe {
        let receipt = &raw mut (*decision)._receipt;
        let [steady, wall, cost, _, _] = receipt.read();
        receipt.write([steady, wall, cost, 0, 0]);
    }
}

/// Whole microseconds already, and at most 2^52, by the core's promise.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX - 1)
}
