//! Limits. JavaScript holds a limit as its canonical text, so these are functions from text to text.

use std::time::Duration;

use mirab::{Anchor, Error, ErrorKind, Limit, Result, duration};

use crate::js::{Call, Value};

/// `(text) => text`.
pub fn parse(call: &Call<'_>) -> Result<Value> {
    text(call, &at(call, 0)?)
}

/// `(limit, perMs, capacity?) => text`.
pub fn token_bucket(call: &Call<'_>) -> Result<Value> {
    let limit = Limit::token_bucket(call.integer(0)?, per(call, 1)?)?;
    match call.number_or_none(2) {
        Some(capacity) => text(call, &limit.with_capacity(capacity as u64)?),
        None => text(call, &limit),
    }
}

/// `(capacity, refillRate) => text`.
pub fn token_bucket_refilled(call: &Call<'_>) -> Result<Value> {
    text(call, &Limit::token_bucket_refilled(call.integer(0)?, &call.text(1)?)?)
}

/// `(limit, perMs, anchor) => text`.
pub fn fixed_window(call: &Call<'_>) -> Result<Value> {
    let anchor = match call.text(2)?.as_str() {
        "clock" => Anchor::Clock,
        "first" => Anchor::First,
        other => {
            return Err(Error::new(
                ErrorKind::InvalidLimit,
                format!("anchor \"{other}\": it must be \"clock\" or \"first\""),
            ));
        }
    };
    text(call, &Limit::fixed_window(call.integer(0)?, per(call, 1)?, anchor)?)
}

/// `(limit, perMs, queue) => text`.
pub fn leaky_bucket(call: &Call<'_>) -> Result<Value> {
    text(call, &Limit::leaky_bucket(call.integer(0)?, per(call, 1)?, call.integer(2)?)?)
}

/// `(limit, perMs) => text`.
pub fn sliding_window(call: &Call<'_>) -> Result<Value> {
    text(call, &Limit::sliding_window(call.integer(0)?, per(call, 1)?)?)
}

/// `(limit, perMs, buckets?) => text`.
pub fn sliding_log(call: &Call<'_>) -> Result<Value> {
    let limit = Limit::sliding_log(call.integer(0)?, per(call, 1)?)?;
    match call.number_or_none(2) {
        Some(buckets) => text(call, &limit.with_buckets(buckets as u64)?),
        None => text(call, &limit),
    }
}

/// `(limit, expiresMs) => text`.
pub fn concurrency(call: &Call<'_>) -> Result<Value> {
    let expires = duration::from_millis("expiresMs", call.number(1)?)?;
    text(call, &Limit::concurrency(call.integer(0)?, expires)?)
}

/// `() => text`.
pub fn deny(call: &Call<'_>) -> Result<Value> {
    text(call, &Limit::deny())
}

/// `() => text`.
pub fn unlimited(call: &Call<'_>) -> Result<Value> {
    text(call, &Limit::unlimited())
}

/// `(text, name) => text`.
pub fn with_name(call: &Call<'_>) -> Result<Value> {
    text(call, &at(call, 0)?.with_name(&call.text(1)?)?)
}

/// `(text, scope) => text`: checks the scope, which is no part of the notation.
pub fn with_scope(call: &Call<'_>) -> Result<Value> {
    text(call, &at(call, 0)?.with_scope(&call.text(1)?)?)
}

fn at(call: &Call<'_>, index: usize) -> Result<Limit> {
    Limit::parse(&call.text(index)?)
}

fn per(call: &Call<'_>, index: usize) -> Result<Duration> {
    duration::from_millis("perMs", call.number(index)?)
}

fn text(call: &Call<'_>, limit: &Limit) -> Result<Value> {
    call.give(limit.to_string())
}
