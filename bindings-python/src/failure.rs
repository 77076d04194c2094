//! The arguments that say what a limiter does when its store fails.

use mirab::OnStoreFailure;
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::convert::shown;
use crate::error::{invalid_argument, raise};

/// `on_store_failure`: what decides when the store does not.
#[derive(Clone, Copy)]
pub struct Choice(pub OnStoreFailure);

impl FromPyObject<'_, '_> for Choice {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match value.extract::<&str>() {
            Ok(text) => text.parse().map(Self).map_err(raise),
            Err(_) => Err(invalid_argument(format!(
                "on_store_failure {}: it must be one of \"local\", \"open\", \"closed\", \"raise\"",
                shown(&value)
            ))),
        }
    }
}

/// `instances`: how many processes share the store.
#[derive(Clone, Copy)]
pub struct Instances(pub u64);

impl FromPyObject<'_, '_> for Instances {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match value.extract() {
            Ok(count) if !value.is_instance_of::<PyBool>() => Ok(Self(count)),
            _ => Err(invalid_argument(format!(
                "instances {}: it must be an integer from 1 to 4294967295 (2^32 - 1)",
                shown(&value)
            ))),
        }
    }
}
