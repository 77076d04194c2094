//! What was asked for, and what is answered.

use mirab::{BareDecision, Driver, Time};
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::convert::key_bytes;
use crate::decision::decision;
use crate::limiter::PyLimiter;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Decision,
    YesOrNo,
    Peek,
}

impl Wanted {
    /// The answer of a store in this process.
    pub fn now<'py>(
        self,
        limiter: &Bound<'py, PyLimiter>,
        key: &Bound<'py, PyAny>,
        cost: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bytes = key_bytes(key)?;
        let this = limiter.get();
        let keep = |bare| {
            this.listen(&bare);
            bare
        };
        let bare = this.call(limiter.py(), |core, time| match self {
            Self::Peek => core.peek_bare_at(bytes, cost, time, keep),
            Self::Decision | Self::YesOrNo => core.acquire_bare_at(bytes, cost, time, keep),
        })?;
        self.answer(limiter, key, bare)
    }

    /// Asks a store elsewhere: the answer, where it is known at once.
    pub fn ask(
        self,
        driver: &mut Driver,
        id: u64,
        limiter: &PyLimiter,
        (key, cost): (&[u8], u64),
        time: Time,
    ) -> mirab::Result<Option<BareDecision>> {
        match self {
            Self::Peek => driver.peek(limiter.core(), id, key, cost, time),
            Self::Decision | Self::YesOrNo => driver.acquire(limiter.core(), id, key, cost, time),
        }
    }

    /// A decision as the asker wants it.
    pub fn answer<'py>(
        self,
        limiter: &Bound<'py, PyLimiter>,
        key: &Bound<'py, PyAny>,
        bare: BareDecision,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = limiter.py();
        Ok(match self {
            Self::YesOrNo => PyBool::new(py, bare.allowed()).to_owned().into_any(),
            Self::Decision | Self::Peek => decision(limiter, key, bare)?,
        })
    }
}
