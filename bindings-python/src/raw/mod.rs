//! What the interpreter calls so often that pyo3's wrappers would take longer than what they wrap: the
//! methods that decide, and the objects that say what was decided. All that is unsafe here is in this folder.

pub mod class;
mod kept;
pub mod method;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

pub use kept::Kept;
use pyo3::ffi;
use pyo3::panic::PanicException;
use pyo3::prelude::*;

/// Answers the interpreter: with an object, or with none when an exception was raised. A panic is one.
///
/// # Safety
/// The interpreter is attached to this thread, as it is where it calls.
#[inline(always)]
unsafe fn answer<'py>(work: impl FnOnce(Python<'py>) -> PyResult<Bound<'py, PyAny>>) -> *mut ffi::PyObject {
    // SAFETY: the caller's promise.
    let py = unsafe { Python::assume_attached() };
    match catch_unwind(AssertUnwindSafe(|| work(py))) {
        Ok(Ok(object)) => object.into_ptr(),
        Ok(Err(error)) => raised(py, error),
        Err(_) => raised(py, PanicException::new_err("a fault of mirab's; its text went to stderr")),
    }
}

#[cold]
fn raised(py: Python<'_>, error: PyErr) -> *mut ffi::PyObject {
    error.restore(py);
    ptr::null_mut()
}
