//! The manual clock, and times that JavaScript has read.

use std::cell::Cell;

use mirab::{Clock, Error, ErrorKind, ManualClock, Result, Time, duration};

use crate::js::{Call, Value};

/// `(startUs) => clock`.
pub fn new(call: &Call<'_>) -> Result<Value> {
    let clock = ManualClock::new(call.integer(0)?)?;
    call.give(call.state().clocks.borrow_mut().insert(clock) as f64)
}

/// `(clock)`.
pub fn free(call: &Call<'_>) -> Result<Value> {
    call.state().clocks.borrow_mut().try_remove(call.handle(0)?);
    call.give(())
}

/// `(clock, ms)`.
pub fn advance_ms(call: &Call<'_>) -> Result<Value> {
    let by = duration::from_millis("advance", call.number(1)?)?;
    call.give(at(call, 0)?.advance_us(by.as_micros() as u64)?)
}

/// `(clock, us)`.
pub fn advance_us(call: &Call<'_>) -> Result<Value> {
    call.give(at(call, 0)?.advance_us(call.integer(1)?)?)
}

/// `(clock, us)`.
pub fn set_us(call: &Call<'_>) -> Result<Value> {
    call.give(at(call, 0)?.set_us(call.integer(1)?)?)
}

/// `(clock) => us`.
pub fn now_us(call: &Call<'_>) -> Result<Value> {
    call.give(at(call, 0)?.now_us() as f64)
}

/// The manual clock whose number stands at `index`.
pub fn at(call: &Call<'_>, index: usize) -> Result<ManualClock> {
    let clocks = call.state().clocks.borrow();
    clocks
        .get(call.handle(index)?)
        .cloned()
        .ok_or_else(|| Error::new(ErrorKind::Internal, "a clock that does not exist"))
}

/// What a JavaScript clock said, in milliseconds since 1970, as the time of one decision.
pub fn given(ms: f64) -> Result<Time> {
    Time::given_us(micros(ms)?)
}

thread_local!(static TOLD: Cell<Option<f64>> = const { Cell::new(None) });

/// The clock of a limiter whose time JavaScript reads: it shows what [`telling`] was told.
pub fn told() -> Clock {
    Clock::host(|| {
        let ms = TOLD.get().ok_or_else(|| Error::new(ErrorKind::Internal, "nobody told the time"))?;
        micros(ms)
    })
}

/// Runs what reads [`told`], once JavaScript has read its clock.
pub fn telling<R>(ms: Option<f64>, run: impl FnOnce() -> R) -> R {
    TOLD.set(ms);
    run()
}

fn micros(ms: f64) -> Result<u64> {
    let us = (ms * 1000.0).round();
    // The comparison is false for NaN, too.
    if us >= 0.0 && us <= u64::MAX as f64 {
        return Ok(us as u64);
    }
    Err(Error::new(
        ErrorKind::InvalidArgument,
        format!("the clock returned {ms:?}: it must return milliseconds since 1970, as Date.now does"),
    ))
}
