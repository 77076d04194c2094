//! `Decision`: what the core answered, with durations in seconds.

use std::ffi::CStr;

use mirab::{BareDecision, Told};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};

use crate::convert::{key_bytes, seconds, shown};
use crate::error::invalid_argument;
use crate::limit::PyPolicy;
use crate::limiter::PyLimiter;
use crate::raw::Kept;
use crate::raw::class::{self, Field, Held, Named, NoMemory, field};
use crate::standing::standing;

/// What a `mirab.Decision` holds.
pub struct Decision {
    bare: BareDecision,
    policy: Kept<PyPolicy>,
    /// A `str` or `bytes`: neither changes.
    key: Kept<PyAny>,
}

/// A `mirab.Decision` of the limiter about the key.
#[inline]
pub fn decision<'py>(
    limiter: &Bound<'py, PyLimiter>,
    key: &Bound<'py, PyAny>,
    bare: BareDecision,
) -> Result<Bound<'py, PyAny>, NoMemory> {
    let py = limiter.py();
    let policy = Kept::new(limiter.get().policy_of(&bare).bind(py));
    let decision = Decision { bare, policy, key: Kept::new(key) };
    class::object(py, decision).map(Bound::into_any)
}

impl Decision {
    /// What a `mirab.Decision` holds; none where it is something else.
    pub fn of<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a Self> {
        class::cast(object).map(|decision| class::held(decision.as_unbound()))
    }

    /// All that it tells.
    pub fn told(&self) -> Told<'_> {
        self.bare.told(&self.policy.get().0)
    }

    pub fn bare(&self) -> &BareDecision {
        &self.bare
    }

    /// Whose it is.
    pub fn key<'a>(&'a self, py: Python<'a>) -> PyResult<&'a [u8]> {
        key_bytes(self.key.bind(py))
    }
}

impl Held for Decision {
    const NAME: &CStr = c"mirab.Decision";
    const DOC: &CStr = c"The answer to one request. It is true exactly when the request is allowed.";
    const TRUTH: Option<Named> = Some(Named { name: c"allowed", doc: c"Whether the request may pass." });
    const FIELDS: &[Field<Self>] = &[
        field!(c"limit", c"The capacity of the limit that decided.", it => it.told().limit()),
        field!(
            c"used",
            c"Units in use: after an admission with its cost, on a refusal without.",
            it => it.told().used()
        ),
        field!(c"remaining", c"Units left, never negative.", it => it.told().remaining()),
        field!(
            c"retry_after",
            c"Seconds until the same cost is admitted if nobody else comes; None when allowed or never.",
            it => it.told().retry_after().map(seconds)
        ),
        field!(c"reset_after", c"Seconds until nothing is in use.", it => seconds(it.told().reset_after())),
        field!(
            c"delay",
            c"Seconds for which an admitted request should be held until its turn (leaky bucket), else 0.",
            it => seconds(it.told().delay())
        ),
        field!(
            c"limit_name",
            c"The name of the limit that decided: its own, else its notation.",
            it => it.told().limit_name()
        ),
        field!(
            c"limit_index",
            c"The place of the limit that decided in the policy, and in `standings`; None when blocked.",
            it => it.told().limit_index()
        ),
        field!(
            c"blocked",
            c"Whether the key is blocked: then `limit_name` is \"block\", and `standings` hold only the block's.",
            it => it.told().is_blocked()
        ),
        field!(
            c"never",
            c"Whether no wait would help: the cost is above the capacity, or the limit is `deny`.",
            it => it.told().never()
        ),
        field!(
            c"degraded",
            c"Whether a fallback decided because the store could not.",
            it => it.told().degraded()
        ),
        Field {
            named: Named {
                name: c"standings",
                doc: c"Where each limit of the policy stands, in the policy's order.",
            },
            read: standings,
        },
    ];

    fn class() -> &'static PyOnceLock<Py<PyType>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        &CLASS
    }
    fn is_true(&self) -> bool {
        self.bare.allowed()
    }

    fn shown(&self) -> String {
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

fn standings<'py>(decision: &Bound<'py, Decision>) -> PyResult<Bound<'py, PyAny>> {
    let places = 0..class::held(decision.as_unbound()).told().standings().len();
    let standings = places.map(|place| standing(decision, place)).collect::<Result<Vec<_>, NoMemory>>()?;
    PyTuple::new(decision.py(), standings).map(Bound::into_any)
}

/// The argument `decision` of the operation `what`: its key, and what the core knows of it.
pub fn settled<'a>(what: &str, decision: &'a Bound<'_, PyAny>) -> PyResult<(&'a [u8], &'a BareDecision)> {
    match Decision::of(decision) {
        Some(held) => Ok((held.key(decision.py())?, held.bare())),
        None => Err(invalid_argument(format!(
            "{what} {}: it must be the Decision that acquire returned",
            shown(decision)
        ))),
    }
}
