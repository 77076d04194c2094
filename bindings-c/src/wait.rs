//! Waiting until a request is admitted.

use std::time::Duration;

use crate::decision::mirab_decision;
use crate::error::{mirab_error, mirab_result};
use crate::ffi::{natural, output, shared, slice};
use crate::guard::guard;
use crate::limiter::mirab_limiter;

/// `timeout_us` for waiting as long as it takes.
pub const MIRAB_FOREVER: i64 = i64::MAX;

/// As `mirab_limiter_acquire`, but sleeps until the request is admitted and due, at most
/// `timeout_us` microseconds; 0 asks once. A refusal in the end is no failure: `out` gets the last decision,
/// and at once when no wait helps or the promised instant lies beyond the timeout. An admitted
/// request of a leaky bucket has waited its `delay_us`, where that was within the timeout. Who
/// comes first among those who wait isn't promised. By a manual clock it advances the clock in
/// place of sleeping. A signal doesn't end it; `mirab_limiter_close` does: `MIRAB_CLOSED`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limiter_wait(
    limiter: *const mirab_limiter,
    key: *const u8,
    key_len: usize,
    cost: i64,
    timeout_us: i64,
    error: *mut mirab_error,
    out: *mut mirab_decision,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (limiter, key, out) =
            unsafe { (shared(limiter, "limiter")?, slice(key, key_len, "key")?, output(out, "out")?) };
        let cost = natural(cost, "cost")?;
        let timeout = Duration::from_micros(natural(timeout_us, "timeout_us")?);
        let timeout = (timeout_us != MIRAB_FOREVER).then_some(timeout);
        let decision = limiter.inner.wait(key, cost, timeout)?;
        out.write(mirab_decision::new(decision.told(), limiter, key));
        Ok(())
    })
}
