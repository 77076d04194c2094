//! Requests that wait to be admitted: `lib/limiter.js` sleeps between the steps.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mirab::{Error, ErrorKind, Limiter, Result, Step, Waiter, duration};

use crate::clock;
use crate::decision;
use crate::js::{Call, Context, IntoJs, Slots, Value};
use crate::limiter;

/// A waiter, which one thread at a time moves on.
#[derive(Clone)]
pub struct Waiting {
    limiter: Limiter,
    waiter: Arc<Mutex<Waiter>>,
}

/// What to do next: to sleep, as microseconds, or the slots of the decision.
struct Next(Step<Slots>);

impl IntoJs for Next {
    fn into_js(self, context: &Context<'_>) -> Result<Value> {
        match self.0 {
            Step::Sleep(time) => context.give(time.as_nanos().div_ceil(1000) as f64),
            Step::Done(slots) => context.give(slots),
        }
    }
}

impl Waiting {
    fn step(&self, told: Option<f64>) -> Result<Next> {
        self.limiter.sleep(Duration::ZERO)?; // closed while it slept
        let mut waiter = self.waiter.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Next(match clock::telling(told, || waiter.step_bare())? {
            Step::Sleep(time) => Step::Sleep(time),
            Step::Done(bare) => Step::Done(decision::slots(&self.limiter, &[bare])),
        }))
    }
}

/// `(limiter, key, cost, timeoutMs?) => waiter`.
pub fn new(call: &Call<'_>) -> Result<Value> {
    let timeout = call.number_or_none(3).map(|ms| duration::from_millis("timeoutMs", ms)).transpose()?;
    let (limiter, cost) = (limiter::at(call)?, call.integer(2)?);
    let waiter = call.with_bytes(1, |key| Ok(limiter.waiter(key, cost, timeout)))?;
    let waiting = Waiting { limiter, waiter: Arc::new(Mutex::new(waiter)) };
    call.give(call.state().waiters.borrow_mut().insert(waiting) as f64)
}

/// `(waiter)`.
pub fn free(call: &Call<'_>) -> Result<Value> {
    call.state().waiters.borrow_mut().try_remove(call.handle(0)?);
    call.give(())
}

/// `(waiter, time?) => number | Float64Array`.
pub fn step(call: &Call<'_>) -> Result<Value> {
    call.give(at(call)?.step(call.number_or_none(1))?)
}

/// As `waiterStep`, a promise.
pub fn step_async(call: &Call<'_>) -> Result<Value> {
    let (waiting, told) = (at(call)?, call.number_or_none(1));
    call.promise(move || waiting.step(told))
}

fn at(call: &Call<'_>) -> Result<Waiting> {
    let waiters = call.state().waiters.borrow();
    waiters
        .get(call.handle(0)?)
        .cloned()
        .ok_or_else(|| Error::new(ErrorKind::Internal, "a waiter that does not exist"))
}
