//! One exception class for each kind of error, all under `MirabError`.

use mirab::{Error, ErrorKind};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

/// Name, the builtin that it also is, and its docstring.
type Class = (&'static str, Option<&'static str>, &'static str);

/// The class of a kind; a kind that this table doesn't know is raised as `MirabError` itself.
fn class(kind: ErrorKind) -> Option<Class> {
    Some(match kind {
        ErrorKind::InvalidLimit => (
            "InvalidLimit",
            Some("ValueError"),
            "A limit or its notation is malformed, or its numbers lie outside the domain.",
        ),
        ErrorKind::InvalidArgument => (
            "InvalidArgument",
            Some("ValueError"),
            "A key, a cost, a time or an option is outside its domain.",
        ),
        ErrorKind::InvalidUri => {
            ("InvalidUri", Some("ValueError"), "A store's URI is malformed or has an unknown parameter.")
        }
        ErrorKind::InvalidRules => {
            ("InvalidRules", Some("ValueError"), "A file or document of rules is malformed.")
        }
        ErrorKind::Unsupported => {
            ("Unsupported", None, "Well-formed, but this store or this release cannot do it.")
        }
        ErrorKind::Closed => ("Closed", None, "The limiter was closed."),
        ErrorKind::StoreUnavailable => (
            "StoreUnavailable",
            Some("ConnectionError"),
            "The store could not be reached, or is not ready to decide.",
        ),
        ErrorKind::StoreTimeout => (
            "StoreTimeout",
            Some("TimeoutError"),
            "The store did not answer within the deadline; the charge may have happened.",
        ),
        ErrorKind::StoreDenied => (
            "StoreDenied",
            Some("ConnectionError"),
            "The store refused the credentials or the command, or its file is another user's.",
        ),
        ErrorKind::StoreFull => ("StoreFull", None, "The store has no room left."),
        ErrorKind::StoreCorrupt => (
            "StoreCorrupt",
            None,
            "The stored value, or the file of shared memory, is not one of this library's.",
        ),
        ErrorKind::StoreMismatch => {
            ("StoreMismatch", None, "The store was made with other parameters or another layout.")
        }
        ErrorKind::Internal => ("Internal", None, "A fault of this library: please report it."),
        _ => return None,
    })
}

const BASE_DOC: &str = "The base of every error of mirab; `kind` is its stable name, the same in every language. A refusal is a decision, never an error.";

struct Classes {
    base: Py<PyType>,
    by_kind: Vec<(ErrorKind, Py<PyType>)>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

fn classes(py: Python<'_>) -> PyResult<&Classes> {
    CLASSES.get_or_try_init(py, || {
        let exception = py.get_type::<PyException>();
        let base = define(py, ("MirabError", None, BASE_DOC), ErrorKind::Internal, &exception)?;
        let by_kind = ErrorKind::ALL
            .iter()
            .filter_map(|&kind| class(kind).map(|class| (kind, class)))
            .map(|(kind, class)| Ok((kind, define(py, class, kind, &base)?.unbind())))
            .collect::<PyResult<_>>()?;
        Ok(Classes { base: base.unbind(), by_kind })
    })
}

/// `type(name, bases, namespace)`: the only way to two bases.
fn define<'py>(
    py: Python<'py>,
    (name, builtin, doc): Class,
    kind: ErrorKind,
    base: &Bound<'py, PyType>,
) -> PyResult<Bound<'py, PyType>> {
    let mut bases = vec![base.clone().into_any()];
    if let Some(builtin) = builtin {
        bases.push(py.import("builtins")?.getattr(builtin)?);
    }
    let namespace = PyDict::new(py);
    namespace.set_item("__module__", "mirab")?;
    namespace.set_item("__doc__", doc)?;
    namespace.set_item("kind", kind.name())?;
    let made = py.get_type::<PyType>().call1((name, PyTuple::new(py, bases)?, namespace))?;
    Ok(made.cast_into()?)
}

/// Adds the classes to the module, and `ERRORS`, which finds them by the name of their kind.
pub fn export(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let classes = classes(py)?;
    module.add("MirabError", &classes.base)?;
    let by_name = PyDict::new(py);
    for (kind, class) in &classes.by_kind {
        module.add(class.bind(py).name()?, class)?;
        by_name.set_item(kind.name(), class)?;
    }
    module.add("ERRORS", by_name)
}

/// The exception that says `error`.
#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err takes")]
pub fn raise(error: Error) -> PyErr {
    Python::attach(|py| exception(py, &error).unwrap_or_else(|failure| failure))
}

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let classes = classes(py)?;
    let known = classes.by_kind.iter().find(|(kind, _)| *kind == error.kind());
    let message = error.to_string();
    if let Some((_, class)) = known {
        return Ok(PyErr::from_type(class.bind(py).clone(), message));
    }
    let plain = classes.base.bind(py).call1((message,))?;
    plain.setattr("kind", error.kind().name())?;
    Ok(PyErr::from_value(plain))
}

/// `invalid_argument`, with a message that names the value and what would be right.
pub fn invalid_argument(message: String) -> PyErr {
    raise(Error::new(ErrorKind::InvalidArgument, message))
}
