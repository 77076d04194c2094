//! What a decision took, given back or settled. A receipt is the array of the numbers that
//! `decision.rs` gave; that it is settled once is `lib/decision.js`'s to see to.

use mirab::{Error, ErrorKind, Receipt, Result};

use crate::js::{Call, Value};
use crate::limiter::{later, now};

/// `(limiter, key, 0, time?, receipt) => number`: how many leases ended.
pub fn release(call: &Call<'_>) -> Result<Value> {
    let receipt = at(call, 4)?;
    call.give(now(call, |limiter, key, _, time| limiter.release_at(key, receipt, time))? as f64)
}

/// `(limiter, key, 0, time?, receipt) => number`: the units given back.
pub fn refund(call: &Call<'_>) -> Result<Value> {
    let receipt = at(call, 4)?;
    call.give(now(call, |limiter, key, _, time| limiter.refund_at(key, receipt, time))? as f64)
}

/// `(limiter, key, actualCost, time?, receipt)`.
pub fn commit(call: &Call<'_>) -> Result<Value> {
    let receipt = at(call, 4)?;
    call.give(now(call, |limiter, key, actual, time| limiter.commit_at(key, receipt, actual, time))?)
}

/// As `release`, a promise; so are the next two.
pub fn release_async(call: &Call<'_>) -> Result<Value> {
    let receipt = at(call, 4)?;
    later(call, move |limiter, key, _, time| limiter.release_at(key, receipt, time).map(|ended| ended as f64))
}

pub fn refund_async(call: &Call<'_>) -> Result<Value> {
    let receipt = at(call, 4)?;
    later(call, move |limiter, key, _, time| limiter.refund_at(key, receipt, time).map(|units| units as f64))
}

pub fn commit_async(call: &Call<'_>) -> Result<Value> {
    let receipt = at(call, 4)?;
    later(call, move |limiter, key, actual, time| limiter.commit_at(key, receipt, actual, time))
}

fn at(call: &Call<'_>, index: usize) -> Result<Receipt> {
    let parts: Vec<u64> = call.numbers(index)?.into_iter().map(|part| part as u64).collect();
    let parts = parts.try_into().map_err(|_| Error::new(ErrorKind::Internal, "no receipt"))?;
    Ok(Receipt::from_parts(parts))
}
