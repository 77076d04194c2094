//! `Limiter`: a policy on a store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use mirab::{BareDecision, Error, Limiter, OnStoreFailure, Step, Time};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::clock::{HostClock, choose, raised};
use crate::convert::{self, Cost, items_of, key_bytes, span};
use crate::decision::{decision, settled};
use crate::error::raise;
use crate::failure::{Choice, Instances};
use crate::health::PyHealth;
use crate::limit::{PyPolicy, limits, policy};
use crate::news;
use crate::raw::class::NoMemory;
use crate::stats::PyStats;
use crate::store::StoreArgument;
use crate::wait::sleep;

/// A policy on a store. It may be shared by threads, and used in a forked child.
///
/// A limiter is a context manager that closes itself. Making one opens no socket and starts no thread.
///
/// limits: notation such as "100/second burst 300", a Limit, or a list of them.
/// store: a URI ("memory:", "memory:NAME", "shm:NAME", "redis://...") or a Store. "shm:NAME" is one for all
///     processes of this host and user: what several workers of one host should use.
/// clock: None for the store's own (MIRAB_CLOCK=host in the environment chooses `time.time`); a ManualClock;
///     or a callable that returns the seconds since 1970.
/// on_store_failure: what decides when the store does not: "local", the same limits in this process, from where
///     it last saw each bucket; "open" admits all; "closed" refuses all; "raise" raises the Store... error.
/// instances: how many processes share the store, 1 unless given: under "local" each admits that part.
///
/// Raises InvalidLimit, InvalidUri, InvalidArgument or Unsupported; where the file of "shm:" can't be used,
/// StoreUnavailable, StoreDenied, StoreCorrupt or StoreMismatch.
#[pyclass(frozen, subclass, module = "mirab", name = "Limiter")]
pub struct PyLimiter {
    core: Limiter,
    policy: Py<PyPolicy>,
    /// What of it this process admits by itself while its store fails.
    shares: Py<PyPolicy>,
    clock: Option<Arc<HostClock>>,
    /// Such a store waits for no network, and a decision is shorter than giving up the GIL and taking it.
    local: bool,
    /// It is of this machine, and may have news; memory never has.
    shared: bool,
    /// How often a shared one was asked, for its news.
    asked: AtomicU32,
}

/// A shared store is asked for its news once in so many decisions, so that none of them pays for it.
const NEWS_EVERY: u32 = 16;

#[pymethods]
impl PyLimiter {
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
        let policy = Py::new(py, PyPolicy(core.policy().clone()))?;
        let local = core.store().is_local();
        let shared = local && core.store().kind() != "memory";
        // Memory cannot fail: nothing is ever decided in its place.
        let shares = match local && !shared {
            true => policy.clone_ref(py),
            false => Py::new(py, PyPolicy(core.shares().clone()))?,
        };
        if shared {
            news::tell(py, &core);
        }
        Ok(Self { core, policy, shares, clock, local, shared, asked: AtomicU32::new(0) })
    }

    /// Acquires for several keys in one step: `items` are keys, or (key, cost) pairs.
    ///
    /// Each is all or nothing for itself, in their order; the same key twice counts twice. A bad item
    /// is an error that names its index, and then nothing is taken.
    fn acquire_many<'py>(slf: &Bound<'py, Self>, items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let held = items_of(items)?;
        let items =
            held.iter().map(|(key, cost)| Ok((key_bytes(key)?, *cost))).collect::<PyResult<Vec<_>>>()?;
        let limiter = slf.get();
        let decided = limiter.call(slf.py(), |core, time| {
            let decided = core.acquire_many_bare_at(&items, time)?;
            decided.iter().for_each(|bare| limiter.listen(bare));
            Ok(decided)
        })?;
        let decisions = decided.into_iter().zip(&held).map(|(bare, (key, _))| decision(slf, key, bare));
        PyList::new(slf.py(), decisions.collect::<Result<Vec<_>, NoMemory>>()?)
    }

    /// Sleeps until `cost` units are admitted, and returns the last decision; never raises for a refusal.
    ///
    /// At once when no wait would help, or not within `timeout` (seconds or a `timedelta`; 0 asks once,
    /// None waits for ever). A leaky bucket's `delay` is slept too, where it is within the timeout.
    #[pyo3(
        signature = (key, cost=Cost(1), timeout=None),
        text_signature = "($self, key, cost=1, timeout=None)"
    )]
    fn wait<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
        cost: Cost,
        timeout: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, limiter) = (slf.py(), slf.get());
        let timeout = timeout.map(|given| convert::timeout("timeout", given)).transpose()?;
        let mut waiter = limiter.core.waiter(key_bytes(key)?, cost.0, timeout);
        loop {
            match limiter.run(py, |_| waiter.step_bare())? {
                Step::Done(bare) => return Ok(decision(slf, key, bare)?),
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
    /// included; without, or with 0, it asks once and doesn't sleep, and a leaky bucket's `decision.delay` is the
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

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.clock.as_ref().map_or(Ok(()), |clock| clock.traverse(&visit))
    }

    fn __repr__(&self) -> String {
        format!("<mirab.Limiter {:?} on {}>", self.core.policy().to_string(), self.core.store().kind())
    }
}

impl PyLimiter {
    pub fn core(&self) -> &Limiter {
        &self.core
    }

    /// By which limits it decided.
    pub fn policy_of(&self, bare: &BareDecision) -> &Py<PyPolicy> {
        if bare.is_by_share() { &self.shares } else { &self.policy }
    }

    /// That a shared store did not decide is news: they are asked for when the call ends.
    #[inline]
    pub fn listen(&self, bare: &BareDecision) {
        if self.shared && self.core.tell(bare).degraded() {
            self.asked.store(NEWS_EVERY - 1, Ordering::Relaxed);
        }
    }

    /// Whether its store is in this process or machine.
    pub fn is_local(&self) -> bool {
        self.local
    }

    /// The time that its clock shows. One of the interpreter's is read here, with the GIL.
    pub fn time(&self, py: Python<'_>) -> PyResult<Time> {
        match &self.clock {
            Some(clock) => clock.read(py),
            None => self.core.read_clock().map_err(raise),
        }
    }

    /// Reads the clock once, then calls the core: without the GIL when that may block.
    pub fn call<T: Send>(
        &self,
        py: Python<'_>,
        operation: impl FnOnce(&Limiter, Time) -> mirab::Result<T> + Send,
    ) -> PyResult<T> {
        let time = self.time(py)?;
        self.run(py, |core| operation(core, time))
    }

    /// Calls the core: without the GIL when that may block. What a given clock raises there is raised.
    pub fn run<T: Send>(
        &self,
        py: Python<'_>,
        operation: impl FnOnce(&Limiter) -> mirab::Result<T> + Send,
    ) -> PyResult<T> {
        let done = if self.local {
            self.here(py, operation)
        } else {
            let done = py.detach(|| operation(&self.core));
            news::tell(py, &self.core);
            done
        };
        done.map_err(|error: Error| raised().unwrap_or_else(|| raise(error)))
    }

    /// Calls the core on a store of this process or machine, with the GIL; logs what is new of a shared one after
    /// a failure, else now and then.
    #[inline]
    pub fn here<T>(
        &self,
        py: Python<'_>,
        operation: impl FnOnce(&Limiter) -> mirab::Result<T>,
    ) -> mirab::Result<T> {
        let done = operation(&self.core);
        if self.shared {
            let asked = self.asked.load(Ordering::Relaxed).wrapping_add(1);
            self.asked.store(asked, Ordering::Relaxed);
            if done.is_err() || asked.is_multiple_of(NEWS_EVERY) {
                news::tell(py, &self.core);
            }
        }
        done
    }
}

/// A function of `mirab._hold`, bound to the limiter as a method is. Few programs need that module, which
/// loads others.
fn written_in_python<'py>(name: &str, limiter: &Bound<'py, PyLimiter>) -> PyResult<Bound<'py, PyAny>> {
    let function = limiter.py().import("mirab._hold")?.getattr(name)?;
    function.call_method1("__get__", (limiter,))
}
