//! `Standing`: where one limit of a decision's policy stands, with durations in seconds.

use mirab::Standing;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::convert::seconds;
use crate::decision::PyDecision;

/// Where one limit of a policy stands.
#[pyclass(frozen, module = "mirab", name = "Standing")]
pub struct PyStanding {
    /// What it is told from, when it is asked.
    decision: Py<PyDecision>,
    place: usize,
}

impl PyStanding {
    pub fn new(decision: &Bound<'_, PyDecision>, place: usize) -> Self {
        Self { decision: decision.clone().unbind(), place }
    }

    fn told(&self) -> Standing<'_> {
        self.decision.get().told().standing(self.place)
    }
}

#[pymethods]
impl PyStanding {
    /// The name of the limit: its own, else its notation.
    #[getter]
    fn limit_name(&self) -> &str {
        self.told().name()
    }

    /// Its capacity.
    #[getter]
    fn limit(&self) -> u64 {
        self.told().limit
    }

    /// Units in use.
    #[getter]
    fn used(&self) -> u64 {
        self.told().used
    }

    /// Units left, never negative.
    #[getter]
    fn remaining(&self) -> u64 {
        self.told().remaining
    }

    /// Seconds until nothing is in use.
    #[getter]
    fn reset_after(&self) -> f64 {
        seconds(self.told().reset_after)
    }

    /// Seconds until `remaining` grows by one; None when nothing is in use.
    #[getter]
    fn next_after(&self) -> Option<f64> {
        self.told().next_after.map(seconds)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.decision)
    }

    fn __repr__(&self) -> String {
        let told = self.told();
        format!(
            "Standing(limit_name={:?}, limit={}, used={}, remaining={}, reset_after={:?})",
            told.name(),
            told.limit,
            told.used,
            told.remaining,
            seconds(told.reset_after),
        )
    }
}
