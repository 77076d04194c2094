//! One limit: from its text, or from its numbers.

use std::ffi::c_char;
use std::time::Duration;

use mirab::{Anchor, Limit};

use crate::error::{Failure, mirab_error, mirab_result};
use crate::ffi::{self, Handle, exclusive, invalid, natural, output, text};
use crate::guard::{guard, guard_silently};

/// One limit. Most programs write limits as text to `mirab_limiter_new` and need none.
/// Threads: one at a time, while it is being set; then any number may read it.
/// Lifetime: a limiter copies it, so it may be freed before or after.
/// NULL: `MIRAB_NULL_POINTER`, and nothing in `mirab_limit_free`.
/// Freeing: `mirab_limit_free`, once.
pub struct mirab_limit {
    pub(crate) inner: Limit,
}

impl Handle for mirab_limit {}

/// Where the windows of a fixed window begin.
#[repr(u32)]
#[derive(Clone, Copy)]
pub enum mirab_anchor {
    /// At whole multiples of the period since 1970.
    MIRAB_ANCHOR_CLOCK = 0,
    /// At the first admitted request.
    MIRAB_ANCHOR_FIRST = 1,
}

/// Reads one limit, such as "100/second burst 300".
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limit_parse(
    notation: *const c_char,
    error: *mut mirab_error,
    out: *mut *mut mirab_limit,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (notation, out) = unsafe { (text(notation, "notation")?, output(out, "out")?) };
        out.give(mirab_limit { inner: Limit::parse(notation)? });
        Ok(())
    })
}

/// A bucket of `limit` units that refills `limit` units in `per_us` microseconds. For a
/// larger or smaller bucket of the same refill call `mirab_limit_set_capacity`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limit_token_bucket(
    limit: i64,
    per_us: i64,
    error: *mut mirab_error,
    out: *mut *mut mirab_limit,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let out = unsafe { output(out, "out")? };
        let inner = Limit::token_bucket(count(limit, "limit")?, period(per_us, "per_us")?)?;
        out.give(mirab_limit { inner });
        Ok(())
    })
}

/// A bucket of `capacity` units that refills `refill_rate` units a second, written exactly:
/// "5", "0.5", "1/3", "1e-3".
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limit_token_bucket_refilled(
    capacity: i64,
    refill_rate: *const c_char,
    error: *mut mirab_error,
    out: *mut *mut mirab_limit,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (rate, out) = unsafe { (text(refill_rate, "refill_rate")?, output(out, "out")?) };
        let inner = Limit::token_bucket_refilled(count(capacity, "capacity")?, rate)?;
        out.give(mirab_limit { inner });
        Ok(())
    })
}

/// At most `limit` units in each window of `per_us` microseconds; `anchor` is a
/// `mirab_anchor`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limit_fixed_window(
    limit: i64,
    per_us: i64,
    anchor: u32,
    error: *mut mirab_error,
    out: *mut *mut mirab_limit,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let out = unsafe { output(out, "out")? };
        let limit = count(limit, "limit")?;
        let inner = Limit::fixed_window(limit, period(per_us, "per_us")?, anchor_of(anchor)?)?;
        out.give(mirab_limit { inner });
        Ok(())
    })
}

/// Admitted requests leave at `limit` units in `per_us` microseconds: `delay_us` of a decision
/// says how long to hold one. At most `queue` wait, besides the one being served.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limit_leaky_bucket(
    limit: i64,
    per_us: i64,
    queue: i64,
    error: *mut mirab_error,
    out: *mut *mut mirab_limit,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let out = unsafe { output(out, "out")? };
        let (limit, queue) = (count(limit, "limit")?, count(queue, "queue")?);
        let inner = Limit::leaky_bucket(limit, period(per_us, "per_us")?, queue)?;
        out.give(mirab_limit { inner });
        Ok(())
    })
}

/// `limit` units in `per_us` microseconds, where the window before this one counts by how
/// much of it still overlaps. Takes as little memory as a fixed window.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limit_sliding_window(
    limit: i64,
    per_us: i64,
    error: *mut mirab_error,
    out: *mut *mut mirab_limit,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let out = unsafe { output(out, "out")? };
        let inner = Limit::sliding_window(count(limit, "limit")?, period(per_us, "per_us")?)?;
        out.give(mirab_limit { inner });
        Ok(())
    })
}

/// Never more than `limit` units in any `per_us` microseconds. With `buckets` from 1 to 1024,
/// which must divide `per_us`, it keeps so many counters and not an entry for each request,
/// and may refuse the width of one bucket longer; 0 means entries.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limit_sliding_log(
    limit: i64,
    per_us: i64,
    buckets: i64,
    error: *mut mirab_error,
    out: *mut *mut mirab_limit,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let out = unsafe { output(out, "out")? };
        let inner = Limit::sliding_log(count(limit, "limit")?, period(per_us, "per_us")?)?;
        let inner = match count(buckets, "buckets")? {
            0 => inner,
            buckets => inner.with_buckets(buckets)?,
        };
        out.give(mirab_limit { inner });
        Ok(())
    })
}

/// At most `limit` units in flight: what a decision took is given back by
/// `mirab_limiter_release`, and by itself `expires_us` microseconds after it was taken.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limit_concurrency(
    limit: i64,
    expires_us: i64,
    error: *mut mirab_error,
    out: *mut *mut mirab_limit,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let out = unsafe { output(out, "out")? };
        let inner = Limit::concurrency(count(limit, "limit")?, period(expires_us, "expires_us")?)?;
        out.give(mirab_limit { inner });
        Ok(())
    })
}

/// Sets how many units a token bucket holds when full. Other limits have no such number:
/// `MIRAB_INVALID_LIMIT`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limit_set_capacity(
    limit: *mut mirab_limit,
    capacity: i64,
    error: *mut mirab_error,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let limit = unsafe { exclusive(limit, "limit")? };
        let capacity = count(capacity, "capacity")?;
        limit.inner = limit.inner.clone().with_capacity(capacity)?;
        Ok(())
    })
}

/// Names the limit: up to 64 of `A-Z a-z 0-9 . _ -`. Limits of one name on one key are the
/// same bucket, also when their numbers differ.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limit_set_name(
    limit: *mut mirab_limit,
    name: *const c_char,
    error: *mut mirab_error,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (limit, name) = unsafe { (exclusive(limit, "limit")?, text(name, "name")?) };
        limit.inner = limit.inner.clone().with_name(name)?;
        Ok(())
    })
}

/// Frees the limit. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limit_free(limit: *mut mirab_limit) {
    // SAFETY: the header's conventions.
    guard_silently(|| unsafe { ffi::free(limit) });
}

/// A number of a limit: what is wrong with it is wrong with the limit.
fn count(number: i64, what: &str) -> Result<u64, Failure> {
    natural(number, what).map_err(|failure| failure.because(mirab_result::MIRAB_INVALID_LIMIT))
}

fn period(us: i64, what: &str) -> Result<Duration, Failure> {
    Ok(Duration::from_micros(count(us, what)?))
}

/// C may pass any number as an enum, so it is checked and not trusted.
fn anchor_of(anchor: u32) -> Result<Anchor, Failure> {
    match anchor {
        0 => Ok(Anchor::Clock),
        1 => Ok(Anchor::First),
        other => Err(invalid(format!(
            "anchor must be MIRAB_ANCHOR_CLOCK (0) or MIRAB_ANCHOR_FIRST (1), not {other}"
        ))),
    }
}
