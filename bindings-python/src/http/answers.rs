//! `Answers`: what a client is told.

use std::time::{Duration, SystemTime};

use mirab::ErrorKind;
use mirab::http::{Answer, Answers, Naming};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::convert::{TextArgument, key_bytes, shown, text};
use crate::decision::Decision;
use crate::error::{invalid_argument, raise};

/// How decisions are told to clients: made once, used for each.
///
/// families: any of "draft-8" (to 11), "draft-8-spaced", "draft-7", "draft-6", "x-ratelimit",
///     "x-ratelimit-epoch".
/// body: what stands in a refusal: "none", "problem" (application/problem+json), "json".
/// partition_salt: at least 16 secret bytes, the same in all processes; without them `pk` differs from one
///     process to the next.
/// max_hold: the longest that a request is held for a leaky bucket, in seconds; one that would be held longer
///     is answered as refused.
///
/// Raises InvalidArgument for anything else.
#[pyclass(frozen, module = "mirab.http", name = "Answers")]
pub struct PyAnswers(Answers);

#[pymethods]
impl PyAnswers {
    #[new]
    #[pyo3(
        signature = (families=None, *, body=TextArgument::Default("none"), partition_salt=None, max_hold=None),
        text_signature = "(families=None, *, body='none', partition_salt=None, max_hold=None)"
    )]
    fn new(
        families: Option<&Bound<'_, PyAny>>,
        body: TextArgument<'_, '_>,
        partition_salt: Option<&Bound<'_, PyAny>>,
        max_hold: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let families = families.map_or_else(|| Ok(vec!["draft-8".to_owned()]), families_of)?;
        let body = body.text("body", "\"none\", \"problem\" or \"json\"")?;
        let mut answers = Answers::new(&families).and_then(|answers| answers.body(body)).map_err(raise)?;
        if let Some(salt) = partition_salt {
            let Ok(salt) = salt.cast::<PyBytes>() else {
                return Err(invalid_argument("partition_salt: it must be bytes, 16 or more".into()));
            };
            answers = answers.partition_salt(salt.as_bytes()).map_err(raise)?;
        }
        if let Some(longest) = max_hold {
            answers = answers.max_hold(since(longest).ok_or_else(|| {
                invalid_argument(format!("max_hold {}: it must be 0 or more seconds", shown(longest)))
            })?);
        }
        Ok(Self(answers))
    }

    /// The answer to a decision.
    ///
    /// policy_name: what the policy is called, instead of the limit's name.
    /// partition_key: the key whose salted hash becomes `pk`.
    /// unix_now: the seconds since 1970 from which "x-ratelimit-epoch" counts, else the decision's own time.
    #[pyo3(signature = (decision, *, policy_name=None, partition_key=None, unix_now=None))]
    fn answer(
        &self,
        decision: &Bound<'_, PyAny>,
        policy_name: Option<&Bound<'_, PyAny>>,
        partition_key: Option<&Bound<'_, PyAny>>,
        unix_now: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyAnswer> {
        let Some(decision) = Decision::of(decision) else {
            return Err(PyTypeError::new_err(format!("decision {}: it must be a Decision", shown(decision))));
        };
        let policy_name = policy_name
            .map(|name| text(ErrorKind::InvalidArgument, "policy_name", name, "text"))
            .transpose()?;
        let naming = Naming { policy_name, partition_key: partition_key.map(key_bytes).transpose()? };
        let now = unix_now.map(instant).transpose()?;
        Ok(PyAnswer(self.0.answer(decision.told(), &naming, now)))
    }
}

/// What a client is told: to be sent where it refuses; where it admits, its headers go with the response.
#[pyclass(frozen, module = "mirab.http", name = "Answer")]
pub struct PyAnswer(Answer);

#[pymethods]
impl PyAnswer {
    /// 200 where the request may pass, 429 where it may not, 503 where nobody could decide.
    #[getter]
    fn status(&self) -> u16 {
        self.0.status
    }

    /// The headers, as (name, value) pairs, with the Content-Type of the body.
    #[getter]
    fn headers(&self) -> Vec<(&'static str, &str)> {
        self.0.fields.iter().map(|(name, value)| (*name, value.as_str())).collect()
    }

    /// The body of a refusal, where one is wanted; else None.
    #[getter]
    fn body(&self) -> Option<&str> {
        self.0.body.as_deref()
    }

    fn __repr__(&self) -> String {
        format!("Answer(status={})", self.0.status)
    }
}

fn families_of(given: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let names = given.extract().ok().filter(|_| !given.is_instance_of::<PyString>());
    names.ok_or_else(|| invalid_argument(format!("families {}: it must be a list of names", shown(given))))
}

fn instant(seconds: &Bound<'_, PyAny>) -> PyResult<SystemTime> {
    since(seconds).and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since)).ok_or_else(|| {
        invalid_argument(format!("unix_now {}: it must be a number of seconds since 1970", shown(seconds)))
    })
}

/// To the nearest microsecond: what a float has beyond that is no time.
fn since(seconds: &Bound<'_, PyAny>) -> Option<Duration> {
    let exact = seconds.extract().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())?;
    u64::try_from((exact.as_nanos() + 500) / 1_000).ok().map(Duration::from_micros)
}
