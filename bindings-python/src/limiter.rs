//! `Limiter`: a policy on a store.

use std::sync::Arc;

use mirab::{BareDecision, Error, Limiter, OnStoreFailure, Result, Step, Time};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::clock::{HostClock, choose, raised};
use crate::convert::{Cost, items_of, key_bytes, shown, span};
use crate::decision::PyDecision;
use crate::error::{invalid_argument, raise};
use crate::failure::{Choice, Instances};
use crate::health::PyHealth;
use crate::limit::{limits, policy};
use crate::news;
use crate::stats::PyStats;
use crate::store::StoreArgument;
use crate::wait::sleep;

/// A policy on a store. It may be shared by threads, and used in a forked child.
///
/// A limiter is a context manager that closes itself.
#[pyclass(frozen, subclass, module = "mirab", name = "Limiter")]
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
    /// since 1970. `on_store_failure` is "local", "open", "closed" or "raise", and `instances` how many
    /// processes share the store. Making a limiter opens no socket and starts no thread.
    #[new]
    #[pyo3(
        signature = (
            limits,
            store=StoreArgument::Default,
            *,
            clock=None,
            on_store_failure=Choice(OnStoreFailure::Local),
            instances=None,
        ),
        text_signature = "(limits, store='memory:', *, clock=None, on_store_failure='local', instances=None)"
    )]
    fn new(
        py: Python<'_>,
        limits: &Bound<'_, PyAny>,
        store: StoreArgument,
        clock: Option<&Bound<'_, PyAny>>,
        on_store_failure: Choice,
        instances: Option<Instances>,
    ) -> PyResult<Self> {
        let (core_clock, clock) = choose(clock, py)?;
        let mut builder =
            Limiter::builder(policy(limits)?).clock(core_clock).on_store_failure(on_store_failure.0);
        if let Some(instances) = instances {
            builder = builder.instances(instances.0);
        }
        if let StoreArgument::Given(store) = store {
            builder = builder.store(store);
        }
        let core = builder.build().map_err(raise)?;
        let local = core.store().is_local();
        Ok(Self { core, clock, local })
    }

    /// Takes `cost` units of `key` if they are there; the Decision is true when they were.
    #[pyo3(signature = (key, cost=Cost(1)), text_signature = "($self, key, cost=1)")]
    fn acquire(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, cost: Cost) -> PyResult<PyDecision> {
        let bytes = key_bytes(key)?;
        let bare = slf.get().call(slf.py(), |core, time| core.acquire_bare_at(bytes, cost.0, time))?;
        Ok(PyDecision::new(slf, key, bare))
    }

    /// Like `acquire`, but answers only True or False; the fastest way to ask.
    ///
    /// What it takes of a `concurrency` limit cannot be released, and counts until it expires.
    #[pyo3(signature = (key, cost=Cost(1)), text_signature = "($self, key, cost=1)")]
    fn allow(&self, py: Python<'_>, key: &Bound<'_, PyAny>, cost: Cost) -> PyResult<bool> {
        let key = key_bytes(key)?;
        self.call(py, |core, time| core.allow_at(key, cost.0, time))
    }

    /// Whether `cost` would be admitted now, and what is left before taking it; takes nothing.
    #[pyo3(signature = (key, cost=Cost(1)), text_signature = "($self, key, cost=1)")]
    fn peek(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, cost: Cost) -> PyResult<PyDecision> {
        let bytes = key_bytes(key)?;
        let bare = slf.get().call(slf.py(), |core, time| core.peek_bare_at(bytes, cost.0, time))?;
        Ok(PyDecision::new(slf, key, bare))
    }

    /// Acquires for several keys in one step: `items` are keys, or (key, cost) pairs.
    ///
    /// Each is all or nothing for itself, in their order; the same key twice counts twice. A bad item
    /// is an error that names its index, and then nothing is taken.
    fn acquire_many<'py>(slf: &Bound<'py, Self>, items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let held = items_of(items)?;
        let items =
            held.iter().map(|(key, cost)| Ok((key_bytes(key)?, *cost))).collect::<PyResult<Vec<_>>>()?;
        let decided = slf.get().call(slf.py(), |core, time| core.acquire_many_bare_at(&items, time))?;
        let decisions =
            decided.into_iter().zip(&held).map(|(bare, (key, _))| PyDecision::new(slf, key, bare));
        PyList::new(slf.py(), decisions)
    }

    /// Sleeps until `cost` units are admitted, and returns the last decision; never raises for a refusal.
    ///
    /// At once when no wait would help, or not within `timeout` (seconds or a `timedelta`; None waits for
    /// ever). A leaky bucket's `delay` is slept too, where it is within the timeout.
    #[pyo3(
        signature = (key, cost=Cost(1), timeout=None),
        text_signature = "($self, key, cost=1, timeout=None)"
    )]
    fn wait(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        cost: Cost,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyDecision> {
        let (py, limiter) = (slf.py(), slf.get());
        let timeout = timeout.map(|timeout| span("timeout", timeout)).transpose()?;
        let mut waiter = limiter.core.waiter(key_bytes(key)?, cost.0, timeout);
        loop {
            match limiter.run(py, |_| waiter.step_bare())? {
                Step::Done(bare) => return Ok(PyDecision::new(slf, key, bare)),
                Step::Sleep(time) => sleep(py, &limiter.core, time)?,
            }
        }
    }

    /// Gives back what `decision` took, never above full, and ends its leases; returns the units given
    /// back. It works once: 0 for one that was refused, settled before or expired.
    fn refund(&self, py: Python<'_>, decision: &Bound<'_, PyAny>) -> PyResult<u64> {
        let (key, decision) = settled("refund", decision)?;
        self.call(py, |core, time| core.refund_bare_at(key, decision, time))
    }

    /// Settles `decision` at a cost that is known only afterwards: less than it took is given back, more
    /// is charged now, at most to empty. It works once.
    fn commit(&self, py: Python<'_>, decision: &Bound<'_, PyAny>, actual_cost: Cost) -> PyResult<()> {
        let (key, decision) = settled("commit", decision)?;
        self.call(py, |core, time| core.commit_bare_at(key, decision, actual_cost.0, time))
    }

    /// Ends what `decision` holds of `concurrency` limits, and says how many of its leases counted
    /// until now: 0 for one that was refused, released before or expired, or that holds none.
    fn release(&self, py: Python<'_>, decision: &Bound<'_, PyAny>) -> PyResult<u64> {
        let (key, decision) = settled("release", decision)?;
        self.call(py, |core, time| core.release_bare_at(key, decision, time))
    }

    /// Takes `cost` units of `key` for a `with` block, or raises Refused.
    ///
    ///     with limiter.hold("reports") as decision: ...
    ///
    /// At its end, also by an exception, what it holds of `concurrency` limits is released; what it took
    /// of others stays charged, unless the block settles it: `refund(decision)`, `commit(decision, actual)`.
    ///
    /// `max_wait` is how long to `wait` for admission (seconds or a `timedelta`), a leaky bucket's turn
    /// included; without, it asks once and doesn't sleep, and a leaky bucket's `decision.delay` is the
    /// block's to sleep.
    #[pyo3(signature = (*args, **kwargs), text_signature = "($self, key, cost=1, *, max_wait=None)")]
    fn hold<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        written_in_python("hold", slf)?.call(args, kwargs)
    }

    /// Returns a decorator whose function runs under `hold`, and raises Refused when it may not.
    ///
    ///     @limiter.limit(key="reports")
    ///     def make_report(): ...
    ///
    /// `key` and `cost` are values, or functions of the call's arguments; `max_wait` is that of `hold`.
    ///
    /// A coroutine or generator function is Unsupported: its call ends before its work. Use `hold` inside.
    #[pyo3(signature = (*args, **kwargs), text_signature = "($self, *, key, cost=1, max_wait=None)")]
    fn limit<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        written_in_python("limit", slf)?.call(args, kwargs)
    }

    /// Refuses `key` for so many seconds (or a `timedelta`), under any limits of this store and prefix,
    /// also at cost 0. A later block replaces it.
    fn block(&self, py: Python<'_>, key: &Bound<'_, PyAny>, seconds: &Bound<'_, PyAny>) -> PyResult<()> {
        let (key, duration) = (key_bytes(key)?, span("block", seconds)?);
        self.call(py, |core, time| core.block_at(key, duration, time))
    }

    /// Lifts the block of `key`; none is fine.
    fn unblock(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let key = key_bytes(key)?;
        self.call(py, |core, time| core.unblock_at(key, time))
    }

    /// Forgets what was used of `key`, and its block; an unknown key is fine.
    fn reset(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let key = key_bytes(key)?;
        self.call(py, |core, time| core.reset_at(key, time))
    }

    /// How its store is, asked now: where that is a server, in a few round trips. A store that is away is
    /// what it tells, and no error.
    fn health(&self, py: Python<'_>) -> PyResult<PyHealth> {
        self.run(py, Limiter::health).map(PyHealth::from)
    }

    /// How often it answered what, since it was made.
    fn stats(&self) -> PyStats {
        PyStats(self.core.stats())
    }

    /// Ends it: afterwards, and for those who wait inside, every operation raises Closed. Twice is fine.
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
    pub fn core(&self) -> &Limiter {
        &self.core
    }

    /// Whether its store is in this process.
    pub fn is_local(&self) -> bool {
        self.local
    }

    /// Reads a given clock once, with the GIL.
    pub fn time(&self, py: Python<'_>) -> PyResult<Time> {
        match &self.clock {
            Some(clock) => clock.read(py),
            None => self.core.read_clock().map_err(raise),
        }
    }

    /// Reads the clock, then calls the core: without the GIL when that may block.
    pub fn call<T: Send>(
        &self,
        py: Python<'_>,
        operation: impl FnOnce(&Limiter, Time) -> Result<T> + Send,
    ) -> PyResult<T> {
        let time = self.time(py)?;
        self.run(py, |core| operation(core, time))
    }

    /// Calls the core: without the GIL when that may block. What a given clock raises there is raised.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        operation: impl FnOnce(&Limiter) -> Result<T> + Send,
    ) -> PyResult<T> {
        let done = if self.local {
            operation(&self.core)
        } else {
            let done = py.detach(|| operation(&self.core));
            news::tell(py, &self.core);
            done
        };
        done.map_err(|error: Error| raised().unwrap_or_else(|| raise(error)))
    }
}

/// A function of `mirab._hold`, bound to the limiter as a method is. Few programs need that module, which
/// loads others.
fn written_in_python<'py>(name: &str, limiter: &Bound<'py, PyLimiter>) -> PyResult<Bound<'py, PyAny>> {
    let function = limiter.py().import("mirab._hold")?.getattr(name)?;
    function.call_method1("__get__", (limiter,))
}

/// The argument `decision` of the operation `what`: its key, and what the core knows of it.
fn settled<'a>(what: &str, decision: &'a Bound<'_, PyAny>) -> PyResult<(&'a [u8], &'a BareDecision)> {
    match decision.cast::<PyDecision>() {
        Ok(decision) => Ok((decision.get().key(decision.py())?, decision.get().bare())),
        Err(_) => Err(invalid_argument(format!(
            "{what} {}: it must be the Decision that acquire returned",
            shown(decision)
        ))),
    }
}
