//! `acquire`, `allow` and `peek` of the limiter, which programs call for every request.

use std::ffi::CStr;

use mirab::{BareDecision, Limiter, Time};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::convert::{Cost, key_bytes};
use crate::decision::decision;
use crate::error::raise;
use crate::limiter::PyLimiter;
use crate::raw::method::Method;

pub struct Acquire;
pub struct Allow;
pub struct Peek;

impl Method for Acquire {
    const NAME: &CStr = c"acquire";
    const DOC: &CStr = c"acquire($self, key, cost=1)
--

Takes `cost` units of `key` if they are there; the Decision is true when they were.";

    fn call<'py>(
        limiter: &Bound<'py, PyLimiter>,
        key: &Bound<'py, PyAny>,
        cost: Cost,
    ) -> PyResult<Bound<'py, PyAny>> {
        decide(Question::Acquire, limiter, key, cost)
    }
}

impl Method for Allow {
    const NAME: &CStr = c"allow";
    const DOC: &CStr = c"allow($self, key, cost=1)
--

Like `acquire`, but answers only True or False; the fastest way to ask.

What it takes of a `concurrency` limit cannot be released, and counts until it expires.";

    fn call<'py>(
        limiter: &Bound<'py, PyLimiter>,
        key: &Bound<'py, PyAny>,
        Cost(cost): Cost,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bytes = key_bytes(key)?;
        let allowed = limiter.get().call(limiter.py(), |core, time| core.allow_at(bytes, cost, time))?;
        allowed.into_bound_py_any(limiter.py())
    }
}

impl Method for Peek {
    const NAME: &CStr = c"peek";
    const DOC: &CStr = c"peek($self, key, cost=1)
--

Whether `cost` would be admitted now, and what is left before taking it; takes nothing.";

    fn call<'py>(
        limiter: &Bound<'py, PyLimiter>,
        key: &Bound<'py, PyAny>,
        cost: Cost,
    ) -> PyResult<Bound<'py, PyAny>> {
        decide(Question::Peek, limiter, key, cost)
    }
}

/// What is asked of the core, where a decision is the answer.
#[derive(Clone, Copy)]
enum Question {
    Acquire,
    Peek,
}

impl Question {
    #[inline]
    fn ask<T>(
        self,
        core: &Limiter,
        key: &[u8],
        Cost(cost): Cost,
        time: Time,
        keep: impl FnOnce(BareDecision) -> T,
    ) -> mirab::Result<T> {
        match self {
            Self::Acquire => core.acquire_bare_at(key, cost, time, keep),
            Self::Peek => core.peek_bare_at(key, cost, time, keep),
        }
    }
}

fn decide<'py>(
    question: Question,
    limiter: &Bound<'py, PyLimiter>,
    key: &Bound<'py, PyAny>,
    cost: Cost,
) -> PyResult<Bound<'py, PyAny>> {
    let (this, py, bytes) = (limiter.get(), limiter.py(), key_bytes(key)?);
    let time = this.time(py)?;
    if this.is_local() {
        let keep = |bare| {
            this.listen(&bare);
            decision(limiter, key, bare)
        };
        let done = this.here(py, |core| question.ask(core, bytes, cost, time, keep));
        return Ok(done.map_err(raise)??);
    }
    let bare = this.run(py, |core| question.ask(core, bytes, cost, time, |bare| bare))?;
    Ok(decision(limiter, key, bare)?)
}
