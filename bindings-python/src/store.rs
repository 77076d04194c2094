//! `Store`: where the state lives, to be shared by limiters.

use mirab::{Error, ErrorKind, Store};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};

use crate::convert::shown;
use crate::error::{invalid_argument, raise};

/// Where the state lives. Making one opens no socket and starts no thread; that of "shm:" opens its file.
#[pyclass(frozen, module = "mirab", name = "Store")]
pub struct PyStore(Store);

#[pymethods]
impl PyStore {
    /// The store of a URI, such as "memory:", "memory:NAME", "shm:NAME" or "redis://127.0.0.1:6379".
    #[new]
    fn new(uri: &Bound<'_, PyAny>) -> PyResult<Self> {
        open("uri", uri, "it must be a URI such as \"memory:\"").map(Self)
    }

    /// What it is: "memory", "shm" or "redis".
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
        open("store", &value, "it must be a URI such as \"memory:\", or a Store").map(Self::Given)
    }
}

/// The store of a URI, called `what` in the error. That shows no text, nor bytes: it may hold a password.
fn open(what: &str, uri: &Bound<'_, PyAny>, right: &str) -> PyResult<Store> {
    let Ok(text) = uri.cast::<PyString>() else {
        let given = match uri.is_instance_of::<PyBytes>() || uri.is_instance_of::<PyByteArray>() {
            true => format!("of {}", uri.get_type().name()?),
            false => shown(uri),
        };
        return Err(invalid_argument(format!("{what} {given}: {right}")));
    };
    let uri = text.to_str().map_err(|_| {
        let wrong = "a lone surrogate has no UTF-8 form; write other bytes as %XX";
        raise(Error::new(ErrorKind::InvalidUri, format!("{what}: {wrong}")))
    })?;
    Store::open(uri).map_err(raise)
}
