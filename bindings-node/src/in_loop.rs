//! Decisions of a store elsewhere that are asked in the event loop.

use mirab::{BareDecision, Driver, Error, ErrorKind, Limiter, Result};

use crate::decision::{self, Held};
use crate::js::{Call, Context, Value};
use crate::limiter::{at, read_cost, read_time};

/// `(limiter, key, cost?, time?) => Float64Array`, the slots of the decision, or a promise of it.
pub fn acquire_async(call: &Call<'_>) -> Result<Value> {
    in_loop(call, Mode::Acquire, |context, limiter, _, bare| context.give(decision::slots(limiter, &[bare])))
}

/// As `acquireAsync`; the decision is held here for `answer`, until `decisionFree`.
pub fn acquire_held_async(call: &Call<'_>) -> Result<Value> {
    in_loop(call, Mode::Acquire, |context, limiter, key, bare| {
        context.give(Held(limiter.complete(key, bare)))
    })
}

/// As `peekAsync`; the decision is held here, as `acquireHeldAsync` holds it.
pub fn peek_held_async(call: &Call<'_>) -> Result<Value> {
    in_loop(call, Mode::Peek, |context, limiter, key, bare| context.give(Held(limiter.complete(key, bare))))
}

/// As `acquireAsync`, but takes nothing.
pub fn peek_async(call: &Call<'_>) -> Result<Value> {
    in_loop(call, Mode::Peek, |context, limiter, _, bare| context.give(decision::slots(limiter, &[bare])))
}

/// `(limiter, key, cost?, time?) => boolean`, or a promise of it.
pub fn allow_async(call: &Call<'_>) -> Result<Value> {
    in_loop(call, Mode::Acquire, |context, limiter, _, bare| context.give(limiter.tell(&bare).allowed()))
}

/// What is asked in the event loop.
#[derive(Clone, Copy)]
enum Mode {
    Acquire,
    Peek,
}

/// Asks on the arguments `(limiter, key, cost?, time?)` without waiting; the clock is read here.
fn in_loop(
    call: &Call<'_>,
    mode: Mode,
    answer: fn(&Context<'_>, &Limiter, &[u8], BareDecision) -> Result<Value>,
) -> Result<Value> {
    let cost = read_cost(call)?;
    let limiter = at(call)?;
    let time = read_time(call, &limiter)?;
    let key: Box<[u8]> = call.with_bytes(1, |key| Ok(key.into()))?;
    let (asking, asked) = (limiter.clone(), key.clone());
    let ask = move |driver: &mut Driver, id| match mode {
        Mode::Acquire => driver.acquire(&asking, id, &asked, cost, time),
        Mode::Peek => driver.peek(&asking, id, &asked, cost, time),
    };
    let answered =
        call.in_loop(&limiter.clone(), ask, move |context, bare| answer(context, &limiter, &key, bare))?;
    answered.ok_or_else(no_loop)
}

/// What is told where a store's requests cannot be in the event loop.
pub fn no_loop() -> Error {
    Error::new(ErrorKind::StoreUnavailable, "the event loop takes no more descriptors")
}
