//! How often a limiter answered what.

use mirab::Stats;

use crate::error::{mirab_error, mirab_result};
use crate::ffi::{output, shared};
use crate::guard::guard;
use crate::limiter::mirab_limiter;

/// Counts of a limiter since it was made; `mirab_limiter_peek` isn't counted.
/// Threads: plain data; each call fills one of yours.
/// Lifetime: copy it, keep it; it refers to nothing.
/// NULL: `MIRAB_NULL_POINTER`.
/// Freeing: nothing to free. Its size is fixed: later versions use the reserved room.
#[repr(C)]
pub struct mirab_stats {
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
    /// Units that `mirab_limiter_refund` and `mirab_limiter_commit` gave back.
    pub refunded: u64,
    /// Keys that the store keeps on this machine, of all its limiters; 0 on Redis.
    pub keys: u64,
    /// Live keys that the store forgot, or refused, for want of room; 0 on Redis.
    pub evicted: u64,
    /// Requests of the above that were decided in the store's place, since it failed.
    pub degraded: u64,
    #[doc(hidden)]
    pub _reserved: [u64; 7],
}

const _: () = assert!(size_of::<mirab_stats>() == 128);

impl From<Stats> for mirab_stats {
    fn from(stats: Stats) -> Self {
        Self {
            allowed: stats.allowed,
            refused: stats.refused,
            never: stats.never,
            blocked: stats.blocked,
            errors: stats.errors,
            refunded: stats.refunded,
            keys: stats.keys,
            evicted: stats.evicted,
            degraded: stats.degraded,
            _reserved: [0; 7],
        }
    }
}

/// Tells how often the limiter answered what. It never asks a store that isn't on this machine,
/// and works on a closed limiter too.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limiter_stats(
    limiter: *const mirab_limiter,
    error: *mut mirab_error,
    out: *mut mirab_stats,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (limiter, out) = unsafe { (shared(limiter, "limiter")?, output(out, "out")?) };
        out.write(limiter.inner.stats().into());
        Ok(())
    })
}
