//! `Store`: where the state lives, to be shared by limiters.

use mirab::Store;
use pyo3::prelude::*;

use crate::convert::shown;
use crate::error::{invalid_argument, raise};

/// Where the state lives. Making one opens no socket and starts no thread.
#[pyclass(frozen, module = "mirab", name = "Store")]
pub struct PyStore(Store);

#[pymethods]
impl PyStore {
    /// The store of a URI, such as "memory:", "memory:NAME" or "redis://127.0.0.1:6379".
    #[new]
    fn new(uri: &str) -> PyResult<Self> {
        Store::open(uri).map(Self).map_err(raise)
    }

    /// What it is: "memory" or "redis".
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    fn __repr__(&self) -> String {
        format!("<mirab.Store {}>", self.0.kind())
    }
}

/// The argument `store`: left out, a URI, or a `Store`.
pub enum StoreArgument {
    Default,
    Given(Store),
}

impl FromPyObject<'_, '_> for StoreArgument {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(store) = value.cast::<PyStore>() {
            return Ok(Self::Given(store.get().0.clone()));
        }
        if let Ok(uri) = value.extract() {
            return Store::open(uri).map(Self::Given).map_err(raise);
        }
        Err(invalid_argument(format!(
            "store {}: it must be a URI such as \"memory:\", or a Store",
            shown(&value)
        )))
    }
}
