//! Errors: the class that JavaScript registers, and the kinds that it must know.

use mirab::{ErrorKind, Result};

use crate::js::{Call, Value};

/// `(class)`: what is thrown from now on.
pub fn set_class(call: &Call<'_>) -> Result<Value> {
    call.keep_error_class(0)?;
    call.give(())
}

/// `() => string[]`: the names of all kinds.
pub fn kinds(call: &Call<'_>) -> Result<Value> {
    call.give(ErrorKind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>())
}
