//! `Standing`: where one limit of a decision's policy stands, with durations in seconds.

use mirab::Standing;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::convert::seconds;

/// Where one limit of a policy stands.
#[pyclass(frozen, get_all, module = "mirab", name = "Standing")]
pub struct PyStanding {
    /// The name of the limit: its own, else its notation.
    limit_name: Py<PyString>,
    /// Its capacity.
    limit: u64,
    /// Units in use.
    used: u64,
    /// Units left, never negative.
    remaining: u64,
    /// Seconds until nothing is in use.
    reset_after: f64,
    /// Seconds until `remaining` grows by one; None when nothing is in use.
    next_after: Option<f64>,
}

impl PyStanding {
    pub fn new(py: Python<'_>, told: &Standing<'_>) -> Self {
        Self {
            limit_name: PyString::new(py, told.name()).unbind(),
            limit: told.limit,
            used: told.used,
            remaining: told.remaining,
            reset_after: seconds(told.reset_after),
            next_after: told.next_after.map(seconds),
        }
    }
}

#[pymethods]
impl PyStanding {
    fn __repr__(&self, py: Python<'_>) -> String {
        let Self { limit_name, limit, used, remaining, reset_after, .. } = self;
        let name = limit_name.bind(py).to_string_lossy();
        format!(
            "Standing(limit_name={name:?}, limit={limit}, used={used}, remaining={remaining}, \
             reset_after={reset_after:?})",
        )
    }
}
