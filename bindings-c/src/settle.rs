//! What comes after a decision: giving back, settling at another cost, returning leases.

use mirab::{Error, Time};

use crate::decision::{Returned, mirab_decision};
use crate::error::{mirab_error, mirab_result};
use crate::ffi::{natural, optional_output, shared, slice};
use crate::guard::guard;
use crate::limiter::mirab_limiter;

/// Gives back what `decision` took, never above full; leases end with it. `decision` is one that
/// this limiter gave for this key, else `MIRAB_INVALID_ARGUMENT`; it is marked, so that a second
/// call does nothing, also after `mirab_limiter_commit`. Of its copies give back only one.
/// `out_units` may be NULL; it gets the units given back, of several limits the most: 0 when the
/// request was refused, took nothing, was settled before, or counts no more. Of a leaky bucket
/// only the last in the queue may leave, before its turn. When the store didn't answer it is marked
/// too: nobody knows whether the store did it, and it must not be done twice. After any other error
/// it can be given back again.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limiter_refund(
    limiter: *const mirab_limiter,
    key: *const u8,
    key_len: usize,
    decision: *mut mirab_decision,
    error: *mut mirab_error,
    out_units: *mut u64,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (limiter, key) = unsafe { (shared(limiter, "limiter")?, slice(key, key_len, "key")?) };
        // SAFETY: as above.
        let returned = unsafe { Returned::new(decision, limiter, key)? };
        // Where nothing is left to give, the cost given back is 0, at no time in particular.
        let (receipt, time) = if returned.is_open() {
            (returned.receipt(), limiter.inner.read_clock()?)
        } else {
            (returned.nothing(), Time::STORE)
        };
        let answer = limiter.inner.refund_at(key, receipt, time);
        settle(&returned, &answer);
        let units = answer?;
        // SAFETY: as above.
        if let Some(out) = unsafe { optional_output(out_units) } {
            out.write(units);
        }
        Ok(())
    })
}

/// Settles `decision` at a cost that is known only afterwards: of less than it took the rest is
/// given back as by `mirab_limiter_refund`; of more the rest is charged now, whatever is left, at
/// most to empty. `actual_cost` is 0 to 2^53. Leases go on. `decision` is marked as there, and
/// nothing happens when the request was refused, took nothing, or was settled before.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limiter_commit(
    limiter: *const mirab_limiter,
    key: *const u8,
    key_len: usize,
    decision: *mut mirab_decision,
    actual_cost: i64,
    error: *mut mirab_error,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (limiter, key) = unsafe { (shared(limiter, "limiter")?, slice(key, key_len, "key")?) };
        // SAFETY: as above.
        let returned = unsafe { Returned::new(decision, limiter, key)? };
        let actual = natural(actual_cost, "actual_cost")?;
        // Where nothing is left to settle, the core only checks the rest, at no time in particular.
        let (receipt, time) = if returned.is_open() {
            (returned.receipt(), limiter.inner.read_clock()?)
        } else {
            (returned.nothing(), Time::STORE)
        };
        let answer = limiter.inner.commit_at(key, receipt, actual, time);
        settle(&returned, &answer);
        Ok(answer?)
    })
}

/// Gives back what `decision` took of `concurrency` limits; what it took of others stays taken.
/// `decision` is one that this limiter gave for this key, else `MIRAB_INVALID_ARGUMENT`; it is
/// marked, so that a second call ends nothing. `out_ended` may be NULL; it gets how many leases
/// still counted: 0 when the request was refused, took none, was released before, or its leases
/// have expired.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limiter_release(
    limiter: *const mirab_limiter,
    key: *const u8,
    key_len: usize,
    decision: *mut mirab_decision,
    error: *mut mirab_error,
    out_ended: *mut u64,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (limiter, key) = unsafe { (shared(limiter, "limiter")?, slice(key, key_len, "key")?) };
        // SAFETY: as above.
        let returned = unsafe { Returned::new(decision, limiter, key)? };
        let time = if returned.has_lease() { limiter.inner.read_clock()? } else { Time::STORE };
        let ended = limiter.inner.release_at(key, returned.receipt(), time)?;
        if ended > 0 {
            returned.mark_released();
        }
        // SAFETY: as above.
        if let Some(out) = unsafe { optional_output(out_ended) } {
            out.write(ended);
        }
        Ok(())
    })
}

/// Marks it, unless it is certain that the store was never asked.
fn settle<T>(returned: &Returned, answer: &Result<T, Error>) {
    if returned.is_open() && answer.as_ref().err().is_none_or(Error::may_have_happened) {
        returned.mark_settled();
    }
}
