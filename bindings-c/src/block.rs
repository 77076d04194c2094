//! Blocks: a key is refused for a time, whatever its limits say.

use std::time::Duration;

use crate::error::{mirab_error, mirab_result};
use crate::ffi::{natural, shared, slice};
use crate::guard::guard;
use crate::limiter::mirab_limiter;

/// Refuses a key for `for_us` microseconds, 1 to 2^50: under every limiter on this store and
/// prefix, at cost 0 and to `mirab_limiter_peek` too. A later block replaces it;
/// `mirab_limiter_unblock` and `mirab_limiter_reset` lift it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limiter_block(
    limiter: *const mirab_limiter,
    key: *const u8,
    key_len: usize,
    for_us: i64,
    error: *mut mirab_error,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (limiter, key) = unsafe { (shared(limiter, "limiter")?, slice(key, key_len, "key")?) };
        Ok(limiter.inner.block(key, Duration::from_micros(natural(for_us, "for_us")?))?)
    })
}

/// Lifts the block of a key. A key that isn't blocked is fine.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limiter_unblock(
    limiter: *const mirab_limiter,
    key: *const u8,
    key_len: usize,
    error: *mut mirab_error,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (limiter, key) = unsafe { (shared(limiter, "limiter")?, slice(key, key_len, "key")?) };
        Ok(limiter.inner.unblock(key)?)
    })
}
