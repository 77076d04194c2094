//! `Stats`: how often a limiter answered what.

use mirab::Stats;
use pyo3::prelude::*;

/// Counts of one limiter since it was made.
#[pyclass(frozen, module = "mirab", name = "Stats")]
pub struct PyStats(pub Stats);

#[pymethods]
impl PyStats {
    /// Requests that were admitted.
    #[getter]
    fn allowed(&self) -> u64 {
        self.0.allowed
    }

    /// Requests that were refused and may pass later.
    #[getter]
    fn refused(&self) -> u64 {
        self.0.refused
    }

    /// Requests that were refused for ever: a cost above the capacity, or `deny`.
    #[getter]
    fn never(&self) -> u64 {
        self.0.never
    }

    /// Requests that were refused because the key is blocked.
    #[getter]
    fn blocked(&self) -> u64 {
        self.0.blocked
    }

    /// Requests that were not decided: an error was returned.
    #[getter]
    fn errors(&self) -> u64 {
        self.0.errors
    }

    /// Requests of the above that were decided in the store's place, since it failed.
    #[getter]
    fn degraded(&self) -> u64 {
        self.0.degraded
    }

    /// Units that `refund` and `commit` gave back.
    #[getter]
    fn refunded(&self) -> u64 {
        self.0.refunded
    }

    /// Keys that the store keeps in this process, of all its limiters; 0 on Redis.
    #[getter]
    fn keys(&self) -> u64 {
        self.0.keys
    }

    /// Live keys that the store forgot, or refused, for want of room; 0 on Redis.
    #[getter]
    fn evicted(&self) -> u64 {
        self.0.evicted
    }

    fn __repr__(&self) -> String {
        let Stats { allowed, refused, never, blocked, errors, degraded, refunded, keys, evicted, .. } =
            self.0;
        format!(
            "Stats(allowed={allowed}, refused={refused}, never={never}, blocked={blocked}, errors={errors}, \
             degraded={degraded}, refunded={refunded}, keys={keys}, evicted={evicted})"
        )
    }
}
