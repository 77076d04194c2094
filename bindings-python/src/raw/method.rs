//! Methods of the limiter that take a key and a cost.

use std::ffi::CStr;
use std::iter;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::answer;
use crate::convert::Cost;
use crate::limiter::PyLimiter;

type Argument<'a, 'py> = Borrowed<'a, 'py, PyAny>;

pub trait Method: 'static {
    const NAME: &'static CStr;
    /// Its signature and its text, as the interpreter takes them apart.
    const DOC: &'static CStr;

    fn call<'py>(
        limiter: &Bound<'py, PyLimiter>,
        key: &Bound<'py, PyAny>,
        cost: Cost,
    ) -> PyResult<Bound<'py, PyAny>>;
}

/// Puts the method into the class of the limiter.
pub fn install<M: Method>(py: Python<'_>) -> PyResult<()> {
    let class = py.get_type::<PyLimiter>();
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: M::NAME.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: method::<M> },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: M::DOC.as_ptr(),
    }));
    // SAFETY: the definition lives for ever, and `method` is of the type that its flags say.
    let method =
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_type_ptr(), definition))? };
    class.setattr(M::NAME.to_string_lossy(), method)
}

unsafe extern "C" fn method<M: Method>(
    limiter: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    by_position: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls it for an instance of the class, and holds what it passes until the call
    // has returned: arguments by position, then one for each name.
    unsafe {
        answer(|py| {
            let limiter = Borrowed::from_ptr(py, limiter).cast_unchecked::<PyLimiter>();
            let argument = |place| Borrowed::from_ptr(py, *arguments.add(place));
            match by_position {
                1 if names.is_null() => M::call(&limiter, &argument(0), Cost(1)),
                2 if names.is_null() => M::call(&limiter, &argument(0), argument(1).extract()?),
                _ => {
                    let names = Borrowed::from_ptr_or_opt(py, names).map(|names| names.cast_unchecked());
                    let (key, cost) = sorted::<M>(by_position as usize, names.as_deref(), argument)?;
                    M::call(&limiter, &key, cost.map_or(Ok(Cost(1)), |cost| cost.extract())?)
                }
            }
        })
    }
}

/// The key, and the cost where one was given, of a call that names them, or is wrong.
#[cold]
fn sorted<'a, 'py, M: Method>(
    by_position: usize,
    names: Option<&Bound<'py, PyTuple>>,
    argument: impl Fn(usize) -> Argument<'a, 'py>,
) -> PyResult<(Argument<'a, 'py>, Option<Argument<'a, 'py>>)> {
    let wrong = |what: &str| PyTypeError::new_err(format!("Limiter.{}() {what}", M::NAME.to_string_lossy()));
    if by_position > 2 {
        let given = format!("takes from 1 to 2 positional arguments but {by_position} were given");
        return Err(wrong(&given));
    }
    let mut sorted = [0, 1].map(|place| (place < by_position).then(|| argument(place)));
    for (name, place) in iter::zip(names.into_iter().flatten(), by_position..) {
        let Some(known) = ["key", "cost"].iter().position(|known| name.eq(known).unwrap_or(false)) else {
            return Err(wrong(&format!("got an unexpected keyword argument '{name}'")));
        };
        if sorted[known].replace(argument(place)).is_some() {
            return Err(wrong(&format!("got multiple values for argument '{name}'")));
        }
    }
    match sorted {
        [Some(key), cost] => Ok((key, cost)),
        [None, _] => Err(wrong("missing 1 required positional argument: 'key'")),
    }
}
