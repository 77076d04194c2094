//! `Limiter`: a policy on a store.

use std::sync::Arc;

use mirab::{Limiter, OnStoreFailure, Result, Time};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::clock::{HostClock, choose};
use crate::convert::{Cost, Key, shown};
use crate::decision::PyDecision;
use crate::error::{invalid_argument, raise};
use crate::limit::{limits, policy};
use crate::store::StoreArgument;

/// A policy on a store. It may be shared by threads, and used in a forked child.
#[pyclass(frozen, module = "mirab", name = "Limiter")]
pub struct PyLimiter {
    core: Limiter,
    clock: Option<Arc<HostClock>>,
    /// Such a store never blocks, and a decision is shorter than giving up the GIL and taking it.
    local: bool,
}

#[pymethods]
impl PyLimiter {
    /// A limiter of `limits` (notation, a Limit, or a list of them) on `store` (a URI or a Store).
    ///
    /// `clock` is None for the store's own, a ManualClock, or a callable that returns the seconds
    /// since 1970. Making a limiter opens no socket and starts no thread.
    #[new]
    #[pyo3(
        signature = (limits, store=StoreArgument::Default, *, clock=None, on_store_failure="raise"),
        text_signature = "(limits, store='memory:', *, clock=None, on_store_failure='raise')"
    )]
    fn new(
        py: Python<'_>,
        limits: &Bound<'_, PyAny>,
        store: StoreArgument,
        clock: Option<&Bound<'_, PyAny>>,
        on_store_failure: &str,
    ) -> PyResult<Self> {
        let (core_clock, clock) = choose(clock, py)?;
        let failure: OnStoreFailure = on_store_failure.parse().map_err(raise)?;
        let mut builder = Limiter::builder(policy(limits)?).clock(core_clock).on_store_failure(failure);
        if let StoreArgument::Given(store) = store {
            builder = builder.store(store);
        }
        let core = builder.build().map_err(raise)?;
        let local = core.store().is_local();
        Ok(Self { core, clock, local })
    }

    /// Takes `cost` units of `key` if they are there; the Decision is true when they were.
    #[pyo3(signature = (key, cost=Cost(1)), text_signature = "($self, key, cost=1)")]
    fn acquire(&self, py: Python<'_>, key: Key<'_>, cost: Cost) -> PyResult<PyDecision> {
        self.call(py, |core, time| core.acquire_at(key.0, cost.0, time)).map(PyDecision)
    }

    /// Like `acquire`, but answers only True or False; the fastest way to ask.
    ///
    /// What it takes of a `concurrency` limit cannot be released, and counts until it expires.
    #[pyo3(signature = (key, cost=Cost(1)), text_signature = "($self, key, cost=1)")]
    fn allow(&self, py: Python<'_>, key: Key<'_>, cost: Cost) -> PyResult<bool> {
        self.call(py, |core, time| core.allow_at(key.0, cost.0, time))
    }

    /// Whether `cost` would be admitted now, and what is left before taking it; takes nothing.
    #[pyo3(signature = (key, cost=Cost(1)), text_signature = "($self, key, cost=1)")]
    fn peek(&self, py: Python<'_>, key: Key<'_>, cost: Cost) -> PyResult<PyDecision> {
        self.call(py, |core, time| core.peek_at(key.0, cost.0, time)).map(PyDecision)
    }

    /// Ends what `decision` holds of `concurrency` limits, and says how many of its leases counted
    /// until now: 0 for one that was refused, released before or expired, or that holds none.
    fn release(&self, py: Python<'_>, decision: &Bound<'_, PyAny>) -> PyResult<u64> {
        let Ok(decision) = decision.cast::<PyDecision>() else {
            return Err(invalid_argument(format!(
                "release {}: it must be the Decision that acquire returned",
                shown(decision)
            )));
        };
        let decision = &decision.get().0;
        match decision.receipt() {
            Some(receipt) => self.call(py, |core, time| core.release_at(decision.key(), receipt, time)),
            None => self.core.release(decision).map_err(raise),
        }
    }

    /// Forgets what was used of `key`; an unknown key is fine.
    fn reset(&self, py: Python<'_>, key: Key<'_>) -> PyResult<()> {
        self.call(py, |core, time| core.reset_at(key.0, time))
    }

    /// Ends it: afterwards every operation raises Closed. Twice is fine.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.core.close());
    }

    /// The limits of its policy.
    #[getter]
    fn limits<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        limits(self.core.policy(), py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        format!("<mirab.Limiter {:?} on {}>", self.core.policy().to_string(), self.core.store().kind())
    }
}

impl PyLimiter {
    /// Reads a given clock once, with the GIL, then calls the core: without it when that may block.
    fn call<T: Send>(
        &self,
        py: Python<'_>,
        operation: impl FnOnce(&Limiter, Time) -> Result<T> + Send,
    ) -> PyResult<T> {
        let time = match &self.clock {
            Some(clock) => clock.read(py)?,
            None => self.core.read_clock().map_err(raise)?,
        };
        if self.local { operation(&self.core, time) } else { py.detach(|| operation(&self.core, time)) }
            .map_err(raise)
    }
}
