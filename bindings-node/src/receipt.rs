//! What a decision took, given back or settled. The receipt stands in the shared array, where
//! `decision.rs` wrote it; that it is settled once is `lib/decision.js`'s to see to.

use mirab::Result;

use crate::decision;
use crate::js::{Call, Value};
use crate::limiter::{later, now};

/// `(limiter, key, 0, time?) => number`: how many leases ended.
pub fn release(call: &Call<'_>) -> Result<Value> {
    let receipt = decision::receipt(call.results());
    call.give(now(call, |limiter, key, _, time| limiter.release_at(key, receipt, time))? as f64)
}

/// `(limiter, key, 0, time?) => number`: the units given back.
pub fn refund(call: &Call<'_>) -> Result<Value> {
    let receipt = decision::receipt(call.results());
    call.give(now(call, |limiter, key, _, time| limiter.refund_at(key, receipt, time))? as f64)
}

/// `(limiter, key, actualCost, time?)`.
pub fn commit(call: &Call<'_>) -> Result<Value> {
    let receipt = decision::receipt(call.results());
    call.give(now(call, |limiter, key, actual, time| limiter.commit_at(key, receipt, actual, time))?)
}

/// As `release`, a promise; so are the next two.
pub fn release_async(call: &Call<'_>) -> Result<Value> {
    let receipt = decision::receipt(call.results());
    later(call, move |limiter, key, _, time| limiter.release_at(key, receipt, time).map(|ended| ended as f64))
}

pub fn refund_async(call: &Call<'_>) -> Result<Value> {
    let receipt = decision::receipt(call.results());
    later(call, move |limiter, key, _, time| limiter.refund_at(key, receipt, time).map(|units| units as f64))
}

pub fn commit_async(call: &Call<'_>) -> Result<Value> {
    let receipt = decision::receipt(call.results());
    later(call, move |limiter, key, actual, time| limiter.commit_at(key, receipt, actual, time))
}
