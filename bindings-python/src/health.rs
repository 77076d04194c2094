//! `Health`: how a limiter's store is, with durations in seconds.

use mirab::Health;
use pyo3::prelude::*;

/// How a store is: what an operator asks first.
#[pyclass(frozen, get_all, module = "mirab", name = "Health")]
pub struct PyHealth {
    /// The store, without user, password and parameters.
    store: String,
    /// Whether it answered just now, and is asked.
    ok: bool,
    /// "closed" while it is asked, "open" while it isn't, after failures, "trial" while one request tries it.
    circuit: &'static str,
    /// How often it went from "closed" to "open".
    opened: u64,
    /// What failed last, as its kind and its text; None when nothing has.
    last_error: Option<(&'static str, String)>,
    /// Seconds since that; None when nothing has failed.
    last_error_age: Option<f64>,
    /// The server's version; None for a store in this process, and when it didn't say.
    server_version: Option<String>,
    /// What the server does when its memory is full; None when it didn't say.
    maxmemory_policy: Option<String>,
    /// Whether the server has a limit of memory and would then drop the keys of limiters, which gives
    /// their owners all their room back; None when it didn't say.
    may_drop_keys: Option<bool>,
    /// Seconds that the server's clock is ahead of this process's, to half a round trip; negative when it is
    /// behind, None when there is none or it didn't say.
    clock_ahead: Option<f64>,
    /// The number of the layout of the state that this release writes.
    layout: u32,
}

impl From<Health> for PyHealth {
    fn from(health: Health) -> Self {
        let Health { store, ok, circuit, opened, server_version, maxmemory_policy, may_drop_keys, .. } =
            health;
        Self {
            store,
            ok,
            circuit,
            opened,
            last_error: health.last_error.map(|(kind, text)| (kind.name(), text)),
            last_error_age: health.last_error_age.map(|age| age.as_secs_f64()),
            server_version,
            maxmemory_policy,
            may_drop_keys,
            clock_ahead: health.clock_ahead_us.map(|us| us as f64 / 1e6),
            layout: health.layout,
        }
    }
}

#[pymethods]
impl PyHealth {
    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        const FIELDS: [&str; 10] = [
            "store",
            "ok",
            "circuit",
            "opened",
            "last_error",
            "last_error_age",
            "server_version",
            "maxmemory_policy",
            "may_drop_keys",
            "clock_ahead",
        ];
        let shown = |&name: &&str| Ok(format!("{name}={}", slf.getattr(name)?.repr()?));
        let fields = FIELDS.iter().map(shown).collect::<PyResult<Vec<_>>>()?;
        Ok(format!("Health({})", fields.join(", ")))
    }
}
