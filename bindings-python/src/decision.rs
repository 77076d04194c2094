//! `Decision` and `Standing`: what the core answered, with durations in seconds.

use mirab::{Decision, Standing};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::convert::seconds;

/// The answer to one request. It is true exactly when the request is allowed.
#[pyclass(frozen, module = "mirab", name = "Decision")]
pub struct PyDecision(pub Decision);

#[pymethods]
impl PyDecision {
    /// Whether the request may pass.
    #[getter]
    fn allowed(&self) -> bool {
        self.0.allowed()
    }

    /// The capacity of the limit that decided.
    #[getter]
    fn limit(&self) -> u64 {
        self.0.limit()
    }

    /// Units in use: after an admission with its cost, on a refusal without.
    #[getter]
    fn used(&self) -> u64 {
        self.0.used()
    }

    /// Units left, never negative.
    #[getter]
    fn remaining(&self) -> u64 {
        self.0.remaining()
    }

    /// Seconds until the same cost is admitted if nobody else comes; None when allowed or never.
    #[getter]
    fn retry_after(&self) -> Option<f64> {
        self.0.retry_after().map(seconds)
    }

    /// Seconds until nothing is in use.
    #[getter]
    fn reset_after(&self) -> f64 {
        seconds(self.0.reset_after())
    }

    /// Seconds for which an admitted request should be held until its turn (leaky bucket), else 0.
    #[getter]
    fn delay(&self) -> f64 {
        seconds(self.0.delay())
    }

    /// The name of the limit that decided: its own, else its notation.
    #[getter]
    fn limit_name(&self) -> &str {
        self.0.limit_name()
    }

    /// The place of the limit that decided in the policy, and in `standings`; None when blocked.
    #[getter]
    fn limit_index(&self) -> Option<usize> {
        self.0.limit_index()
    }

    /// Whether the key is blocked: then `limit_name` is "block", and `standings` hold only the block's.
    #[getter]
    fn blocked(&self) -> bool {
        self.0.is_blocked()
    }

    /// Whether no wait would help: the cost is above the capacity, or the limit is `deny`.
    #[getter]
    fn never(&self) -> bool {
        self.0.never()
    }

    /// Whether a fallback decided because the store could not.
    #[getter]
    fn degraded(&self) -> bool {
        self.0.degraded()
    }

    /// Where each limit of the policy stands, in the policy's order.
    #[getter]
    fn standings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.standings().iter().map(|standing| PyStanding(standing.clone())))
    }

    fn __bool__(&self) -> bool {
        self.0.allowed()
    }

    fn __repr__(&self) -> String {
        let decision = &self.0;
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

/// Where one limit of a policy stands.
#[pyclass(frozen, module = "mirab", name = "Standing")]
pub struct PyStanding(Standing);

#[pymethods]
impl PyStanding {
    /// The name of the limit: its own, else its notation.
    #[getter]
    fn limit_name(&self) -> &str {
        self.0.name()
    }

    /// Its capacity.
    #[getter]
    fn limit(&self) -> u64 {
        self.0.limit
    }

    /// Units in use.
    #[getter]
    fn used(&self) -> u64 {
        self.0.used
    }

    /// Units left, never negative.
    #[getter]
    fn remaining(&self) -> u64 {
        self.0.remaining
    }

    /// Seconds until nothing is in use.
    #[getter]
    fn reset_after(&self) -> f64 {
        seconds(self.0.reset_after)
    }

    /// Seconds until `remaining` grows by one; None when nothing is in use.
    #[getter]
    fn next_after(&self) -> Option<f64> {
        self.0.next_after.map(seconds)
    }

    fn __repr__(&self) -> String {
        format!(
            "Standing(limit_name={:?}, limit={}, used={}, remaining={}, reset_after={:?})",
            self.0.name(),
            self.0.limit,
            self.0.used,
            self.0.remaining,
            seconds(self.0.reset_after),
        )
    }
}
