//! What an operator should know of a store, in the log: that it is not asked any more, that it decides again, that its
//! file was removed.

use mirab::{Limiter, News};
use pyo3::prelude::*;

/// Logs what is new, each change once. It costs next to nothing when nothing is; only when something is,
/// `logging` is loaded.
#[inline]
pub fn tell(py: Python<'_>, limiter: &Limiter) {
    while let Some(news) = limiter.next_news() {
        // A log that fails is no reason to fail a decision.
        if let Err(failure) = log(py, &news) {
            failure.write_unraisable(py, None);
        }
    }
}

#[cold]
fn log(py: Python<'_>, news: &News) -> PyResult<()> {
    let logger = py.import("logging")?.call_method1("getLogger", ("mirab",))?;
    let level = if news.is_error { "error" } else { "warning" };
    logger.call_method1(level, ("%s", &news.text)).map(|_| ())
}
