//! Waiting: a sleep as Python's threads do it, without the GIL, and so that Ctrl-C is heard; and what those
//! need who sleep in an event loop.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use mirab::{Limiter, Result, Waiter};
use pyo3::prelude::*;

use crate::convert::{self, Cost, key_bytes, seconds};
use crate::decision::Decision;
use crate::error::raise;
use crate::limiter::PyLimiter;

/// How long the main thread sleeps before it looks for signals, which only it handles.
const DEAF: Duration = Duration::from_millis(50);

/// Sleeps so long; earlier it ends with `Closed`, or with what a signal's handler raises.
pub fn sleep(py: Python<'_>, limiter: &Limiter, time: Duration) -> PyResult<()> {
    let piece = if is_main_thread(py)? { DEAF } else { time };
    let begun = Instant::now();
    loop {
        let left = time.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        let slept: Result<()> = py.detach(|| limiter.sleep(left.min(piece)));
        slept.map_err(raise)?;
        py.check_signals()?;
    }
}

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let current = threading.call_method0("get_ident")?;
    threading.call_method0("main_thread")?.getattr("ident")?.eq(current)
}

/// A request that waits, where its asking and its sleeping are an event loop's.
#[pyclass(frozen, module = "mirab._mirab", name = "Waiter")]
pub struct PyWaiter(Mutex<Waiter>);

#[pymethods]
impl PyWaiter {
    /// Begins to wait now, at most for `timeout` (seconds or a `timedelta`; 0 asks once, None is for ever).
    #[new]
    #[pyo3(signature = (limiter, key, cost, timeout))]
    fn new(
        limiter: &Bound<'_, PyLimiter>,
        key: &Bound<'_, PyAny>,
        cost: Cost,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let timeout = timeout.map(|given| convert::timeout("timeout", given)).transpose()?;
        Ok(Self(Mutex::new(limiter.get().core().waiter(key_bytes(key)?, cost.0, timeout))))
    }

    /// The seconds to sleep after `decision`, before it is the answer where it admitted, and is asked again
    /// where it refused; None when it is the answer.
    fn pause(&self, decision: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        let mut waiter = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(decision) = Decision::of(decision) else { return Ok(None) };
        Ok(waiter.next(decision.bare()).map_err(raise)?.map(seconds))
    }
}
