//! `Decision`: what the core answered, with durations in seconds.

use mirab::{BareDecision, Told};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyTuple};

use crate::convert::{key_bytes, seconds};
use crate::limiter::PyLimiter;
use crate::standing::PyStanding;

/// The answer to one request. It is true exactly when the request is allowed.
#[pyclass(frozen, module = "mirab", name = "Decision")]
pub struct PyDecision {
    /// Whether the request may pass.
    // The interpreter reads it without a call.
    #[pyo3(get)]
    allowed: Py<PyBool>,
    bare: BareDecision,
    /// The one that decided, and so knows what it says.
    limiter: Py<PyLimiter>,
    /// A `str` or `bytes`: neither changes.
    key: Py<PyAny>,
}

impl PyDecision {
    pub fn new(limiter: &Bound<'_, PyLimiter>, key: &Bound<'_, PyAny>, bare: BareDecision) -> Self {
        Self {
            allowed: PyBool::new(limiter.py(), bare.allowed()).to_owned().unbind(),
            bare,
            limiter: limiter.clone().unbind(),
            key: key.clone().unbind(),
        }
    }

    /// All that it tells.
    pub fn told(&self) -> Told<'_> {
        self.limiter.get().core().tell(&self.bare)
    }

    pub fn bare(&self) -> &BareDecision {
        &self.bare
    }

    /// Whose it is.
    pub fn key<'a>(&'a self, py: Python<'a>) -> PyResult<&'a [u8]> {
        key_bytes(self.key.bind(py))
    }
}

#[pymethods]
impl PyDecision {
    /// The capacity of the limit that decided.
    #[getter]
    fn limit(&self) -> u64 {
        self.told().limit()
    }

    /// Units in use: after an admission with its cost, on a refusal without.
    #[getter]
    fn used(&self) -> u64 {
        self.told().used()
    }

    /// Units left, never negative.
    #[getter]
    fn remaining(&self) -> u64 {
        self.told().remaining()
    }

    /// Seconds until the same cost is admitted if nobody else comes; None when allowed or never.
    #[getter]
    fn retry_after(&self) -> Option<f64> {
        self.told().retry_after().map(seconds)
    }

    /// Seconds until nothing is in use.
    #[getter]
    fn reset_after(&self) -> f64 {
        seconds(self.told().reset_after())
    }

    /// Seconds for which an admitted request should be held until its turn (leaky bucket), else 0.
    #[getter]
    fn delay(&self) -> f64 {
        seconds(self.told().delay())
    }

    /// The name of the limit that decided: its own, else its notation.
    #[getter]
    fn limit_name(&self) -> &str {
        self.told().limit_name()
    }

    /// The place of the limit that decided in the policy, and in `standings`; None when blocked.
    #[getter]
    fn limit_index(&self) -> Option<usize> {
        self.told().limit_index()
    }

    /// Whether the key is blocked: then `limit_name` is "block", and `standings` hold only the block's.
    #[getter]
    fn blocked(&self) -> bool {
        self.told().is_blocked()
    }

    /// Whether no wait would help: the cost is above the capacity, or the limit is `deny`.
    #[getter]
    fn never(&self) -> bool {
        self.told().never()
    }

    /// Whether a fallback decided because the store could not.
    #[getter]
    fn degraded(&self) -> bool {
        self.told().degraded()
    }

    /// Where each limit of the policy stands, in the policy's order.
    #[getter]
    fn standings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.told().standings().map(|told| PyStanding::new(py, &told)))
    }

    fn __bool__(&self) -> bool {
        self.bare.allowed()
    }

    fn __repr__(&self) -> String {
        let decision = self.told();
        let wait = match decision.retry_after() {
            Some(wait) => format!(", retry_after={:?}", seconds(wait)),
            None if decision.never() => ", never=True".into(),
            None => String::new(),
        };
        let delay = match seconds(decision.delay()) {
            0.0 => String::new(),
            delay => format!(", delay={delay:?}"),
        };
        let degraded = if decision.degraded() { ", degraded=True" } else { "" };
        format!(
            "Decision(allowed={}, limit={}, used={}, remaining={}{wait}{delay}, limit_name={:?}{degraded})",
            if decision.allowed() { "True" } else { "False" },
            decision.limit(),
            decision.used(),
            decision.remaining(),
            decision.limit_name(),
        )
    }
}
