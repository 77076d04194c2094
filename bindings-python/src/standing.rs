//! `Standing`: where one limit of a decision's policy stands, with durations in seconds.

use std::ffi::CStr;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::convert::seconds;
use crate::decision::Decision;
use crate::raw::Kept;
use crate::raw::class::{self, Field, Held, NoMemory, field};

/// What a `mirab.Standing` holds.
pub struct Standing {
    /// What it is told from, when it is asked.
    decision: Kept<Decision>,
    place: usize,
}

/// A `mirab.Standing` of the limit at this place of the policy.
pub fn standing<'py>(decision: &Bound<'py, Decision>, place: usize) -> Result<Bound<'py, PyAny>, NoMemory> {
    let standing = Standing { decision: Kept::new(decision), place };
    class::object(decision.py(), standing).map(Bound::into_any)
}

impl Standing {
    fn told(&self) -> mirab::Standing<'_> {
        class::held(&self.decision).told().standing(self.place)
    }
}

impl Held for Standing {
    const NAME: &CStr = c"mirab.Standing";
    const DOC: &CStr = c"Where one limit of a policy stands.";
    const FIELDS: &[Field<Self>] = &[
        field!(c"limit_name", c"The name of the limit: its own, else its notation.", it => it.told().name()),
        field!(c"limit", c"Its capacity.", it => it.told().limit),
        field!(c"used", c"Units in use.", it => it.told().used),
        field!(c"remaining", c"Units left, never negative.", it => it.told().remaining),
        field!(c"reset_after", c"Seconds until nothing is in use.", it => seconds(it.told().reset_after)),
        field!(
            c"next_after",
            c"Seconds until `remaining` grows by one; None when nothing is in use.",
            it => it.told().next_after.map(seconds)
        ),
    ];

    fn class() -> &'static PyOnceLock<Py<PyType>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        &CLASS
    }

    fn shown(&self) -> String {
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
