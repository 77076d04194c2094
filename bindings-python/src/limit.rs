//! `Limit`: an algorithm with its numbers.

use std::hash::{DefaultHasher, Hash, Hasher};

use mirab::{Anchor, Error, ErrorKind, Limit, Policy};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyString, PyTuple};

use crate::convert::{count, seconds, shown, span, text, whole};
use crate::error::{invalid_argument, raise};

/// An algorithm with its numbers. Limits are values: equal when they say the same.
#[pyclass(frozen, module = "mirab", name = "Limit")]
pub struct PyLimit(Limit);

#[pymethods]
impl PyLimit {
    /// The one limit that `text` says, such as "5/minute" or "100/second burst 300".
    #[staticmethod]
    fn parse(text: &Bound<'_, PyAny>) -> PyResult<Self> {
        let text = text_of("limit", text, "text such as \"5/minute\"")?;
        Limit::parse(text).map(Self).map_err(raise)
    }

    /// A bucket that fills at `limit` units in `per` seconds (or a `timedelta`), up to `capacity`.
    ///
    /// Without `capacity` it holds `limit`. Instead of `limit` and `per` it takes a `refill_rate`
    /// in units a second beside the `capacity`: an int, Fraction, Decimal or text is taken exactly,
    /// a float by its shortest decimal text.
    #[staticmethod]
    #[pyo3(signature = (limit=None, per=None, capacity=None, *, refill_rate=None, name=None))]
    fn token_bucket(
        limit: Option<&Bound<'_, PyAny>>,
        per: Option<&Bound<'_, PyAny>>,
        capacity: Option<&Bound<'_, PyAny>>,
        refill_rate: Option<&Bound<'_, PyAny>>,
        name: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let bucket = match (limit, per, capacity, refill_rate) {
            (Some(limit), Some(per), capacity, None) => {
                let bucket = Limit::token_bucket(count("limit", limit)?, span("per", per)?);
                match capacity {
                    Some(capacity) => {
                        let capacity = count("capacity", capacity)?;
                        bucket.and_then(|bucket| bucket.with_capacity(capacity))
                    }
                    None => bucket,
                }
            }
            (None, None, Some(capacity), Some(rate)) => {
                Limit::token_bucket_refilled(count("capacity", capacity)?, &exact_rate(rate)?)
            }
            _ => {
                return Err(invalid_limit(
                    "a token bucket takes limit and per (and capacity), or capacity and refill_rate".into(),
                ));
            }
        };
        named(bucket, name)
    }

    /// Admitted requests leave at `limit` in `per` seconds (or a `timedelta`): each is told its `delay`.
    ///
    /// At most `queue` units wait besides the one being served; a full queue refuses.
    #[staticmethod]
    #[pyo3(
        signature = (limit, per, queue=Queue(0), *, name=None),
        text_signature = "(limit, per, queue=0, *, name=None)"
    )]
    fn leaky_bucket(
        limit: &Bound<'_, PyAny>,
        per: &Bound<'_, PyAny>,
        queue: Queue,
        name: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        named(Limit::leaky_bucket(count("limit", limit)?, span("per", per)?, queue.0), name)
    }

    /// At most `limit` units in each window of `per` seconds (or a `timedelta`).
    ///
    /// Windows are aligned to the clock, or with `anchor="first"` begin at the first admitted request.
    #[staticmethod]
    #[pyo3(
        signature = (limit, per, anchor=Begins(Anchor::Clock), *, name=None),
        text_signature = "(limit, per, anchor='clock', *, name=None)"
    )]
    fn fixed_window(
        limit: &Bound<'_, PyAny>,
        per: &Bound<'_, PyAny>,
        anchor: Begins,
        name: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        named(Limit::fixed_window(count("limit", limit)?, span("per", per)?, anchor.0), name)
    }

    /// At most `limit` units in `per` seconds (or a `timedelta`), where the window before counts by
    /// the share of it that the last `per` seconds still cover.
    #[staticmethod]
    #[pyo3(signature = (limit, per, *, name=None))]
    fn sliding_window(
        limit: &Bound<'_, PyAny>,
        per: &Bound<'_, PyAny>,
        name: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        named(Limit::sliding_window(count("limit", limit)?, span("per", per)?), name)
    }

    /// Never more than `limit` units in any `per` seconds (or a `timedelta`).
    ///
    /// It remembers each admitted request; with `buckets`, 1 to 1024 that divide the period, it keeps
    /// so many counters instead, and a refusal may last a bucket's width longer.
    #[staticmethod]
    #[pyo3(signature = (limit, per, buckets=None, *, name=None))]
    fn sliding_log(
        limit: &Bound<'_, PyAny>,
        per: &Bound<'_, PyAny>,
        buckets: Option<&Bound<'_, PyAny>>,
        name: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let log = Limit::sliding_log(count("limit", limit)?, span("per", per)?);
        let log = match buckets {
            Some(buckets) => {
                let buckets = whole("buckets", buckets, "from 1 to 1024 that divides the period")?;
                log.and_then(|log| log.with_buckets(buckets))
            }
            None => log,
        };
        named(log, name)
    }

    /// At most `limit` units in flight: what was taken counts until `Limiter.release`, or until it
    /// expires after `expires` seconds (or a `timedelta`).
    #[staticmethod]
    #[pyo3(signature = (limit, expires, *, name=None))]
    fn concurrency(
        limit: &Bound<'_, PyAny>,
        expires: &Bound<'_, PyAny>,
        name: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        named(Limit::concurrency(count("limit", limit)?, span("expires", expires)?), name)
    }

    /// Refuses everything, for ever.
    #[staticmethod]
    fn deny() -> Self {
        Self(Limit::deny())
    }

    /// Admits everything.
    #[staticmethod]
    fn unlimited() -> Self {
        Self(Limit::unlimited())
    }

    /// Seconds that the last of a leaky bucket's queue is held; 0 for every other limit.
    #[getter]
    fn longest_delay(&self) -> f64 {
        seconds(self.0.longest_delay())
    }

    /// Whether it counts what is in flight, so that what it admits is to be released.
    #[getter]
    fn is_concurrency(&self) -> bool {
        self.0.is_concurrency()
    }

    /// The same limit under a name: its bucket then keeps what was used when its numbers change.
    fn with_name(&self, name: &Bound<'_, PyAny>) -> PyResult<Self> {
        let name = text_of("name", name, "text")?;
        self.0.clone().with_name(name).map(Self).map_err(raise)
    }

    /// The same limit with buckets of its own: those of `scope`, such as a route's.
    fn with_scope(&self, scope: &Bound<'_, PyAny>) -> PyResult<Self> {
        let scope = text_of("scope", scope, "text")?;
        self.0.clone().with_scope(scope).map(Self).map_err(raise)
    }

    /// Its name, else its notation.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// How many units it holds when nothing is in use.
    #[getter]
    fn capacity(&self) -> u64 {
        self.0.capacity()
    }

    /// The seconds in which it grants its count, or after which a lease expires; None where there is none.
    #[getter]
    fn period(&self) -> Option<f64> {
        self.0.period().map(seconds)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Limit({:?})", self.0.to_string())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.0 == other.get().0)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.to_string().hash(&mut hasher);
        hasher.finish()
    }
}

/// How many may wait in a leaky bucket.
#[derive(Clone, Copy)]
struct Queue(u64);

impl FromPyObject<'_, '_> for Queue {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        whole("queue", &value, "from 0 to 4294967294 (2^32 - 2)").map(Self)
    }
}

/// When the windows of a fixed window begin.
#[derive(Clone, Copy)]
struct Begins(Anchor);

impl FromPyObject<'_, '_> for Begins {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let right = "\"clock\" or \"first\"";
        match text_of("anchor", &value, right)? {
            "clock" => Ok(Self(Anchor::Clock)),
            "first" => Ok(Self(Anchor::First)),
            _ => Err(invalid_limit(format!("anchor {}: it must be {right}", shown(&value)))),
        }
    }
}

/// The argument `limits`: notation, a `Limit`, or a list or tuple of them.
pub fn policy(limits: &Bound<'_, PyAny>) -> PyResult<Policy> {
    if limits.is_instance_of::<PyList>() || limits.is_instance_of::<PyTuple>() {
        let mut all = Vec::new();
        for item in limits.try_iter()? {
            all.extend_from_slice(one_value(&item?)?.limits());
        }
        return Policy::new(all).map_err(raise);
    }
    one_value(limits)
}

fn one_value(value: &Bound<'_, PyAny>) -> PyResult<Policy> {
    if let Ok(limit) = value.cast::<PyLimit>() {
        return Ok(limit.get().0.clone().into());
    }
    let right = "text such as \"5/minute\", a Limit, or a list of them";
    Policy::parse(text_of("limits", value, right)?).map_err(raise)
}

/// What the decisions of a limiter refer to: it keeps neither the limiter nor its store, nor its clock.
#[pyclass(frozen, module = "mirab", name = "Policy")]
pub struct PyPolicy(pub Policy);

/// The policy as a tuple of limits.
pub fn limits<'py>(policy: &Policy, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, policy.limits().iter().map(|limit| PyLimit(limit.clone())))
}

fn named(limit: mirab::Result<Limit>, name: Option<&Bound<'_, PyAny>>) -> PyResult<PyLimit> {
    let limit = PyLimit(limit.map_err(raise)?);
    match name {
        Some(name) => limit.with_name(name),
        None => Ok(limit),
    }
}

/// Every number of Python's writes itself exactly, and a float by its shortest decimal text.
fn exact_rate(rate: &Bound<'_, PyAny>) -> PyResult<String> {
    let number = rate.py().import("numbers")?.getattr("Number")?;
    let is_rate = rate.is_instance_of::<PyString>() || rate.is_instance(&number)?;
    if !is_rate || rate.is_instance_of::<PyBool>() {
        return Err(invalid_argument(format!(
            "refill_rate {}: it must be a number of units a second, or its text",
            shown(rate)
        )));
    }
    let text = rate.str()?;
    Ok(text_of("refill_rate", &text, "a number of units a second, or its text")?.to_owned())
}

fn text_of<'a>(what: &str, value: &'a Bound<'_, PyAny>, right: &str) -> PyResult<&'a str> {
    text(ErrorKind::InvalidLimit, what, value, right)
}

fn invalid_limit(message: String) -> PyErr {
    raise(Error::new(ErrorKind::InvalidLimit, message))
}
