//! `mirab._mirab`: the core as a Python module.
//!
//! A method here converts its arguments, calls one method of the core and maps the error. What is
//! written in Python (`python/mirab/`) belongs to a framework, or to a `with` block.

mod clock;
mod convert;
mod deciding;
mod decision;
mod error;
mod event_loop;
mod failure;
mod health;
mod http;
mod limit;
mod limiter;
mod news;
mod raw;
mod standing;
mod stats;
mod store;
mod wait;

/// The native half of the package `mirab`.
#[pyo3::pymodule]
mod _mirab {
    use pyo3::prelude::*;

    use super::deciding::{Acquire, Allow, Peek};
    use super::decision::Decision;
    use super::raw::class::class;
    use super::raw::method;
    use super::standing::Standing;

    #[pymodule_export]
    use super::clock::PyManualClock;
    #[pymodule_export]
    use super::event_loop::{acquire_soon, allow_soon, decides_here, peek_soon};
    #[pymodule_export]
    use super::health::PyHealth;
    #[pymodule_export]
    use super::http::{PyAnswer, PyAnswers, PyClients};
    #[pymodule_export]
    use super::limit::PyLimit;
    #[pymodule_export]
    use super::limiter::PyLimiter;
    #[pymodule_export]
    use super::stats::PyStats;
    #[pymodule_export]
    use super::store::PyStore;
    #[pymodule_export]
    use super::wait::PyWaiter;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("Decision", class::<Decision>(py)?)?;
        module.add("Standing", class::<Standing>(py)?)?;
        method::install::<Acquire>(py)?;
        method::install::<Allow>(py)?;
        method::install::<Peek>(py)?;
        super::error::export(module)
    }
}
