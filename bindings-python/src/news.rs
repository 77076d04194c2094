//! What an operator should know of a store, in the log: that it is not asked any more, that it decides again.

use mirab::Limiter;
use pyo3::prelude::*;

/// Logs what is new, each change once. It costs next to nothing when nothing is; only when something is,
/// `logging` is loaded.
#[inline]
pub fn tell(py: Python<'_>, limiter: &Limiter) {
    while let Some(news) = limiter.next_news() {
        // A log that fails is no reason to fail a decision.
        if let Err(failure) = warn(py, &news) {
            failure.write_unraisable(py, None);
        }
    }
}

#[cold]
fn warn(py: Python<'_>, news: &str) -> PyResult<()> {
    let logger = py.import("logging")?.call_method1("getLogger", ("mirab",))?;
    logger.call_method1("warning", ("%s", news)).map(|_| ())
}
