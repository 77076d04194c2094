//! Requests in an event loop of asyncio: no thread waits for them, and those of one turn of the loop travel
//! together.

mod driven;
mod here;
mod wanted;

use pyo3::prelude::*;

use crate::convert::Cost;
use crate::limiter::PyLimiter;
use driven::Driven;
use wanted::Wanted;

/// As `Limiter.acquire`: the Decision, or a future of the running loop that will have it.
#[pyfunction]
#[pyo3(signature = (limiter, key, cost))]
pub fn acquire_soon<'py>(
    limiter: &Bound<'py, PyLimiter>,
    key: &Bound<'py, PyAny>,
    cost: Cost,
) -> PyResult<Bound<'py, PyAny>> {
    soon(limiter, key, cost.0, Wanted::Decision)
}

/// As `Limiter.allow`: True or False, or a future of the running loop that will be one of them.
#[pyfunction]
#[pyo3(signature = (limiter, key, cost))]
pub fn allow_soon<'py>(
    limiter: &Bound<'py, PyLimiter>,
    key: &Bound<'py, PyAny>,
    cost: Cost,
) -> PyResult<Bound<'py, PyAny>> {
    soon(limiter, key, cost.0, Wanted::YesOrNo)
}

/// As `Limiter.peek`: the Decision, or a future of the running loop that will have it.
#[pyfunction]
#[pyo3(signature = (limiter, key, cost))]
pub fn peek_soon<'py>(
    limiter: &Bound<'py, PyLimiter>,
    key: &Bound<'py, PyAny>,
    cost: Cost,
) -> PyResult<Bound<'py, PyAny>> {
    soon(limiter, key, cost.0, Wanted::Peek)
}

/// Whether a limiter decides in this process, on memory or shared memory, so that no operation waits for a network.
#[pyfunction]
pub fn decides_here(limiter: &Bound<'_, PyLimiter>) -> bool {
    limiter.get().is_local()
}

fn soon<'py>(
    limiter: &Bound<'py, PyLimiter>,
    key: &Bound<'py, PyAny>,
    cost: u64,
    wanted: Wanted,
) -> PyResult<Bound<'py, PyAny>> {
    if limiter.get().is_local() {
        return wanted.now(limiter, key, cost);
    }
    let event_loop = here::running_loop(limiter.py())?;
    let driven = here::driven(&event_loop, limiter.get().core())?;
    Driven::ask(&driven, &event_loop, limiter, (key, cost), wanted)
}
