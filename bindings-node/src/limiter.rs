//! Limiters. Keys are a string or a `Uint8Array`; a time is what a JavaScript clock said, in
//! milliseconds since 1970, or `undefined` for the limiter's own clock.

use mirab::{Error, ErrorKind, Limiter, Policy, Receipt, Result, Store, Time};

use crate::clock;
use crate::decision::Outcome;
use crate::js::{Call, IntoJs, Value};

/// `(limits, scopes, store, onStoreFailure, clock?) => limiter`; an empty scope is none.
pub fn new(call: &Call<'_>) -> Result<Value> {
    let mut limits = Vec::new();
    for (text, scope) in call.texts(0)?.iter().zip(call.texts(1)?) {
        for limit in Policy::parse(text)?.limits() {
            let limit = limit.clone();
            limits.push(if scope.is_empty() { limit } else { limit.with_scope(&scope)? });
        }
    }
    let mut builder = Limiter::builder(Policy::new(limits)?)
        .store(Store::open(&call.text(2)?)?)
        .on_store_failure(call.text(3)?.parse()?);
    if call.number_or_none(4).is_some() {
        builder = builder.clock(clock::at(call, 4)?);
    }
    let limiter = builder.build()?;
    call.give(call.state().limiters.borrow_mut().insert(limiter) as f64)
}

/// `(limiter)`: forgets it; its number may be given again.
pub fn free(call: &Call<'_>) -> Result<Value> {
    call.state().limiters.borrow_mut().try_remove(call.handle(0)?);
    call.give(())
}

/// `(limiter)`: closes it, for decisions in flight too, and forgets it.
pub fn close(call: &Call<'_>) -> Result<Value> {
    with(call, |limiter| {
        limiter.close();
        Ok(())
    })?;
    free(call)
}

/// `(limiter) => boolean`: whether its decisions never block.
pub fn is_local(call: &Call<'_>) -> Result<Value> {
    with(call, |limiter| call.give(limiter.store().is_local()))
}

/// `(limiter) => string[]`: the names of its limits, in their order.
pub fn names(call: &Call<'_>) -> Result<Value> {
    with(call, |limiter| {
        let names = limiter.policy().limits().iter().map(|limit| limit.name().to_owned());
        call.give(names.collect::<Vec<_>>())
    })
}

/// `(limiter) => string[]`: its limits in canonical notation, in their order.
pub fn texts(call: &Call<'_>) -> Result<Value> {
    with(call, |limiter| {
        let texts = limiter.policy().limits().iter().map(ToString::to_string);
        call.give(texts.collect::<Vec<_>>())
    })
}

/// `(limiter, key, cost, time?)`: the decision goes to the shared array; so in the next two.
pub fn acquire(call: &Call<'_>) -> Result<Value> {
    now(call, |limiter, key, cost, time| limiter.acquire_at(key, cost, time).map(Outcome::told))?.write(call)
}

/// As `acquire`; the decision is held here for `httpHeaders`, until `decisionFree`.
pub fn acquire_held(call: &Call<'_>) -> Result<Value> {
    now(call, |limiter, key, cost, time| limiter.acquire_at(key, cost, time).map(Outcome::held))?.write(call)
}

/// `(limiter, key, cost, time?)`.
pub fn peek(call: &Call<'_>) -> Result<Value> {
    now(call, |limiter, key, cost, time| limiter.peek_at(key, cost, time).map(Outcome::told))?.write(call)
}

/// `(limiter, key, cost, time?) => boolean`.
pub fn allow(call: &Call<'_>) -> Result<Value> {
    call.give(now(call, |limiter, key, cost, time| limiter.allow_at(key, cost, time))?)
}

/// `(limiter, key, 0, time?)`.
pub fn reset(call: &Call<'_>) -> Result<Value> {
    call.give(now(call, |limiter, key, _, time| limiter.reset_at(key, time))?)
}

/// `(limiter, key, cost, time?, steady, wall, leaseHigh, leaseLow) => number`: how many leases ended; a
/// receipt's cost stands where other operations have theirs.
pub fn release(call: &Call<'_>) -> Result<Value> {
    let receipt = receipt(call)?;
    call.give(now(call, |limiter, key, _, time| limiter.release_at(key, receipt, time))? as f64)
}

/// `(limiter, key, cost, time?) => Promise<number[]>`: the numbers of the decision.
pub fn acquire_async(call: &Call<'_>) -> Result<Value> {
    later(call, |limiter, key, cost, time| limiter.acquire_at(key, cost, time).map(Outcome::told))
}

/// As `acquireAsync`; the decision is held here for `httpHeaders`, until `decisionFree`.
pub fn acquire_held_async(call: &Call<'_>) -> Result<Value> {
    later(call, |limiter, key, cost, time| limiter.acquire_at(key, cost, time).map(Outcome::held))
}

/// `(limiter, key, cost, time?) => Promise<number[]>`.
pub fn peek_async(call: &Call<'_>) -> Result<Value> {
    later(call, |limiter, key, cost, time| limiter.peek_at(key, cost, time).map(Outcome::told))
}

/// `(limiter, key, cost, time?) => Promise<boolean>`.
pub fn allow_async(call: &Call<'_>) -> Result<Value> {
    later(call, |limiter, key, cost, time| limiter.allow_at(key, cost, time))
}

/// `(limiter, key, 0, time?) => Promise<undefined>`.
pub fn reset_async(call: &Call<'_>) -> Result<Value> {
    later(call, |limiter, key, _, time| limiter.reset_at(key, time))
}

/// As `release`, a promise.
pub fn release_async(call: &Call<'_>) -> Result<Value> {
    let receipt = receipt(call)?;
    later(call, move |limiter, key, _, time| limiter.release_at(key, receipt, time).map(|ended| ended as f64))
}

/// Runs an operation on the arguments `(limiter, key, cost, time?)`, in this call.
fn now<T>(call: &Call<'_>, run: impl FnOnce(&Limiter, &[u8], u64, Time) -> Result<T>) -> Result<T> {
    let cost = call.integer(2)?;
    with(call, |limiter| {
        let time = read_time(call, limiter)?;
        call.with_bytes(1, |key| run(limiter, key, cost, time))
    })
}

/// Runs it on another thread; the clock is read here, and the promise of the outcome returned.
fn later<T: IntoJs + Send + 'static>(
    call: &Call<'_>,
    run: impl FnOnce(&Limiter, &[u8], u64, Time) -> Result<T> + Send + 'static,
) -> Result<Value> {
    let cost = call.integer(2)?;
    let limiter = with(call, |limiter| Ok(limiter.clone()))?;
    let time = read_time(call, &limiter)?;
    let key = call.with_bytes(1, |key| Ok(key.to_vec()))?;
    call.promise(move || run(&limiter, &key, cost, time))
}

/// What a decision took, from the numbers that `decision.rs` gave.
fn receipt(call: &Call<'_>) -> Result<Receipt> {
    let [steady, wall, cost, high, low] = [4, 5, 2, 6, 7].map(|index| call.integer(index));
    Ok(Receipt::from_parts([steady?, wall?, cost?, high?, low?]))
}

fn read_time(call: &Call<'_>, limiter: &Limiter) -> Result<Time> {
    call.number_or_none(3).map_or_else(|| limiter.read_clock(), clock::given)
}

fn with<R>(call: &Call<'_>, run: impl FnOnce(&Limiter) -> Result<R>) -> Result<R> {
    let limiters = call.state().limiters.borrow();
    let limiter = limiters
        .get(call.handle(0)?)
        .ok_or_else(|| Error::new(ErrorKind::Closed, "the limiter is closed"))?;
    run(limiter)
}
