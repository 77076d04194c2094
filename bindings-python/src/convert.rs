//! Python's values as the core takes them; what it cannot take is an error that names the value.

use std::time::Duration;

use mirab::{Error, ErrorKind, duration};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDelta, PyString, PyTuple};

use crate::error::{invalid_argument, raise};

/// Who is limited: the UTF-8 bytes of a `str`, or `bytes` as they are.
#[inline]
pub fn key_bytes<'a>(key: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    if let Ok(text) = key.cast::<PyString>()
        && let Ok(text) = text.to_str()
    {
        return Ok(text.as_bytes());
    }
    match key.cast::<PyBytes>() {
        Ok(bytes) => Ok(bytes.as_bytes()),
        Err(_) => Err(no_key(key)),
    }
}

#[cold]
fn no_key(given: &Bound<'_, PyAny>) -> PyErr {
    let wrong = match given.is_instance_of::<PyString>() {
        true => "a lone surrogate has no UTF-8 form; pass bytes instead",
        false => "it must be str or bytes",
    };
    invalid_argument(format!("key {}: {wrong}", shown(given)))
}

/// How many units are taken.
#[derive(Clone, Copy)]
pub struct Cost(pub u64);

impl FromPyObject<'_, '_> for Cost {
    type Error = PyErr;

    #[inline]
    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        integer(&value).map(Self).ok_or_else(|| no_cost(&value))
    }
}

#[cold]
fn no_cost(given: &Bound<'_, PyAny>) -> PyErr {
    invalid_argument(format!(
        "cost {}: it must be an integer from 0 to 9007199254740992 (2^53)",
        shown(given)
    ))
}

/// Microseconds of a clock.
#[derive(Clone, Copy)]
pub struct Micros(pub u64);

impl FromPyObject<'_, '_> for Micros {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match integer(&value) {
            Some(us) => Ok(Self(us)),
            None => Err(invalid_argument(format!(
                "{} microseconds: it must be an integer from 0 to 4503599627370496 (2^52)",
                shown(&value)
            ))),
        }
    }
}

/// A count or a capacity of a limit, called `what` in the error.
pub fn count(what: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    whole(what, value, "from 1 to 4294967295 (2^32 - 1)")
}

/// A whole number of a limit, called `what` in the error, which says the `range` of what is right.
/// The core checks the range; here falls what is no such number at all.
pub fn whole(what: &str, value: &Bound<'_, PyAny>, range: &str) -> PyResult<u64> {
    integer(value).ok_or_else(|| {
        let message = format!("{what} {}: it must be an integer {range}", shown(value));
        raise(Error::new(ErrorKind::InvalidLimit, message))
    })
}

/// An integer from 0 up, of any type that is one to Python; never a bool, never a float.
fn integer(value: &Bound<'_, PyAny>) -> Option<u64> {
    if value.is_instance_of::<PyBool>() {
        return None;
    }
    value.extract().ok()
}

/// The greatest number of microseconds of a clock, and of a span.
pub const MOST_US: u64 = 1 << 52;

/// Seconds or a `timedelta`, called `what` in the error.
pub fn span(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    match length(what, value, duration::from_seconds)? {
        Some(span) if !span.is_zero() => Ok(span),
        _ => Err(invalid_argument(format!(
            "{what} {}: it must be a positive number of seconds or a timedelta",
            shown(value)
        ))),
    }
}

/// As [`span`], where 0 is to ask once.
pub fn timeout(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    length(what, value, duration::timeout_from_seconds).ok().flatten().ok_or_else(|| {
        invalid_argument(format!(
            "{what} {}: it must be a number of seconds or a timedelta: 0, or from one microsecond to 2^52",
            shown(value)
        ))
    })
}

/// None for what is neither seconds nor a `timedelta`, and for a negative one.
fn length(
    what: &str,
    value: &Bound<'_, PyAny>,
    from_seconds: fn(&str, f64) -> mirab::Result<Duration>,
) -> PyResult<Option<Duration>> {
    if value.is_instance_of::<PyBool>() {
        return Ok(None);
    }
    if let Ok(seconds) = value.extract() {
        return from_seconds(what, seconds).map(Some).map_err(raise);
    }
    // Second, since it loads `datetime`.
    if !value.is_instance_of::<PyDelta>() {
        return Ok(None);
    }
    match value.extract::<Duration>() {
        Ok(span) if span.as_micros() > MOST_US.into() => Err(invalid_argument(format!(
            "{what} {}: it must be at most 2^52 microseconds (142 years)",
            shown(value)
        ))),
        span => Ok(span.ok()),
    }
}

/// Text, called `what` in the error, which is of `kind` and says what is `right`.
pub fn text<'a>(kind: ErrorKind, what: &str, value: &'a Bound<'_, PyAny>, right: &str) -> PyResult<&'a str> {
    let wrong = match value.cast::<PyString>() {
        Ok(text) => match text.to_str() {
            Ok(text) => return Ok(text),
            Err(_) => "a lone surrogate has no UTF-8 form".to_owned(),
        },
        Err(_) => format!("it must be {right}"),
    };
    Err(raise(Error::new(kind, format!("{what} {}: {wrong}", shown(value)))))
}

/// What `acquire_many` takes: keys, and keys with a cost, in any iterable.
pub fn items_of<'py>(given: &Bound<'py, PyAny>) -> PyResult<Vec<(Bound<'py, PyAny>, u64)>> {
    let one_text = given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>();
    let Some(all) = given.try_iter().ok().filter(|_| !one_text) else {
        return Err(invalid_argument(format!(
            "items {}: they must be a list of keys or (key, cost) pairs",
            shown(given)
        )));
    };
    // Not collected: the iterator would be asked for its length, which loads a module.
    let mut items = Vec::new();
    for (index, item) in all.enumerate() {
        items.push(item_of(item?).map_err(|error| at_index(given.py(), index, error))?);
    }
    Ok(items)
}

fn item_of(item: Bound<'_, PyAny>) -> PyResult<(Bound<'_, PyAny>, u64)> {
    let (key, cost) = match item.cast_into::<PyTuple>() {
        Err(other) => (other.into_inner(), Cost(1)),
        Ok(pair) if pair.len() == 2 => (pair.get_item(0)?, pair.get_item(1)?.extract()?),
        Ok(odd) => return Err(invalid_argument(format!("{}: it must be a key or (key, cost)", shown(&odd)))),
    };
    key_bytes(&key)?;
    Ok((key, cost.0))
}

/// The error of one item, which says which it is.
fn at_index(py: Python<'_>, index: usize, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyValueError>(py) {
        return invalid_argument(format!("item {index}: {}", error.value(py)));
    }
    error
}

/// Seconds as Python counts them. Whole microseconds survive the way there and back: they are below 2^53.
pub fn seconds(duration: Duration) -> f64 {
    duration.as_micros() as u64 as f64 / 1e6
}

/// An argument that is text, where it may be left out.
#[derive(Clone, Copy)]
pub enum TextArgument<'a, 'py> {
    Default(&'static str),
    Given(Borrowed<'a, 'py, PyAny>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for TextArgument<'a, 'py> {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self::Given(value))
    }
}

impl TextArgument<'_, '_> {
    /// The text; the error calls it `what`, and says what is `right`.
    pub fn text(&self, what: &str, right: &str) -> PyResult<&str> {
        match self {
            Self::Default(text) => Ok(text),
            Self::Given(value) => text(ErrorKind::InvalidArgument, what, value, right),
        }
    }
}

/// The value as an error shows it: its repr, cut when it is long.
pub fn shown(value: &Bound<'_, PyAny>) -> String {
    const LONGEST: usize = 80;
    let Ok(text) = value.repr() else {
        return format!("of type {}", value.get_type());
    };
    let text = text.to_string_lossy();
    match text.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text.into_owned(),
    }
}
