//! What a client is told over HTTP, in the core's own bytes.

use std::time::{Duration, SystemTime};

use mirab::http::{self, Headers, Naming};
use pyo3::prelude::*;

use crate::convert::{key_bytes, shown};
use crate::decision::PyDecision;
use crate::error::{invalid_argument, raise};

/// The response headers that tell a decision, as (name, value) pairs.
///
/// `families` are any of "draft-8", "draft-7", "draft-6", "x-ratelimit" and "x-ratelimit-epoch".
/// `policy_name` replaces the limit's name; the hash of `partition_key` becomes `pk`; `unix_now`,
/// seconds since 1970, is what "x-ratelimit-epoch" counts from. A refusal also gets Retry-After
/// (unless it is never) and Cache-Control.
#[pyfunction]
#[pyo3(signature = (decision, families, *, policy_name=None, partition_key=None, unix_now=None))]
pub fn http_headers(
    decision: &Bound<'_, PyDecision>,
    families: Vec<String>,
    policy_name: Option<&str>,
    partition_key: Option<&Bound<'_, PyAny>>,
    unix_now: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<(&'static str, String)>> {
    let families: Vec<Headers> =
        families.into_iter().map(|family| family.parse()).collect::<Result<_, _>>().map_err(raise)?;
    let naming = Naming { policy_name, partition_key: partition_key.map(key_bytes).transpose()? };
    let now = unix_now.map_or(Ok(SystemTime::now()), instant)?;
    Ok(http::headers(decision.get().told(), &families, &naming, now))
}

fn instant(seconds: &Bound<'_, PyAny>) -> PyResult<SystemTime> {
    seconds
        .extract()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since))
        .ok_or_else(|| {
            invalid_argument(format!(
                "unix_now {}: it must be a number of seconds since 1970",
                shown(seconds)
            ))
        })
}

/// The canonical text of a client's address, for use as a key; None when it isn't an address.
///
/// An IPv4 address in IPv6 clothes becomes IPv4; IPv6 is masked to its first `ipv6_prefix` bits.
#[pyfunction]
#[pyo3(signature = (address, ipv6_prefix=64))]
pub fn client_key(address: &str, ipv6_prefix: u8) -> Option<String> {
    http::client_key(address, ipv6_prefix)
}
