//! What an HTTP client is told, as the core writes it.

use std::time::{Duration, UNIX_EPOCH};

use mirab::http::{self, Headers, Naming};
use mirab::{Error, ErrorKind, Result};

use crate::js::{Call, Value};

/// `(heldDecision, families, policyName?, partitionKey?, unixMs) => [name, value, name, value...]`.
pub fn headers(call: &Call<'_>) -> Result<Value> {
    let decisions = call.state().decisions.borrow();
    let decision = decisions
        .get(call.handle(0)?)
        .ok_or_else(|| Error::new(ErrorKind::Internal, "a decision that is not held"))?;
    let families: Vec<Headers> = call.texts(1)?.iter().map(|family| family.parse()).collect::<Result<_>>()?;
    let (policy_name, key) = (call.text_or_none(2), call.text_or_none(3));
    let naming =
        Naming { policy_name: policy_name.as_deref(), partition_key: key.as_deref().map(str::as_bytes) };
    let now = UNIX_EPOCH + Duration::from_micros((call.number(4)? * 1000.0).round() as u64);
    let pairs = http::headers(decision.told(), &families, &naming, now);
    let flat = pairs.into_iter().flat_map(|(name, value)| [name.to_owned(), value]);
    call.give(flat.collect::<Vec<_>>())
}

/// `(address, ipv6Prefix) => text | undefined`.
pub fn client_key(call: &Call<'_>) -> Result<Value> {
    call.give(http::client_key(&call.text(0)?, call.integer(1)? as u8))
}
